"""Poses at which a machine within the tolerances violates a requirement.

Interval arithmetic over all machines refutes a requirement only where each of them violates it. Here
single machines are tried: the nominal machine, and for each requirement a vertex of the tolerances.
The vertex follows from differences of the requirement with respect to each parameter.
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

#: Maximum number of poses, of machines at vertices, and of boxes without solution that are tried.
MAX_TRIED_POSES, MAX_VERTICES, MAX_OPEN_BOXES = 16, 4, 2


def violation_by_deviations(
    problem: PoseProblem,
    requirements: Requirements,
    domain: Domain,
    enclosure: Enclosure,
    chosen: np.ndarray,
) -> Counterexample | None:
    """Return a pose at which a machine within the tolerances violates a requirement.

    Errors of the tool are left out: they are compared between machines.

    Args:
        problem: functions of the machine.
        requirements: the conditions that every pose of the box must meet.
        domain: the box, or a cylinder.
        enclosure: a batch of boxes.
        chosen: the boxes that are not proved (N,).
    """
    requirements = without_errors(requirements)
    nominal = machine_of(problem, problem.nominal)
    at = _worst_points(domain, enclosure, chosen)
    if len(at) == 0:
        return None
    trial = enclose(nominal, requirements, at)
    by_nominal = _verified(nominal, domain, trial)
    if by_nominal is not None:
        return by_nominal
    for machine in _vertices(problem, requirements, at, trial):
        by_vertex = _verified(machine, domain, enclose(machine, requirements, at))
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
    """Return the poses with the least predicted margin of each requirement, and middles of boxes."""
    boxes = enclosure.boxes
    candidates: list[tuple[float, int, np.ndarray]] = []
    for claim in enclosure.claims:
        left = chosen & enclosure.closed & ~claim.proved
        if not left.any():
            continue
        value = np.where(left, claim.middle - np.abs(claim.slopes).sum(axis=1), np.inf)
        which = int(np.argmin(np.nan_to_num(value, nan=np.inf)))
        corner = -np.sign(claim.slopes[which])
        relative = float(value[which] / max(abs(claim.middle[which]), 1e-12))
        pose = boxes.middle[which] + boxes.generators[which] @ corner
        if np.isfinite(pose).all():
            candidates.append((relative, which, pose))
    for which in np.flatnonzero(chosen & ~enclosure.closed)[:MAX_OPEN_BOXES]:
        candidates.append((0.0, int(which), boxes.middle[which]))
    candidates.sort(key=lambda candidate: candidate[0])
    candidates = candidates[:MAX_TRIED_POSES]
    numbers = np.array([which for _, which, _ in candidates], dtype=int)
    poses = np.array([pose for _, _, pose in candidates])
    b = domain.nearest(poses.reshape(len(candidates), boxes.middle.shape[1]))
    return points(b, predicted(enclosure, numbers, b))


def _verified(machine: PoseProblem, domain: Domain, trial: Enclosure) -> Counterexample | None:
    """Return the first pose at which this machine violates a requirement."""
    has_refuted = any((claim.refuted & trial.closed).any() for claim in trial.claims)
    if has_refuted:
        path = follow(machine, *machine.reference, domain.center)
        if path.is_complete:
            counterexample = first_violation(machine, path, trial)
            if counterexample is not None:
                return replace(counterexample, parameters=machine.nominal)
    counterexample = out_of_reach(machine, trial)
    return None if counterexample is None else replace(counterexample, parameters=machine.nominal)


def _vertices(
    problem: PoseProblem, requirements: Requirements, at: Boxes, trial: Enclosure
) -> list[PoseProblem]:
    """Return the machines at vertices of the deviations with the least predicted margins."""
    changes: dict[str, list[np.ndarray]] = {claim.name: [] for claim in trial.claims}
    for k, tolerance in enumerate(problem.tolerances):
        step = np.zeros_like(problem.nominal)
        step[k] = tolerance
        moved = enclose(machine_of(problem, problem.nominal + step), requirements, at)
        middles = {claim.name: claim.middle for claim in moved.claims}
        for claim in trial.claims:
            missing = np.full(len(at), np.nan)
            changes[claim.name].append(middles.get(claim.name, missing) - claim.middle)
    machines: list[tuple[float, np.ndarray]] = []
    for claim in trial.claims:
        machines += _worst_vertex(problem, claim, np.array(changes[claim.name]), trial.closed)
    machines.sort(key=lambda candidate: candidate[0])
    return [machine_of(problem, parameters) for _, parameters in machines[:MAX_VERTICES]]


def _worst_vertex(
    problem: PoseProblem, claim: Claim, changes: np.ndarray, closed: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Return the smallest predicted margin, if negative, and the parameters of its vertex.

    Args:
        problem: functions of the machine.
        claim: the requirement at N poses, for the nominal machine.
        changes: changes of its margin due to the deviation of each parameter (n_p, N).
        closed: whether the loops of the nominal machine are closed (N,).
    """
    predicted_margin = claim.middle - np.abs(changes).sum(axis=0)
    predicted_margin = np.where(closed, np.nan_to_num(predicted_margin, nan=np.inf), np.inf)
    which = int(np.argmin(predicted_margin))
    if not predicted_margin[which] < 0.0:
        return []
    signs = -np.sign(changes[:, which])
    relative = float(predicted_margin[which] / max(abs(claim.middle[which]), 1e-12))
    return [(relative, problem.nominal + signs * problem.tolerances)]


def _beyond_reach(
    problem: PoseProblem, domain: Domain, enclosure: Enclosure, chosen: np.ndarray
) -> Counterexample | None:
    """Return a pose that a machine within the tolerances does not reach in any assembly mode."""
    boxes = enclosure.boxes
    for which in np.flatnonzero(chosen & ~enclosure.closed)[-MAX_OPEN_BOXES:]:
        outward = np.sign(boxes.middle[which] - domain.center)
        corner = boxes.generators[which] @ np.sign(outward @ boxes.generators[which])
        pose = domain.nearest((boxes.middle[which] + corner)[None])[0]
        for parameters in farthest_machines(problem, pose):
            counterexample = reach_violation(machine_of(problem, parameters), pose)
            if counterexample is not None:
                return replace(counterexample, parameters=parameters)
    return None
