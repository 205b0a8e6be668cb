"""Paths: curves in any number of coordinates with two derivatives in a parameter from 0 to 1.

A path contains only numbers. `tauloop.motion.strokes.stroke` assigns them to coordinates of a
machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.names.deprecated import old_attribute, renew_overrides
from tauloop.common.options import NamedFields
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.limits import UNIT_NORM
from tauloop.equations.ports import numbers
from tauloop.mechanism.poses import quaternion_rotation, rotation_vector

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

#: Number of sample points that bracket the extrema of a path before they are refined.
SHAPE_POINTS = 257
#: Distance, relative to the extent of a path, below which points coincide.
SAME_POINT = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve(NamedFields, ReprMixin):
    """Points of a path at parameters u (N,).

    Attributes:
        position: positions (N, n), in the units of the coordinates.
        derivative: first derivatives d/du (N, n).
        second_derivative: second derivatives d2/du2 (N, n).
    """

    position: np.ndarray
    derivative: np.ndarray
    second_derivative: np.ndarray

    first = old_attribute("first", "derivative")
    second = old_attribute("second", "second_derivative")


class Path(ReprMixin, ABC):
    """A curve over u in [0, 1]."""

    looks = old_attribute("looks", "n_shape_points")

    def __init_subclass__(cls) -> None:
        """Accept the old names in derived classes, with a warning."""
        renew_overrides(cls)

    @property
    def size(self) -> int:
        """Number of coordinates n."""
        return int(self.at(np.zeros(1)).position.shape[1])

    @abstractmethod
    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """Parameters inside (0, 1) at which the second derivative jumps."""
        return ()

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters inside (0, 1) at which the second derivative jumps or has a kink."""
        return self.breaks

    @property
    def n_shape_points(self) -> int:
        """Number of evenly spaced points that resolve the path's shape."""
        return SHAPE_POINTS


def point(value: object, where: str, problems: Problems, size: int | None = None) -> np.ndarray:
    """Return a row of numbers (n,). Faults are added to `problems`."""
    array = numbers(value, where)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        problems.add(where, "is not a row of finite numbers", "give one number per coordinate")
    elif size is not None and len(array) != size:
        problems.add(
            where,
            f"has {counted(len(array), 'number')}, the first point {size}",
            "give one number per coordinate",
        )
    return array


@dataclass(frozen=True, slots=True)
class Line(Path):
    """A straight line: p(u) = start + u (end - start)."""

    start: np.ndarray
    end: np.ndarray

    def __post_init__(self) -> None:
        """Check the points.

        Raises:
            InputError: the points are not rows of finite numbers of equal length, or they are
                equal.
        """
        problems = Problems()
        start = point(self.start, "start", problems)
        end = point(self.end, "end", problems, start.size)
        if not problems and np.array_equal(start, end):
            problems.add(
                "end", "equals the start: the path has no length", "move one of the points"
            )
        InputError.raise_if_any(problems)
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "end", end)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        chord = self.end - self.start
        zero = np.zeros((len(u), len(chord)))
        return Curve(
            position=self.start + u[:, None] * chord,
            derivative=zero + chord,
            second_derivative=zero,
        )


@dataclass(frozen=True, slots=True)
class Ellipse(NamedFields, Path):
    """An arc of an ellipse: p(u) = center + a cos(angle) + b sin(angle).

    The angle is linear in u.

    Attributes:
        center: center (n,).
        semi_axis_a, semi_axis_b: vectors a and b from the center to the ellipse (n,). If they are not
            perpendicular (conjugate half diameters), the ellipse is sheared.
        start, end: angles at u = 0 and u = 1, rad.
    """

    center: np.ndarray
    semi_axis_a: np.ndarray
    semi_axis_b: np.ndarray
    start: float = 0.0
    end: float = 2 * np.pi

    first = old_attribute("first", "semi_axis_a")
    second = old_attribute("second", "semi_axis_b")

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            InputError: the arguments are not rows of finite numbers of equal length, both semi-axes
                are zero, or the arc is empty.
        """
        problems = Problems()
        center = point(self.center, "center", problems)
        a = point(self.semi_axis_a, "semi_axis_a", problems, center.size)
        b = point(self.semi_axis_b, "semi_axis_b", problems, center.size)
        if not problems and not (a.any() or b.any()):
            problems.add("semi_axis_a", "both semi-axes are zero", "give at least one semi-axis")
        if not (np.isfinite(self.start) and np.isfinite(self.end)) or self.start == self.end:
            problems.add(
                "end", f"goes from {self.start:g} to {self.end:g} rad", "give two different angles"
            )
        InputError.raise_if_any(problems)
        for name, value in (("center", center), ("semi_axis_a", a), ("semi_axis_b", b)):
            object.__setattr__(self, name, value)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        span = self.end - self.start
        angle = (self.start + u * span)[:, None]
        a, b = self.semi_axis_a, self.semi_axis_b
        radius = a * np.cos(angle) + b * np.sin(angle)
        tangent = b * np.cos(angle) - a * np.sin(angle)
        return Curve(
            position=self.center + radius,
            derivative=span * tangent,
            second_derivative=-(span**2) * radius,
        )


def sheared_ellipse(
    center: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    shear: float,
    start: float = 0.0,
    end: float = 2 * np.pi,
) -> Ellipse:
    """Return an ellipse with semi-axes `first` and `second`, sheared along `first`.

    The semi-axis `second` is replaced by second + shear first.

    Raises:
        InputError: see `Ellipse`.
    """
    first, second = numbers(first, "first"), numbers(second, "second")
    return Ellipse(center, first, second + shear * first, start, end)


@dataclass(frozen=True, slots=True)
class SampledPath(Path):
    """A cubic spline through points, with the chord length as parameter.

    Its second derivatives are continuous.

    Attributes:
        points: points (K, n), at least two, with consecutive points distinct. If the first and the
            last point are equal, the spline is periodic.
    """

    points: np.ndarray
    spline: CubicSpline = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Fit the spline.

        Raises:
            InputError: there are too few points, a number is not finite, or consecutive points
                coincide.
        """
        points = numbers(self.points, "points")
        if (
            points.ndim != 2
            or len(points) < 2
            or not points.shape[1]
            or not np.isfinite(points).all()
        ):
            what = f"need at least two rows of finite numbers, got shape {points.shape}"
            raise InputError.of(
                "points", what, "give one row per point and one column per coordinate"
            )
        chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
        same = np.flatnonzero(chords <= SAME_POINT * np.abs(np.ptp(points, axis=0)).max())
        if len(same):
            raise InputError(
                Problem(
                    where=f"points[{i + 1}]",
                    what=f"coincides with the previous point, {points[i]}",
                    remedy="leave it out",
                )
                for i in same
            )
        from scipy.interpolate import CubicSpline  # SciPy is an optional dependency

        knots = np.concatenate([[0.0], np.cumsum(chords) / chords.sum()])
        knots[-1] = 1.0
        closed = len(points) > 2 and np.array_equal(points[0], points[-1])
        object.__setattr__(self, "points", points)
        object.__setattr__(
            self,
            "spline",
            CubicSpline(knots, points, bc_type="periodic" if closed else "not-a-knot"),
        )

    @property
    def kinks(self) -> tuple[float, ...]:
        """Parameters of the points between the first and the last."""
        return tuple(self.spline.x[1:-1].tolist())

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        return Curve(
            position=self.spline(u),
            derivative=self.spline(u, 1),
            second_derivative=self.spline(u, 2),
        )


@dataclass(frozen=True, slots=True)
class AxisTurn(Path):
    """A rotation about a fixed axis: unit quaternions q(u) = exp(u rotation / 2) start, w first.

    This is the spherical interpolation (slerp) from the start to exp(rotation / 2) start.

    Attributes:
        start: unit quaternion (4,) at u = 0.
        rotation: rotation vector (3,) from u = 0 to u = 1 in the base frame, rad; it may exceed a
            full revolution.
    """

    start: np.ndarray
    rotation: np.ndarray

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            InputError: the arguments are not four and three finite numbers, or the quaternion does
                not have unit length.
        """
        problems = Problems()
        start, rotation = (
            point(self.start, "start", problems),
            point(self.rotation, "rotation", problems),
        )
        if not problems and (start.size, rotation.size) != (4, 3):
            what = f"has {start.size} numbers and the rotation {rotation.size}, not 4 and 3"
            problems.add("start", what, "give a quaternion w, x, y, z and a rotation vector")
        if not problems and abs(np.linalg.norm(start) - 1) > UNIT_NORM:
            what = f"has the norm {np.linalg.norm(start):.9g}, not 1"
            problems.add("start", what, "give a unit quaternion w, x, y, z")
        InputError.raise_if_any(problems)
        object.__setattr__(self, "start", start / np.linalg.norm(start))
        object.__setattr__(self, "rotation", rotation)

    def at(self, u: np.ndarray) -> Curve:
        """Return the quaternions at parameters u (N,)."""
        angle = float(np.linalg.norm(self.rotation))
        axis = self.rotation / angle if angle else self.rotation
        half = (0.5 * angle * u)[:, None]
        turned = quaternion_product(np.concatenate([[0.0], axis]), self.start)
        position = self.start * np.cos(half) + turned * np.sin(half)
        first = 0.5 * angle * (turned * np.cos(half) - self.start * np.sin(half))
        return Curve(
            position=position, derivative=first, second_derivative=-((0.5 * angle) ** 2) * position
        )


def turn_between(start: Sequence[float], end: Sequence[float]) -> AxisTurn:
    """Return the shorter rotation between two orientations (unit quaternions w, x, y, z).

    Raises:
        InputError: a quaternion does not have unit length.
    """
    for where, norm in (("start", np.linalg.norm(start)), ("end", np.linalg.norm(end))):
        if abs(norm - 1) > UNIT_NORM:
            raise InputError.of(
                where, f"has the norm {norm:.9g}, not 1", "give a unit quaternion w, x, y, z"
            )
    still = [AxisTurn(np.asarray(q, dtype=float), np.zeros(3)).start for q in (start, end)]
    start_rotation, end_rotation = (quaternion_rotation(q) for q in still)
    return AxisTurn(still[0], rotation_vector(end_rotation @ start_rotation.T))


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return Hamilton's product a b of quaternions (..., 4), w first."""
    w = a[..., :1] * b[..., :1] - (a[..., 1:] * b[..., 1:]).sum(axis=-1, keepdims=True)
    return np.concatenate(
        [w, a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + np.cross(a[..., 1:], b[..., 1:])],
        -1,
    )


@dataclass(frozen=True, slots=True)
class CombinedPath(Path):
    """Combined paths with concatenated coordinates, such as a line and a rotation."""

    parts: tuple[Path, ...]

    @property
    def breaks(self) -> tuple[float, ...]:
        """Breaks of all parts."""
        return tuple(sorted({u for part in self.parts for u in part.breaks}))

    @property
    def kinks(self) -> tuple[float, ...]:
        """Kinks of all parts."""
        return tuple(sorted({u for part in self.parts for u in part.kinks}))

    @property
    def n_shape_points(self) -> int:
        """Maximum number of points that a part needs."""
        return max(part.n_shape_points for part in self.parts)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        curves = [part.at(u) for part in self.parts]
        return Curve(
            position=np.concatenate([curve.position for curve in curves], axis=1),
            derivative=np.concatenate([curve.derivative for curve in curves], axis=1),
            second_derivative=np.concatenate([curve.second_derivative for curve in curves], axis=1),
        )
