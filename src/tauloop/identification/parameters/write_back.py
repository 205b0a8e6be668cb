"""The identified machine: a mechanism with the dynamic parameters that were found, to be written and loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from tauloop.common.errors import InputError
from tauloop.equations.values import BODY_SUFFIXES, SLENDER_SUFFIXES, DynamicParameter
from tauloop.mechanism.expression import (
    ZERO,
    Call,
    Constant,
    Expression,
    Leaf,
    Parameter,
    ParameterTable,
    add,
    leaves,
)
from tauloop.mechanism.model import Actuator, Body, Freedom, Joint, Mechanism, Rod, SlenderPart
from tauloop.model import Model


def identified_mechanism(
    model: Model, values: np.ndarray, *, source: str = "identified"
) -> Mechanism:
    """The model's mechanism with other dynamic parameters, such as `ConsistentIdentification.parameters`.

    Every dynamic parameter becomes a leaf parameter of its own (``link_1.mcx``): equal parts of
    equal legs are not tied any more. Leaves that nothing refers to any more are left out. Where the
    unknowns were those of the machine file, `mechanism.with_values` keeps the ties.

    Args:
        model: the machine.
        values: (n_pi,), SI, of `model.parameters`.
        source: written beside every value.

    Raises:
        InputError: not as many finite values as parameters, or a spring's stiffness is zero with a
            preload.
    """
    values = np.asarray(values, dtype=float)
    if values.shape != (len(model.parameters),) or not np.isfinite(values).all():
        raise InputError.of(
            "values",
            f"has shape {values.shape} or numbers that are not finite",
            f"give {len(model.parameters)} finite values, one for each of model.parameters",
        )
    writer = _LeafWriter(
        model.mechanism, dict(zip(model.parameters, values.tolist(), strict=True)), source
    )
    return writer.mechanism()


class _LeafWriter:
    """Puts new leaves in the places of the old expressions."""

    def __init__(
        self, mechanism: Mechanism, values: dict[DynamicParameter, float], source: str
    ) -> None:
        self._old = mechanism
        self._values = {(p.element, p.role): (p, value) for p, value in values.items()}
        self._source = source
        self._new: list[Parameter] = []

    def mechanism(self) -> Mechanism:
        """The whole mechanism, its table without leaves that are no longer used."""
        old = self._old
        new = replace(
            old,
            bodies=tuple(self._body(body) for body in old.bodies),
            joints=tuple(self._joint(joint) for joint in old.joints),
            rods=tuple(self._rod(rod) for rod in old.rods),
            actuators=tuple(self._actuator(actuator) for actuator in old.actuators),
            losses=tuple(
                replace(loss, friction=self._friction(loss.name, loss.friction))
                for loss in old.losses
            ),
        )
        fresh = {parameter.name for parameter in self._new}
        used = set(_leaves_of(new)) - fresh
        kept = [parameter for parameter in old.parameters if parameter.name in used]
        return replace(new, parameters=ParameterTable((*kept, *self._new)))

    def _leaf(self, element: str, role: str, old: Expression | None) -> Expression | None:
        """A leaf for one dynamic parameter; what was there before where it is none."""
        if (element, role) not in self._values:
            return old
        parameter, value = self._values[element, role]
        return self._named(parameter.name, value, parameter.unit, parameter.group)

    def _named(self, name: str, value: float, unit: str, group: str) -> Leaf:
        taken = set(self._old.parameters.names) | {parameter.name for parameter in self._new}
        while name in taken:
            name = f"identified.{name}"
        self._new.append(
            Parameter(
                name=name, value=value, unit=unit, group=group, status="chosen", source=self._source
            )
        )
        return Leaf(name)

    def _body(self, body: Body) -> Body:
        return (
            body
            if body.inertia is None
            else replace(body, inertia=self._part(body.name, "", body.inertia))
        )

    def _part(self, element: str, prefix: str, part: Any) -> Any:
        roles = SLENDER_SUFFIXES if isinstance(part, SlenderPart) else BODY_SUFFIXES
        values: list[Any] = [
            self._leaf(element, prefix + role, old)
            for role, old in zip(roles, part.parameters, strict=True)
        ]
        return type(part).of(values)

    def _rod(self, rod: Rod) -> Rod:
        lower = None if rod.lower is None else self._part(rod.name, "", rod.lower)
        upper = None if rod.upper is None else self._part(rod.name, "upper_", rod.upper)
        telescope = rod.telescope
        if telescope is not None:
            telescope = replace(telescope, freedom=self._freedom(rod.name, telescope.freedom))
        return replace(rod, lower=lower, upper=upper, telescope=telescope)

    def _joint(self, joint: Joint) -> Joint:
        freedoms = tuple(
            self._freedom(name, freedom)
            for name, freedom in zip(joint.velocity_names, joint.freedoms, strict=False)
        )
        return replace(joint, freedoms=freedoms)

    def _actuator(self, actuator: Actuator) -> Actuator:
        return replace(
            actuator,
            inertia=self._leaf(actuator.name, "inertia", actuator.inertia),
            friction=self._friction(actuator.name, actuator.friction),
        )

    def _friction(self, element: str, friction: Any) -> Any:
        if friction is None:
            return None
        roles = ("viscous", "coulomb", "offset", "viscous_asymmetry", "coulomb_asymmetry")
        new = replace(
            friction, **{role: self._leaf(element, role, getattr(friction, role)) for role in roles}
        )
        if (element, "stribeck") not in self._values:
            return new
        excess = self._leaf(element, "stribeck", None)
        return replace(new, static=add(new.coulomb or ZERO, excess or ZERO))

    def _freedom(self, element: str, freedom: Freedom) -> Freedom:
        spring = freedom.spring
        if spring is not None:
            (stiffness, k), (_, preload) = (
                self._values[element, role] for role in ("stiffness", "preload")
            )
            if k == 0.0 and preload != 0.0:
                raise InputError.of(
                    f"{element}.stiffness",
                    f"is zero, with a preload of {preload:g}: no rest position gives that",
                    "describe the constant force as the offset of friction",
                )
            rest = preload / k if k else 0.0
            unit = "rad" if "rad" in stiffness.unit else "m"
            spring = replace(
                spring,
                stiffness=self._named(stiffness.name, k, stiffness.unit, stiffness.group),
                rest=self._named(f"{element}.rest", rest, unit, stiffness.group),
            )
        return replace(
            freedom,
            friction=self._friction(element, freedom.friction),
            spring=spring,
            inertia=self._leaf(element, "inertia", freedom.inertia),
        )


def _leaves_of(value: Any) -> Iterator[str]:
    """Names of all leaves in the expressions of a description, wherever they stand; not those of its table."""
    if isinstance(value, Constant | Leaf | Call):
        yield from leaves(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves_of(item)
    elif is_dataclass(value) and not isinstance(value, type | ParameterTable):
        for field in fields(value):
            yield from _leaves_of(getattr(value, field.name))
