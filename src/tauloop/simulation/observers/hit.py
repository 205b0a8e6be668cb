"""How soon a blow, or another payload, is noticed at a moving platform, by a model that is not quite right.

A stroke is run under a controller many times, each time with a machine whose masses and friction
differ from the controller's model; once as it is, once with a force at the tool from some instant
on. Observers of forces see what encoders count. An alarm is raised where an estimate exceeds a
threshold, which follows from the runs without a blow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

import numpy as np
from scipy.stats import gumbel_r

from tauloop.common.datasets import Variable, columns, time_axis
from tauloop.common.errors import EngineError, InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.description import units
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled
from tauloop.model.tool import Payload
from tauloop.motion import StrokeOptions
from tauloop.motion.planning import planned
from tauloop.motion.trajectory import Trajectory
from tauloop.simulation.controllers.laws import Sampling, read_bandwidth
from tauloop.simulation.controllers.library import COMPILED, CONTROLLERS
from tauloop.simulation.controllers.loop import CompiledLoop, InterpretedLoop
from tauloop.simulation.controllers.run import ControlledMotion, LoopRunner, follow
from tauloop.simulation.controllers.workflow import SHARE
from tauloop.simulation.forces import Wrench, wrench_at_tool
from tauloop.simulation.observers.observers import OBSERVERS, MeasuredMotion, platform_force
from tauloop.simulation.observers.speeds import differenced, tracked

#: s.
HOUR = 3600.0
#: Draws below which no tail can be told from their largest residuals.
FEWEST_DRAWS = 4
#: Share of the largest threshold that every other has at least.
ROUNDING = 1e-3


@dataclass(frozen=True, kw_only=True)
class CollisionDetectionOptions(Options):
    """A stroke, what happens on it, and what watches it.

    Attributes:
        stroke: the stroke; its seed is that of the errors too.
        hit: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame), of the collision.
        payload: mass at the tool, which is suddenly fixed there, such as 0.5kg; in place of a
            wrench.
        at: instant at which it begins; the middle of the stroke without it.
        lasting: how long; to the end without it.
        bandwidth: bandwidth of the observers, such as 100 (rad/s) or '20 Hz': they follow a force
            with the delay 1/K.
        speeds: from what encoders count: differences, or a tracking loop.
        tracking: bandwidth of that loop.
        controller: law of the controller.
        stiffness: its bandwidth.
        frequency: samples per second, such as 1kHz.
        resolution: step of the encoders, such as 0.1mrad; 0 for none.
        masses: largest relative error of each mass and inertia of the model.
        friction: likewise of each coefficient of friction.
        draws: machines with errors of their own.
        alarms: false alarms in an hour that the threshold allows.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.05}, time=0.5)
        >>> tl.CollisionDetectionOptions(stroke=stroke, hit={"fx": 20}, bandwidth=200.0).bandwidth
        200.0
    """

    stroke: StrokeOptions
    hit: str | Mapping[str, str | float] | None = option(
        None, read=pairs_reader("hit", "fx=20"), flag="--wrench", metavar="VALUES"
    )
    payload: float = option(0.0, least=0.0, metavar="MASS", unit=units.MASS)
    at: float | None = option(None, metavar="TIME", least=0.0, unit=units.TIME)
    lasting: float | None = option(None, metavar="TIME", above=0.0, unit=units.TIME)
    bandwidth: float = option(100.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    speeds: str = option("differences", choices=("differences", "tracking"))
    tracking: float = option(1000.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    controller: str = option("computed-torque", choices=COMPILED, metavar="LAW")
    stiffness: float = option(150.0, read=read_bandwidth, metavar="FREQUENCY", above=0.0)
    frequency: float = option(1000.0, flag="--rate", metavar="FREQUENCY", unit=units.FREQUENCY)
    resolution: float = option(
        0.0, flag="--quantization", least=0.0, metavar="QUANTITIES", unit=units.POSITIONS
    )
    masses: float = option(0.05, least=0.0, below=1.0, flag="--mass-error")
    friction: float = option(0.3, least=0.0, below=1.0, flag="--friction-error")
    draws: int = option(16, least=FEWEST_DRAWS, flag="--machines")
    alarms: float = option(1.0, above=0.0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Note that nothing happens."""
        if not self.payload and self.hit is None:
            problems.add("hit", "neither a force nor a payload is named", "such as fx=20 (N)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection(ReprMixin):
    """What one observer makes of the draws.

    Attributes:
        threshold: of an alarm, on the platform's velocities (n,), N or N m.
        noise: of its estimate from the encoders' steps, root mean square (n,).
        delays: from the first instant of the blow to the alarm of each draw (d,), s; infinite where
            none is raised.
        estimate: with the blow, of the first draw (N, n).
    """

    threshold: np.ndarray
    noise: np.ndarray = field(metadata=json_keys("noise_rms"))
    delays: np.ndarray = field(metadata=OMITTED)
    estimate: np.ndarray = field(metadata=OMITTED)

    @property
    @in_json("detected_share")
    def detected(self) -> float:
        """Share of the draws whose blow is noticed while it lasts."""
        return float(np.isfinite(self.delays).mean())

    @property
    @in_json("delay_median_s")
    def median_delay(self) -> float | None:
        """Delay within which half of the draws are noticed, s; None where they are not."""
        return self.quantile(0.5)

    @property
    @in_json("delay_90_percent_s")
    def long_delay(self) -> float | None:
        """Delay within which 90 % of the draws are noticed, s; None where they are not."""
        return self.quantile(0.9)

    def quantile(self, share: float) -> float | None:
        """Delay within which a share of the draws is noticed, s; None where it is not."""
        delay = float(np.quantile(self.delays, share, method="higher"))
        return delay if np.isfinite(delay) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollisionDetection(Result):
    """A blow on a stroke, and how soon observers notice it.

    Attributes:
        model: what the controller and the observers believe in.
        time: of the samples (N,), s.
        force: that truly acts on the platform's velocities, of the first draw (N, n), N or N m.
        observers: by name, with their lag; and of each without it, as `NAME, no lag`.
        at: instant of the blow, s.
        varied: parameters whose values differ from draw to draw.
    """

    model: Model = field(repr=False, metadata=json_keys(machine="mechanism.name"))
    time: np.ndarray = field(metadata=OMITTED)
    force: np.ndarray = field(metadata=OMITTED)
    observers: Mapping[str, Detection]
    at: float = field(metadata=json_keys("at_s"))
    varied: tuple[str, ...]

    def variables(self) -> Iterator[Variable]:
        """The true force and the estimates of the first draw, over time."""
        names, force_units = self.freedoms
        yield time_axis(self.time)
        yield from columns("force", names, force_units, self.force)
        for name, detection in self.observers.items():
            yield from columns(
                name.replace(", ", "_").replace(" ", "_"), names, force_units, detection.estimate
            )

    @property
    def lagged(self) -> dict[str, Detection]:
        """Observers with their lag."""
        return {name: self.observers[name] for name in OBSERVERS}

    @property
    def freedoms(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the platform's velocities, and units of the forces on them."""
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
        """Units of the forces on them."""
        return self.freedoms[1]


@keywords(CollisionDetectionOptions)
@solving(PoseError)
def simulate_collision_detection(
    machine: MachineSource, options: CollisionDetectionOptions, *, progress: Progress | None = None
) -> CollisionDetection:
    """Simulate a collision of a moving platform, and report the delay of its detection, by momenta and by differences.

    The model's masses, inertias and friction differ from the machine's by up to `masses` and
    `friction`, drawn evenly and anew for each of `draws` machines. The threshold of each freedom is
    where the largest residual of a stroke without a blow, after Gumbel's law through those of all
    draws, is exceeded `alarms` times an hour, strokes one after the other: an error of the model
    that lasts counts as well as noise.

    Args:
        machine: what the controller and the observers assume: a model, a mechanism, a path, or the
            name of a shipped machine.
        options: the stroke, the blow, the encoders, and what is wrong with the model.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: names and numbers that are wrong.
        PoseError: the stroke cannot be run.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, time=0.1)
        >>> options = tl.CollisionDetectionOptions(stroke=stroke, hit={"fx": 40}, draws=4)
        >>> result = tl.simulate_collision_detection(tl.load("five_bar"), options)
        >>> sorted(result.observers)
        ['differences', 'differences, no lag', 'momentum', 'momentum, no lag']
    """
    model = modelled(machine)
    rng = np.random.default_rng(options.stroke.seed)
    stages = Stages(progress, 1 + options.draws)
    trajectory = planned(model, options.stroke, SHARE)
    spread = {
        **dict.fromkeys(_leaves(model, "inertia", "drive"), options.masses),
        **dict.fromkeys(_leaves(model, "friction"), options.friction),
    }
    spread = {name: share for name, share in spread.items() if share}
    hit = _Hit(model, trajectory, options, spread)
    stages.done()
    runs = []
    for _ in stages.over(range(options.draws)):
        shares = dict(zip(spread, rng.uniform(-1, 1, len(spread)), strict=True))
        changed = {
            name: model.mechanism.parameters[name].value * (1 + spread[name] * share)
            for name, share in shares.items()
        }
        runs.append(hit.run(changed))
    return hit.judged(runs, tuple(spread))


def _leaves(model: Model, *groups: str) -> list[str]:
    """Parameters of the machine file of whose unit is a mass or more, in dynamic parameters of these groups."""
    table = model.mechanism.parameters
    named = {name for p in model.parameters if p.group in groups for name in leaves(p.expression)}
    return [
        p.name
        for p in table
        if p.name in named and p.value and units.parse_unit(p.unit or "1").dimension.mass == 1
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Estimates of one draw: with lag and without, exact speeds, without and with the blow; and the true force."""

    quiet: Mapping[str, np.ndarray]
    noise: Mapping[str, np.ndarray]
    struck: Mapping[str, np.ndarray]
    force: np.ndarray


class _Hit:
    """The stroke, run with and without the blow."""

    def __init__(
        self,
        model: Model,
        trajectory: Trajectory,
        options: CollisionDetectionOptions,
        varied: Iterable[str],
    ) -> None:
        self._model, self._trajectory, self._options = model, trajectory, options
        self._plant = model.with_free_parameters(varied)
        self.period = 1.0 / options.frequency
        self.at = trajectory.total / 2 if options.at is None else options.at
        self.until = np.inf if options.lasting is None else self.at + options.lasting
        if not self.at < trajectory.total:
            what = f"is {self.at:g} s, where the stroke lasts {trajectory.total:.4g} s"
            raise InputError.of("at", what, "an instant within the stroke")
        self._wrench = wrench_at_tool({} if options.hit is None else options.hit)
        self._law = CONTROLLERS[options.controller](bandwidth=options.stiffness)
        differs = options.speeds == "differences"
        self._sampling = Sampling(
            frequency=options.frequency, resolution=options.resolution, differences=differs
        )
        try:
            self._loop: LoopRunner = CompiledLoop(self._plant, model, self._law, loaded=True)
        except EngineError:
            self._loop = InterpretedLoop()

    def _acts(self, time: float) -> bool:
        return self.at <= time < self.until

    def run(self, values: Mapping[str, float]) -> _Run:
        """Both runs of one machine, by the values of what varies, and what observers make of them."""
        nothing = np.zeros(6)
        payload, mass = Payload(mass=0.0), Payload(mass=self._options.payload)
        quiet = self._follow(values, lambda _: nothing, lambda _: payload)
        struck = self._follow(
            values,
            lambda time: np.asarray(self._wrench) if self._acts(time) else nothing,
            lambda time: mass if self._acts(time) else payload,
        )
        seen = self._estimates(quiet, measured=True)
        exact = self._estimates(quiet, measured=False)
        return _Run(
            quiet=seen,
            noise={name: seen[name] - exact[name] for name in seen},
            struck=self._estimates(struck, measured=True),
            force=self._true(struck),
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
                f"the machine does not follow it: {run.end}",
                "a slower stroke, or a smaller hit",
            )
        return run

    def _estimates(self, run: ControlledMotion, *, measured: bool) -> dict[str, np.ndarray]:
        """Estimates by observer, from what encoders count or from the true motion."""
        options, model, plant = self._options, self._model, run.model
        state = plant.platform.kinematics(run.position, run.velocity, start=plant.assembly.q)
        position = plant.actuator_position(state.q)
        if measured and options.resolution:
            position = options.resolution * np.round(position / options.resolution)
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

    def _true(self, run: ControlledMotion) -> np.ndarray:
        """The blow on the platform's velocities (N, n); a payload's depends on the motion and is left out."""
        acts = np.array([self._acts(time) for time in run.time.tolist()])
        wrench = np.where(acts[:, None], np.asarray(self._wrench), 0.0)
        start = run.model.platform.kinematics(run.position, start=run.model.assembly.q).q
        return platform_force(run.model, run.position, start, wrench)

    def judged(self, runs: list[_Run], varied: tuple[str, ...]) -> CollisionDetection:
        """Thresholds, delays and what they are worth."""
        options, count = self._options, len(runs[0].force)
        time = np.arange(count) * self.period
        chance = min(options.alarms * time[-1] / HOUR, 0.5)
        observers = {}
        for name in runs[0].quiet:
            threshold = _threshold(
                np.array([np.abs(run.quiet[name]).max(axis=0) for run in runs]), chance
            )
            observers[name] = Detection(
                threshold=threshold,
                noise=np.sqrt(np.mean([run.noise[name] ** 2 for run in runs], axis=(0, 1))),
                delays=np.array([self._delay(time, run.struck[name], threshold) for run in runs]),
                estimate=runs[0].struck[name],
            )
        best = observers["momentum"]
        advice = (
            "the blow is smaller than what the model's errors look like: identify masses and "
            "friction, or slow down"
        )
        return CollisionDetection(
            diagnostics=(
                diagnostic(
                    "share of the blows that momenta notice",
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
                    "stiffness": options.stiffness,
                    "frequency": options.frequency,
                    "resolution": options.resolution,
                    "masses": options.masses,
                    "friction": options.friction,
                    "draws": options.draws,
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
            at=self.at,
            varied=varied,
        )

    def _delay(self, time: np.ndarray, estimate: np.ndarray, threshold: np.ndarray) -> float:
        alarms = (
            (np.abs(estimate) > threshold).any(axis=1) & (time >= self.at) & (time < self.until)
        )
        return float(time[np.argmax(alarms)] - self.at) if alarms.any() else np.inf


def _threshold(largest: np.ndarray, chance: float) -> np.ndarray:
    """What the largest residual of a stroke exceeds with some chance, of each freedom (n,), from those of draws (d, n).

    Gumbel's law through the draws; the chance is shared out among the freedoms. Where next to
    nothing is left, as off a plane of symmetry, the threshold is a small share of the largest, for
    rounding is no alarm.
    """
    n = largest.shape[1]
    tails = [
        gumbel_r.isf(chance / n, *gumbel_r.fit(column)) if np.ptp(column) else column[0]
        for column in largest.T
    ]
    return np.maximum(tails, ROUNDING * np.max(tails))
