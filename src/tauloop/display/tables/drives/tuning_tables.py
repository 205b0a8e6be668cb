"""Tables of a tuned drive line: changes, searches, and the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.drives import Tuning


def tuning_tables(tuning: Tuning) -> Iterator[Printed]:
    """Yield parameters and criteria before and after, all searches, and the Pareto front."""
    rows = (
        *(
            (name, tuning.start[name], value, tuning.units[name])
            for name, value in tuning.best.items()
        ),
        ("cost", tuning.start_cost, tuning.cost, "1"),
        *(
            (name.replace("_", " "), tuning.before[name], value, tuning.units[name] or "1")
            for name, value in tuning.after.items()
        ),
    )
    title = f"{tuning.drive_line}: tuned parameters and criteria"
    yield table(title, "", ("before", ".6g"), ("tuned", ".6g"), "unit", rows=rows)
    searches = []
    for search in tuning.searches:
        points = _numbers(search.start), _numbers(search.best)
        searches.append((*points, search.cost, len(search.costs), search.ending))
    yield table(
        "Searches", "from", "to", ("cost", ".6g"), ("evaluations", ""), "ending", rows=searches
    )
    if tuning.front is not None:
        yield _front(tuning)
    for finding in tuning.findings:
        yield f"note: {finding}"
    yield from doubts(tuning)
    values = ",".join(f"{name}={value:.6g}" for name, value in tuning.best.items())
    yield f"show it: tauloop drive step {tuning.drive_line} --set {values}"


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)


def _front(tuning: Tuning) -> Printed:
    front = tuning.front
    assert front is not None
    criteria = [name.replace("_", " ") for name in front.criteria_names]
    names = (*front.names, *front.criteria_names)
    columns = (
        (f"{title}\n[{tuning.units.get(name) or 1}]", ".5g")
        for name, title in zip(names, (*front.names, *criteria), strict=True)
    )
    rows = ((*point, *values) for point, values in zip(front.points, front.criteria, strict=True))
    return table("Pareto front", *columns, rows=rows)
