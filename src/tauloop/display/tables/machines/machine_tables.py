"""Tables of a machine: its description, and whether it works as described."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import table
from tauloop.equations.assembly.assembly import spread
from tauloop.equations.ports import coordinate_units
from tauloop.kinematics.description import Description, drive_line_properties
from tauloop.kinematics.inspection import Inspection, import_notes
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model


def description_tables(described: Description) -> Iterator[Printed]:
    """Yield description, summary, coordinates, drive lines, and requested parameters and blocks."""
    model = described.model
    mechanism = model.mechanism
    yield Paragraph(text=mechanism.name, tone="strong")
    yield from reflowed(mechanism.description).splitlines()
    yield ""
    yield _summary(described.inspection)
    yield _coordinates(model)
    yield from _masses(described.inspection)
    if any(actuator.drive for actuator in mechanism.actuators):
        yield _drive_lines(mechanism)
    if described.options.table:
        yield _parameters(mechanism)
    if described.options.blocks:
        yield _blocks(model)
        yield _linear_blocks(described)


def check_tables(inspection: Inspection, *, doubtful: bool = False) -> Iterator[Printed]:
    """Yield notes of an importer, the summary, the masses, and the verdict.

    Args:
        inspection: result of the check.
        doubtful: whether there are other reasons for doubt, so that the verdict "ok" is omitted.
    """
    if import_notes(inspection.model.mechanism):
        yield from reflowed(inspection.model.mechanism.description).splitlines()
    yield _summary(inspection)
    yield from _masses(inspection)
    if not inspection.is_usable:
        yield Paragraph(text="not usable as described", tone="failed")
    elif not doubtful:
        yield Paragraph(text="ok", tone="passed")


def reflowed(text: str) -> str:
    """Return a description with each paragraph on one line, except list items after a dash."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return re.sub(r"(?<=[^\n])\n(?=[^\n-])", " ", "\n".join(lines))


def _summary(inspection: Inspection) -> Table:
    model = inspection.model
    assembly, names = model.assembly, model.topology.velocity_names
    rows: list[tuple[str, str]] = []
    loop_names = assembly.loops.names
    rows.append(("mobility", str(assembly.mobility)))
    rows.append(("independent", ", ".join(names[i] for i in assembly.independent)))
    rows.append(("actuators", ", ".join(a.name for a in model.mechanism.actuators) or "none"))
    if inspection.undriven:
        rows.append(("passive", ", ".join(map(str, inspection.undriven))))
    if assembly.is_redundant:
        rows.append(("redundant actuators", ", ".join(assembly.spare_actuators)))
    rows.append(("loop equations", f"{len(loop_names)}, rank {assembly.rank}"))
    if assembly.dropped:
        rows.append(
            ("redundant", "\n".join(_by_element([loop_names[i] for i in assembly.dropped])))
        )
    if assembly.frozen:
        rows.append(("constant", ", ".join(names[i] for i in assembly.frozen)))
    rows.append(("loop residual", f"{assembly.residual:.1e} m at the reference pose"))
    count = len(assembly.states)
    if assembly.substitute is not None:
        rows.append(("pose of the file", f"singular, {assembly.substitute.text}"))
    if loop_names:
        rows.append(("loop condition", _conditions(assembly.platform_condition, count)))
    rows.append(("actuator condition", _conditions(assembly.actuator_condition, count)))
    if margin := inspection.tension_margin:
        rows.append(("tension margin", margin))
    for problem in inspection.problems:
        rows.append(("problem", str(problem)))
    for note in inspection.notes:
        rows.append(("note", str(note)))
    return table("", "", "", rows=rows)


def _masses(inspection: Inspection) -> Iterator[Table]:
    """Yield a table of the masses of links with sections, and of their sections and fittings."""
    rows = inspection.mass_rows
    if rows is None:
        return
    heads = ("mass", "section", "fittings")
    columns = [(f"{name}, kg", ".4g") for name in heads]
    lines = ((row["element"], row["mass"], row["section"], row["fittings"]) for row in rows)
    yield table("Masses of elastic links", "element", *columns, rows=lines)


def _conditions(values: np.ndarray, count: int) -> str:
    texts = ["singular" if value is None else f"{value:.3g}" for value in spread(values).values()]
    reference, median, worst = texts
    poses = counted(count, "pose")
    return f"{reference} at the reference pose; {median} median, {worst} worst of {poses}"


def _by_element(names: list[str]) -> list[str]:
    """Return the names of loop equations grouped by element, such as "rod_1: x, y"."""
    grouped: dict[str, list[str]] = {}
    for name in names:
        element, _, condition = name.partition(": ")
        grouped.setdefault(element, []).append(condition)
    return [f"{element}: {', '.join(conditions)}" for element, conditions in grouped.items()]


def _coordinates(model: Model) -> Table:
    coordinates = zip(
        model.topology.coordinate_names,
        model.assembly.q,
        coordinate_units(model.topology),
        strict=True,
    )
    rows = (
        (name, f"{np.degrees(value):.4f}", "deg") if unit == "rad" else (name, value, unit)
        for name, value, unit in coordinates
    )
    return table("Coordinates at the reference pose", "name", ("value", ".6f"), "unit", rows=rows)


def _drive_lines(mechanism: Mechanism) -> Table:
    rows = []
    for actuator in mechanism.actuators:
        if actuator.drive is None:
            rows.append((actuator.name, "acts directly", "", "", ""))
            continue
        data = drive_line_properties(mechanism, actuator.drive)
        motors = [f"{name} (slave)" if name == data["slave"] else name for name in data["motors"]]
        bodies = [f"{item['name']} ({item['ratio']:.4g})" for item in data["inertias"]]
        is_rotary = actuator.drive.inertia(data["load"]).is_rotary
        connects_rotary = {
            item.name: actuator.drive.inertia(item.second).is_rotary
            for item in actuator.drive.connections
        }
        backlash = [
            f"{name} {gap:.3g} {'rad' if connects_rotary[name] else 'm'}"
            for name, gap in data["play"].items()
        ]
        unit = "kg m^2" if is_rotary else "kg"
        inertia = f"{data['reflected']:.4g} {unit}"
        lines = ("\n".join(motors), "\n".join(bodies), inertia, "\n".join(backlash) or "none")
        rows.append((actuator.name, *lines))
    heads = ("motors", "bodies (motion over\nthe load's)", "inertia at\nthe load", "play")
    return table("Drive lines", "actuator", *heads, rows=rows, unbroken=(0,))


def _parameters(mechanism: Mechanism) -> Table:
    rows = (
        (p.name, p.value / p.scale, p.unit, p.group, p.status, p.source)
        for p in mechanism.parameters
    )
    return table(
        "Independent parameters",
        "name",
        ("value", ".6g"),
        "unit",
        "group",
        "status",
        "source",
        rows=rows,
    )


def _linear_blocks(described: Description) -> Table:
    blocks = described.linear_blocks().items()
    rows = (
        (function, block.what, block.size, block.method, count)
        for (function, block), count in blocks
    )
    return table(
        "Linear blocks", "function", "for", ("size", ""), "solved by", ("number", ""), rows=rows
    )


def _blocks(model: Model) -> Table:
    rows = (
        ("\n".join(block.equations), "\n".join(block.unknowns), len(block.unknowns), block.method)
        for block in model.platform.blocks
    )
    title = "Position blocks, in the order of their solution"
    return table(title, "equations", "unknowns", ("size", ""), "solved by", rows=rows)
