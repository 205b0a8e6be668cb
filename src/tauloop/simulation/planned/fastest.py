"""Planning of the fastest motion along a path, with a simulated controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import TIME_DIMENSIONS, Variable
from tauloop.common.errors import PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Platform, omission_diagnostics
from tauloop.model.model import MachineSource, modeled
from tauloop.motion import StrokeOptions
from tauloop.motion.fastest.changes import changes_taken, limited_law
from tauloop.motion.fastest.limits import PathLimits, PathRows
from tauloop.motion.fastest.planning import INTERVALS, FastestLaw, fastest_law, law_rate
from tauloop.motion.laws import LAWS
from tauloop.motion.planning import placed_stroke
from tauloop.motion.strokes.stroke import Stroke
from tauloop.motion.trajectory import Trajectory
from tauloop.simulation.controllers.laws import Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.run import SATURATED, follow
from tauloop.simulation.planned.c_arrays import c_arrays
from tauloop.simulation.planned.limit_options import LimitOptions

if TYPE_CHECKING:
    import xarray as xr

#: Number of times at which the active limit is determined.
LIMIT_SAMPLES = 2001
#: Used fraction of a limit above which the limit is active.
ACTIVE_SHARE = 0.995
#: The same for the limits of changes of forces and of the tool's acceleration.
ACTIVE_CHANGE_SHARE = ACTIVE_SHARE - 0.02
#: Shortest reported interval of an active limit, relative to the duration.
MIN_ACTIVE_DURATION = 0.005
#: Motion laws for comparison, in addition to the one of the options.
COMPARED = ("cycloidal", "3-4-5")
#: Name of the limit of changes of forces and of the tool's acceleration.
CHANGE_LIMIT = "change of forces or of the tool's acceleration"


@dataclass(frozen=True, kw_only=True)
class PathOptions(LimitOptions):
    """Options of the fastest motion along a path.

    Attributes:
        stroke: the path; its law is compared with the result, and its duration is computed.
        tool_jerk: largest jerk of the tool, m/s^3.
        intervals: number of intervals of the grid along the path.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1})
        >>> tl.PathOptions(stroke=stroke, payload=0.5, reversal=0.02).reserve
        0.1
    """

    stroke: StrokeOptions
    tool_jerk: float = option(np.inf, above=0.0, metavar="JERK", unit=units.JERK)
    intervals: int = option(INTERVALS, least=20, most=100_000)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report options of the stroke whose values the planner determines."""
        for name in ("duration", "max_velocity", "max_acceleration", "share"):
            if getattr(self.stroke, name) is not None:
                remedy = "leave it out" if name != "share" else "give a reserve"
                problems.add(name, "cannot be given: the planner determines it", remedy)
        if self.stroke.shape == "multisine":
            problems.add("shape", "a multisine has a fixed duration", "use another shape")

    def limits(self, reserve: float, platform: Platform) -> PathLimits:
        """Return the limits of the motion, with a reserve in the forces."""
        return replace(super().limits(reserve, platform), tool_jerk=self.tool_jerk)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveLimit:
    """An interval of the motion in which a limit is active.

    Attributes:
        start, end: times, s.
        first, last: path parameters at the start and at the end.
        limit: name of the limit; "" if none is active.
    """

    start: float
    end: float
    first: float
    last: float
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedMotion:
    """The motion under a simulated controller.

    Attributes:
        payload: mass at the tool, kg, unknown to the controller.
        peak_share: largest fraction of an actuator's full force.
        saturated: fraction of the forces that are at the actuators' limits.
        peak_error: largest distance of the tool center point from its reference, m.
        peak_turn: largest angle between the tool and its reference, rad.
        end: reason why the simulation ended early; empty if it did not.
    """

    payload: float
    peak_share: float
    saturated: float
    peak_error: float
    peak_turn: float
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FastestMotion(Result):
    """The fastest motion along a path under limits.

    Attributes:
        trajectory: the motion from rest to rest.
        limits: limits of the motion.
        duration: duration of the motion in one direction, s.
        without_reserve: duration without a reserve for the controller, s.
        laws: shortest durations of other motion laws, s, by name. They satisfy the same limits
            except those of changes.
        active: active limits in order of time.
        tried: simulations under the controller, without payload and with it.
        sweeps: number of sweeps over the grid.
        controller: name of the control law, and samples per second.
    """

    trajectory: Trajectory = field(
        metadata=json_keys(
            machine="stroke.model.mechanism.name", total_s="total", condition="stroke.condition"
        )
    )
    limits: PathLimits = field(metadata=OMITTED)
    duration: float
    without_reserve: float
    laws: Mapping[str, float]
    active: tuple[ActiveLimit, ...]
    tried: tuple[TriedMotion, ...]
    sweeps: int
    controller: tuple[str, float] = field(metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the variables of the trajectory, and the largest fraction of any limit."""
        tables = list(self.trajectory.variables())
        yield from tables
        time = np.asarray(tables[0].array())
        rows = PathRows(self.trajectory.stroke, self.limits, returns=self.trajectory.returns)
        forward = np.where(time > self.duration, 2 * self.duration - time, time)
        x = np.clip(forward / self.duration, 0.0, 1.0)
        shares = rows.shares(self.trajectory.law.at(x), 1.0 / self.duration)[0].max(axis=1)
        yield Variable(name="share", values=shares, over=TIME_DIMENSIONS, unit="1")

    @property
    @in_json()
    def gains(self) -> dict[str, float]:
        """Reduction of the duration compared with other laws, as a fraction of their durations."""
        return {name: 1.0 - self.duration / other for name, other in self.laws.items()}

    def log(self, frequency: float = 1000.0) -> xr.Dataset:
        """Return the sampled motion as a log for `tauloop dynamics`; the frequency is in Hz."""
        return self.trajectory.sample(frequency).log(self.trajectory.stroke.functions.ports.motion)

    def c_array(self, frequency: float = 1000.0) -> str:
        """Return the C99 text of the motion: positions, velocities and forces of the actuators."""
        time = self.trajectory.sample(frequency).time
        return c_arrays(self.trajectory, time, 1.0 / frequency, "A motion from rest to rest")

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
    def worst_place(self) -> str:
        """Description of the position on the path with the largest condition number."""
        stroke = self.trajectory.stroke
        return stroke.place(stroke.worst)


@keywords(PathOptions)
@solving(PoseError)
def plan_path(
    machine: MachineSource, options: PathOptions, *, progress: Progress | None = None
) -> FastestMotion:
    """Plan the fastest motion along a path, and simulate a sampled controller that follows it.

    The path is a stroke. The limits are those of motor forces (with torque-speed curves), rod
    forces, speeds, the tool's acceleration and changes of forces. They hold for every payload from
    zero to the largest, because forces are affine in the payload's inertia. By default, 10 % of the
    forces are reserved for the controller. The status is doubtful if forces saturate in the
    simulation or the simulation ends early.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: path, limits and controller.
        progress: called with the work done and the total work.

    Returns:
        The motion: duration, samples with motor forces, and the simulated controller.

    Raises:
        InputError: a name or a number is wrong, the machine has cables, or nothing limits the
            acceleration.
        PoseError: the path leaves the workspace or passes through a singularity, or no motion along
            it satisfies the limits.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1})
        >>> motion = tl.plan_path("delta", stroke=stroke, intervals=200)
        >>> round(motion.duration, 4), motion.status.value
        (0.0522, 'ok')
        >>> motion.active[0].limit
        'leg2.motor'

    Source: Pham and Pham 2018; see `docs/fastest-motion.md`.
    """
    model = modeled(machine)
    stages = Stages(progress, 3)
    stroke = placed_stroke(model, options.stroke)
    best = _planned(stroke, options, options.reserve)
    stages.done()
    unreserved = best if options.reserve == 0 else _planned(stroke, options, 0.0)
    stages.done()
    trajectory = Trajectory(
        stroke=stroke, law=best.law, duration=best.duration, returns=options.stroke.returns
    )
    names = dict.fromkeys((*COMPARED, options.stroke.law))
    names.pop("fastest", None)
    laws = {name: 1.0 / law_rate(best.rows, LAWS[name], 1.0 / best.duration) for name in names}
    runs = simulate_with_payloads(trajectory, options)
    stages.done()
    return FastestMotion(
        diagnostics=(
            *shares_diagnostics(best),
            *simulated_diagnostics(runs),
            condition_diagnostic(stroke),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={
                "reserve": options.reserve,
                "intervals": options.intervals,
                "controller": options.controller,
            },
            inputs={"machine": model.mechanism.name},
        ),
        trajectory=trajectory,
        limits=best.rows.limits,
        duration=best.duration,
        without_reserve=unreserved.duration,
        laws=laws,
        active=active_limits(best),
        tried=runs,
        sweeps=best.sweeps,
        controller=(options.controller, options.rate),
    )


def condition_diagnostic(stroke: Stroke) -> Diagnostic:
    """Return the diagnostic of the largest condition number along a stroke."""
    return diagnostic("worst condition number along the path", stroke.condition)


def _planned(stroke: Stroke, options: PathOptions, reserve: float) -> FastestLaw:
    """Return the fastest motion law with a reserve in the forces."""
    limits = options.limits(reserve, stroke.model.mechanism.platform)
    best = fastest_law(
        PathRows(stroke, limits, returns=options.stroke.returns), intervals=options.intervals
    )
    return limited_law(best) if limits.bounds_changes else best


def shares_diagnostics(best: FastestLaw) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the largest fractions of limits.

    They are evaluated on a grid that is finer than the grid of the law.
    """
    x = np.linspace(0.0, 1.0, 10 * INTERVALS + 1)
    rows, rate = best.rows, 1.0 / best.duration
    advice = "use more intervals along the path (`intervals`)"
    share = float(rows.shares(best.law.at(x), rate)[0].max())
    yield diagnostic("largest fraction of a limit", share, at_most=1.0 + 1e-6, advice=advice)
    if rows.limits.bounds_changes:
        change = float(changes_taken(rows, best.law, rate, best.unit)[0].max())
        yield diagnostic("largest fraction of a change", change, at_most=1.0 + 1e-6, advice=advice)


def simulated_diagnostics(runs: tuple[TriedMotion, ...]) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the simulations under the controller."""
    for run in runs:
        name = f"{SATURATED}, payload {run.payload:g} kg"
        saturated = 1.0 if run.end else run.saturated
        advice = run.end or "use a larger reserve or a higher sample rate"
        yield diagnostic(name, saturated, at_most=0.0, advice=advice)


def simulate_with_payloads(
    trajectory: Trajectory, options: LimitOptions
) -> tuple[TriedMotion, ...]:
    """Simulate the motion under the controller of the options, without payload and with it.

    Returns:
        One run for each payload.
    """
    mechanism = trajectory.stroke.model.mechanism
    law = CONTROLLERS[options.controller](bandwidth=options.bandwidth)
    sampling = Sampling(frequency=options.rate)
    payload = options.limits(0.0, mechanism.platform).payload
    loads = [None] if payload is None else [None, payload]
    max_force = np.array([actuator.force for actuator in mechanism.actuators])
    runs = []
    for load in loads:
        payload_at = None if load is None else (lambda _, load=load: load)
        run = follow(trajectory, law, sampling, payload=payload_at)
        fractions = np.abs(run.force) / max_force
        runs.append(
            TriedMotion(
                payload=0.0 if load is None else load.mass,
                peak_share=float(fractions.max(initial=0.0)),
                saturated=next(
                    item.value or 0.0 for item in run.diagnostics if item.name == SATURATED
                ),
                peak_error=run.peak_error if len(run.time) else np.nan,
                peak_turn=run.peak_turn if len(run.time) else np.nan,
                end=run.end,
            )
        )
    return tuple(runs)


def active_limits(best: FastestLaw) -> tuple[ActiveLimit, ...]:
    """Return the active limits in order of time."""
    x = np.linspace(0.0, 1.0, LIMIT_SAMPLES)
    rows = best.rows
    rate = 1.0 / best.duration
    middle = 0.5 * (x[1:] + x[:-1])
    fractions, names = rows.shares(best.law.at(middle), rate)
    active = []
    current = 0
    for row in fractions:
        # an active limit is reported until it is no longer active
        if row[current] < ACTIVE_SHARE:
            current = int(row.argmax())
        active.append(names[current] if row[current] >= ACTIVE_SHARE else "")
    if rows.limits.bounds_changes:
        changes, _ = changes_taken(rows, best.law, rate, best.unit, points=LIMIT_SAMPLES)
        for k, change in enumerate(changes):
            if not active[k] and change >= ACTIVE_CHANGE_SHARE:
                active[k] = CHANGE_LIMIT
    is_new = [a != b for a, b in zip(active[1:], active[:-1], strict=True)]
    starts = np.concatenate([[0], np.flatnonzero(is_new) + 1, [LIMIT_SAMPLES - 1]])
    s = best.law.at(x).s
    intervals = [
        ActiveLimit(
            start=float(x[i] * best.duration),
            end=float(x[k] * best.duration),
            first=float(s[i]),
            last=float(s[k]),
            limit=active[i],
        )
        for i, k in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    shortest = MIN_ACTIVE_DURATION * best.duration
    return _joined([interval for interval in intervals if interval.end - interval.start > shortest])


def _joined(intervals: list[ActiveLimit]) -> tuple[ActiveLimit, ...]:
    """Return the intervals, each extended to the start of the next, with equal neighbors joined."""
    joined: list[ActiveLimit] = []
    for interval in intervals:
        if joined and joined[-1].limit == interval.limit:
            joined[-1] = replace(joined[-1], end=interval.end, last=interval.last)
            continue
        if joined:
            joined[-1] = replace(joined[-1], end=interval.start, last=interval.first)
        joined.append(interval)
    return tuple(joined)
