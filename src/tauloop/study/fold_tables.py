"""Tables of identifications from many logs."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.study import FoldedLogs

#: Largest number of refused or faulty logs that are listed.
MAX_LISTED_LOGS = 10


def fold_tables(result: FoldedLogs) -> Iterator[Printed]:
    """Yield parameters with deviations, residuals, and refused or faulty logs."""
    data = result.as_dict()
    title = f"{result.machine}: base parameters of {result.logs} logs, {result.samples} samples"
    parameters = (
        (item["name"], item["unit"], f"{item['value']:.6g}", f"{item['standard_deviation']:.2g}")
        for item in data["base_parameters"]
    )
    yield table(title, "parameter", "unit", ("value", ""), ("deviation", ""), rows=parameters)
    outputs = (
        (
            item["output"],
            f"{item['rmse']:.4g}",
            "-" if item["held_out_rmse"] is None else f"{item['held_out_rmse']:.4g}",
        )
        for item in data["outputs"]
    )
    yield table("residuals, RMS", "output", ("fitted", ""), ("held out", ""), rows=outputs)
    yield f"deviations assume {result.errors} errors"
    for name, reason in list(result.refused.items())[:MAX_LISTED_LOGS]:
        yield f"not used: {name}: {reason}"
    for name, count in list(result.faults.items())[:MAX_LISTED_LOGS]:
        yield f"{count} faults: {name}"
    for line in result.advice:
        yield f"doubtful: {line}"
