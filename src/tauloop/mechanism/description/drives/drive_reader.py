"""The sections of a drive line, elements and control, in a file or on an actuator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.sections.joints import read_law
from tauloop.mechanism.description.values import ValueReader
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

#: Default N of the derivative's filter (Modelica's LimPID; Gantry-Tau paper, section 4).
FILTER = 10.0
_COMPLIANCES = {"shaft": Shaft, "backlash": ElasticBacklash, "exact_backlash": ExactBacklash}
_TRANSMISSIONS = ("gear", "rack_and_pinion", "ball_screw")


class DriveReader:
    """Reader of sections of valid form.

    Problems are noted, and faulty values are replaced so that everything is read.
    """

    def __init__(
        self, root: Cursor, values: ValueReader, load: tuple[str, bool] | None = None
    ) -> None:
        """Initialize the reader.

        Args:
            root: place of the sections.
            values: reads the values.
            load: name of the load that the machine replaces, and whether it rotates; None for a
                separate drive line.
        """
        self._root, self._values, self._load = root, values, load
        self._turns: dict[str, bool] = {}

    def line(self, name: str) -> DriveLine:
        """Return the drive line.

        It judges the load, or the inertia of its first encoder unless `performance` is read.

        Args:
            name: name of the drive line.
        """
        inertias = {
            key: self._inertia(key, cursor) for key, cursor in self._root.entries_of("inertias")
        }
        if self._load is not None:
            load, turns = self._load
            if load in inertias:
                what = f"{load} is the load, which the machine replaces"
                self._root.problem(
                    what, "take it out of the inertias, or give the load another name", "inertias"
                )
            self._turns[load] = turns
            inertias[load] = LineInertia(name=load, turns=turns, value=ZERO)
        connections = [
            self._connection(key, cursor) for key, cursor in self._root.entries_of("connections")
        ]
        motors = {key: self._motor(key, cursor) for key, cursor in self._root.entries_of("motors")}
        encoders = {
            key: self._encoder(key, cursor) for key, cursor in self._root.entries_of("encoders")
        }
        control = self._control(self.place(self._root, "control"), motors, encoders)
        of = (
            self._load[0] if self._load is not None else next((e.on for e in encoders.values()), "")
        )
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
        """Return whether an inertia rotates; False for an unknown one."""
        return self._turns.get(inertia, False)

    def place(self, cursor: Cursor, key: str) -> Cursor:
        """Return the place of a key that the check of the form has found."""
        child = cursor.get(key)
        if child is None:
            raise AssertionError(f"the form of {key} was checked")
        return child

    def _maybe(self, cursor: Cursor, key: str, turns: bool = False) -> Expression | None:
        return self._values.expression(cursor.get(key), turns)

    def need(self, cursor: Cursor, key: str, turns: bool = False) -> Expression:
        """Return the value; a substitute for a faulty value, which is noted."""
        return self._maybe(cursor, key, turns) or ONE

    def refer(self, cursor: Cursor, key: str, known: Mapping[str, object], what: str) -> str:
        """Return the name at a key; an unknown name is noted."""
        name = cursor.word(key) or ""
        if name not in known:
            remedy = suggestion(name, known) or f"known: {listing(tuple(known), 20)}"
            cursor.problem(f"there is no {what} {name}", remedy, key)
        return name

    def _inertia(self, name: str, cursor: Cursor) -> LineInertia:
        turns = cursor.has("inertia")
        self._turns[name] = turns
        if turns == cursor.has("mass"):
            what = (
                "both inertia and mass are given" if turns else "neither inertia nor mass is given"
            )
            cursor.problem(what, "give inertia (it turns) or mass (it slides)")
        value = self.need(cursor, "inertia" if turns else "mass", turns)
        plain, dynamic = cursor.get("friction"), cursor.get("lugre")
        if plain is not None and dynamic is not None:
            cursor.problem("both friction and lugre are given", "keep one of them", "lugre")
        friction: LineFriction | LuGre | None = read_law(LineFriction, plain, self._values, turns)
        if dynamic is not None:
            friction = read_law(LuGre, dynamic, self._values, turns)
        return LineInertia(name=name, turns=turns, value=value, friction=friction)

    def _connection(self, name: str, cursor: Cursor) -> Connection:
        first, second = (
            self.refer(cursor, key, self._turns, "inertia") for key in ("first", "second")
        )
        if first == second:
            cursor.problem(f"{first} is joined to itself", "name two inertias", "second")
        turns = self.turns(second)
        named = [key for key in _TRANSMISSIONS if cursor.has(key)]
        if len(named) > 1:
            cursor.problem(
                f"{' and '.join(named)} are given",
                "keep one, or put an inertia between them",
                named[1],
            )
        kind = named[0] if named else ""
        slides = kind in ("rack_and_pinion", "ball_screw")
        if first in self._turns and second in self._turns:
            alike = self._turns[first] == turns
            if alike == slides or (slides and turns):
                what = "{} {} and {} {}".format(
                    *(
                        word
                        for n in (first, second)
                        for word in (n, "turns" if self._turns[n] else "slides")
                    )
                )
                remedy = (
                    "use a rack and pinion or a ball screw between a rotation and a slide, "
                    "and a gear or nothing between two of one kind"
                )
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
            what = (
                f"{' and '.join(stated)} are given"
                if stated
                else "it is neither rigid nor has it a compliance"
            )
            cursor.problem(what, f"give exactly one of {listing((*_COMPLIANCES, 'rigid'), 5)}")
        compliance: Compliance | None = None
        for key, law in _COMPLIANCES.items():
            place = cursor.get(key)
            if place is not None:
                compliance = self._values.element(law, place, turns)
        return Connection(name=name, first=first, second=second, ratio=ratio, compliance=compliance)

    def _motor(self, name: str, cursor: Cursor) -> Motor:
        on = self.refer(cursor, "on", self._turns, "inertia")
        motor = self._values.element(Motor, cursor, self.turns(on), name=name, on=on)
        if cursor.has("rated_speed") != cursor.has("speed") or (
            cursor.has("speed") and not cursor.has("torque")
        ):
            cursor.problem(
                "the limits are not complete", "give torque alone, or torque, rated_speed and speed"
            )
        else:
            self._require_rising(cursor, "rated_speed", motor.rated_speed, "speed", motor.speed)
        return motor

    def _require_rising(
        self,
        cursor: Cursor,
        lower: str,
        low: Expression | None,
        upper: str,
        high: Expression | None,
    ) -> None:
        """Note two values the first of which is not below the second."""
        if (
            low is not None
            and high is not None
            and self._values.nominal(low) >= self._values.nominal(high)
        ):
            what = f"{lower} {self._values.nominal(low):g} is not below {upper} {self._values.nominal(high):g}"
            cursor.problem(what, "swap or correct them", lower)

    def _encoder(self, name: str, cursor: Cursor) -> Encoder:
        on = self.refer(cursor, "on", self._turns, "inertia")
        return self._values.element(Encoder, cursor, self.turns(on), name=name, on=on)

    def _pid(self, cursor: Cursor) -> Pid:
        if cursor.has("limit") != cursor.has("tracking_time"):
            remedy = "give both: the integral follows a limited output with that time constant"
            cursor.problem("limit and tracking_time require each other", remedy)
        pid = self._values.element(Pid, cursor)
        return pid if cursor.has("filter") else replace(pid, filter=Constant(FILTER))

    def _control(
        self, cursor: Cursor, motors: Mapping[str, Motor], encoders: Mapping[str, Encoder]
    ) -> Control:
        position, speed, dual = (
            self.place(cursor, "position"),
            cursor.get("speed"),
            cursor.get("dual"),
        )
        if (dual is None) == (not cursor.has("motor")):
            what = "both motor and dual are given" if dual is not None else "no motor is named"
            cursor.problem(what, "give motor, or dual")
        drive: SingleDrive | DualDrive
        if dual is not None:
            master, slave = (self.refer(dual, key, motors, "motor") for key in ("master", "slave"))
            if master == slave:
                dual.problem(f"master and slave are both {master}", "name two motors", "slave")
            turns = slave in motors and self.turns(motors[slave].on)
            least, most = (self._maybe(dual, key) for key in ("switch_min", "switch_max"))
            known = {"master": master, "slave": slave, "switch_min": least, "switch_max": most}
            drive = self._values.element(DualDrive, dual, turns, **known)
            if (least is None) != (most is None):
                dual.problem(
                    "switch_min and switch_max require each other",
                    "give both, or none: the slave pulls back",
                )
            else:
                self._require_rising(dual, "switch_min", least, "switch_max", most)
        else:
            motor = self.refer(cursor, "motor", motors, "motor") if cursor.has("motor") else ""
            drive = SingleDrive(motor=motor)
        encoder = self.refer(position, "encoder", encoders, "encoder")
        inner = self.refer(speed, "encoder", encoders, "encoder") if speed is not None else None
        sample_time = self._maybe(cursor, "sample_time")
        for name, place in ((encoder, position), (inner, speed)):
            counts = name in encoders and encoders[name or ""].resolution is not None
            if place is not None and counts and not cursor.has("sample_time"):
                remedy = "give control a sample_time, or the encoder no resolution"
                place.problem(f"{name} counts, and the control is continuous", remedy, "encoder")
        return Control(
            encoder=encoder,
            position=self._pid(position),
            speed_encoder=inner,
            speed=self._pid(speed) if speed is not None else None,
            drive=drive,
            sample_time=sample_time,
        )
