"""Planning of a stroke from options: path, motion law and duration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.datasets import tabulated
from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.plain import in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.equations.named_values import (
    QUATERNION_SUFFIXES,
    full_name,
    named_values,
    quaternion_start,
)
from tauloop.equations.ports import PLATFORM, Entry, Port
from tauloop.logs import read_log, samples
from tauloop.logs.log import channels
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import ANGLE, quantity
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.model.motion import Motion
from tauloop.motion.excitation.fading import Faded, FadedPath
from tauloop.motion.excitation.multisine import random_multisine
from tauloop.motion.fastest.limits import PathLimits, PathRows
from tauloop.motion.fastest.planning import fastest_law
from tauloop.motion.laws import LAWS, Law, Uniform
from tauloop.motion.paths.clothoids import clothoid_between, polyline
from tauloop.motion.paths.curves import (
    AxisTurn,
    CombinedPath,
    Ellipse,
    Line,
    Path as Curve,
    SampledPath,
    turn_between,
)
from tauloop.motion.rate_limits.stroke_limits import tightest_limit
from tauloop.motion.strokes.stroke import Stroke, stroke
from tauloop.motion.timing import MachineLimits, PeakAcceleration, PeakSpeed, Seconds, Timing, peak
from tauloop.motion.trajectory import PeakForce, Trajectory, plan

if TYPE_CHECKING:
    import xarray as xr

#: Name of the motion law that is computed for the path.
FASTEST = "fastest"
#: Number of via points that a shape needs; None for any number.
SHAPES = {"line": 0, "ellipse": 1, "polyline": None, "spline": None, "clothoid": 0, "multisine": 0}
#: Options that only one shape has.
SHAPE_OF_OPTION = {"start_heading": "clothoid", "end_heading": "clothoid"}


@dataclass(frozen=True, kw_only=True)
class StrokeOptions(Options):
    """A stroke from rest to rest.

    Attributes:
        shape: shape of the path: line; ellipse (half an ellipse through the via point, sheared if
            that is not above the middle); polyline (corners blended by clothoids); spline; clothoid
            (curvature linear in its length, between two headings); multisine (sines of random
            frequencies and phases about the start, with the end as their largest deflection; faded
            in and out by the law).
        start: position at the start, such as 'x=0,y=-0.1' (SI, or with units); the other
            coordinates are those of the reference pose.
        via: a point on the path, such as 'z=0.1' (SI, or with units); other coordinates are those
            of the start.
        end: position at the end, such as 'x=0.1' (SI, or with units); the other coordinates are
            those of the reference pose.
        points: points of a spline, instead of start, via and end: CSV or Parquet with columns such
            as 'position.platform.x [m]'.
        rotation: rotation vector 'rx,ry,rz' in rad from start to end, for a platform with all
            rotations.
        start_heading: direction of a clothoid at its start, such as 30deg (rad), from the first of
            its two coordinates towards the second.
        end_heading: direction of a clothoid at its end, such as 30deg (rad).
        terms: number of frequencies of each coordinate of a multisine.
        frequencies: lowest and highest frequency of a multisine, Hz.
        seed: seed of the random numbers of a multisine.
        blend: distance from the corners of a polyline at which blends start.
        coordinates: coordinates in which the motion is given: platform or actuators.
        law: motion law; fastest is the law of shortest time within the machine's limits (`tauloop
            plan path` supports more limits).
        duration: duration of the stroke, such as 0.3 or 300ms.
        max_velocity: largest velocity of the path, m/s (for actuators: of any actuator).
        max_acceleration: largest acceleration of the path, m/s^2 (for actuators: of any actuator).
        share: used fraction of the machine's force and speed limits, if no duration or limit is
            given; default: 1, or 0.8 under a controller.
        returns: return to the start on the same path.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.StrokeOptions(start={"x": -0.05}, via=({"z": "-45 cm"},), end={"x": 0.05}, shape="polyline")
        >>> options.shape
        'polyline'
    """

    shape: str = option("line", choices=tuple(SHAPES))
    start: Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, flag="--start", read=pairs_reader("start"), metavar="VALUES"
    )
    via: tuple[str | Mapping[str, str | float] | tuple[str | float, ...], ...] = ()
    end: Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, flag="--end", read=pairs_reader("end"), metavar="VALUES"
    )
    points: Path | None = None
    rotation: tuple[float, ...] | None = option(None, metavar="RX,RY,RZ", unit=units.ANGLE)
    start_heading: str | float | None = option(None, read=str, metavar="ANGLE")
    end_heading: str | float | None = option(None, read=str, metavar="ANGLE")
    terms: int = option(5, least=1)
    frequencies: tuple[float, ...] = option(
        (0.1, 1.0), metavar="FREQUENCY,FREQUENCY", unit=units.FREQUENCY
    )
    seed: int = option(0, least=0)
    blend: float = option(0.02, metavar="LENGTH", unit=units.LENGTH)
    coordinates: Entry = PLATFORM
    law: str = option("3-4-5", choices=(*LAWS, FASTEST))
    duration: float | None = option(None, metavar="TIME", unit=units.TIME)
    max_velocity: float | None = option(None, metavar="LIMIT", unit=units.SPEEDS)
    max_acceleration: float | None = option(None, metavar="LIMIT", unit=units.ACCELERATIONS)
    share: float | None = None
    returns: bool = False

    def _note_mismatches(self, problems: Problems) -> None:
        """Report options that contradict each other."""
        timed = [
            name
            for name in ("duration", "max_velocity", "max_acceleration")
            if getattr(self, name) is not None
        ]
        if len(timed) > 1:
            problems.add(
                timed[-1],
                f"given in addition to {' and '.join(timed[:-1])}",
                "give only one of them",
            )
        if self.points is not None and (self.start is not None or self.via or self.end is not None):
            problems.add("points", "given in addition to points by name", "give only one of them")
        if self.rotation is not None and (
            len(self.rotation) != 3 or not np.isfinite(self.rotation).all()
        ):
            problems.add(
                "rotation",
                f"{self.rotation} is not three numbers",
                "give for example 0,0,0.2 (rad)",
            )
        for name, shape in SHAPE_OF_OPTION.items():
            is_set = getattr(self, name) is not None
            if self.shape == shape and not is_set:
                what = f"a {shape} has no direction without it"
                problems.add(name, what, "give for example 30deg")
            if self.shape != shape and is_set:
                remedy = f"leave it out, or use shape {shape}"
                problems.add(name, f"is only for a {shape}", remedy)
        if self.shape == "multisine":
            if self.law == FASTEST:
                problems.add(
                    "law",
                    f"{FASTEST!r} does not apply to a multisine, whose frequencies are fixed",
                    "choose another law; a multisine uses it to fade in and out",
                )
            if self.duration is None:
                problems.add(
                    "duration",
                    "is missing; the frequencies of a multisine do not determine it",
                    "give the duration of the multisine",
                )
            if (
                len(self.frequencies) != 2
                or not 0 < self.frequencies[0] < self.frequencies[1] < np.inf
            ):
                problems.add(
                    "frequencies",
                    f"{self.frequencies} is not a range",
                    "give for example 0.1,1 (Hz)",
                )
        if self.points is not None and self.shape in ("clothoid", "multisine"):
            problems.add("points", f"a {self.shape} has no points", "give start and end by name")
        if self.end is None and self.points is None and self.rotation is None:
            problems.add("end", "no end of the path is given", "give an end, points or a rotation")

    def timing(self, share: float) -> Timing:
        """Return the rule that sets the duration; by default a fraction of the machine's limits."""
        if self.duration is not None:
            return Seconds(self.duration)
        if self.max_velocity is not None:
            return PeakSpeed(self.max_velocity)
        if self.max_acceleration is not None:
            return PeakAcceleration(self.max_acceleration)
        share = share if self.share is None else self.share
        return MachineLimits(force=share, speed=share)


def _named_limit(limit: tuple[str, float]) -> dict[str, str | float]:
    return {"limit": limit[0], "share": limit[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMotion(Result):
    """A trajectory with the forces that it needs.

    Attributes:
        trajectory: trajectory from rest to rest.
        law: name of the motion law.
        peak_speed, peak_acceleration: largest values of the tool, or of any actuator, m/s and m/s^2
            or rad/s and rad/s^2.
        forces: largest force of each actuator.
        tightest_limit: name and used fraction of the limit with the largest used fraction; None if
            the machine has no limits.
    """

    trajectory: Trajectory = field(
        metadata=json_keys(
            machine="stroke.model.mechanism.name",
            entry="stroke.functions.ports.name",
            columns="stroke.columns",
            duration_s="duration",
            total_s="total",
            condition="stroke.condition",
        )
        | tabulated()
    )
    law: str
    peak_speed: float
    peak_acceleration: float
    forces: tuple[PeakForce, ...]
    tightest_limit: tuple[str, float] | None = field(metadata=json_keys(summary=_named_limit))

    @property
    def duration(self) -> float:
        """Duration of the stroke without the return, s."""
        return self.trajectory.duration

    def log(self, frequency: float = 1000.0) -> xr.Dataset:
        """Return a log of positions, velocities and accelerations, for `tauloop dynamics`."""
        return self.trajectory.sample(frequency).log(self.trajectory.stroke.functions.ports.motion)

    @property
    @in_json()
    def worst_place(self) -> object:
        """Description of the position on the path with the largest condition number."""
        stroke = self.trajectory.stroke
        return stroke.place(stroke.worst)


@keywords(StrokeOptions)
@solving(PoseError)
def plan_stroke(machine: MachineSource, options: StrokeOptions) -> PlannedMotion:
    """Return a planned trajectory: a path, a motion law, and a duration.

    The duration is given, or it is the shortest within the machine's limits.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: path, law and duration.

    Raises:
        InputError: a name or a number is wrong.
        PoseError: the path leaves the workspace or passes through a singularity. The message states
            where.

    Examples:
        >>> import tauloop as tl
        >>> motion = tl.plan_stroke("delta", end={"x": 0.05}, duration=0.2)
        >>> motion.to_pandas()[["position.platform.x", "force.leg1.motor"]].iloc[-1].round(3).tolist()
        [0.05, -1.56]
        >>> motion.to_xarray()["force.leg1.motor"].attrs["units"]
        'N m'
    """
    model = modeled(machine)
    trajectory = planned(model, options)
    stroke = trajectory.stroke
    law = trajectory.law
    rate = 1.0 / trajectory.duration
    return PlannedMotion(
        diagnostics=(diagnostic("worst condition number along the path", stroke.condition),),
        provenance=provenance(
            options={"law": options.law}, inputs={"machine": model.mechanism.name}
        ),
        trajectory=trajectory,
        law=options.law,
        peak_speed=peak(stroke, law, "velocity", rate),
        peak_acceleration=peak(stroke, law, "acceleration", rate),
        forces=trajectory.peak_forces(),
        tightest_limit=tightest_limit(stroke, law, rate, returns=options.returns),
    )


def planned(model: Model, options: StrokeOptions, share: float = 1.0) -> Trajectory:
    """Return the planned trajectory, without its peak values and forces.

    Args:
        model: the machine.
        options: path, law and duration.
        share: fraction of the machine's limits that is used if the options do not set the duration.

    Raises:
        InputError, PoseError: see `plan_stroke`.
    """
    stroke = placed_stroke(model, options)
    if options.law == FASTEST:
        fraction = share if options.share is None else options.share
        limits = PathLimits(force=fraction, speed=fraction)
        law: Law = fastest_law(PathRows(stroke, limits, returns=options.returns)).law
    elif options.shape == "multisine":
        law = Uniform()
    else:
        law = LAWS[options.law]
    return plan(stroke, law, options.timing(share), returns=options.returns)


def placed_stroke(model: Model, options: StrokeOptions) -> Stroke:
    """Return the path, placed in the machine and checked.

    Raises:
        InputError, PoseError: see `plan_stroke`.
    """
    functions = model.functions(options.coordinates)
    columns, path, base = _path(functions, functions.ports.at(model.assembly.q), options)
    if options.rotation is not None:
        columns, path = _with_rotation(functions, base, columns, path, np.array(options.rotation))
    assert path is not None
    return stroke(model, path, columns, entry=options.coordinates, base=base)


def _stated_names(
    port: Port, values: Mapping[str, str | float] | tuple[str | float, ...] | None
) -> Iterable[str]:
    """Return the names of the columns that a position states; a sequence states all columns."""
    return port.columns if isinstance(values, tuple) else values or ()


def _path(
    functions: Motion, base: np.ndarray, options: StrokeOptions
) -> tuple[tuple[str, ...], Curve | None, np.ndarray]:
    """Return the names of the moving coordinates, their path, and the positions at the start."""
    port = functions.ports.position
    shape = options.shape
    via = options.via
    if options.points is not None:
        log = read_log(options.points)
        names = tuple(name for name in port.columns if name in channels(log, "position"))
        return names, SampledPath(samples(log, "position", names)), base
    first = named_values(port, "start", options.start, base)
    if options.end is None:
        return (), None, first
    points = [pairs_reader("via")(point) if isinstance(point, str) else point for point in via]
    rows = [first, *(named_values(port, "via", point, first) for point in points)]
    rows.append(named_values(port, "end", options.end, first))
    moving = np.flatnonzero(np.ptp(rows, axis=0) > 0)
    problems = Problems()
    n_via = SHAPES[shape]
    if shape == "clothoid":
        named = {
            full_name(port.columns, name, "end")
            for ends in (options.start, options.end)
            for name in _stated_names(port, ends)
        }
        moving = np.array([i for i, name in enumerate(port.columns) if name in named])
        if [port.units[i] for i in moving] != ["m", "m"]:
            what = f"{', '.join(sorted(named))} are not two coordinates in m"
            problems.add("shape", what, "name two coordinates in m, in start and end")
    corners = np.array(rows)[:, moving]
    names = tuple(port.columns[i] for i in moving)
    if n_via is not None and len(via) != n_via:
        what = f"{len(via)} given, a path of shape {shape} needs {n_via}"
        problems.add("via", what, "choose another shape, or other points")
    if not len(moving):
        problems.add("end", "equals the start: the path has no length", "give a different end")
    units = {port.units[i] for i in moving}
    if shape == "polyline" and len(units) > 1:
        what = f"a polyline with coordinates in {' and '.join(sorted(units))} cannot be blended"
        problems.add("shape", what, "choose shape spline, or move coordinates with the same unit")
    quaternion: tuple[int, ...] = ()
    quaternion_at = quaternion_start(port)
    if quaternion_at is not None:
        components = tuple(range(quaternion_at, quaternion_at + 4))
        if set(components) & set(moving.tolist()):
            quaternion = components
    if (quaternion and shape != "line") or (shape == "multisine" and "1" in units):
        what = f"{', '.join(names)} include components of a quaternion, which are not independent"
        problems.add(
            "shape",
            what,
            f"use a {shape} of lengths and angles, or a line, which rotates about a fixed axis",
        )
    InputError.raise_if_any(problems)
    if quaternion:
        others = [i for i in moving.tolist() if i not in quaternion]
        start, end = rows
        rotation = turn_between(start[[*quaternion]].tolist(), end[[*quaternion]].tolist())
        path: Curve = rotation
        if others:
            path = CombinedPath((Line(start[others], end[others]), rotation))
        return tuple(port.columns[i] for i in (*others, *quaternion)), path, first
    if shape == "clothoid":
        headings = [quantity(name, str(getattr(options, name)), ANGLE) for name in SHAPE_OF_OPTION]
        return names, clothoid_between(corners[0], corners[1], (headings[0], headings[1])), first
    if shape == "multisine":
        return names, _multisine(corners[0], np.abs(corners[1] - corners[0]), options), first
    if shape == "line":
        return names, Line(corners[0], corners[1]), first
    if shape == "ellipse":
        middle = 0.5 * (corners[0] + corners[2])
        return names, Ellipse(middle, corners[0] - middle, corners[1] - middle, 0.0, np.pi), first
    if shape == "polyline":
        return names, polyline(corners, options.blend), first
    return names, SampledPath(corners), first


def _multisine(center: np.ndarray, amplitude: np.ndarray, options: StrokeOptions) -> FadedPath:
    """Return a random multisine about a point, faded in and out.

    Each fade lasts the shortest period, but at most half of the duration.

    Args:
        center: positions about which the motion oscillates (n,).
        amplitude: largest deflections (n,).
        options: frequencies, duration, law of the fades, and seed.
    """
    lowest, highest = options.frequencies
    assert options.duration is not None
    Seconds(options.duration)  # reject an invalid duration
    sines = random_multisine(
        center,
        amplitude,
        np.random.default_rng(options.seed),
        terms=options.terms,
        lowest=lowest,
        highest=highest,
    )
    faded = Faded(
        motion=sines,
        center=center,
        duration=options.duration,
        fade=min(1.0 / highest, 0.5 * options.duration),
        law=LAWS[options.law],
    )
    return FadedPath(motion=faded, highest=highest)


def _with_rotation(
    functions: Motion,
    base: np.ndarray,
    columns: tuple[str, ...],
    path: Curve | None,
    rotation: np.ndarray,
) -> tuple[tuple[str, ...], Curve]:
    """Return the path combined with a rotation of the platform."""
    port = functions.ports.position
    first = quaternion_start(port)
    if first is None:
        what = f"the {functions.ports.name} has no free orientation: {', '.join(port.columns)}"
        remedy = "leave `rotation` out, or give the end values of these coordinates"
        raise InputError.of("rotation", what, remedy)
    names = port.columns[first : first + len(QUATERNION_SUFFIXES)]
    if set(names) & set(columns):
        what = "is given together with components of the quaternion"
        raise InputError.of("rotation", what, "give one of them")
    axis_rotation = AxisTurn(base[first : first + len(QUATERNION_SUFFIXES)], rotation)
    if path is None:
        return (*columns, *names), axis_rotation
    return (*columns, *names), CombinedPath((path, axis_rotation))
