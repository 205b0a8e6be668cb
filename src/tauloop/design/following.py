"""Assembly modes: solutions that are followed along straight paths and across boxes.

Two neighboring boxes have a common pose. If the solution at this pose lies in the enclosures of both
boxes, in which solutions are unique, both boxes have the same assembly mode.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.enclosure import Boxes, Enclosure, closed_only, newton
from tauloop.design.problem import PoseProblem

#: Length of the shortest piece of a path, as a fraction of the path.
SHORTEST_PIECE = 2.0**-14


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedPath:
    """A straight path of poses along which the solution is followed.

    Attributes:
        start, end: poses (m,).
        cuts: fractions (n + 1,) of the path, the first of which is 0; the solution is unique in the
            piece between two consecutive fractions.
        unknowns: unknowns at the centers of the pieces (n, n_y).
        last: unknowns at the last fraction (n_y,).
        is_complete: whether the solution is followed to the end.
    """

    start: np.ndarray
    end: np.ndarray
    cuts: tuple[float, ...]
    unknowns: np.ndarray
    last: np.ndarray
    is_complete: bool


def pieces(path_start: np.ndarray, path_end: np.ndarray, cuts: np.ndarray, y: np.ndarray) -> Boxes:
    """Return the pieces (n,) of a path as boxes along it.

    Args:
        path_start, path_end: ends of the path (m,).
        cuts: fractions (n + 1,) at the ends of the pieces.
        y: unknowns at the centers of the pieces (n, n_y).
    """
    direction = path_end - path_start
    center, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
    return Boxes(
        middle=path_start + center[:, None] * direction,
        generators=(half[:, None] * direction)[:, :, None] * (1.0 + 1e-14),
        unknowns=y,
        rounding=1e-15 * (np.abs(path_start) + np.abs(path_end)),
    )


def predicted(enclosure: Enclosure, which: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the unknowns (N, n) at poses (N, m) by linear prediction from the boxes `which` (N,)."""
    S = enclosure.sensitivity[which]
    boxes = enclosure.boxes
    offset = b - boxes.middle[which]
    return np.asarray(boxes.unknowns[which] + (S @ offset[:, :, None])[:, :, 0])


def points(b: np.ndarray, y: np.ndarray) -> Boxes:
    """Return boxes without extent at poses (N, m), with start values of the unknowns (N, n)."""
    return Boxes(
        middle=b,
        generators=np.zeros((len(b), b.shape[1], 0)),
        unknowns=y,
        rounding=np.zeros(b.shape[1]),
    )


def is_within(enclosure: Enclosure, which: np.ndarray, point: Enclosure) -> np.ndarray:
    """Return whether solutions at points equal those of the boxes `which` that contain the points.

    Args:
        enclosure: enclosures of boxes.
        which: indices (N,) of the boxes.
        point: enclosures of N points.
    """
    b, y = point.boxes.middle, point.boxes.unknowns
    distance = np.abs(y - predicted(enclosure, which, b)) + point.remainder
    is_inside = (distance <= (1.0 - 1e-6) * enclosure.uniqueness_radius[which]).all(axis=1)
    return np.asarray(is_inside & point.has_unique_solution & enclosure.has_unique_solution[which])


def follow(problem: PoseProblem, start: np.ndarray, y: np.ndarray, end: np.ndarray) -> FollowedPath:
    """Follow a solution along a straight path.

    Args:
        problem: functions of the machine.
        start, end: poses (m,).
        y: unknowns at the start (n,).

    Returns:
        The pieces in which the solution is unique, up to the end or to the pose at which the shortest
        piece fails.
    """
    cuts = [0.0]
    unknowns: list[np.ndarray] = []
    step = 1.0
    direction = end - start
    only_box = np.zeros(1, dtype=int)
    at_first = closed_only(problem, points(start[None], y[None]))
    while cuts[-1] < 1.0 and step >= SHORTEST_PIECE and at_first.has_unique_solution[0]:
        first, last = cuts[-1], min(cuts[-1] + step, 1.0)
        center = (start + 0.5 * (first + last) * direction)[None]
        guess = predicted(at_first, only_box, center)
        piece = closed_only(problem, pieces(start, end, np.array([first, last]), guess))
        last_pose = (start + last * direction)[None]
        at_last = closed_only(problem, points(last_pose, predicted(piece, only_box, last_pose)))
        has_same_solution = (
            is_within(piece, only_box, at_first)[0] and is_within(piece, only_box, at_last)[0]
        )
        if has_same_solution:
            cuts.append(last)
            unknowns.append(piece.boxes.unknowns[0])
            at_first = at_last
            step *= 2.0
        else:
            step *= 0.5
    return FollowedPath(
        start=start,
        end=end,
        cuts=tuple(cuts),
        unknowns=np.array(unknowns).reshape(len(unknowns), len(y)),
        last=at_first.boxes.unknowns[0],
        is_complete=cuts[-1] >= 1.0,
    )


def settled(problem: PoseProblem, b: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return unknowns (N, n) at poses (N, m) by Newton's method."""
    with np.errstate(all="ignore"):
        return newton(problem, b, y)[0]
