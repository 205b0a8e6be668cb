"""Table of assembly or working modes, and the checks that the list is complete."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import Column, doubts, table
from tauloop.equations.ports import ACTUATORS
from tauloop.kinematics.homotopy.blocks import BlockCount
from tauloop.kinematics.modes.modes import Mode, Modes

#: Maximum number of unknown coordinates with a column each; more coordinates share a cell.
MAX_COLUMNS = 7
#: Marks after the number of a mode.
MARKS = {
    "*": "reached from the reference pose without passing through a singularity",
    "~": "singular or nearly singular: modes meet at this pose",
    "!": "beyond a stop",
}


def modes_tables(modes: Modes) -> Iterator[Printed]:
    """Yield the specified position, modes, omitted solutions, and checks of completeness."""
    kind = "Assembly" if modes.entry is ACTUATORS else "Working"
    shown = ", ".join(
        f"{name} = {value:.6g} {unit}"
        for name, value, unit in zip(modes.columns, modes.position, modes.units, strict=True)
    )
    yield (f"Given: {shown}")
    yield ""
    names = [modes.coordinate_names[i] for i in modes.unknown]
    units = [
        "deg" if modes.coordinate_units[i] == "rad" else modes.coordinate_units[i]
        for i in modes.unknown
    ]
    in_columns = len(names) <= MAX_COLUMNS
    heads: list[Column] = ["pose"]
    if in_columns:
        heads = [(_head(name, unit), "") for name, unit in zip(names, units, strict=True)]
    cells = []
    for i, mode in enumerate(modes.modes):
        values = [_number(mode.q[k], modes.coordinate_units[k]) for k in modes.unknown]
        listed = ["\n".join(" ".join(row) for row in zip(names, values, units, strict=True))]
        condition = mode.condition if np.isfinite(mode.condition) else "singular"
        cells.append(
            (
                f"{i + 1}{_marks(mode)}",
                *(values if in_columns else listed),
                mode.residual,
                condition,
            )
        )
    title = f"{kind} modes of {modes.machine}: {len(modes.modes)}"
    yield table(title, ("mode", ""), *heads, ("resid.\nm", ".0e"), ("cond.", ".3g"), rows=cells)
    marks = {mark for mode in modes.modes for mark in _marks(mode)}
    if marks:
        yield ("; ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in marks))
    for i, mode in enumerate(modes.modes):
        if mode.beyond:
            yield (f"mode {i + 1}: {'; '.join(map(str, mode.beyond))}")
    if not modes.modes:
        yield ("The loops do not close at this position.")
    elif "*" not in marks:
        yield ("No mode is reached from the reference pose without passing through a singularity.")
    for reason, count in modes.left_out.items():
        yield (f"left out: {counted(count, 'real solution')} of which {reason}")
    for block in modes.blocks:
        yield (
            f"{counted(len(block.equations), 'equation')} ({block.equations[0]}, ...): "
            f"{counted(block.complex_solutions, 'complex solution')}; "
            f"{_diagnostics(block)}; ends: {block.real} real, "
            f"{block.complex} complex, {block.infinite} at infinity, {block.singular} multiple"
        )
    yield from doubts(modes)


def _diagnostics(block: BlockCount) -> str:
    """Return a text on the check that a block has no other solutions."""
    if block.trace is not None:
        return f"trace test {block.trace:.0e}"
    if block.lost_lines:
        return "the trace test could not be followed"
    loops, starts = counted(block.quiet_loops, "loop"), counted(block.probes, "random start")
    return f"no other solution from {loops} and {starts}"


def _marks(mode: Mode) -> str:
    marks = ""
    if mode.is_reference:
        marks += "*"
    if mode.is_singular:
        marks += "~"
    if not mode.within_limits:
        marks += "!"
    return marks


def _head(name: str, unit: str) -> str:
    """Return the head of a column: joint, component and unit in lines; "platform" is omitted."""
    parts = [part for part in name.split(".") if part != "platform"]
    return "\n".join([*parts, "" if unit == "1" else unit])


def _number(value: float, unit: str) -> str:
    if unit == "rad":
        return f"{round(np.degrees(value), 2) + 0.0:.2f}"
    digits = 3 if unit == "1" else 4
    return f"{round(value, 4) + 0.0:.{digits}f}"
