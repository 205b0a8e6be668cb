"""Simulation of collision detection, for a model with parameter errors.

A stroke is simulated under a controller for many machines whose masses and friction differ from the
controller's model: once without a collision, and once with a force or payload at the tool from some
time on. Force observers use the encoder readings. An alarm is raised if an estimate exceeds a
threshold, which is computed from the runs without a collision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

import numpy as np
from scipy.stats import gumbel_r

from tauloop.common.datasets import Variable, columns, time_axis
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description import units
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.model.tool import Payload
from tauloop.motion import StrokeOptions
from tauloop.motion.planning import planned
from tauloop.motion.trajectory import Trajectory
from tauloop.simulation.controllers.laws import Sampling, read_bandwidth
from tauloop.simulation.controllers.library import COMPILED, CONTROLLERS
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.controllers.run import ControlledMotion, follow
from tauloop.simulation.controllers.workflow import STROKE_LIMIT_SHARE
from tauloop.simulation.forces import Wrench, wrench_at_tool
from tauloop.simulation.observers.observers import OBSERVERS, MeasuredMotion, platform_force
from tauloop.simulation.observers.speeds import differenced, tracked

#: Seconds per hour.
HOUR = 3600.0
#: Minimum number of machines from which the tail of the residuals can be estimated.
MIN_MACHINES = 4
#: Smallest threshold relative to the largest, so that rounding errors raise no alarm.
MIN_THRESHOLD_RATIO = 1e-3


@dataclass(frozen=True, kw_only=True)
class CollisionDetectionOptions(Options):
    """A stroke, a collision on it, and the observers that detect it.

    Attributes:
        stroke: the stroke; its seed is also the seed of the parameter errors.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame), during the
            collision.
        payload: mass that is attached to the tool at the time of the collision, such as 0.5kg,
            instead of a wrench.
        collision_time: time of the collision; the middle of the stroke by default.
        collision_duration: duration of the collision; to the end of the stroke by default.
        bandwidth: bandwidth of the observers (not of the controller), such as 100 (rad/s) or
            '20 Hz'; they follow a force with the delay 1 / bandwidth.
        speeds: method to compute speeds from encoder readings: differences, or a tracking loop.
        tracking: bandwidth of the tracking loop.
        controller: law of the controller.
        controller_bandwidth: bandwidth of the controller, as `bandwidth` of `control follow`; with
            a larger bandwidth the controller resists the collision with more force.
        rate: samples per second, such as 1kHz.
        quantization: step of the encoders, such as 0.1mrad; 0 for exact measurement.
        mass_error: largest relative error of each mass and inertia of the model.
        friction_error: largest relative error of each friction coefficient of the model.
        error_samples: number of simulated machines with random parameter errors.
        alarms: false alarms in an hour that the threshold allows.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.05}, duration=0.5)
        >>> tl.CollisionDetectionOptions(stroke=stroke, wrench={"fx": 20}, bandwidth=200.0).bandwidth
        200.0
    """

    stroke: StrokeOptions
    wrench: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=pairs_reader("wrench", "fx=20"), metavar="VALUES"
    )
    payload: float = option(0.0, least=0.0, metavar="MASS", unit=units.MASS)
    collision_time: float | None = option(None, metavar="TIME", least=0.0, unit=units.TIME)
    collision_duration: float | None = option(None, metavar="TIME", above=0.0, unit=units.TIME)
    bandwidth: float = option(100.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    speeds: str = option("differences", choices=("differences", "tracking"))
    tracking: float = option(1000.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    controller: str = option("computed-torque", choices=COMPILED, metavar="LAW")
    controller_bandwidth: float = option(150.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    rate: float = option(1000.0, metavar="FREQUENCY", unit=units.FREQUENCY)
    quantization: float = option(0.0, least=0.0, metavar="QUANTITIES", unit=units.POSITIONS)
    mass_error: float = option(0.05, least=0.0, below=1.0)
    friction_error: float = option(0.3, least=0.0, below=1.0)
    error_samples: int = option(16, least=MIN_MACHINES)
    alarms: float = option(1.0, above=0.0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a missing collision."""
        if not self.payload and self.wrench is None:
            problems.add(
                "wrench", "no force or payload is given", "give a wrench, such as fx=20 (N)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection(ReprMixin):
    """Results of an observer for all machines.

    Attributes:
        threshold: alarm threshold for each of the platform's velocities (n,), N or N m.
        noise: noise of the estimate due to the encoder steps, root mean square (n,), N or N m.
        delays: time from the start of the collision to the alarm for each machine (d,), s; infinite
            without an alarm.
        estimate: estimated force during the stroke with the collision, for the first machine
            (N, n), N or N m.
    """

    threshold: np.ndarray
    noise: np.ndarray = field(metadata=json_keys("noise_rms"))
    delays: np.ndarray = field(metadata=OMITTED)
    estimate: np.ndarray = field(metadata=OMITTED)

    @property
    @in_json("detected_share")
    def detected(self) -> float:
        """Fraction of the machines whose collision is detected while it lasts."""
        return float(np.isfinite(self.delays).mean())

    @property
    @in_json("delay_median_s")
    def median_delay(self) -> float | None:
        """Median delay of detection, s; None if fewer than half of the collisions are detected."""
        return self.quantile(0.5)

    @property
    @in_json("delay_90_percent_s")
    def long_delay(self) -> float | None:
        """90 % quantile of the delay, s; None if fewer than 90 % of the collisions are detected."""
        return self.quantile(0.9)

    def quantile(self, share: float) -> float | None:
        """Return the quantile of the delay for a fraction, s; None if fewer are detected."""
        delay = float(np.quantile(self.delays, share, method="higher"))
        return delay if np.isfinite(delay) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollisionDetection(Result):
    """A collision on a stroke, and the delays of its detection.

    Attributes:
        model: the machine that the controller and the observers assume.
        time: times of the samples (N,), s.
        force: true force on the platform for the first machine, in the coordinates of the
            platform's velocities (N, n), N or N m.
        observers: results by name of the observer; `NAME, no lag` is the observer without lag.
        at: time of the collision, s.
        varied: names of the parameters that vary between machines.
    """

    model: Model = field(repr=False, metadata=json_keys(machine="mechanism.name"))
    time: np.ndarray = field(metadata=OMITTED)
    force: np.ndarray = field(metadata=OMITTED)
    observers: Mapping[str, Detection]
    at: float = field(metadata=json_keys("at_s"))
    varied: tuple[str, ...]

    def variables(self) -> Iterator[Variable]:
        """Yield the true force and the estimates of the first machine over time."""
        names, force_units = self.freedoms
        yield time_axis(self.time)
        yield from columns("force", names, force_units, self.force)
        for name, detection in self.observers.items():
            yield from columns(
                name.replace(", ", "_").replace(" ", "_"), names, force_units, detection.estimate
            )

    @property
    def lagged(self) -> dict[str, Detection]:
        """Results of the observers with lag, by name."""
        return {name: self.observers[name] for name in OBSERVERS}

    @property
    def freedoms(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the platform's velocities, and units of the corresponding forces."""
        ports = self.model.platform.ports.velocity
        return ports.columns, tuple("N m" if unit == "rad/s" else "N" for unit in ports.units)

    @property
    @in_json("freedoms")
    def freedom_names(self) -> tuple[str, ...]:
        """Names of the platform's velocities."""
        return self.freedoms[0]

    @property
    @in_json()
    def force_units(self) -> tuple[str, ...]:
        """Units of the corresponding forces."""
        return self.freedoms[1]


@keywords(CollisionDetectionOptions)
@solving(PoseError)
def simulate_collision_detection(
    machine: MachineSource, options: CollisionDetectionOptions, *, progress: Progress | None = None
) -> CollisionDetection:
    """Simulate a collision of a moving platform, and report the delay of its detection.

    The observers use momenta, or differences of velocities. The stroke is simulated for several
    machines. Their masses, inertias and friction differ from the model by random errors, uniformly
    distributed up to `mass_error` and `friction_error`. The threshold of each degree of freedom is
    the value that the largest residual of a stroke without a collision exceeds `alarms` times per
    hour if strokes follow each other without pause. It is computed from a Gumbel distribution
    fitted to the residuals of all machines. Both persistent model errors and noise contribute to
    it.

    Args:
        machine: the machine that the controller and the observers assume: a model, a mechanism, a
            path, or the name of a shipped machine.
        options: stroke, collision, encoders and model errors.
        progress: called with the work done and the total work.

    Returns:
        Thresholds, noise and detection delays of every observer (`observers`).

    Raises:
        InputError: a name or a number is wrong.
        PoseError: the stroke cannot be followed.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
        >>> options = tl.CollisionDetectionOptions(stroke=stroke, wrench={"fx": 40}, error_samples=4)
        >>> result = tl.simulate_collision_detection(tl.load("five_bar"), options)
        >>> sorted(result.observers)
        ['differences', 'differences, no lag', 'momentum', 'momentum, no lag']
    """
    model = modeled(machine)
    rng = np.random.default_rng(options.stroke.seed)
    stages = Stages(progress, 1 + options.error_samples)
    trajectory = planned(model, options.stroke, STROKE_LIMIT_SHARE)
    max_errors = dict.fromkeys(_mass_parameters(model, "inertia", "drive"), options.mass_error)
    max_errors |= dict.fromkeys(_mass_parameters(model, "friction"), options.friction_error)
    max_errors = {name: error for name, error in max_errors.items() if error}
    simulation = _CollisionSimulation(model, trajectory, options, max_errors)
    stages.done()
    runs = []
    for _ in stages.over(range(options.error_samples)):
        values = {}
        for name, random in zip(max_errors, rng.uniform(-1, 1, len(max_errors)), strict=True):
            nominal = model.mechanism.parameters[name].value
            values[name] = nominal * (1 + max_errors[name] * random)
        runs.append(simulation.run(values))
    return simulation.result(runs, tuple(max_errors))


def _mass_parameters(model: Model, *groups: str) -> list[str]:
    """Return the machine parameters that are proportional to a mass (kg in the unit).

    Only nonzero parameters are returned that dynamic parameters of the given groups use.
    """
    table = model.mechanism.parameters
    used = {name for p in model.parameters if p.group in groups for name in leaves(p.expression)}
    return [
        p.name
        for p in table
        if p.name in used and p.value and units.parse_unit(p.unit or "1").dimension.mass == 1
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Estimates for a machine by observer, and the true force.

    Attributes:
        without_collision: estimates without the collision (N, n).
        noise: difference of `without_collision` from the estimates with exact measurements (N, n).
        with_collision: estimates with the collision (N, n).
        force: true force of the collision (N, n).
    """

    without_collision: Mapping[str, np.ndarray]
    noise: Mapping[str, np.ndarray]
    with_collision: Mapping[str, np.ndarray]
    force: np.ndarray


class _CollisionSimulation:
    """Simulations of the stroke with and without the collision."""

    def __init__(
        self,
        model: Model,
        trajectory: Trajectory,
        options: CollisionDetectionOptions,
        varied: Iterable[str],
    ) -> None:
        self._model = model
        self._trajectory = trajectory
        self._options = options
        self._plant = model.with_free_parameters(varied)
        self.period = 1.0 / options.rate
        start = options.collision_time
        #: Start and end of the collision, s.
        self.start = trajectory.total / 2 if start is None else start
        self.end = np.inf
        if options.collision_duration is not None:
            self.end = self.start + options.collision_duration
        if not self.start < trajectory.total:
            problem = f"is {self.start:g} s, but the stroke lasts {trajectory.total:.4g} s"
            raise InputError.of("collision_time", problem, "give a time within the stroke")
        self._wrench = wrench_at_tool({} if options.wrench is None else options.wrench)
        self._law = CONTROLLERS[options.controller](bandwidth=options.controller_bandwidth)
        differs = options.speeds == "differences"
        self._sampling = Sampling(
            frequency=options.rate, resolution=options.quantization, velocity_differences=differs
        )
        self._loop = CompiledLoop(self._plant, model, self._law, loaded=True)

    def _is_active(self, time: float) -> bool:
        return self.start <= time < self.end

    def run(self, values: Mapping[str, float]) -> _Run:
        """Simulate a machine with and without the collision, and return the estimates."""
        no_wrench = np.zeros(6)
        no_payload = Payload(mass=0.0)
        payload = Payload(mass=self._options.payload)
        without_collision = self._follow(values, lambda _: no_wrench, lambda _: no_payload)
        with_collision = self._follow(
            values,
            lambda time: np.asarray(self._wrench) if self._is_active(time) else no_wrench,
            lambda time: payload if self._is_active(time) else no_payload,
        )
        measured = self._estimates(without_collision, measured=True)
        exact = self._estimates(without_collision, measured=False)
        return _Run(
            without_collision=measured,
            noise={name: measured[name] - exact[name] for name in measured},
            with_collision=self._estimates(with_collision, measured=True),
            force=self._true_force(with_collision),
        )

    def _follow(
        self, values: Mapping[str, float], wrench: Wrench, payload: Callable[[float], Payload]
    ) -> ControlledMotion:
        run = follow(
            *(self._trajectory, self._law, self._sampling),
            plant=self._plant,
            loop=self._loop,
            wrench=wrench,
            payload=payload,
            values=values,
        )
        if run.end:
            raise PoseError.of(
                "stroke",
                f"the machine cannot follow the stroke: {run.end}",
                "use a slower stroke, or a smaller wrench",
            )
        return run

    def _estimates(self, run: ControlledMotion, *, measured: bool) -> dict[str, np.ndarray]:
        """Return the estimates by observer, from encoder readings or from the exact motion."""
        options, model, plant = self._options, self._model, run.model
        state = plant.platform.kinematics(run.position, run.velocity, start=plant.assembly.q)
        position = plant.actuator_position(state.q)
        if measured and options.quantization:
            position = options.quantization * np.round(position / options.quantization)
        if not measured:
            velocity = np.asarray(state.v) @ plant.assembly.loops.transmission.T
        elif options.speeds == "differences":
            velocity = differenced(position, self.period)
        else:
            velocity = tracked(position, self.period, options.tracking)
        motion = MeasuredMotion(
            period=self.period, position=position, velocity=velocity, force=run.force, q=state.q[0]
        )
        estimates = {}
        for name, observer in OBSERVERS.items():
            estimates[name] = observer.forces(model, motion, options.bandwidth)
            estimates[f"{name}, no lag"] = observer.forces(model, motion, np.inf)
        return estimates

    def _true_force(self, run: ControlledMotion) -> np.ndarray:
        """Return the force of the wrench in the coordinates of the platform's velocities (N, n).

        The force of a payload is not included, because it depends on the motion.
        """
        is_active = np.array([self._is_active(time) for time in run.time.tolist()])
        wrench = np.where(is_active[:, None], np.asarray(self._wrench), 0.0)
        start = run.model.platform.kinematics(run.position, start=run.model.assembly.q).q
        return platform_force(run.model, run.position, start, wrench)

    def result(self, runs: list[_Run], varied: tuple[str, ...]) -> CollisionDetection:
        """Return thresholds, delays and diagnostics of all runs."""
        options = self._options
        count = len(runs[0].force)
        time = np.arange(count) * self.period
        probability = min(options.alarms * time[-1] / HOUR, 0.5)
        observers = {}
        for name in runs[0].without_collision:
            largest = np.array([np.abs(run.without_collision[name]).max(axis=0) for run in runs])
            threshold = _thresholds(largest, probability)
            observers[name] = Detection(
                threshold=threshold,
                noise=np.sqrt(np.mean([run.noise[name] ** 2 for run in runs], axis=(0, 1))),
                delays=np.array(
                    [self._delay(time, run.with_collision[name], threshold) for run in runs]
                ),
                estimate=runs[0].with_collision[name],
            )
        best = observers["momentum"]
        advice = (
            "the collision is smaller than the effect of model errors: identify masses and friction, "
            "or slow down"
        )
        return CollisionDetection(
            diagnostics=(
                diagnostic(
                    "fraction of the collisions that the momentum observer detects",
                    best.detected,
                    at_least=1.0,
                    advice=advice,
                ),
                *omission_diagnostics(self._model.mechanism),
            ),
            provenance=provenance(
                options={
                    "bandwidth": options.bandwidth,
                    "speeds": options.speeds,
                    "controller": options.controller,
                    "controller_bandwidth": options.controller_bandwidth,
                    "rate": options.rate,
                    "quantization": options.quantization,
                    "mass_error": options.mass_error,
                    "friction_error": options.friction_error,
                    "machines": options.error_samples,
                    "alarms": options.alarms,
                    "seed": options.stroke.seed,
                },
                inputs={"machine": self._model.mechanism.name, "samples": count},
                packages=("numpy", "casadi", "scipy"),
            ),
            model=self._model,
            time=time,
            force=runs[0].force,
            observers=observers,
            at=self.start,
            varied=varied,
        )

    def _delay(self, time: np.ndarray, estimate: np.ndarray, threshold: np.ndarray) -> float:
        """Return the time from the collision to the first alarm, s; infinite without an alarm."""
        is_during = (time >= self.start) & (time < self.end)
        is_alarm = (np.abs(estimate) > threshold).any(axis=1) & is_during
        return float(time[np.argmax(is_alarm)] - self.start) if is_alarm.any() else np.inf


def _thresholds(largest: np.ndarray, probability: float) -> np.ndarray:
    """Return thresholds (n,) that the largest residual of a stroke exceeds with a probability.

    A Gumbel distribution is fitted to the largest residuals (d, n) of all machines. The probability
    is divided among the degrees of freedom. Thresholds that are nearly zero, such as those normal
    to a symmetry plane, are raised to a small fraction of the largest, so that rounding errors
    raise no alarm.
    """
    n = largest.shape[1]
    tails = [
        gumbel_r.isf(probability / n, *gumbel_r.fit(column)) if np.ptp(column) else column[0]
        for column in largest.T
    ]
    return np.maximum(tails, MIN_THRESHOLD_RATIO * np.max(tails))
