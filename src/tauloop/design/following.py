"""Assembly mode: unknowns that are followed without a gap along straight paths and across boxes.

A solution that is unique in an enclosure on one side and in another one on the other side, at a
common pose, is the same on both sides.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.enclosure import Boxes, Enclosure, closed_only, newton
from tauloop.design.problem import PoseProblem

#: Shortest piece of a path, as a fraction of it.
SHORTEST_PIECE = 2.0**-14


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedPath:
    """A straight path of poses along which the solution is followed.

    Attributes:
        start, end: poses (m,).
        cuts: fractions (n + 1,) between which it is unique; the first is 0.
        unknowns: at the middles of the pieces (n, n_y).
        last: unknowns at the end (n_y,).
        is_complete: whether the end is reached.
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
        path_start, path_end: its ends (m,).
        cuts: fractions (n + 1,).
        y: unknowns at the middles (n, n_y).
    """
    along = path_end - path_start
    middle, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
    return Boxes(
        middle=path_start + middle[:, None] * along,
        generators=(half[:, None] * along)[:, :, None] * (1.0 + 1e-14),
        unknowns=y,
        rounding=1e-15 * (np.abs(path_start) + np.abs(path_end)),
    )


def predicted(enclosure: Enclosure, which: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the first-order unknowns (N, n) of boxes (N,) at poses (N, m)."""
    S, boxes = enclosure.sensitivity[which], enclosure.boxes
    away = b - boxes.middle[which]
    return np.asarray(boxes.unknowns[which] + (S @ away[:, :, None])[:, :, 0])


def points(b: np.ndarray, y: np.ndarray) -> Boxes:
    """Return boxes without extent at poses (N, m), with start values of the unknowns (N, n)."""
    return Boxes(
        middle=b,
        generators=np.zeros((len(b), b.shape[1], 0)),
        unknowns=y,
        rounding=np.zeros(b.shape[1]),
    )


def is_within(enclosure: Enclosure, which: np.ndarray, point: Enclosure) -> np.ndarray:
    """Return whether the solution at points (N,) is that of boxes (N,), which contain the points."""
    b, y = point.boxes.middle, point.boxes.unknowns
    away = np.abs(y - predicted(enclosure, which, b)) + point.remainder
    inside = (away <= (1.0 - 1e-6) * enclosure.unique[which]).all(axis=1)
    return np.asarray(inside & point.closed & enclosure.closed[which])


def follow(problem: PoseProblem, start: np.ndarray, y: np.ndarray, end: np.ndarray) -> FollowedPath:
    """Follow a solution along a straight path.

    Args:
        problem: functions of the machine.
        start, end: poses (m,).
        y: unknowns at the start (n,).

    Returns:
        The pieces in which the solution is unique, as far as it is followed.
    """
    cuts, unknowns, step = [0.0], [], 1.0
    along = end - start
    here = closed_only(problem, points(start[None], y[None]))
    while cuts[-1] < 1.0 and step >= SHORTEST_PIECE and here.closed[0]:
        first, last = cuts[-1], min(cuts[-1] + step, 1.0)
        guess = predicted(
            here, np.zeros(1, dtype=int), (start + 0.5 * (first + last) * along)[None]
        )
        piece = closed_only(problem, pieces(start, end, np.array([first, last]), guess))
        at_end = (start + last * along)[None]
        zero = np.zeros(1, dtype=int)
        there = closed_only(problem, points(at_end, predicted(piece, zero, at_end)))
        if is_within(piece, zero, here)[0] and is_within(piece, zero, there)[0]:
            cuts.append(last)
            unknowns.append(piece.boxes.unknowns[0])
            here, step = there, 2.0 * step
        else:
            step *= 0.5
    return FollowedPath(
        start=start,
        end=end,
        cuts=tuple(cuts),
        unknowns=np.array(unknowns).reshape(len(unknowns), len(y)),
        last=here.boxes.unknowns[0],
        is_complete=cuts[-1] >= 1.0,
    )


def settled(problem: PoseProblem, b: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return unknowns (N, n) at poses (N, m) by Newton's method."""
    with np.errstate(all="ignore"):
        return newton(problem, b, y)[0]
