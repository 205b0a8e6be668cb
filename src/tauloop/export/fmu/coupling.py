"""Connections between a machine and an FMU: names, factors and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.records import dataclass
from tauloop.export.fmu.foreign import ForeignFmu, ForeignVariable
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import Dimension, UnitError, literal, parse_unit
from tauloop.mechanism.suggestions import listing, suggestion


@dataclass(frozen=True, kw_only=True)
class FmuCoupling(Options):
    """Options for a third-party FMU as actuator, drive or controller of a machine.

    Attributes:
        fmu: use this FMU (2 or 3, co-simulation) as an actuator, a drive or the controller; an FMU
            is a program and runs with your privileges.
        connect: connect a target with a source, with a factor if their units differ, such as
            'speed=200 rad/m*leg1.motor.velocity' or 'leg1.motor.force=200 rad/m*torque'; equal
            names are connected automatically.
        fmu_start: set parameters of the FMU and inputs without a source, such as 'R=0.5', in the
            FMU's units or with a unit.
        coupling_step: time between exchanges of machine and FMU, such as 0.1ms; default: 1 ms, or
            the controller's sampling period. The result is that of a second run with half the
            step; the difference estimates the error.
        fmu_limit: unpack the FMU up to this size, MB; default: 2000 MB, and, above 100 MB, 200 times
            the packed size; at most 10 000 files are unpacked.

    Examples:
        >>> import tauloop as tl
        >>> tl.FmuCoupling(fmu="motor.fmu", connect={"leg1.motor.force": "torque"}, coupling_step=1e-4).fmu_start
        {}
    """

    fmu: Path | None = None
    connect: Mapping[str, str] = option(
        factory=dict, read=pairs_reader("connect", "speed=leg1.motor.velocity"), repeated=True
    )
    fmu_start: Mapping[str, str | float | bool] = option(
        factory=dict, read=pairs_reader("fmu_start", "R=0.5"), repeated=True
    )
    coupling_step: float | None = option(None, above=0.0, unit=units.TIME)
    fmu_limit: float | None = option(None, above=0.0, metavar="MB")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """Connection of an FMU variable with a machine quantity: target = gain * source + offset.

    Attributes:
        reference: value reference of the FMU variable.
        index: index of the machine's quantity, or of the actuator's force.
        gain, offset: conversion of the units, with the user's factor.
    """

    reference: int
    index: int
    gain: float
    offset: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Connections:
    """Links between a machine's quantities and an FMU's variables.

    Attributes:
        inputs: links from the machine's quantities to inputs of the FMU.
        outputs: links from outputs of the FMU to forces of actuators.
        drives: names of the actuators that the FMU drives.
        reads_requested_forces: whether an input of the FMU is a requested force.
    """

    inputs: tuple[_Link, ...]
    outputs: tuple[_Link, ...]
    drives: tuple[str, ...]
    reads_requested_forces: bool

    def sent(self, quantities: np.ndarray) -> dict[int, float]:
        """Return inputs by value reference, from the machine's quantities (n,), SI."""
        return {
            link.reference: link.gain * float(quantities[link.index]) + link.offset
            for link in self.inputs
        }

    def received(self, values: np.ndarray, requested: np.ndarray) -> np.ndarray:
        """Return the actuator forces (n_u,) from the FMU's outputs.

        An actuator without a link keeps its requested force.
        """
        forces = np.array(requested, dtype=float)
        for link, value in zip(self.outputs, values, strict=True):
            forces[link.index] = link.gain * value + link.offset
        return forces

    @property
    def output_references(self) -> list[int]:
        """Value references of the outputs."""
        return [link.reference for link in self.outputs]


def connected(
    fmu: ForeignFmu,
    coupling: FmuCoupling,
    quantities: Mapping[str, str],
    actuators: Sequence[str],
    forces: Sequence[str],
) -> Connections:
    """Return the requested links, and links between equal names.

    Args:
        fmu: the opened FMU.
        coupling: connections and start values.
        quantities: units of the machine's quantities by name, in the order of their values.
        actuators: names of the actuators.
        forces: units of the actuators' forces.

    Raises:
        InputError: a name is unknown, units do not fit, an input has no source, or no output is
            connected to an actuator; all errors are reported together.
    """
    problems = Problems()
    targets = dict(zip((f"{name}.force" for name in actuators), forces, strict=True))
    inputs = {
        name: variable for name, variable in fmu.variables.items() if variable.causality == "input"
    }
    outputs = {
        name: variable for name, variable in fmu.variables.items() if variable.causality == "output"
    }
    # equal names are connected automatically
    sources = dict(coupling.connect)
    sources |= {name: name for name in inputs if name in quantities and name not in sources}
    sources |= {name: name for name in outputs if name in targets and name not in sources}
    order = list(quantities)
    links_in: list[_Link] = []
    links_out: list[_Link] = []
    drives: list[str] = []
    for target, text in sources.items():
        where = f"connect {target}"
        factor, _, source = (part.strip() for part in text.rpartition("*"))
        into, out_of = (inputs, quantities) if target in inputs else (targets, outputs)
        with problems.collecting(InputError):
            _check_link(where, target, source, into, out_of, inputs, targets)
            if target in inputs:
                variable = inputs[target]
                scale = _scale(where, factor, variable, quantities[source], from_machine=True)
                gain, offset = scale / variable.factor, -variable.offset / variable.factor
                links_in.append(
                    _Link(
                        reference=variable.reference,
                        index=order.index(source),
                        gain=gain,
                        offset=offset,
                    )
                )
            else:
                variable = outputs[source]
                scale = _scale(where, factor, variable, targets[target], from_machine=False)
                gain, offset = scale * variable.factor, scale * variable.offset
                index = list(targets).index(target)
                links_out.append(
                    _Link(reference=variable.reference, index=index, gain=gain, offset=offset)
                )
                drives.append(actuators[index])
    for name in inputs:
        if name not in sources and name not in coupling.fmu_start:
            remedy = (
                f"connect it with --connect '{name}=QUANTITY', or set it with --fmu-start {name}=VALUE; "
                f"quantities are {listing(order, 8)}"
            )
            problems.add(f"connect {name}", "this input of the FMU has no source", remedy)
    if not any(target in targets for target in sources):
        message = "no output of the FMU is connected to an actuator"
        remedy = (
            f"connect one with --connect '{next(iter(targets))}=OUTPUT'; outputs are "
            f"{listing(outputs) or 'none'}"
        )
        problems.add("connect", message, remedy)
    InputError.raise_if_any(problems)
    reads_requested_forces = any(order[link.index] in targets for link in links_in)
    return Connections(
        inputs=tuple(links_in),
        outputs=tuple(links_out),
        drives=tuple(drives),
        reads_requested_forces=reads_requested_forces,
    )


def _check_link(
    where: str,
    target: str,
    source: str,
    into: Mapping[str, object],
    out_of: Mapping[str, object],
    inputs: Mapping[str, ForeignVariable],
    targets: Mapping[str, str],
) -> None:
    """Reject unknown names on either side, and variables that are not plain numbers."""
    problems = Problems()
    if target not in into:
        known = (*inputs, *targets)
        remedy = suggestion(target, known) or f"inputs of the FMU and forces: {listing(known)}"
        problems.add(
            where, f"{target!r} is neither an input of the FMU nor a force of an actuator", remedy
        )
    elif source not in out_of:
        side = "the machine has no quantity" if target in inputs else "the FMU has no output"
        problems.add(
            where,
            f"{side} {source!r}",
            suggestion(source, out_of) or f"choose among {listing(out_of, 20) or 'none'}",
        )
    for variable in (inputs.get(target), out_of.get(source)):
        if isinstance(variable, ForeignVariable) and not variable.is_number:
            message = f"{variable.name} of the FMU has the type {variable.kind}"
            remedy = (
                "connect 64-bit floating-point variables only; set other variables with --fmu-start"
            )
            problems.add(where, message, remedy)
    InputError.raise_if_any(problems)


def _scale(
    where: str, factor: str, variable: ForeignVariable, unit: str, *, from_machine: bool
) -> float:
    """Return the factor in SI units.

    The unit of the source times the unit of the factor must be the unit of the target.

    Raises:
        InputError: the factor is not a number with a unit, or its unit does not fit.
    """
    machine = parse_unit(unit).dimension
    try:
        number = literal(factor) if factor else None
    except UnitError as error:
        raise InputError.of(where, error.what, error.remedy) from None
    if variable.dimension is None:
        if variable.unit and not factor:
            message = (
                f"{variable.name} of the FMU is in {variable.unit}, a unit that no machine quantity "
                f"has; the machine's quantity is in {unit}"
            )
            raise InputError.of(where, message, "write a factor in front, such as 12.5*NAME")
        return 1.0 if number is None else number.value
    source, target = variable.dimension, machine
    if from_machine:
        source, target = machine, variable.dimension
    factor_dimension = Dimension() if number is None else number.dimension
    if not (source * factor_dimension).matches(target):
        source_text = _dimension_text(source)
        if factor:
            source_text += f" times {_dimension_text(factor_dimension)}"
        needed = target / source
        remedy = "omit the unit of the factor"
        if not needed.is_one:
            remedy = f"write a factor in {needed} in front"
        message = f"is in {_dimension_text(target)}, but its source is in {source_text}"
        raise InputError.of(where, message, remedy)
    return 1.0 if number is None else number.value


def _dimension_text(dimension: Dimension) -> str:
    return str(dimension) or "no unit"
