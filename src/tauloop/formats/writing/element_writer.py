"""Serialize the elements of a machine to the machine-file format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from tauloop.common.records import dataclass
from tauloop.formats.writing.drive_writer import drive_data
from tauloop.formats.writing.expression_writer import keys_of, literal
from tauloop.mechanism.curves import Curve, CurvePolynomial
from tauloop.mechanism.description import units
from tauloop.mechanism.description.grammar import ACTUATOR, FREEDOM, FRICTION
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.expression import ZERO, Expression
from tauloop.mechanism.model import (
    JOINT_KINDS,
    ZERO_VECTOR,
    Actuator,
    CombinedFriction,
    Coupling,
    Freedom,
    Mechanism,
    Placement,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementWriter:
    """Writer of the elements that machine files and URDF side files share.

    Attributes:
        mechanism: mechanism with the elements.
        text: function (expression, dimension) -> text.
        names: names in the file of renamed coordinates.
    """

    mechanism: Mechanism
    text: Callable[[Expression, Dimension], str]
    names: Mapping[str, str] = field(default_factory=dict)

    def vector(self, vector: Sequence[Expression], dimension: Dimension) -> list[str]:
        """Return all components of a vector as texts."""
        return [self.text(component, dimension) for component in vector]

    def pose(self, placement: Placement) -> dict[str, Any]:
        """Return the keys `at` and `turn` of a frame."""
        pose: dict[str, Any] = {}
        if placement.position != ZERO_VECTOR:
            pose["at"] = self.vector(placement.position, units.LENGTH)
        if placement.turns:
            pose["turn"] = [
                {turn.axis: self.text(turn.angle, units.ANGLE)} for turn in placement.turns
            ]
        return pose

    def freedom(self, freedom: Freedom, is_angular: bool) -> dict[str, Any]:
        """Return friction, springs, limits and maximum speed of a degree of freedom."""
        return keys_of(FREEDOM, freedom, is_angular, self.text)

    def freedoms(
        self, names: Sequence[str], are_angular: Sequence[bool], freedoms: Sequence[Freedom]
    ) -> dict[str, Any]:
        """Return the contents of several freedoms by name, without empty ones."""
        rows = zip(names, are_angular, freedoms, strict=False)
        contents = {name: self.freedom(freedom, is_angular) for name, is_angular, freedom in rows}
        return {name: content for name, content in contents.items() if content}

    def coupling(self, coupling: Coupling) -> dict[str, Any]:
        """Return a gear or cam."""
        data: dict[str, Any] = {"of": self._ratios(coupling.terms, coupling.is_angular)}
        if coupling.offset != ZERO:
            data["offset"] = self.text(
                coupling.offset, units.ANGLE if coupling.is_angular else units.LENGTH
            )
        for name, curve in coupling.curves:
            curves = data.setdefault("curves", {})
            curves[self.names.get(name, name)] = self._curve(curve, name, coupling.is_angular)
        return data

    def _curve(self, curve: Curve, coordinate: str, is_angular: bool) -> dict[str, Any]:
        """Return a curve of a coordinate; `is_angular` states whether its value is an angle."""
        x = units.ANGLE if self.is_angular(coordinate) else units.LENGTH
        y = units.ANGLE if is_angular else units.LENGTH
        if isinstance(curve, CurvePolynomial):
            texts = [self.text(c, y / x**k) for k, c in enumerate(curve.coefficients)]
            about = {} if curve.about == ZERO else {"about": self.text(curve.about, x)}
            return {"polynomial": texts} | about
        points = [[literal(u, x), literal(v, y)] for u, v in curve.points]
        data: dict[str, Any] = {"table": points}
        if curve.periodic:
            data["periodic"] = "yes"
        if curve.monotone:
            data["interpolation"] = "monotone"
        return data

    def loss(self, loss: CombinedFriction) -> dict[str, Any]:
        """Return the friction of a combination of coordinates."""
        friction = keys_of(FRICTION, loss.friction, loss.is_angular, self.text)
        return {"of": self._ratios(loss.terms, loss.is_angular), "friction": friction}

    def actuator(self, actuator: Actuator) -> dict[str, Any]:
        """Return a motor; a constant ratio of one is omitted if the reader can infer it."""
        ratios = self._ratios(actuator.drives, actuator.is_rotary)
        data: dict[str, Any] = {"drives": ratios}
        if len(ratios) == 1:
            ((name, ratio),) = ratios.items()
            data = {"on": name} | ({} if ratio == "(1)" else {"ratio": ratio})
        is_rotary = actuator.is_rotary
        if is_rotary is None:
            is_rotary = any(self.is_angular(name) for name, _ in actuator.drives)
        keys = keys_of(ACTUATOR, replace(actuator, drive=None), is_rotary, self.text)
        if actuator.offset == ZERO:
            del keys["offset"]
        return data | keys

    def drive(self, actuator: Actuator) -> dict[str, Any]:
        """Return the drive line of an actuator, if it has one."""
        return {} if actuator.drive is None else {"drive": drive_data(actuator.drive, self.text)}

    def _ratios(
        self, terms: Sequence[tuple[str, Expression]], is_angular: bool | None
    ) -> dict[str, str]:
        """Return the ratios by coordinate; their units state whether the motor is rotary."""
        mixed_unit = units.ANGLE_PER_LENGTH if is_angular else units.LENGTH_PER_ANGLE
        return {
            self.names.get(name, name): self.text(
                ratio,
                units.ONE
                if is_angular is None or is_angular == self.is_angular(name)
                else mixed_unit,
            )
            for name, ratio in terms
        }

    def is_angular(self, coordinate: str) -> bool:
        """Return whether a coordinate is an angle; rod lengths are not."""
        for joint in self.mechanism.joints:
            if coordinate in joint.velocity_names:
                return JOINT_KINDS[joint.kind].angular[joint.velocity_names.index(coordinate)]
        return False
