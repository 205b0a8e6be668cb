"""Variables of an FMU: names, units and roles, in the order of their value references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.c.printing.source import number
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.expression import Parameter

#: Event guards switch at this distance beyond zero (SI), because a value near zero may be a
#: rounding error. Positions are more accurate than this distance.
GUARD_OFFSET = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuVariable:
    """A variable of an FMU; all are 64-bit floating-point numbers in SI units.

    Attributes:
        name: name, such as ``platform.x``.
        causality: "parameter", "input", "output", "local" or "independent".
        variability: "tunable", "continuous" or "discrete".
        unit: SI unit; "1" for a plain number.
        start: value at the start; None if it is calculated.
        least, most: bounds of a parameter.
        nominal: typical absolute value; None if unknown.
        shown: display unit (the unit in the machine file) and its SI value; None if numbers are
            displayed in the SI unit.
        meaning: description.
    """

    name: str
    causality: str = "output"
    variability: str = "continuous"
    unit: str = "1"
    start: float | None = None
    least: float = -np.inf
    most: float = np.inf
    nominal: float | None = None
    shown: tuple[str, float] | None = None
    meaning: str = ""


def named_variables(
    names: Iterable[str], units: Iterable[str], **attributes: object
) -> tuple[FmuVariable, ...]:
    """Return variables with these names and units; all have the same other `attributes`."""
    return tuple(
        FmuVariable(name=name, unit=unit, **attributes)  # type: ignore[arg-type]
        for name, unit in zip(names, units, strict=True)
    )


def parameter_variable(parameter: Parameter) -> FmuVariable:
    """Return the variable of an independent parameter, which importers may change."""
    unit = si_unit(parameter.unit)
    return FmuVariable(
        name=parameter.name,
        causality="parameter",
        variability="tunable",
        unit=unit,
        start=parameter.value,
        least=parameter.lower,
        most=parameter.upper,
        nominal=abs(parameter.value) or None,
        shown=(parameter.unit, parameter.scale) if unit != "1" and parameter.unit != unit else None,
        meaning=parameter.source,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuVariables(ReprMixin):
    """All variables of an FMU, in groups that follow the order of the value references.

    Attributes:
        parameters, inputs, states, outputs, modes: variables in the order of the equations'
            arguments and results.
        turns: speeds with dry friction. They are event indicators because the friction changes
            direction where a speed is zero. They do not switch a mode.
    """

    parameters: tuple[FmuVariable, ...] = ()
    inputs: tuple[FmuVariable, ...] = ()
    states: tuple[FmuVariable, ...] = ()
    outputs: tuple[FmuVariable, ...] = ()
    modes: tuple[FmuVariable, ...] = ()
    turns: tuple[FmuVariable, ...] = ()

    def __post_init__(self) -> None:
        """Reject variables with equal names.

        Raises:
            InputError: names that occur more than once.
        """
        counts = Counter(variable.name for variable in self.all)
        repeated = [name for name, count in counts.items() if count > 1]
        InputError.raise_if_any(
            Problem(
                where=name,
                what=f"{counts[name]} variables of the FMU have this name",
                remedy="rename all but one of them in the machine's file",
            )
            for name in repeated
        )

    @property
    def rates(self) -> tuple[FmuVariable, ...]:
        """Return the derivatives of the states."""
        return tuple(
            FmuVariable(name=f"der({state.name})", causality="local", unit=rate_unit(state.unit))
            for state in self.states
        )

    @property
    def guards(self) -> tuple[FmuVariable, ...]:
        """Return the event indicators: guards of the modes, and speeds with dry friction."""
        return (
            *(FmuVariable(name=f"{mode.name}.guard", causality="local") for mode in self.modes),
            *self.turns,
        )

    @property
    def all(self) -> tuple[FmuVariable, ...]:
        """Return all variables in the order of their value references; the time is first."""
        time = FmuVariable(name="time", causality="independent", unit="s")
        groups = (
            self.parameters,
            self.inputs,
            self.states,
            self.rates,
            self.outputs,
            self.modes,
            self.guards,
        )
        return (time, *(variable for group in groups for variable in group))

    @property
    def first_state(self) -> int:
        """Return the value reference of the first state."""
        return 1 + len(self.parameters) + len(self.inputs)

    def tables(self) -> str:
        """Return C tables with start values, bounds and nominal values of the variables."""
        starts = [0.0 if variable.start is None else variable.start for variable in self.all]
        settable = [float(state.start is not None) for state in self.states]
        lines = [
            table("tl_start", starts),
            table("tl_least", [max(parameter.least, -1e308) for parameter in self.parameters]),
            table("tl_most", [min(parameter.most, 1e308) for parameter in self.parameters]),
            table("tl_nominal", [state.nominal or 1.0 for state in self.states]),
            table("tl_settable", settable),
            table("tl_near", [GUARD_OFFSET] * len(self.modes)),
        ]
        return "\n".join(lines)


def rate_unit(unit: str) -> str:
    """Return the unit of a time derivative."""
    return {"1": "1/s", "m/s": "m/s^2", "rad/s": "rad/s^2", "J": "W"}.get(unit, f"{unit}/s")


def table(name: str, values: Iterable[float]) -> str:
    """Return a C table of numbers, with at least one entry."""
    listed = [number(float(value)) for value in values] or ["0.0"]
    return f"static const double {name}[{len(listed)}] = {{{', '.join(listed)}}};"
