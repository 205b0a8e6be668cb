"""Boxes of a domain with exact dyadic fractions, and the tree of their divisions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.enclosure import Boxes
from tauloop.design.intervals.forms import ROUNDING

#: Maximum number of divisions of an axis for which fractions are exact in floating point.
MAX_LEVEL = 48
#: Margin of a cylinder's surface in the squared fractions; points within the margin count as
#: inside.
SURFACE_MARGIN = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A box of poses, or a cylinder whose diameters are ranges.

    Attributes:
        start: values of all axes (m,); they apply to the axes that do not vary.
        varied: indices of the axes that vary (k,).
        lower, upper: ranges of the axes that vary (k,).
        round: indices, among the axes that vary, of those whose ranges are diameters of a cylinder.
            With fractions f of the ranges, the sum of (f - 1/2)^2 over them is at most 1/4. Empty
            for a box.
    """

    start: np.ndarray
    varied: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    round: tuple[int, ...] = ()

    @property
    def rounding(self) -> np.ndarray:
        """Largest rounding errors (m,) of a pose that is computed from fractions of the ranges."""
        error = np.zeros(len(self.start))
        error[list(self.varied)] = ROUNDING * (np.abs(self.lower) + np.abs(self.upper))
        return error

    @property
    def center(self) -> np.ndarray:
        """Pose at the center of the domain (m,)."""
        return self.poses(np.full((1, len(self.varied)), 0.5))[0]

    def poses(self, fractions: np.ndarray) -> np.ndarray:
        """Return poses (N, m) at fractions (N, k) of the ranges."""
        b = np.tile(self.start, (len(fractions), 1))
        b[:, list(self.varied)] = self.lower + (self.upper - self.lower) * fractions
        return b

    def contains(self, pose: np.ndarray) -> bool:
        """Return whether a pose (m,) is in the domain."""
        varied = pose[list(self.varied)]
        deviations = np.delete(pose - self.start, list(self.varied))
        in_box = (varied >= self.lower).all() and (varied <= self.upper).all()
        fractions = (varied - self.lower) / (self.upper - self.lower)
        in_cylinder = not is_outside_cylinder(fractions[None], self.round)[0]
        return bool(in_box and in_cylinder and not deviations.any())

    def nearest(self, poses: np.ndarray) -> np.ndarray:
        """Return the nearest poses (N, m) in the domain; other poses move onto its surface."""
        b = poses.copy()
        columns = list(self.varied)
        fractions = np.clip((b[:, columns] - self.lower) / (self.upper - self.lower), 0.0, 1.0)
        if self.round:
            chosen = list(self.round)
            offset = fractions[:, chosen] - 0.5
            distance = np.linalg.norm(offset, axis=1, keepdims=True)
            factor = np.minimum(0.5 * (1.0 - SURFACE_MARGIN) / np.maximum(distance, 1e-300), 1.0)
            fractions[:, chosen] = 0.5 + factor * offset
        nearest = self.lower + (self.upper - self.lower) * fractions
        b[:, columns] = np.clip(nearest, self.lower, self.upper)
        return b

    def is_outside(self, level: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return whether each box (N,) is outside the domain by a small margin."""
        return is_outside_cylinder(nearest_point(level, index, self.round), self.round)

    def boxes(self, level: np.ndarray, index: np.ndarray, unknowns: np.ndarray) -> Boxes:
        """Return boxes from their dyadic fractions.

        Along each axis a box extends from index / 2^level to (index + 1) / 2^level of the range.

        Args:
            level, index: integers (N, k).
            unknowns: start values (N, n) of the unknowns.
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

    Along the other axes the point is at the center of the box.
    """
    point = (2 * index + 1) * 0.5 ** (level + 1)
    columns = list(round)
    lower, upper = index * 0.5**level, (index + 1) * 0.5**level
    point[:, columns] = np.clip(0.5, lower[:, columns], upper[:, columns])
    return np.asarray(point)


def is_outside_cylinder(points: np.ndarray, round: tuple[int, ...]) -> np.ndarray:
    """Return whether points (N, k) are outside a cylinder by a small margin (N,)."""
    offset = points[:, list(round)] - 0.5
    return np.asarray((offset**2).sum(axis=1) > 0.25 + SURFACE_MARGIN)


def _is_outside_exactly(point: np.ndarray, round: tuple[int, ...]) -> bool:
    """Return whether a point (k,) is outside a cylinder, in exact arithmetic."""
    offset = [Fraction(float(point[column])) - Fraction(1, 2) for column in round]
    return sum((value * value for value in offset), Fraction(0)) > Fraction(1, 4)


def halves(
    level: np.ndarray, index: np.ndarray, axis: np.ndarray, round: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both halves of boxes, and a point of each common face.

    Args:
        level, index: the boxes (N, k).
        axis: index of the axis that is halved (N,).
        round: columns of a cylinder; see `Domain`.

    Returns:
        Levels and indices (2 N, k) of the halves, first all lower halves, and a point (N, k) of
        each common face as fractions: the point nearest to the axis of the cylinder, and the center
        along the other axes.
    """
    rows = np.arange(len(level))
    point = nearest_point(level, index, round)
    point[rows, axis] = (2 * index[rows, axis] + 1) * 0.5 ** (level[rows, axis] + 1)
    child_level = level.copy()
    lower = index.copy()
    child_level[rows, axis] += 1
    lower[rows, axis] *= 2
    upper = lower.copy()
    upper[rows, axis] += 1
    return np.concatenate([child_level, child_level]), np.concatenate([lower, upper]), point


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisions:
    """Divisions of a domain into boxes, each with a point of the common face.

    Attributes:
        points: points (n, k) of the faces, as exact fractions of the ranges.
        lower, upper: indices (n,) of the boxes on both sides that contain the point.
    """

    points: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def divisions(
    level: np.ndarray, index: np.ndarray, round: tuple[int, ...] = ()
) -> Divisions | None:
    """Return the divisions if boxes cover the domain without overlap, by integer arithmetic.

    A cell is a dyadic part of the domain. It is covered if it is a box, or outside the cylinder.
    Otherwise there must be an axis along which each box in the cell lies in one half of the cell,
    and both halves must be covered. Boxes from bisections have such an axis.

    Args:
        level, index: the boxes (N, k).
        round: columns of a cylinder; see `Domain`. Empty for a box.

    Returns:
        The divisions; None if the boxes do not cover the domain, or overlap. Faces outside the
        cylinder are omitted, because the domain is then on one side of them.
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
        boxes, cell_level, cell_index = pending.pop()
        levels = level[boxes]
        if len(boxes) == 1 and (levels[0] == cell_level).all():
            continue
        nearest = nearest_point(cell_level[None], cell_index[None], round)[0]
        if len(boxes) == 0:
            if _is_outside_exactly(nearest, round):
                continue
            return None
        divided = np.flatnonzero((levels > cell_level).all(axis=0))
        if len(divided) == 0:
            return None
        axis = int(divided[0])
        cell_halves = _cell_halves(level, index, (boxes, cell_level, cell_index), axis)
        pending += cell_halves
        point = nearest.copy()
        point[axis] = (2 * cell_index[axis] + 1) * 0.5 ** (cell_level[axis] + 1)
        if _is_outside_exactly(point, round):
            continue
        lower, upper = (_box_with_point(level, index, half[0], point) for half in cell_halves)
        if min(lower, upper) < 0:
            return None
        lowers.append(lower)
        uppers.append(upper)
        points.append(point)
    return Divisions(
        points=np.array(points).reshape(len(points), k),
        lower=np.array(lowers, dtype=int),
        upper=np.array(uppers, dtype=int),
    )


#: A cell: indices of its boxes, and its level and index (k,) along each axis.
_DyadicCell = tuple[np.ndarray, np.ndarray, np.ndarray]


def _cell_halves(
    level: np.ndarray, index: np.ndarray, cell: _DyadicCell, axis: int
) -> list[_DyadicCell]:
    """Return both halves of a cell along an axis."""
    boxes, cell_level, cell_index = cell
    bit = (index[boxes, axis] >> (level[boxes, axis] - cell_level[axis] - 1)) & 1
    half_level = cell_level.copy()
    half_level[axis] += 1
    halves_of_cell = []
    for half in (0, 1):
        half_index = cell_index.copy()
        half_index[axis] = 2 * cell_index[axis] + half
        halves_of_cell.append((boxes[bit == half], half_level, half_index))
    return halves_of_cell


def _box_with_point(
    level: np.ndarray, index: np.ndarray, boxes: np.ndarray, point: np.ndarray
) -> int:
    """Return the first of some boxes that contains a point; -1 if there is none."""
    width = 0.5 ** level[boxes]
    is_inside = (index[boxes] * width <= point) & (point <= (index[boxes] + 1) * width)
    containing = boxes[is_inside.all(axis=1)]
    return int(containing[0]) if len(containing) else -1


def covers(level: np.ndarray, index: np.ndarray, round: tuple[int, ...] = ()) -> bool:
    """Return whether boxes (N, k) cover the domain without overlap."""
    return divisions(level, index, round) is not None
