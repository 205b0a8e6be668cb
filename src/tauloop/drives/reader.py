"""A drive-line file, from text to a frozen `DriveLine`; all that is wrong with it at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from tauloop.drives.grammar import DRIVE
from tauloop.drives.line import (
    Compliance,
    Connection,
    Control,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    Encoder,
    ExactBacklash,
    Friction,
    Inertia,
    LuGre,
    Motor,
    Performance,
    Pid,
    Shaft,
    SingleDrive,
)
from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.cursor import Collector, Cursor
from tauloop.mechanism.expression import ONE, Constant, Expression, divide
from tauloop.mechanism.structure import check_structure
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.mechanism.values import Values
from tauloop.mechanism.yaml_nodes import parse_nodes, read_text

_SHIPPED = Path(__file__).parent / "lines"
#: N of the derivative's filter where a file says none (Modelica's LimPID; Gantry-Tau paper, section 4).
FILTER = 10.0
_COMPLIANCES = {"shaft": Shaft, "backlash": ElasticBacklash, "exact_backlash": ExactBacklash}
_TRANSMISSIONS = ("gear", "rack_and_pinion", "ball_screw")


def shipped_drives() -> tuple[str, ...]:
    """Names of the drive lines that come with Tauloop."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def load_drive(name_or_path: str | Path) -> DriveLine:
    """A drive line from the name of a shipped one, or from a file.

    Args:
        name_or_path: a plain word is a shipped name; anything else is a path.

    Raises:
        DescriptionError: there is no such file, or it is wrong; all problems at once.
    """
    if isinstance(name_or_path, str) and name_or_path.isidentifier():
        known = shipped_drives()
        if name_or_path not in known:
            remedy = suggestion(name_or_path, known) or f"there are {listing(known, 20)}"
            what = "no drive line of this name comes with Tauloop"
            raise DescriptionError(Problem(where=name_or_path, what=what, remedy=remedy))
        path = _SHIPPED / f"{name_or_path}.yaml"
        return read_drive(read_text(path), path.name)
    return read_drive(read_text(Path(name_or_path)), str(name_or_path))


def read_drive(text: str, file: str = "<text>") -> DriveLine:
    """The drive line that a text describes (docs/drives.md).

    Raises:
        DescriptionError: with every problem, each with line, key path and remedy.
    """
    collector = Collector(file)
    root = Cursor(node=parse_nodes(text, file), kind=DRIVE, where="", leaf="", prefix="", collector=collector)
    check_structure(root)
    collector.raise_any()
    line = _Reader(root).line()
    collector.raise_any()
    return line


class _Reader:
    """Reads a file whose form is right; what is wrong in it is noted, and something stands in until all is read."""

    def __init__(self, root: Cursor) -> None:
        self._root = root
        self._values = Values(root.get("provenance"))
        named = root.get("parameters")
        for name, cursor in named.entries() if named is not None else ():
            self._values.define(name, cursor)
        self._values.work_out()
        self._turns: dict[str, bool] = {}

    def line(self) -> DriveLine:
        inertias = {name: self._inertia(name, cursor) for name, cursor in self._entries("inertias")}
        connections = [self._connection(name, cursor) for name, cursor in self._entries("connections")]
        motors = {name: self._motor(name, cursor) for name, cursor in self._entries("motors")}
        encoders = {name: self._encoder(name, cursor) for name, cursor in self._entries("encoders")}
        control = self._control(self._place(self._root, "control"), motors, encoders)
        judged = self._place(self._root, "performance")
        of = self._refer(judged, "of", inertias, "inertia")
        performance = Performance(of=of, band=self._need(judged, "band", self._turns.get(of, False)))
        return DriveLine(
            name=self._root.word("name") or "",
            description=(self._root.word("description") or "").strip(),
            parameters=self._values.table(),
            inertias=tuple(inertias.values()),
            connections=tuple(connections),
            motors=tuple(motors.values()),
            encoders=tuple(encoders.values()),
            control=control,
            performance=performance,
            file=self._root.collector.file,
        )

    def _entries(self, section: str) -> list[tuple[str, Cursor]]:
        cursor = self._root.get(section)
        return list(cursor.entries()) if cursor is not None else []

    def _place(self, cursor: Cursor, key: str) -> Cursor:
        child = cursor.get(key)
        if child is None:
            raise AssertionError(f"the form of {key} was checked")
        return child

    def _maybe(self, cursor: Cursor, key: str, turns: bool = False) -> Expression | None:
        return self._values.expression(cursor.get(key), turns)

    def _need(self, cursor: Cursor, key: str, turns: bool = False) -> Expression:
        """The value; one stands in for what is wrong, which is noted."""
        return self._maybe(cursor, key, turns) or ONE

    def _refer(self, cursor: Cursor, key: str, known: Mapping[str, object], what: str) -> str:
        name = cursor.word(key) or ""
        if name not in known:
            remedy = suggestion(name, known) or f"known: {listing(tuple(known), 20)}"
            cursor.problem(f"there is no {what} {name}", remedy, key)
        return name

    def _inertia(self, name: str, cursor: Cursor) -> Inertia:
        turns = cursor.has("inertia")
        self._turns[name] = turns
        if turns == cursor.has("mass"):
            what = "both inertia and mass are given" if turns else "neither inertia nor mass is given"
            cursor.problem(what, "give inertia (it turns) or mass (it slides)")
        value = self._need(cursor, "inertia" if turns else "mass", turns)
        friction: Friction | LuGre | None = None
        plain, dynamic = cursor.get("friction"), cursor.get("lugre")
        if plain is not None and dynamic is not None:
            cursor.problem("both friction and lugre are given", "keep one of them", "lugre")
        if dynamic is not None:
            keys = ("stiffness", "damping", "viscous", "coulomb", "static", "stribeck")
            friction = LuGre(**{key: self._need(dynamic, key, turns) for key in keys})
        elif plain is not None:
            parts = ("viscous", "coulomb", "static", "stribeck")
            friction = Friction(**{key: self._maybe(plain, key, turns) for key in parts})
            if plain.has("static") and not (plain.has("coulomb") and plain.has("stribeck")):
                plain.problem(
                    "static stands without coulomb and stribeck", "give all three, or coulomb alone", "static"
                )
        for place, law in ((plain, friction), (dynamic, friction)):
            if place is not None and law is not None and law.static is not None and law.coulomb is not None:
                static, coulomb = self._values.nominal(law.static), self._values.nominal(law.coulomb)
                if static < coulomb:
                    what = f"static friction {static:g} is below sliding friction {coulomb:g}"
                    place.problem(what, "friction at rest is the larger one: swap or correct them", "static")
        return Inertia(name=name, turns=turns, value=value, friction=friction)

    def _connection(self, name: str, cursor: Cursor) -> Connection:
        first, second = (self._refer(cursor, key, self._turns, "inertia") for key in ("first", "second"))
        if first == second:
            cursor.problem(f"{first} is joined to itself", "name two inertias", "second")
        turns = self._turns.get(second, False)
        given = [key for key in _TRANSMISSIONS if cursor.has(key)]
        if len(given) > 1:
            cursor.problem(f"{' and '.join(given)} are given", "keep one, or put an inertia between them", given[1])
        kind = given[0] if given else ""
        slides = kind in ("rack_and_pinion", "ball_screw")
        if first in self._turns and second in self._turns:
            alike = self._turns[first] == turns
            if alike == slides or (slides and turns):
                what = "{} {} and {} {}".format(
                    *(word for n in (first, second) for word in (n, "turns" if self._turns[n] else "slides"))
                )
                remedy = "a rack and pinion or a ball screw makes the second slide; a gear, or nothing, keeps the kind"
                cursor.problem(what, remedy, kind)
        ratio: Expression = ONE
        if kind:
            value = self._need(cursor, kind)
            ratio = {
                "gear": divide(ONE, value),
                "rack_and_pinion": value,
                "ball_screw": divide(value, Constant(2 * math.pi)),
            }[kind]
        found = [key for key in (*_COMPLIANCES, "rigid") if cursor.has(key)]
        if len(found) != 1:
            what = f"{' and '.join(found)} are given" if found else "it is neither rigid nor has it a compliance"
            cursor.problem(what, f"give exactly one of {listing((*_COMPLIANCES, 'rigid'), 5)}")
        compliance: Compliance | None = None
        for key, law in _COMPLIANCES.items():
            place = cursor.get(key)
            if place is not None:
                keys = ("stiffness", "damping") if law is Shaft else ("gap", "stiffness", "damping")
                compliance = law(**{part: self._need(place, part, turns) for part in keys})
        return Connection(name=name, first=first, second=second, ratio=ratio, compliance=compliance)

    def _motor(self, name: str, cursor: Cursor) -> Motor:
        on = self._refer(cursor, "on", self._turns, "inertia")
        turns = self._turns.get(on, False)
        torque, rated, speed = (self._maybe(cursor, key, turns) for key in ("torque", "rated_speed", "speed"))
        if cursor.has("rated_speed") != cursor.has("speed") or (cursor.has("speed") and not cursor.has("torque")):
            cursor.problem("the limits are not complete", "give torque alone, or torque, rated_speed and speed")
        elif rated is not None and speed is not None and self._values.nominal(rated) >= self._values.nominal(speed):
            what = f"rated_speed {self._values.nominal(rated):g} is not below speed {self._values.nominal(speed):g}"
            cursor.problem(what, "swap or correct them", "rated_speed")
        return Motor(name=name, on=on, torque=torque, rated_speed=rated, speed=speed)

    def _encoder(self, name: str, cursor: Cursor) -> Encoder:
        on = self._refer(cursor, "on", self._turns, "inertia")
        return Encoder(name=name, on=on, resolution=self._maybe(cursor, "resolution", self._turns.get(on, False)))

    def _pid(self, cursor: Cursor) -> Pid:
        if cursor.has("limit") != cursor.has("tracking_time"):
            remedy = "give both: the integral follows a limited output with that time constant"
            cursor.problem("limit and tracking_time stand together", remedy)
        return Pid(
            gain=self._need(cursor, "gain"),
            integral_time=self._maybe(cursor, "integral_time"),
            derivative_time=self._maybe(cursor, "derivative_time"),
            filter=self._maybe(cursor, "filter") or Constant(FILTER),
            limit=self._maybe(cursor, "limit"),
            tracking_time=self._maybe(cursor, "tracking_time"),
        )

    def _control(self, cursor: Cursor, motors: Mapping[str, Motor], encoders: Mapping[str, Encoder]) -> Control:
        position, speed, dual = self._place(cursor, "position"), cursor.get("speed"), cursor.get("dual")
        if (dual is None) == (not cursor.has("motor")):
            what = "both motor and dual are given" if dual is not None else "no motor is named"
            cursor.problem(what, "give motor, or dual")
        drive: SingleDrive | DualDrive
        if dual is not None:
            master, slave = (self._refer(dual, key, motors, "motor") for key in ("master", "slave"))
            if master == slave:
                dual.problem(f"master and slave are both {master}", "name two motors", "slave")
            turns = self._turns.get(motors[slave].on, False) if slave in motors else False
            parts = ("torque_share", "preload", "feed_forward_share", "switch_min", "switch_max")
            drive = DualDrive(
                master=master, slave=slave, **{key: self._need(dual, key, turns and key == "preload") for key in parts}
            )
            least, most = self._values.nominal(drive.switch_min), self._values.nominal(drive.switch_max)
            if least >= most:
                what = f"switch_min {least:g} is not below switch_max {most:g}"
                dual.problem(what, "swap or correct them", "switch_min")
        else:
            motor = self._refer(cursor, "motor", motors, "motor") if cursor.has("motor") else ""
            drive = SingleDrive(motor=motor)
        encoder = self._refer(position, "encoder", encoders, "encoder")
        inner = self._refer(speed, "encoder", encoders, "encoder") if speed is not None else None
        sample_time = self._maybe(cursor, "sample_time")
        for name, place in ((encoder, position), (inner, speed)):
            if (
                name is not None
                and name in encoders
                and encoders[name].resolution is not None
                and not cursor.has("sample_time")
            ):
                remedy = "give control a sample_time, or the encoder no resolution"
                if place is not None:
                    place.problem(f"{name} counts, and the control is continuous", remedy, "encoder")
        return Control(
            encoder=encoder,
            position=self._pid(position),
            speed_encoder=inner,
            speed=self._pid(speed) if speed is not None else None,
            drive=drive,
            sample_time=sample_time,
        )
