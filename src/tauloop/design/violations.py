"""Poses that violate a requirement, by interval arithmetic."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.domain import Domain
from tauloop.design.enclosure import Enclosure, Requirements, enclose
from tauloop.design.following import FollowedPath, follow, points, predicted
from tauloop.design.problem import PoseProblem
from tauloop.design.reach import unreachable

#: Number of poses of a batch that are tried for each requirement.
MAX_TRIALS = 8
#: Number of poses of a batch that are examined for reach in any assembly mode.
MAX_REACH_TRIALS = 2
#: Largest difference of two solutions that count as the same (rad, or characteristic lengths).
SAME_SOLUTION_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A pose of the box that violates a requirement, by interval arithmetic.

    Attributes:
        pose: values of the axes (m,).
        unknowns: values of the unknowns (n,).
        claim: the violated requirement.
        excess: value minus its limit, which is negative; minus infinity if no assembly mode reaches
            the pose.
        parameters: parameters (n_p,) of the machine that violates it; None where all machines within
            the deviations do.
    """

    pose: np.ndarray
    unknowns: np.ndarray
    claim: str
    excess: float
    parameters: np.ndarray | None = None


def violation(
    problem: PoseProblem,
    requirements: Requirements,
    domain: Domain,
    path: FollowedPath,
    enclosure: Enclosure,
    chosen: np.ndarray,
) -> tuple[Counterexample | None, str | None]:
    """Return a violating pose, and the name of the requirement that is hardest to prove.

    The poses with the smallest predicted margins are tried. The linear prediction of a margin is
    smallest at a vertex of its box.
    """
    poses: list[np.ndarray] = []
    starts: list[np.ndarray] = []
    worst: str | None = None
    smallest_bound = np.inf
    boxes = enclosure.boxes
    for claim in enclosure.claims:
        is_open = chosen & enclosure.has_unique_solution & ~claim.proved
        if not is_open.any():
            continue
        lower = np.where(is_open, np.nan_to_num(claim.lower, nan=-1e300, neginf=-1e300), np.inf)
        if worst is None or lower.min() < smallest_bound:
            worst = claim.name
            smallest_bound = float(lower.min())
        margin = np.where(
            is_open, claim.margin_at_center - np.abs(claim.slopes).sum(axis=1), np.inf
        )
        for box in np.argsort(margin)[:MAX_TRIALS]:
            if margin[box] < 0.0 or claim.margin_at_center[box] < 0.0:
                vertex = -np.sign(claim.slopes[box])
                poses.append(boxes.middle[box] + boxes.generators[box] @ vertex)
                starts.append(predicted(enclosure, np.array([box]), poses[-1][None])[0])
    open_boxes = np.flatnonzero(chosen & ~enclosure.has_unique_solution)[:MAX_TRIALS]
    if len(open_boxes):
        worst = "loops"
        poses += list(boxes.middle[open_boxes])
        starts += list(boxes.unknowns[open_boxes])
    if not poses:
        return None, worst
    b = domain.nearest(np.array(poses))
    trial = enclose(problem, requirements, points(b, np.array(starts)))
    return first_violation(problem, path, trial) or out_of_reach(problem, trial), worst


def first_violation(
    problem: PoseProblem, path: FollowedPath, trial: Enclosure
) -> Counterexample | None:
    """Return the first pose that violates a claim on the reference's assembly mode."""
    for claim in trial.claims:
        for box in np.flatnonzero(claim.refuted & trial.has_unique_solution):
            pose = trial.boxes.middle[box]
            path_to_pose = follow(problem, path.end, path.last, pose)
            unknowns = trial.boxes.unknowns[box]
            distance = np.abs(path_to_pose.last - unknowns) / problem.unknown_scale
            if path_to_pose.is_complete and distance.max(initial=0.0) < SAME_SOLUTION_TOLERANCE:
                return Counterexample(
                    pose=pose,
                    unknowns=unknowns,
                    claim=claim.name,
                    excess=claim.excess(int(box)),
                )
    return None


def out_of_reach(problem: PoseProblem, trial: Enclosure) -> Counterexample | None:
    """Return the first pose that no assembly mode reaches."""
    for box in np.flatnonzero(~trial.has_unique_solution)[-MAX_REACH_TRIALS:]:
        counterexample = reach_violation(problem, trial.boxes.middle[box])
        if counterexample is not None:
            return counterexample
    return None


def reach_violation(problem: PoseProblem, pose: np.ndarray) -> Counterexample | None:
    """Return the pose (m,) as a violation if no assembly mode reaches it."""
    unknown = unreachable(problem, pose)
    if unknown is None:
        return None
    return Counterexample(
        pose=pose,
        unknowns=np.full(len(problem.unknowns), np.nan),
        claim=f"reach: {unknown}",
        excess=-np.inf,
    )
