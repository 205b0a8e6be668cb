"""The grammar of machine files.

The reader, the checks, the JSON Schema and the reference page are derived from it. The reader also
checks conditions between fields, such as that a rod is either fixed or telescopic. The descriptions
of the fields state these conditions.
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
_COORDINATE = value(units.POSITIONS)
_NUMBER = value(units.ONE)

QUALIFIED = Shape(
    name="qualified value",
    doc="A value with its origin and bounds. A literal given in this form is an independent "
    "parameter even if it is zero.",
    fields=(
        need("value", Value(linear=None, is_plain=True), "number, literal or expression"),
        field(
            "status",
            Choice(options=STATUSES),
            "how the value was obtained; from `provenance` if absent",
        ),
        field("source", Text(), "where the value comes from; from `provenance` if absent"),
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
    doc="Status and source of every value that does not state its own.",
    fields=(
        need("status", Choice(options=STATUSES), "how the values were obtained"),
        need("source", Text(), "where they come from"),
    ),
)

TURN = Shape(
    name="turn",
    doc="A rotation about one axis of the frame that results from the previous rotations: exactly one key.",
    fields=tuple(field(axis, _ANGLE, f"angle about {axis}") for axis in "xyz"),
)
_TURNS = ListOf(item=TURN, may_be_empty=True)

PLACEMENT = Shape(
    name="placement",
    doc="A frame fixed to a body: first translated, then rotated. A bare name stands for that body or frame.",
    fields=(
        need("on", Reference(to="body or frame"), "body or frame that it is fixed to"),
        field("at", _POSITION, "origin in the axes of `on`; zero if absent"),
        field("turn", _TURNS, "successive rotations; none if absent"),
    ),
)
_PLACED = Either(kinds=(Reference(to="body or frame"), PLACEMENT))

TOOL_SHAPE = Shape(
    name="pose",
    doc="A frame without `on`, because its body is known.",
    fields=(
        field("at", _POSITION, "origin; zero if absent"),
        field("turn", _TURNS, "successive rotations; none if absent"),
    ),
)

MOMENTS = Shape(
    name="inertia",
    doc="The symmetric inertia matrix; absent entries are zero. Products are the matrix elements, I_xy = -∫ x y dm.",
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
    "yes: the values may be impossible for a rigid body (planar or reduced models, identified values). no if absent",
)
BODY = Shape(
    name="body",
    doc="A rigid body. The word `massless`, or only `mass: 0`, stands for a body that merely connects others. Without "
    "`center` and `inertia` it is a point mass at the body's origin. Without `mass`, its inertia is that of "
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
            "mass times mass center, instead of `center`; then `about: origin` is required",
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
            "amount by which the viscous coefficient is larger for forward and smaller for "
            "backward motion; at most `viscous`",
        ),
        field(
            "coulomb_asymmetry",
            value(units.FORCES, "friction"),
            "amount by which Coulomb friction is larger for forward and smaller for backward motion; at most `coulomb`",
        ),
        field(
            "static",
            value(units.FORCES, "friction", "not negative"),
            "friction at the onset of motion, at least `coulomb`; requires `stribeck`",
        ),
        field(
            "stribeck",
            value(units.SPEEDS, "friction", "positive"),
            "Stribeck speed; requires `static`",
        ),
    ),
)

SPRING = Shape(
    name="spring",
    doc="A spring on one degree of freedom q, with the restoring force `stiffness * (q - rest)`.",
    fields=(
        need("stiffness", value(units.STIFFNESSES, "spring"), "force per displacement"),
        need("rest", value(units.POSITIONS, "spring"), "coordinate at which the force is zero"),
    ),
)

_RANGE = ListOf(item=_COORDINATE, length=2)
LIMITS = Shape(
    name="limits",
    doc="A range with its kind: exactly one key. A bare `[lower, upper]` means stops. Searches (random states, "
    "workspace, excitation, poses to measure) stay within both kinds. A given pose or motion is only checked against "
    "stops.",
    fields=(
        field("stop", _RANGE, "[lower, upper] that the machine cannot leave"),
        field(
            "drawing",
            _RANGE,
            "[lower, upper] used for drawing and sampling; motions may leave it",
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
        "inertia that moves only with this degree of freedom, such as a rotor, on the joint's side",
    ),
)
FREEDOM = Shape(
    name="freedom", doc="What acts on one degree of freedom of a joint.", fields=_FREEDOM_FIELDS
)

CONSTANT_TURN = Shape(
    name="constant turn",
    doc="A rotation that is not a parameter: exactly one key.",
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
        field("turn", ListOf(item=CONSTANT_TURN, may_be_empty=True), "successive rotations"),
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
            "axis of a revolute, prismatic or cylindrical joint, in both frames: a letter, or a "
            "vector of three numbers",
        ),
        field(
            "axes",
            ListOf(item=_AXIS, length=2),
            "perpendicular axes of a universal joint: the first fixed to the parent, the second to the child",
        ),
        need("parent", _PLACED, "frame on the parent body"),
        need("child", _PLACED, "frame on the child body"),
        field(
            "reference",
            Either(kinds=(_COORDINATE, REFERENCE)),
            "start value, which also selects the assembly mode; zero if absent",
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
            "yes: this joint closes a loop and has no coordinates. Tauloop chooses the other cut joints. no if absent",
        ),
        *JOINT_FIELDS,
    ),
)

TELESCOPE = Shape(
    name="telescope",
    doc="The length of a telescopic rod as a linear coordinate (m).",
    fields=(
        need("reference", value(units.LENGTH, "", "positive"), "start value of the length"),
        *_FREEDOM_FIELDS,
    ),
)

LINK = Shape(
    name="link",
    doc="Inertia of a rod or of one part of it. Slender: `center` is a distance along the rod and `inertia` is the "
    "transverse moment about the mass center (a point mass if absent). Full: as for a body, in the rod frame (z from A "
    "to B, y along first_axis x z) with its origin at A (for `upper`: at B). The parts of a telescopic rod have "
    "their sections here, from A (for `upper`: from B). Without `mass`, their inertia is that of the section.",
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
    doc="Makes a rod a cable, which pulls within bounds and never pushes. In a simulation, a cable with `stiffness` "
    "pulls with max(0, stiffness x + damping x'), where x is its stretch. A cable without it does not stretch "
    "(docs/cables.md).",
    fields=(
        need("least", value(units.FORCE, "", "not negative"), "least tension"),
        field(
            "greatest",
            value(units.FORCE, "", "positive"),
            "greatest tension; unbounded if absent",
        ),
        field("stiffness", value(units.STIFFNESS, "spring", "positive"), "force per stretch"),
        field("damping", value(units.DAMPING, "friction", "not negative"), "force per rate"),
        field(
            "restitution",
            value(units.ONE, "", "not negative"),
            "only without `stiffness`, 0 to 1: fraction of the speed with which a slack cable "
            "rebounds when it becomes taut",
        ),
    ),
)

DRUM = Shape(
    name="drum",
    doc="A drum or sprocket at A, about the z axis of `from`. The rod length is the free tangent length plus radius "
    "times wrap angle, measured from the x axis. The end B must not cross the negative x axis, where the length "
    "jumps by one circumference; `check`, `fk` and `ik` report it.",
    fields=(
        need(
            "radius",
            value(units.LENGTH, "geometry", "positive"),
            "radius to the center line of the cable or chain",
        ),
        need(
            "winds",
            Choice(options=("clockwise", "counterclockwise")),
            "direction about z in which the line runs around the drum, from its fixed end to the point where it leaves",
        ),
    ),
)

ROD = Shape(
    name="rod",
    doc="A two-point link from A to B with a fixed `length`, or `telescopic`.",
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
            "full only, required: `universal` if the universal joint at A makes the rod spin about "
            "its own axis, otherwise `none`",
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
    doc="A motor with a transmission. Its position is the sum of ratio times coordinate, plus the offset. With a "
    "ratio in rad/m (a screw) the motor rotates while the joint slides. Offset, inertia, friction, force and speed "
    "refer to the motor.",
    fields=(
        field(
            "on",
            Reference(to="coordinate"),
            "joint with one degree of freedom, `joint.freedom`, or telescopic rod",
        ),
        field(
            "ratio", _RATIO, "motor displacement per displacement of the coordinate; 1 if absent"
        ),
        field(
            "drives", _terms(_RATIO), "instead of `on`: several coordinates, each with its ratio"
        ),
        field(
            "offset",
            value(units.POSITIONS, "drive"),
            "the motor's position when its coordinates are zero; zero if absent",
        ),
        field(
            "inertia", value(units.INERTIAS, "drive", "not negative"), "inertia on the motor's side"
        ),
        field("friction", FRICTION, "losses on the motor's side"),
        field("force", value(units.FORCES, "", "positive"), "largest force or torque"),
        field(
            "rated_force",
            value(units.FORCES, "", "positive"),
            "largest RMS force or torque that it can deliver continuously",
        ),
        field("speed", value(units.SPEEDS, "", "positive"), "largest motor speed"),
        field(
            "copper_loss",
            value(units.WINDING_LOSSES, "", "positive"),
            "copper-loss coefficient R/k^2: winding losses per squared force",
        ),
        field(
            "drive",
            ON_ACTUATOR,
            "motors, gears, backlash and control of this actuator (docs/drives.md)",
        ),
        *ACTUATOR_FIELDS,
    ),
)

#: Largest order of a polynomial, and maximum number of points of a table.
MAX_ORDER, MAX_POINTS = 12, 400
CURVE = Shape(
    name="curve",
    doc="A function of a coordinate: `polynomial` or `table`. A table is interpolated by cubics. `smooth` has two "
    "continuous derivatives; it is natural at both ends and continues there as a straight line. `monotone` has one "
    "continuous derivative and never exceeds the values of its points.",
    fields=(
        field(
            "polynomial",
            ListOf(item=value(None, "geometry")),
            "coefficients of the powers 0, 1, 2, ... of the coordinate",
        ),
        field(
            "about",
            value(units.POSITIONS, "geometry"),
            "of a polynomial: value that is subtracted from the coordinate; zero if absent",
        ),
        field(
            "table",
            ListOf(item=ListOf(item=value(None), length=2)),
            "points [coordinate, value] with increasing coordinate",
        ),
        field(
            "periodic",
            Choice(options=("yes", "no")),
            "of a table: yes if it repeats; then its last value equals the first. no if absent; then the coordinate "
            "needs limits within the table",
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
    doc="A gear, belt or cam without losses: the sum of ratio times coordinate equals the offset plus curves of other "
    "coordinates. `{of: {a: 1, b: -2}}` means a = 2 b. A single coordinate is held constant.",
    fields=(
        need("of", _terms(_RATIO), "coordinates, each with its ratio"),
        field("offset", value(units.POSITIONS, "geometry"), "the sum; zero if absent"),
        field(
            "curves",
            MapOf(item=CURVE, key="coordinate", is_known=True, may_be_empty=False),
            "coordinates, each with its curve; the curves are added to the offset",
        ),
    ),
)

#: Ratio in a loss. It may be zero: two motors can cancel in a coordinate.
_SHARE = value(None, "drive")
LOSS = Shape(
    name="loss",
    doc="Friction of a combination of coordinates or motors, such as a belt that several motors move. Its speed is "
    "the sum of ratio times speed. Exactly one of `of` and `motors`.",
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
    doc="The moving platform (end effector). With `motion` it gets its own coordinates: those of a joint named "
    "`platform` between base and body.",
    fields=(
        need("body", Reference(to="body"), "the body"),
        field(
            "motion",
            Choice(options=MOTIONS),
            "kind of the joint `platform`; if absent, the body is moved by its other joints",
        ),
        field("tool", TOOL_SHAPE, "frame of the tool on the body; the body's frame if absent"),
        field(
            "payload",
            value(units.MASS, "", "positive"),
            "rated payload",
        ),
        need(
            "independent",
            ListOf(item=Reference(to="coordinate"), may_be_empty=True),
            "independent coordinates: degrees of freedom of joint `platform` (x, wy, ...), or full "
            "names of other coordinates",
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
    doc="A solid of revolution about the z axis of its frame, centered on the origin.",
    fields=(
        need("radius", _EXTENT, "radius"),
        need("length", _EXTENT, "length; for a capsule without its round ends"),
    ),
)
VISUAL = Shape(
    name="visual",
    doc="A solid that is drawn, with exactly one shape. A body or rod without solids is drawn from the positions of "
    "its joints. The numbers are not parameters; expressions are evaluated at nominal values.",
    fields=(
        need(
            "on",
            Reference(to="body, frame or rod"),
            "body, frame or rod that it is fixed to; a rod's frame has its origin at A and z along the rod",
        ),
        field(
            "at",
            ListOf(item=value(units.LENGTH), length=3),
            "its center in the axes of `on`; zero if absent",
        ),
        field(
            "turn",
            ListOf(item=CONSTANT_TURN, may_be_empty=True),
            "successive rotations; none if absent",
        ),
        field("box", ListOf(item=_EXTENT, length=3), "edges along x, y and z"),
        field("cylinder", ROUND, "a cylinder"),
        field("capsule", ROUND, "a cylinder with round ends"),
        field("sphere", _EXTENT, "radius"),
        field(
            "mesh",
            Text(is_needed=True),
            "file (STL, OBJ, GLB, PLY, OFF), relative to the machine file",
        ),
        field(
            "scale",
            Either(kinds=(value(units.ONE, sign="positive"), ListOf(item=_NUMBER, length=3))),
            "factor from the mesh's unit to m, or three factors for x, y and z; 1 if absent",
        ),
        field("color", Text(), "red, green and blue, such as '#d08c2e'"),
    ),
)

OUTPUT = Shape(
    name="output",
    doc="A quantity of a pose with its unit. A bare expression may be written instead.",
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
    "leg1.arm and so on. In its expressions `i` is the leg's number, from 1. A name is looked up in the leg first, "
    "then at the top level.",
    fields=(
        need("name", Name(), "name of the pattern; the number is appended"),
        need("repeat", Whole(least=1, most=MAX_REPEAT), "number of legs"),
        field(
            "each",
            MapOf(item=ListOf(item=value(None)), key="parameter"),
            "parameters with one value per leg",
        ),
        field(
            "parameters",
            _PARAMETERS,
            "parameters of each leg, given by one expression or value for all legs",
        ),
        *_ELEMENTS,
    ),
)

#: Elements of the source file that an imported machine lacks; side files have these keys too.
OMISSIONS = (
    field(
        "omitted_forces",
        ListOf(item=Text(is_needed=True)),
        "forces of the imported description that this machine lacks; results that need forces are doubtful",
    ),
    field(
        "unknown_elements",
        ListOf(item=Text(is_needed=True)),
        "unknown elements of the imported description; `check` reports them",
    ),
)

MACHINE = Shape(
    name="machine",
    doc="A machine file.",
    fields=(
        need("format", Choice(options=(MACHINE_FORMAT,)), "format and version"),
        need("name", Name(), "name of the machine"),
        field("description", Text(), "what the machine is, and which values were chosen"),
        *OMISSIONS,
        field(
            "unstated_motors",
            ListOf(item=Text(is_needed=True)),
            "coordinates that may have motors, if the imported file states no motors. `check` "
            "reports them, and forces cannot be computed until `actuators` replaces this key",
        ),
        need("provenance", PROVENANCE, "status and source of all values without their own"),
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
        field("legs", ListOf(item=LEG), "patterns of repeated elements"),
        *MACHINE_FIELDS,
        need("platform", PLATFORM, "the moving platform (end effector)"),
    ),
)
