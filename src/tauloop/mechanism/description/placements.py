"""Placements of a machine file: frames on bodies or other frames, converted to frames on bodies.

Rotations are applied to vectors of expressions. Exact zeros and right angles are simplified, so
that sparse geometry remains sparse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.parser import is_too_large
from tauloop.mechanism.description.structure import Names
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import (
    ZERO,
    Constant,
    Expression,
    add,
    chain,
    cosine,
    multiply,
    negate,
    ordered,
    sine,
    subtract,
    triple,
)
from tauloop.mechanism.model import ZERO_VECTOR, AxisName, Placement, Turn, Vector

#: Components of a unit vector up to this size count as zero.
_UNIT_VECTOR_TOLERANCE = 1e-15


Angle = TypeVar("Angle")


def rotated(turns: Sequence[Turn], vector: Vector) -> Vector:
    """Return a vector of the rotated frame in the original frame: R_1 R_2 ... r."""
    components = list(vector)
    for turn in reversed(turns):
        i = "xyz".index(turn.axis)
        j, k = (i + 1) % 3, (i + 2) % 3
        c, s = cosine(turn.angle), sine(turn.angle)
        components[j], components[k] = (
            subtract(_times(c, components[j]), _times(s, components[k])),
            add(_times(s, components[j]), _times(c, components[k])),
        )
    return triple(components)


def _times(factor: Expression, component: Expression) -> Expression:
    return negate(component) if factor == Constant(-1.0) else multiply(factor, component)


def quaternion(turns: Sequence[tuple[AxisName, float]]) -> tuple[float, float, float, float]:
    """Return the unit quaternion (w, x, y, z) of successive rotations: (axis, angle in rad)."""
    w, v = 1.0, np.zeros(3)
    for axis, angle in turns:
        c, u = math.cos(angle / 2), math.sin(angle / 2) * np.eye(3)["xyz".index(axis)]
        w, v = w * c - float(v @ u), w * u + c * v + np.cross(v, u)
    return w, float(v[0]), float(v[1]), float(v[2])


def _turn(axis: AxisName, angle: float) -> tuple[Turn, ...]:
    return (Turn(axis, Constant(angle)),) if angle else ()


def turns_to_axis(direction: Sequence[float]) -> tuple[AxisName, tuple[Turn, ...]]:
    """Return an axis letter and constant rotations that rotate this axis to a direction.

    Args:
        direction: unit vector (3,).

    Returns:
        For a positive axis direction, its letter without rotations. For a negative axis direction,
        its letter and a rotation by 180 deg about another axis. Otherwise z, with rotations about z
        and y.
    """
    letters: tuple[AxisName, ...] = ("x", "y", "z")
    components = [
        0.0 if abs(component) < _UNIT_VECTOR_TOLERANCE else float(component)
        for component in direction
    ]
    for i, letter in enumerate(letters):
        if components[(i + 1) % 3] == components[(i + 2) % 3] == 0.0:
            return letter, () if components[i] > 0 else _turn(letters[(i + 1) % 3], math.pi)
    # the cosine alone does not determine small angles accurately
    return "z", _turn("z", math.atan2(components[1], components[0])) + _turn(
        "y", math.atan2(math.hypot(components[0], components[1]), components[2])
    )


def turns_to_axes(first: Sequence[float], second: Sequence[float]) -> tuple[Turn, ...]:
    """Return rotations (about z, y, x) that rotate the x and y axes to two unit vectors."""
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    R = np.column_stack([x, y, np.cross(x, y)])
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) > _UNIT_VECTOR_TOLERANCE:
        yaw, roll = math.atan2(R[1, 0], R[0, 0]), math.atan2(R[2, 1], R[2, 2])
    else:
        yaw, roll = math.atan2(-R[0, 1], R[1, 1]), 0.0
    return _turn("z", yaw) + _turn("y", pitch) + _turn("x", roll)


_AXES: tuple[AxisName, ...] = ("x", "y", "z")


def placed(outer: Placement, position: Vector, turns: tuple[Turn, ...]) -> Placement:
    """Return a frame given in `outer` as a frame on the body of `outer`: p = p_1 + R_1 p_2."""
    shifted = triple(
        add(a, b) for a, b in zip(outer.position, rotated(outer.turns, position), strict=True)
    )
    return Placement(body=outer.body, position=shifted, turns=(*outer.turns, *turns))


@dataclass(slots=True)
class Placements:
    """Reader of placements; the named frames are available after `define`."""

    values: ValueReader
    names: Names
    _frames: dict[str, Placement | None] = field(default_factory=dict)

    def define(self, frames: dict[str, Cursor]) -> None:
        """Determine all named frames, each after the frame to which it refers; report cycles."""

        def required_frames(cursor: Cursor) -> list[str]:
            word = cursor.word("on") or ""
            return [name for name in (cursor.prefix + word, word) if name in frames][:1]

        def report_cycle(cycle: list[str]) -> None:
            frames[cycle[0]].problem(
                f"the frames depend on each other in a cycle: {chain(cycle)}",
                "put one of them on a body",
            )
            self._frames.update(dict.fromkeys(cycle))

        for name in ordered(
            {name: required_frames(cursor) for name, cursor in frames.items()}, report_cycle
        ):
            if name not in self._frames:
                self._frames[name] = self._frame_of_mapping(frames[name])

    @property
    def frames(self) -> Mapping[str, Placement | None]:
        """Named frames by name; None for invalid ones."""
        return self._frames

    def read(self, cursor: Cursor | None) -> Placement | None:
        """Return the placement at a cursor, or None after adding a problem.

        The node is the name of a body or frame, or a mapping.
        """
        if cursor is None:
            return None
        return self._named(cursor) if cursor.text is not None else self._frame_of_mapping(cursor)

    def _named(self, cursor: Cursor) -> Placement | None:
        return self.named(cursor.text or "", cursor)

    def named(self, word: str, cursor: Cursor) -> Placement | None:
        """Return the body or frame with a name as a placement, or None after adding a problem.

        Args:
            word: the name as written.
            cursor: cursor of the name.
        """
        name = self.names.find_word(word, cursor, ("body", "frame"))
        if name is None:
            return None
        return self._frames.get(name) if self.names.kind(name) == "frame" else Placement(body=name)

    def _frame_of_mapping(self, cursor: Cursor) -> Placement | None:
        on = cursor.get("on")
        outer = self._named(on) if on is not None else None
        local = self.local(cursor)
        if outer is None or local is None:
            return None
        placement = placed(outer, *local)
        if len(placement.turns) > 100 or any(
            is_too_large(component) for component in placement.position
        ):
            cursor.problem("too many nested rotations", "place the frame directly on its body")
            return None
        if not all(
            math.isfinite(self.values.nominal(component)) for component in placement.position
        ):
            cursor.problem("the position is not finite", "check the exponents of its numbers")
            return None
        return placement

    def on(self, body: str, cursor: Cursor | None) -> Placement:
        """Return the frame on a body from `at` and `turn`; the body's frame if they are invalid."""
        local = self.local(cursor) if cursor is not None else None
        if local is None:
            return Placement(body=body)
        position, turns = local
        return Placement(body=body, position=position, turns=turns)

    def local(self, cursor: Cursor) -> tuple[Vector, tuple[Turn, ...]] | None:
        """Return `at` and `turn` of a mapping."""
        at = cursor.get("at")
        position = self.values.vector(at) if at is not None else ZERO_VECTOR
        turns: list[tuple[AxisName, Expression]] | None = read_turns(
            cursor.get("turn"), self.values.expression
        )
        if position is None or turns is None:
            return None
        return position, tuple(Turn(axis, angle) for axis, angle in turns if angle != ZERO)


def read_turns(
    cursor: Cursor | None, read: Callable[[Cursor | None], Angle | None]
) -> list[tuple[AxisName, Angle]] | None:
    """Return axes and angles of successive rotations, or None after adding a problem."""
    turns = [
        (axis, read(angle_cursor))
        for axis, angle_cursor in map(single_turn, cursor.items() if cursor is not None else ())
    ]
    valid = [(axis, angle) for axis, angle in turns if axis is not None and angle is not None]
    return valid if len(valid) == len(turns) else None


def single_turn(cursor: Cursor) -> tuple[AxisName | None, Cursor | None]:
    """Return axis and angle of one rotation; report any other number of axes."""
    axes = [axis for axis in _AXES if cursor.has(axis)]
    if len(axes) != 1:
        cursor.problem(
            f"a turn has exactly one axis, not {len(axes)}",
            "write one item for each turn: [{z: 90 deg}, {x: 20 deg}]",
        )
        return None, None
    return axes[0], cursor.get(axes[0])


def constant_turns(
    cursor: Cursor | None, values: ValueReader
) -> list[tuple[AxisName, float]] | None:
    """Return successive rotations as axes and numbers (rad), for a start value."""
    return read_turns(cursor, values.number)


def with_turns(placement: Placement, turns: tuple[Turn, ...]) -> Placement:
    """Return a frame after further rotations about its own origin."""
    return Placement(
        body=placement.body, position=placement.position, turns=(*placement.turns, *turns)
    )


def constant_vector(components: tuple[float, float, float]) -> Vector:
    """Return three numbers as constant expressions."""
    return triple(map(Constant, components))
