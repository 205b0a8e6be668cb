"""Robust estimation: iteratively reweighted least squares with Huber's weights, against outliers.

Source: Huber 1981, Robust Statistics; Holland and Welsch 1977, Robust regression using iteratively
reweighted least- squares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

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

#: Standard deviation of normal errors over the median of their absolute values.
_NORMAL_OVER_MEDIAN = 1.482602218505602


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IterativelyReweightedLeastSquares(Estimator):
    """Huber's M-estimator: samples with a large residual count by its size only, not by its square.

    Each residual e of output k has the weight min(1, threshold s_k / |e|), with s_k = 1.4826 median
    |e|; outputs are weighted by 1 / s_k. Repeated from weighted least squares until the parameters
    rest (Huber 1964, Robust estimation of a location parameter; Huber and Ronchetti 2009, Robust
    Statistics, section 7.8).

    Attributes:
        threshold: in standard deviations; 1.345 loses 5 % of efficiency for normal errors.
        tolerance: largest change of the predicted forces from one repetition to the next, over
            their noise.
        repetitions: at most so many.
    """

    threshold: float = option(
        1.345, above=0.0, below=np.inf, remedy="give a positive number, 1.345 is usual"
    )
    tolerance: float = option(1e-8, above=0.0, below=1.0)
    repetitions: int = option(200, least=1)

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`.

        Raises:
            IdentificationError: it does not come to rest.
        """
        weighted = WeightedLeastSquares().estimate_from(regression)
        values = weighted.values
        regressor, forces = regression.regressor, regression.forces
        rank = regressor.shape[-1]
        least = np.maximum(
            ROUNDING_SHARE * np.sqrt(np.mean(forces**2, axis=0)), np.finfo(float).tiny
        )
        # Directions in which the regressor's columns are orthonormal: normal equations then lose no
        # digits.
        whole = weighted.weights[:, None, None] * regression.triangles[:, :, :-1]
        inverse = np.linalg.inv(np.linalg.qr(whole.reshape(-1, rank), mode="r"))
        directions = regressor @ inverse
        for _ in range(self.repetitions):
            residual = forces - regressor @ values
            noise = np.maximum(_robust_noise(residual, regression.data), least)
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
                f"does not come to rest in {self.repetitions} repetitions",
                "allow more repetitions or a larger tolerance, or look for outputs with many outliers",
            )
        noise = np.maximum(_robust_noise(forces - regressor @ values, regression.data), least)
        estimate = Estimate(
            values=values, covariance=np.eye(rank), noise=noise, weights=1.0 / noise
        )
        equations = self.equations(regression, estimate)
        # samples beyond the threshold pull with a constant force: Huber's equations do not change
        # with p there
        inside = np.abs(equations.residual) <= self.threshold * noise
        return white(replace(equations, regressor=regressor * inside[:, :, None]), estimate)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 H Y with Huber's weights H."""
        weights = (
            _huber(regression.residual(estimate.values), estimate.noise, self.threshold)
            / estimate.noise**2
        )
        return np.asarray(weights[:, :, None] * regression.regressor)


def _robust_noise(residual: np.ndarray, data: RegressionData) -> np.ndarray:
    medians = [
        np.median(np.abs(residual[data.rows(output), k])) for k, output in enumerate(data.kept)
    ]
    return _NORMAL_OVER_MEDIAN * np.array(medians)


def _huber(residual: np.ndarray, noise: np.ndarray, threshold: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.minimum(1.0, threshold * noise / np.abs(residual)))
