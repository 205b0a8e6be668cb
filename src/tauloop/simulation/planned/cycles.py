"""Planning of a cyclic motion between stations, with a simulated controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import tabulated
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import option
from tauloop.common.plain import OMITTED, in_json, json_keys, records
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Platform, omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
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
from tauloop.simulation.controllers.laws import Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.run import SATURATED, follow
from tauloop.simulation.planned.c_arrays import c_arrays
from tauloop.simulation.planned.fastest import (
    CHANGE_LIMIT,
    ActiveLimit,
    TriedMotion,
    active_limits,
    condition_diagnostic,
    simulated_diagnostics,
)
from tauloop.simulation.planned.limit_options import LimitOptions

if TYPE_CHECKING:
    import xarray as xr

#: Number of simulated cycles.
CYCLES = 3
#: Duration of the run-in before these cycles, s.
RUN_IN = 0.1
#: Number of times per leg at which fractions of limits are computed.
LIMIT_SAMPLES = 4001
#: Number of samples of a cycle at which the motors' peak values are computed.
PEAK_SAMPLES = 4001
#: Largest relative excess of a limit that counts as rounding.
CYCLE_LIMIT_TOLERANCE = 1e-5
#: Largest accepted jump of acceleration at the boundaries between segments of the cycle, relative to
#: the largest acceleration.
SEAM_TOLERANCE = 1e-6
#: Largest distance between tool and item while they meet, m.
MEETING_TOLERANCE = 1e-9
#: Largest difference of tool positions between two cycles under the controller, m.
PERIODICITY_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class CycleOptions(LimitOptions):
    """Options of a planned cycle and of its simulation.

    Attributes:
        payload: not used; the list of stations states the payloads.
        reversal: time that motors need for a full reversal of their force, such as 20ms; it makes
            accelerations continuous.
        ends: motion at stations; held: the tool rests.
        tool_jerk: largest jerk of the tool, m/s^3.
        rated: ratio of the continuous to the largest force of a motor (root mean square), for
            motors without rated_force in the machine file.
        duration: duration of a cycle, such as 250ms; as short as possible by default.
        intervals: number of intervals of the motion law of each leg.

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
    duration: float | None = option(None, above=0.0, metavar="TIME", unit=units.TIME)
    intervals: int = option(200, least=20, most=2000)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a payload, and discontinuous accelerations."""
        if isinstance(self.payload, Payload) or self.payload:
            problems.add(
                "payload", "the list of stations states the payloads", "give a payload to a station"
            )
        if self.reversal == 0 and not np.isfinite(self.tool_jerk):
            problems.add(
                "reversal",
                "without it accelerations jump at stations",
                "give a time such as 10ms, or a tool_jerk",
            )

    def limits(self, reserve: float, platform: Platform) -> PathLimits:
        """Return the limits of the motion, with a reserve in the forces."""
        return replace(super().limits(reserve, platform), tool_jerk=self.tool_jerk)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegLimits(ReprMixin):
    """A leg of a cycle, and its use of the limits.

    Attributes:
        name: names of the stations at its ends.
        start: start time, s.
        duration: duration, s.
        least: shortest duration within the limits, s.
        payload: mass at the tool, kg.
        shares: largest used fraction of each limit, by the limit's name.
        active: intervals of the cycle's time with their active limits.
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
    """The load of a motor in a cycle.

    Attributes:
        actuator: name of the actuator.
        unit: unit of the force, N or N m.
        peak_force: largest force, N or N m.
        peak_speed: largest speed, m/s or rad/s.
        peak_power: largest mechanical power, W.
        rms: root mean square of its force from inverse dynamics, N or N m.
        simulated: root mean square of its force under the simulated controller, N or N m; None if
            the simulation ended early.
        rated: continuous force, N or N m; None if unknown.
    """

    actuator: str
    unit: str
    peak_force: float
    peak_speed: float
    peak_power: float
    rms: float
    simulated: float | None
    rated: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedCycle(TriedMotion):
    """A cycle repeated under the simulated controller.

    Attributes:
        rms: root mean square of each actuator's force in the last cycle (n_u,), N or N m.
        change: largest distance between the tool positions of the last two cycles, m.
    """

    rms: tuple[float, ...]
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle(Result):
    """A cyclic motion between stations.

    Attributes:
        planned: stations, paths and motion laws.
        trajectory: motion over a cycle; its forces include the payloads.
        limits: limits of all legs, without their payloads.
        time: duration of the cycle, s.
        fastest: shortest duration within the limits, s.
        evenly: duration if all legs were slowed by the same factor until the motor loads are within
            their ratings, s.
        reason: what determines the duration: "limits", "rated force", "conveyor" or "time".
        motor: name of the motor with the largest load relative to its rated force; "" if no rated
            force is known.
        picks: number of stations that add payload, at least one.
        legs: use of the limits of each leg.
        motors: peak and thermal loads of the motors.
        tried: simulations under the controller, with the payloads of the list and without payload.
        controller: name of the control law, and samples per second.
    """

    planned: PlannedCycle = field(metadata=json_keys(items_per_cycle="items"))
    trajectory: CycleTrajectory = field(
        metadata=json_keys(machine="stroke.model.mechanism.name", condition="stroke.condition")
        | tabulated()
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
        """Number of picks per minute."""
        return 60.0 * self.picks / self.time

    def log(self, frequency: float = 1000.0) -> xr.Dataset:
        """Return a cycle as a log, with a whole number of samples near the given frequency.

        The last sample is the first of the next cycle.
        """
        return self.trajectory.at(self._times(frequency)).log(
            self.trajectory.stroke.functions.ports.motion
        )

    def c_array(self, frequency: float = 1000.0) -> str:
        """Return the C99 text of the motion: positions, velocities and forces of the actuators.

        The first sample follows the last one.
        """
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
            problem = f"{frequency:g} Hz gives {count:.3g} samples in {self.time:.4g} s"
            raise InputError.of("rate", problem, "choose a rate that gives 2 to 10 million samples")
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

    Each leg is the fastest motion along its path within the limits, both with its payload and
    without. Positions, velocities and accelerations are continuous. The tool meets the items on
    conveyors at their positions at that time. If motors would exceed their rated forces, legs are
    slowed so that the cycle is as short as possible. If conveyors or a given duration determine the
    time, legs are slowed so that the motors' thermal load is smallest.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        stations: the list of stations, or its YAML file.
        options: limits, time and controller.
        progress: called with the work done and the total work.

    Returns:
        The cycle: duration, motion with motor forces, and the simulated controller.

    Raises:
        DescriptionError, InputError: the list has errors, or the duration is too short.
        PoseError: a path leaves the workspace or passes through a singularity, or no motion is
            within all limits.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.CycleOptions(intervals=30, rated=0.4)
        >>> result = tl.plan_cycle(tl.load("delta"), "examples/cycles/adept.yaml", options)
        >>> result.reason, result.motor, result.status.value
        ('rated force', 'leg1.motor', 'ok')
    """
    options = options or CycleOptions()
    model = modeled(machine)
    cycle_list = stations if isinstance(stations, CycleList) else load_cycle(stations, model)
    stages = Stages(progress, sum(station.is_stop for station in cycle_list.stations) + 1)
    limits = options.limits(options.reserve, model.mechanism.platform)
    rated = _rated(model, options)
    planned = cycle_trajectory(
        model,
        cycle_list,
        limits,
        rated=rated,
        time=options.duration,
        intervals=options.intervals,
        done=stages.done,
    )
    trajectory = planned.trajectory()
    names, _ = model.output_ports("actuators")
    squares = sum(d * mean_squares(model, path, d, load) for path, d, load in planned.parts())
    rms = np.sqrt(squares / planned.time)
    runs = _simulated(planned, trajectory, options)
    legs = tuple(_leg_limits(planned, leg, k) for k, leg in enumerate(planned.legs))
    has_rating = np.isfinite(rated)
    motors = _motor_loads(model, _peaks(trajectory, planned.time), rms, runs[0], rated)
    stages.done()
    masses = [_mass(stop.payload) for stop in planned.stops]
    return Cycle(
        diagnostics=(
            *_diagnostics(planned, trajectory, cycle_list, legs),
            *([_thermal_load(float((rms / rated).max()))] if has_rating.any() else []),
            *simulated_diagnostics(runs),
            *(_periodicity(run) for run in runs),
            condition_diagnostic(trajectory.stroke),
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
        motor=names[int((rms / rated).argmax())] if has_rating.any() else "",
        picks=max(sum(mass > masses[k - 1] for k, mass in enumerate(masses)), 1),
        legs=legs,
        motors=motors,
        tried=runs,
        controller=(options.controller, options.rate),
    )


def _motor_loads(
    model: Model,
    peaks: tuple[np.ndarray, ...],
    rms: np.ndarray,
    run: TriedCycle,
    rated: np.ndarray,
) -> tuple[MotorLoad, ...]:
    """Return the loads of all motors: peaks of force, speed and power, and RMS forces (n_u,)."""
    return tuple(
        MotorLoad(
            actuator=name,
            unit=unit,
            peak_force=float(peaks[0][i]),
            peak_speed=float(peaks[1][i]),
            peak_power=float(peaks[2][i]),
            rms=float(rms[i]),
            simulated=run.rms[i] if run.rms else None,
            rated=float(rated[i]) if np.isfinite(rated[i]) else None,
        )
        for i, (name, unit) in enumerate(zip(*model.output_ports("actuators"), strict=True))
    )


def _rated(model: Model, options: CycleOptions) -> np.ndarray:
    """Return the continuous forces of the motors (n_u,), N or N m; infinite if unknown."""
    share = np.inf if options.rated is None else options.rated
    actuators = model.mechanism.actuators
    return np.array(
        [a.rated_force if np.isfinite(a.rated_force) else share * a.force for a in actuators]
    )


def _mass(load: Payload | None) -> float:
    return 0.0 if load is None else load.mass


def _leg_limits(planned: PlannedCycle, leg: CycleLeg, k: int) -> LegLimits:
    """Return the use of the limits on a leg."""
    stop, duration = planned.stops[k], float(planned.durations[k])
    start = float(planned.meetings[k]) + stop.dwell
    timed = leg.timed(planned.model, duration)
    rate, shares = 1.0 / duration, dict[str, float]()
    values, names = timed.rows.shares(timed.law.at(np.linspace(0.0, 1.0, LIMIT_SAMPLES)), rate)
    for name, share in zip(names, values.max(axis=0).tolist(), strict=True):
        limit = name.removesuffix(" with payload")
        shares[limit] = max(shares.get(limit, 0.0), share)
    shares[CHANGE_LIMIT] = float(changes_taken(timed.rows, timed.law, rate, rate)[0].max())
    active = tuple(
        replace(interval, start=start + interval.start, end=start + interval.end)
        for interval in active_limits(timed)
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
    cycle_list: CycleList,
    legs: tuple[LegLimits, ...],
) -> Iterator[Diagnostic]:
    """Yield the diagnostics of limits, continuity and meetings, computed from the trajectory."""
    share = max(max(leg.shares.values()) for leg in legs)
    yield diagnostic(
        "largest fraction of a limit",
        share,
        at_most=1.0 + CYCLE_LIMIT_TOLERANCE,
        advice="use more intervals for the motion law of each leg of the cycle (`intervals`)",
    )
    yield diagnostic(
        "largest acceleration jump where two legs meet, relative to the largest acceleration",
        seam_jump(planned),
        at_most=SEAM_TOLERANCE,
        advice="report this as a bug in Tauloop",
    )
    stops = [station for station in cycle_list.stations if station.is_stop]
    largest_distance = 0.0
    for stop, meeting in zip(stops, planned.meetings.tolist(), strict=True):
        time = meeting + np.linspace(0.0, stop.dwell, 5)
        item = stop.position + time[:, None] * stop.velocity
        distance = float(np.abs(trajectory.at(time).position - item).max())
        largest_distance = max(largest_distance, distance)
    yield diagnostic(
        "largest distance of the tool from a moving item during its stop",
        largest_distance,
        at_most=MEETING_TOLERANCE,
        unit="m",
        advice="report this as a bug in Tauloop",
    )


def seam_jump(planned: PlannedCycle) -> float:
    """Return the largest acceleration jump between segments, relative to the largest acceleration.

    A velocity jump counts as the acceleration that would cause it within 1 ms.
    """
    boundaries = []
    largest = 0.0
    for path, duration, _ in planned.parts():
        curve = path.at(np.linspace(0.0, 1.0, LIMIT_SAMPLES))
        velocity, acceleration = curve.derivative / duration, curve.second_derivative / duration**2
        boundaries.append((velocity[[0, -1]], acceleration[[0, -1]]))
        largest = max(largest, float(np.abs(curve.second_derivative).max()) / duration**2)
    jump = 0.0
    for k, (velocity, acceleration) in enumerate(boundaries):
        last_velocity, last_acceleration = boundaries[k - 1]
        velocity_jump = float(np.abs(velocity[0] - last_velocity[1]).max())
        acceleration_jump = float(np.abs(acceleration[0] - last_acceleration[1]).max())
        jump = max(jump, velocity_jump / 1e-3, acceleration_jump)
    return jump / largest


def _thermal_load(share: float) -> Diagnostic:
    return diagnostic(
        "largest root mean square over rated force",
        share,
        at_most=1.0 + CYCLE_LIMIT_TOLERANCE,
        advice="allow more time",
    )


def _periodicity(run: TriedCycle) -> Diagnostic:
    name = f"change from cycle to cycle, payload {run.payload:g} kg"
    return diagnostic(
        name,
        run.change,
        at_most=PERIODICITY_TOLERANCE,
        unit="m",
        advice="use a larger bandwidth",
    )


def _peaks(trajectory: CycleTrajectory, duration: float) -> tuple[np.ndarray, ...]:
    """Return the largest force, speed and power (n_u,) of each actuator at uniform sample times."""
    time = np.linspace(0.0, duration, PEAK_SAMPLES)
    model = trajectory.stroke.model
    force = trajectory.forces(time)
    speed = np.asarray(trajectory.states(time).v) @ model.assembly.loops.transmission.T
    magnitudes = (np.abs(force), np.abs(speed), np.abs(force * speed))
    return tuple(magnitude.max(axis=0) for magnitude in magnitudes)


def _simulated(
    planned: PlannedCycle, trajectory: CycleTrajectory, options: CycleOptions
) -> tuple[TriedCycle, ...]:
    """Return simulated cycles under the controller, with the payloads of the list and without."""
    model = planned.model
    n = max(round(planned.time * options.rate), 1)
    rate = n / planned.time
    first = int(np.ceil(RUN_IN * rate))
    repeated = planned.repeated(CYCLES, first / rate)
    law = CONTROLLERS[options.controller](bandwidth=options.bandwidth)
    max_force = np.array([actuator.force for actuator in model.mechanism.actuators])
    no_payload = Payload(mass=0.0)
    heaviest = max(_mass(load) for load in trajectory.loads)
    translational = [i for i, unit in enumerate(model.platform.ports.position.units) if unit == "m"]
    last = slice(first + (CYCLES - 1) * n, first + CYCLES * n)
    previous = slice(first + (CYCLES - 2) * n, first + (CYCLES - 1) * n)
    runs = []
    for mass in dict.fromkeys((heaviest, 0.0)):

        def payload_at(time: float, mass: float = mass) -> Payload:
            load = trajectory.load(time - first / rate) if mass else None
            return load or no_payload

        run = follow(
            repeated, law, Sampling(frequency=rate), payload=payload_at if heaviest else None
        )
        is_whole = not run.end
        change, rms = np.zeros((1, 1)), ()
        if is_whole:
            change = run.position[last][:, translational] - run.position[previous][:, translational]
            rms = tuple(np.sqrt(np.mean(run.force[last] ** 2, axis=0)).tolist())
        runs.append(
            TriedCycle(
                payload=mass,
                peak_share=float((np.abs(run.force) / max_force).max(initial=0.0)),
                saturated=next(
                    item.value or 0.0 for item in run.diagnostics if item.name == SATURATED
                ),
                peak_error=run.peak_error if len(run.time) else np.nan,
                peak_turn=run.peak_turn if len(run.time) else np.nan,
                end=run.end,
                rms=rms,
                change=float(np.linalg.norm(change, axis=1).max()),
            )
        )
    return tuple(runs)
