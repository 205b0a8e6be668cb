"""Tables of a filter scan: errors of each filter, and the spread of the parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import doubts, table
from tauloop.identification.preparation.choice.filter_scan import (
    MAX_SPREAD_DEVIATIONS,
    SCANNED_OPTIONS,
    FilterScan,
)

#: Maximum number of characters of a combination's name; the full name is in the JSON file.
SCANNED_NAME_WIDTH = 34
#: Maximum number of printed filters. The best are printed; the JSON file contains all.
MAX_FILTERS = 24


def filter_scan_tables(scan: FilterScan) -> Iterator[Printed]:
    """Yield the errors of every filter, the choice with reasons, and the parameters' spread."""
    chosen = scan.trials[scan.chosen]
    held_out = float(np.sqrt(np.mean(chosen.held_out_percent**2)))
    yield _trials(scan)
    yield Paragraph(
        text=f"Chosen: order {chosen.order} at {chosen.cutoff:g} Hz, standstill below "
        f"{chosen.standstill:g} of the largest speed. It has the smallest error on the validation part "
        f"({chosen.validation_error:.2f} % over all outputs; held-out part {held_out:.2f} %).",
        tone="strong",
    )
    yield from _reasons(scan)
    yield _spread_table(scan)
    yield from doubts(scan)


def _trials(scan: FilterScan) -> Table:
    """Return a table of the filters with the smallest validation errors, in scan order."""
    ranking = sorted(range(len(scan.trials)), key=lambda k: scan.trials[k].validation_error)
    shown = sorted(ranking[:MAX_FILTERS])
    best = f", the best {MAX_FILTERS} of {len(ranking)}" if len(shown) < len(ranking) else ""
    cells = []
    for k in shown:
        trial = scan.trials[k]
        mark = "> " if k == scan.chosen else ""
        held_out = np.sqrt(np.mean(trial.held_out_percent**2))
        options = (f"{mark}{trial.order}", trial.cutoff, trial.standstill)
        cells.append((*options, trial.validation_error, held_out, *trial.held_out_percent))
    return table(
        f"Filters{best}: RMSE in % of the largest measured force, on the validation and held-out parts",
        *(("order", ""), ("Hz", "g"), ("rest", "g"), ("valid.", ".2f"), ("held", ".2f")),
        *((fit.output, ".2f") for fit in scan.identification.held_out),
        rows=cells,
    )


def _reasons(scan: FilterScan) -> list[str]:
    """Return lines with the smallest validation error for each value of each scanned option."""
    lines = []
    for option, unit in zip(SCANNED_OPTIONS, ("", " Hz", ""), strict=True):
        errors = scan.least_errors(option)
        if len(errors) > 1:
            texts = ", ".join(f"{value:g}{unit} {error:.2f}" for value, error in errors.items())
            lines.append(f"  smallest validation error, %, by {option}: {texts}")
    return lines


def _spread_table(scan: FilterScan) -> Table:
    values = np.array([trial.values for trial in scan.trials])
    names = (parameter.short_name(SCANNED_NAME_WIDTH) for parameter in scan.base.base)
    spreads = (
        f"{'! ' if spread > MAX_SPREAD_DEVIATIONS else ''}{spread:.2g}"
        for spread in scan.spread_in_deviations
    )
    units = (parameter.unit for parameter in scan.base.base)
    return table(
        f"Base parameters (SI) over these filters; ! spread above {MAX_SPREAD_DEVIATIONS:g} standard deviations",
        *(
            "base parameter",
            ("chosen", ".3g"),
            ("smallest", ".3g"),
            ("largest", ".3g"),
            ("spread", ""),
            "unit",
        ),
        rows=zip(
            names,
            values[scan.chosen],
            values.min(axis=0),
            values.max(axis=0),
            spreads,
            units,
            strict=True,
        ),
    )
