"""The parameters pi in which inverse dynamics is linear: inertia, rotor inertia, friction and springs.

Inverse dynamics = Y(q, v, a) pi. Every entry is an expression over theta, so that equal parts of equal legs stay tied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import casadi as ca

from tauloop.equations.topology import Topology
from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.expression import Expression, multiply
from tauloop.mechanism.model import Friction, Inertia, Mechanism, SlenderPart
from tauloop.records import dataclass

BODY_SUFFIXES = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
BODY_UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
SLENDER_SUFFIXES = ("m", "h", "J")
SLENDER_UNITS = ("kg", "kg m", "kg m^2")


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicParameter:
    """One entry of pi.

    Attributes:
        name: element and suffix, such as ``plate.mcx`` or ``leg1.motor.viscous``.
        element: the element it belongs to: body, rod, coordinate or actuator.
        role: the suffix.
        unit: SI unit.
        group: "inertia", "friction", "drive" or "spring".
        expression: its value over theta.
    """

    name: str
    element: str
    role: str
    unit: str
    group: str
    expression: Expression


def dynamic_parameters(mechanism: Mechanism, topology: Topology) -> tuple[DynamicParameter, ...]:
    """All entries of pi in order: bodies, rods, freedoms, actuators, losses.

    Raises:
        DescriptionError: a joint and a motor have one name and both such a coefficient.
    """
    found = tuple(_entries(mechanism, topology))
    twice = [name for name, count in Counter(entry.name for entry in found).items() if count > 1]
    if twice:
        raise DescriptionError(
            Problem(
                where=name,
                what="is a coefficient of a joint and of a motor that is called as it is",
                remedy="give the motor a name of its own",
                file=mechanism.file,
            )
            for name in twice
        )
    return found


def _entry(element: str, role: str, unit: str, group: str, expression: Expression) -> DynamicParameter:
    return DynamicParameter(
        name=f"{element}.{role}", element=element, role=role, unit=unit, group=group, expression=expression
    )


def _entries(mechanism: Mechanism, topology: Topology) -> Iterator[DynamicParameter]:
    for body in mechanism.bodies:
        if body.inertia is not None:
            yield from _part(body.name, "", body.inertia)
    for rod in mechanism.rods:
        for prefix, part in (("", rod.lower), ("upper_", rod.upper)):
            if part is not None:
                yield from _part(rod.name, prefix, part)
    for name, is_angle, freedom in zip(topology.velocity_names, topology.angular, topology.freedoms, strict=True):
        if freedom.inertia is not None:
            yield _entry(name, "inertia", "kg m^2" if is_angle else "kg", "drive", freedom.inertia)
        if freedom.friction is not None:
            yield from _friction(name, freedom.friction, is_angle)
        if freedom.spring is not None:
            force, angle = ("N m", "rad") if is_angle else ("N", "m")
            yield _entry(name, "stiffness", f"{force}/{angle}", "spring", freedom.spring.stiffness)
            yield _entry(name, "preload", force, "spring", multiply(freedom.spring.stiffness, freedom.spring.rest))
    for actuator in mechanism.actuators:
        is_angle = topology.motor_turns(actuator)
        if actuator.inertia is not None:
            yield _entry(actuator.name, "inertia", "kg m^2" if is_angle else "kg", "drive", actuator.inertia)
        if actuator.friction is not None:
            yield from _friction(actuator.name, actuator.friction, is_angle)
    for loss in mechanism.losses:
        yield from _friction(loss.name, loss.friction, loss.turns)


def _part(element: str, prefix: str, part: Inertia | SlenderPart) -> Iterator[DynamicParameter]:
    slender = isinstance(part, SlenderPart)
    suffixes, units = (SLENDER_SUFFIXES, SLENDER_UNITS) if slender else (BODY_SUFFIXES, BODY_UNITS)
    for suffix, unit, expression in zip(suffixes, units, part.parameters, strict=True):
        yield _entry(element, prefix + suffix, unit, "inertia", expression)


def _friction(element: str, friction: Friction, is_angle: bool) -> Iterator[DynamicParameter]:
    force, speed = ("N m", "N m s/rad") if is_angle else ("N", "N s/m")
    terms = {
        "viscous": (speed, friction.viscous),
        "coulomb": (force, friction.coulomb),
        "offset": (force, friction.offset),
        "viscous_asymmetry": (speed, friction.viscous_asymmetry),
        "coulomb_asymmetry": (force, friction.coulomb_asymmetry),
        "stribeck": (force, friction.excess),
    }
    for role, (unit, expression) in terms.items():
        if expression is not None:
            yield _entry(element, role, unit, "friction", expression)


class Entries:
    """Values of pi by element and role."""

    def __init__(self, parameters: tuple[DynamicParameter, ...], pi: ca.SX) -> None:
        """Name the entries of pi (n_pi,)."""
        self._pi: Mapping[tuple[str, str], ca.SX] = {(p.element, p.role): pi[i] for i, p in enumerate(parameters)}
        self._inertial: dict[str, list[str]] = {}
        for p in parameters:
            if p.group == "inertia":
                self._inertial.setdefault(p.element, []).append(p.role)

    def get(self, element: str, role: str) -> ca.SX | None:
        """One entry; None where the element has no such parameter."""
        return self._pi.get((element, role))

    def part(self, element: str, upper: bool = False) -> ca.SX:
        """Inertial parameters of a body or of one part of a rod, in their order."""
        roles = [role for role in self._inertial[element] if role.startswith("upper_") == upper]
        return ca.vertcat(*(self._pi[element, role] for role in roles))
