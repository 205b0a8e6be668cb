"""Named positions of actuators, with a least-squares fit for redundant actuators."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import Problems
from tauloop.common.options import pairs
from tauloop.common.result import Diagnostic, diagnostic
from tauloop.equations.named_values import full_name, named_values
from tauloop.equations.ports import Port, numbers
from tauloop.model import Model
from tauloop.model.positions.encoder_fit import (
    MAX_STANDARDIZED_RESIDUAL,
    ActuatorFit,
    all_positions,
    determines_pose,
    encoder_deviations,
    fit_actuators,
)

#: Standard deviations of encoders: a number in SI units or a string with a unit, for all encoders
#: or by name; None for the defaults.
EncoderDeviations = float | str | Mapping[str, float | str] | None


def actuator_values(
    model: Model, position: object, noise: EncoderDeviations = None, where: str = "actuators"
) -> tuple[np.ndarray, ActuatorFit | None]:
    """Return the positions (n,) of leading actuators and passive coordinates, and the fit or None.

    The leading actuators are a minimal set that determines the pose; all other actuators are
    redundant. If only leading actuators are named, there is no fit: the others keep their positions
    at the reference pose. If a redundant actuator is named, the pose is a least-squares fit to the
    named positions. If these do not determine the pose, the fit also uses the positions of the
    remaining leading actuators at the reference pose.

    Args:
        model: the machine.
        position: a row, a mapping, a string, or None for the reference pose (see `named_values`).
        noise: standard deviations of the actuators' positions, which weight them in the fit (see
            `encoder_deviations`).
        where: name of the option or argument, for messages.

    Raises:
        InputError: wrong names, units or values.
        PoseError: the pose is out of reach or singular.
    """
    ports, assembly = model.actuators.ports, model.assembly
    reference = ports.at(assembly.q)
    deviations = encoder_deviations(assembly, noise)
    if not assembly.is_redundant:
        return named_values(ports.position, where, position, reference), None
    port = all_positions(assembly, ports.position)
    named = _named_actuators(model, port, position, where)
    if set(named) <= set(assembly.leading):
        return named_values(ports.position, where, position, reference), None
    default = np.concatenate(
        [model.actuator_position(assembly.q), reference[len(assembly.leading) :]]
    )
    values = named_values(port, where, position, default)
    used = named if determines_pose(model.actuators, named) else sorted({*named, *assembly.leading})
    fit = fit_actuators(model.actuators, values, deviations=deviations, used=used)
    return fit.position, fit


def agreement(fit: ActuatorFit | None) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the consistency of actuator positions; empty without a fit."""
    if fit is None:
        return ()
    advice = (
        f"{fit.disagreement}; if the encoders' standard deviations are larger, give them "
        "(`--encoder-noise`)"
    )
    return (
        diagnostic(
            "largest standardized misfit of an actuator's position",
            fit.largest,
            at_most=MAX_STANDARDIZED_RESIDUAL,
            advice=advice,
        ),
    )


def given_columns(port: Port, position: object, where: str = "actuators") -> tuple[str, ...]:
    """Return the columns of a port whose positions are given.

    A row and None (the reference pose) give all columns.

    Args:
        port: port of leading actuators and passive degrees of freedom.
        position: see `actuator_values`.
        where: name of the option or argument, for messages.
    """
    if isinstance(position, str):
        position = pairs(where, position, Problems())
    if not isinstance(position, Mapping) or not position:
        return port.columns
    words = [str(name) for name in position]
    return tuple(
        full_name(port.columns, word, where)
        for word in words
        if not _is_rotation_component(port, word)
    )


def _named_actuators(model: Model, port: Port, position: object, where: str) -> list[int]:
    """Return the indices of the actuators whose positions are given."""
    count = len(model.mechanism.actuators)
    if position is None:
        return []
    if isinstance(position, str):
        position = pairs(where, position, Problems())
    if isinstance(position, Mapping):
        words = [str(name) for name in position]
        columns = [
            full_name(port.columns, word, where)
            for word in words
            if not _is_rotation_component(port, word)
        ]
        return sorted(k for k in range(count) if port.columns[k] in columns)
    if numbers(position, where).shape[-1:] == (port.size,):
        return list(range(count))
    return list(model.assembly.leading)


def _is_rotation_component(port: Port, name: str) -> bool:
    """Return whether a name is a component of the rotation vector of a passive quaternion."""
    return name.rpartition(".")[2] in ("rx", "ry", "rz") and name not in port.columns
