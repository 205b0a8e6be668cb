"""Boxes of a domain by exact dyadic fractions, and the tree of their divisions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.enclosure import Boxes
from tauloop.design.intervals.forms import ROUNDING

#: Largest number of divisions of one axis: fractions stay exact in floating point.
MAX_LEVEL = 48
#: Margin of a cylinder's surface, relative to its diameter: points nearer to it count as inside.
EDGE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A box of poses, or a cylinder whose diameters are ranges.

    Attributes:
        start: values of all axes (m,), for those that do not vary.
        varied: indices of the axes that vary (k,).
        lower, upper: their ranges (k,).
        round: columns of these axes whose ranges are diameters of a cylinder: with fractions f of the
            ranges, the sum of (f - 1/2)^2 over them is at most 1/4. Empty for a box.
    """

    start: np.ndarray
    varied: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    round: tuple[int, ...] = ()

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
        in_box = (inside >= self.lower).all() and (inside <= self.upper).all()
        fractions = (inside - self.lower) / (self.upper - self.lower)
        in_cylinder = not is_outside_cylinder(fractions[None], self.round)[0]
        return bool(in_box and in_cylinder and not others.any())

    def nearest(self, poses: np.ndarray) -> np.ndarray:
        """Return poses (N, m) moved into the domain."""
        b = poses.copy()
        columns = list(self.varied)
        fractions = np.clip((b[:, columns] - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        if self.round:
            chosen = list(self.round)
            away = fractions[:, chosen] - 0.5
            distance = np.linalg.norm(away, axis=1, keepdims=True)
            factor = np.minimum(0.5 * (1.0 - EDGE) / np.maximum(distance, 1e-300), 1.0)
            fractions[:, chosen] = 0.5 + factor * away
        inside = self.lower + (self.upper - self.lower) * fractions
        b[:, columns] = np.clip(inside, self.lower, self.upper)
        return b

    def is_outside(self, level: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return whether boxes have no pose of the domain (N,), by a small margin."""
        return is_outside_cylinder(nearest_point(level, index, self.round), self.round)

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


def nearest_point(level: np.ndarray, index: np.ndarray, round: tuple[int, ...]) -> np.ndarray:
    """Return the points (N, k) of boxes that are nearest to the axis of a cylinder, exactly.

    Along axes that are not round it is the middle.
    """
    point = (2 * index + 1) * 0.5 ** (level + 1)
    columns = list(round)
    lower, upper = index * 0.5**level, (index + 1) * 0.5**level
    point[:, columns] = np.clip(0.5, lower[:, columns], upper[:, columns])
    return np.asarray(point)


def is_outside_cylinder(points: np.ndarray, round: tuple[int, ...]) -> np.ndarray:
    """Return whether points (N, k) are outside a cylinder by a small margin (N,)."""
    away = points[:, list(round)] - 0.5
    return np.asarray((away**2).sum(axis=1) > 0.25 + EDGE)


def _is_outside_exactly(point: np.ndarray, round: tuple[int, ...]) -> bool:
    """Return whether a point (k,) is outside a cylinder, by exact fractions."""
    away = [Fraction(float(point[column])) - Fraction(1, 2) for column in round]
    return sum((value * value for value in away), Fraction(0)) > Fraction(1, 4)


def halves(
    level: np.ndarray, index: np.ndarray, axis: np.ndarray, round: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return levels (2 N, k) and indices of both halves of boxes, first all lower ones; and the cuts.

    Args:
        level, index: the boxes (N, k).
        axis: the axis that is halved (N,).
        round: columns of a cylinder.

    Returns:
        Levels, indices, and a point (N, k) of each common face as fractions: the nearest to the axis
        of the cylinder, else the middle.
    """
    rows = np.arange(len(level))
    point = nearest_point(level, index, round)
    point[rows, axis] = (2 * index[rows, axis] + 1) * 0.5 ** (level[rows, axis] + 1)
    child_level, lower = level.copy(), index.copy()
    child_level[rows, axis] += 1
    lower[rows, axis] *= 2
    upper = lower.copy()
    upper[rows, axis] += 1
    return np.concatenate([child_level, child_level]), np.concatenate([lower, upper]), point


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


def divisions(
    level: np.ndarray, index: np.ndarray, round: tuple[int, ...] = ()
) -> Divisions | None:
    """Return the divisions if boxes cover the whole domain without overlap, by whole numbers alone.

    A cell is covered if it is a box, or outside of the cylinder; else along some axis every box of it
    lies in one half, and both halves are covered. Boxes of a bisection have such an axis.

    Args:
        level, index: the boxes (N, k).
        round: columns of a cylinder; empty for a box.

    Returns:
        The divisions; None where the boxes do not cover the domain, or overlap. Faces without a point
        of the cylinder are left out: what is inside lies on one side of them.
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
        nearest = nearest_point(cell[None], place[None], round)[0]
        if len(members) == 0:
            if _is_outside_exactly(nearest, round):
                continue
            return None
        divided = np.flatnonzero((own > cell).all(axis=0))
        if len(divided) == 0:
            return None
        axis = int(divided[0])
        parts = _cell_halves(level, index, members, cell, place, axis)
        pending += parts
        point = nearest.copy()
        point[axis] = (2 * place[axis] + 1) * 0.5 ** (cell[axis] + 1)
        if _is_outside_exactly(point, round):
            continue
        holding = [_holding(level, index, part[0], point) for part in parts]
        if min(holding) < 0:
            return None
        lowers.append(holding[0])
        uppers.append(holding[1])
        points.append(point)
    return Divisions(
        points=np.array(points).reshape(len(points), k),
        lower=np.array(lowers, dtype=int),
        upper=np.array(uppers, dtype=int),
    )


_PlacedCell = tuple[np.ndarray, np.ndarray, np.ndarray]


def _cell_halves(
    level: np.ndarray,
    index: np.ndarray,
    members: np.ndarray,
    cell: np.ndarray,
    place: np.ndarray,
    axis: int,
) -> list[_PlacedCell]:
    """Return both halves of a cell along an axis: their boxes, level and place."""
    bit = (index[members, axis] >> (level[members, axis] - cell[axis] - 1)) & 1
    deeper = cell.copy()
    deeper[axis] += 1
    halves_of_cell = []
    for half in (0, 1):
        inner = place.copy()
        inner[axis] = 2 * place[axis] + half
        halves_of_cell.append((members[bit == half], deeper, inner))
    return halves_of_cell


def _holding(level: np.ndarray, index: np.ndarray, boxes: np.ndarray, point: np.ndarray) -> int:
    """Return the first of some boxes that contains a point; -1 for none."""
    width = 0.5 ** level[boxes]
    around = (index[boxes] * width <= point) & (point <= (index[boxes] + 1) * width)
    holding = boxes[around.all(axis=1)]
    return int(holding[0]) if len(holding) else -1


def covers(level: np.ndarray, index: np.ndarray, round: tuple[int, ...] = ()) -> bool:
    """Return whether boxes (N, k) cover the whole domain without overlap."""
    return divisions(level, index, round) is not None
