"""Frames that are fixed to bodies."""

from __future__ import annotations

from typing import Literal

from tauloop.common.records import dataclass
from tauloop.mechanism.expression import ZERO, Expression

AxisName = Literal["x", "y", "z"]
Vector = tuple[Expression, Expression, Expression]
ZERO_VECTOR: Vector = (ZERO, ZERO, ZERO)


@dataclass(frozen=True, slots=True)
class Turn:
    """A rotation by an angle about one axis of the frame that the previous rotations produced."""

    axis: AxisName
    angle: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A frame fixed to a body: its origin in body coordinates, and successive rotations."""

    body: str
    position: Vector = ZERO_VECTOR
    turns: tuple[Turn, ...] = ()
