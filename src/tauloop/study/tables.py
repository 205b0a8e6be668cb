"""Studies for the terminal: each scalar over all samples, the worst sample, yield, Sobol indices."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.study import ScalarSummary, StudyResult

#: Problems of samples that are named.
NAMED = 5


def study_tables(result: StudyResult) -> Iterator[Printed]:
    """What a study says."""
    shares = list(result.scalars[0].quantiles) if result.scalars else []
    heads = [
        (head, "")
        for head in (
            "mean",
            "deviation",
            "least",
            *(f"{float(s):.3g} below" for s in shares),
            "greatest",
        )
    ]
    rows = (
        (
            f"{item.name} [{item.unit}]" if item.unit else item.name,
            *(
                f"{figure:.4g}"
                for figure in (
                    item.mean,
                    item.deviation,
                    item.least,
                    *item.quantiles.values(),
                    item.greatest,
                )
            ),
        )
        for item in result.scalars
    )
    yield table(
        f"{result.machine}: {result.calculation} of {result.samples} samples",
        "scalar",
        *heads,
        rows=rows,
    )
    for item in result.scalars:
        yield _worst(item)
    if result.passed is not None and result.yield_interval is not None and result.samples:
        low, high = (100 * end for end in result.yield_interval)
        share = 100 * result.passed / result.samples
        yield (
            f"yield: {result.passed} of {result.samples} pass, {share:.2f} % (95 %: {low:.2f} to {high:.2f} %)"
        )
    if result.sobol:
        figures = (
            (
                f"{i.scalar} by {i.name}",
                f"{i.first:.3f}",
                f"{i.first_interval:.3f}",
                f"{i.total:.3f}",
                f"{i.total_interval:.3f}",
            )
            for i in result.sobol
        )
        heads = [(head, "") for head in ("first", "±", "total", "±")]
        yield table(
            "Sobol indices, with half widths of 95 % intervals",
            "scalar by input",
            *heads,
            rows=figures,
        )
    for problem, count in sorted(result.problems.items(), key=lambda entry: -entry[1])[:NAMED]:
        yield f"{count} samples: {problem}"
    for first, last in result.set_aside:
        yield f"set aside: samples {first} to {last - 1}, which killed their workers"
    for line in result.advice:
        yield f"doubtful: {line}"


def _worst(item: ScalarSummary) -> str:
    inputs = ", ".join(
        f"{name} = {value:.7g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in item.greatest_inputs.items()
    )
    return f"greatest {item.name}: sample {item.greatest_at}" + (
        f" with {inputs}" if inputs else ""
    )
