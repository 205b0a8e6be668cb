"""The sections of a drive line: elements and control, wherever they stand; what is wrong with them is noted."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.drive_line import (
    Compliance,
    Connection,
    Control,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    Encoder,
    ExactBacklash,
    LineFriction,
    LineInertia,
    LuGre,
    Motor,
    Performance,
    Pid,
    Shaft,
    SingleDrive,
)
from tauloop.mechanism.expression import ONE, ZERO, Constant, Expression, divide
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.mechanism.values import ValueReader

#: N of the derivative's filter where a file says none (Modelica's LimPID; Gantry-Tau paper, section 4).
FILTER = 10.0
_COMPLIANCES = {"shaft": Shaft, "backlash": ElasticBacklash, "exact_backlash": ExactBacklash}
_TRANSMISSIONS = ("gear", "rack_and_pinion", "ball_screw")


class DriveReader:
    """Reads sections whose form is right; what is wrong in them is noted, and something stands in until all is read."""

    def __init__(self, root: Cursor, values: ValueReader, load: tuple[str, bool] | None = None) -> None:
        """Start to read.

        Args:
            root: where the sections stand.
            values: reads the values.
            load: name of what the machine stands for, and whether it turns; None for a drive line of its own.
        """
        self._root, self._values, self._load = root, values, load
        self._turns: dict[str, bool] = {}

    def line(self, name: str) -> DriveLine:
        """The drive line; what it judges is the load, or what its first encoder measures until something else is said.

        Args:
            name: its name.
        """
        inertias = {key: self._inertia(key, cursor) for key, cursor in self._entries("inertias")}
        if self._load is not None:
            load, turns = self._load
            if load in inertias:
                what = f"{load} is the load, in whose place the machine stands"
                self._root.problem(what, "take it out of the inertias, or give the load another name", "inertias")
            self._turns[load] = turns
            inertias[load] = LineInertia(name=load, turns=turns, value=ZERO)
        connections = [self._connection(key, cursor) for key, cursor in self._entries("connections")]
        motors = {key: self._motor(key, cursor) for key, cursor in self._entries("motors")}
        encoders = {key: self._encoder(key, cursor) for key, cursor in self._entries("encoders")}
        control = self._control(self.place(self._root, "control"), motors, encoders)
        of = self._load[0] if self._load is not None else next((e.on for e in encoders.values()), "")
        return DriveLine(
            name=name,
            inertias=tuple(inertias.values()),
            connections=tuple(connections),
            motors=tuple(motors.values()),
            encoders=tuple(encoders.values()),
            control=control,
            performance=Performance(of=of, band=None),
        )

    def turns(self, inertia: str) -> bool:
        """Whether an inertia turns; False for one that does not exist."""
        return self._turns.get(inertia, False)

    def _entries(self, section: str) -> list[tuple[str, Cursor]]:
        cursor = self._root.get(section)
        return list(cursor.entries()) if cursor is not None else []

    def place(self, cursor: Cursor, key: str) -> Cursor:
        """What stands behind a key that the form has been checked for."""
        child = cursor.get(key)
        if child is None:
            raise AssertionError(f"the form of {key} was checked")
        return child

    def _maybe(self, cursor: Cursor, key: str, turns: bool = False) -> Expression | None:
        return self._values.expression(cursor.get(key), turns)

    def need(self, cursor: Cursor, key: str, turns: bool = False) -> Expression:
        """The value; one stands in for what is wrong, which is noted."""
        return self._maybe(cursor, key, turns) or ONE

    def refer(self, cursor: Cursor, key: str, known: Mapping[str, object], what: str) -> str:
        """The name behind a key; one that is not known is noted."""
        name = cursor.word(key) or ""
        if name not in known:
            remedy = suggestion(name, known) or f"known: {listing(tuple(known), 20)}"
            cursor.problem(f"there is no {what} {name}", remedy, key)
        return name

    def _inertia(self, name: str, cursor: Cursor) -> LineInertia:
        turns = cursor.has("inertia")
        self._turns[name] = turns
        if turns == cursor.has("mass"):
            what = "both inertia and mass are given" if turns else "neither inertia nor mass is given"
            cursor.problem(what, "give inertia (it turns) or mass (it slides)")
        value = self.need(cursor, "inertia" if turns else "mass", turns)
        friction: LineFriction | LuGre | None = None
        plain, dynamic = cursor.get("friction"), cursor.get("lugre")
        if plain is not None and dynamic is not None:
            cursor.problem("both friction and lugre are given", "keep one of them", "lugre")
        if dynamic is not None:
            keys = ("stiffness", "damping", "viscous", "coulomb", "static", "stribeck")
            friction = LuGre(**{key: self.need(dynamic, key, turns) for key in keys})
        elif plain is not None:
            parts = ("viscous", "coulomb", "static", "stribeck")
            friction = LineFriction(**{key: self._maybe(plain, key, turns) for key in parts})
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
        return LineInertia(name=name, turns=turns, value=value, friction=friction)

    def _connection(self, name: str, cursor: Cursor) -> Connection:
        first, second = (self.refer(cursor, key, self._turns, "inertia") for key in ("first", "second"))
        if first == second:
            cursor.problem(f"{first} is joined to itself", "name two inertias", "second")
        turns = self._turns.get(second, False)
        named = [key for key in _TRANSMISSIONS if cursor.has(key)]
        if len(named) > 1:
            cursor.problem(f"{' and '.join(named)} are given", "keep one, or put an inertia between them", named[1])
        kind = named[0] if named else ""
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
            value = self.need(cursor, kind)
            ratio = {
                "gear": divide(ONE, value),
                "rack_and_pinion": value,
                "ball_screw": divide(value, Constant(2 * math.pi)),
            }[kind]
        stated = [key for key in (*_COMPLIANCES, "rigid") if cursor.has(key)]
        if len(stated) != 1:
            what = f"{' and '.join(stated)} are given" if stated else "it is neither rigid nor has it a compliance"
            cursor.problem(what, f"give exactly one of {listing((*_COMPLIANCES, 'rigid'), 5)}")
        compliance: Compliance | None = None
        for key, law in _COMPLIANCES.items():
            place = cursor.get(key)
            if place is not None:
                keys = ("stiffness", "damping") if law is Shaft else ("gap", "stiffness", "damping")
                compliance = law(**{part: self.need(place, part, turns) for part in keys})
        return Connection(name=name, first=first, second=second, ratio=ratio, compliance=compliance)

    def _motor(self, name: str, cursor: Cursor) -> Motor:
        on = self.refer(cursor, "on", self._turns, "inertia")
        turns = self._turns.get(on, False)
        torque, rated, speed = (self._maybe(cursor, key, turns) for key in ("torque", "rated_speed", "speed"))
        if cursor.has("rated_speed") != cursor.has("speed") or (cursor.has("speed") and not cursor.has("torque")):
            cursor.problem("the limits are not complete", "give torque alone, or torque, rated_speed and speed")
        elif rated is not None and speed is not None and self._values.nominal(rated) >= self._values.nominal(speed):
            what = f"rated_speed {self._values.nominal(rated):g} is not below speed {self._values.nominal(speed):g}"
            cursor.problem(what, "swap or correct them", "rated_speed")
        return Motor(name=name, on=on, torque=torque, rated_speed=rated, speed=speed)

    def _encoder(self, name: str, cursor: Cursor) -> Encoder:
        on = self.refer(cursor, "on", self._turns, "inertia")
        return Encoder(name=name, on=on, resolution=self._maybe(cursor, "resolution", self._turns.get(on, False)))

    def _pid(self, cursor: Cursor) -> Pid:
        if cursor.has("limit") != cursor.has("tracking_time"):
            remedy = "give both: the integral follows a limited output with that time constant"
            cursor.problem("limit and tracking_time stand together", remedy)
        return Pid(
            gain=self.need(cursor, "gain"),
            integral_time=self._maybe(cursor, "integral_time"),
            derivative_time=self._maybe(cursor, "derivative_time"),
            filter=self._maybe(cursor, "filter") or Constant(FILTER),
            limit=self._maybe(cursor, "limit"),
            tracking_time=self._maybe(cursor, "tracking_time"),
        )

    def _control(self, cursor: Cursor, motors: Mapping[str, Motor], encoders: Mapping[str, Encoder]) -> Control:
        position, speed, dual = self.place(cursor, "position"), cursor.get("speed"), cursor.get("dual")
        if (dual is None) == (not cursor.has("motor")):
            what = "both motor and dual are given" if dual is not None else "no motor is named"
            cursor.problem(what, "give motor, or dual")
        drive: SingleDrive | DualDrive
        if dual is not None:
            master, slave = (self.refer(dual, key, motors, "motor") for key in ("master", "slave"))
            if master == slave:
                dual.problem(f"master and slave are both {master}", "name two motors", "slave")
            turns = self._turns.get(motors[slave].on, False) if slave in motors else False
            parts = ("torque_share", "preload", "feed_forward_share")
            least, most = (self._maybe(dual, key) for key in ("switch_min", "switch_max"))
            drive = DualDrive(
                master=master,
                slave=slave,
                switch_min=least,
                switch_max=most,
                **{key: self.need(dual, key, turns and key == "preload") for key in parts},
            )
            if (least is None) != (most is None):
                dual.problem("switch_min and switch_max stand together", "give both, or none: the slave pulls back")
            elif least is not None and most is not None:
                low, high = self._values.nominal(least), self._values.nominal(most)
                if low >= high:
                    what = f"switch_min {low:g} is not below switch_max {high:g}"
                    dual.problem(what, "swap or correct them", "switch_min")
        else:
            motor = self.refer(cursor, "motor", motors, "motor") if cursor.has("motor") else ""
            drive = SingleDrive(motor=motor)
        encoder = self.refer(position, "encoder", encoders, "encoder")
        inner = self.refer(speed, "encoder", encoders, "encoder") if speed is not None else None
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
