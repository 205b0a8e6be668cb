"""Simulations of cable machines, with diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import Variable, columns, time_axis
from tauloop.common.errors import Problem
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic
from tauloop.equations.ports import Port
from tauloop.integrate.events import Occurrence
from tauloop.logs.log import log_of
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.cables.machines import CableMachine
from tauloop.simulation.simulation import ENERGY_BALANCED, LOOPS_CLOSED, Simulation
from tauloop.simulation.stepping.steps import Ending

if TYPE_CHECKING:
    import xarray as xr

#: A machine whose kinetic energy stays below this share of what its tensions would do over its
#: length rests.
STILL = 1e-9
#: What is left of a duration below this share of it is nothing.
OVER = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class CableEvent:
    """A cable that becomes slack or taut.

    Attributes:
        cable: its name.
        is_slack: whether it becomes slack, else taut.
        time: s.
        speed: with which its ends would have moved apart, m/s, where a cable that does not stretch
            is tautened; else 0.
        impulse: N s, likewise.
    """

    cable: str
    is_slack: bool = field(metadata=OMITTED)
    time: float = field(metadata=json_keys("time_s"))
    speed: float = field(default=0.0, metadata=json_keys("speed_m_per_s"))
    impulse: float = field(default=0.0, metadata=json_keys("impulse_N_s"))

    @property
    @in_json()
    def becomes(self) -> str:
        """Slack or taut."""
        return "slack" if self.is_slack else "taut"


@dataclass(frozen=True, slots=True, kw_only=True)
class CableStretch:
    """What happened between two changes of cables that do not stretch, or two samples of a law.

    Attributes:
        start: s.
        machine: what the machine was.
        simulation: of that, its time from zero.
        tension: of all cables at its times (N, k), N.
    """

    start: float
    machine: CableMachine
    simulation: Simulation = field(repr=False)
    tension: np.ndarray = field(repr=False)


def _last(time: np.ndarray) -> float:
    return float(time[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CableSimulation(Result):
    """A cable machine's motion.

    Attributes:
        machine: its name.
        cable_names: of the columns of tensions (k).
        time: s (N,).
        tension: N (N, k).
        parts: the simulation from change to change of cables that do not stretch; one where all do.
        events: cables that became slack or taut, in the order of time.
        occurrences: of the events that were looked for, likewise; in the coordinates of the cable
            machine.
        duration: that was asked for, s.
        ending: why it ended.
        problem: what went wrong, with the remedy; None where it reached the end.
    """

    machine: str
    cable_names: tuple[str, ...] = field(metadata=OMITTED)
    time: np.ndarray = field(metadata=json_keys("reached_s", summary=_last))
    tension: np.ndarray = field(metadata=OMITTED)
    parts: tuple[CableStretch, ...] = field(repr=False, metadata=OMITTED)
    events: tuple[CableEvent, ...]
    occurrences: tuple[Occurrence, ...]
    duration: float = field(metadata=json_keys("duration_s"))
    ending: Ending
    problem: Problem | None

    @property
    def platform(self) -> Port:
        """Names and units of the platform's positions."""
        return self.parts[0].simulation.system.model.platform.ports.position

    def coordinate(self, name: str) -> np.ndarray:
        """One coordinate by name (N,); not a number while the machine has no such one."""
        parts = []
        for part in self.parts:
            names = part.simulation.coordinate_names
            here = (
                part.simulation.coordinate(name)
                if name in names
                else np.full(len(part.simulation.time), np.nan)
            )
            parts.append(here)
        return np.concatenate(parts)

    def variables(self) -> Iterator[Variable]:
        """Positions of the platform and tensions over time; not a number while the machine has no such coordinate."""
        # where a cable is tautened two samples have the same time
        keep = np.concatenate([[True], np.diff(self.time) > 0])
        positions = np.column_stack([self.coordinate(name) for name in self.platform.columns])
        yield time_axis(self.time[keep])
        yield from columns("position", self.platform.columns, self.platform.units, positions[keep])
        yield from columns(
            "tension", self.cable_names, ["N"] * len(self.cable_names), self.tension[keep]
        )

    def log(self) -> xr.Dataset:
        """Positions of the platform and tensions over time; what has no such coordinate all the time is left out."""
        return log_of(self, "position", "tension")

    @property
    @in_json()
    def steps(self) -> int:
        """Number of steps of the integrator."""
        return sum(len(part.simulation.steps) for part in self.parts)

    @property
    @in_json()
    def final(self) -> dict[str, float]:
        """Coordinates at the end by name."""
        return self.parts[-1].simulation.final

    @property
    @in_json("largest_tension_N")
    def largest_tension(self) -> dict[str, float]:
        """Largest tension of every cable, N."""
        return dict(zip(self.cable_names, self.tension.max(axis=0), strict=True))


def diagnostics(
    model: Model, simulation: CableSimulation, is_ended: bool
) -> tuple[Diagnostic, ...]:
    """What tells whether a simulation can be trusted.

    Args:
        model: the cable machine.
        simulation: the simulation.
        is_ended: whether an event that was looked for has ended it.
    """
    bounds = cables(model.mechanism)
    reached = simulation.parts[-1].start + float(simulation.parts[-1].simulation.time[-1])
    simulations = [part.simulation for part in simulation.parts]
    largest = max(float(each.kinetic.max()) for each in simulations)
    at_stake = float(simulation.tension.max(initial=0.0)) * model.assembly.loops.length
    missing = sum(float(np.abs(each.energy_error).max()) for each in simulations)
    peaks = dict(zip(bounds, simulation.tension.max(axis=0), strict=True))
    greatest = max(float(peak) / bounds[name].greatest for name, peak in peaks.items())
    return (
        diagnostic(
            "share of the duration reached",
            reached / simulation.duration,
            at_least=None if is_ended else 1.0 - OVER,
            advice=simulation.ending.value
            if simulation.problem is None
            else simulation.problem.what,
        ),
        diagnostic(
            "energy missing from the balance between impacts, of the largest kinetic energy",
            missing / largest if largest > STILL * at_stake and np.isfinite(missing) else None,
            at_most=ENERGY_BALANCED,
            advice="tighten the tolerances or shorten the step",
        ),
        diagnostic(
            "largest residual of the loops",
            max(float(each.residual.max()) for each in simulations),
            at_most=LOOPS_CLOSED * model.assembly.loops.length,
            unit="m",
            advice="use projection, or smaller tolerances",
        ),
        diagnostic(
            "largest tension, of what a cable may bear",
            greatest,
            at_most=1.0,
            advice="a cable is pulled beyond its greatest tension: look at `tension`",
        ),
        *_limits(simulation.parts),
        *omission_diagnostics(model.mechanism),
    )


def _limits(parts: tuple[CableStretch, ...]) -> tuple[Diagnostic, ...]:
    """What lies beyond limits, each coordinate once: where it is worst."""
    worst: dict[str, Diagnostic] = {}
    for part in parts:
        limits = part.simulation.system.model.limits
        for item in limits.diagnostics(part.simulation.q, part.simulation.time + part.start):
            if item.name not in worst or (worst[item.name].value or 0.0) < (item.value or 0.0):
                worst[item.name] = item
    return tuple(worst.values())
