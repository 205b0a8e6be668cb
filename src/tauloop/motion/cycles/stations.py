"""Pick-and-place lists: stations in the order of the tool, on the base or on conveyors.

format: tauloop-cycle/1
blend: 12 mm
stations:
  - {name: pick, at: {x: -152.5 mm, z: -525 mm}, lift: {z: 25 mm}, dwell: 50 ms, payload: 0.3 kg}
  - {name: place, at: {x: 152.5 mm, z: -525 mm}, lift: {z: 25 mm}, dwell: 50 ms}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.named_values import full_name, named_values
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    Cursor,
    ListOf,
    MapOf,
    Name,
    Shape,
    Text,
    field,
    need,
    value,
)
from tauloop.mechanism.description.documents import contents, is_whole
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text
from tauloop.model import Model
from tauloop.model.tool import Payload

CYCLE_FORMAT = "tauloop-cycle/1"
#: Default distance from corners at which blends start, m.
DEFAULT_BLEND = 0.01
#: Relative difference below which the times between items of two conveyors are equal.
INTERVAL_TOLERANCE = 1e-9


def _by_name(item: Any) -> MapOf:
    return MapOf(item=item, key="coordinate", is_known=True, may_be_empty=False)


_POSITIVE_LENGTH = value(units.LENGTH, sign="positive")
_TIME = value(units.TIME, sign="not negative")
STATION = Shape(
    name="station",
    doc="A position at which the tool stops, or which it passes.",
    fields=(
        need("name", Name(), "name of the station"),
        need(
            "at",
            _by_name(Text(is_needed=True)),
            "position of the platform; the other coordinates are those of the reference pose",
        ),
        field(
            "lift",
            _by_name(value(units.LENGTH)),
            "displacement by which the tool arrives and leaves",
        ),
        field("dwell", _TIME, "time that the tool stays; zero if absent"),
        field(
            "payload",
            value(units.MASS, sign="not negative"),
            "mass at the tool after this station; zero if absent",
        ),
        field("velocity", _by_name(value(units.SPEED)), "velocity of the station's conveyor"),
        field("pitch", _POSITIVE_LENGTH, "distance of the items on the conveyor"),
        field(
            "blend",
            _POSITIVE_LENGTH,
            "for a point that is passed: distance from the point at which the blend starts",
        ),
    ),
)
CYCLE = Shape(
    name="cycle",
    doc="A pick-and-place list.",
    fields=(
        need("format", Choice(options=(CYCLE_FORMAT,)), "format and version"),
        field("description", Text(), "description of the task"),
        field(
            "blend",
            _POSITIVE_LENGTH,
            "distance from the corners at the ends of lifts at which blends start; 10 mm if absent",
        ),
        need(
            "stations",
            ListOf(item=STATION),
            "stations in the order of the motion, which returns to the first",
        ),
    ),
)
#: Value of a row that is not given.
_NONE: Any = ()
#: Keys of stations at which the tool stops.
_STOPS = ("lift", "dwell", "payload", "velocity", "pitch")


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStation(ReprMixin):
    """A position at which the tool stops, or which it passes.

    Attributes:
        name: name in the cycle.
        position: position of the platform (n_position,), m, rad and quaternions; on a conveyor, the
            position at the time when the first station is reached.
        lift: displacement by which the tool arrives and leaves (n_position,), m; zero by default.
        dwell: time that the tool stays, s.
        payload: payload at the tool after this station; None for no payload.
        velocity: velocity of the conveyor (n_position,), m/s; zero by default.
        pitch: distance of the items on the conveyor, m; None if the conveyor supplies items on
            demand.
        blend: for a point that is passed without a stop, distance from the point at which the blend
            starts, m; None for a stop.

    Examples:
        >>> from tauloop.motion import CycleStation
        >>> CycleStation(name="pick", position=(0.1, 0.0, -0.5), lift=(0.0, 0.0, 0.025), dwell=0.05).is_stop
        True
    """

    name: str
    position: np.ndarray
    lift: np.ndarray = _NONE
    dwell: float = 0.0
    payload: Payload | None = None
    velocity: np.ndarray = _NONE
    pitch: float | None = None
    blend: float | None = None

    def __post_init__(self) -> None:
        """Convert values to arrays, and reject contradictory values.

        Raises:
            InputError: a value is not finite, has a wrong size or sign, or does not apply to a
                point that is passed.
        """
        position = np.asarray(self.position, dtype=float)
        problems = Problems()
        rows = {"position": position}
        for name in ("lift", "velocity"):
            row = np.asarray(getattr(self, name), dtype=float)
            rows[name] = row if row.size else np.zeros(position.shape)
        for name, row in rows.items():
            if row.shape != position.shape or row.ndim != 1 or not np.isfinite(row).all():
                problems.add(
                    f"{self.name}.{name}",
                    "is not a row of finite numbers",
                    "give one number for each position",
                )
            object.__setattr__(self, name, row)
        if not 0 <= self.dwell < np.inf:
            problems.add(f"{self.name}.dwell", f"is {self.dwell:g} s", "give zero or more")
        if not self.is_stop and (
            self.dwell > 0 or self.payload is not None or rows["lift"].any() or self.is_moving
        ):
            problems.add(
                f"{self.name}.blend",
                f"a point with a blend cannot have {', '.join(_STOPS)}",
                f"leave out {', '.join(_STOPS)}, or stop at the point",
            )
        if self.pitch is not None and not (self.is_moving and self.pitch > 0):
            problems.add(
                f"{self.name}.pitch",
                f"is {self.pitch:g} m; a pitch is a positive distance on a moving conveyor",
                "give a positive pitch and the conveyor's velocity",
            )
        InputError.raise_if_any(problems)

    @property
    def is_stop(self) -> bool:
        """Whether the tool stops at the station."""
        return self.blend is None

    @property
    def is_moving(self) -> bool:
        """Whether the station is on a conveyor."""
        return bool(self.velocity.any())

    @property
    def interval(self) -> float | None:
        """Time between items, s."""
        return None if self.pitch is None else float(self.pitch / np.linalg.norm(self.velocity))


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleList(ReprMixin):
    """Stations in the order in which the tool reaches them.

    Attributes:
        stations: the stations. The first is a stop, and it follows the last.
        blend: distance from the ends of lifts at which corners are cut, m.

    Examples:
        >>> from tauloop.motion import CycleStation, CycleList
        >>> there = CycleStation(name="pick", position=(0.1, 0.0, -0.5), lift=(0.0, 0.0, 0.025))
        >>> back = CycleStation(name="place", position=(-0.1, 0.0, -0.5), lift=(0.0, 0.0, 0.025))
        >>> CycleList(stations=(there, back)).interval is None
        True
    """

    stations: tuple[CycleStation, ...]
    blend: float = DEFAULT_BLEND

    def __post_init__(self) -> None:
        """Reject lists with fewer than two stops, and conveyors that do not match.

        Raises:
            InputError: the list is invalid.
        """
        problems = Problems()
        if sum(station.is_stop for station in self.stations) < 2:
            problems.add(
                "stations",
                "there are fewer than two stops",
                "add a stop, or remove the blend of a station",
            )
        elif not self.stations[0].is_stop:
            problems.add(
                "stations[0]",
                "the first station is passed without a stop",
                "begin the list with a stop",
            )
        names = [station.name for station in self.stations]
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.add(
                "stations", f"{name} is in the list twice", "give each station a unique name"
            )
        times = {
            station.name: station.interval
            for station in self.stations
            if station.interval is not None
        }
        if times and max(times.values()) - min(times.values()) > INTERVAL_TOLERANCE * max(
            times.values()
        ):
            what = ", ".join(f"{name} every {1e3 * time:.6g} ms" for name, time in times.items())
            problems.add(
                "pitch",
                f"conveyors bring items at different times: {what}",
                "give all conveyors the same ratio of pitch to speed",
            )
        InputError.raise_if_any(problems)

    @property
    def interval(self) -> float | None:
        """Time between items of the conveyors, s; None if they supply items on demand."""
        return next(
            (station.interval for station in self.stations if station.interval is not None), None
        )


def load_cycle(path: str | Path, model: Model) -> CycleList:
    """Return a pick-and-place list from a file.

    Args:
        path: the YAML file.
        model: the machine; the list uses names of its platform positions.

    Raises:
        DescriptionError: the file has errors. All errors are listed with line numbers.

    Examples:
        >>> import tauloop as tl
        >>> [s.name for s in tl.motion.load_cycle("examples/cycles/adept.yaml", tl.Model(tl.load("delta"))).stations]
        ['pick', 'place']
    """
    return loads_cycle(read_text(Path(path)), model, str(path))


def loads_cycle(text: str, model: Model, file: str = "<text>") -> CycleList:
    """Return a pick-and-place list from its text.

    Args:
        text: text of the file.
        model: the machine; the list uses names of its platform positions.
        file: name of the file for messages.

    Raises:
        DescriptionError: the text has errors. All errors are listed with line numbers.
    """
    root = document(parse_nodes(text, file), file, CYCLE)
    root.collector.raise_any()  # a file with structural errors cannot be read further
    content = contents(root, ValueReader(None)) or {}
    stations = []
    for place, data in zip(root.items_of("stations"), content.get("stations") or (), strict=True):
        station = _station(place, data, model) if isinstance(data, dict) else None
        if station is not None:
            stations.append(station)
    blend = content.get("blend") or DEFAULT_BLEND
    if root.collector.count == 0:
        _collected(root, lambda: CycleList(stations=tuple(stations), blend=blend))
    root.collector.raise_any()
    return CycleList(stations=tuple(stations), blend=blend)


def _station(place: Cursor, data: dict[str, Any], model: Model) -> CycleStation | None:
    """Return a station; None if it has errors, which are added to the list of problems."""
    port = model.platform.ports.position
    before = place.collector.count
    rows = dict[str, Any]()
    try:
        rows["position"] = named_values(
            port, "at", data.get("at"), model.platform.ports.at(model.assembly.q)
        )
    except InputError as error:
        _note(place, error, "at")
    for key in ("lift", "velocity"):
        rows[key] = np.zeros(port.size)
        for name, number in (data.get(key) or {}).items():
            try:
                column = port.columns.index(full_name(port.columns, name, key))
            except InputError as error:
                _note(place, error, key)
                continue
            if port.units[column] != "m":
                place.problem(f"{name} is not a length", "lifts and conveyors are straight", key)
            rows[key][column] = number or 0.0
    mass = data.get("payload") or 0.0
    if place.collector.count > before or not is_whole(data):
        return None
    numbers = {key: data[key] for key in ("pitch", "blend") if data.get(key) is not None}
    more: dict[str, Any] = {
        "payload": Payload(mass=mass) if mass else None,
        "dwell": data.get("dwell") or 0.0,
        **numbers,
    }
    return _collected(place, lambda: CycleStation(name=data["name"], **rows, **more))


def _collected(place: Cursor, made: Any) -> Any:
    """Return the result of a function; None if it raises an error, which is recorded."""
    try:
        return made()
    except InputError as error:
        _note(place, error, "")
        return None


def _note(place: Cursor, error: InputError, key: str) -> None:
    for problem in error.problems:
        where = "" if key else f"{problem.where}: "
        place.problem(where + problem.what, problem.remedy, key)
