"""Turns applied to vectors of expressions; exact zeros and right angles fold, so that sparse geometry stays sparse."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tauloop.mechanism.expression import Call, Constant, Expression, add, multiply, negate, subtract
from tauloop.mechanism.model import AxisName, Turn, Vector

#: An angle this near a multiple of 90 degrees, in quarter turns, is one: 90 deg has no exact number in radians.
RIGHT_ANGLE_TOLERANCE = 1e-12
#: A component this small beside 1 is the rounding of a unit vector that has it zero.
_ROUNDING = 1e-15


def sine(angle: Expression) -> Expression:
    """Sine; of a constant at once, and exact at multiples of 90 degrees."""
    if not isinstance(angle, Constant):
        return Call("sin", (angle,))
    quarters = angle.value / (math.pi / 2)
    if abs(quarters - round(quarters)) < RIGHT_ANGLE_TOLERANCE:
        return Constant((0.0, 1.0, 0.0, -1.0)[round(quarters) % 4])
    return Constant(math.sin(angle.value))


def cosine(angle: Expression) -> Expression:
    """Cosine; of a constant at once, and exact at multiples of 90 degrees."""
    if not isinstance(angle, Constant):
        return Call("cos", (angle,))
    quarters = angle.value / (math.pi / 2)
    if abs(quarters - round(quarters)) < RIGHT_ANGLE_TOLERANCE:
        return Constant((1.0, 0.0, -1.0, 0.0)[round(quarters) % 4])
    return Constant(math.cos(angle.value))


def rotated(turns: Sequence[Turn], vector: Vector) -> Vector:
    """A vector given in the turned frame, in the frame that the turns start from: R_1 R_2 ... r."""
    components = list(vector)
    for turn in reversed(turns):
        i = "xyz".index(turn.axis)
        j, k = (i + 1) % 3, (i + 2) % 3
        c, s = cosine(turn.angle), sine(turn.angle)
        components[j], components[k] = (
            subtract(_times(c, components[j]), _times(s, components[k])),
            add(_times(s, components[j]), _times(c, components[k])),
        )
    x, y, z = components
    return x, y, z


def _times(factor: Expression, component: Expression) -> Expression:
    return negate(component) if factor == Constant(-1.0) else multiply(factor, component)


def rotation_matrix(turns: Sequence[tuple[AxisName, float]]) -> np.ndarray:
    """Rotation matrix (3, 3) of successive turns by numbers (rad): from the turned frame into the first."""
    R = np.eye(3)
    for axis, angle in turns:
        i = "xyz".index(axis)
        j, k = (i + 1) % 3, (i + 2) % 3
        turn = np.eye(3)
        turn[j, j] = turn[k, k] = math.cos(angle)
        turn[k, j], turn[j, k] = math.sin(angle), -math.sin(angle)
        R = R @ turn
    return R


def quaternion(turns: Sequence[tuple[AxisName, float]]) -> tuple[float, float, float, float]:
    """Unit quaternion (w, x, y, z) of successive turns by numbers (rad)."""
    w, v = 1.0, np.zeros(3)
    for axis, angle in turns:
        c, u = math.cos(angle / 2), math.sin(angle / 2) * np.eye(3)["xyz".index(axis)]
        w, v = w * c - float(v @ u), w * u + c * v + np.cross(v, u)
    return w, float(v[0]), float(v[1]), float(v[2])


def _turn(axis: AxisName, angle: float) -> tuple[Turn, ...]:
    return (Turn(axis, Constant(angle)),) if angle else ()


def turns_to_axis(direction: Sequence[float]) -> tuple[AxisName, tuple[Turn, ...]]:
    """A letter and constant turns after which the axis of that letter points along a direction.

    Args:
        direction: unit vector (3,).

    Returns:
        The letter itself without turns where the direction is that of a letter; the letter and half a turn about
        another axis for its opposite; else z, turned about z and then about y.
    """
    letters: tuple[AxisName, ...] = ("x", "y", "z")
    d = [0.0 if abs(component) < _ROUNDING else float(component) for component in direction]
    for i, letter in enumerate(letters):
        if d[(i + 1) % 3] == d[(i + 2) % 3] == 0.0:
            return letter, () if d[i] > 0 else _turn(letters[(i + 1) % 3], math.pi)
    return "z", _turn("z", math.atan2(d[1], d[0])) + _turn("y", math.acos(max(-1.0, min(1.0, d[2]))))


def turns_to_axes(first: Sequence[float], second: Sequence[float]) -> tuple[Turn, ...]:
    """Constant turns (about z, y, x) after which x and y point along two perpendicular unit vectors."""
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    R = np.column_stack([x, y, np.cross(x, y)])
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) > _ROUNDING:
        yaw, roll = math.atan2(R[1, 0], R[0, 0]), math.atan2(R[2, 1], R[2, 2])
    else:
        yaw, roll = math.atan2(-R[0, 1], R[1, 1]), 0.0
    return _turn("z", yaw) + _turn("y", pitch) + _turn("x", roll)
