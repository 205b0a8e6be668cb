"""The tables of a reduction for the terminal: sizes, steps and errors."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tauloop.kinematics.reduction import Reduction
from tauloop.model import Model
from tauloop.report.tables import table

#: Digits of a displacement in metres: nanometres are rounding.
SHIFT_DIGITS = 9


def reduction_tables(reduction: Reduction) -> Iterator[RenderableType]:
    """What the machine was and is, what each step preserves, and the error of the forces."""
    yield Text(f"Reduction of {reduction.full.name}", style="bold")
    yield _sizes(reduction)
    yield _steps(reduction) if reduction.steps else "No step applies: nothing moves alike."
    yield _errors(reduction)
    for what in dict.fromkeys(what for step in reduction.steps for what in step.lost):
        yield f"no longer known: {what}"
    for evidence in reduction.evidence:
        if not evidence.is_good:
            yield Text(f"doubtful: {evidence}", style="red")
    yield "exact" if reduction.is_exact else "approximate, as was asked for"


def _sizes(reduction: Reduction) -> Table:
    comparison = reduction.comparison
    shift = " ".join(f"{1e3 * x + 0.0:.3f}" for x in comparison.center_shift.round(SHIFT_DIGITS))
    rows = table("", "", "full", "reduced", numeric=(1, 2))
    rows.add_row("coordinates", *map(str, reduction.coordinates))
    rows.add_row("loop equations", *map(str, reduction.equations))
    rows.add_row("parameters", str(len(reduction.full.parameters)), str(len(reduction.mechanism.parameters)))
    rows.add_row("mass, kg", *(f"{mass:.6g}" for mass in comparison.mass))
    rows.add_row("mass centre moved by, mm", "", f"({shift}), constant to {1e3 * comparison.center_deviation:.1e}")
    return rows


def _steps(reduction: Reduction) -> Table:
    rows = table("Steps", "step", "instead of", "stands", "preserved exactly", "approximated")
    for step in reduction.steps:
        removed, kept = ", ".join(step.removed), ", ".join(step.kept)
        rows.add_row(step.name, removed, kept, "\n".join(step.preserved), "\n".join(step.approximated))
    return rows


def _errors(reduction: Reduction) -> Table:
    units = dict(zip(*Model(reduction.full).output_ports("actuators"), strict=True))
    states = f"{reduction.comparison.states} random states (seed {reduction.provenance.options['seed']})"
    rows = table(
        f"Errors of the actuator forces as shares of the largest, over {states}",
        *("actuator", "largest\nforce", "unit", "rms", "largest", "from\ngravity", "from\ninertia", "from\nvelocity"),
        numeric=(1, 3, 4, 5, 6, 7),
    )
    for e in reduction.comparison.errors:
        shares = (e.rms, e.maximum, e.gravity, e.inertia, e.velocity)
        rows.add_row(e.actuator, f"{e.largest:.6g}", units[e.actuator], *(f"{share:.1e}" for share in shares))
    return rows
