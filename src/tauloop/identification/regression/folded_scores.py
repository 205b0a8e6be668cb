"""Deviations of many logs when nothing is known of their errors' correlation: each log is read twice more.

The scores s_n = Z_n^T e_n follow from the estimate: there are none before all logs are folded. The second reading
of a log gives the sums by which the kernel is chosen, the third its share of sum over l of k_l (G_l + G_l^T): what
`AutocorrelatedErrors` makes of all samples one behind the other.

Source: Andrews 1991, Heteroskedasticity and autocorrelation consistent covariance matrix estimation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

import numpy as np

from tauloop.identification.estimation.error_models import correlated, less_followed, spectral_kernel
from tauloop.identification.regression.data import RegressionData, split
from tauloop.identification.regression.folding import FoldedIdentification, seam
from tauloop.identification.regression.threads import one_thread
from tauloop.records import dataclass
from tauloop.shown import Shown


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSums(Shown):
    """What the kernel is chosen by.

    Attributes:
        samples: N.
        squares: sums of d_n^2 (r,).
        products: sums of d_n d_(n+1) (r,).
        first, last: d of the first and the last sample (r,).
    """

    samples: int
    squares: np.ndarray
    products: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def beside(self, other: ScoreSums) -> ScoreSums:
        """Of these samples and those behind them."""
        return ScoreSums(
            samples=self.samples + other.samples,
            squares=self.squares + other.squares,
            products=self.products + other.products + self.last * other.first,
            first=self.first,
            last=other.last,
        )

    @property
    def kernel(self) -> np.ndarray:
        """Kernel (L,): that of `quadratic_spectral`."""
        power, after = self.squares - self.last**2, self.squares - self.first**2
        rho = np.clip(self.products / np.maximum(power, np.finfo(float).tiny), -0.97, 0.97)
        variance = (after - 2.0 * rho * self.products + rho**2 * power) / self.samples
        return spectral_kernel(self.samples, self.squares, rho, variance)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSpread(Shown):
    """What errors of any correlation do to the parameters.

    Attributes:
        total: D^T K D (r, r), K the Toeplitz matrix of the kernel.
        head, tail: the first and the last L - 1 rows of D, fewer where there are fewer.
    """

    total: np.ndarray
    head: np.ndarray
    tail: np.ndarray

    def beside(self, other: ScoreSpread, kernel: np.ndarray) -> ScoreSpread:
        """Of these samples and those behind them, with what both have in common across the seam."""
        across, edge = seam(self.tail[None], other.head[None], kernel)[0], len(kernel) - 1
        return ScoreSpread(
            total=self.total + other.total + across + across.T,
            head=np.concatenate([self.head, other.head])[:edge],
            tail=np.concatenate([self.tail, other.tail])[-edge:] if edge else other.tail,
        )


def _fitted(data: RegressionData, share: float) -> RegressionData:
    return data if share == 1.0 else split(data, share)[0]


@one_thread
def score_sums(data: RegressionData, directions: ScoreDirections, share: float = 1.0) -> ScoreSums:
    """The second reading of a log: `share` of its samples was fitted."""
    d = directions.at(_fitted(data, share))
    return ScoreSums(
        samples=len(d),
        squares=np.sum(d**2, axis=0),
        products=np.sum(d[1:] * d[:-1], axis=0),
        first=d[0],
        last=d[-1],
    )


@one_thread
def score_spread(
    data: RegressionData, directions: ScoreDirections, kernel: np.ndarray, share: float = 1.0
) -> ScoreSpread:
    """The third reading of a log."""
    d = directions.at(_fitted(data, share))
    edge = min(len(kernel) - 1, len(d))
    return ScoreSpread(total=d.T @ correlated(d, kernel), head=d[:edge].copy(), tail=d[len(d) - edge :].copy())


def with_autocorrelation(
    folded: FoldedIdentification, sums: ScoreSums, spreads: Iterable[ScoreSpread]
) -> FoldedIdentification:
    """The identification with the deviations of `AutocorrelatedErrors`.

    Args:
        folded: of all logs.
        sums: of all logs.
        spreads: of the logs, in their order.
    """
    kernel = sums.kernel
    whole = reduce(lambda before, after: before.beside(after, kernel), spreads)
    outputs = len(folded.estimate.weights)
    covariance = less_followed(whole.total, sums.squares, float(folded.samples), outputs)
    return replace(folded, estimate=replace(folded.estimate, covariance=covariance))
