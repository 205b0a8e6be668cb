"""Summary of a study: means, quantiles, extreme samples, yield, and Sobol indices.

All values are computed column by column in the order of sample numbers, so that they do not depend
on how the samples were distributed to workers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import item_rows
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.study.design import SobolIndex, sample_design, sobol_indices
from tauloop.study.file import Study
from tauloop.study.folder import SAMPLE, StudyFolder
from tauloop.study.variations import inputs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSummary(ReprMixin):
    """Summary of one stored number over all samples in which it is finite.

    Attributes:
        name: name of the scalar.
        unit: SI unit, "" if unknown.
        count: number of these samples.
        mean: average of the values.
        deviation: standard deviation.
        least: smallest value.
        greatest: largest value.
        quantiles: quantiles, by the fraction of samples below them.
        least_at: number of the sample with the smallest value.
        greatest_at: number of the sample with the largest value.
        least_inputs: inputs of the sample with the smallest value.
        greatest_inputs: inputs of the sample with the largest value.
    """

    name: str
    unit: str
    count: int
    mean: float
    deviation: float
    least: float
    greatest: float
    quantiles: Mapping[str, float]
    least_at: int
    greatest_at: int
    least_inputs: Mapping[str, Any]
    greatest_inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult(Result):
    """The results of a study.

    Attributes:
        machine: name of the machine.
        folder: folder of the study.
        calculation: name of the calculation.
        samples: number of computed samples.
        scalars: summaries of all scalars.
        passed: number of samples within all limits; None if there are no limits.
        yield_interval: 95 % interval of the fraction of passing samples (Wilson).
        sobol: Sobol indices; empty unless the study has a design for them.
        problems: number of samples by problem.
        set_aside: ranges of samples (first, end) that were skipped because their workers died.
    """

    machine: str
    folder: str
    calculation: str
    samples: int
    scalars: tuple[ScalarSummary, ...] = field(
        metadata=item_rows("scalar", "mean", "deviation", "least", "greatest", unit="unit")
    )
    passed: int | None
    yield_interval: tuple[float, float] | None
    sobol: tuple[SobolIndex, ...]
    problems: Mapping[str, int]
    set_aside: tuple[tuple[int, int], ...]


def summarize(
    study: Study, folder: StudyFolder, set_aside: Iterable[tuple[int, int]]
) -> StudyResult:
    """Return the results of a study from its folder.

    Args:
        study: study to which the folder belongs.
        folder: folder with the stored samples.
        set_aside: ranges of samples that were skipped because their workers died.

    Source of the confidence interval of the yield: Wilson 1927, Journal of the American Statistical
    Association 22.
    """
    from scipy.stats import binomtest

    sample = folder.column(SAMPLE).astype(int, copy=False)
    problems, is_passing = folder.problems()
    problem_count = len(is_passing) - int(is_passing.sum())
    summaries = []
    indices: list[SobolIndex] = []
    for name, unit in study.scalars.items():
        values = np.asarray(folder.column(f"output.{name}"), dtype=float)
        finite_rows = np.flatnonzero(np.isfinite(values))
        if len(finite_rows):
            summaries.append(_summary(study, name, unit, values[finite_rows], sample[finite_rows]))
        if name in study.limits:
            lower, upper = study.limits[name]
            with np.errstate(invalid="ignore"):
                is_passing &= (values >= lower) & (values <= upper)
        if study.design == "sobol" and len(finite_rows) == study.count:
            indices += sobol_indices(
                name, tuple(item.name for item in study.drawn), values, study.seed
            )
    passed = int(is_passing.sum()) if study.limits else None
    interval = None
    if passed is not None and len(sample):
        wilson = binomtest(passed, len(sample)).proportion_ci(method="wilson")
        interval = (float(wilson.low), float(wilson.high))
    missing_indices = 0
    if study.design == "sobol":
        missing_indices = len(study.scalars) * len(study.drawn) - len(indices)
    return StudyResult(
        machine=study.machine,
        folder=str(Path(folder.path)),
        calculation=study.result,
        samples=len(sample),
        scalars=tuple(summaries),
        passed=passed,
        yield_interval=interval,
        sobol=tuple(indices),
        problems=problems,
        set_aside=tuple(set_aside),
        diagnostics=(
            diagnostic(
                "samples missing",
                study.count - len(sample),
                at_most=0.0,
                advice="resume the study; see which samples were skipped",
            ),
            diagnostic(
                "samples with a problem",
                problem_count,
                at_most=float(max(len(is_passing) - 1, 0)),
                advice="no sample succeeded: read the problems of the samples",
            ),
            diagnostic(
                "Sobol indices missing",
                missing_indices,
                at_most=0.0,
                advice="every sample is needed: resume the study, or use smaller variations",
            ),
        ),
        provenance=provenance(
            options={"study": study.digest, "seed": study.seed, "design": study.design},
            inputs={"samples": study.count},
            packages=("numpy", "scipy", "casadi", "pyarrow"),
        ),
    )


def _summary(
    study: Study, name: str, unit: str, values: np.ndarray, sample: np.ndarray
) -> ScalarSummary:
    """Return the summary of a scalar from its finite values (N,) and their sample numbers (N,)."""
    mean = math.fsum(values) / len(values)
    lowest = int(np.argmin(values))
    highest = int(np.argmax(values))
    quantiles = np.quantile(values, study.quantiles).tolist()
    return ScalarSummary(
        name=name,
        unit=unit,
        count=len(values),
        mean=mean,
        deviation=math.sqrt(math.fsum((values - mean) ** 2) / max(len(values) - 1, 1)),
        quantiles={
            f"{fraction:.15g}": value
            for fraction, value in zip(study.quantiles, quantiles, strict=True)
        },
        least=float(values[lowest]),
        greatest=float(values[highest]),
        least_at=int(sample[lowest]),
        greatest_at=int(sample[highest]),
        least_inputs=_inputs(study, int(sample[lowest])),
        greatest_inputs=_inputs(study, int(sample[highest])),
    )


def _inputs(study: Study, number: int) -> dict[str, Any]:
    """Return the inputs of one sample, which follow from the seed and the sample's number."""
    inputs = inputs_of(study.variations, study.seed, number, number + 1, sample_design(study))
    return {
        name: values[0] if isinstance(values[0], str) else float(values[0])
        for name, values in inputs.items()
    }
