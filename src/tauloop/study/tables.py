"""Tables of studies: scalars over all samples, yield, Sobol indices, and fits to many logs."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.study import FoldedLogs, ScalarSummary, StudyResult

#: Maximum number of problems that are listed.
MAX_LISTED_PROBLEMS = 5
#: Maximum number of rejected or faulty logs that are listed.
MAX_LISTED_LOGS = 10


def study_tables(result: StudyResult) -> Iterator[Printed]:
    """Yield the tables of a study."""
    fractions = list(result.scalars[0].quantiles) if result.scalars else []
    quantile_heads = [f"{float(fraction):.3g} below" for fraction in fractions]
    names = ("mean", "deviation", "least", *quantile_heads, "greatest")
    heads = [(name, "") for name in names]
    rows = [_scalar_row(item) for item in result.scalars]
    yield table(
        f"{result.machine}: {result.calculation} of {counted(result.samples, 'sample')}",
        "scalar",
        *heads,
        rows=rows,
    )
    for item in result.scalars:
        yield _greatest_sample(item)
    if result.passed is not None and result.yield_interval is not None and result.samples:
        low, high = result.yield_interval
        percent = 100 * result.passed / result.samples
        yield (
            f"yield: {result.passed} of {result.samples} pass, {percent:.2f} % "
            f"(95 %: {100 * low:.2f} to {100 * high:.2f} %)"
        )
    if result.sobol:
        indices = [
            (
                f"{index.scalar} by {index.name}",
                f"{index.first:.3f}",
                f"{index.first_interval:.3f}",
                f"{index.total:.3f}",
                f"{index.total_interval:.3f}",
            )
            for index in result.sobol
        ]
        heads = [(head, "") for head in ("first", "±", "total", "±")]
        yield table(
            "Sobol indices, with half-widths of 95 % intervals",
            "scalar by input",
            *heads,
            rows=indices,
        )
    problems = sorted(result.problems.items(), key=lambda entry: -entry[1])
    for problem, count in problems[:MAX_LISTED_PROBLEMS]:
        yield f"{counted(count, 'sample')}: {problem}"
    for first, last in result.set_aside:
        yield f"skipped: samples {first} to {last - 1}, because their workers died"
    for line in result.advice:
        yield f"doubtful: {line}"


def _scalar_row(item: ScalarSummary) -> tuple[str, ...]:
    """Return the cells of the row of a scalar."""
    name = f"{item.name} [{item.unit}]" if item.unit else item.name
    values = (item.mean, item.deviation, item.least, *item.quantiles.values(), item.greatest)
    return (name, *(f"{value:.4g}" for value in values))


def _greatest_sample(item: ScalarSummary) -> str:
    """Return text with the sample of the largest value, and its inputs."""
    inputs = ", ".join(
        f"{name} = {value:.7g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in item.greatest_inputs.items()
    )
    text = f"greatest {item.name}: sample {item.greatest_at}"
    return f"{text} with {inputs}" if inputs else text


def fold_tables(result: FoldedLogs) -> Iterator[Printed]:
    """Yield parameters with deviations, residuals, and rejected or faulty logs."""
    data = result.as_dict()
    title = f"{result.machine}: base parameters of {counted(result.logs, 'log')}, {counted(result.samples, 'sample')}"
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
        yield f"{counted(count, 'fault')}: {name}"
    for line in result.advice:
        yield f"doubtful: {line}"
