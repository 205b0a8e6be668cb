"""One call from a machine and options to the fastest motion along a path, tried out under a sampled controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import TIME, Variable
from tauloop.common.errors import PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.mechanism.description import units
from tauloop.mechanism.model import Platform
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model.model import MachineSource, modelled
from tauloop.motion import StrokeOptions
from tauloop.motion.fastest.changes import changes_taken, limited_law
from tauloop.motion.fastest.limits import PathLimits, PathRows
from tauloop.motion.fastest.planning import INTERVALS, FastestLaw, fastest_law, law_rate
from tauloop.motion.laws import LAWS
from tauloop.motion.planning import placed_stroke
from tauloop.motion.strokes import Stroke
from tauloop.motion.trajectory import Trajectory
from tauloop.simulation.c_arrays import c_arrays
from tauloop.simulation.controllers.laws import Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.run import SATURATED, follow
from tauloop.simulation.planned.limit_options import LimitOptions

if TYPE_CHECKING:
    import xarray as xr

#: Times at which it is looked which limit is active, the share from which on one is, and the
#: shortest time that counts.
LOOKS, ACTIVE, SHORTEST = 2001, 0.995, 0.005
#: Laws that it is compared with, beside the one that the options name.
COMPARED = ("cycloidal", "3-4-5")
#: What bounds a motion whose forces or whose tool's acceleration change as fast as they may.
CHANGE = "change of forces or of the tool's acceleration"


@dataclass(frozen=True, kw_only=True)
class PathOptions(LimitOptions):
    """The fastest motion along a path.

    Attributes:
        stroke: the path; its law is one that the motion is compared with, its duration is found.
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
        """Note a duration, and a share of limits that the reserve tells."""
        for name in ("time", "speed", "acceleration", "share"):
            if getattr(self.stroke, name) is not None:
                remedy = "leave it out" if name != "share" else "give a reserve"
                problems.add(name, "the fastest motion has its own", remedy)
        if self.stroke.shape == "multisine":
            problems.add("shape", "a multisine has its own time", "another shape")

    def limits(self, reserve: float, platform: Platform) -> PathLimits:
        """What the motion keeps, with a reserve of the forces."""
        return replace(super().limits(reserve, platform), tool_jerk=self.tool_jerk)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveLimit:
    """A part of the motion on which one limit is reached.

    Attributes:
        start, end: s.
        first, last: parameters of the path.
        limit: its name; "" where none is reached.
    """

    start: float
    end: float
    first: float
    last: float
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedMotion:
    """The motion under a sampled controller.

    Attributes:
        payload: kg at the tool, which the controller does not know.
        peak_share: largest share of an actuator's full force.
        saturated: share of forces at the actuators' limits.
        peak_error: largest distance of the tool centre point from its reference, m.
        peak_turn: largest angle between the tool and its reference, rad.
        end: why it ended early; empty where it did not.
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
        trajectory: from rest to rest.
        limits: what it keeps.
        duration: of one direction, s.
        without_reserve: its duration if the controller had nothing in reserve, s.
        laws: the shortest durations of other laws under the same limits, s; those of changes apart.
        active: which limit is reached when, in the order of time.
        tried: under the sampled controller, without payload and with it.
        sweeps: over the grid.
        controller: law and samples per second.
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
        """Those of the trajectory, and the largest share of any limit."""
        tables = list(self.trajectory.variables())
        yield from tables
        time = np.asarray(tables[0].array())
        rows = PathRows(self.trajectory.stroke, self.limits, returns=self.trajectory.returns)
        x = np.clip(
            np.where(time > self.duration, 2 * self.duration - time, time) / self.duration, 0.0, 1.0
        )
        shares = rows.shares(self.trajectory.law.at(x), 1.0 / self.duration)[0].max(axis=1)
        yield Variable(name="share", values=shares, over=TIME, unit="1")

    @property
    @in_json()
    def gains(self) -> dict[str, float]:
        """By which share of their duration it is shorter than other laws."""
        return {name: 1.0 - self.duration / other for name, other in self.laws.items()}

    def log(self, frequency: float = 1000.0) -> xr.Dataset:
        """Positions, velocities and accelerations at so many samples per second, for `tauloop dynamics`."""
        return self.trajectory.sample(frequency).log(self.trajectory.stroke.functions.ports.motion)

    def c_array(self, frequency: float = 1000.0) -> str:
        """C99 text of two arrays: positions, velocities and forces of the actuators, sample by sample (SI)."""
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
        """The place with the largest condition number."""
        placed = self.trajectory.stroke
        return placed.place(placed.worst)


@keywords(PathOptions)
@solving(PoseError)
def plan_path(
    machine: MachineSource, options: PathOptions, *, progress: Progress | None = None
) -> FastestMotion:
    """Plan the fastest motion along a path, and simulate a sampled controller that follows it.

    The path is a stroke's; forces of motors (with their curve over speed) and rods, speeds, the
    tool's acceleration and changes of forces are kept, at every payload from none to the heaviest
    (forces are affine in what a payload weighs). A tenth of the forces stays in reserve for the
    controller unless the options say otherwise. What saturates or ends early in the simulator makes
    the result doubtful.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: path, limits and controller.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: names and numbers that are wrong; cables, or nothing that limits the
            acceleration.
        PoseError: a path that leaves the workspace, passes through a singularity, or on which
            nothing keeps the limits.

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
    model = modelled(machine)
    stages = Stages(progress, 3)
    placed, returns = placed_stroke(model, options.stroke), options.stroke.returns
    best = _planned(placed, options, options.reserve)
    stages.done()
    unreserved = best if options.reserve == 0 else _planned(placed, options, 0.0)
    stages.done()
    trajectory = Trajectory(stroke=placed, law=best.law, duration=best.duration, returns=returns)
    names = dict.fromkeys((*COMPARED, options.stroke.law))
    names.pop("fastest", None)
    laws = {name: 1.0 / law_rate(best.rows, LAWS[name], 1.0 / best.duration) for name in names}
    runs = tried(trajectory, options)
    stages.done()
    return FastestMotion(
        diagnostics=(
            *shares_diagnostics(best),
            *tried_diagnostics(runs),
            condition_of(placed),
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
        controller=(options.controller, options.frequency),
    )


def condition_of(placed: Stroke) -> Diagnostic:
    """How near a stroke comes to a singularity."""
    return diagnostic("worst condition number on the way", placed.condition)


def _planned(placed: Stroke, options: PathOptions, reserve: float) -> FastestLaw:
    """The law with a reserve."""
    limits = options.limits(reserve, placed.model.mechanism.platform)
    best = fastest_law(
        PathRows(placed, limits, returns=options.stroke.returns), intervals=options.intervals
    )
    return limited_law(best) if limits.bounds_changes else best


def shares_diagnostics(best: FastestLaw) -> Iterator[Diagnostic]:
    """The largest shares of limits on a grid ten times finer than the law's."""
    x = np.linspace(0.0, 1.0, 10 * INTERVALS + 1)
    rows, rate = best.rows, 1.0 / best.duration
    advice = "more intervals"
    share = float(rows.shares(best.law.at(x), rate)[0].max())
    yield diagnostic("largest share of a limit", share, at_most=1.0 + 1e-6, advice=advice)
    if rows.limits.bounds_changes:
        change = float(changes_taken(rows, best.law, rate, best.unit)[0].max())
        yield diagnostic("largest share of a change", change, at_most=1.0 + 1e-6, advice=advice)


def tried_diagnostics(runs: tuple[TriedMotion, ...]) -> Iterator[Diagnostic]:
    """What the simulator says."""
    for run in runs:
        name = f"{SATURATED}, payload {run.payload:g} kg"
        saturated = 1.0 if run.end else run.saturated
        yield diagnostic(
            name, saturated, at_most=0.0, advice=run.end or "a larger reserve or a higher rate"
        )


def tried(trajectory: Trajectory, options: LimitOptions) -> tuple[TriedMotion, ...]:
    """The motion under the sampled controller of the options, without payload and with it."""
    mechanism = trajectory.stroke.model.mechanism
    law, sampling = (
        CONTROLLERS[options.controller](bandwidth=options.bandwidth),
        Sampling(frequency=options.frequency),
    )
    payload = options.limits(0.0, mechanism.platform).payload
    loads = [None] if payload is None else [None, payload]
    size = np.array([actuator.force for actuator in mechanism.actuators])
    runs = []
    for load in loads:
        carried = None if load is None else (lambda _, load=load: load)
        run = follow(trajectory, law, sampling, payload=carried)
        shares = np.abs(run.force) / size
        runs.append(
            TriedMotion(
                payload=0.0 if load is None else load.mass,
                peak_share=float(shares.max(initial=0.0)),
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
    """Which limit is reached when."""
    x, rows, rate = np.linspace(0.0, 1.0, LOOKS), best.rows, 1.0 / best.duration
    middle = 0.5 * (x[1:] + x[:-1])
    shares, names = rows.shares(best.law.at(middle), rate)
    reached, last = [], 0
    for row in shares:  # as long as it lasts, a limit that is reached stays the one that is told
        last = last if row[last] >= ACTIVE else int(row.argmax())
        reached.append(names[last] if row[last] >= ACTIVE else "")
    if rows.limits.bounds_changes:
        changes, _ = changes_taken(rows, best.law, rate, best.unit, looks=LOOKS)
        reached = [
            name or (CHANGE if c >= ACTIVE - 0.02 else "")
            for name, c in zip(reached, changes, strict=True)
        ]
    ends = np.flatnonzero([a != b for a, b in zip(reached[1:], reached[:-1], strict=True)]) + 1
    starts = np.concatenate([[0], ends, [LOOKS - 1]])
    s = best.law.at(x).s
    parts = [
        ActiveLimit(
            start=float(x[i] * best.duration),
            end=float(x[k] * best.duration),
            first=float(s[i]),
            last=float(s[k]),
            limit=reached[i],
        )
        for i, k in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    return _joined([part for part in parts if part.end - part.start > SHORTEST * best.duration])


def _joined(parts: list[ActiveLimit]) -> tuple[ActiveLimit, ...]:
    """Neighbours with the same limit as one, up to where the next begins."""
    joined: list[ActiveLimit] = []
    for part in parts:
        if joined and joined[-1].limit == part.limit:
            joined[-1] = replace(joined[-1], end=part.end, last=part.last)
            continue
        if joined:
            joined[-1] = replace(joined[-1], end=part.start, last=part.first)
        joined.append(part)
    return tuple(joined)
