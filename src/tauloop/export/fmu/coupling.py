"""What of a machine is connected with what of an FMU: names, factors and units, all that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.export.fmu.foreign import ForeignFmu, ForeignVariable
from tauloop.mechanism.description import units
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.mechanism.description.units import Dimension, UnitError, literal, parse_unit
from tauloop.mechanism.suggestions import listing, suggestion


@dataclass(frozen=True, kw_only=True)
class FmuCoupling(Options):
    """An FMU of somebody else as actuator, drive or controller of a machine.

    Attributes:
        fmu: take this FMU (2 or 3, co-simulation) as an actuator, a drive or the controller; it is
            a program, and runs with your rights.
        connect: what is set from what, with a factor where it must be, such as 'speed=200
            rad/m*leg1.motor.velocity' or 'leg1.motor.force=200 rad/m*torque'; equal names are
            connected without it.
        fmu_start: parameters of the FMU and inputs that nothing sets, such as 'R=0.5', in its units
            or with a unit.
        coupling_step: between exchanges of the two, such as 0.1ms; 1 ms, or as the controller's
            samples, without it. A run with half of it is made too, and is the result.
        fmu_limit: let the FMU unpack to this many MB; without it to 2000 MB, to 200 times its size
            where that is more than 100 MB, and to 10 000 files.

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
    """One number on its way: target = gain source + offset, of an FMU's variable and a machine's quantity."""

    reference: int
    place: int
    gain: float
    offset: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Connections:
    """Links between a machine's quantities and an FMU's variables.

    Attributes:
        inputs: of the FMU, from quantities.
        outputs: of the FMU, to forces of actuators.
        drives: every actuator that the FMU drives, by name.
        reads_asked: whether a force that is asked for is among the inputs.
    """

    inputs: tuple[_Link, ...]
    outputs: tuple[_Link, ...]
    drives: tuple[str, ...]
    reads_asked: bool

    def sent(self, quantities: np.ndarray) -> dict[int, float]:
        """Inputs by reference from quantities of the machine (n,), SI."""
        return {
            link.reference: link.gain * float(quantities[link.place]) + link.offset
            for link in self.inputs
        }

    def received(self, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Forces (n_u,) from outputs; what the FMU does not drive is as it was asked for."""
        forces = np.array(asked, dtype=float)
        for link, value in zip(self.outputs, values, strict=True):
            forces[link.place] = link.gain * value + link.offset
        return forces

    @property
    def output_references(self) -> list[int]:
        """References of the outputs."""
        return [link.reference for link in self.outputs]


def connected(
    fmu: ForeignFmu,
    coupling: FmuCoupling,
    quantities: Mapping[str, str],
    actuators: Sequence[str],
    forces: Sequence[str],
) -> Connections:
    """Links as they are asked for, and between equal names.

    Args:
        fmu: opened.
        coupling: connections and starts.
        quantities: of the machine: unit of each by name, in the order of their numbers.
        actuators: their names.
        forces: units of their forces.

    Raises:
        InputError: all that is wrong at once: unknown names, two sources of one target, units that
            do not fit, inputs that nothing sets, no output that reaches the machine.
    """
    problems, targets = (
        Problems(),
        dict(zip((f"{name}.force" for name in actuators), forces, strict=True)),
    )
    inputs = {
        name: variable for name, variable in fmu.variables.items() if variable.causality == "input"
    }
    outputs = {
        name: variable for name, variable in fmu.variables.items() if variable.causality == "output"
    }
    asked = dict(coupling.connect)
    asked |= {name: name for name in inputs if name in quantities and name not in asked}
    asked |= {name: name for name in outputs if name in targets and name not in asked}
    order, links_in, links_out, drives = list(quantities), list[_Link](), list[_Link](), list[str]()
    for target, text in asked.items():
        where = f"connect {target}"
        factor, _, source = (part.strip() for part in text.rpartition("*"))
        into, out_of = (inputs, quantities) if target in inputs else (targets, outputs)
        with problems.collecting(InputError):
            _require(where, target, source, into, out_of, inputs, targets)
            if target in inputs:
                variable = inputs[target]
                scale = _scale(where, factor, variable, quantities[source], from_machine=True)
                gain, offset = scale / variable.factor, -variable.offset / variable.factor
                links_in.append(
                    _Link(
                        reference=variable.reference,
                        place=order.index(source),
                        gain=gain,
                        offset=offset,
                    )
                )
            else:
                variable = outputs[source]
                scale = _scale(where, factor, variable, targets[target], from_machine=False)
                gain, offset = scale * variable.factor, scale * variable.offset
                place = list(targets).index(target)
                links_out.append(
                    _Link(reference=variable.reference, place=place, gain=gain, offset=offset)
                )
                drives.append(actuators[place])
    for name in inputs:
        if name not in asked and name not in coupling.fmu_start:
            remedy = f"--connect '{name}=QUANTITY' or --fmu-start {name}=VALUE; quantities are {listing(order, 8)}"
            problems.add(f"connect {name}", "nothing sets this input of the FMU", remedy)
    if not any(target in targets for target in asked):
        what = "no output of the FMU reaches an actuator"
        remedy = (
            f"--connect '{next(iter(targets))}=OUTPUT'; outputs are {listing(outputs) or 'none'}"
        )
        problems.add("connect", what, remedy)
    InputError.raise_if_any(problems)
    reads_asked = any(order[link.place] in targets for link in links_in)
    return Connections(
        inputs=tuple(links_in),
        outputs=tuple(links_out),
        drives=tuple(drives),
        reads_asked=reads_asked,
    )


def _require(
    where: str,
    target: str,
    source: str,
    into: Mapping[str, object],
    out_of: Mapping[str, object],
    inputs: Mapping[str, ForeignVariable],
    targets: Mapping[str, str],
) -> None:
    """Refuse names on either side that there are not, and variables that are no plain numbers."""
    problems = Problems()
    if target not in into:
        known = (*inputs, *targets)
        remedy = suggestion(target, known) or f"inputs of the FMU and forces: {listing(known)}"
        problems.add(
            where, f"neither the FMU has an input {target!r}, nor the machine such a force", remedy
        )
    elif source not in out_of:
        what = f"{'the machine has no quantity' if target in inputs else 'the FMU has no output'} {source!r}"
        problems.add(
            where,
            what,
            suggestion(source, out_of) or f"choose among {listing(out_of, 20) or 'none'}",
        )
    for variable in (inputs.get(target), out_of.get(source)):
        if isinstance(variable, ForeignVariable) and not variable.is_number:
            what = f"{variable.name} of the FMU is {variable.kind}"
            problems.add(
                where, what, "connect 64-bit floating-point numbers; set others by --fmu-start"
            )
    InputError.raise_if_any(problems)


def _scale(
    where: str, factor: str, variable: ForeignVariable, unit: str, *, from_machine: bool
) -> float:
    """The factor in SI units, whose unit must lead from that of the source to that of the target.

    Raises:
        InputError: it is no number with a unit, or leads elsewhere.
    """
    machine = parse_unit(unit).dimension
    try:
        number = literal(factor) if factor else None
    except UnitError as error:
        raise InputError.of(where, error.what, error.remedy) from None
    if variable.dimension is None:
        if variable.unit and not factor:
            what = f"{variable.name} of the FMU is in {variable.unit}, which no machine has, and this is in {unit}"
            raise InputError.of(where, what, "write a factor in front, such as 12.5*NAME")
        return 1.0 if number is None else number.value
    source, target = (
        (machine, variable.dimension) if from_machine else (variable.dimension, machine)
    )
    by = Dimension() if number is None else number.dimension
    if not (source * by).matches(target):
        has = f"{_words(source)}{f' times {_words(by)}' if factor else ''}"
        needed = target / source
        remedy = (
            "leave the factor's unit out"
            if needed.is_one
            else f"write a factor in {needed} in front"
        )
        raise InputError.of(where, f"is in {_words(target)}, and would be set from {has}", remedy)
    return 1.0 if number is None else number.value


def _words(dimension: Dimension) -> str:
    return str(dimension) or "no unit"
