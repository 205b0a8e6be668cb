"""Deviations of many logs when nothing is known of their errors' correlation: each log is read twice more.

The scores s_n = Z_n^T e_n follow from the estimate: there are none before all logs are folded. The
second reading of a log gives the sums by which the kernel is chosen, the third its share of sum
over l of k_l (G_l + G_l^T), as `AutocorrelatedErrors` does with all samples at hand.

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
    less_followed,
    not_below,
    residual_products,
)
from tauloop.identification.regression.data import RegressionData, split
from tauloop.identification.regression.folding import FoldedIdentification


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreDirections(ReprMixin):
    """From samples to steps of the parameters d_n = B Z_n^T e_n.

    Attributes:
        independent: columns of the base parameters.
        values: of the base parameters (r,), SI.
        weights: of the measured outputs.
        sensitivity: B (r, r).
    """

    independent: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    sensitivity: np.ndarray

    @classmethod
    def of(cls, folded: FoldedIdentification) -> ScoreDirections:
        """Those of an identification."""
        estimate = folded.estimate
        return cls(
            independent=np.asarray(folded.base.independent),
            values=estimate.values,
            weights=estimate.weights,
            sensitivity=folded.sensitivity,
        )

    def rows_of(self, data: RegressionData) -> tuple[np.ndarray, np.ndarray]:
        """Return the regressor (n_out, r, N) of the base parameters, and the residual (n_out, N)."""
        rows = data.unknown_rows(slice(None))  # (k, n + 1, N)
        regressor, forces = rows[:, self.independent], rows[:, -1]
        return regressor, forces - np.einsum("krn,r->kn", regressor, self.values)

    def at(self, data: RegressionData) -> np.ndarray:
        """Return the steps (N, r) of all samples."""
        regressor, residual = self.rows_of(data)
        scores = np.einsum("k,krn,kn->nr", self.weights**2, regressor, residual)
        return np.asarray(scores @ self.sensitivity.T)


def _fitted(data: RegressionData, share: float) -> RegressionData:
    return data if share == 1.0 else split(data, share)[0]


@solving(IdentificationError)
def score_sums(data: RegressionData, directions: ScoreDirections, share: float = 1.0) -> ScoreSums:
    """The second reading of a log: `share` of its samples was fitted."""
    return ScoreSums.of(directions.at(_fitted(data, share)))


@solving(IdentificationError)
def score_spread(
    data: RegressionData, directions: ScoreDirections, kernel: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """The third reading of a log: D^T K D (r, r) of its steps D (N, r), K the Toeplitz matrix of the kernel."""
    d = directions.at(_fitted(data, share))
    return np.asarray(d.T @ correlated(d, kernel))


@solving(IdentificationError)
def residual_sums(
    data: RegressionData, directions: ScoreDirections, lags: int, share: float = 1.0
) -> np.ndarray:
    """Return products (lags, n_out) of the residuals of a log, for its second reading (see `residual_products`)."""
    return residual_products(directions.rows_of(_fitted(data, share))[1].T, lags)


@solving(IdentificationError)
def noise_spread(
    data: RegressionData, directions: ScoreDirections, correlation: np.ndarray, share: float = 1.0
) -> np.ndarray:
    """Return Y_k^T C Y_k (n_out, r, r) of a log, C of the residuals' correlation, for its third reading."""
    regressor, _ = directions.rows_of(_fitted(data, share))
    return np.stack([columns @ correlated(columns.T, correlation) for columns in regressor])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseFloor(ReprMixin):
    """Errors of one size with the residuals' own correlation: no variance is smaller (see `AutocorrelatedErrors`).

    Attributes:
        squares: sum of squares of the residuals of each output (n_out,).
        spread: Y_k^T C Y_k (n_out, r, r) of all logs.
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
    """Return the identification with the deviations of `AutocorrelatedErrors`.

    Args:
        folded: of all logs.
        sums: of all logs.
        spreads: of the logs, in their order.
        floor: below which no variance is; None where forces passed no filter of known length.
    """
    outputs = len(folded.estimate.weights)
    covariance = less_followed(
        reduce(np.add, spreads), sums.squares, float(folded.samples), outputs
    )
    if floor is not None and folded.samples <= MANY_SAMPLES:
        covariance = not_below(covariance, floor.variances(folded))
    return replace(folded, estimate=replace(folded.estimate, covariance=covariance))
