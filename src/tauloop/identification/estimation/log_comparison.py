"""Comparison of logs fitted separately: parameters that differ by more than their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from scipy.special import gammaincc

from tauloop.common.errors import IdentificationError, Problem, solving
from tauloop.common.plain import OMITTED, PlainData, in_json, records
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.clustered_errors import student_factor
from tauloop.identification.estimation.error_models import ErrorModel
from tauloop.identification.estimation.estimators import Estimator
from tauloop.identification.estimation.fitting import fit_regression
from tauloop.identification.regression.base_parameters import BaseParameters
from tauloop.identification.regression.data import RegressionData
from tauloop.mechanism.suggestions import listing

#: A parameter differs between logs if its scatter occurs by chance with less than this probability.
MAX_CHANCE = 1e-5
#: The logs must also differ by more than this fraction of the value, because standard deviations
#: from long logs are small, and no model is exact.
MIN_RELATIVE_DIFFERENCE = 0.02
#: Number of parameters that a message names, those with the largest difference first.
MAX_NAMED_PARAMETERS = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogComparison(PlainData, ReprMixin):
    """Base parameters of L logs that were fitted separately.

    Attributes:
        logs: names of the L logs that determine all parameters.
        left_out: problems of the other logs: the parameters that they do not determine.
        base: the base parameters, the same for all logs.
        values, standard_deviations: (L, r), SI.
        means: (r,) means over the logs, weighted by their standard deviations and the scatter.
        scatter: (r,) standard deviation tau between logs in addition to the standard deviations
            sigma of each log (Paule and Mandel 1982, Consensus values and weighting factors).
        mean_deviations: (r,) standard deviations of the means, from tau and the logs' standard
            deviations. They are scaled so that 1.96 of them cover 95 % with few logs, and never
            reduced (Hartung and Knapp 2001, A refined method for the meta-analysis of controlled
            clinical trials).
        probabilities: (r,) probability of at least this scatter by chance (chi-squared distribution
            with L - 1 degrees of freedom).
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
        """Fraction (r,) of model error in the variance of a log: tau^2 / (tau^2 + sigma^2).

        Here sigma^2 is the mean of the logs' variances.
        """
        squares = np.mean(self.standard_deviations**2, axis=0)
        total = np.maximum(self.scatter**2 + squares, np.finfo(float).tiny)
        return np.asarray(self.scatter**2 / total)

    @property
    def moved(self) -> np.ndarray:
        """True (r,) for parameters that differ by more than their uncertainty.

        They must also differ by the fraction `MIN_RELATIVE_DIFFERENCE` of their value.
        """
        is_relevant = np.ptp(self.values, axis=0) > MIN_RELATIVE_DIFFERENCE * np.abs(self.means)
        return np.asarray((self.probabilities < MAX_CHANCE) & is_relevant)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the logs that are left out, and the parameters that differ between logs."""
        moved = np.flatnonzero(self.moved)
        if not len(moved):
            return self.left_out
        worst = moved[np.argsort(-self.largest[moved])]
        texts = [
            f"{self.base.base[k].short_name()} ({self.largest[k]:.3g} standard deviations, "
            f"{self.values[:, k].min():.4g} to {self.values[:, k].max():.4g})"
            for k in worst[:MAX_NAMED_PARAMETERS]
        ]
        unnamed = len(moved) - MAX_NAMED_PARAMETERS
        more = f" and {unnamed} more" if unnamed > 0 else ""
        return (
            *self.left_out,
            Problem(
                "logs",
                f"{len(moved)} of {self.base.rank} base parameters differ between logs by more than their standard "
                f"deviations: {listing(texts)}{more}",
                "the model lacks an effect that differs between the logs (load, temperature, speed, frequencies); "
                "use the standard deviations with model error, or --errors logs",
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
    """Fit every log separately and return the comparison of the parameters.

    Args:
        parts: regression data of the logs.
        names: names of the logs.
        base: base parameters of all logs together.
        estimator: estimator of every fit.
        errors: error model of every fit.

    Raises:
        IdentificationError: fewer than two logs determine all the parameters; lists the parameters
            that each log does not determine.
    """
    fitted = []
    fitted_names = []
    problems = []
    for name, part in zip(names, parts, strict=True):
        try:
            fitted.append(fit_regression(part, None, estimator, base=base, errors=errors))
            fitted_names.append(name)
        except IdentificationError as error:
            problems += [
                replace(problem, where=f"{name}: {problem.where}") for problem in error.problems
            ]
    if len(fitted) < 2:
        too_few = Problem(
            "logs",
            f"{len(fitted)} of {len(parts)} logs determine all parameters; at least 2 are needed",
            "give logs that excite the same parameters",
        )
        raise IdentificationError([too_few, *problems])
    values = np.array([fit.values for fit in fitted])
    deviations = np.array([fit.standard_deviations for fit in fitted])
    floor = np.finfo(float).eps * np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)
    deviations = np.maximum(deviations, floor)
    count = len(fitted)
    log_weights = deviations**-2.0
    common = np.sum(log_weights * values, axis=0) / log_weights.sum(axis=0)
    squares = np.sum(log_weights * (values - common) ** 2, axis=0)
    scatter = _paule_mandel(values, deviations)
    weights = 1.0 / (deviations**2 + scatter**2)
    means = np.sum(weights * values, axis=0) / weights.sum(axis=0)
    spread = np.sum(weights * (values - means) ** 2, axis=0) / (count - 1)
    # The factor is at least 1, so that logs that agree by chance do not reduce the deviations.
    factors = np.maximum(student_factor(count) ** 2 * spread, 1.0)
    return LogComparison(
        logs=tuple(fitted_names),
        left_out=tuple(problems),
        base=base,
        values=values,
        standard_deviations=deviations,
        means=means,
        scatter=scatter,
        mean_deviations=np.sqrt(factors / weights.sum(axis=0)),
        probabilities=np.asarray(gammaincc(0.5 * (count - 1), 0.5 * squares)),
        largest=_largest_differences(values, deviations),
    )


def _paule_mandel(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the scatter tau (r,) between logs.

    With tau, the weighted sum of squares about the weighted mean has its expected value L - 1. Tau
    is zero if the sum is below that value even without scatter.
    """
    from scipy.optimize import brentq  # takes longer to import than most fits

    def excess(square: float, values: np.ndarray, deviations: np.ndarray) -> float:
        weights = 1.0 / (deviations**2 + square)
        mean = weights @ values / weights.sum()
        return float(weights @ (values - mean) ** 2 - (len(values) - 1))

    squares = np.zeros(values.shape[1])
    for k, arguments in enumerate(zip(values.T, deviations.T, strict=True)):
        if excess(0.0, *arguments) > 0.0:
            upper = len(values) * np.var(values[:, k], ddof=1)
            squares[k] = brentq(excess, 0.0, upper, arguments, xtol=np.finfo(float).tiny)
    return np.sqrt(squares)


def _largest_differences(values: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Return the largest difference (r,) of a log from the weighted mean of the other logs.

    The difference is divided by its standard deviation.
    """
    weights = deviations**-2.0
    other_weights = weights.sum(axis=0) - weights
    other_means = (np.sum(weights * values, axis=0) - weights * values) / other_weights
    difference_deviations = np.sqrt(deviations**2 + 1.0 / other_weights)
    return np.asarray(np.max(np.abs(values - other_means) / difference_deviations, axis=0))
