"""The grammar of drive lines, once: of their own files, and on the actuators of machine files."""

from __future__ import annotations

from tauloop.mechanism import units
from tauloop.mechanism.kinds import Choice, Field, Kind, MapOf, Name, Reference, Shape, Text, Value


def _value(
    linear: units.Dimension | None, angular: units.Dimension | None = None, sign: str = "", group: str = "drive"
) -> Value:
    return Value(linear=linear, angular=angular, group=group, sign=sign)


def _field(name: str, kind: Kind, doc: str, required: bool = False) -> Field:
    return Field(name=name, kind=kind, doc=doc, required=required)


def _need(name: str, kind: Kind, doc: str) -> Field:
    return _field(name, kind, doc, required=True)


_FORCE = (units.FORCE, units.TORQUE)
_STIFFNESS = (units.STIFFNESS, units.ANGULAR_STIFFNESS)
_DAMPING = (units.DAMPING, units.ANGULAR_DAMPING)
_SPEED = (units.SPEED, units.ANGULAR_SPEED)
_POSITION = (units.LENGTH, units.ANGLE)

FRICTION = Shape(
    name="dry friction",
    doc="(coulomb + (static - coulomb) exp(-(v/stribeck)^2)) sign(v) + viscous v; it sticks up to static.",
    fields=(
        _field("viscous", _value(*_DAMPING, sign="not negative"), "viscous coefficient"),
        _field("coulomb", _value(*_FORCE, sign="not negative"), "sliding friction"),
        _field("static", _value(*_FORCE, sign="not negative"), "largest friction at rest; coulomb if absent"),
        _field("stribeck", _value(*_SPEED, sign="positive"), "Stribeck velocity, with static"),
    ),
)
LUGRE = Shape(
    name="LuGre friction",
    doc="Dynamic friction with presliding hysteresis.",
    fields=(
        _need("stiffness", _value(*_STIFFNESS, sign="positive"), "bristle stiffness sigma_0"),
        _need("damping", _value(*_DAMPING, sign="not negative"), "bristle damping sigma_1"),
        _need("viscous", _value(*_DAMPING, sign="not negative"), "viscous coefficient sigma_2"),
        _need("coulomb", _value(*_FORCE, sign="positive"), "sliding friction"),
        _need("static", _value(*_FORCE, sign="positive"), "largest friction at rest"),
        _need("stribeck", _value(*_SPEED, sign="positive"), "Stribeck velocity"),
    ),
)
INERTIA = Shape(
    name="drive inertia",
    doc="A body with one freedom: it turns (inertia) or slides (mass).",
    fields=(
        _field("inertia", _value(None, units.INERTIA, sign="positive"), "moment of inertia of a turning body"),
        _field("mass", _value(units.MASS, sign="positive"), "mass of a sliding body"),
        _field("friction", FRICTION, "friction against the frame"),
        _field("lugre", LUGRE, "LuGre friction against the frame, in place of friction"),
    ),
)
_CONTACT = (
    _need("gap", _value(*_POSITION, sign="positive"), "whole gap, on the second side"),
    _need("stiffness", _value(*_STIFFNESS, sign="positive"), "stiffness of the contact"),
)
CONNECTION = Shape(
    name="connection",
    doc="What joins two inertias: a transmission (none: both move alike), then one compliance or `rigid`.",
    fields=(
        _need("first", Reference(to="inertia"), "inertia on the motor's side"),
        _need("second", Reference(to="inertia"), "inertia on the load's side"),
        _field("gear", _value(units.ONE, sign="not zero"), "turns of the first per turn of the second"),
        _field("rack_and_pinion", _value(units.LENGTH, sign="not zero"), "radius of the pinion, which is the first"),
        _field("ball_screw", _value(units.LENGTH, sign="not zero"), "lead: travel per turn of the first"),
        _field("rigid", Choice(options=("yes",)), "no compliance"),
        _field(
            "shaft",
            Shape(
                name="shaft",
                doc="Spring and damper.",
                fields=(
                    _need("stiffness", _value(*_STIFFNESS, sign="positive"), "stiffness"),
                    _need("damping", _value(*_DAMPING, sign="not negative"), "damping"),
                ),
            ),
            "spring and damper",
        ),
        _field(
            "backlash",
            Shape(
                name="backlash",
                doc="Elastic backlash element.",
                fields=(*_CONTACT, _need("damping", _value(*_DAMPING, sign="not negative"), "damping of the contact")),
            ),
            "gap with elastic contacts",
        ),
        _field(
            "exact_backlash",
            Shape(
                name="exact backlash",
                doc="Damped elastic shaft with a gap whose position is a state.",
                fields=(*_CONTACT, _need("damping", _value(*_DAMPING, sign="positive"), "damping of the shaft")),
            ),
            "gap with a position of its own, inside a damped shaft",
        ),
    ),
)
MOTOR = Shape(
    name="motor",
    doc="A motor with limits.",
    fields=(
        _need("on", Reference(to="inertia"), "inertia that it drives"),
        _field("torque", _value(*_FORCE, sign="positive"), "largest torque or force"),
        _field("rated_speed", _value(*_SPEED, sign="positive"), "speed above which the torque falls"),
        _field("speed", _value(*_SPEED, sign="positive"), "speed at which no torque is left"),
    ),
)
ENCODER = Shape(
    name="encoder",
    doc="A measurement of position.",
    fields=(
        _need("on", Reference(to="inertia"), "inertia whose position it measures"),
        _field("resolution", _value(*_POSITION, sign="positive"), "one count; needs a sampled control"),
    ),
)
#: Gains have whatever unit turns an error into an output: plain SI figures, for their units would only be repeated.
PID = Shape(
    name="PID",
    doc="gain (1 + 1/(T_i s) + T_d s / (1 + s T_d / filter)); gains in SI (N m per m, N m per rad, ...).",
    fields=(
        _need("encoder", Reference(to="encoder"), "what it measures"),
        _need("gain", _value(None, sign="positive"), "K_p, SI"),
        _field("integral_time", _value(units.TIME, sign="positive"), "T_i; absent: no integral part"),
        _field("derivative_time", _value(units.TIME, sign="positive"), "T_d; absent: no derivative part"),
        _field("filter", _value(units.ONE, sign="positive"), "N of the derivative's filter; 10 if absent"),
        _field("limit", _value(None, sign="positive"), "largest output, SI"),
        _field("tracking_time", _value(units.TIME, sign="positive"), "anti-windup time constant, with limit"),
    ),
)
DUAL = Shape(
    name="dual drive",
    doc="Two motors on one load; e is |reference - position| over the size of the step.",
    fields=(
        _need("master", Reference(to="motor"), "motor that always drives"),
        _need("slave", Reference(to="motor"), "motor that drives first and then pulls back"),
        _need("torque_share", _value(units.ONE, sign="not negative"), "the slave's share while both drive"),
        _need("preload", _value(*_FORCE, sign="not negative"), "torque or force with which the slave pulls back"),
        _need("feed_forward_share", _value(units.ONE, sign="not negative"), "share of the preload given to the master"),
        _need("switch_min", _value(units.ONE, sign="positive"), "e below which the slave only pulls back"),
        _need("switch_max", _value(units.ONE, sign="positive"), "e above which the slave only drives"),
    ),
)
CONTROL = Shape(
    name="drive control",
    doc="A position loop, a speed loop inside if there is one, and one motor or two.",
    fields=(
        _need("position", PID, "position loop"),
        _field("speed", PID, "speed loop: its reference is the position loop's output"),
        _field("motor", Reference(to="motor"), "the motor, if there is one"),
        _field("dual", DUAL, "two motors, in place of motor"),
        _field("sample_time", _value(units.TIME, sign="positive"), "period of a sampled control; continuous if absent"),
    ),
)
#: Sections of a drive line; all but connections are needed.
SECTIONS = (
    _need("inertias", MapOf(item=INERTIA), "bodies"),
    _field("connections", MapOf(item=CONNECTION), "what joins them"),
    _need("motors", MapOf(item=MOTOR), "motors"),
    _need("encoders", MapOf(item=ENCODER), "measurements"),
    _need("control", CONTROL, "the law"),
)
ON_ACTUATOR = Shape(
    name="drive line of an actuator",
    doc="What stands between motors and machine: a drive-line `file` (docs/drives.md), or the sections of one, here. "
    "The machine takes the place of the load: in a file, of the inertia that `performance` judges, whose mass and "
    "friction there do not count; here, of `load`, which is not among the inertias.",
    fields=(
        _field("file", Text(), "drive-line file, relative to the machine file; in place of sections"),
        _field(
            "set",
            MapOf(item=_value(None), key="parameter"),
            "values of the file's parameters that differ here",
        ),
        _field("load", Name(), "what connections and encoders call the machine; required without file"),
        *(_field(field.name, field.kind, f"{field.doc}; not with file") for field in SECTIONS),
    ),
)
