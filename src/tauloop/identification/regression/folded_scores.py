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
from tauloop.common.shown import Shown
from tauloop.identification.estimation.error_models import ScoreSums, correlated, less_followed
from tauloop.identification.regression.data import RegressionData, split
from tauloop.identification.regression.folding import FoldedIdentification


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreDirections(Shown):
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

    def at(self, data: RegressionData) -> np.ndarray:
        """Steps (N, r) of all samples."""
        rows = data.unknown_rows(slice(None))  # (k, n + 1, N)
        regressor, forces = rows[:, self.independent], rows[:, -1]
        residual = forces - np.einsum("krn,r->kn", regressor, self.values)
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


def with_autocorrelation(
    folded: FoldedIdentification, sums: ScoreSums, spreads: Iterable[np.ndarray]
) -> FoldedIdentification:
    """The identification with the deviations of `AutocorrelatedErrors`.

    Args:
        folded: of all logs.
        sums: of all logs.
        spreads: of the logs, in their order.
    """
    outputs = len(folded.estimate.weights)
    covariance = less_followed(
        reduce(np.add, spreads), sums.squares, float(folded.samples), outputs
    )
    return replace(folded, estimate=replace(folded.estimate, covariance=covariance))
