"""Boxes of a domain by exact dyadic fractions, and the tree of their divisions."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.enclosure import Boxes
from tauloop.design.intervals.forms import ROUNDING

#: Largest number of divisions of one axis: fractions stay exact in floating point.
MAX_LEVEL = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A box of poses.

    Attributes:
        start: values of all axes (m,), for those that do not vary.
        varied: indices of the axes that vary (k,).
        lower, upper: their ranges (k,).
    """

    start: np.ndarray
    varied: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray

    @property
    def rounding(self) -> np.ndarray:
        """Largest error of a pose that is computed from fractions (m,)."""
        error = np.zeros(len(self.start))
        error[list(self.varied)] = ROUNDING * (np.abs(self.lower) + np.abs(self.upper))
        return error

    @property
    def center(self) -> np.ndarray:
        """The middle of the domain (m,)."""
        return self.poses(np.full((1, len(self.varied)), 0.5))[0]

    def poses(self, fractions: np.ndarray) -> np.ndarray:
        """Return poses (N, m) at fractions (N, k) of the ranges."""
        b = np.tile(self.start, (len(fractions), 1))
        b[:, list(self.varied)] = self.lower + (self.upper - self.lower) * fractions
        return b

    def contains(self, pose: np.ndarray) -> bool:
        """Return whether a pose (m,) is in the domain."""
        inside = pose[list(self.varied)]
        others = np.delete(pose - self.start, list(self.varied))
        return bool(
            (inside >= self.lower).all() and (inside <= self.upper).all() and not others.any()
        )

    def boxes(self, level: np.ndarray, index: np.ndarray, unknowns: np.ndarray) -> Boxes:
        """Return boxes from their dyadic fractions.

        Along each axis a box extends from index / 2^level to (index + 1) / 2^level of the range.

        Args:
            level, index: whole numbers (N, k).
            unknowns: start values (N, n).
        """
        half = 0.5 ** (level + 1)
        generators = np.zeros((len(level), len(self.start), len(self.varied)))
        widths = (self.upper - self.lower) * half * (1.0 + 4.0 * ROUNDING)
        for k, axis in enumerate(self.varied):
            generators[:, axis, k] = widths[:, k]
        return Boxes(
            middle=self.poses((2 * index + 1) * half),
            generators=generators,
            unknowns=unknowns,
            rounding=self.rounding,
        )


def halves(
    level: np.ndarray, index: np.ndarray, axis: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return levels (2 N, k) and indices of both halves of boxes, first all lower ones; and the cuts.

    Args:
        level, index: the boxes (N, k).
        axis: the axis that is halved (N,).

    Returns:
        Levels, indices, and the middles (N, k) of the common faces as fractions.
    """
    rows = np.arange(len(level))
    middle = (2 * index + 1) * 0.5 ** (level + 1)
    child_level, lower = level.copy(), index.copy()
    child_level[rows, axis] += 1
    lower[rows, axis] *= 2
    upper = lower.copy()
    upper[rows, axis] += 1
    return np.concatenate([child_level, child_level]), np.concatenate([lower, upper]), middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisions:
    """Divisions of a domain into boxes, each with a point of the common face.

    Attributes:
        points: middles of the faces (n, k), exact fractions of the ranges.
        lower, upper: boxes (n,) that contain the point, one on each side.
    """

    points: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def divisions(level: np.ndarray, index: np.ndarray) -> Divisions | None:
    """Return the divisions if boxes cover the whole domain without overlap, by whole numbers alone.

    A cell is covered if it is a box; else along some axis every box of it lies in one half, and both
    halves are covered. Boxes of a bisection have such an axis.

    Args:
        level, index: the boxes (N, k).

    Returns:
        The divisions; None where the boxes do not cover the domain, or overlap.
    """
    k = level.shape[1]
    if ((level < 0) | (level > MAX_LEVEL) | (index < 0)).any() or (index >> level).any():
        return None
    points: list[np.ndarray] = []
    lowers: list[int] = []
    uppers: list[int] = []
    zero = np.zeros(k, dtype=np.int64)
    pending = [(np.arange(len(level)), zero, zero)]
    while pending:
        members, cell, place = pending.pop()
        own = level[members]
        if len(members) == 1 and (own[0] == cell).all():
            continue
        divided = np.flatnonzero((own > cell).all(axis=0))
        if len(members) == 0 or len(divided) == 0:
            return None
        axis = int(divided[0])
        bit = (index[members, axis] >> (own[:, axis] - cell[axis] - 1)) & 1
        point = (2 * place + 1) * 0.5 ** (cell + 1)
        deeper, above = cell.copy(), 2 * place[axis] + np.array([0, 1])
        deeper[axis] += 1
        for half, boxes in ((0, lowers), (1, uppers)):
            part = members[bit == half]
            inner = place.copy()
            inner[axis] = above[half]
            pending.append((part, deeper, inner))
            width = 0.5 ** level[part]
            around = (index[part] * width <= point) & (point <= (index[part] + 1) * width)
            holding = part[around.all(axis=1)]
            if len(holding) == 0:
                return None
            boxes.append(int(holding[0]))
        points.append(point)
    n = len(points)
    return Divisions(
        points=np.array(points).reshape(n, k),
        lower=np.array(lowers, dtype=int),
        upper=np.array(uppers, dtype=int),
    )


def covers(level: np.ndarray, index: np.ndarray) -> bool:
    """Return whether boxes (N, k) cover the whole domain without overlap."""
    return divisions(level, index) is not None
