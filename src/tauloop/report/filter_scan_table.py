"""The tables of a filter scan for the terminal: what every filter gives, and how far parameters move."""

from __future__ import annotations

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tauloop.identification.preparation.filter_scan import MOVED, OPTIONS, FilterScan

#: Characters for a combination's name; the whole of it is in the JSON file.
NAME_WIDTH = 34
#: Filters that are printed, the best of them; all are in the JSON file.
SHOWN = 24


def filter_scan_table(scan: FilterScan) -> Group:
    """Errors of every filter, the choice and what it rests on, and how far every base parameter moves."""
    chosen = scan.trials[scan.chosen]
    held_out = float(np.sqrt(np.mean(chosen.held_out_percent**2)))
    choice = Text(
        f"Chosen: order {chosen.order} at {chosen.cutoff:g} Hz, rest below {chosen.standstill:g} of the largest speed, "
        f"for its least error on the validation part ({chosen.validation_error:.2f} % over all outputs); held out it "
        f"has {held_out:.2f} %",
        style="bold",
    )
    advice = (Text(line, style="yellow") for line in scan.advice)
    return Group(_trials(scan), choice, *_reasons(scan), _movements(scan), *advice)


def _trials(scan: FilterScan) -> Table:
    """The best filters by validation, in the order of the scan."""
    ranking = sorted(range(len(scan.trials)), key=lambda k: scan.trials[k].validation_error)
    shown = sorted(ranking[:SHOWN])
    best = f", the best {SHOWN} of {len(ranking)}" if len(shown) < len(ranking) else ""
    table = _table(f"Filters{best}: RMSE in % of the largest measured force, on the validation and held-out parts")
    outputs = [fit.output for fit in scan.identification.held_out]
    for heading in ("order", "Hz", "rest", "valid.", "held", *outputs):
        table.add_column(heading, justify="right", no_wrap=True)
    for k in shown:
        trial = scan.trials[k]
        together = np.sqrt(np.mean(trial.held_out_percent**2))
        numbers = (trial.validation_error, together, *trial.held_out_percent)
        mark = "> " if k == scan.chosen else ""
        filtered = (f"{mark}{trial.order}", f"{trial.cutoff:g}", f"{trial.standstill:g}")
        table.add_row(*filtered, *(f"{number:.2f}" for number in numbers))
    return table


def _reasons(scan: FilterScan) -> list[Text]:
    """For every option that was scanned: the least validation error with each of its values."""
    lines = []
    for option, unit in zip(OPTIONS, ("", " Hz", ""), strict=True):
        errors = scan.least_errors(option)
        if len(errors) > 1:
            each = ", ".join(f"{value:g}{unit} {error:.2f}" for value, error in errors.items())
            lines.append(Text(f"  least validation error, %, by {option}: {each}"))
    return lines


def _movements(scan: FilterScan) -> Table:
    table = _table(f"Base parameters (SI) over these filters; ! spread above {MOVED:g} standard deviations")
    table.add_column("base parameter", overflow="fold")
    for heading in ("chosen", "least", "largest", "spread"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    values = np.array([trial.values for trial in scan.trials])
    for i, parameter in enumerate(scan.base.base):
        numbers = (values[scan.chosen, i], values[:, i].min(), values[:, i].max())
        spread = scan.spread_in_deviations[i]
        table.add_row(
            Text(parameter.short_name(NAME_WIDTH)),
            *(f"{number:.3g}" for number in numbers),
            f"{'! ' if spread > MOVED else ''}{spread:.2g}",
            parameter.unit,
        )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0))
