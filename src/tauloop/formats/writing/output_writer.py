"""Outputs of a machine as text of a machine file."""

from __future__ import annotations

from typing import Any

from tauloop.formats.writing.expression_writer import ExpressionWriter
from tauloop.mechanism.expression import Measured
from tauloop.mechanism.model import Mechanism, Placement
from tauloop.mechanism.outputs import (
    Angle,
    Component,
    CoordinateValue,
    Direction,
    FrameAxis,
    Output,
    Point,
    PointDistance,
)
from tauloop.mechanism.suggestions import HasName


class OutputWriter:
    """Writer of outputs.

    Attributes:
        frames: frames that the outputs refer to, by their new names.
    """

    def __init__(self, mechanism: Mechanism, expressions: ExpressionWriter) -> None:
        """Store the machine and the writer of expressions; let it write measured numbers."""
        self._expressions = expressions
        self._expressions.measured = self._measured
        elements: tuple[HasName, ...] = (
            *mechanism.bodies,
            *mechanism.joints,
            *mechanism.rods,
            *mechanism.couplings,
            *mechanism.actuators,
            *mechanism.losses,
            *mechanism.outputs,
        )
        self._used_names = {element.name for element in elements}
        self.frames: dict[str, Placement] = {}
        self._names: dict[Placement, str] = {}

    def output(self, output: Output) -> str | dict[str, Any]:
        """Return an output: the expression with its unit and note."""
        data: dict[str, Any] = {
            "value": self._expressions.text(output.expression, output.dimension)
        }
        if not output.dimension.is_one:
            data["unit"] = str(output.dimension)
        if output.note:
            data["note"] = output.note
        return data if len(data) > 1 else str(data["value"])

    def _measured(self, measured: Measured) -> str:
        """Return the text of a measured number."""
        if isinstance(measured, CoordinateValue):
            return measured.name
        if isinstance(measured, PointDistance):
            return f"distance({self._point(measured.first)}, {self._point(measured.second)})"
        if isinstance(measured, Component):
            of = measured.of
            arguments = [self._point(of) if isinstance(of, Point) else self._direction(of)]
            if measured.frame is not None:
                arguments.append(self._frame(measured.frame))
            return f"{measured.axis}({', '.join(arguments)})"
        if isinstance(measured, Angle):
            directions = (measured.first, measured.second, measured.about)
            texts = [self._direction(item) for item in directions if item is not None]
            return f"angle({', '.join(texts)})"
        raise AssertionError(f"unknown kind of measured number: {type(measured).__name__}")

    def _point(self, point: Point) -> str:
        return self._frame(point.placement)

    def _direction(self, direction: Direction) -> str:
        if isinstance(direction, FrameAxis):
            sign = "-" if direction.sign < 0 else ""
            return f"{sign}{direction.axis}_axis({self._frame(direction.placement)})"
        return f"direction({self._point(direction.start)}, {self._point(direction.end)})"

    def _frame(self, placement: Placement) -> str:
        """Return the name of a frame: that of its body, or of a frame that is added to the file."""
        if placement == Placement(body=placement.body):
            return placement.body
        if placement not in self._names:
            number = len(self._names) + 1
            while f"frame_{number}" in self._used_names:
                number += 1
            name = f"frame_{number}"
            self._used_names.add(name)
            self._names[placement], self.frames[name] = name, placement
        return self._names[placement]
