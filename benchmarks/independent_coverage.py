"""Do 95 % intervals of `identify` cover the truth of an independent simulator?

    python benchmarks/independent_coverage.py [--seeds 200] [--first 0] [--only Delta] [--json] [--markdown PAGE]
    python benchmarks/independent_coverage.py --rows FILE ... [--markdown PAGE]    # rows that --json printed

Rows of other seeds (`--first`) are added to those of the same machine and condition.

A five-bar and a Delta whose torques are closed forms in NumPy (`closed_form.py`), under
`CONDITIONS`: logs of 20 s at 500 Hz, a multisine for each motor, decimated by 5; a cut-off is given
only where the condition has one. The table shows the share of intervals that contain the true value,
over all parameters and for the worst one, and the share of results that are ok.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import closed_form
import numpy as np
from rows import page
from scipy.stats import norm

from tauloop import IdentificationOptions, Model, identify
from tauloop.compiler.c import Compiled
from tauloop.identification import PreparationOptions

COVERAGE_MARKS = page.marks("independent_coverage.py")
QUANTILE = float(norm.ppf(0.975))
#: Effects in a log, and options of its identification, by condition.
CONDITIONS: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "nominal": ({}, {}),
    "nominal, cut-off of 30 Hz": ({}, {"cutoff": 30.0}),
    "encoder of 16 bits": ({"step": closed_form.COARSE_STEP}, {}),
    "transmission that bends at 60 Hz": ({"bending": 60.0}, {}),
    "forces 2 ms late": ({"late": 2e-3}, {}),
}


def coverage(
    truth: closed_form.Truth, model: Model, condition: str, seeds: int, first: int = 0
) -> dict[str, Any]:
    """Return how often intervals cover under one condition, and how often the result is ok.

    Args:
        truth, model: the machine.
        condition: name of the condition.
        seeds: number of logs.
        first: first seed.
    """
    recorded, asked = CONDITIONS[condition]
    preparation = PreparationOptions(trim=100, decimation=5, **asked)  # type: ignore[arg-type]
    options = IdentificationOptions(unknowns=truth.parameters, preparation=preparation)
    errors, are_ok = [], []
    for seed in range(first, first + seeds):
        log = closed_form.log_of(truth, np.random.default_rng(seed), **recorded)
        result = identify(model, log, options)
        fitted = result.identification
        true = fitted.base.regroup(truth.parameter_values(result.training.unknowns, model))
        errors.append((fitted.values - true) / fitted.standard_deviations)
        are_ok.append(result.status.value == "ok")
    inside = np.abs(errors) < QUANTILE
    return {
        "machine": truth.name,
        "condition": condition,
        "seeds": seeds,
        "inside": inside.sum(axis=0).tolist(),
        "parameters": [item.representative for item in fitted.base.base],
        "error_sums": np.sum(errors, axis=0).tolist(),
        "ok": int(np.sum(are_ok)),
    }


def added(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the row of the logs of two rows of one machine and condition."""
    sums = {name: first[name] + second[name] for name in ("seeds", "ok")}
    for name in ("inside", "error_sums"):
        sums[name] = np.add(first[name], second[name]).tolist()
    return {**first, **sums}


def fractions(row: dict[str, Any]) -> tuple[float, float, float]:
    """Return the fraction of covered values, that of the worst parameter, and that of ok results."""
    each = np.array(row["inside"]) / row["seeds"]
    return float(each.mean()), float(each.min()), row["ok"] / row["seeds"]


def rows_of(seeds: int, only: str | None = None, first: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a row for each machine and condition."""
    for make in (closed_form.five_bar, closed_form.delta):
        truth = make()
        if only not in (None, truth.name):
            continue
        model = Model(truth.mechanism, evaluator=Compiled(at_least=0))
        for condition in CONDITIONS:
            yield coverage(truth, model, condition, seeds, first)


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table in Markdown."""
    yield "| machine | condition | covered | worst parameter | status ok |"
    yield "|---|---|---|---|---|"
    for row in rows:
        shares = (f"{100.0 * fraction:.1f} %" for fraction in fractions(row))
        yield f"| {row['machine']} | {row['condition']} | {' | '.join(shares)} |"


def read_rows(files: list[Path]) -> list[dict[str, Any]]:
    """Return the rows of files that `--json` printed, such as of one machine or some seeds each."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            key = row["machine"], row["condition"]
            rows[key] = added(rows[key], row) if key in rows else row
    return list(rows.values())


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", help="one machine")
    parser.add_argument("--json", action="store_true", help="print every row as it is measured")
    parser.add_argument(
        "--rows", type=Path, nargs="+", metavar="FILE", help="take rows that --json printed"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    chosen = parser.parse_args(arguments)
    if chosen.json:
        for row in rows_of(chosen.seeds, chosen.only, chosen.first):
            print(json.dumps(row), flush=True)
        return 0
    rows = (
        list(rows_of(chosen.seeds, chosen.only, chosen.first))
        if chosen.rows is None
        else read_rows(chosen.rows)
    )
    logs = ", ".join(sorted({str(row["seeds"]) for row in rows}, key=int))
    note = f"{logs} logs each; `python benchmarks/independent_coverage.py --seeds {logs}`."
    page.write_or_print(chosen.markdown, COVERAGE_MARKS, list(table(rows)), note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
