"""Results of simulations of cable machines, with diagnostics."""

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
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.simulation.cables.machines import CableMachine
from tauloop.simulation.simulation import ENERGY_TOLERANCE, SIMULATED_LOOP_TOLERANCE, Simulation
from tauloop.simulation.stepping.steps import Ending

if TYPE_CHECKING:
    import xarray as xr

#: Kinetic energy below which a machine counts as at rest, relative to the largest tension times the
#: characteristic length.
REST_ENERGY_RATIO = 1e-9
#: Fraction of the duration that counts as zero.
TIME_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class CableEvent:
    """A cable that becomes slack or taut.

    Attributes:
        cable: name of the cable.
        is_slack: True if it becomes slack, False if it becomes taut.
        time: time of the event, s.
        speed: speed at which the ends of an inelastic cable move apart when it becomes taut, m/s;
            0 for other events.
        impulse: impulse of an inelastic cable that becomes taut, N s; 0 for other events.
    """

    cable: str
    is_slack: bool = field(metadata=OMITTED)
    time: float = field(metadata=json_keys("time_s"))
    speed: float = field(default=0.0, metadata=json_keys("speed_m_per_s"))
    impulse: float = field(default=0.0, metadata=json_keys("impulse_N_s"))

    @property
    @in_json()
    def becomes(self) -> str:
        """New state, "slack" or "taut"."""
        return "slack" if self.is_slack else "taut"


@dataclass(frozen=True, slots=True, kw_only=True)
class CableStretch:
    """A phase of a cable simulation.

    A phase ends when an inelastic cable becomes slack or taut, or at a sample of a control law.

    Attributes:
        start: start time, s.
        machine: the equivalent machine of this phase.
        simulation: simulation of this machine; its time starts at zero.
        tension: tensions of all cables at the times of the simulation (N, k), N.
    """

    start: float
    machine: CableMachine
    simulation: Simulation = field(repr=False)
    tension: np.ndarray = field(repr=False)


def _last(time: np.ndarray) -> float:
    return float(time[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CableSimulation(Result):
    """The motion of a cable machine.

    Attributes:
        machine: name of the machine.
        cable_names: names of the k cables, the columns of `tension`.
        time: times of the steps (N,), s.
        tension: tensions (N, k), N.
        parts: the phases; a single phase if all cables are elastic and the law is continuous.
        events: cables that became slack or taut, in order of time.
        occurrences: requested events in order of time, with coordinates of the cable machine.
        duration: requested duration, s.
        ending: why the simulation ended.
        problem: the problem and its remedy; None if the simulation reached the end.
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
        """Return the values of a named coordinate over time (N,); NaN in phases without it."""
        values = []
        for phase in self.parts:
            if name in phase.simulation.coordinate_names:
                values.append(phase.simulation.coordinate(name))
            else:
                values.append(np.full(len(phase.simulation.time), np.nan))
        return np.concatenate(values)

    def variables(self) -> Iterator[Variable]:
        """Yield platform positions and tensions over time; NaN in phases without a coordinate."""
        # When a cable becomes taut, two samples have the same time; keep the first.
        is_later = np.concatenate([[True], np.diff(self.time) > 0])
        positions = np.column_stack([self.coordinate(name) for name in self.platform.columns])
        yield time_axis(self.time[is_later])
        yield from columns(
            "position", self.platform.columns, self.platform.units, positions[is_later]
        )
        yield from columns(
            "tension", self.cable_names, ["N"] * len(self.cable_names), self.tension[is_later]
        )

    def log(self) -> xr.Dataset:
        """Return platform positions and tensions as a log, without incomplete coordinates."""
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
    """Return the diagnostics of a cable simulation.

    Args:
        model: the cable machine.
        simulation: simulation without diagnostics.
        is_ended: whether a requested event ended the simulation.
    """
    cables = model.mechanism.cables
    reached = simulation.parts[-1].start + float(simulation.parts[-1].simulation.time[-1])
    simulations = [part.simulation for part in simulation.parts]
    largest = max(float(each.kinetic.max()) for each in simulations)
    tension_work = float(simulation.tension.max(initial=0.0)) * model.assembly.loops.length
    energy_error = sum(float(np.abs(each.energy_error).max()) for each in simulations)
    peaks = dict(zip(cables, simulation.tension.max(axis=0), strict=True))
    tension_ratio = max(float(peak) / cables[name].greatest for name, peak in peaks.items())
    return (
        diagnostic(
            "fraction of the duration reached",
            reached / simulation.duration,
            at_least=None if is_ended else 1.0 - TIME_TOLERANCE,
            advice=simulation.ending.value
            if simulation.problem is None
            else simulation.problem.what,
        ),
        diagnostic(
            "energy-balance error between impacts as a fraction of the largest kinetic energy",
            energy_error / largest
            if largest > REST_ENERGY_RATIO * tension_work and np.isfinite(energy_error)
            else None,
            at_most=ENERGY_TOLERANCE,
            advice="tighten the tolerances or shorten the step",
        ),
        diagnostic(
            "largest residual of the loops",
            max(float(each.residual.max()) for each in simulations),
            at_most=SIMULATED_LOOP_TOLERANCE * model.assembly.loops.length,
            unit="m",
            advice="use projection, or smaller tolerances",
        ),
        diagnostic(
            "largest tension, relative to the limit of its cable",
            tension_ratio,
            at_most=1.0,
            advice="reduce loads or accelerations: a cable exceeds its tension limit (see `tension`)",
        ),
        *_limits(simulation.parts),
        *omission_diagnostics(model.mechanism),
    )


def _limits(parts: tuple[CableStretch, ...]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of limits, each with its worst value over all phases."""
    worst: dict[str, Diagnostic] = {}
    for part in parts:
        limits = part.simulation.system.model.limits
        for item in limits.diagnostics(part.simulation.q, part.simulation.time + part.start):
            if item.name not in worst or (worst[item.name].value or 0.0) < (item.value or 0.0):
                worst[item.name] = item
    return tuple(worst.values())
