"""Reader of outputs: expressions of parameters, coordinates, points, angles and distances.

An argument of a geometric function is a point (the name of a body, frame or joint, ``tool``,
``start(rod)``, ``end(rod)``) or a direction (``x_axis(frame)``, ``direction(point, point)``; a sign
is optional).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tauloop.mechanism.description.cursor import Cursor, Shape, chosen
from tauloop.mechanism.description.parser import (
    GEOMETRIC_FUNCTIONS,
    ExpressionError,
    Operation,
    ParameterName,
    Quantity,
    Syntax,
    names,
    parse,
)
from tauloop.mechanism.description.placements import Placements
from tauloop.mechanism.description.sections.elements import Coordinates
from tauloop.mechanism.description.structure import note_unknown
from tauloop.mechanism.description.units import (
    ANGLE,
    LENGTH,
    UnitError,
    named,
    parse_unit,
)
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.expression import Measured, add, chain, multiply, ordered
from tauloop.mechanism.model import Actuator, AxisName, Joint, Placement, Rod
from tauloop.mechanism.outputs import (
    Angle,
    Component,
    CoordinateValue,
    Direction,
    FrameAxis,
    Output,
    Point,
    PointDirection,
    PointDistance,
)
from tauloop.mechanism.suggestions import a

#: Name of the tool's frame in outputs.
TOOL = "tool"
_COMPONENTS: dict[str, AxisName] = {"x": "x", "y": "y", "z": "z"}
_FRAME_AXES: dict[str, AxisName] = {"x_axis": "x", "y_axis": "y", "z_axis": "z"}


class OutputReader:
    """Reader of all outputs of a machine file."""

    def __init__(
        self,
        values: ValueReader,
        placements: Placements,
        coordinates: Coordinates,
        joints: Mapping[str, Joint | None],
        rods: Mapping[str, Rod | None],
        actuators: Mapping[str, Actuator | None],
        tool: Placement | None,
    ) -> None:
        """Store the elements to which outputs refer.

        Args:
            values: reader of parameters.
            placements: reader of bodies and frames.
            coordinates: all degrees of freedom.
            joints, rods, actuators: all elements by name; None for invalid ones.
            tool: frame of the platform's tool; expressions refer to it as ``tool`` unless another
                element has this name. None if it is invalid.
        """
        self._values = values
        self._placements = placements
        self._coordinates = coordinates
        self._rods = rods
        self._tool = tool
        self._joints = joints
        self._actuators = actuators
        self._cursors: dict[str, Cursor] = {}
        self._quantities: dict[str, Quantity | None] = {}

    def read(self, cursors: Mapping[str, Cursor]) -> dict[str, Output | None]:
        """Return all outputs by name; None for invalid outputs, after adding their problems.

        Args:
            cursors: cursor of every output by full name.
        """
        self._cursors = dict(cursors)
        trees = {name: self._syntax(cursor) for name, cursor in cursors.items()}
        graph: dict[str, list[str]] = {}
        for name, syntax in trees.items():
            used_names = () if syntax is None else scalar_names(syntax)
            outputs = (self._output_named(word, cursors[name]) for word in used_names)
            graph[name] = [output for output in outputs if output is not None]
        for name in ordered(graph, self._report_cycle):
            if name not in self._quantities:
                self._quantities[name] = self._quantity(trees[name], cursors[name])
        return {name: self._output(name, cursor) for name, cursor in cursors.items()}

    def _report_cycle(self, cycle: list[str]) -> None:
        """Add a problem for outputs that depend on each other."""
        self._cursors[cycle[0]].problem(
            f"the outputs depend on each other in a cycle: {chain(cycle)}",
            "give one of them an expression that does not use the others",
        )
        self._quantities.update(dict.fromkeys(cycle))

    def _syntax(self, cursor: Cursor) -> Syntax | None:
        """Return the syntax tree of an output, or None after adding a problem."""
        text_cursor = _expression_cursor(cursor)
        if text_cursor is None or not text_cursor.text:
            return None
        try:
            return parse(text_cursor.text.strip(), is_output=True)
        except ExpressionError as error:
            text_cursor.problem(error.what, error.remedy)
            return None

    def _output(self, name: str, cursor: Cursor) -> Output | None:
        """Return an output after checking its unit, or None after adding a problem."""
        quantity = self._quantities[name]
        if quantity is None:
            return None
        shape = chosen(cursor.kind, cursor.node)
        unit = cursor.get("unit") if isinstance(shape, Shape) else None
        dimension = quantity.dimension
        if unit is not None:
            try:
                required = parse_unit(unit.text or "").dimension
            except UnitError as error:
                unit.problem(error.what, error.remedy)
                return None
            if not quantity.fits(required):
                unit.problem(
                    f"the expression is {named(dimension)}, not {named(required)}",
                    "correct the expression, or the unit",
                )
                return None
            dimension = required
        return Output(
            name=name,
            expression=quantity.expression,
            dimension=dimension,
            note=(cursor.word("note") if isinstance(shape, Shape) else None) or "",
        )

    def _quantity(self, syntax: Syntax | None, cursor: Cursor) -> Quantity | None:
        """Return the expression of an output with its dimension; None if it is invalid."""
        if syntax is None:
            return None
        text_cursor = _expression_cursor(cursor) or cursor
        known = {word: self._scalar(word, text_cursor) for word in scalar_names(syntax)}
        return self._values.resolved(
            syntax, known, text_cursor, lambda operation: self._measured(operation, text_cursor)
        )

    def _output_named(self, word: str, cursor: Cursor) -> str | None:
        """Return the full name of an output; None if there is none with this name."""
        candidates = (cursor.prefix + word, word)
        return next((name for name in candidates if name in self._cursors), None)

    def _scalar(self, word: str, cursor: Cursor) -> Quantity | None:
        """Return the quantity of a name: a parameter, coordinate, motor or another output."""
        is_coordinate = self._coordinates.knows(cursor, word)
        output = self._output_named(word, cursor)
        is_parameter = self._values.knows(word, cursor)
        if is_parameter and (is_coordinate or output is not None):
            cursor.problem(
                f"{word} is the name of a parameter and of "
                f"{'a coordinate' if is_coordinate else 'an output'}",
                "rename the parameter",
            )
            return None
        if is_parameter:
            return self._values.parameter(word, cursor)
        if output is not None:
            return self._quantities.get(output)
        motor = self._motor_named(word, cursor)
        if motor is not None and not is_coordinate:
            return self._motor(motor)
        if not is_coordinate and not self._coordinates.has_joint(cursor, word):
            self._report_not_scalar(word, cursor)
            return None
        full_name = self._coordinates.find(cursor, word)
        if full_name is None:
            return None
        return self._coordinate(full_name)

    def _coordinate(self, name: str) -> Quantity:
        """Return the quantity of a coordinate."""
        value = CoordinateValue(name, self._coordinates.is_angular(name))
        return Quantity(value, value.dimension)

    def _motor_named(self, word: str, cursor: Cursor) -> str | None:
        """Return the full name of a motor; None if there is none with this name."""
        candidates = (cursor.prefix + word, word)
        return next((name for name in candidates if name in self._actuators), None)

    def _motor(self, name: str) -> Quantity | None:
        """Return the position of a motor: the sum of ratio times coordinate, plus its offset."""
        actuator = self._actuators[name]
        if actuator is None:
            return None
        terms = (
            multiply(ratio, self._coordinate(coordinate).expression)
            for coordinate, ratio in actuator.drives
        )
        return Quantity(add(*terms, actuator.offset), ANGLE if actuator.is_rotary else LENGTH)

    def _report_not_scalar(self, word: str, cursor: Cursor) -> None:
        """Report that a name refers to another element, or is unknown."""
        kinds = self._placements.names
        kind = kinds.kind(cursor.prefix + word) or kinds.kind(word)
        if kind in ("body", "frame"):
            cursor.problem(
                f"{word} is {a(kind)}, not a number",
                f"use it in a function of points, such as x({word}) or distance({word}, base)",
            )
        elif kind is not None:
            cursor.problem(
                f"{word} is {a(kind)}, not a number",
                "name a parameter, a coordinate, a motor or another output",
            )
        else:
            known = [
                *self._values.parameter_names,
                *self._coordinates.names,
                *self._actuators,
                *self._cursors,
            ]
            note_unknown(cursor, word, "parameter, coordinate, motor or output", known)

    def _measured(self, call: Operation, cursor: Cursor) -> Quantity | None:
        """Return the quantity of a geometric function."""
        function = call.name
        arguments = call.arguments
        if function == "distance":
            points = [self._point(argument, cursor) for argument in arguments]
            if None in points:
                return None
            first, second = (point for point in points if point is not None)
            return _measured_quantity(PointDistance(first, second))
        if function == "angle":
            return self._angle(arguments, cursor)
        if function in _COMPONENTS:
            return self._component(_COMPONENTS[function], arguments, cursor)
        if function in ("start", "end"):
            cursor.problem(
                f"{function} returns a point, not a number",
                f"use it in a function of points, such as x({function}(ROD))",
            )
        else:
            cursor.problem(
                f"{function} returns a direction, not a number",
                f"use it in a function, such as angle({function}(...), z_axis(base)) or "
                f"x({function}(...))",
            )
        return None

    def _angle(self, arguments: tuple[Syntax, ...], cursor: Cursor) -> Quantity | None:
        """Return the angle between directions, or between three points at the second point."""
        if len(arguments) == 3 and not any(map(_is_direction, arguments)):
            points = [self._point(argument, cursor) for argument in arguments]
            if None in points:
                return None
            first, vertex, last = (point for point in points if point is not None)
            sides = PointDirection(vertex, first), PointDirection(vertex, last)
            return _measured_quantity(Angle(*sides))
        directions = [self._direction(argument, cursor) for argument in arguments]
        if None in directions:
            return None
        return _measured_quantity(Angle(*(item for item in directions if item is not None)))

    def _component(
        self, axis: AxisName, arguments: tuple[Syntax, ...], cursor: Cursor
    ) -> Quantity | None:
        """Return a component of a point or direction, in the base or in a frame."""
        is_direction = _is_direction(arguments[0])
        measured_object: Point | Direction | None
        if is_direction:
            measured_object = self._direction(arguments[0], cursor)
        else:
            measured_object = self._point(arguments[0], cursor)
        frame = self._frame(arguments[1], cursor) if len(arguments) == 2 else None
        if measured_object is None or (len(arguments) == 2 and frame is None):
            return None
        return _measured_quantity(Component(axis, measured_object, frame))

    def _frame(self, syntax: Syntax, cursor: Cursor) -> Placement | None:
        """Return the body or frame to which a name refers, or None after adding a problem."""
        if not isinstance(syntax, ParameterName):
            cursor.problem(
                "an argument is not the name of a body or frame", "write a name, such as base"
            )
            return None
        return self._frame_named(syntax.text, cursor)

    def _frame_named(self, word: str, cursor: Cursor) -> Placement | None:
        """Return the frame with a name: of a body, a frame, the tool, or a joint's parent side."""
        kinds = self._placements.names
        full_name = cursor.prefix + word if kinds.kind(cursor.prefix + word) else word
        if word == TOOL and kinds.kind(full_name) is None:
            return self._tool
        if kinds.kind(full_name) == "joint":
            joint = self._joints.get(full_name)
            return None if joint is None else joint.parent
        return self._placements.named(word, cursor)

    def _point(self, syntax: Syntax, cursor: Cursor) -> Point | None:
        """Return the point that an argument defines, or None after adding a problem."""
        if isinstance(syntax, Operation) and syntax.name in ("start", "end"):
            placement = self._rod_end(syntax, cursor)
        elif isinstance(syntax, ParameterName):
            placement = self._frame_named(syntax.text, cursor)
        else:
            cursor.problem(
                "an argument is not a point",
                "write the name of a body, frame or joint, or start(ROD) or end(ROD)",
            )
            placement = None
        return None if placement is None else Point(placement)

    def _rod_end(self, syntax: Operation, cursor: Cursor) -> Placement | None:
        """Return the end of a rod from ``start(ROD)`` or ``end(ROD)``."""
        argument = syntax.arguments[0]
        word = argument.text if isinstance(argument, ParameterName) else ""
        candidates = (cursor.prefix + word, word)
        name = next((name for name in candidates if name in self._rods), None)
        if name is None:
            note_unknown(cursor, word or "this", "rod", self._rods)
            return None
        rod = self._rods[name]
        if rod is None:
            return None
        return rod.start if syntax.name == "start" else rod.end

    def _direction(self, syntax: Syntax, cursor: Cursor) -> Direction | None:
        """Return the direction that an argument defines, or None after adding a problem."""
        sign = 1.0
        while isinstance(syntax, Operation) and syntax.name == "neg":
            syntax = syntax.arguments[0]
            sign = -sign
        if isinstance(syntax, Operation) and syntax.name in _FRAME_AXES:
            placement = self._frame(syntax.arguments[0], cursor)
            if placement is None:
                return None
            return FrameAxis(placement, _FRAME_AXES[syntax.name], sign)
        if isinstance(syntax, Operation) and syntax.name == "direction":
            points = [self._point(argument, cursor) for argument in syntax.arguments]
            if None in points:
                return None
            start, end = (point for point in points if point is not None)
            direction = PointDirection(start, end)
            return direction if sign > 0 else replace(direction, start=end, end=start)
        cursor.problem(
            "an argument is not a direction",
            "write x_axis(FRAME), y_axis(FRAME), z_axis(FRAME) or direction(POINT, POINT)",
        )
        return None


def _measured_quantity(measured: Measured) -> Quantity:
    """Return a measured value with its dimension."""
    return Quantity(measured, measured.dimension)


def _expression_cursor(cursor: Cursor) -> Cursor | None:
    """Return the cursor of an output's expression."""
    return cursor.get("value") if cursor.text is None else cursor


def _is_direction(syntax: Syntax) -> bool:
    """Return whether an argument is written as a direction."""
    while isinstance(syntax, Operation) and syntax.name == "neg":
        syntax = syntax.arguments[0]
    return isinstance(syntax, Operation) and syntax.name in ("direction", *_FRAME_AXES)


def scalar_names(syntax: Syntax) -> Iterator[str]:
    """Yield the names of scalar quantities in an expression, without those of points and frames."""
    if not isinstance(syntax, Operation):
        yield from names(syntax)
    elif syntax.name not in GEOMETRIC_FUNCTIONS:
        for argument in syntax.arguments:
            yield from scalar_names(argument)
