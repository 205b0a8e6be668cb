"""The tables of a drive line's fitted parameters for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.drives import FittedPlant
from tauloop.report.tables import table


def plant_tables(plant: FittedPlant) -> Iterator[RenderableType]:
    """Parameters before and after, every figure beside its measured one, and what is left open."""
    rows = table(f"{plant.drive_line}: parameters (SI)", "", "before", "fitted", numeric=(1, 2))
    for name, value in plant.fit.values.items():
        rows.add_row(name, f"{plant.before[name]:.6g}", f"{value:.6g}")
    yield rows
    figures = table("Figures (SI)", "step", "criterion", "measured", "fitted", "off", "", numeric=(2, 3, 4))
    for step, name, measured, ours, held_out in plant.fit.rows:
        off = f"{ours / measured - 1.0:+.2%}" if measured else ""
        figures.add_row(
            step, name.replace("_", " "), f"{measured:.5g}", f"{ours:.5g}", off, "held out" if held_out else ""
        )
    yield figures
    yield Text(f"{plant.fit.evaluations} plants tried")
    for finding in plant.findings:
        yield Text(f"note: {finding}")
    for line in plant.advice:
        yield Text(f"doubtful: {line}", style="red")
