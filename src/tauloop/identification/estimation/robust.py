"""Robust estimation for data with outliers: iteratively reweighted least squares (Huber's weights).

Source: Huber 1981, Robust Statistics; Holland and Welsch 1977, Robust regression using iteratively
reweighted least-squares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError
from tauloop.common.options import option
from tauloop.common.records import dataclass
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.estimators import (
    ROUNDING_SHARE,
    Estimate,
    Estimator,
    WeightedLeastSquares,
    white,
)
from tauloop.identification.regression.data import RegressionData

#: Ratio of the standard deviation of normal errors to the median of their absolute values.
_NORMAL_OVER_MEDIAN = 1.482602218505602


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IterativelyReweightedLeastSquares(Estimator):
    """Huber's M-estimator, in which large residuals count linearly instead of quadratically.

    Each residual e of output k has the weight min(1, threshold s_k / |e|), with s_k = 1.4826 median
    |e|; outputs are weighted by 1 / s_k. The iteration starts with weighted least squares and ends
    when the parameters converge (Huber 1964, Robust estimation of a location parameter; Huber and
    Ronchetti 2009, Robust Statistics, section 7.8).

    Attributes:
        threshold: threshold in standard deviations. With 1.345, the efficiency is 95 % for normal
            errors.
        tolerance: the iteration ends when the predicted forces change by less than this fraction of
            their noise.
        repetitions: maximum number of iterations.
    """

    threshold: float = option(
        1.345, above=0.0, below=np.inf, remedy="give a positive number, 1.345 is usual"
    )
    tolerance: float = option(1e-8, above=0.0, below=1.0)
    repetitions: int = option(200, least=1)

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: the iteration does not converge.
        """
        weighted = WeightedLeastSquares().estimate_from(regression)
        values = weighted.values
        regressor = regression.regressor
        forces = regression.forces
        rank = regressor.shape[-1]
        rounding = ROUNDING_SHARE * np.sqrt(np.mean(forces**2, axis=0))
        min_noise = np.maximum(rounding, np.finfo(float).tiny)
        # With orthonormal columns, the normal equations lose no digits.
        triangles = weighted.weights[:, None, None] * regression.triangles[:, :, :-1]
        inverse = np.linalg.inv(np.linalg.qr(triangles.reshape(-1, rank), mode="r"))
        directions = regressor @ inverse
        for _ in range(self.repetitions):
            residual = forces - regressor @ values
            noise = np.maximum(_robust_noise(residual, regression.data), min_noise)
            weights = (_huber(residual, noise, self.threshold) / noise**2).ravel()
            flat = directions.reshape(-1, rank)
            change = np.linalg.solve(
                (flat * weights[:, None]).T @ flat, flat.T @ (weights * residual.ravel())
            )
            values = values + inverse @ change
            if np.linalg.norm(change) <= self.tolerance * np.sqrt(forces.size):
                break
        else:
            raise IdentificationError.of(
                "IterativelyReweightedLeastSquares",
                f"does not converge in {counted(self.repetitions, 'repetition')}",
                "allow more repetitions or a larger tolerance, or check the outputs for many outliers",
            )
        noise = np.maximum(_robust_noise(forces - regressor @ values, regression.data), min_noise)
        estimate = Estimate(
            values=values, covariance=np.eye(rank), noise=noise, weights=1.0 / noise
        )
        equations = self.equations(regression, estimate)
        # Beyond the threshold, a sample's term of Huber's equations does not depend on p.
        inside = np.abs(equations.residual) <= self.threshold * noise
        return white(replace(equations, regressor=regressor * inside[:, :, None]), estimate)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 H Y with Huber's weights H."""
        residual = regression.residual(estimate.values)
        weights = _huber(residual, estimate.noise, self.threshold) / estimate.noise**2
        return np.asarray(weights[:, :, None] * regression.regressor)


def _robust_noise(residual: np.ndarray, data: RegressionData) -> np.ndarray:
    """Return the noise (n_out,) of each output from the median of the absolute residuals."""
    medians = [
        np.median(np.abs(residual[data.rows(output), k])) for k, output in enumerate(data.kept)
    ]
    return _NORMAL_OVER_MEDIAN * np.array(medians)


def _huber(residual: np.ndarray, noise: np.ndarray, threshold: float) -> np.ndarray:
    """Return Huber's weights (N, n_out) of residuals."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(1.0, threshold * noise / np.abs(residual)))
