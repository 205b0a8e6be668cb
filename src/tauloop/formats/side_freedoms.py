"""What acts on a freedom, in a side file: friction, spring, rotor inertia, limits, in units of what turns or slides."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from tauloop.formats.side_values import Origin, Quantity, SideValues, unlimited
from tauloop.mechanism import units, yaml_nodes
from tauloop.mechanism.expression import ZERO, Expression, evaluate
from tauloop.mechanism.friction_terms import friction_faults
from tauloop.mechanism.model import LIMIT_KINDS, Freedom, Friction, LimitKind, Spring


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Dimensions that belong to a coordinate or motor that turns or slides."""

    coordinate: units.Dimension
    speed: units.Dimension
    force: units.Dimension
    viscous: units.Dimension
    inertia: units.Dimension
    stiffness: units.Dimension


TURNING = Motion(
    coordinate=units.ANGLE,
    speed=units.ANGULAR_SPEED,
    force=units.TORQUE,
    viscous=units.ANGULAR_DAMPING,
    inertia=units.INERTIA,
    stiffness=units.ANGULAR_STIFFNESS,
)
SLIDING = Motion(
    coordinate=units.LENGTH,
    speed=units.SPEED,
    force=units.FORCE,
    viscous=units.DAMPING,
    inertia=units.MASS,
    stiffness=units.STIFFNESS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Range of a coordinate, rad or m, and its kind."""

    lower: float
    upper: float
    kind: LimitKind

    def on(self, freedom: Freedom) -> Freedom:
        """A freedom with this range."""
        return replace(freedom, lower=self.lower, upper=self.upper, limit=self.kind)


class FreedomReader:
    """Reads what acts on freedoms; leaf parameters are called after what they act on."""

    def __init__(self, values: SideValues) -> None:
        """Start without anything.

        Args:
            values: reads nodes, makes leaf parameters, collects problems.
        """
        self._values = values

    def freedom(self, node: yaml_nodes.Node | None, where: str, name: str, motion: Motion, origin: Origin) -> Freedom:
        """A freedom with all that can be said of it; nothing acts on one without a node."""
        keys = ("friction", "inertia", "spring", "limits", "speed")
        found, origin = self._values.fields(node, where, keys, origin)
        friction = self.friction(found["friction"], where, name, motion, origin) if "friction" in found else None
        freedom = Freedom(
            friction=friction,
            spring=self.spring(found.get("spring"), where, name, motion, origin),
            inertia=self.inertia(found.get("inertia"), where, name, motion, origin),
            speed=unlimited(self.limit(found.get("speed"), f"{where}.speed", motion.speed, origin)),
        )
        limits = self.limits(found.get("limits"), where, motion, origin)
        return freedom if limits is None else limits.on(freedom)

    def friction(self, node: yaml_nodes.Node | None, where: str, name: str, motion: Motion, origin: Origin) -> Friction:
        """Losses; those that are not there are None."""
        keys = tuple(one.name for one in fields(Friction))
        found, origin = self._values.fields(node, f"{where}.friction", keys, origin)
        terms: dict[str, Expression] = {}
        dimensions = {"viscous": motion.viscous, "viscous_asymmetry": motion.viscous, "stribeck": motion.speed}
        for term, item in found.items():
            dimension = dimensions.get(term, motion.force)
            quantity = self._values.quantity(item, f"{where}.friction.{term}", [dimension], origin)
            if quantity is None:
                continue
            if term in ("viscous", "coulomb", "static", "stribeck"):
                self._not_negative(item, f"{where}.friction.{term}", quantity)
            terms[term] = self._values.leaf(f"{name}.friction.{term}", quantity, "friction")
        known = {parameter.name: parameter.value for parameter in self._values.parameters}
        given = {term: terms.get(term) for term in found}
        for term, what, remedy in friction_faults(given, lambda x: float(evaluate(x, known))):
            self._values.problem(found[term], f"{where}.friction.{term}", what, remedy)
        return Friction(**terms)

    def spring(
        self, node: yaml_nodes.Node | None, where: str, name: str, motion: Motion, origin: Origin
    ) -> Spring | None:
        """A spring; None where there is none, or one without stiffness, which is noted."""
        if node is None:
            return None
        found, origin = self._values.fields(node, f"{where}.spring", ("stiffness", "rest"), origin)
        if "stiffness" not in found:
            self._values.problem(node, f"{where}.spring.stiffness", "missing", "give the spring's stiffness")
            return None
        stiffness = self.limit(found["stiffness"], f"{where}.spring.stiffness", motion.stiffness, origin)
        rest: Expression = ZERO
        if "rest" in found:
            quantity = self._values.quantity(found["rest"], f"{where}.spring.rest", [motion.coordinate], origin)
            if quantity is not None:
                rest = self._values.structural(f"{name}.spring.rest", quantity, "spring")
        if stiffness is None:
            return None
        return Spring(stiffness=self._values.leaf(f"{name}.spring.stiffness", stiffness, "spring"), rest=rest)

    def inertia(
        self, node: yaml_nodes.Node | None, where: str, name: str, motion: Motion, origin: Origin
    ) -> Expression | None:
        """Rotor inertia; None where there is none."""
        quantity = self.limit(node, f"{where}.inertia", motion.inertia, origin)
        return None if quantity is None else self._values.leaf(f"{name}.inertia", quantity, "drive")

    def limits(self, node: yaml_nodes.Node | None, where: str, motion: Motion, origin: Origin) -> Limits | None:
        """A range, of stops where it does not say its kind; ``-inf`` and ``inf`` are open ends."""
        if node is None:
            return None
        kind: LimitKind = "stop"
        if isinstance(node, yaml_nodes.Mapping):
            where = f"{where}.limits"
            found, origin = self._values.fields(node, where, LIMIT_KINDS, origin)
            given = [word for word in LIMIT_KINDS if word in found]
            if len(given) != 1:
                self._values.problem(node, where, "says no range of one kind", "write {drawing: [lower, upper]}")
                return None
            kind, where = given[0], where.removesuffix(".limits")
            node = found[kind]
        ends = []
        for item, open_end in zip(self._values.items(node, f"{where}.limits", 2), (-math.inf, math.inf), strict=False):
            is_open = isinstance(item, yaml_nodes.Scalar) and item.text == str(open_end)
            end = None if is_open else self._values.quantity(item, f"{where}.limits", [motion.coordinate], origin)
            ends.append(open_end if end is None else end.value)
        if len(ends) == 2 and not ends[0] < ends[1]:
            self._values.problem(node, f"{where}.limits", f"{ends[0]:g} is not below {ends[1]:g}", "swap the two")
        return Limits(lower=ends[0], upper=ends[1], kind=kind) if len(ends) == 2 else None

    def limit(
        self, node: yaml_nodes.Node | None, where: str, dimension: units.Dimension, origin: Origin
    ) -> Quantity | None:
        """A value that is not negative; None where there is none."""
        quantity = None if node is None else self._values.quantity(node, where, [dimension], origin)
        if node is not None and quantity is not None:
            self._not_negative(node, where, quantity)
        return quantity

    def _not_negative(self, node: yaml_nodes.Node, where: str, quantity: Quantity) -> None:
        if quantity.value < 0.0:
            self._values.problem(node, where, f"is {quantity.value:g}", "it must be zero or positive")
