"""Poses at which a machine within the tolerances violates a requirement.

Interval arithmetic over all machines within the tolerances refutes a requirement only at poses where
every machine violates it. This module therefore tries single machines: the nominal machine, and for
each requirement the machine at a vertex of the box of tolerances. Finite differences of the
requirement's margin with respect to each parameter determine the vertex.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.design.claims import Claim
from tauloop.design.domain import Domain
from tauloop.design.enclosure import Boxes, Enclosure, Requirements, enclose
from tauloop.design.following import follow, points, predicted
from tauloop.design.problem import PoseProblem
from tauloop.design.reach import farthest_machines
from tauloop.design.violations import (
    Counterexample,
    first_violation,
    out_of_reach,
    reach_violation,
)

#: Maximum number of poses that are tried.
MAX_TRIED_POSES = 16
#: Maximum number of machines at vertices of the tolerances that are tried.
MAX_VERTEX_MACHINES = 4
#: Maximum number of boxes without a proved solution from which poses are tried.
MAX_OPEN_BOXES = 2


def violation_by_deviations(
    problem: PoseProblem,
    requirements: Requirements,
    domain: Domain,
    enclosure: Enclosure,
    chosen: np.ndarray,
) -> Counterexample | None:
    """Return a pose at which a machine within the tolerances violates a requirement.

    Limits of the tool's errors are not tried, because an error is a difference between machines.

    Args:
        problem: functions of the machine.
        requirements: the conditions that every pose of the box must meet.
        domain: the box, or a cylinder.
        enclosure: a batch of boxes.
        chosen: the boxes that are not proved (N,).
    """
    requirements = without_errors(requirements)
    nominal = machine_of(problem, problem.nominal)
    trial_points = _worst_points(domain, enclosure, chosen)
    if len(trial_points) == 0:
        return None
    trial = enclose(nominal, requirements, trial_points)
    by_nominal = _verified(nominal, domain, trial)
    if by_nominal is not None:
        return by_nominal
    for machine in _vertex_machines(problem, requirements, trial_points, trial):
        by_vertex = _verified(machine, domain, enclose(machine, requirements, trial_points))
        if by_vertex is not None:
            return by_vertex
    return _beyond_reach(problem, domain, enclosure, chosen)


def without_errors(requirements: Requirements) -> Requirements:
    """Return the requirements without limits of errors."""
    if requirements.loads is None:
        return requirements
    return replace(
        requirements,
        loads=replace(requirements.loads, errors=np.full_like(requirements.loads.errors, np.inf)),
    )


def machine_of(problem: PoseProblem, parameters: np.ndarray) -> PoseProblem:
    """Return the functions of the machine with exact parameters (n_p,)."""
    return replace(problem, nominal=parameters, tolerances=np.zeros_like(parameters))


def _worst_points(domain: Domain, enclosure: Enclosure, chosen: np.ndarray) -> Boxes:
    """Return the poses to try.

    They are the poses with the smallest predicted margin of each requirement, and the centers of
    boxes whose loops are not closed.
    """
    boxes = enclosure.boxes
    candidates: list[tuple[float, int, np.ndarray]] = []
    for claim in enclosure.claims:
        is_open = chosen & enclosure.has_unique_solution & ~claim.proved
        if not is_open.any():
            continue
        margin = np.where(
            is_open, claim.margin_at_center - np.abs(claim.slopes).sum(axis=1), np.inf
        )
        which = int(np.argmin(np.nan_to_num(margin, nan=np.inf)))
        vertex = -np.sign(claim.slopes[which])
        relative = float(margin[which] / max(abs(claim.margin_at_center[which]), 1e-12))
        pose = boxes.middle[which] + boxes.generators[which] @ vertex
        if np.isfinite(pose).all():
            candidates.append((relative, which, pose))
    for which in np.flatnonzero(chosen & ~enclosure.has_unique_solution)[:MAX_OPEN_BOXES]:
        candidates.append((0.0, int(which), boxes.middle[which]))
    candidates.sort(key=lambda candidate: candidate[0])
    candidates = candidates[:MAX_TRIED_POSES]
    numbers = np.array([which for _, which, _ in candidates], dtype=int)
    poses = np.array([pose for _, _, pose in candidates])
    b = domain.nearest(poses.reshape(len(candidates), boxes.middle.shape[1]))
    return points(b, predicted(enclosure, numbers, b))


def _verified(machine: PoseProblem, domain: Domain, trial: Enclosure) -> Counterexample | None:
    """Return the first pose at which this machine violates a requirement."""
    is_refuted = any((claim.refuted & trial.has_unique_solution).any() for claim in trial.claims)
    if is_refuted:
        path = follow(machine, *machine.reference, domain.center)
        if path.is_complete:
            counterexample = first_violation(machine, path, trial)
            if counterexample is not None:
                return replace(counterexample, parameters=machine.nominal)
    counterexample = out_of_reach(machine, trial)
    return None if counterexample is None else replace(counterexample, parameters=machine.nominal)


def _vertex_machines(
    problem: PoseProblem, requirements: Requirements, trial_points: Boxes, trial: Enclosure
) -> list[PoseProblem]:
    """Return the machines at vertices of the deviations with the smallest predicted margins."""
    changes: dict[str, list[np.ndarray]] = {claim.name: [] for claim in trial.claims}
    for k, tolerance in enumerate(problem.tolerances):
        step = np.zeros_like(problem.nominal)
        step[k] = tolerance
        machine = machine_of(problem, problem.nominal + step)
        deviating = enclose(machine, requirements, trial_points)
        margins = {claim.name: claim.margin_at_center for claim in deviating.claims}
        for claim in trial.claims:
            missing = np.full(len(trial_points), np.nan)
            changes[claim.name].append(margins.get(claim.name, missing) - claim.margin_at_center)
    machines: list[tuple[float, np.ndarray]] = []
    for claim in trial.claims:
        machines += _worst_vertex(
            problem, claim, np.array(changes[claim.name]), trial.has_unique_solution
        )
    machines.sort(key=lambda candidate: candidate[0])
    return [machine_of(problem, parameters) for _, parameters in machines[:MAX_VERTEX_MACHINES]]


def _worst_vertex(
    problem: PoseProblem, claim: Claim, changes: np.ndarray, has_unique_solution: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Return the smallest predicted margin and the parameters of its vertex; [] if not negative.

    Args:
        problem: functions of the machine.
        claim: the requirement at N poses, for the nominal machine.
        changes: changes of its margin due to the deviation of each parameter (n_p, N).
        has_unique_solution: whether the loops of the nominal machine are closed (N,).
    """
    predicted_margin = claim.margin_at_center - np.abs(changes).sum(axis=0)
    predicted_margin = np.where(
        has_unique_solution, np.nan_to_num(predicted_margin, nan=np.inf), np.inf
    )
    which = int(np.argmin(predicted_margin))
    if not predicted_margin[which] < 0.0:
        return []
    signs = -np.sign(changes[:, which])
    relative = float(predicted_margin[which] / max(abs(claim.margin_at_center[which]), 1e-12))
    return [(relative, problem.nominal + signs * problem.tolerances)]


def _beyond_reach(
    problem: PoseProblem, domain: Domain, enclosure: Enclosure, chosen: np.ndarray
) -> Counterexample | None:
    """Return a pose that a machine within the tolerances does not reach in any assembly mode."""
    boxes = enclosure.boxes
    for which in np.flatnonzero(chosen & ~enclosure.has_unique_solution)[-MAX_OPEN_BOXES:]:
        outward = np.sign(boxes.middle[which] - domain.center)
        to_vertex = boxes.generators[which] @ np.sign(outward @ boxes.generators[which])
        pose = domain.nearest((boxes.middle[which] + to_vertex)[None])[0]
        for parameters in farthest_machines(problem, pose):
            counterexample = reach_violation(machine_of(problem, parameters), pose)
            if counterexample is not None:
                return replace(counterexample, parameters=parameters)
    return None
