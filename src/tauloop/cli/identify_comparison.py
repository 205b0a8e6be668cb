"""``tauloop identify --compare-logs``: several logs fitted apart and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from tauloop.cli.identify_logs import MeasuredLog
from tauloop.cli.output import table
from tauloop.errors import InputError, Problem
from tauloop.identification import AutocorrelatedErrors, ClusteredErrors, ErrorModel, Estimator, RegressionData
from tauloop.identification.estimation.log_comparison import LogComparison, compare_logs
from tauloop.identification.regression.base_parameters import BaseParameters


def require_comparable(logs: int, **beside: Any) -> None:
    """Refuse a comparison of fewer than two logs, or beside options under which logs have other parameters.

    Raises:
        InputError: with all problems.
    """
    problems = [
        Problem(where="--compare-logs", what=f"has no meaning beside {option}", remedy="leave one of them out")
        for option, value in beside.items()
        if value
    ]
    if logs < 2:
        what = "is given with one log, which has no other to be compared with"
        problems.append(Problem(where="--compare-logs", what=what, remedy="give several logs"))
    InputError.raise_if_any(problems)


def compared(
    logs: Sequence[MeasuredLog],
    parts: Sequence[RegressionData],
    base: BaseParameters,
    estimator: Estimator,
    errors: ErrorModel,
) -> LogComparison:
    """The logs fitted apart; where errors are clustered by log, each log's own bars are those of autocorrelation.

    Raises:
        IdentificationError: fewer than two logs tell all the parameters.
    """
    own = AutocorrelatedErrors() if errors == ClusteredErrors(by="log") else errors
    return compare_logs(parts, [log.name for log in logs], base, estimator, errors=own)


def comparison_document(comparison: LogComparison) -> dict[str, Any]:
    """The comparison as plain data, for JSON."""
    return {"logs": list(comparison.logs), "base_parameters": comparison.rows()}


def comparison_table(comparison: LogComparison) -> Table:
    """Parameters of every log, their mean, and its bar with the model's error."""
    columns = ("base parameter", *comparison.logs, "mean", "std. dev.", "model's error", "moves by", "")
    rows = table(
        "Logs fitted apart (SI); std. dev. with the model's error, its share in a log's own squared bar",
        *columns,
        numeric=tuple(range(1, len(columns) - 1)),
    )
    for k, parameter in enumerate(comparison.base.base):
        rows.add_row(
            parameter.short_name(),
            *(f"{value:.4g}" for value in comparison.values[:, k]),
            f"{comparison.means[k]:.4g}",
            f"{comparison.mean_deviations[k]:.2g}",
            f"{100.0 * comparison.shares[k]:.0f} %",
            f"{comparison.largest[k]:.2g}",
            "moves" if comparison.moved[k] else "",
        )
    return rows
