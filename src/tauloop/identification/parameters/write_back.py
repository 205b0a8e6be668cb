"""Mechanisms with identified dynamic parameters, which can be saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.equations.values import BODY_SUFFIXES, SLENDER_SUFFIXES, DynamicParameter
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import (
    ZERO,
    Call,
    Constant,
    Expression,
    Leaf,
    Parameter,
    ParameterTable,
    add,
    evaluate,
    leaves,
)
from tauloop.mechanism.model import Actuator, Body, Freedom, Joint, Mechanism, Rod, SlenderPart
from tauloop.mechanism.suggestions import listing
from tauloop.model import Model

#: Independent parameters represent dynamic parameters if no relative error exceeds this value.
_REPRESENTED = 1e-11
#: Maximum number of Gauss-Newton steps to find such independent parameters.
_MAX_STEPS = 30


def identified_mechanism(
    model: Model, values: np.ndarray, *, source: str = "identified"
) -> Mechanism:
    """Return the model's mechanism with new values of the dynamic parameters.

    The values can be those of `ConsistentIdentification.parameters`. If values of the machine's
    independent parameters represent them exactly, only these values change: expressions, shared
    parameters and the text of the machine file remain. This is the case if the unknowns of the
    identification were parameters of the file, or if the file contains all ten numbers of every
    body. Otherwise every dynamic parameter becomes an independent parameter (``link_1.mcx``), so
    parts of equal legs no longer share parameters. Independent parameters that are no longer used
    are removed.

    Args:
        model: the machine.
        values: (n_pi,) values of `model.parameters`, SI.
        source: source of the values in the provenance of the machine.

    Raises:
        InputError: there is not one finite value for each parameter, or a spring has zero
            stiffness and a preload.
    """
    values = np.asarray(values, dtype=float)
    has_shape = values.shape == (len(model.parameters),)
    if not has_shape or not np.isfinite(values).all():
        raise InputError.of(
            "values",
            "contains values that are not finite" if has_shape else f"has shape {values.shape}",
            f"give {len(model.parameters)} finite values, one for each of model.parameters",
        )
    writer = _LeafWriter(
        model.mechanism, dict(zip(model.parameters, values.tolist(), strict=True)), source
    )
    written = writer.mechanism()
    used = set(_leaves_of(written))
    dynamic = [name for name in model.mechanism.parameters.names if name not in used]
    changed = _own_values(model, values, dynamic)
    if changed is None:
        return written
    return _with_provenance(model.mechanism, changed, source)


def _own_values(model: Model, values: np.ndarray, names: list[str]) -> dict[str, float] | None:
    """Return values of independent parameters that represent given dynamic parameters.

    Gauss-Newton steps minimize the relative errors of pi(theta) = values. If the solution is not
    unique, the solution nearest to the present values is used.

    Args:
        model: the machine.
        values: dynamic parameters (n_pi,).
        names: independent parameters on which only dynamic parameters depend.

    Returns:
        Values by name; None if no values represent the dynamic parameters.
    """
    if not names:
        return None
    table = model.mechanism.parameters
    theta = ca.SX.sym("theta", len(names))
    known: dict[str, Any] = dict(table.values)
    known |= {name: theta[k] for k, name in enumerate(names)}
    pi = ca.vertcat(*(ca.SX(evaluate(p.expression, known)) for p in model.parameters))
    scale = np.maximum(np.abs(values), np.abs(model.pi))
    scale = np.where(scale > 0.0, scale, 1.0)
    function = ca.Function("pi", [theta], [pi, ca.densify(ca.jacobian(pi, theta))])
    current = np.array([table[name].value for name in names])
    unit = np.where(current != 0.0, np.abs(current), 1.0)
    for _ in range(_MAX_STEPS):
        result, jacobian = (np.array(item) for item in function(current))
        residual = (values - result.ravel()) / scale
        if not np.isfinite(residual).all():
            return None
        if np.abs(residual).max() <= _REPRESENTED:
            break
        step, *_ = np.linalg.lstsq(jacobian / scale[:, None] * unit, residual)
        current = current + unit * step
    else:
        return None
    before = (table[name].value for name in names)
    pairs = zip(names, current.tolist(), before, strict=True)
    return {name: new for name, new, old in pairs if abs(new - old) > _REPRESENTED * abs(old)}


def _with_provenance(mechanism: Mechanism, values: Mapping[str, float], source: str) -> Mechanism:
    """Return the mechanism with new values of independent parameters, and their source."""
    parameters = tuple(
        replace(parameter, value=values[parameter.name], status="chosen", source=source)
        if parameter.name in values
        else parameter
        for parameter in mechanism.parameters
    )
    return replace(mechanism, parameters=ParameterTable(parameters))


def mechanism_with_estimates(
    mechanism: Mechanism, base: BaseParameters, estimates: np.ndarray, *, source: str = "identified"
) -> Mechanism:
    """Return the mechanism with estimates of combinations of its independent parameters.

    Among all values theta with R theta = estimates, where R is the regrouping, the values with the
    smallest relative changes are used. Directions that the data do not determine therefore do not
    change.

    Args:
        mechanism: the machine.
        base: base parameters, whose parameters are independent parameters of the machine.
        estimates: values (r,) of the base parameters, SI.
        source: source of the changed values in the provenance of the machine.

    Raises:
        InputError: a parameter does not belong to the machine, or its new value is outside its
            bounds.
    """
    table = mechanism.parameters
    missing = [name for name in base.parameters if name not in table.names]
    if missing:
        what = f"{listing(missing)} are not parameters of the machine file"
        raise InputError.of("machine", what, "describe these parameters in the file, or omit them")
    theta = np.array([table[name].value for name in base.parameters])
    known = np.abs(theta[theta != 0.0])
    scale = np.where(theta != 0.0, np.abs(theta), known.min(initial=1.0))
    scaled = base.regrouping * scale
    change = scale * np.linalg.lstsq(scaled, estimates - base.regrouping @ theta)[0]
    # lstsq returns rounding errors instead of zeros for parameters outside the regrouping
    change = np.where(np.abs(base.regrouping).any(axis=0), change, 0.0)
    problems = Problems()
    values: dict[str, float] = {}
    for name, new, shift in zip(base.parameters, (theta + change).tolist(), change, strict=True):
        parameter = table[name]
        if not parameter.lower <= new <= parameter.upper:
            what = f"is identified as {new:.4g} {si_unit(parameter.unit)}, outside its bounds"
            remedy = "excite it more, give its value (--known), or identify with --consistent"
            problems.add(name, what, remedy, file=mechanism.file)
        if shift:
            values[name] = new
    InputError.raise_if_any(problems)
    return _with_provenance(mechanism, values, source)


class _LeafWriter:
    """Replaces the expressions of dynamic parameters by new independent parameters."""

    def __init__(
        self, mechanism: Mechanism, values: dict[DynamicParameter, float], source: str
    ) -> None:
        self._old = mechanism
        self._values = {(p.element, p.role): (p, value) for p, value in values.items()}
        self._source = source
        self._new: list[Parameter] = []

    def mechanism(self) -> Mechanism:
        """Return the mechanism, without parameters that are no longer used."""
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
        used = set(_leaves_of(new)) - {parameter.name for parameter in self._new}
        remaining = [parameter for parameter in old.parameters if parameter.name in used]
        return replace(new, parameters=ParameterTable((*remaining, *self._new)))

    def _replacement(self, element: str, role: str, old: Expression | None) -> Expression | None:
        """Return the expression that replaces `old`: `old` if it is not a dynamic parameter."""
        if (element, role) not in self._values:
            return old
        parameter, value = self._values[element, role]
        return self._new_parameter(parameter.name, value, parameter.unit, parameter.group)

    def _new_parameter(self, name: str, value: float, unit: str, group: str) -> Leaf:
        """Add an independent parameter with a unique name and return its expression."""
        used_names = set(self._old.parameters.names) | {parameter.name for parameter in self._new}
        while name in used_names:
            name = f"identified.{name}"
        self._new.append(
            Parameter(
                name=name, value=value, unit=unit, group=group, status="chosen", source=self._source
            )
        )
        return Leaf(name)

    def _body(self, body: Body) -> Body:
        if body.inertia is None:
            return body
        return replace(body, inertia=self._inertia(body.name, "", body.inertia))

    def _inertia(self, element: str, prefix: str, inertia: Any) -> Any:
        """Return an inertia of a body or a slender part with replaced parameters."""
        roles = SLENDER_SUFFIXES if isinstance(inertia, SlenderPart) else BODY_SUFFIXES
        values: list[Any] = [
            self._replacement(element, prefix + role, old)
            for role, old in zip(roles, inertia.parameters, strict=True)
        ]
        return type(inertia).of(values)

    def _rod(self, rod: Rod) -> Rod:
        lower = None if rod.lower is None else self._inertia(rod.name, "", rod.lower)
        upper = None if rod.upper is None else self._inertia(rod.name, "upper_", rod.upper)
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
            inertia=self._replacement(actuator.name, "inertia", actuator.inertia),
            friction=self._friction(actuator.name, actuator.friction),
        )

    def _friction(self, element: str, friction: Any) -> Any:
        if friction is None:
            return None
        roles = ("viscous", "coulomb", "offset", "viscous_asymmetry", "coulomb_asymmetry")
        values = {role: self._replacement(element, role, getattr(friction, role)) for role in roles}
        new = replace(friction, **values)
        if (element, "stribeck") not in self._values:
            return new
        excess = self._replacement(element, "stribeck", None)
        return replace(new, static=add(new.coulomb or ZERO, excess or ZERO))

    def _freedom(self, element: str, freedom: Freedom) -> Freedom:
        spring = freedom.spring
        if spring is not None:
            stiffness, k = self._values[element, "stiffness"]
            _, preload = self._values[element, "preload"]
            if k == 0.0 and preload != 0.0:
                raise InputError.of(
                    f"{element}.stiffness",
                    f"is zero with a preload of {preload:g}, which no rest position can produce",
                    "describe the constant force as the offset of friction",
                )
            rest_position = preload / k if k else 0.0
            unit = "rad" if "rad" in stiffness.unit else "m"
            spring = replace(
                spring,
                stiffness=self._new_parameter(stiffness.name, k, stiffness.unit, stiffness.group),
                rest=self._new_parameter(f"{element}.rest", rest_position, unit, stiffness.group),
            )
        return replace(
            freedom,
            friction=self._friction(element, freedom.friction),
            spring=spring,
            inertia=self._replacement(element, "inertia", freedom.inertia),
        )


def _leaves_of(value: Any) -> Iterator[str]:
    """Yield the names of all independent parameters in the expressions of a description.

    The parameter table of the description is not searched.
    """
    if isinstance(value, Constant | Leaf | Call):
        yield from leaves(value)
    elif isinstance(value, tuple):
        for item in value:
            yield from _leaves_of(item)
    elif is_dataclass(value) and not isinstance(value, type | ParameterTable):
        for field in fields(value):
            yield from _leaves_of(getattr(value, field.name))
