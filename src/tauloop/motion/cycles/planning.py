"""Planning of cycles between stations: path and law of each leg, meetings, and durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.named_values import QUATERNION_SUFFIXES, quaternion_start
from tauloop.model import Model
from tauloop.model.tool import Payload
from tauloop.motion.cycles.heat import CycleHeat, mean_polynomials
from tauloop.motion.cycles.stations import CycleList, CycleStation
from tauloop.motion.cycles.ways import CyclePath, LegPath, RunIn, WayPath
from tauloop.motion.fastest.changes import changes_taken, limited_law
from tauloop.motion.fastest.limits import PathLimits, PathRows
from tauloop.motion.fastest.planning import FastestLaw, fastest_law, peaks
from tauloop.motion.laws import Law, Uniform
from tauloop.motion.paths.clothoids import polyline
from tauloop.motion.paths.curves import Path, turn_between
from tauloop.motion.strokes.stroke import Stroke, stroke
from tauloop.motion.trajectory import Trajectory

#: Number of points of a leg or a stop at which squared forces are evaluated.
HEAT_POINTS = 601
#: Maximum number of rounds in which legs to moving stations are replanned.
MAX_MEETING_ROUNDS = 6
#: Relative margin on the durations of legs to moving stations.
MEETING_MARGIN = 2e-3
#: Assumed duration of a leg before it is planned, s.
INITIAL_DURATION = 0.15
#: Maximum number of rounds to determine a leg's duration.
MAX_DURATION_ROUNDS = 30
#: Relative tolerance of this duration.
DURATION_TOLERANCE = 1e-7
#: Minimum number of intervals of the law without bounds of changes. This law determines the
#: distribution of a leg's points.
MIN_INTERVALS = 400
#: Number of times at which fractions of limits are first evaluated.
LIMIT_POINTS = 513


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleTrajectory(Trajectory):
    """A cycle whose forces include those of the payloads.

    Attributes:
        starts: start time of each segment (K,), s: stops and legs.
        loads: payload in each segment; None for no payload.
    """

    starts: tuple[float, ...]
    loads: tuple[Payload | None, ...]

    def load(self, time: float) -> Payload | None:
        """Return the payload at a time (s), which may be in any cycle; None for no payload."""
        return self.loads[int(self._segments(np.array([time]))[0])]

    def _segments(self, time: np.ndarray) -> np.ndarray:
        """Return the index of the segment (N,) at times (N,), s."""
        cycle_time = np.mod(time + 1e-9, self.duration)
        return np.searchsorted(self.starts, cycle_time, side="right") - 1

    def forces(self, time: np.ndarray) -> np.ndarray:
        """Return the actuator forces (N, n_u), N or N m, at times (N,), s."""
        motion = self.at(time)
        places = self.places(time)
        segments = self._segments(time)
        directions = self.directions(time)
        forces = np.zeros((len(time), len(self.stroke.model.mechanism.actuators)))
        for k in np.unique(segments).tolist():
            samples = segments == k
            solution = self.stroke.forces(
                places[samples],
                directions[samples],
                motion.part(samples).states,
                payload=self.loads[k],
            )
            forces[samples] = solution.force
        return forces


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleLeg(ReprMixin):
    """A leg from one stop to the next.

    Attributes:
        name: names of both stations.
        limits: limits, which hold with the payload and without it.
        way: path from the position where the tool leaves a station to the one where it meets the
            next.
        law: motion law from rest to rest.
        leaves, arrives: velocities of the stations at the start and the end (n_position,), m/s.
        least: shortest duration, s.
    """

    name: str
    limits: PathLimits
    way: Path
    law: Law
    leaves: np.ndarray
    arrives: np.ndarray
    least: float

    def path(self, duration: float) -> LegPath:
        """Return positions of the leg over normalized time."""
        return LegPath(
            way=self.way, law=self.law, duration=duration, leaves=self.leaves, arrives=self.arrives
        )

    @property
    def is_at_rest(self) -> bool:
        """Whether both stations are at rest, so that positions do not depend on the duration."""
        return not (self.leaves.any() or self.arrives.any())

    def timed(self, model: Model, duration: float) -> FastestLaw:
        """Return the leg with its timing and its limits."""
        # between stations at rest, the positions are those of `way`, which has been checked
        as_stroke = _unchecked_stroke if self.is_at_rest else _checked_stroke
        rows = PathRows(as_stroke(model, self.path(duration)), self.limits)
        return FastestLaw(
            law=Uniform(), duration=duration, rows=rows, unit=1.0 / duration, sweeps=0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCycle(ReprMixin):
    """A planned cycle.

    Attributes:
        model: the machine.
        stops: stations at which the tool stops, at their positions when the tool meets them.
        legs: motions from each station to the next, and from the last station to the first.
        durations: durations of the legs (K,), s.
        heat: mean squared forces of the motors.
        reason: what determines the cycle's duration: "limits", "rated force", "conveyor" or "time".
        items: number of items that pass on conveyors in a cycle; 0 without a pitch.
    """

    model: Model
    stops: tuple[CycleStation, ...]
    legs: tuple[CycleLeg, ...]
    durations: np.ndarray
    heat: CycleHeat
    reason: str
    items: int

    @property
    def time(self) -> float:
        """Duration of a cycle, s."""
        return float(self.durations.sum() + self.heat.dwell)

    @property
    def fastest(self) -> float:
        """Shortest duration of the cycle if only the limits apply, s."""
        return float(sum(leg.least for leg in self.legs) + self.heat.dwell)

    @property
    def meetings(self) -> np.ndarray:
        """Times at which the stops are reached (K,), s."""
        return _meetings(self.stops, self.durations)

    def parts(self) -> Iterator[tuple[Path, float, Payload | None]]:
        """Yield the stops and legs in order: path over normalized time, duration, and payload."""
        for k, (stop, leg, duration) in enumerate(
            zip(self.stops, self.legs, self.durations.tolist(), strict=True)
        ):
            if stop.dwell > 0:
                stay = WayPath(start=stop.position, end=_leaving_position(stop))
                yield stay, stop.dwell, self.stops[k - 1].payload
            yield leg.path(duration), duration, stop.payload

    def trajectory(self) -> CycleTrajectory:
        """Return the trajectory of a cycle."""
        paths, durations, loads = zip(*self.parts(), strict=True)
        path_stroke = _checked_stroke(self.model, CyclePath(paths, durations))
        starts = tuple(np.concatenate([[0.0], np.cumsum(durations)[:-1]]).tolist())
        return CycleTrajectory(
            stroke=path_stroke, law=Uniform(), duration=self.time, starts=starts, loads=loads
        )

    def repeated(self, cycles: int, lead: float) -> Trajectory:
        """Return several cycles after a run-in from rest to the first station.

        Args:
            cycles: number of cycles.
            lead: duration of the run-in, s.
        """
        first = self.stops[0]
        paths, durations, _ = zip(*self.parts(), strict=True)
        run = RunIn(end=first.position, velocity=first.velocity, duration=lead)
        path = CyclePath((run, *paths * cycles), (lead, *durations * cycles))
        # run-ins to stations at rest do not move, and all legs have been checked
        is_checked = all(leg.is_at_rest for leg in self.legs)
        path_stroke = (_unchecked_stroke if is_checked else _checked_stroke)(self.model, path)
        return Trajectory(stroke=path_stroke, law=Uniform(), duration=lead + cycles * self.time)


def cycle_trajectory(
    model: Model,
    listed: CycleList,
    limits: PathLimits,
    *,
    rated: np.ndarray | None = None,
    time: float | None = None,
    intervals: int = 200,
    done: Callable[[], None] = lambda: None,
) -> PlannedCycle:
    """Return a cycle that is as fast as limits, motor heating, conveyors or a given time allow.

    Args:
        model: the machine.
        listed: list of stations.
        limits: limits of all legs; they must bound changes of forces, so that accelerations are
            continuous.
        rated: RMS forces that the motors can deliver continuously (n_u,); where they are infinite,
            the largest forces are used.
        time: duration of the cycle, s; by default as short as possible.
        intervals: number of intervals of each leg's law.
        done: called when a leg has been planned.

    Raises:
        InputError: the limits do not bound changes, the time is too short, or blends are too long.
        PoseError: a path leaves the workspace or passes through a singularity, or no motion is
            within all limits.

    Examples:
        >>> import tauloop as tl
        >>> from tauloop.motion import PathLimits, CycleStation, CycleList, cycle_trajectory
        >>> ends = [CycleStation(name=f"s{x:+}", position=(x, 0.0, -0.5), lift=(0, 0, 0.02)) for x in (-0.05, 0.05)]
        >>> limits = PathLimits(force=0.9, reversal=0.02)
        >>> model, stations = tl.Model("delta"), CycleList(stations=tuple(ends))
        >>> planned = cycle_trajectory(model, stations, limits, intervals=40)
        >>> planned.reason, bool(abs(planned.durations[0] - planned.durations[1]) < 1e-3)
        ('limits', True)
    """
    if not limits.bounds_changes or limits.ends != "held":
        what = "without limits of force rates or jerk, accelerations would jump at the ends of legs"
        raise InputError.of("reversal", what, "give a time, such as 10 ms")
    stops = tuple(station for station in listed.stations if station.is_stop)
    has_moving_stations = any(stop.is_moving for stop in stops[1:])
    margin = MEETING_MARGIN if has_moving_stations else 0.0
    max_forces = np.array([actuator.force for actuator in model.mechanism.actuators])
    rated_forces = max_forces if rated is None else np.where(np.isfinite(rated), rated, max_forces)
    durations = np.full(
        len(stops), INITIAL_DURATION if time is None and listed.interval is None else 0.0
    )
    if not durations.any():
        durations += max(
            (time or listed.interval or 0.0) - sum(stop.dwell for stop in stops), INITIAL_DURATION
        ) / len(stops)
    for round_index in range(MAX_MEETING_ROUNDS):
        met_stops = _at_meetings(stops, durations)
        legs = tuple(_planned_legs(model, listed, met_stops, limits, intervals, done))
        least = np.array([leg.least for leg in legs])
        heat = _heat(
            model,
            met_stops,
            legs,
            (1.0 + margin) * least,
            (1.0 - margin) * rated_forces,
        )
        required, reason, items = _durations(heat, listed.interval, time)
        if not has_moving_stations or (
            round_index and _are_acceptable(durations, required, least, heat)
        ):
            chosen_durations = durations if has_moving_stations else required
            return PlannedCycle(
                model=model,
                stops=met_stops,
                legs=legs,
                durations=chosen_durations,
                heat=heat,
                reason=reason,
                items=items,
            )
        durations = required
    raise PoseError.of(
        "stations", "the meeting points with the conveyors do not converge", "use slower conveyors"
    )


def _are_acceptable(
    durations: np.ndarray, required: np.ndarray, least: np.ndarray, heat: CycleHeat
) -> bool:
    """Return whether the durations for which the meeting points were computed are acceptable.

    The durations must satisfy the limits (`least`), keep the motors within their ratings, and have
    the required sum.
    """
    is_cool = float(heat.shares(durations).max()) <= 1.0 + MEETING_MARGIN
    return (
        is_cool
        and bool((durations >= least).all())
        and abs(durations.sum() / required.sum() - 1.0) <= MEETING_MARGIN
    )


def _durations(
    heat: CycleHeat, interval: float | None, time: float | None
) -> tuple[np.ndarray, str, int]:
    """Return the durations of the legs (K,), s, the reason for them, and the number of items."""
    required = heat.shortest()
    reason = "limits" if required is heat.least else "rated force"
    total = float(required.sum() + heat.dwell)
    items = 0
    if interval is not None:
        items = int(np.ceil(total / interval - 1e-9))
        if time is not None and abs(time - items * interval) > 1e-9 * time:
            what = (
                f"the {items} items that pass in a cycle arrive within "
                f"{1e3 * items * interval:.6g} ms"
            )
            raise InputError.of("duration", what, "omit either the duration or the pitch")
        time = items * interval
        reason = "conveyor"
    elif time is not None:
        if time < total * (1 - 1e-9):
            what = f"a cycle takes at least {1e3 * total:.6g} ms because of the {reason}"
            raise InputError.of("duration", what, "allow a longer cycle or wider limits")
        reason = "time"
    if time is None:
        return required, reason, 0
    return heat.coolest(time), reason, items


def _meetings(stops: tuple[CycleStation, ...], durations: np.ndarray) -> np.ndarray:
    """Return the times at which the stops are reached (K,), s."""
    return np.concatenate([[0.0], np.cumsum(durations + [stop.dwell for stop in stops])[:-1]])


def _at_meetings(
    stops: tuple[CycleStation, ...], durations: np.ndarray
) -> tuple[CycleStation, ...]:
    """Return the stops with their positions at the times when the tool reaches them."""
    times = _meetings(stops, durations).tolist()
    return tuple(
        replace(s, position=s.position + t * s.velocity) for s, t in zip(stops, times, strict=True)
    )


def _leaving_position(stop: CycleStation) -> np.ndarray:
    """Return the position at which the tool leaves a stop (n_position,)."""
    return np.asarray(stop.position + stop.dwell * stop.velocity)


def _checked_stroke(model: Model, path: Path) -> Stroke:
    """Return a path of the platform, checked for reach, ranges and singularities."""
    return stroke(model, path, model.platform.ports.position.columns)


def _unchecked_stroke(model: Model, path: Path) -> Stroke:
    """Return a path of the platform that is not checked for reach, ranges and singularities."""
    functions = model.platform
    return Stroke(
        model=model,
        functions=functions,
        path=path,
        columns=functions.ports.position.columns,
        base=functions.ports.at(model.assembly.q),
    )


def _planned_legs(
    model: Model,
    listed: CycleList,
    stops: tuple[CycleStation, ...],
    limits: PathLimits,
    intervals: int,
    done: Callable[[], None],
) -> Iterator[CycleLeg]:
    """Yield the legs between stops at given positions, as fast as the limits allow."""
    stations = listed.stations
    stop_indices = [k for k, station in enumerate(stations) if station.is_stop]
    for k, (start, index) in enumerate(zip(stops, stop_indices, strict=True)):
        end = stops[(k + 1) % len(stops)]
        next_index = stop_indices[k + 1] if k + 1 < len(stop_indices) else len(stations)
        passed_stations = stations[index + 1 : next_index]
        name = f"{start.name} to {end.name}"
        leg_limits = replace(limits, payload=start.payload)
        leg_path = _leg_path(model, name, start, passed_stations, end, listed.blend)
        fastest = limited_law(
            fastest_law(
                PathRows(_checked_stroke(model, leg_path), leg_limits),
                intervals=max(MIN_INTERVALS, intervals),
            ),
            points=intervals,
        )
        leg = CycleLeg(
            name=name,
            limits=leg_limits,
            way=leg_path,
            law=fastest.law,
            leaves=start.velocity,
            arrives=end.velocity,
            least=fastest.duration,
        )
        yield leg if leg.is_at_rest else replace(leg, least=_shortest_duration(model, leg))
        done()


def _leg_path(
    model: Model,
    name: str,
    start: CycleStation,
    passed: tuple[CycleStation, ...],
    end: CycleStation,
    blend: float,
) -> WayPath:
    """Return the path of a leg: up, past intermediate points, and down, with a uniform rotation."""
    port = model.platform.ports.position
    lengths = tuple(i for i, unit in enumerate(port.units) if unit == "m")
    a, b = _leaving_position(start), end.position
    rows = [a, a + start.lift]
    blends = [np.nan, blend]
    rows += [station.position for station in passed] + [b + end.lift, b]
    blends += [station.blend or blend for station in passed] + [blend, np.nan]
    vertices = np.array(rows)[:, lengths]
    is_new = np.append(True, np.linalg.norm(np.diff(vertices, axis=0), axis=1) > 0)
    vertices = vertices[is_new]
    inner_blends = np.array(blends)[is_new][1:-1]
    quaternion_column = quaternion_start(port)
    way = None
    if len(vertices) > 2:
        try:
            way = polyline(vertices, inner_blends)
        except InputError as error:
            raise InputError(
                Problem(f"{name}, {p.where}", p.what, p.remedy) for p in error.problems
            ) from error
    turn = None
    if quaternion_column is not None:
        quaternion = slice(quaternion_column, quaternion_column + len(QUATERNION_SUFFIXES))
        turn = turn_between(a[quaternion].tolist(), b[quaternion].tolist())
    if len(vertices) < 2 and np.array_equal(a, b):
        raise InputError.of(name, "has no length", "omit one of the two stations")
    return WayPath(
        start=a, end=b, way=way, lengths=lengths, turn=turn, first=quaternion_column or 0
    )


def _shortest_duration(model: Model, leg: CycleLeg) -> float:
    """Return the shortest duration of a leg between moving stations, s.

    The motion law is that for stations at rest.

    Raises:
        PoseError: no duration satisfies the limits.
    """
    duration = leg.least
    x = np.linspace(0.0, 1.0, LIMIT_POINTS)
    for _ in range(MAX_DURATION_ROUNDS):
        timed = leg.timed(model, duration)
        rate = 1.0 / duration
        share = float(peaks(timed.rows, timed.law, rate, x)[1][0])
        change = float(changes_taken(timed.rows, timed.law, rate, rate)[0].max())
        factor = max(share ** (1 / 2), change ** (1 / 3))
        if abs(factor - 1.0) <= DURATION_TOLERANCE:
            return duration * (1.0 + DURATION_TOLERANCE)
        duration *= factor
    raise PoseError.of(
        leg.name, "no duration satisfies all limits", "use slower conveyors or wider limits"
    )


def _heat(
    model: Model,
    stops: tuple[CycleStation, ...],
    legs: tuple[CycleLeg, ...],
    least: np.ndarray,
    size: np.ndarray,
) -> CycleHeat:
    """Return the mean squared forces of all legs and stops, relative to the rated forces."""
    names = model.output_ports("actuators")[0]
    polynomials = []
    dwell_heat = np.zeros(len(names))
    for k, (stop, leg, duration) in enumerate(zip(stops, legs, least.tolist(), strict=True)):
        means = _leg_means(model, leg, duration, stop.payload)
        polynomials.append(mean_polynomials(lambda T: means(T) / size**2, duration))  # noqa: B023 - called at once
        if stop.dwell > 0:
            stay = WayPath(start=stop.position, end=_leaving_position(stop))
            dwell_heat += (
                stop.dwell * mean_squares(model, stay, stop.dwell, stops[k - 1].payload) / size**2
            )
    dwell = float(sum(stop.dwell for stop in stops))
    return CycleHeat(
        names=names, least=least, legs=np.stack(polynomials, axis=1), held=dwell_heat, dwell=dwell
    )


def _leg_means(
    model: Model, leg: CycleLeg, least: float, payload: Payload | None
) -> Callable[[float], np.ndarray]:
    """Return the function from durations of a leg to its `mean_squares`."""
    if not leg.is_at_rest:
        return lambda T: mean_squares(model, leg.path(T), T, payload)
    # positions over normalized time do not depend on the duration
    path_stroke = _unchecked_stroke(model, leg.path(least))
    return lambda T: _mean_squares(path_stroke, T, payload)


def mean_squares(model: Model, path: Path, duration: float, payload: Payload | None) -> np.ndarray:
    """Return the mean squared actuator forces (n_u,) on a timed path, by the trapezoidal rule."""
    return _mean_squares(_unchecked_stroke(model, path), duration, payload)


def _mean_squares(path_stroke: Stroke, duration: float, payload: Payload | None) -> np.ndarray:
    """Return the `mean_squares` of a path over normalized time."""
    x = np.linspace(0.0, 1.0, HEAT_POINTS)
    motion = path_stroke.motion(Uniform().at(x), 1.0 / duration, x * duration)
    forces = path_stroke.functions.inverse_dynamics(
        *motion.states, start=path_stroke.start(x), payload=payload
    ).force
    return np.asarray(np.trapezoid(np.asarray(forces) ** 2, x, axis=0))
