"""Drive lines on the actuators of a machine file, from a separate file or from sections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tauloop.common.errors import DescriptionError
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.drives.drive_file import read_drive
from tauloop.mechanism.description.drives.drive_grammar import SECTIONS
from tauloop.mechanism.description.drives.drive_reader import DriveReader
from tauloop.mechanism.description.units import ONE, named, parse_unit
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.drive_line import DriveLine, LineInertia, Performance
from tauloop.mechanism.expression import ZERO, Expression, Leaf, ParameterTable, leaves, with_leaves
from tauloop.mechanism.suggestions import listing, suggestion

_SECTIONS = tuple(field.name for field in SECTIONS)


def read_actuator_drive(
    name: str, cursor: Cursor, values: ValueReader, is_rotary: bool
) -> DriveLine | None:
    """Return the drive line of an actuator, or None after adding a problem.

    Args:
        name: name of the actuator.
        cursor: position of the drive line in the file.
        values: reads values, and adopts the parameters of a file under the key path of `cursor`.
        is_rotary: whether the actuator rotates.
    """
    if cursor.collector.has_problem_in(cursor.where):
        return None  # the readers below require the form to be valid
    previous_count = cursor.collector.count
    local_keys = [key for key in ("load", *_SECTIONS) if cursor.has(key)]
    if cursor.has("file"):
        for key in local_keys:
            cursor.problem(
                "a drive line with `file` has no sections here",
                f"remove {key}, or `file`",
                key,
            )
        line = _from_file(name, cursor, values, is_rotary)
    else:
        missing = [
            key for key in ("load", *_SECTIONS) if key != "connections" and key not in local_keys
        ]
        if missing:
            remedy = f"add {listing(missing, 10)}, or a drive-line file as `file`"
            cursor.problem(f"the drive line has no {listing(missing, 10)}", remedy)
        if cursor.has("set"):
            cursor.problem(
                "`set` changes the parameters of a file, but there is no `file`",
                "write the values in the sections",
                "set",
            )
        load = cursor.word("load")
        line = (
            None
            if missing or not load
            else DriveReader(cursor, values, (load, is_rotary)).line(name)
        )
    if line is None or cursor.collector.count > previous_count:
        return None
    unconnected = [inertia.name for inertia in line.inertias if inertia.name not in line.ratios()]
    if unconnected:
        what = f"nothing connects {listing(unconnected, 10)} to the load {line.performance.of}"
        cursor.problem(what, "add connections, or remove the inertias")
        return None
    return line


def _from_file(name: str, cursor: Cursor, values: ValueReader, is_rotary: bool) -> DriveLine | None:
    """Return the drive line of a file with the machine as its load.

    The parameters of the file are added to the machine's table.
    """
    path = Path(cursor.word("file") or "")
    if not path.is_absolute():
        if cursor.collector.folder is None:
            what = f"{path} is relative to the machine file, but this machine was given as text"
            cursor.problem(
                what, "save the machine and load its file, or write the sections here", "file"
            )
            return None
        path = cursor.collector.folder / path
    try:
        text = read_text(path)
    except DescriptionError as error:
        for problem in error.problems:
            cursor.problem(f"{path}: {problem.what}", problem.remedy, "file")
        return None
    try:
        line = read_drive(text, str(path))
        changed = _changed(cursor, values, line)
        if changed is None:
            return None
        if changed:  # check the file again with the new values
            read_drive(
                text,
                str(path),
                {key: values.nominal(expression) for key, expression in changed.items()},
            )
    except DescriptionError as error:
        cursor.collector.include(error.problems)
        return None
    load = line.performance.of
    if line.inertia(load).is_rotary != is_rotary:
        verbs = (
            "rotates" if line.inertia(load).is_rotary else "slides",
            "rotates" if is_rotary else "slides",
        )
        what = f"the file's load {load} {verbs[0]}, but the actuator {verbs[1]}"
        cursor.problem(what, "use another file, or give the actuator's ratio a unit", "file")
        return None
    machine = LineInertia(name=load, is_rotary=is_rotary, value=ZERO)
    line = replace(
        line,
        name=name,
        description="",
        inertias=tuple(machine if inertia.name == load else inertia for inertia in line.inertias),
        performance=Performance(of=load, band=None),
        file="",
    )
    used_names, leaf = leaves(line), cursor.leaf
    retained = [
        parameter
        for parameter in line.parameters
        if parameter.name in used_names and parameter.name not in changed
    ]
    values.adopt(replace(parameter, name=f"{leaf}.{parameter.name}") for parameter in retained)
    substitutions = changed | {
        parameter.name: Leaf(f"{leaf}.{parameter.name}") for parameter in retained
    }
    renamed: DriveLine = with_leaves(replace(line, parameters=ParameterTable()), substitutions)
    return renamed


def _changed(cursor: Cursor, values: ValueReader, line: DriveLine) -> dict[str, Expression] | None:
    """Return the expressions for the parameters that `set` changes.

    None after adding a problem.
    """
    expressions: dict[str, Expression] = {}
    is_valid = True
    for key, entry in cursor.entries_of("set"):
        quantity = values.quantity(entry)
        if key not in line.parameters.names:
            remedy = (
                suggestion(key, line.parameters.names)
                or f"it has {listing(line.parameters.names, 30)}"
            )
            entry.problem(f"{line.file} has no parameter {key}", remedy)
            is_valid = False
        elif quantity is None:
            is_valid = False
        else:
            unit = line.parameters[key].unit
            dimension = parse_unit(unit).dimension if unit else ONE
            if not quantity.fits(dimension):
                what = f"{key} is {named(dimension)} in the file, not {named(quantity.dimension)}"
                entry.problem(what, "check the unit")
                is_valid = False
            expressions[key] = quantity.expression
    return expressions if is_valid else None
