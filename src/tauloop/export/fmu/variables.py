"""Variables of an FMU: names, units and roles of all its numbers, in the order of their value references."""

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

#: Guards of events count from so far beyond zero (SI), for zero itself is often rounding; positions
#: are known better.
NEAR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuVariable:
    """A variable of an FMU; all are 64-bit floating-point numbers in SI units.

    Attributes:
        name: of the variable, such as ``platform.x``.
        causality: "parameter", "input", "output", "local" or "independent".
        variability: "tunable", "continuous" or "discrete".
        unit: SI; "1" for a plain number.
        start: value at the start; None where it is calculated.
        least, most: bounds of a parameter.
        nominal: typical size; None where nothing is known of it.
        shown: unit that the machine's file has it in, with the SI value of one such; None for that
            of SI.
        meaning: what it is.
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


def named(
    names: Iterable[str], units: Iterable[str], **attributes: object
) -> tuple[FmuVariable, ...]:
    """Variables that have all but name and unit in common."""
    return tuple(
        FmuVariable(name=name, unit=unit, **attributes)  # type: ignore[arg-type]
        for name, unit in zip(names, units, strict=True)
    )


def parameter_variable(parameter: Parameter) -> FmuVariable:
    """A leaf parameter that importers may change."""
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
    """All variables of an FMU, part by part; a part begins where the one before it ends.

    Attributes:
        parameters, inputs, states, outputs, modes: in the order of what the equations take and
            give.
        turns: speeds at whose zeros dry friction turns: event indicators without a mode.
    """

    parameters: tuple[FmuVariable, ...] = ()
    inputs: tuple[FmuVariable, ...] = ()
    states: tuple[FmuVariable, ...] = ()
    outputs: tuple[FmuVariable, ...] = ()
    modes: tuple[FmuVariable, ...] = ()
    turns: tuple[FmuVariable, ...] = ()

    def __post_init__(self) -> None:
        """Refuse names that two variables have.

        Raises:
            InputError: which ones.
        """
        twice = [
            name
            for name, count in Counter(variable.name for variable in self.all).items()
            if count > 1
        ]
        InputError.raise_if_any(
            Problem(
                where=name,
                what="two variables of the FMU have this name",
                remedy="rename one in the machine's file",
            )
            for name in twice
        )

    @property
    def rates(self) -> tuple[FmuVariable, ...]:
        """Derivatives of the states."""
        return tuple(
            FmuVariable(name=f"der({state.name})", causality="local", unit=rate_unit(state.unit))
            for state in self.states
        )

    @property
    def guards(self) -> tuple[FmuVariable, ...]:
        """Event indicators: those of the modes, and speeds that turn."""
        return (
            *(FmuVariable(name=f"{mode.name}.guard", causality="local") for mode in self.modes),
            *self.turns,
        )

    @property
    def all(self) -> tuple[FmuVariable, ...]:
        """Every variable at its value reference; the time is first."""
        time = FmuVariable(name="time", causality="independent", unit="s")
        parts = (
            self.parameters,
            self.inputs,
            self.states,
            self.rates,
            self.outputs,
            self.modes,
            self.guards,
        )
        return (time, *(variable for part in parts for variable in part))

    @property
    def first_state(self) -> int:
        """Value reference of the first state."""
        return 1 + len(self.parameters) + len(self.inputs)

    def tables(self) -> str:
        """C text of starts, bounds and sizes."""
        starts = [0.0 if variable.start is None else variable.start for variable in self.all]
        settable = [float(state.start is not None) for state in self.states]
        lines = [
            table("tl_start", starts),
            table("tl_least", [max(parameter.least, -1e308) for parameter in self.parameters]),
            table("tl_most", [min(parameter.most, 1e308) for parameter in self.parameters]),
            table("tl_nominal", [state.nominal or 1.0 for state in self.states]),
            table("tl_settable", settable),
            table("tl_near", [NEAR] * len(self.modes)),
        ]
        return "\n".join(lines)


def rate_unit(unit: str) -> str:
    """Unit of a derivative in time."""
    return {"1": "1/s", "m/s": "m/s^2", "rad/s": "rad/s^2", "J": "W"}.get(unit, f"{unit}/s")


def table(name: str, values: Iterable[float]) -> str:
    """A table of numbers in C, never empty."""
    listed = [number(float(value)) for value in values] or ["0.0"]
    return f"static const double {name}[{len(listed)}] = {{{', '.join(listed)}}};"
