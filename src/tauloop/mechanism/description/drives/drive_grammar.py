"""The grammar of drive lines, for their own files and for actuators of machine files."""

from __future__ import annotations

from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    MapOf,
    Name,
    Reference,
    Shape,
    Text,
    Value,
    field,
    need,
    value,
)


def _value(
    of: units.Dimension | tuple[units.Dimension | None, units.Dimension] | None, sign: str = ""
) -> Value:
    return value(of, "drive", sign)


FRICTION = Shape(
    name="dry friction",
    doc="(coulomb + (static - coulomb) exp(-(v/stribeck)^2)) sign(v) + viscous v. At rest it holds "
    "forces up to `static`.",
    fields=(
        field("viscous", _value(units.DAMPINGS, "not negative"), "viscous coefficient"),
        field("coulomb", _value(units.FORCES, "not negative"), "sliding friction"),
        field(
            "static",
            _value(units.FORCES, "not negative"),
            "largest friction at rest; `coulomb` if absent",
        ),
        field("stribeck", _value(units.SPEEDS, "positive"), "Stribeck velocity; requires `static`"),
    ),
)
LUGRE = Shape(
    name="LuGre friction",
    doc="Dynamic friction with presliding hysteresis.",
    fields=(
        need("stiffness", _value(units.STIFFNESSES, "positive"), "bristle stiffness sigma_0"),
        need("damping", _value(units.DAMPINGS, "not negative"), "bristle damping sigma_1"),
        need("viscous", _value(units.DAMPINGS, "not negative"), "viscous coefficient sigma_2"),
        need("coulomb", _value(units.FORCES, "positive"), "sliding friction"),
        need("static", _value(units.FORCES, "positive"), "largest friction at rest"),
        need("stribeck", _value(units.SPEEDS, "positive"), "Stribeck velocity"),
    ),
)
INERTIA = Shape(
    name="drive inertia",
    doc="A body with one degree of freedom: it rotates (`inertia`) or translates (`mass`).",
    fields=(
        field(
            "inertia",
            _value((None, units.INERTIA), "positive"),
            "moment of inertia of a rotating body",
        ),
        field("mass", _value(units.MASS, "positive"), "mass of a translating body"),
        field("friction", FRICTION, "friction against the frame"),
        field("lugre", LUGRE, "LuGre friction against the frame, instead of `friction`"),
    ),
)
_CONTACT = (
    need("gap", _value(units.POSITIONS, "positive"), "total gap, measured at the second inertia"),
    need("stiffness", _value(units.STIFFNESSES, "positive"), "stiffness of the contact"),
)
CONNECTION = Shape(
    name="connection",
    doc="Connects two inertias: a transmission (without it, both move equally), then one compliance or `rigid`.",
    fields=(
        need("first", Reference(to="inertia"), "inertia on the motor's side"),
        need("second", Reference(to="inertia"), "inertia on the load's side"),
        field(
            "gear",
            _value(units.ONE, "not zero"),
            "revolutions of the first per revolution of the second",
        ),
        field(
            "rack_and_pinion",
            _value(units.LENGTH, "not zero"),
            "radius of the pinion (the first inertia)",
        ),
        field(
            "ball_screw",
            _value(units.LENGTH, "not zero"),
            "lead: travel per revolution of the first",
        ),
        field("rigid", Choice(options=("yes",)), "no compliance"),
        field(
            "shaft",
            Shape(
                name="shaft",
                doc="Spring and damper.",
                fields=(
                    need("stiffness", _value(units.STIFFNESSES, "positive"), "stiffness"),
                    need("damping", _value(units.DAMPINGS, "not negative"), "damping"),
                ),
            ),
            "spring and damper",
        ),
        field(
            "backlash",
            Shape(
                name="backlash",
                doc="Elastic backlash element.",
                fields=(
                    *_CONTACT,
                    need(
                        "damping", _value(units.DAMPINGS, "not negative"), "damping of the contact"
                    ),
                ),
            ),
            "gap with elastic contacts",
        ),
        field(
            "exact_backlash",
            Shape(
                name="exact backlash",
                doc="Damped elastic shaft with a gap whose position is a state.",
                fields=(
                    *_CONTACT,
                    need("damping", _value(units.DAMPINGS, "positive"), "damping of the shaft"),
                ),
            ),
            "damped elastic shaft with a gap whose position is a state",
        ),
    ),
)
MOTOR = Shape(
    name="motor",
    doc="A motor with limits.",
    fields=(
        need("on", Reference(to="inertia"), "inertia that it drives"),
        field("torque", _value(units.FORCES, "positive"), "largest torque or force"),
        field(
            "rated_speed", _value(units.SPEEDS, "positive"), "speed above which the torque falls"
        ),
        field(
            "speed", _value(units.SPEEDS, "positive"), "speed at which the available torque is zero"
        ),
    ),
)
ENCODER = Shape(
    name="encoder",
    doc="A measurement of position.",
    fields=(
        need("on", Reference(to="inertia"), "inertia whose position it measures"),
        field(
            "resolution",
            _value(units.POSITIONS, "positive"),
            "size of one count; requires a sampled control",
        ),
    ),
)
#: Gains are plain SI numbers: their units follow from those of the error and of the output.
PID = Shape(
    name="PID",
    doc="gain (1 + 1/(T_i s) + T_d s / (1 + s T_d / filter)); gains in SI (N m per m, N m per rad, ...).",
    fields=(
        need("encoder", Reference(to="encoder"), "encoder that measures the controlled variable"),
        need("gain", _value(None, "positive"), "K_p, SI"),
        field("integral_time", _value(units.TIME, "positive"), "T_i; absent: no integral part"),
        field("derivative_time", _value(units.TIME, "positive"), "T_d; absent: no derivative part"),
        field("filter", _value(units.ONE, "positive"), "N of the derivative filter; 10 if absent"),
        field("limit", _value(None, "positive"), "largest output, SI"),
        field(
            "tracking_time",
            _value(units.TIME, "positive"),
            "anti-windup time constant; requires `limit`",
        ),
    ),
)
DUAL = Shape(
    name="dual drive",
    doc="Two motors on one load; e is |reference - position| divided by the size of the step.",
    fields=(
        need("master", Reference(to="motor"), "motor that always drives"),
        need(
            "slave",
            Reference(to="motor"),
            "motor that first drives and then pulls against the master",
        ),
        need(
            "torque_share",
            _value(units.ONE, "not negative"),
            "the slave's share of the output while both drive",
        ),
        need(
            "preload",
            _value(units.FORCES, "not negative"),
            "torque or force with which the slave pulls against the master",
        ),
        need(
            "feed_forward_share",
            _value(units.ONE, "not negative"),
            "fraction of the preload given to the master",
        ),
        field(
            "switch_min",
            _value(units.ONE, "positive"),
            "e below which the slave only pulls against the master",
        ),
        field(
            "switch_max",
            _value(units.ONE, "positive"),
            "e above which the slave only drives. Without `switch_min` and `switch_max` it always pulls against the "
            "master",
        ),
    ),
)
CONTROL = Shape(
    name="drive control",
    doc="A position loop, an optional inner speed loop, and one motor or two.",
    fields=(
        need("position", PID, "position loop"),
        field("speed", PID, "inner speed loop; its reference is the output of the position loop"),
        field("motor", Reference(to="motor"), "the motor, if there is only one"),
        field("dual", DUAL, "two motors, instead of `motor`"),
        field(
            "sample_time",
            _value(units.TIME, "positive"),
            "period of a sampled control; continuous if absent",
        ),
    ),
)
#: Sections of a drive line; all except `connections` are required.
SECTIONS = (
    need("inertias", MapOf(item=INERTIA), "bodies"),
    field("connections", MapOf(item=CONNECTION), "connections between inertias"),
    need("motors", MapOf(item=MOTOR), "motors"),
    need("encoders", MapOf(item=ENCODER), "measurements"),
    need("control", CONTROL, "control law"),
)
ON_ACTUATOR = Shape(
    name="drive line of an actuator",
    doc="The drive line between motors and machine: a drive-line `file` (docs/drives.md), or its sections given here. "
    "The machine replaces the load. In a file, the load is the inertia that `performance` names; its mass and "
    "friction in the file are ignored. Here it is `load`, which is not among the inertias.",
    fields=(
        field("file", Text(), "drive-line file, relative to the machine file; instead of sections"),
        field(
            "set",
            MapOf(item=_value(None), key="parameter"),
            "new values of the file's parameters",
        ),
        field(
            "load",
            Name(),
            "name by which connections and encoders refer to the machine; required without `file`",
        ),
        *(field(part.name, part.kind, f"{part.doc}; not with `file`") for part in SECTIONS),
    ),
)
