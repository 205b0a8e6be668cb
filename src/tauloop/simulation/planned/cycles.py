"""One call from a machine and a list of stations to a cyclic motion, tried out under a sampled controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import option
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Platform
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.model.tool import Payload
from tauloop.motion.cycles.planning import (
    CycleLeg,
    CycleTrajectory,
    PlannedCycle,
    cycle_trajectory,
    mean_squares,
)
from tauloop.motion.cycles.stations import CycleList, load_cycle
from tauloop.motion.fastest.changes import changes_taken
from tauloop.motion.fastest.limits import PathLimits
from tauloop.simulation.c_arrays import c_arrays
from tauloop.simulation.controllers.laws import Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.run import SATURATED, follow
from tauloop.simulation.planned.fastest import (
    CHANGE,
    ActiveLimit,
    TriedMotion,
    active_limits,
    condition_of,
    tried_diagnostics,
)
from tauloop.simulation.planned.limit_options import LimitOptions

if TYPE_CHECKING:
    import xarray as xr

#: Cycles that are simulated, and the time of the run-in before them, s.
CYCLES, RUN_IN = 3, 0.1
#: Times of each leg at which shares of limits are looked at.
LOOKS = 4001
#: What rounding leaves of limits, of accelerations at seams over the largest, and of places (m).
KEPT, SMOOTH, PLACE = 1e-5, 1e-6, 1e-9
#: By how much the tool's place may differ from one cycle to the next under the controller, m.
PERIODIC = 1e-6


@dataclass(frozen=True, kw_only=True)
class CycleOptions(LimitOptions):
    """How a cycle is planned, and tried out.

    Attributes:
        payload: nothing; the list says what is carried.
        reversal: time that motors need for a full reversal of their force, such as 20ms; it makes
            accelerations continuous.
        ends: held: the tool rests at stations.
        tool_jerk: largest jerk of the tool, m/s^3.
        rated: share of its largest force that a motor bears for ever, as a root mean square, where
            the machine file has no rated_force.
        time: duration of a cycle, such as 250ms; as short as possible without it.
        intervals: number of intervals of the law of each leg.

    Examples:
        >>> import tauloop as tl
        >>> tl.CycleOptions(rated=0.35).reversal
        0.01
    """

    payload: float | Payload = option(0.0, flag="")
    reversal: float = option(0.01, least=0.0, metavar="TIME", unit=units.TIME)
    ends: str = option("held", choices=("held",), flag="")
    tool_jerk: float = option(np.inf, above=0.0, metavar="JERK", unit=units.JERK)
    rated: float | None = option(None, above=0.0, most=1.0)
    time: float | None = option(None, above=0.0, metavar="TIME", flag="--duration", unit=units.TIME)
    intervals: int = option(200, least=20, most=2000)

    def _note_mismatches(self, problems: Problems) -> None:
        """Note what lists say, and accelerations that jump."""
        if isinstance(self.payload, Payload) or self.payload:
            problems.add("payload", "the list says what is carried", "give a payload to a station")
        if self.reversal == 0 and not np.isfinite(self.tool_jerk):
            problems.add(
                "reversal",
                "without it accelerations jump at stations",
                "such as 10ms, or a tool_jerk",
            )

    def limits(self, reserve: float, platform: Platform) -> PathLimits:
        """What the motion keeps, with a reserve of the forces."""
        return replace(super().limits(reserve, platform), tool_jerk=self.tool_jerk)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegLimits(ReprMixin):
    """A leg of a cycle, and how near it comes to its limits.

    Attributes:
        name: of both stations.
        start: s.
        duration: s.
        least: the shortest that limits allow, s.
        payload: kg at the tool.
        shares: largest share of each limit, by its name.
        active: which limit is reached when, in the time of the cycle.
    """

    name: str
    start: float
    duration: float
    least: float
    payload: float
    shares: Mapping[str, float]
    active: tuple[ActiveLimit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorLoad:
    """How warm a motor becomes in a cycle.

    Attributes:
        actuator: its name.
        unit: N or N m.
        rms: root mean square of its force, by inverse dynamics.
        simulated: the same under the sampled controller; None where that ended early.
        rated: what it bears for ever; None where nothing is known.
    """

    actuator: str
    unit: str
    rms: float
    simulated: float | None
    rated: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCycle(TriedMotion):
    """A cycle under the sampled controller, run again and again.

    Attributes:
        rms: root mean squares of the forces of the last cycle (n_u,).
        change: largest distance between the places of the tool in the last two cycles, m.
    """

    rms: tuple[float, ...]
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle(Result):
    """A cyclic motion between stations.

    Attributes:
        planned: stations, ways and laws.
        trajectory: one cycle; its forces are those with what is carried.
        limits: what all legs keep, beside what each carries.
        time: of a cycle, s.
        fastest: of the cycle that limits alone allow, s.
        evenly: of the cycle in which all legs are slowed alike until the motors bear it, s.
        reason: what sets the time: "limits", "rated force", "conveyor" or "time".
        motor: the motor nearest to its rated force; "" where none is known.
        picks: stations at which something is taken up, at least one.
        legs: their limits.
        motors: how warm they become.
        tried: under the controller: with what the list says, and with nothing at the tool.
        controller: law and samples per second.
    """

    planned: PlannedCycle = field(metadata=json_keys(items_per_cycle="items"))
    trajectory: CycleTrajectory = field(
        metadata=json_keys(machine="stroke.model.mechanism.name", condition="stroke.condition")
    )
    limits: PathLimits = field(metadata=OMITTED)
    time: float
    fastest: float
    evenly: float
    reason: str
    motor: str
    picks: int = field(metadata=OMITTED)
    legs: tuple[LegLimits, ...]
    motors: tuple[MotorLoad, ...]
    tried: tuple[TriedCycle, ...]
    controller: tuple[str, float] = field(metadata=OMITTED)

    @property
    @in_json()
    def picks_per_minute(self) -> float:
        """How many things are taken up in a minute."""
        return 60.0 * self.picks / self.time

    def variables(self) -> Iterator[Variable]:
        """Those of the trajectory."""
        return self.trajectory.variables()

    def log(self, frequency: float = 1000.0) -> xr.Dataset:
        """A cycle at a whole number of samples, about so many per second; the last is the first of the next cycle."""
        return self.trajectory.at(self._times(frequency)).log(
            self.trajectory.stroke.functions.ports.motion
        )

    def c_array(self, frequency: float = 1000.0) -> str:
        """C99 text of two arrays: positions, velocities and forces of the actuators; after the last comes the first."""
        time = self._times(frequency)
        return c_arrays(
            self.trajectory,
            time[:-1],
            float(time[1]),
            "A cycle, whose first sample follows its last",
        )

    def _times(self, frequency: float) -> np.ndarray:
        count = self.time * frequency
        if not 1.5 <= count < 1e7:
            raise InputError.of(
                "frequency", f"{frequency:g} Hz over {self.time:.4g} s", "more than two samples"
            )
        return np.linspace(0.0, self.time, round(count) + 1)

    @property
    @in_json("controller")
    def law(self) -> str:
        """Name of the controller."""
        return self.controller[0]

    @property
    @in_json("frequency_Hz")
    def frequency(self) -> float:
        """Samples of the controller per second."""
        return self.controller[1]

    @property
    @in_json()
    def stations(self) -> list[dict[str, Any]]:
        """The stations, with the time at which each is reached."""
        stops = self.planned.stops
        return records(
            name=[stop.name for stop in stops],
            reached_s=self.planned.meetings,
            position=[stop.position for stop in stops],
            payload_kg=[_mass(stop.payload) for stop in stops],
        )


@keywords(CycleOptions)
@solving(PoseError)
def plan_cycle(
    machine: MachineSource,
    stations: CycleList | str | Path,
    options: CycleOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Cycle:
    """Plan a cyclic motion between stations, and simulate a sampled controller that follows it.

    Each leg is the fastest along its way under limits, with nothing at the tool and with what it
    carries; positions, velocities and accelerations are continuous. Conveyors are met where they
    are then. Where motors would become too warm, or conveyors or a given time set the pace, legs
    are slowed so that the cycle is shortest, or coolest.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        stations: the list, or its YAML file.
        options: limits, time and controller.
        progress: called with what is done and what there is to do.

    Raises:
        DescriptionError, InputError: what is wrong with the list; a time that is too short.
        PoseError: a way that leaves the workspace or passes through a singularity, or no motion
            that keeps all limits.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.CycleOptions(intervals=30, rated=0.4)
        >>> result = tl.plan_cycle(tl.load("delta"), "examples/cycles/adept.yaml", options)
        >>> result.reason, result.motor, result.status.value
        ('rated force', 'leg1.motor', 'ok')
    """
    options = options or CycleOptions()
    model = modelled(machine)
    listed = stations if isinstance(stations, CycleList) else load_cycle(stations, model)
    stages = Stages(progress, sum(station.is_stop for station in listed.stations) + 1)
    limits, rated = (
        options.limits(options.reserve, model.mechanism.platform),
        _rated(model, options),
    )
    planned = cycle_trajectory(
        model,
        listed,
        limits,
        rated=rated,
        time=options.time,
        intervals=options.intervals,
        done=stages.done,
    )
    trajectory = planned.trajectory()
    names, unit = model.output_ports("actuators")
    squares = sum(d * mean_squares(model, path, d, load) for path, d, load in planned.parts())
    rms = np.sqrt(squares / planned.time)
    runs = _tried(planned, trajectory, options)
    legs = tuple(_leg_limits(planned, leg, k) for k, leg in enumerate(planned.legs))
    known = np.isfinite(rated)
    motors = tuple(
        MotorLoad(
            actuator=name,
            unit=unit[i],
            rms=float(rms[i]),
            simulated=runs[0].rms[i] if runs[0].rms else None,
            rated=float(rated[i]) if known[i] else None,
        )
        for i, name in enumerate(names)
    )
    stages.done()
    masses = [_mass(stop.payload) for stop in planned.stops]
    return Cycle(
        diagnostics=(
            *_diagnostics(planned, trajectory, listed, legs),
            *([_warmth(float((rms / rated).max()))] if known.any() else []),
            *tried_diagnostics(runs),
            *(_periodic(run) for run in runs),
            condition_of(trajectory.stroke),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={
                "reserve": options.reserve,
                "reversal": options.reversal,
                "intervals": options.intervals,
            },
            inputs={"machine": model.mechanism.name},
        ),
        planned=planned,
        trajectory=trajectory,
        limits=limits,
        time=planned.time,
        fastest=planned.fastest,
        evenly=float(planned.heat.evenly().sum() + planned.heat.dwell),
        reason=planned.reason,
        motor=names[int((rms / rated).argmax())] if known.any() else "",
        picks=max(sum(mass > masses[k - 1] for k, mass in enumerate(masses)), 1),
        legs=legs,
        motors=motors,
        tried=runs,
        controller=(options.controller, options.frequency),
    )


def _rated(model: Model, options: CycleOptions) -> np.ndarray:
    """What motors bear for ever (n_u,), infinite where nothing is known."""
    share = np.inf if options.rated is None else options.rated
    actuators = model.mechanism.actuators
    return np.array(
        [a.rated_force if np.isfinite(a.rated_force) else share * a.force for a in actuators]
    )


def _mass(load: Payload | None) -> float:
    return 0.0 if load is None else load.mass


def _leg_limits(planned: PlannedCycle, leg: CycleLeg, k: int) -> LegLimits:
    """How near a leg comes to its limits."""
    stop, duration = planned.stops[k], float(planned.durations[k])
    start = float(planned.meetings[k]) + stop.dwell
    timed = leg.timed(planned.model, duration)
    rate, shares = 1.0 / duration, dict[str, float]()
    values, names = timed.rows.shares(timed.law.at(np.linspace(0.0, 1.0, LOOKS)), rate)
    for name, share in zip(names, values.max(axis=0).tolist(), strict=True):
        plain = name.removesuffix(" with payload")
        shares[plain] = max(shares.get(plain, 0.0), share)
    shares[CHANGE] = float(changes_taken(timed.rows, timed.law, rate, rate)[0].max())
    active = tuple(
        replace(part, start=start + part.start, end=start + part.end)
        for part in active_limits(timed)
    )
    return LegLimits(
        name=leg.name,
        start=start,
        duration=duration,
        least=leg.least,
        payload=_mass(stop.payload),
        shares=shares,
        active=active,
    )


def _diagnostics(
    planned: PlannedCycle,
    trajectory: CycleTrajectory,
    listed: CycleList,
    legs: tuple[LegLimits, ...],
) -> Iterator[Diagnostic]:
    """Limits, seams and meetings, from the trajectory itself."""
    share = max(max(leg.shares.values()) for leg in legs)
    yield diagnostic("largest share of a limit", share, at_most=1.0 + KEPT, advice="more intervals")
    yield diagnostic(
        "largest jump at a seam over the largest acceleration",
        seam_jump(planned),
        at_most=SMOOTH,
        advice="report this",
    )
    stops = [station for station in listed.stations if station.is_stop]
    missed = 0.0
    for stop, at in zip(stops, planned.meetings.tolist(), strict=True):
        time = at + np.linspace(0.0, stop.dwell, 5)
        item = stop.position + time[:, None] * stop.velocity
        missed = max(missed, float(np.abs(trajectory.at(time).position - item).max()))
    yield diagnostic(
        "distance from items while they are met",
        missed,
        at_most=PLACE,
        unit="m",
        advice="report this",
    )


def seam_jump(planned: PlannedCycle) -> float:
    """Largest jump of an acceleration (or of a velocity, over 1 ms) at a seam, over the largest acceleration."""
    ends, largest = [], 0.0
    for path, duration, _ in planned.parts():
        curve = path.at(np.linspace(0.0, 1.0, LOOKS))
        ends.append((curve.first[[0, -1]] / duration, curve.second[[0, -1]] / duration**2))
        largest = max(largest, float(np.abs(curve.second).max()) / duration**2)
    jumps = [
        max(np.abs(v[0] - ends[k - 1][0][1]).max() / 1e-3, np.abs(a[0] - ends[k - 1][1][1]).max())
        for k, (v, a) in enumerate(ends)
    ]
    return float(max(jumps) / largest)


def _warmth(share: float) -> Diagnostic:
    return diagnostic(
        "largest root mean square over rated force",
        share,
        at_most=1.0 + KEPT,
        advice="a longer time",
    )


def _periodic(run: TriedCycle) -> Diagnostic:
    name = f"change from cycle to cycle, payload {run.payload:g} kg"
    return diagnostic(name, run.change, at_most=PERIODIC, unit="m", advice="a larger bandwidth")


def _tried(
    planned: PlannedCycle, trajectory: CycleTrajectory, options: CycleOptions
) -> tuple[TriedCycle, ...]:
    """Cycles under the sampled controller: with what the list says, and with nothing at the tool."""
    model = planned.model
    n = max(round(planned.time * options.frequency), 1)
    rate = n / planned.time
    first = int(np.ceil(RUN_IN * rate))
    repeated = planned.repeated(CYCLES, first / rate)
    law, size = (
        CONTROLLERS[options.controller](bandwidth=options.bandwidth),
        np.array([a.force for a in model.mechanism.actuators]),
    )
    nothing = Payload(mass=0.0)
    heaviest = max(_mass(load) for load in trajectory.loads)
    lengths = [i for i, unit in enumerate(model.platform.ports.position.units) if unit == "m"]
    runs = []
    for mass in dict.fromkeys((heaviest, 0.0)):

        def carried(time: float, mass: float = mass) -> Payload:
            return (trajectory.load(time - first / rate) if mass else None) or nothing

        run = follow(repeated, law, Sampling(frequency=rate), payload=carried if heaviest else None)
        last, before = (slice(first + k * n, first + (k + 1) * n) for k in (CYCLES - 1, CYCLES - 2))
        is_whole = not run.end
        change = (
            run.position[last][:, lengths] - run.position[before][:, lengths]
            if is_whole
            else np.zeros((1, 1))
        )
        runs.append(
            TriedCycle(
                payload=mass,
                peak_share=float((np.abs(run.force) / size).max(initial=0.0)),
                saturated=next(
                    item.value or 0.0 for item in run.diagnostics if item.name == SATURATED
                ),
                peak_error=run.peak_error if len(run.time) else np.nan,
                peak_turn=run.peak_turn if len(run.time) else np.nan,
                end=run.end,
                rms=tuple(np.sqrt(np.mean(run.force[last] ** 2, axis=0)).tolist())
                if is_whole
                else (),
                change=float(np.linalg.norm(change, axis=1).max()),
            )
        )
    return tuple(runs)
