"""The grammar of machine files.

Reader, checks, JSON Schema and reference page are derived from it.

The reader checks conditions between fields (a rod is either fixed or telescopic); the descriptions of
the fields state them.
"""

from __future__ import annotations

from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    Either,
    ListOf,
    MapOf,
    Name,
    Reference,
    Shape,
    Text,
    Value,
    Whole,
    field,
    need,
    value,
)
from tauloop.mechanism.description.drives.drive_grammar import ON_ACTUATOR
from tauloop.mechanism.description.elastic_grammar import (
    ACTUATOR_FIELDS,
    BODY_FIELDS,
    JOINT_FIELDS,
    MACHINE_FIELDS,
    ROD_BEAM_FIELDS,
    ROD_FIELDS,
    SECTION_KEYS,
)
from tauloop.mechanism.expression import STATUSES
from tauloop.mechanism.model import JOINT_KINDS

#: First line of every machine file.
MACHINE_FORMAT = "tauloop-machine/1"


_LENGTH = value(units.LENGTH, "geometry")
_ANGLE = value(units.ANGLE, "geometry")
_MASS = value(units.MASS, "inertia", "positive")
_MOMENT = value(units.INERTIA, "inertia")
_CENTER = value(units.LENGTH, "inertia")
_POSITION = ListOf(item=_LENGTH, length=3)
_STEERED = value(units.POSITIONS)
_NUMBER = value(units.ONE)

QUALIFIED = Shape(
    name="qualified value",
    doc="A value with what is known about it. Such a literal is an independent parameter even if it is zero.",
    fields=(
        need("value", Value(linear=None, is_plain=True), "number, literal or expression"),
        field(
            "status",
            Choice(options=STATUSES),
            "how it was obtained; the file's `provenance` if absent",
        ),
        field("source", Text(), "where it comes from; the file's `provenance` if absent"),
        field(
            "bounds",
            ListOf(item=Value(linear=None, is_plain=True), length=2),
            "[lower, upper]; literals only",
        ),
        field("note", Text(), "a remark"),
    ),
)

PROVENANCE = Shape(
    name="provenance",
    doc="Status and source of every value that has none of its own.",
    fields=(
        need("status", Choice(options=STATUSES), "how the values were obtained"),
        need("source", Text(), "where they come from"),
    ),
)

TURN = Shape(
    name="turn",
    doc="A rotation about one axis of the frame that the turns before it have produced: exactly one key.",
    fields=tuple(field(axis, _ANGLE, f"angle about {axis}") for axis in "xyz"),
)
_TURNS = ListOf(item=TURN, may_be_empty=True)

PLACEMENT = Shape(
    name="placement",
    doc="A frame fixed to a body: first shifted, then turned. Just the name of a body or frame means that one.",
    fields=(
        need("on", Reference(to="body or frame"), "body or frame that it is fixed to"),
        field("at", _POSITION, "origin, in the axes of `on`; zero if absent"),
        field("turn", _TURNS, "successive turns; none if absent"),
    ),
)
_PLACED = Either(kinds=(Reference(to="body or frame"), PLACEMENT))

TOOL_SHAPE = Shape(
    name="pose",
    doc="A frame given without the body it is fixed to, which is known.",
    fields=(
        field("at", _POSITION, "origin; zero if absent"),
        field("turn", _TURNS, "successive turns; none if absent"),
    ),
)

MOMENTS = Shape(
    name="inertia",
    doc="The symmetric inertia matrix; what is absent is zero. Products are the matrix elements, I_xy = -∫ x y dm.",
    fields=tuple(
        field(name, _MOMENT, f"I_{name}") for name in ("xx", "yy", "zz", "xy", "xz", "yz")
    ),
)

_PART_LENGTH = value(units.LENGTH, "elasticity", "positive")
_ABOUT = field(
    "about",
    Choice(options=("center", "origin")),
    "point that `inertia` refers to; `center` if absent",
)
_UNCHECKED = field(
    "unchecked",
    Choice(options=("yes", "no")),
    "yes: the values need not be possible for a body (a planar or reduced model, identified values). no if absent",
)
BODY = Shape(
    name="body",
    doc="A rigid body; the word `massless`, or a mass of zero alone, stands for a body that only joins others. Without "
    "`center` and without `inertia` it is a point mass at the body's origin. Without `mass`, its inertia is that of "
    "its `beams`.",
    fields=(
        field("mass", _MASS, "mass; required without `beams`"),
        field(
            "center",
            ListOf(item=_CENTER, length=3),
            "mass center in body coordinates; the origin if absent",
        ),
        field(
            "first_moment",
            ListOf(item=value(units.FIRST_MOMENT, "inertia"), length=3),
            "mass times mass center, in place of `center`; then `about: origin` is required",
        ),
        field("inertia", MOMENTS, "moments of inertia in body axes; zero (a point mass) if absent"),
        _ABOUT,
        _UNCHECKED,
        *BODY_FIELDS,
    ),
    one_of=("mass", "beams"),
)

FRICTION = Shape(
    name="friction",
    doc="Losses against the motion: viscous v + viscous_asymmetry |v| + (coulomb + (static - coulomb) "
    "exp(-(v/stribeck)^2)) sign(v) + coulomb_asymmetry |sign(v)| + offset.",
    fields=(
        field("viscous", value(units.DAMPINGS, "friction", "not negative"), "viscous coefficient"),
        field("coulomb", value(units.FORCES, "friction", "not negative"), "Coulomb friction"),
        field("offset", value(units.FORCES, "friction"), "constant part"),
        field(
            "viscous_asymmetry",
            value(units.DAMPINGS, "friction"),
            "by how much the viscous coefficient is larger forwards and smaller backwards; at most `viscous`",
        ),
        field(
            "coulomb_asymmetry",
            value(units.FORCES, "friction"),
            "by how much Coulomb friction is larger forwards and smaller backwards; at most `coulomb`",
        ),
        field(
            "static",
            value(units.FORCES, "friction", "not negative"),
            "friction at the slowest motion, at least `coulomb`; with `stribeck`",
        ),
        field(
            "stribeck", value(units.SPEEDS, "friction", "positive"), "Stribeck speed, with `static`"
        ),
    ),
)

SPRING = Shape(
    name="spring",
    doc="A spring on one degree of freedom: it pulls back with stiffness (q - rest).",
    fields=(
        need("stiffness", value(units.STIFFNESSES, "spring"), "force per displacement"),
        need("rest", value(units.POSITIONS, "spring"), "coordinate without force"),
    ),
)

_RANGE = ListOf(item=_STEERED, length=2)
LIMITS = Shape(
    name="limits",
    doc="A range with its kind: exactly one key. `[lower, upper]` alone are stops. Searches (random states, workspace, "
    "excitation, poses to measure) keep within both kinds; a pose or motion that is given is judged by stops alone.",
    fields=(
        field("stop", _RANGE, "[lower, upper] that the machine cannot leave"),
        field(
            "drawing",
            _RANGE,
            "[lower, upper] in which it is drawn and sampled, and which it may leave",
        ),
    ),
)
_LIMITS = Either(kinds=(_RANGE, LIMITS))

_FREEDOM_FIELDS = (
    field(
        "limits",
        _LIMITS,
        "[lower, upper] of the coordinate, or with its kind: `{drawing: [lower, upper]}`",
    ),
    field("speed", value(units.SPEEDS, "", "positive"), "largest speed"),
    field("friction", FRICTION, "losses"),
    field("spring", SPRING, "elastic element"),
    field(
        "inertia",
        value(units.INERTIAS, "drive", "not negative"),
        "inertia that moves with this degree of freedom alone: a rotor, on the joint's side",
    ),
)
FREEDOM = Shape(
    name="freedom", doc="What acts on one degree of freedom of a joint.", fields=_FREEDOM_FIELDS
)

CONSTANT_TURN = Shape(
    name="constant turn",
    doc="A turn that is not a parameter: exactly one key.",
    fields=tuple(field(axis, value(units.ANGLE), f"angle about {axis}") for axis in "xyz"),
)
REFERENCE = Shape(
    name="joint reference",
    doc="Start values of a joint with several degrees of freedom; absent keys are zero. Keys by kind of joint: "
    "`first`, `second` (universal); `angle`, `slide` (cylindrical); `x`, `y`, `angle`, or `at` and `turn` in the plane "
    "(planar); `x`, `y`, `z`, `angle`, or `at` and `turn` about z (schoenflies); `turn` (spherical); `at` "
    "(translational); `at`, `turn` (free).",
    fields=(
        field("first", value(units.ANGLE), "first angle"),
        field("second", value(units.ANGLE), "second angle"),
        field("angle", value(units.ANGLE), "angle"),
        field("slide", value(units.LENGTH), "displacement along the axis"),
        field("x", value(units.LENGTH), "displacement along x"),
        field("y", value(units.LENGTH), "displacement along y"),
        field("z", value(units.LENGTH), "displacement along z"),
        field("at", ListOf(item=value(units.LENGTH), length=3), "position"),
        field("turn", ListOf(item=CONSTANT_TURN, may_be_empty=True), "successive turns"),
    ),
)

_AXIS_WORDS = Choice(options=("x", "y", "z", "-x", "-y", "-z"))
_AXIS = Either(kinds=(_AXIS_WORDS, ListOf(item=_NUMBER, length=3)))

JOINT = Shape(
    name="joint",
    doc="A joint between two frames, which coincide at zero coordinates. Limits, speed, friction, spring and inertia "
    "are given here for a joint with one degree of freedom, and under `freedoms` for one with several.",
    fields=(
        need("type", Choice(options=JOINT_KINDS), "kind of joint"),
        field(
            "axis",
            _AXIS,
            "axis of a revolute, prismatic or cylindrical joint, in both frames",
        ),
        field(
            "axes",
            ListOf(item=_AXIS, length=2),
            "axes of a universal joint, at right angles: the first fixed to the parent, the second to the child",
        ),
        need("parent", _PLACED, "frame on the one body"),
        need("child", _PLACED, "frame on the other body"),
        field(
            "reference",
            Either(kinds=(_STEERED, REFERENCE)),
            "start value, which also picks the branch; zero if absent",
        ),
        *_FREEDOM_FIELDS,
        field(
            "freedoms",
            MapOf(item=FREEDOM, key="freedom", is_known=True),
            "what acts on each degree of freedom of a joint with several: `first: {friction: ...}`",
        ),
        field(
            "cut",
            Choice(options=("yes", "no")),
            "yes: this joint closes a loop and has no coordinates; the toolkit chooses among the others. no if absent",
        ),
        *JOINT_FIELDS,
    ),
)

TELESCOPE = Shape(
    name="telescope",
    doc="The length of a telescopic rod as a coordinate, which slides: units of m, not rad.",
    fields=(
        need("reference", value(units.LENGTH, "", "positive"), "start value of the length"),
        *_FREEDOM_FIELDS,
    ),
)

LINK = Shape(
    name="link",
    doc="Inertia of a rod or of one part of it. Slender: `center` is a distance along the rod and `inertia` is the "
    "transverse moment about the mass center (a point mass if absent). Full: as for a body, in the rod frame (z from A "
    "to B, y along first_axis x z), with its origin in A (for `upper`: in B). The parts of a telescopic rod have "
    "their sections here, from A (for `upper`: from B); without `mass`, their inertia is that of the section.",
    fields=(
        field("mass", _MASS, "mass; required without a section"),
        field("center", Either(kinds=(_CENTER, ListOf(item=_CENTER, length=3))), "mass center"),
        field(
            "first_moment",
            ListOf(item=value(units.FIRST_MOMENT, "inertia"), length=3),
            "full only: mass times mass center, in place of `center`; then `about: origin` is required",
        ),
        field(
            "inertia",
            Either(kinds=(value(units.INERTIA, "inertia", "not negative"), MOMENTS)),
            "moment of inertia",
        ),
        _ABOUT,
        _UNCHECKED,
        field("length", _PART_LENGTH, "telescopic only, with a section: length of the part"),
        *ROD_BEAM_FIELDS,
    ),
    one_of=("mass", *SECTION_KEYS),
)

TENSION = Shape(
    name="tension",
    doc="Makes a rod a cable, which pulls within bounds and never pushes. With `stiffness` it stretches in a "
    "simulation (docs/cables.md).",
    fields=(
        need("least", value(units.FORCE, "", "not negative"), "least tension"),
        field(
            "greatest",
            value(units.FORCE, "", "positive"),
            "greatest tension; without bound if absent",
        ),
        field("stiffness", value(units.STIFFNESS, "spring", "positive"), "force per stretch"),
        field("damping", value(units.DAMPING, "friction", "not negative"), "force per rate"),
        field(
            "restitution",
            value(units.ONE, "", "not negative"),
            "0 to 1, without stiffness only: fraction of its speed with which a slack cable rebounds when taut",
        ),
    ),
)

DRUM = Shape(
    name="drum",
    doc="A drum or sprocket at A, about the z axis of `from`: the length is that of the free tangent plus radius times "
    "wrap angle, counted from the x axis. The end B must not pass the negative x axis, where the length "
    "jumps by one revolution; `check`, `fk` and `ik` report it.",
    fields=(
        need("radius", value(units.LENGTH, "geometry", "positive"), "radius to the line's middle"),
        need(
            "winds",
            Choice(options=("clockwise", "counterclockwise")),
            "sense about z in which the line runs on the drum towards the point where it leaves",
        ),
    ),
)

ROD = Shape(
    name="rod",
    doc="A two-point link from A to B: of fixed `length`, or `telescopic`.",
    fields=(
        need("from", _PLACED, "joint center A"),
        need("to", _PLACED, "joint center B"),
        field("length", value(units.LENGTH, "geometry", "positive"), "length of a fixed rod"),
        field("telescopic", TELESCOPE, "makes the length a coordinate"),
        need(
            "model",
            Choice(options=("slender", "full", "massless")),
            "slender: no inertia about its own axis; full: inertia and joint axes; massless: only a constraint",
        ),
        field("link", LINK, "inertia of a fixed rod"),
        field("lower", LINK, "inertia of the part at A of a telescopic rod; massless if absent"),
        field("upper", LINK, "inertia of the part at B of a telescopic rod; massless if absent"),
        field(
            "first_axis",
            ListOf(item=_NUMBER, length=3),
            "full only, required: first axis of the universal joint at A, in the frame of `from`",
        ),
        field(
            "spin",
            Choice(options=("universal", "none")),
            "full only, required: whether the universal joint at A forces a spin about the rod's own axis",
        ),
        field("tension", TENSION, "makes the rod a cable"),
        field("drum", DRUM, "massless only: winds the line onto a drum or sprocket"),
        *ROD_FIELDS,
    ),
)


def _terms(ratio: Value) -> MapOf:
    return MapOf(item=ratio, key="coordinate", is_known=True, may_be_empty=False)


_RATIO = value(None, "drive", "not zero")
ACTUATOR = Shape(
    name="actuator",
    doc="A motor with a transmission; its position is the sum of ratio times coordinate, plus the offset. With a "
    "ratio in rad/m (a screw) the motor turns although the joint slides; offset, inertia, friction, force and speed "
    "are those of the motor.",
    fields=(
        field(
            "on",
            Reference(to="coordinate"),
            "joint with one degree of freedom, `joint.freedom`, or telescopic rod",
        ),
        field("ratio", _RATIO, "motor motion per motion of the coordinate; 1 if absent"),
        field(
            "drives", _terms(_RATIO), "in place of `on`: several coordinates, each with its ratio"
        ),
        field(
            "offset",
            value(units.POSITIONS, "drive"),
            "the motor's position where its coordinates are zero; zero if absent",
        ),
        field(
            "inertia", value(units.INERTIAS, "drive", "not negative"), "inertia on the motor's side"
        ),
        field("friction", FRICTION, "losses on the motor's side"),
        field("force", value(units.FORCES, "", "positive"), "largest force or torque"),
        field(
            "rated_force",
            value(units.FORCES, "", "positive"),
            "largest root mean square that it can deliver continuously",
        ),
        field("speed", value(units.SPEEDS, "", "positive"), "largest motor speed"),
        field(
            "copper",
            value(units.COPPERS, "", "positive"),
            "heat of its windings per squared force, R/k^2",
        ),
        field(
            "drive",
            ON_ACTUATOR,
            "motors, gears, backlash and control of this actuator (docs/drives.md)",
        ),
        *ACTUATOR_FIELDS,
    ),
)

#: Largest order of a polynomial, and largest number of points of a table.
MAX_ORDER, MAX_POINTS = 12, 400
CURVE = Shape(
    name="curve",
    doc="A function of a coordinate: `polynomial` or `table`. A table is interpolated by cubics: `smooth` with two "
    "continuous derivatives (natural at both ends, where it goes on as a straight line), `monotone` with one, never "
    "beyond its points.",
    fields=(
        field(
            "polynomial",
            ListOf(item=value(None, "geometry")),
            "coefficients of the powers 0, 1, 2, ... of the coordinate",
        ),
        field(
            "about",
            value(units.POSITIONS, "geometry"),
            "of a polynomial: coordinate from which powers are counted; zero if absent",
        ),
        field(
            "table",
            ListOf(item=ListOf(item=value(None), length=2)),
            "points [coordinate, value], increasing in the coordinate",
        ),
        field(
            "periodic",
            Choice(options=("yes", "no")),
            "of a table: yes: it repeats; its last value is the first one. no if absent: then the coordinate has "
            "limits within the table",
        ),
        field(
            "interpolation",
            Choice(options=("smooth", "monotone")),
            "of a table; smooth if absent",
        ),
    ),
)
COUPLING = Shape(
    name="coupling",
    doc="A gear, belt or cam without losses: the sum of ratio times coordinate is the offset, plus curves of other "
    "coordinates. `{of: {a: 1, b: -2}}` is a = 2 b; one coordinate alone is held.",
    fields=(
        need("of", _terms(_RATIO), "coordinates, each with its ratio"),
        field("offset", value(units.POSITIONS, "geometry"), "the sum; zero if absent"),
        field(
            "curves",
            MapOf(item=CURVE, key="coordinate", is_known=True, may_be_empty=False),
            "coordinates, each with its curve, which are added to the offset",
        ),
    ),
)

#: Zero where motors move a coordinate against each other.
_SHARE = value(None, "drive")
LOSS = Shape(
    name="loss",
    doc="Friction of a combination of coordinates or of motors, as of a belt or cable that several move: its speed is "
    "the sum of ratio times speed. Just one of `of` and `motors`.",
    fields=(
        field("of", _terms(_SHARE), "coordinates, each with its ratio"),
        field("motors", _terms(_SHARE), "actuators, each with its ratio"),
        need("friction", FRICTION, "losses"),
    ),
)

#: Joints that may connect a platform with its own coordinates to the base.
MOTIONS = ("free", "translational", "planar", "schoenflies", "spherical")
PLATFORM = Shape(
    name="platform",
    doc="The body that does the work. With `motion` it gets coordinates of its own, those of a joint named "
    "`platform` from the base.",
    fields=(
        need("body", Reference(to="body"), "the body"),
        field(
            "motion",
            Choice(options=MOTIONS),
            "kind of the joint `platform`; absent: the body is part of the tree",
        ),
        field("tool", TOOL_SHAPE, "frame of the tool on the body; the body's own if absent"),
        field(
            "payload",
            value(units.MASS, "", "positive"),
            "rated payload of the tool",
        ),
        need(
            "independent",
            ListOf(item=Reference(to="coordinate"), may_be_empty=True),
            "independent coordinates: degrees of freedom of joint `platform` (x, wy, ...), and full names of others",
        ),
        field("reference", REFERENCE, "start pose, with `motion` only"),
        field(
            "limits",
            MapOf(item=_LIMITS, key="freedom", is_known=True),
            "limits by degree of freedom, with `motion` only",
        ),
    ),
)

#: A color: red, green and blue from 00 to ff.
COLOR = r"#[0-9a-fA-F]{6}"
_EXTENT = value(units.LENGTH, sign="positive")
ROUND = Shape(
    name="round solid",
    doc="A solid about the z axis of its frame, half of it on each side of the origin.",
    fields=(
        need("radius", _EXTENT, "radius"),
        need("length", _EXTENT, "length; of a capsule without its round ends"),
    ),
)
VISUAL = Shape(
    name="visual",
    doc="A solid that is drawn, with exactly one shape. A body or rod without one is drawn by what its joints show. "
    "Numbers are not parameters: they are taken at the nominal values.",
    fields=(
        need(
            "on",
            Reference(to="body, frame or rod"),
            "what it is fixed to; of a rod: origin in A, z along it",
        ),
        field(
            "at",
            ListOf(item=value(units.LENGTH), length=3),
            "its middle, in the axes of `on`; zero if absent",
        ),
        field(
            "turn",
            ListOf(item=CONSTANT_TURN, may_be_empty=True),
            "successive turns; none if absent",
        ),
        field("box", ListOf(item=_EXTENT, length=3), "edges along x, y and z"),
        field("cylinder", ROUND, "a cylinder"),
        field("capsule", ROUND, "a cylinder with round ends"),
        field("sphere", _EXTENT, "radius"),
        field(
            "mesh",
            Text(is_needed=True),
            "file (STL, OBJ, GLB, PLY, OFF), from the folder of the machine file",
        ),
        field(
            "scale",
            Either(kinds=(value(units.ONE, sign="positive"), ListOf(item=_NUMBER, length=3))),
            "factor from the units of a mesh to m, or one for each axis; 1 if absent",
        ),
        field("colour", Text(), "red, green and blue, as '#d08c2e'"),
    ),
)

OUTPUT = Shape(
    name="output",
    doc="A quantity of a pose with its unit; the expression alone may stand for it.",
    fields=(
        need("value", Text(is_needed=True), "the expression"),
        field("unit", Text(is_needed=True), "unit that the expression must have, such as deg"),
        field("note", Text(), "a remark"),
    ),
)

_PARAMETERS = MapOf(item=value(None), key="parameter")
_ELEMENTS = (
    field("frames", MapOf(item=PLACEMENT), "named placements; they may build on each other"),
    field(
        "bodies", MapOf(item=Either(kinds=(Choice(options=("massless",)), BODY))), "rigid bodies"
    ),
    field("joints", MapOf(item=JOINT), "joints"),
    field("rods", MapOf(item=ROD), "two-point links"),
    field("couplings", MapOf(item=COUPLING), "gears between coordinates"),
    field("actuators", MapOf(item=ACTUATOR), "motors"),
    field("losses", MapOf(item=LOSS), "friction of combinations of coordinates or motors"),
    field("visual", MapOf(item=VISUAL), "solids that are drawn"),
    field(
        "outputs",
        MapOf(item=Either(kinds=(Text(is_needed=True), OUTPUT))),
        "quantities of a pose: expressions of points, angles, distances, coordinates and parameters",
    ),
)

#: Permitted number of repetitions of a leg.
MAX_REPEAT = 64
LEG = Shape(
    name="leg",
    doc="A pattern, written once and repeated: `leg` with `repeat: 3` makes leg1, leg2 and leg3, whose elements are "
    "leg1.arm and so on. In its expressions `i` counts from 1. A name is looked up in the leg first, then at the top.",
    fields=(
        need("name", Name(), "name of the pattern; the number is appended"),
        need("repeat", Whole(least=1, most=MAX_REPEAT), "how many"),
        field(
            "each",
            MapOf(item=ListOf(item=value(None)), key="parameter"),
            "parameters with one value per leg",
        ),
        field("parameters", _PARAMETERS, "parameters of each leg, by one expression or value"),
        *_ELEMENTS,
    ),
)

#: Parts of the source that an imported machine lacks; side files have these keys too.
OMISSIONS = (
    field(
        "omitted_forces",
        ListOf(item=Text(is_needed=True)),
        "forces of the imported description that this machine lacks: results with forces are doubtful",
    ),
    field(
        "unknown_elements",
        ListOf(item=Text(is_needed=True)),
        "unknown elements of the imported description: `check` reports them",
    ),
)

MACHINE = Shape(
    name="machine",
    doc="A machine file.",
    fields=(
        need("format", Choice(options=(MACHINE_FORMAT,)), "format and version"),
        need("name", Name(), "name of the machine"),
        field("description", Text(), "what the machine is, and what was chosen"),
        *OMISSIONS,
        field(
            "unstated_motors",
            ListOf(item=Text(is_needed=True)),
            "coordinates that may have motors, in an imported description without motors: forces are refused; "
            "replaced by `actuators`",
        ),
        need("provenance", PROVENANCE, "status and source of values that state none"),
        need(
            "gravity",
            ListOf(item=value(units.ACCELERATION, "gravity"), length=3),
            "acceleration of gravity in the base frame",
        ),
        field(
            "parameters",
            _PARAMETERS,
            "named values: a literal is an independent parameter, an expression is derived",
        ),
        *_ELEMENTS,
        field("legs", ListOf(item=LEG), "patterns"),
        *MACHINE_FIELDS,
        need("platform", PLATFORM, "the body that does the work"),
    ),
)
