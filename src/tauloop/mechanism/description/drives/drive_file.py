"""Drive-line files: from text to a frozen `DriveLine`, with all problems reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    MapOf,
    Name,
    Reference,
    Shape,
    Text,
    field,
    need,
    value,
)
from tauloop.mechanism.description.drives.drive_grammar import SECTIONS
from tauloop.mechanism.description.drives.drive_reader import DriveReader
from tauloop.mechanism.description.grammar import PROVENANCE
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes
from tauloop.mechanism.drive_line import DriveLine, Performance

#: First line of every drive-line file.
DRIVE_FORMAT = "tauloop-drive/1"
PERFORMANCE = Shape(
    name="performance",
    doc="The motion that the criteria evaluate.",
    fields=(
        need("of", Reference(to="inertia"), "inertia whose position is evaluated"),
        need(
            "band",
            value(units.POSITIONS, "drive", "positive"),
            "half width of the settling band",
        ),
    ),
)
DRIVE = Shape(
    name="drive line",
    doc="A drive-line file.",
    fields=(
        need("format", Choice(options=(DRIVE_FORMAT,)), "format and version"),
        need("name", Name(), "name of the drive line"),
        field("description", Text(), "what the drive line is, and which values were chosen"),
        need("provenance", PROVENANCE, "status and source of all values without their own"),
        field(
            "parameters",
            MapOf(item=value(None), key="parameter"),
            "named values: a literal is an independent parameter, an expression is derived",
        ),
        *SECTIONS,
        need("performance", PERFORMANCE, "motion that the criteria evaluate"),
    ),
)


def read_drive(
    text: str, file: str = "<text>", values: Mapping[str, float] = MappingProxyType({})
) -> DriveLine:
    """Return the drive line that a text describes (docs/drives.md).

    Args:
        text: the description.
        file: its name, for messages.
        values: parameter values, SI, by name, in place of those in the text.

    Raises:
        DescriptionError: every problem, each with line, key path and remedy.
    """
    root = document(parse_nodes(text, file), file, DRIVE)
    root.collector.raise_any()
    table = ValueReader(root.get("provenance"))
    for name, cursor in root.entries_of("parameters"):
        table.define(name, cursor)
    table.resolve_all(values)
    reader = DriveReader(root, table)
    drive_line = reader.line(name=root.word("name") or "")
    performance = reader.required_cursor(root, "performance")
    output = reader.refer(
        performance, "of", {inertia.name: inertia for inertia in drive_line.inertias}, "inertia"
    )
    band = reader.need(performance, "band", reader.is_rotary(output))
    root.collector.raise_any()
    return replace(
        drive_line,
        description=(root.word("description") or "").strip(),
        parameters=table.table(),
        performance=Performance(of=output, band=band),
        file=file,
    )
