"""Standard deviations for many logs whose errors have an unknown correlation.

The scores s_n = Z_n^T e_n (instruments times errors) need the estimate, so they cannot be computed
before all logs are folded, which means reduced to their QR factors. Each log is therefore read two
more times. The second reading gives the sums that determine the kernel. The third reading gives the
log's contribution to the covariance S of the scores' sum. The result equals that of
`AutocorrelatedErrors` with all samples in memory.

Source: Andrews 1991, Heteroskedasticity and autocorrelation consistent covariance matrix
estimation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

import numpy as np

from tauloop.common.errors import IdentificationError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.error_models import (
    MANY_SAMPLES,
    ScoreSums,
    correlated,
    residual_products,
    with_absorbed_errors,
    with_min_variances,
)
from tauloop.identification.regression.data import RegressionData, split_data
from tauloop.identification.regression.folding import FoldedIdentification


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreDirections(ReprMixin):
    """The data needed to compute parameter steps d_n = B Z_n^T e_n from samples.

    The step d_n is the contribution of a sample's score to the error of the parameters.

    Attributes:
        independent: indices of the base parameters' columns.
        values: (r,) values of the base parameters, SI.
        weights: weights of the measured outputs.
        sensitivity: matrix B (r, r).
    """

    independent: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    sensitivity: np.ndarray

    @classmethod
    def of(cls, folded: FoldedIdentification) -> ScoreDirections:
        """Return the directions of an identification."""
        estimate = folded.estimate
        return cls(
            independent=np.asarray(folded.base.independent),
            values=estimate.values,
            weights=estimate.weights,
            sensitivity=folded.sensitivity,
        )

    def rows_of(self, data: RegressionData) -> tuple[np.ndarray, np.ndarray]:
        """Return the base columns of the regressor (n_out, r, N), and the residual (n_out, N)."""
        rows = data.unknown_rows(slice(None))  # (k, n + 1, N)
        regressor, forces = rows[:, self.independent], rows[:, -1]
        return regressor, forces - np.einsum("krn,r->kn", regressor, self.values)

    def at(self, data: RegressionData) -> np.ndarray:
        """Return the steps (N, r) of all samples."""
        regressor, residual = self.rows_of(data)
        scores = np.einsum("k,krn,kn->nr", self.weights**2, regressor, residual)
        return np.asarray(scores @ self.sensitivity.T)


def _fitted_samples(data: RegressionData, share: float) -> RegressionData:
    """Return the first fraction `share` of the samples."""
    return data if share == 1.0 else split_data(data, share)[0]


@solving(IdentificationError)
def score_sums(data: RegressionData, directions: ScoreDirections, share: float = 1.0) -> ScoreSums:
    """Return the sums of a log that determine the kernel, in its second reading.

    Args:
        data: samples of the log.
        directions: directions from the identification of all logs.
        share: fraction of the samples that was fitted.
    """
    return ScoreSums.of(directions.at(_fitted_samples(data, share)))


@solving(IdentificationError)
def score_spread(
    data: RegressionData, directions: ScoreDirections, kernel: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """Return D^T K D (r, r) of a log's steps D (N, r), in its third reading.

    K is the Toeplitz matrix of the kernel.
    """
    d = directions.at(_fitted_samples(data, share))
    return np.asarray(d.T @ correlated(d, kernel))


@solving(IdentificationError)
def residual_sums(
    data: RegressionData, directions: ScoreDirections, lags: int, share: float = 1.0
) -> np.ndarray:
    """Return products (lags, n_out) of a log's residuals, in its second reading.

    See `residual_products`.
    """
    return residual_products(directions.rows_of(_fitted_samples(data, share))[1].T, lags)


@solving(IdentificationError)
def noise_spread(
    data: RegressionData, directions: ScoreDirections, correlation: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """Return Y_k^T C Y_k (n_out, r, r) of a log, in its third reading.

    C is the Toeplitz matrix of the residuals' correlation.
    """
    regressor, _ = directions.rows_of(_fitted_samples(data, share))
    return np.stack([columns @ correlated(columns.T, correlation) for columns in regressor])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseFloor(ReprMixin):
    """Lower bound of the variances, for errors of constant size with the residuals' correlation.

    See `AutocorrelatedErrors`.

    Attributes:
        squares: (n_out,) sum of squares of the residuals of each output.
        spread: (n_out, r, r) sum of Y_k^T C Y_k over all logs.
    """

    squares: np.ndarray
    spread: np.ndarray

    def variances(self, folded: FoldedIdentification) -> np.ndarray:
        """Return the variances (r,) of the parameters."""
        weights, sensitivity = folded.estimate.weights**2, folded.sensitivity
        total = np.zeros_like(sensitivity)
        for weight, squares, spread in zip(weights, self.squares, self.spread, strict=True):
            freedom = max(folded.samples - weight * float(np.trace(sensitivity @ spread)), 1.0)
            total += weight**2 * squares / freedom * spread
        return np.diag(sensitivity @ total @ sensitivity.T)


def with_autocorrelation(
    folded: FoldedIdentification,
    sums: ScoreSums,
    spreads: Iterable[np.ndarray],
    floor: NoiseFloor | None = None,
) -> FoldedIdentification:
    """Return the identification with the standard deviations of `AutocorrelatedErrors`.

    Args:
        folded: identification of all logs.
        sums: score sums of all logs.
        spreads: `score_spread` of each log, in the order of the logs.
        floor: lower bound of the variances; None if forces passed no filter of known length.
    """
    outputs = len(folded.estimate.weights)
    total = reduce(np.add, spreads)
    covariance = with_absorbed_errors(total, sums.squares, float(folded.samples), outputs)
    if floor is not None and folded.samples <= MANY_SAMPLES:
        covariance = with_min_variances(covariance, floor.variances(folded))
    return replace(folded, estimate=replace(folded.estimate, covariance=covariance))
