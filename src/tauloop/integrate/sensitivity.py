"""Sensitivities: derivatives of states and samples with respect to constants and start values.

Between events the state y satisfies y' = f(y, z, p) with the results z of the last sample and the
constants p. So S = dy/dp along a direction satisfies S' = f_y S + f_z dz/dp + f_p. Every call of a
routine is preceded by a call that computes its tangents (directional derivatives), for one direction
at a time. So rates, resets and samples include derivatives. The integrator treats derivatives as
states and controls their errors in the same way. At an event the derivatives jump (`tl_agree` in
`hybrid.c`). S(0) and the tangents of p define the parameters with respect to which derivatives are
taken.

Source:
    Hairer, Norsett, Wanner 1993, Solving Ordinary Differential Equations I, section I.14; at events
    Galan, Feehery, Barton 1999, Parametric sensitivity functions for hybrid discrete/continuous
    systems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.derivatives.tangents import along, moved, tangent_program
from tauloop.equations.ports import Port
from tauloop.integrate.routine import Routine, RoutineCall, program_call, split_place
from tauloop.integrate.sampled import SampledRun
from tauloop.integrate.system import HybridSystem
from tauloop.mechanism.cables import dry_friction
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import Parameter
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names

if TYPE_CHECKING:
    import xarray as xr

#: Array with the start of Newton's method, which does not affect derivatives.
_NEWTON_START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityDirection:
    """A parameter or start coordinate with respect to which derivatives are taken.

    Attributes:
        name, unit: name and unit of the parameter or start coordinate.
        start: derivative of the initial state (n,).
        constants: derivative of the constants (n_p,).
        scale: typical change of the parameter, which makes errors of all derivatives comparable.
    """

    name: str
    unit: str
    start: np.ndarray
    constants: np.ndarray
    scale: float = 1.0


def require_known(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error for names that are neither parameters nor start coordinates.

    Raises:
        InputError: the message lists all of them.
    """
    what = "{!r} is neither a parameter of this calculation nor a start coordinate"
    remedy = "see `tauloop show NAME --table`"
    InputError.raise_if_any(unknown_names(names, known, what, "sensitivities", remedy))


def require_smooth_friction(mechanism: Mechanism, problems: Problems) -> None:
    """Add problems for friction laws that jump at times which the integrator does not locate."""
    for name, key in dry_friction(mechanism):
        what = (
            f"the friction of {name} jumps at a reversal, whose time the integrator does not locate"
        )
        problems.add("sensitivities", what, f"omit {key}, or use finite differences of runs")


def by_parameter(
    parameter: Parameter, start: np.ndarray, constants: np.ndarray, value: float | None = None
) -> SensitivityDirection:
    """Return the direction of an independent parameter.

    Args:
        parameter: entry of the parameter table.
        start, constants: as in `SensitivityDirection`.
        value: value of the parameter, SI; by default the value in the table.
    """
    scale = abs(parameter.value if value is None else value) or 1.0
    unit = si_unit(parameter.unit)
    return SensitivityDirection(
        name=parameter.name, unit=unit, start=start, constants=constants, scale=scale
    )


def starts(ports: Iterable[Port], states: int, constants: int) -> dict[str, SensitivityDirection]:
    """Return directions of start coordinates by names such as position.platform.x."""
    columns = [
        (f"{port.name}.{name}", unit)
        for port in ports
        for name, unit in zip(port.columns, port.units, strict=True)
    ]
    return {
        name: SensitivityDirection(
            name=name, unit=unit, start=np.eye(states)[i], constants=np.zeros(constants)
        )
        for i, (name, unit) in enumerate(columns)
    }


def along_start(y: np.ndarray, directions: Sequence[SensitivityDirection]) -> np.ndarray:
    """Return the initial state (n,) followed by its scaled derivatives."""
    return np.concatenate([y, *(direction.scale * direction.start for direction in directions)])


def along_constants(p: np.ndarray, directions: Sequence[SensitivityDirection]) -> np.ndarray:
    """Return the constants (n_p,) followed by their scaled derivatives."""
    return np.concatenate([p, *(direction.scale * direction.constants for direction in directions)])


def course_along(course: SampledRun, directions: Sequence[SensitivityDirection]) -> SampledRun:
    """Return a run of a `sensitive` system with derivatives along directions."""
    return replace(
        course,
        y=along_start(course.y, directions),
        p=along_constants(course.p, directions),
        held=np.concatenate([course.held, np.zeros(len(directions) * len(course.held))]),
    )


def split_sensitivities(
    values: np.ndarray, directions: Sequence[SensitivityDirection]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values (N, n) and derivatives (N, n, d) from rows (N, (1 + d) n)."""
    if not directions:
        return values, np.empty((*values.shape, 0))
    parts = values.reshape(len(values), 1 + len(directions), -1)
    scale = np.array([direction.scale for direction in directions])
    return parts[:, 0].copy(), np.moveaxis(parts[:, 1:], 1, 2) / scale


def labeled(
    time: np.ndarray,
    ports: Sequence[Port],
    by: np.ndarray,
    directions: Sequence[SensitivityDirection],
) -> xr.Dataset:
    """Return derivatives as arrays over time, column and parameter, with units (SI).

    Args:
        time: times (N,), s.
        ports: ports of the quantities.
        by: derivatives (N, n, d) of the columns of the ports, one port after the other; values
            after the last port are ignored.
        directions: directions of the derivatives.
    """
    import xarray as xr

    ends = np.cumsum([0, *(port.size for port in ports)])
    return xr.Dataset(
        {
            port.name: (("time", f"{port.name}_of", "by"), by[:, end - port.size : end])
            for port, end in zip(ports, ends[1:], strict=True)
        },
        coords={
            "time": ("time", time, {"units": "s"}),
            "by": [direction.name for direction in directions],
            "by_unit": ("by", [direction.unit for direction in directions]),
        }
        | {f"{port.name}_of": list(port.columns) for port in ports}
        | {f"{port.name}_unit": (f"{port.name}_of", list(port.units)) for port in ports},
    )


def sensitive(system: HybridSystem, directions: int) -> HybridSystem:
    """Return the system with derivatives along directions.

    The derivatives follow the state, the constants and the results of samples, one direction after
    the other.

    Raises:
        InputError: a program is not differentiable.
    """
    if not directions:
        return system
    results = system.held + system.kept
    sizes = {
        "y": system.states,
        "rate": system.states,
        "guards": len(system.modes),
        "held": results,
        "z": results,
        "p": system.constants,
    }
    copies = 1 + directions
    return replace(
        system,
        states=copies * system.states,
        held=copies * results,
        kept=0,
        constants=copies * system.constants,
        directions=directions,
        rate=routine_along(system.rate, sizes, directions),
        reset=routine_along(system.reset, sizes, directions),
        sample=routine_along(system.sample, sizes, directions),
        back=routine_along(system.back, {"y": system.states, "p": system.constants}, directions),
    )


def routine_along(routine: Routine, sizes: Mapping[str, int], directions: int) -> Routine:
    """Return a routine with the tangents of all its calls.

    Args:
        routine: routine without derivatives.
        sizes: sizes of the varied arrays, without derivatives.
        directions: number of directions.
    """
    own = {name: size for name, size in routine.own.items() if name != _NEWTON_START}
    varied = set(sizes)
    calls = []
    for call in routine.calls:
        tangent = _tangent(call, varied, {*sizes, *own})
        if tangent is not None:
            varied |= {split_place(place)[0] for place in call.outputs} & own.keys()
        calls.append(replace(call, tangent=tangent))
    return replace(routine, calls=tuple(calls), directions=directions, varied={**sizes, **own})


def _tangent(call: RoutineCall, varied: set[str], differentiated: set[str]) -> RoutineCall | None:
    """Return the call that computes the tangents of a call.

    Args:
        call: the call.
        varied: arrays whose tangents may be nonzero at this call.
        differentiated: arrays that have tangents.

    Returns:
        The call of the tangents; None if no input varies, or no output has tangents.
    """
    chosen = [i for i, place in enumerate(call.inputs) if split_place(place)[0] in varied]
    if isinstance(call.function, CFunction):
        chosen = [i for i in chosen if call.function.inputs[i].name != _NEWTON_START]
    written = [i for i, place in enumerate(call.outputs) if split_place(place)[0] in differentiated]
    if call.function is None or not chosen or not written:
        return None
    places = tuple(_moved(call.inputs[i]) for i in chosen)
    if isinstance(call.function, CFunction):
        return _program_tangent(call.function, call, chosen, written)
    brief = None
    if call.brief is not None:
        function, outputs = call.brief
        brief = (
            _function_along(function, chosen, range(len(outputs))),
            tuple(map(_moved, outputs)),
        )
    return RoutineCall(
        function=_function_along(call.function, chosen, written),
        inputs=(*call.inputs, *places),
        outputs=tuple(_moved(call.outputs[i]) for i in written),
        brief=brief,
        when=call.when,
    )


def _program_tangent(
    function: CFunction, call: RoutineCall, chosen: list[int], written: list[int]
) -> RoutineCall:
    """Return the call of a program's tangents.

    Args:
        function: C function of the program.
        call: call of the function.
        chosen: indices of the inputs that vary.
        written: indices of the outputs whose tangents are computed.
    """
    ports = {
        port.name: (place, port.size)
        for port, place in zip(function.inputs, call.inputs, strict=True)
    }
    ports = dict(call.further) | ports
    varying = [function.inputs[i] for i in chosen]
    inputs = {name: place for name, (place, _) in ports.items()}
    sizes = {name: size for name, (_, size) in ports.items()}
    program = tangent_program(function.program, {port.name: port.size for port in varying})
    return program_call(
        f"{function.name}_by",
        program,
        sizes | {moved(port.name): port.size for port in varying},
        inputs | {moved(port.name): _moved(inputs[port.name]) for port in varying},
        {moved(function.outputs[i].name): _moved(call.outputs[i]) for i in written},
        is_judged=False,
    )


def _function_along(
    function: ca.Function, chosen: list[int], written: list[int] | range
) -> ca.Function:
    """Return the derivatives of the outputs `written` along changes of the inputs `chosen`."""
    symbols = function.sx_in()
    results = function.call(symbols)
    directions = [ca.SX.sym(f"d{i}", symbols[i].numel()) for i in chosen]
    tangents = along([results[i] for i in written], [symbols[i] for i in chosen], directions)
    return ca.Function(f"{function.name()}_by", [*symbols, *directions], tangents)


def _moved(place: str) -> str:
    """Return the place of the tangents of a place."""
    array, start = split_place(place)
    return f"{moved(array)} + {start}"


def sensitivity_rows(sensitivities: xr.Dataset) -> list[dict[str, object]]:
    """Return rows for tables and JSON of derivatives over time (`labeled`), with units, SI."""
    time = sensitivities["time"].values
    rows: list[dict[str, object]] = []
    if not len(time):
        return rows
    parameters = sensitivities["by"].values
    parameter_units = sensitivities["by_unit"].values
    for quantity in sensitivities.data_vars:
        values = sensitivities[quantity].values
        columns = sensitivities[f"{quantity}_of"].values
        units = sensitivities[f"{quantity}_unit"].values
        for i, (name, unit) in enumerate(zip(columns, units, strict=True)):
            for j, (by, by_unit) in enumerate(zip(parameters, parameter_units, strict=True)):
                largest = int(np.abs(values[:, i, j]).argmax())
                rows.append(
                    {
                        "of": f"{quantity}.{name}",
                        "by": str(by),
                        "unit": _unit_quotient(str(unit), str(by_unit)),
                        "largest": float(values[largest, i, j]),
                        "largest_at_s": float(time[largest]),
                        "end": float(values[-1, i, j]),
                    }
                )
    return rows


def _unit_quotient(unit: str, other: str) -> str:
    """Return the quotient of two units; compound units are in parentheses."""
    if other == "1":
        return unit
    return f"{_in_parentheses(unit)}/{_in_parentheses(other)}"


def _in_parentheses(unit: str) -> str:
    """Return a unit, in parentheses if it is a product or quotient."""
    return f"({unit})" if set(unit) & set("/ ") else unit
