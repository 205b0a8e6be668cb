"""What a study says: means, quantiles, the worst sample with its inputs, yield, and Sobol indices.

All go over the samples in the order of their numbers, a column at a time, whoever has computed them
and when.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.common.shown import ReprMixin
from tauloop.study.design import SobolIndex, sample_design, sobol_indices
from tauloop.study.file import Study
from tauloop.study.folder import SAMPLE, StudyFolder
from tauloop.study.variations import inputs_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarSummary(ReprMixin):
    """One scalar over all samples that have it.

    Attributes:
        name: of the scalar.
        unit: its SI unit, "" where nothing is known.
        count: samples.
        mean, deviation: and the standard deviation.
        least, greatest: and the greatest.
        quantiles: by share of samples below.
        least_at, greatest_at: number of the sample that has it.
        least_inputs, greatest_inputs: its inputs.
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
    """What a study says.

    Attributes:
        machine: its name.
        folder: where its parts lie.
        calculation: what was computed.
        samples: how many there are.
        scalars: each over all samples.
        passed: samples within all limits; None where there are none.
        yield_interval: 95 % interval of their share (Wilson).
        sobol: indices, where the design is for them.
        problems: what was wrong with samples, and how many had it.
        set_aside: ranges of samples, first and last, whose workers died.
    """

    machine: str
    folder: str
    calculation: str
    samples: int
    scalars: tuple[ScalarSummary, ...]
    passed: int | None
    yield_interval: tuple[float, float] | None
    sobol: tuple[SobolIndex, ...]
    problems: Mapping[str, int]
    set_aside: tuple[tuple[int, int], ...]

    def variables(self) -> Iterable[Variable]:
        """Figures of all scalars."""
        names = ("mean", "deviation", "least", "greatest")
        figures = {name: [getattr(item, name) for item in self.scalars] for name in names}
        return rows(
            "scalar",
            [item.name for item in self.scalars],
            [item.unit for item in self.scalars],
            **figures,
        )


def reduced(study: Study, folder: StudyFolder, set_aside: Iterable[tuple[int, int]]) -> StudyResult:
    """What a study says by its parts.

    Args:
        study: the study.
        folder: its parts.
        set_aside: ranges of samples that could not be computed.

    Source of the yield's interval: Wilson 1927, Journal of the American Statistical Association 22.
    """
    from scipy.stats import binomtest

    sample = folder.column(SAMPLE).astype(int, copy=False)
    problems, passes = folder.problems()
    bad = len(passes) - int(passes.sum())
    summaries, indices = [], list[SobolIndex]()
    for name, unit in study.scalars.items():
        values = np.asarray(folder.column(f"output.{name}"), dtype=float)
        known = np.flatnonzero(np.isfinite(values))
        if len(known):
            summaries.append(_summary(study, name, unit, values[known], sample[known]))
        if name in study.limits:
            lower, upper = study.limits[name]
            with np.errstate(invalid="ignore"):
                passes &= (values >= lower) & (values <= upper)
        if study.design == "sobol" and len(known) == study.count:
            indices += sobol_indices(
                name, tuple(item.name for item in study.drawn), values, study.seed
            )
    passed = int(passes.sum()) if study.limits else None
    interval = (
        binomtest(passed or 0, len(sample)).proportion_ci(method="wilson") if len(sample) else None
    )
    without = len(study.scalars) * len(study.drawn) - len(indices) if study.design == "sobol" else 0
    return StudyResult(
        machine=study.machine,
        folder=str(Path(folder.path)),
        calculation=study.result,
        samples=len(sample),
        scalars=tuple(summaries),
        passed=passed,
        yield_interval=None
        if passed is None or interval is None
        else (float(interval.low), float(interval.high)),
        sobol=tuple(indices),
        problems=problems,
        set_aside=tuple(set_aside),
        diagnostics=tuple(
            diagnostic(name, value, at_most=float(most), advice=advice)
            for name, value, most, advice in (
                (
                    "samples missing",
                    study.count - len(sample),
                    0,
                    "resume the study; see what was set aside",
                ),
                (
                    "samples with a problem",
                    bad,
                    max(len(passes) - 1, 0),
                    "none went well: see what is wrong with them",
                ),
                (
                    "Sobol indices missing",
                    without,
                    0,
                    "they need every sample: resume, or vary less",
                ),
            )
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
    mean = math.fsum(values) / len(values)
    low, high = int(np.argmin(values)), int(np.argmax(values))
    shares = np.quantile(values, study.quantiles).tolist()
    return ScalarSummary(
        name=name,
        unit=unit,
        count=len(values),
        mean=mean,
        deviation=math.sqrt(math.fsum((values - mean) ** 2) / max(len(values) - 1, 1)),
        quantiles={
            f"{share:.15g}": value for share, value in zip(study.quantiles, shares, strict=True)
        },
        least=float(values[low]),
        greatest=float(values[high]),
        least_at=int(sample[low]),
        greatest_at=int(sample[high]),
        least_inputs=_inputs(study, int(sample[low])),
        greatest_inputs=_inputs(study, int(sample[high])),
    )


def _inputs(study: Study, number: int) -> dict[str, Any]:
    """Inputs of one sample, which follow from the seed and its number."""
    inputs = inputs_of(study.variations, study.seed, number, number + 1, sample_design(study))
    return {
        name: values[0] if isinstance(values[0], str) else float(values[0])
        for name, values in inputs.items()
    }
