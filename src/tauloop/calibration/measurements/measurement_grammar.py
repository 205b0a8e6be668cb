"""The grammar of measurement files: keys and values, for the reader and its messages."""

from __future__ import annotations

from tauloop.calibration.measurements.instruments import INSTRUMENTS
from tauloop.calibration.problem.unknowns import DIMENSIONS
from tauloop.mechanism.description.cursor import (
    Choice,
    Either,
    ListOf,
    MapOf,
    Shape,
    Text,
    Value,
    field,
    need,
)
from tauloop.mechanism.description.units import ANGLE, LENGTH, ONE, TEMPERATURE

MEASUREMENTS_FORMAT = "tauloop-measurements/1"
#: Names of the kinds of measurements in files and on the command line.
INSTRUMENT_KINDS = tuple(INSTRUMENTS)
_MEASURED_LENGTH = Value(linear=LENGTH)
_POINT = ListOf(item=_MEASURED_LENGTH, length=3)
_DIRECTION = ListOf(item=Value(linear=ONE), length=3)
_TEXT = Text(is_needed=True)
_TEXTS = Either(kinds=(_TEXT, ListOf(item=_TEXT)))
_ANY = Value(linear=None, among=tuple(DIMENSIONS.values()))


def _columns(key: str) -> MapOf:
    """Return the grammar of a map from known keys to columns or units."""
    return MapOf(item=_TEXT, key=key, is_known=True)


PLANE = Shape(
    name="plane",
    doc="A plane in the base frame.",
    fields=(
        field("point", _POINT, "point on it"),
        field("normal", _DIRECTION, "its normal; z if absent"),
    ),
)
SPHERE = Shape(
    name="sphere",
    doc="A sphere in the base frame.",
    fields=(field("center", _POINT, "its center"), need("radius", _MEASURED_LENGTH, "its radius")),
)
CYLINDER = Shape(
    name="cylinder",
    doc="A cylinder in the base frame.",
    fields=(
        field("point", _POINT, "point on its axis"),
        field("axis", _DIRECTION, "direction of its axis; z if absent"),
        need("radius", _MEASURED_LENGTH, "its radius"),
    ),
)
SURFACE = Shape(
    name="surface",
    doc="The surface that the tool touches: exactly one key.",
    fields=tuple(field(shape.name, shape, shape.doc) for shape in (PLANE, SPHERE, CYLINDER)),
)
INSTRUMENT = Shape(
    name="instrument",
    doc="The instrument of a series.",
    fields=(
        need("kind", Choice(options=INSTRUMENT_KINDS), "kind of measurement"),
        field("name", _TEXT, "its name; its kind if absent"),
        field("components", _TEXT, "for a position: letters of the measured axes; xyz if absent"),
        field("center", _POINT, "for a distance: fixed end of the bar"),
        field(
            "direction",
            _DIRECTION,
            "of a distance between poses: direction of the measurement; their line if absent",
        ),
        field(
            "length",
            _MEASURED_LENGTH,
            "of a distance between poses: the reading, if the table does not contain it",
        ),
        field("target", _POINT, "point on the tool; its origin if absent"),
        field(
            "coordinate",
            _TEXT,
            "of a joint sensor: the coordinate, or an output of the machine file",
        ),
        field(
            "unit",
            _TEXT,
            "of a joint sensor: SI unit of the coordinate (1 for a plain number); rad if absent",
        ),
        field("surface", SURFACE, "of a contact; the plane z = 0 if absent"),
    ),
)
SERIES = Shape(
    name="series",
    doc="A table of measurements and the instrument that made them.",
    fields=(
        need("path", _TEXT, "the table"),
        field("header", _TEXTS, "names of the columns, if the table does not have a header"),
        field(
            "encoders",
            _columns("actuator"),
            "column of each actuator; columns with standard names if absent",
        ),
        field(
            "readings",
            _columns("column"),
            "column of each reading; columns with standard names if absent",
        ),
        field(
            "reading_number",
            _TEXT,
            "for readings of several poses: column with equal numbers for the poses of one reading",
        ),
        field(
            "loads",
            _columns("component"),
            "column of each component (fx ... mz) of the wrench at the tool; columns with standard names if absent",
        ),
        field(
            "temperatures",
            _columns("part"),
            "column of the temperature of each part; columns with standard names if absent",
        ),
        field(
            "temperature_noise",
            Value(linear=TEMPERATURE),
            "standard deviation of the temperatures; zero if absent",
        ),
        field("units", _columns("column"), "units by group or column"),
        need("noise", Either(kinds=(_ANY, ListOf(item=_ANY))), "standard deviation of each error"),
        *INSTRUMENT.fields,
    ),
)
TOLERANCES = Shape(
    name="tolerances",
    doc="Usual sizes of corrections.",
    fields=(
        field("length", _MEASURED_LENGTH, "of lengths"),
        field("angle", Value(linear=ANGLE), "of angles"),
        field("ratio", Value(linear=ONE), "of ratios"),
        field("temperature", Value(linear=TEMPERATURE), "of offsets of thermometers"),
        field(
            "elastic",
            Value(linear=ONE),
            "of parameters of stiffness and expansion, as a fraction of their value",
        ),
        field("named", MapOf(item=_ANY, key="unknown", is_known=True), "of single unknowns"),
        field("priors", _TEXTS, "unknowns with a Gaussian prior at their nominal values"),
    ),
)
MEASUREMENTS = Shape(
    name="measurement file",
    doc="Measurements of a machine.",
    fields=(
        need("format", Choice(options=(MEASUREMENTS_FORMAT,)), "format and version"),
        field("description", Text(), "description of the measurements"),
        need("series", ListOf(item=SERIES), "the measurements"),
        field("parameters", _TEXTS, "unknowns, by name or pattern"),
        field("tolerances", TOLERANCES, "usual sizes of corrections"),
        field(
            "encoder_noise",
            Value(linear=None, among=(LENGTH, ANGLE)),
            "standard deviation of the encoders",
        ),
        field("bounds", MapOf(item=_TEXT, key="unknown", is_known=True), "LOW to HIGH of unknowns"),
    ),
)
