"""Read the sections of a drive line: elements and control, in a file or on an actuator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.sections.joints import read_friction_law
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

#: Default N of the derivative filter (Modelica's LimPID; Gantry-Tau paper, section 4).
FILTER = 10.0
_COMPLIANCES = {"shaft": Shaft, "backlash": ElasticBacklash, "exact_backlash": ExactBacklash}
_TRANSMISSIONS = ("gear", "rack_and_pinion", "ball_screw")


class DriveReader:
    """Reader of sections whose form was checked.

    Problems are collected. Invalid values are replaced by substitutes so that reading continues.
    """

    def __init__(
        self, root: Cursor, values: ValueReader, load: tuple[str, bool] | None = None
    ) -> None:
        """Initialize the reader.

        Args:
            root: cursor of the sections.
            values: reads the values.
            load: name of the load that the machine replaces, and whether it rotates; None for a
                separate drive line.
        """
        self._root, self._values, self._load = root, values, load
        self._is_angular: dict[str, bool] = {}

    def line(self, name: str) -> DriveLine:
        """Return the drive line.

        Its criteria refer to the load. Without a load they refer to the inertia of the first
        encoder, until the caller replaces `performance`.

        Args:
            name: name of the drive line.
        """
        inertias = {
            key: self._inertia(key, cursor) for key, cursor in self._root.entries_of("inertias")
        }
        if self._load is not None:
            load, is_angular = self._load
            if load in inertias:
                what = f"{load} is the load, which the machine replaces, and also an inertia"
                self._root.problem(
                    what, "remove it from the inertias, or rename the load", "inertias"
                )
            self._is_angular[load] = is_angular
            inertias[load] = LineInertia(name=load, is_rotary=is_angular, value=ZERO)
        connections = [
            self._connection(key, cursor) for key, cursor in self._root.entries_of("connections")
        ]
        motors = {key: self._motor(key, cursor) for key, cursor in self._root.entries_of("motors")}
        encoders = {
            key: self._encoder(key, cursor) for key, cursor in self._root.entries_of("encoders")
        }
        control = self._control(self.required_cursor(self._root, "control"), motors, encoders)
        evaluated_inertia = (
            self._load[0]
            if self._load is not None
            else next((encoder.on for encoder in encoders.values()), "")
        )
        return DriveLine(
            name=name,
            inertias=tuple(inertias.values()),
            connections=tuple(connections),
            motors=tuple(motors.values()),
            encoders=tuple(encoders.values()),
            control=control,
            performance=Performance(of=evaluated_inertia, band=None),
        )

    def is_rotary(self, inertia: str) -> bool:
        """Return whether an inertia rotates; False for an unknown inertia."""
        return self._is_angular.get(inertia, False)

    def required_cursor(self, cursor: Cursor, key: str) -> Cursor:
        """Return the cursor of a key that is required by the grammar."""
        child = cursor.get(key)
        if child is None:
            raise AssertionError(f"the required key {key} is absent after the check of the form")
        return child

    def _optional_value(
        self, cursor: Cursor, key: str, is_angular: bool = False
    ) -> Expression | None:
        return self._values.expression(cursor.get(key), is_angular)

    def need(self, cursor: Cursor, key: str, is_angular: bool = False) -> Expression:
        """Return the value at a required key; a substitute after adding a problem."""
        return self._optional_value(cursor, key, is_angular) or ONE

    def refer(self, cursor: Cursor, key: str, known: Mapping[str, object], what: str) -> str:
        """Return the name at a key; report a name that is not in `known`."""
        name = cursor.word(key) or ""
        if name not in known:
            remedy = suggestion(name, known) or f"known: {listing(tuple(known), 20)}"
            cursor.problem(f"there is no {what} {name}", remedy, key)
        return name

    def _inertia(self, name: str, cursor: Cursor) -> LineInertia:
        is_angular = cursor.has("inertia")
        self._is_angular[name] = is_angular
        if is_angular == cursor.has("mass"):
            what = (
                "both `inertia` and `mass` are given"
                if is_angular
                else "neither `inertia` nor `mass` is given"
            )
            cursor.problem(what, "give `inertia` for a rotating body, or `mass` for a sliding body")
        value = self.need(cursor, "inertia" if is_angular else "mass", is_angular)
        friction_cursor, lugre_cursor = cursor.get("friction"), cursor.get("lugre")
        if friction_cursor is not None and lugre_cursor is not None:
            cursor.problem("both `friction` and `lugre` are given", "keep one of them", "lugre")
        friction: LineFriction | LuGre | None = read_friction_law(
            LineFriction, friction_cursor, self._values, is_angular
        )
        if lugre_cursor is not None:
            friction = read_friction_law(LuGre, lugre_cursor, self._values, is_angular)
        return LineInertia(name=name, is_rotary=is_angular, value=value, friction=friction)

    def _connection(self, name: str, cursor: Cursor) -> Connection:
        first, second = (
            self.refer(cursor, key, self._is_angular, "inertia") for key in ("first", "second")
        )
        if first == second:
            cursor.problem(f"{first} is connected to itself", "name two inertias", "second")
        is_angular = self.is_rotary(second)
        transmissions = [key for key in _TRANSMISSIONS if cursor.has(key)]
        if len(transmissions) > 1:
            cursor.problem(
                f"{' and '.join(transmissions)} are given",
                "keep one, or add an inertia between them",
                transmissions[1],
            )
        kind = transmissions[0] if transmissions else ""
        converts_motion = kind in ("rack_and_pinion", "ball_screw")
        if first in self._is_angular and second in self._is_angular:
            same_motion = self._is_angular[first] == is_angular
            if same_motion == converts_motion or (converts_motion and is_angular):
                first_motion = "rotates" if self._is_angular[first] else "slides"
                second_motion = "rotates" if self._is_angular[second] else "slides"
                what = f"{first} {first_motion} and {second} {second_motion}"
                remedy = (
                    "use `rack_and_pinion` or `ball_screw` between a rotation and a translation, "
                    "and `gear` or no transmission between two motions of the same kind"
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
        compliance_keys = [key for key in (*_COMPLIANCES, "rigid") if cursor.has(key)]
        if len(compliance_keys) != 1:
            what = (
                f"{' and '.join(compliance_keys)} are given"
                if compliance_keys
                else "the connection is neither rigid nor compliant"
            )
            cursor.problem(what, f"give exactly one of {listing((*_COMPLIANCES, 'rigid'), 5)}")
        compliance: Compliance | None = None
        for key, law in _COMPLIANCES.items():
            compliance_cursor = cursor.get(key)
            if compliance_cursor is not None:
                compliance = self._values.element(law, compliance_cursor, is_angular)
        return Connection(name=name, first=first, second=second, ratio=ratio, compliance=compliance)

    def _motor(self, name: str, cursor: Cursor) -> Motor:
        on = self.refer(cursor, "on", self._is_angular, "inertia")
        motor = self._values.element(Motor, cursor, self.is_rotary(on), name=name, on=on)
        if cursor.has("rated_speed") != cursor.has("speed") or (
            cursor.has("speed") and not cursor.has("torque")
        ):
            cursor.problem(
                "the limits are incomplete",
                "give `torque` alone, or `torque`, `rated_speed` and `speed`",
            )
        else:
            self._require_increasing(cursor, "rated_speed", motor.rated_speed, "speed", motor.speed)
        return motor

    def _require_increasing(
        self,
        cursor: Cursor,
        lower: str,
        low: Expression | None,
        upper: str,
        high: Expression | None,
    ) -> None:
        """Report two values unless the first is below the second."""
        if (
            low is not None
            and high is not None
            and self._values.nominal(low) >= self._values.nominal(high)
        ):
            lower_text = f"{lower} {self._values.nominal(low):g}"
            upper_text = f"{upper} {self._values.nominal(high):g}"
            what = f"{lower_text} is not below {upper_text}"
            cursor.problem(what, "swap or correct them", lower)

    def _encoder(self, name: str, cursor: Cursor) -> Encoder:
        on = self.refer(cursor, "on", self._is_angular, "inertia")
        return self._values.element(Encoder, cursor, self.is_rotary(on), name=name, on=on)

    def _pid(self, cursor: Cursor) -> Pid:
        if cursor.has("limit") != cursor.has("tracking_time"):
            remedy = "give both: tracking_time is the anti-windup time constant of a limited output"
            cursor.problem("limit and tracking_time require each other", remedy)
        pid = self._values.element(Pid, cursor)
        return pid if cursor.has("filter") else replace(pid, filter=Constant(FILTER))

    def _control(
        self, cursor: Cursor, motors: Mapping[str, Motor], encoders: Mapping[str, Encoder]
    ) -> Control:
        """Return the control law; it has one motor or two."""
        position = self.required_cursor(cursor, "position")
        speed = cursor.get("speed")
        dual = cursor.get("dual")
        if (dual is None) == (not cursor.has("motor")):
            what = "both `motor` and `dual` are given" if dual is not None else "no motor is named"
            cursor.problem(what, "give `motor` or `dual`")
        drive: SingleDrive | DualDrive
        if dual is not None:
            master, slave = (self.refer(dual, key, motors, "motor") for key in ("master", "slave"))
            if master == slave:
                dual.problem(f"master and slave are both {master}", "name two motors", "slave")
            is_angular = slave in motors and self.is_rotary(motors[slave].on)
            switch_min, switch_max = (
                self._optional_value(dual, key) for key in ("switch_min", "switch_max")
            )
            known = {
                "master": master,
                "slave": slave,
                "switch_min": switch_min,
                "switch_max": switch_max,
            }
            drive = self._values.element(DualDrive, dual, is_angular, **known)
            if (switch_min is None) != (switch_max is None):
                dual.problem(
                    "switch_min and switch_max require each other",
                    "give both, or neither: then the slave always pulls against the master",
                )
            else:
                self._require_increasing(dual, "switch_min", switch_min, "switch_max", switch_max)
        else:
            motor = self.refer(cursor, "motor", motors, "motor") if cursor.has("motor") else ""
            drive = SingleDrive(motor=motor)
        encoder = self.refer(position, "encoder", encoders, "encoder")
        speed_encoder = (
            self.refer(speed, "encoder", encoders, "encoder") if speed is not None else None
        )
        sample_time = self._optional_value(cursor, "sample_time")
        for name, loop_cursor in ((encoder, position), (speed_encoder, speed)):
            counts = name in encoders and encoders[name or ""].resolution is not None
            if loop_cursor is not None and counts and not cursor.has("sample_time"):
                remedy = "add `control.sample_time`, or remove the encoder's `resolution`"
                loop_cursor.problem(
                    f"{name} has a resolution, but the control is continuous", remedy, "encoder"
                )
        return Control(
            encoder=encoder,
            position=self._pid(position),
            speed_encoder=speed_encoder,
            speed=self._pid(speed) if speed is not None else None,
            drive=drive,
            sample_time=sample_time,
        )
