"""Outputs of a machine: quantities of a pose that its file defines, such as a camber angle.

The operands of an output's expression include `Measured` numbers: coordinates, and distances,
angles and components of points and directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import ANGLE, LENGTH, ONE, Dimension
from tauloop.mechanism.expression import Call, Expression, Measured
from tauloop.mechanism.placement import AxisName, Placement


@dataclass(frozen=True, slots=True)
class Point:
    """The origin of a frame on a body."""

    placement: Placement


@dataclass(frozen=True, slots=True)
class FrameAxis:
    """The direction of an axis of a frame on a body.

    Attributes:
        placement: the frame.
        axis: letter of the axis.
        sign: -1 for the opposite direction.
    """

    placement: Placement
    axis: AxisName
    sign: float = 1.0


@dataclass(frozen=True, slots=True)
class PointDirection:
    """The unit vector from one point to another."""

    start: Point
    end: Point


Direction = FrameAxis | PointDirection


@dataclass(frozen=True, slots=True)
class CoordinateValue(Measured):
    """A coordinate of a joint, or the length of a telescopic rod.

    Attributes:
        name: full name of the coordinate.
        is_angular: whether it is an angle (rad); otherwise it is a length (m).
    """

    name: str
    is_angular: bool

    @property
    def dimension(self) -> Dimension:
        """The dimension of the value."""
        return ANGLE if self.is_angular else LENGTH


@dataclass(frozen=True, slots=True)
class PointDistance(Measured):
    """The distance between two points, m."""

    first: Point
    second: Point

    @property
    def dimension(self) -> Dimension:
        """The dimension of the value."""
        return LENGTH


@dataclass(frozen=True, slots=True)
class Component(Measured):
    """A coordinate of a point (m), or a component of a direction.

    Attributes:
        axis: letter of the axis.
        of: the point or direction.
        frame: frame of reference (axes, and for a point also the origin); None for the base.
    """

    axis: AxisName
    of: Point | Direction
    frame: Placement | None = None

    @property
    def dimension(self) -> Dimension:
        """The dimension of the value."""
        return LENGTH if isinstance(self.of, Point) else ONE


@dataclass(frozen=True, slots=True)
class Angle(Measured):
    """The angle between two directions, rad.

    Attributes:
        first, second: the directions.
        about: if given, the angle is that of the rotation about this direction from the projection
            of `first` to that of `second`, in (-pi, pi]; otherwise it is in [0, pi].
    """

    first: Direction
    second: Direction
    about: Direction | None = None

    @property
    def dimension(self) -> Dimension:
        """The dimension of the value."""
        return ANGLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A quantity of a pose.

    Attributes:
        name: unique name.
        expression: its value as an expression of parameters and `Measured` numbers, SI.
        dimension: physical dimension of the value.
        note: a remark.
    """

    name: str
    expression: Expression
    dimension: Dimension
    note: str = ""

    @property
    def unit(self) -> str:
        """The SI unit of the value; 1 for a plain number."""
        return str(self.dimension) or "1"

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates that it depends on directly."""
        return tuple(
            item.name for item in parts_of(self.expression) if isinstance(item, CoordinateValue)
        )

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All frames that it depends on, each once."""
        parts = parts_of(self.expression)
        return tuple(dict.fromkeys(item for item in parts if isinstance(item, Placement)))


def parts_of(item: Any) -> Iterator[Any]:
    """Yield the operands of an expression of an output: measured numbers, and their frames."""
    if isinstance(item, Call):
        for argument in item.arguments:
            yield from parts_of(argument)
        return
    yield item
    if isinstance(item, Measured | Point | FrameAxis | PointDirection):
        for field in fields(item):
            yield from parts_of(getattr(item, field.name))
