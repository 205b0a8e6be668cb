"""Planning of the optimal motion between two poses, with a simulated controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import each, option, pairs_reader
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic, provenance
from tauloop.equations.named_values import (
    QUATERNION_SUFFIXES,
    named_values,
    quaternion_start,
)
from tauloop.mechanism.description import units
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.motion.fastest.limits import PathRows
from tauloop.motion.fastest.planning import FastestLaw, fastest_law, law_rate
from tauloop.motion.free.obstacles import BoxObstacle, Obstacle, SphereObstacle, box, sphere
from tauloop.motion.free.planning import INTERVALS, FreePlanner, Objective
from tauloop.motion.free.rows import Surroundings
from tauloop.motion.laws import LAWS
from tauloop.motion.paths.curves import AxisTurn
from tauloop.motion.trajectory import Trajectory
from tauloop.simulation.planned.fastest import (
    COMPARED,
    FastestMotion,
    active_limits,
    condition_diagnostic,
    shares_diagnostics,
    simulate_with_payloads,
    simulated_diagnostics,
)
from tauloop.simulation.planned.limit_options import LimitOptions

#: Number of times at which distances are computed.
DISTANCE_SAMPLES = 1001
#: Largest violation of a clearance that counts as rounding, m.
CLEARANCE_TOLERANCE = 5e-5


@dataclass(frozen=True, kw_only=True)
class TransferOptions(LimitOptions):
    """Options of the optimal motion between two poses, along a free path.

    Attributes:
        start: position at the start, such as 'x=0,y=-0.1' (SI, or with units); the other
            coordinates are those of the reference pose.
        end: position at the end, such as 'x=0.1' (SI, or with units); the other coordinates are
            those of the start.
        rotation: rotation vector 'rx,ry,rz' in rad from start to end, for a platform with all
            rotations.
        optimize: objective: time; energy (winding losses and friction, including drive lines); or wear
            (equivalent motor travel at full force, sum of ∫ |force / largest|^p |speed| dt).
        copper_loss: winding loss per squared force, R/k^2 at the actuator, W/N^2 or W/(N m)^2, for all
            motors; by default the value of each motor in the machine file.
        exponent: exponent p of the wear: 3 for balls and gears, 10/3 for rollers (ISO 281), 1 for
            sliding (Archard).
        max_duration: largest duration, such as 0.5s; required for wear.
        boxes: box obstacles parallel to the base axes: center and edges in m, x,y,z:dx,dy,dz.
        spheres: spherical obstacles: center and radius in m, x,y,z:r.
        tool_radius: radius of a sphere at the tool center point for collision checks, such as 20mm.
        rod_radius: radius of the rods for collision checks with obstacles and each other, such as
            6mm; by default these collisions are not checked.
        clearance: smallest distance from obstacles, such as 2mm.
        max_condition: largest condition number of the map from platform to motor velocities (a
            bound, dimensionless); default: three times the larger condition number of start and
            end.
        intervals: number of intervals of the spline.

    Examples:
        >>> import tauloop as tl
        >>> wall = tl.motion.BoxObstacle(center=(0.0, 0.0, -0.55), size=(0.02, 0.2, 0.1))
        >>> tl.TransferOptions(start={"x": -0.1}, end={"x": 0.1}, boxes=(wall,)).optimize
        'time'
    """

    start: Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, flag="--start", read=pairs_reader("start"), metavar="VALUES"
    )
    end: Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, flag="--end", read=pairs_reader("end"), metavar="VALUES"
    )
    rotation: tuple[float, ...] | None = option(None, metavar="RX,RY,RZ", unit=units.ANGLE)
    optimize: str = option("time", choices=("time", "energy", "wear"))
    copper_loss: float = option(
        0.0, least=0.0, below=np.inf, metavar="QUANTITY", unit=units.WINDING_LOSSES
    )
    exponent: float = option(3.0, least=1.0, most=12.0)
    max_duration: float = option(np.inf, above=0.0, metavar="TIME", unit=units.TIME)
    boxes: tuple[BoxObstacle, ...] = option(
        (), read=each(box), repeated=True, metavar="X,Y,Z:DX,DY,DZ"
    )
    spheres: tuple[SphereObstacle, ...] = option(
        (), read=each(sphere), repeated=True, metavar="X,Y,Z:R"
    )
    tool_radius: float = option(0.0, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    rod_radius: float | None = option(None, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    clearance: float = option(0.002, least=0.0, metavar="LENGTH", unit=units.LENGTH)
    max_condition: float | None = option(None, above=2.0)
    intervals: int = option(INTERVALS, least=6, most=400)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a missing end, and wear without a largest duration."""
        if self.end is None and self.rotation is None:
            problems.add("end", "no end of the motion is given", "give an end or a rotation")
        if self.rotation is not None and (
            len(self.rotation) != 3 or not np.isfinite(self.rotation).all()
        ):
            problems.add(
                "rotation",
                f"{self.rotation} is not three numbers",
                "give numbers such as 0,0,0.2 (rad)",
            )
        if self.optimize == "wear" and self.max_duration == np.inf:
            problem = "minimal wear needs a bound, because slower motions always wear less"
            problems.add("max_duration", problem, "give the largest duration, such as 0.5s")

    def planner(self, model: Model, reserve: float, *, compiled: bool = False) -> FreePlanner:
        """Return the planner for a model."""
        distances = {name: getattr(self, name) for name in _SURROUNDINGS_OPTIONS}
        surroundings = Surroundings(obstacles=(*self.boxes, *self.spheres), **distances)
        objective = Objective(**{name: getattr(self, name) for name in _OBJECTIVE_OPTIONS})
        return FreePlanner(
            model,
            self.limits(reserve, model.mechanism.platform),
            surroundings=surroundings,
            objective=objective,
            compiled=compiled,
        )


#: Options with the same name as an attribute of `Surroundings`.
_SURROUNDINGS_OPTIONS = ("tool_radius", "rod_radius", "clearance")
#: Options with the same name as an attribute of `Objective`.
_OBJECTIVE_OPTIONS = (
    "optimize",
    "max_duration",
    "copper_loss",
    "exponent",
    "max_condition",
    "intervals",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastDistance:
    """The smallest distance between the machine and an obstacle.

    Attributes:
        name: name of the obstacle; "rod to rod" between rods.
        distance: smallest distance, m.
        time: time of the smallest distance, s.
    """

    name: str
    distance: float
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(FastestMotion):
    """The optimal motion between two poses.

    Attributes:
        objective: quantity that the motion minimizes: "time", "energy" or "wear".
        energy: energy lost in motors and friction, J.
        wear: motor travel at full force that causes the same wear, rad or m.
        obstacles: obstacles that the motion avoids.
        nearest: smallest distance to each obstacle, and between rods.
        measure, allowed: largest bound on the condition number along the path, and its limit.
    """

    objective: str
    energy: float = field(metadata=json_keys("energy_J"))
    wear: float
    obstacles: tuple[Obstacle, ...] = field(metadata=OMITTED)
    nearest: tuple[LeastDistance, ...]
    measure: float
    allowed: float
    optimise = old_attribute("optimise", "objective")


@keywords(TransferOptions)
@solving(PoseError)
def plan_transfer(
    machine: MachineSource, options: TransferOptions, *, progress: Progress | None = None
) -> Transfer:
    """Plan the best motion between two poses, and simulate a sampled controller that follows it.

    Path and time are free. The motion is a spline in the platform's coordinates, optimized by IPOPT
    with exact derivatives. All limits hold at its collocation points. If limits are exceeded
    between the points, they are tightened by the excess and the problem is solved again. The motion
    avoids obstacles and singularities (by a bound on the condition number) and stays within the
    ranges of the machine file.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: ends, limits, obstacles and controller.
        progress: called with the work done and the total work.

    Returns:
        The motion: duration, samples with motor forces, and the simulated controller.

    Raises:
        InputError: a name or a number is wrong, or the machine has cables.
        PoseError: the start or the end is out of reach or in collision, or no motion is within all
            limits.

    Examples:
        >>> import tauloop as tl
        >>> ends = {"start": {"x": -0.1}, "end": {"x": 0.1}}
        >>> motion = tl.plan_transfer("delta", **ends, reserve=0.2)
        >>> round(motion.duration, 3), motion.status.value
        (0.054, 'ok')

    Source: Betts 2010, Practical Methods for Optimal Control; see `docs/transfers.md`.
    """
    model = modeled(machine)
    stages = Stages(progress, 3)
    start, end = _ends(model, options)
    planner = options.planner(model, options.reserve)
    best = planner.plan(start, end)
    stages.done()
    unreserved = best.law.duration
    if options.reserve > 0 and options.optimize == "time":
        unreserved = options.planner(model, 0.0).plan(start, end).law.duration
    stages.done()
    law = best.law
    trajectory = Trajectory(stroke=best.stroke, law=law.law, duration=law.duration)
    runs = simulate_with_payloads(trajectory, options)
    nearest = tuple(_nearest(planner, trajectory))
    stages.done()
    return Transfer(
        diagnostics=(
            *shares_diagnostics(law),
            *simulated_diagnostics(runs),
            *_clearances(nearest, options.clearance),
            diagnostic("bound on the condition number", best.measure, at_most=1.01 * best.allowed),
            condition_diagnostic(best.stroke),
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options={
                "reserve": options.reserve,
                "intervals": options.intervals,
                "optimize": options.optimize,
            },
            inputs={"machine": model.mechanism.name},
        ),
        trajectory=trajectory,
        limits=law.rows.limits,
        duration=law.duration,
        without_reserve=unreserved,
        laws=_start_path_durations(planner, law),
        active=active_limits(law),
        tried=runs,
        sweeps=law.sweeps,
        controller=(options.controller, options.rate),
        objective=options.optimize,
        energy=best.energy,
        wear=best.wear,
        obstacles=planner.surroundings.obstacles,
        nearest=nearest,
        measure=best.measure,
        allowed=best.allowed,
    )


def _ends(model: Model, options: TransferOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the platform at the start and at the end."""
    port = model.platform.ports.position
    start = named_values(port, "start", options.start, model.platform.ports.at(model.assembly.q))
    end = named_values(port, "end", options.end, start)
    if options.rotation is not None:
        first = quaternion_start(port)
        if first is None:
            what = f"the platform has no free orientation: {', '.join(port.columns)}"
            raise InputError.of(
                "rotation", what, "omit `rotation`, or give the coordinates of the end"
            )
        quaternion = slice(first, first + len(QUATERNION_SUFFIXES))
        axis_rotation = AxisTurn(start[quaternion], np.array(options.rotation))
        end[quaternion] = axis_rotation.at(np.ones(1)).position[0]
    if np.array_equal(start, end):
        raise InputError.of("end", "is the same as the start", "give a different end")
    return start, end


def _start_path_durations(planner: FreePlanner, law: FastestLaw) -> dict[str, float]:
    """Return the durations of motion laws along the planner's initial path, s, by name.

    The result is empty if no motion along this path is feasible.
    """
    try:
        rows = PathRows(planner.start_path(), law.rows.limits)
        fastest = fastest_law(rows, intervals=200).duration
        others = {
            f"{name}, start's path": 1.0 / law_rate(rows, LAWS[name], 1.0 / law.duration)
            for name in COMPARED
        }
    except PoseError:
        return {}
    return {"fastest, start's path": fastest, **others}


def _nearest(planner: FreePlanner, trajectory: Trajectory) -> Iterator[LeastDistance]:
    """Yield the smallest distances to obstacles and between rods."""
    time = np.linspace(0.0, trajectory.duration, DISTANCE_SAMPLES)
    state = trajectory.states(time)
    platform = planner.model.platform
    tool = platform.tool(platform.ports.at(state.q), start=state.q).place
    for name, values in planner.surroundings.distances(planner.model, state.q, tool).items():
        least = int(values.argmin())
        yield LeastDistance(name=name, distance=float(values[least]), time=float(time[least]))


def _clearances(nearest: tuple[LeastDistance, ...], clearance: float) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the smallest distances, with a tolerance of 0.05 mm."""
    for item in nearest:
        yield diagnostic(
            f"smallest distance to {item.name}",
            item.distance,
            at_least=clearance - CLEARANCE_TOLERANCE,
            unit="m",
            advice="use a larger clearance, or more intervals of the spline (`intervals`)",
        )
