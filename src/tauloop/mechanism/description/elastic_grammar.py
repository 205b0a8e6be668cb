"""The grammar of elastic data in machine files: materials, sections, beams, compliances, damping."""

from __future__ import annotations

from dataclasses import replace

from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    Either,
    Field,
    ListOf,
    MapOf,
    Reference,
    Shape,
    Text,
    Value,
    field,
    need,
    value,
)

GROUP = "elasticity"
_SIZE = value(units.LENGTH, GROUP, "positive")
_MASS = value(units.MASS, GROUP, "not negative")
_POINT = ListOf(item=value(units.LENGTH, "geometry"), length=3)
_YES_NO = Choice(options=("yes", "no"))
_MATERIAL = need(
    "material", Reference(to="material"), "name in `materials` or in Tauloop's table of materials"
)

MATERIAL = Shape(
    name="material",
    doc="A material along the axis of a beam. For an isotropic material give `poisson_ratio` or `shear_modulus`; the "
    "other follows from it. A fiber composite needs both.",
    fields=(
        need("young_modulus", value(units.PRESSURE, GROUP, "positive"), "Young's modulus E"),
        field("shear_modulus", value(units.PRESSURE, GROUP, "positive"), "shear modulus G"),
        field(
            "poisson_ratio", value(units.ONE, GROUP, "not negative"), "Poisson's ratio, 0 to 0.5"
        ),
        need("density", value(units.DENSITY, GROUP, "positive"), "density"),
        field("expansion", value(units.EXPANSION, GROUP), "coefficient of thermal expansion"),
        field(
            "strength",
            value(units.PRESSURE, GROUP, "positive"),
            "stress at which the material yields, or breaks if it does not yield",
        ),
    ),
)
MATERIALS = field(
    "materials", MapOf(item=MATERIAL), "materials in addition to those of Tauloop's table"
)

_TUBE = Shape(
    name="tube",
    doc="A round tube.",
    fields=(
        need("outer", _SIZE, "outer diameter"),
        need("wall", _SIZE, "wall thickness"),
        _MATERIAL,
    ),
)
_BAR = Shape(
    name="round bar",
    doc="A solid round bar.",
    fields=(need("diameter", _SIZE, "diameter"), _MATERIAL),
)
_WIDTH, _HEIGHT = (
    need("width", _SIZE, "width along the section's y axis"),
    need("height", _SIZE, "height along the section's z axis"),
)
_RECTANGLE = Shape(
    name="rectangle", doc="A solid rectangular bar.", fields=(_WIDTH, _HEIGHT, _MATERIAL)
)
_BOX = Shape(
    name="box section",
    doc="A hollow rectangular bar with sharp corners.",
    fields=(_WIDTH, _HEIGHT, need("wall", _SIZE, "wall thickness"), _MATERIAL),
)
_BENDING = value(units.BENDING_STIFFNESS, GROUP, "positive")
COMPOSITE = Shape(
    name="composite section",
    doc="A cross section given by its stiffnesses and mass: `EI` for all directions, or `EIy` and `EIz`.",
    fields=(
        need("EA", value(units.FORCE, GROUP, "positive"), "axial stiffness"),
        field("EI", _BENDING, "bending stiffness"),
        field("EIy", _BENDING, "bending stiffness about the section's y axis"),
        field("EIz", _BENDING, "bending stiffness about the section's z axis"),
        need("GJ", _BENDING, "torsional stiffness"),
        need("mass_per_length", value(units.LINE_DENSITY, GROUP, "positive"), "mass per length"),
        field("expansion", value(units.EXPANSION, GROUP), "coefficient of thermal expansion"),
    ),
)
_SECTION_FIELDS = (
    field("tube", _TUBE, "round tube"),
    field("round", _BAR, "solid round bar"),
    field("rectangle", _RECTANGLE, "solid rectangular bar"),
    field("box", _BOX, "hollow rectangular bar"),
    field("section", COMPOSITE, "section given by its stiffnesses"),
)
SECTION = Shape(name="section", doc="A cross section: exactly one key.", fields=_SECTION_FIELDS)
TAPER = Shape(
    name="taper",
    doc="Two sections of the same kind and material; the dimensions change linearly from one to the other.",
    fields=(need("start", SECTION, "section at the start"), need("end", SECTION, "at the end")),
)
_TAPER_FIELD = field("taper", TAPER, "section whose dimensions change along the length")
SEGMENT = Shape(
    name="segment",
    doc="One length of a stepped beam, with one section or taper.",
    fields=(
        field(
            "length",
            _SIZE,
            "its length; exactly one segment has no length and fills the rest of the beam",
        ),
        *_SECTION_FIELDS,
        _TAPER_FIELD,
    ),
)
FITTINGS = Shape(
    name="fittings",
    doc="Point masses at both ends of a beam, such as joint heads.",
    fields=(field("start", _MASS, "mass at the start"), field("end", _MASS, "mass at the end")),
)
_DISTRIBUTED = field(
    "distributed",
    _YES_NO,
    "yes: the part of the stated mass that exceeds the section's mass is spread along the length. no if absent",
)
#: Keys of which a beam has exactly one.
SECTION_KEYS = (*(key.name for key in _SECTION_FIELDS), "taper", "segments")
BEAM_FIELDS = (
    *_SECTION_FIELDS,
    _TAPER_FIELD,
    field("segments", ListOf(item=SEGMENT), "stepped beam, from start to end"),
    field("fittings", FITTINGS, "masses at the ends, part of the stated mass"),
)
ROD_BEAM_FIELDS: tuple[Field, ...] = (*BEAM_FIELDS, _DISTRIBUTED)
ROD_BEAM_KEYS = tuple(key.name for key in ROD_BEAM_FIELDS)
_PLACE = Either(kinds=(Reference(to="joint, rod or frame"), _POINT))
BODY_BEAM = Shape(
    name="beam",
    doc="An elastic beam between two points of a body, with exactly one section, taper or list of segments.",
    fields=(
        need("from", _PLACE, "start: a joint, rod or frame on the body, or a point [x, y, z]"),
        need("to", _PLACE, "end, given like `from`"),
        field(
            "z_axis",
            ListOf(item=value(units.ONE), length=3),
            "direction of the section's z axis in body coordinates; required unless the section is round",
        ),
        *BEAM_FIELDS,
    ),
)
BODY_FIELDS = (
    field("beams", MapOf(item=BODY_BEAM, may_be_empty=False), "elastic beams of the body"),
    _DISTRIBUTED,
)


def _directions(name: str, doc: str, linear: Value, angular: Value) -> Shape:
    return Shape(
        name=name,
        doc=doc,
        fields=(
            *(field(axis, linear, f"along {axis}") for axis in "xyz"),
            *(field(f"r{axis}", angular, f"about {axis}") for axis in "xyz"),
        ),
    )


_POSITIVE = value(units.STIFFNESS, GROUP, "positive")
_NOT_NEGATIVE = value(units.COMPLIANCE, GROUP, "not negative")
_MATRIX = ListOf(item=ListOf(item=value(None, GROUP), length=6), length=6)
STIFFNESS = _directions(
    "joint stiffness",
    "Stiffness of the bearings of a joint by direction; directions that are not given are rigid.",
    _POSITIVE,
    replace(_POSITIVE, linear=units.ANGULAR_STIFFNESS),
)
COMPLIANCE = _directions(
    "joint compliance",
    "Compliance of the bearings of a joint by direction; directions that are not given are rigid.",
    _NOT_NEGATIVE,
    replace(_NOT_NEGATIVE, linear=units.ANGULAR_COMPLIANCE),
)
JOINT_FIELDS = (
    field(
        "stiffness",
        Either(kinds=(_MATRIX, STIFFNESS)),
        "elastic bearings or carriage, by direction or as a matrix (x, y, z, rx, ry, rz), in the axes of the "
        "parent's frame, at the origin of the child's",
    ),
    field(
        "compliance",
        Either(kinds=(_MATRIX, COMPLIANCE)),
        "the inverse of `stiffness`, instead of it",
    ),
)
CONTACT = Shape(
    name="contact stiffness",
    doc="Stiffness of the ball joints at the ends of a rod, along the rod and in series with it.",
    fields=(
        field("start", _POSITIVE, "at A; rigid if absent"),
        field("end", _POSITIVE, "at B; rigid if absent"),
    ),
)
ROD_FIELDS = (
    *ROD_BEAM_FIELDS,
    field("contact", CONTACT, "stiffness of its ball joints"),
)
ACTUATOR_FIELDS = (
    field(
        "stiffness",
        value(units.STIFFNESSES, GROUP, "positive"),
        "stiffness seen at the actuator's position with the motor locked; if absent, the stiffness "
        "of the `drive`, if there is one",
    ),
)

STRUCTURE = Shape(
    name="structure",
    doc="A frame or body as a reduced finite-element model: 6 rows for each node (x, y, z, rx, ry, rz in body axes, "
    "SI units), then rows of its internal modes.",
    fields=(
        need("on", Reference(to="body"), "modeled body; `base` for the machine's frame"),
        need(
            "nodes",
            ListOf(item=_PLACE),
            "interface nodes on the body, in the order of the matrices",
        ),
        field(
            "file",
            Text(is_needed=True),
            "NumPy file (.npz) with the arrays `K` and, for vibration, `M`",
        ),
        field("stiffness", Text(is_needed=True), "instead of `file`: CSV file with the matrix K"),
        field("mass", Text(is_needed=True), "with `stiffness`: CSV file with the matrix M"),
    ),
)
DAMPING = Shape(
    name="damping",
    doc="Damping of the machine's vibrations: exactly one key.",
    fields=(
        field("ratio", value(units.ONE, GROUP, "not negative"), "damping ratio of every mode"),
        field(
            "ratios",
            ListOf(item=value(units.ONE, GROUP, "not negative")),
            "damping ratios of the first modes, in ascending order of frequency; the last holds for all higher ones",
        ),
        field(
            "loss_factor", value(units.ONE, GROUP, "not negative"), "loss factor of all stiffnesses"
        ),
    ),
)
MACHINE_FIELDS = (
    MATERIALS,
    field("structures", MapOf(item=STRUCTURE), "frame and bodies as reduced finite-element models"),
    field("damping", DAMPING, "damping of vibrations"),
)
