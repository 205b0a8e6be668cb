"""Values of description expressions as numbers or CasADi symbols."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca

from tauloop.mechanism.expression import FUNCTIONS, Constant, Expression, Leaf, evaluate
from tauloop.mechanism.model import Placement, Turn, Vector

#: Angles this close to a multiple of 90 degrees count as exact, so that zeros of a geometry stay zeros.
RIGHT_ANGLE_TOLERANCE = 1e-12


def _exact_sine(angle: float) -> float:
    quarter_turns = angle / (math.pi / 2)
    if abs(quarter_turns - round(quarter_turns)) < RIGHT_ANGLE_TOLERANCE:
        return (0.0, 1.0, 0.0, -1.0)[round(quarter_turns) % 4]
    return math.sin(angle)


def sine(angle: Any) -> Any:
    """Sine of a number (exact at multiples of a right angle) or of a symbol."""
    return _exact_sine(float(angle)) if isinstance(angle, int | float) else ca.sin(angle)


def cosine(angle: Any) -> Any:
    """Cosine of a number (exact at multiples of a right angle) or of a symbol."""
    return _exact_sine(float(angle) + math.pi / 2) if isinstance(angle, int | float) else ca.cos(angle)


def _either(name: str) -> Callable[..., Any]:
    symbolic = {"abs": ca.fabs}.get(name) or getattr(ca, name)
    numeric = {"abs": abs}.get(name) or getattr(math, name)

    def function(*arguments: Any) -> Any:
        return (numeric if all(isinstance(a, int | float) for a in arguments) else symbolic)(*arguments)

    return function


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "^": lambda x, y: x**y,
    "neg": lambda x: -x,
    **{name: _either(name) for name in FUNCTIONS},
    "sin": sine,
    "cos": cosine,
}


class Values:
    """Leaf parameters (numbers, symbols, or some of each) from which every expression takes its value."""

    def __init__(self, theta: Mapping[str, Any]) -> None:
        """Keep theta: leaf values by name, SI."""
        self._theta = theta

    def scalar(self, expression: Expression) -> Any:
        """Value of one expression: a float where nothing in it is a symbol."""
        if isinstance(expression, Constant):
            return expression.value
        if isinstance(expression, Leaf):
            return self._theta[expression.name]
        return evaluate(expression, self._theta, _OPERATIONS)

    def vector(self, vector: Vector) -> ca.SX:
        """Value (3,) of a vector."""
        return ca.SX(ca.vertcat(*(ca.SX(self.scalar(component)) for component in vector)))

    def rotation(self, turns: tuple[Turn, ...]) -> ca.SX:
        """Rotation matrix (3, 3) of successive turns: maps from the turned frame into the body's."""
        R = ca.SX(ca.DM.eye(3))
        for turn in turns:
            angle = self.scalar(turn.angle)
            R = R @ elementary_rotation(turn.axis, cosine(angle), sine(angle))
        return R

    def placement(self, placement: Placement) -> tuple[ca.SX, ca.SX]:
        """Rotation (3, 3) and origin (3,) of a frame in its body."""
        return self.rotation(placement.turns), self.vector(placement.position)


def elementary_rotation(axis: str, c: Any, s: Any) -> ca.SX:
    """Rotation about a coordinate axis, from the cosine and sine of its angle."""
    R = ca.SX(3, 3)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    R[i, i] = 1
    R[j, j], R[k, k] = c, c
    R[k, j], R[j, k] = s, -s
    return R


def unit_vector(axis: str) -> ca.SX:
    """Unit vector (3,) of a coordinate axis."""
    e = ca.SX(3, 1)
    e["xyz".index(axis)] = 1
    return e
