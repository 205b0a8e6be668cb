"""Identifications of many logs for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.study import FoldedLogs

#: Logs that are named of those that are refused, or have faults.
NAMED = 10


def fold_tables(result: FoldedLogs) -> Iterator[Printed]:
    """Parameters with deviations, residuals, and logs that are not in it."""
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
    yield f"deviations are for errors that are {result.errors}"
    for name, why in list(result.refused.items())[:NAMED]:
        yield f"not in it: {name}: {why}"
    for name, count in list(result.faults.items())[:NAMED]:
        yield f"{count} faults: {name}"
    for line in result.advice:
        yield f"doubtful: {line}"
