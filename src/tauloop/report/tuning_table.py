"""The tables of a tuned drive line for the terminal: what changed, the searches, and the front of compromises."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.drives import Tuning
from tauloop.report.tables import table


def tuning_tables(tuning: Tuning) -> Iterator[RenderableType]:
    """Parameters and criteria before and after, all searches, and compromises."""
    rows = table(f"{tuning.drive_line}: tuned parameters and criteria (SI)", "", "before", "tuned", numeric=(1, 2))
    for name, value in tuning.best.items():
        rows.add_row(name, f"{tuning.start[name]:.6g}", f"{value:.6g}")
    rows.add_row("cost", f"{tuning.start_cost:.6g}", f"{tuning.cost:.6g}")
    for name, value in tuning.after.items():
        rows.add_row(name.replace("_", " "), f"{tuning.before[name]:.6g}", f"{value:.6g}")
    yield rows
    searches = table("Searches", "from", "to", "cost", "evaluations", "ending", numeric=(2, 3))
    for one in tuning.searches:
        ends = (", ".join(f"{value:.4g}" for value in point) for point in (one.start, one.best))
        searches.add_row(*ends, f"{one.cost:.6g}", str(len(one.costs)), one.ending)
    yield searches
    if tuning.front is not None:
        yield _front(tuning)
    for finding in tuning.findings:
        yield Text(f"note: {finding}")
    for line in tuning.advice:
        yield Text(f"doubtful: {line}", style="red")
    values = ",".join(f"{name}={value:.6g}" for name, value in tuning.best.items())
    yield Text(f"to see it: tauloop drive {tuning.drive_line} --set {values}")


def _front(tuning: Tuning) -> RenderableType:
    assert tuning.front is not None
    columns = (*tuning.front.names, *(name.replace("_", " ") for name in tuning.front.of))
    rows = table("Front of compromises (SI)", *columns, numeric=tuple(range(len(columns))))
    for point, criteria in zip(tuning.front.points, tuning.front.criteria, strict=True):
        rows.add_row(*(f"{value:.5g}" for value in (*point, *criteria)))
    return rows
