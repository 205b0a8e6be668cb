"""Poses that violate a requirement, by interval arithmetic."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.domain import Domain
from tauloop.design.enclosure import Enclosure, Requirements, enclose
from tauloop.design.following import FollowedPath, follow, points, predicted
from tauloop.design.problem import PoseProblem
from tauloop.design.reach import unreachable

#: Poses of a batch that are tried for each requirement, and whose reach is examined.
TRIALS, REACH_TRIALS = 8, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A pose of the box that violates a requirement, by interval arithmetic.

    Attributes:
        pose: its axes (m,).
        unknowns: its unknowns (n,).
        claim: the violated requirement.
        excess: value less its limit; negative, and infinite where no assembly mode reaches the pose.
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
    wanted: Requirements,
    domain: Domain,
    path: FollowedPath,
    enclosure: Enclosure,
    chosen: np.ndarray,
) -> tuple[Counterexample | None, str | None]:
    """Return a violating pose among the worst predicted ones, and the hardest requirement.

    A linear prediction of each claim is least at a corner of its box.
    """
    poses, starts, worst, least = [], [], None, np.inf
    boxes = enclosure.boxes
    for claim in enclosure.claims:
        left = chosen & enclosure.closed & ~claim.proved
        if not left.any():
            continue
        lower = np.where(left, np.nan_to_num(claim.lower, nan=-1e300, neginf=-1e300), np.inf)
        if worst is None or lower.min() < least:
            worst, least = claim.name, float(lower.min())
        value = np.where(left, claim.middle - np.abs(claim.slopes).sum(axis=1), np.inf)
        for which in np.argsort(value)[:TRIALS]:
            if value[which] < 0.0 or claim.middle[which] < 0.0:
                corner = -np.sign(claim.slopes[which])
                poses.append(boxes.middle[which] + boxes.generators[which] @ corner)
                starts.append(predicted(enclosure, np.array([which]), poses[-1][None])[0])
    open_boxes = np.flatnonzero(chosen & ~enclosure.closed)[:TRIALS]
    if len(open_boxes):
        worst = "loops"
        poses += list(boxes.middle[open_boxes])
        starts += list(boxes.unknowns[open_boxes])
    if not poses:
        return None, worst
    b = domain.nearest(np.array(poses))
    trial = enclose(problem, wanted, points(b, np.array(starts)))
    return first_violation(problem, path, trial) or out_of_reach(problem, trial), worst


def first_violation(
    problem: PoseProblem, path: FollowedPath, trial: Enclosure
) -> Counterexample | None:
    """Return the first pose that violates a claim on the reference's assembly mode."""
    for claim in trial.claims:
        for which in np.flatnonzero(claim.refuted & trial.closed):
            pose = trial.boxes.middle[which]
            way = follow(problem, path.end, path.last, pose)
            unknowns = trial.boxes.unknowns[which]
            away = np.abs(way.last - unknowns) / problem.unknown_scale
            if way.is_complete and away.max(initial=0.0) < 1e-6:
                return Counterexample(
                    pose=pose,
                    unknowns=unknowns,
                    claim=claim.name,
                    excess=claim.excess(int(which)),
                )
    return None


def out_of_reach(problem: PoseProblem, trial: Enclosure) -> Counterexample | None:
    """Return the first pose that no assembly mode reaches."""
    for which in np.flatnonzero(~trial.closed)[-REACH_TRIALS:]:
        counterexample = reach_violation(problem, trial.boxes.middle[which])
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
