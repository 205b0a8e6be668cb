"""Several logs fitted apart: which parameters move by more than their bars, and what that adds to the bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import scipy.special
from scipy.optimize import brentq

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.plain import OMITTED, PlainData, in_json, records
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.clustered_errors import COVERED
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.fitting import fit
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.mechanism.suggestions import listing

#: A parameter moves where logs scatter so by chance once in so many parameters of a sound machine,
#: ...
CHANCE = 1e-5
#: ... and logs differ by this share of the value: bars of long logs are small, and no model is
#: exact.
MATTERS = 0.02
#: Parameters that are named, those that move most first.
NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogComparison(PlainData, ReprMixin):
    """Base parameters of L logs, each fitted by itself.

    Attributes:
        logs: names of the logs that tell all parameters (L).
        left_out: problem of every other log: what it does not tell.
        base: the base parameters, the same of all logs.
        values, standard_deviations: (L, r), SI.
        means: (r,) of the logs, weighted by their bars and the scatter.
        scatter: (r,) standard deviation tau from log to log that the logs' own bars do not explain
            (Paule and Mandel 1982, Consensus values and weighting factors).
        mean_deviations: (r,) standard deviations of the means: tau and the logs' bars, scaled so
            that 1.96 of them cover 95 % with so few logs (Hartung and Knapp 2001, A refined method
            for the meta-analysis of controlled clinical trials; not below what the logs' bars and
            tau give).
        probabilities: (r,) that logs scatter as much by chance (chi squared, L - 1 degrees of
            freedom).
        largest: (r,) largest difference of a log from the mean of the others, in standard
            deviations.
    """

    logs: tuple[str, ...]
    left_out: tuple[Problem, ...] = field(metadata=OMITTED)
    base: BaseParameters = field(metadata=OMITTED)
    values: np.ndarray = field(metadata=OMITTED)
    standard_deviations: np.ndarray = field(metadata=OMITTED)
    means: np.ndarray = field(metadata=OMITTED)
    scatter: np.ndarray = field(metadata=OMITTED)
    mean_deviations: np.ndarray = field(metadata=OMITTED)
    probabilities: np.ndarray = field(metadata=OMITTED)
    largest: np.ndarray = field(metadata=OMITTED)

    @property
    def shares(self) -> np.ndarray:
        """(r,) share of the model's error in the squared bar of a log: tau^2 / (tau^2 + mean squared deviation)."""
        squares = np.mean(self.standard_deviations**2, axis=0)
        return np.asarray(
            self.scatter**2 / np.maximum(self.scatter**2 + squares, np.finfo(float).tiny)
        )

    @property
    def moved(self) -> np.ndarray:
        """(r,) which parameters move by more than their bars, and by a share of their value that matters."""
        apart = np.ptp(self.values, axis=0) > MATTERS * np.abs(self.means)
        return np.asarray((self.probabilities < CHANCE) & apart)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Logs that are left out, and the parameters that move."""
        moved = np.flatnonzero(self.moved)
        if not len(moved):
            return self.left_out
        worst = moved[np.argsort(-self.largest[moved])]
        texts = [
            f"{self.base.base[k].short_name()} ({self.largest[k]:.3g} standard deviations, "
            f"{self.values[:, k].min():.4g} to {self.values[:, k].max():.4g})"
            for k in worst[:NAMED]
        ]
        more = f" and {len(moved) - NAMED} more" if len(moved) > NAMED else ""
        what = f"{len(moved)} of {self.base.rank} base parameters move from log to log by more than their bars: "
        return (
            *self.left_out,
            Problem(
                "logs",
                what + listing(texts) + more,
                "the model leaves out what differs between the logs (load, warmth, speed, frequencies); use the "
                "bars with the model's error, or --errors logs",
            ),
        )

    @property
    @in_json()
    def base_parameters(self) -> list[dict[str, Any]]:
        """The comparison of every base parameter."""
        return records(
            name=self.base.names,
            values=self.values.T,
            standard_deviations=self.standard_deviations.T,
            mean=self.means,
            standard_deviation_with_model_error=self.mean_deviations,
            model_error=self.scatter,
            model_error_share=self.shares,
            probability_by_chance=self.probabilities,
            largest_difference_in_deviations=self.largest,
            moved=self.moved,
        )


@solving(IdentificationError)
def compare_logs(
    parts: Sequence[RegressionData],
    names: Sequence[str],
    base: BaseParameters,
    estimator: Estimator,
    *,
    errors: ErrorModel | None = None,
) -> LogComparison:
    """Fit every log by itself and compare.

    Args:
        parts: regression data of the logs.
        names: of the logs.
        base: base parameters of all logs together.
        estimator: of every fit.
        errors: what each log's own bars assume.

    Raises:
        IdentificationError: fewer than two logs tell all the parameters; with what each does not
            tell.
    """
    fitted, judged, problems = [], [], []
    for name, part in zip(names, parts, strict=True):
        try:
            fitted.append(fit(part, None, estimator, base=base, errors=errors))
            judged.append(name)
        except IdentificationError as error:
            problems += [
                replace(problem, where=f"{name}: {problem.where}") for problem in error.problems
            ]
    if len(fitted) < 2:
        what = f"{len(fitted)} of {len(parts)} logs tell all parameters by themselves: two or more are needed"
        raise IdentificationError(
            [Problem("logs", what, "give logs that excite alike"), *problems],
        )
    values = np.array([each.values for each in fitted])
    deviations = np.array([each.standard_deviations for each in fitted])
    floor = np.finfo(float).eps * np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)
    deviations = np.maximum(deviations, floor)
    count = len(fitted)
    own = deviations**-2.0
    common = np.sum(own * values, axis=0) / own.sum(axis=0)
    squares = np.sum(own * (values - common) ** 2, axis=0)
    scatter = _paule_mandel(values, deviations)
    weights = 1.0 / (deviations**2 + scatter**2)
    means = np.sum(weights * values, axis=0) / weights.sum(axis=0)
    spread = np.sum(weights * (values - means) ** 2, axis=0) / (count - 1)
    few = float(scipy.special.stdtrit(count - 1, COVERED) / scipy.special.ndtri(COVERED))
    # where logs happen to agree, their own bars stay
    sizes = np.sqrt(np.maximum(few**2 * spread, 1.0) / weights.sum(axis=0))
    return LogComparison(
        logs=tuple(judged),
        left_out=tuple(problems),
        base=base,
        values=values,
        standard_deviations=deviations,
        means=means,
        scatter=scatter,
        mean_deviations=sizes,
        probabilities=np.asarray(scipy.special.gammaincc(0.5 * (count - 1), 0.5 * squares)),
        largest=_largest(values, deviations),
    )


def _paule_mandel(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Tau (r,) at which the weighted squares about the weighted mean are what is expected, L - 1; zero where below."""

    def excess(square: float, values: np.ndarray, deviations: np.ndarray) -> float:
        weights = 1.0 / (deviations**2 + square)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2 - (len(values) - 1))

    squares = [
        brentq(
            excess, 0.0, len(values) * np.var(own, ddof=1), (own, bars), xtol=np.finfo(float).tiny
        )
        if excess(0.0, own, bars) > 0.0
        else 0.0
        for own, bars in zip(values.T, deviations.T, strict=True)
    ]
    return np.sqrt(squares)


def _largest(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Largest difference (r,) of a log from the weighted mean of the others, in standard deviations of it."""
    weights = deviations**-2.0
    rest = weights.sum(axis=0) - weights
    others = (np.sum(weights * values, axis=0) - weights * values) / rest
    return np.asarray(np.max(np.abs(values - others) / np.sqrt(deviations**2 + 1.0 / rest), axis=0))
