"""Least-squares estimators: options objects that turn data into values and standard deviations.

Source: Swevers, Ganseman, Tükel, De Schutter and Van Brussel 1997, Optimal robot excitation and
identification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import final

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.errors import IdentificationError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.error_models import AutocorrelatedErrors, EstimatingEquations

#: Noise below this share of the RMS force is rounding; it keeps the weights of noise-free data
#: finite.
ROUNDING_SHARE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(ReprMixin):
    """Values of r base parameters from n_out measured outputs.

    Attributes:
        values: (r,), SI.
        covariance: (r, r), of independent errors whose standard deviation is `noise`, unless `fit`
            was given another model of the errors.
        noise: (n_out,) standard deviation of the residual of each output, SI.
        weights: (n_out,) factor by which each output's equations were multiplied.
    """

    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    weights: np.ndarray

    @property
    def standard_deviations(self) -> np.ndarray:
        """(r,), SI."""
        deviations: np.ndarray = np.sqrt(np.diag(self.covariance))
        return deviations


class Estimator(ReprMixin, ABC):
    """How forces f = Y p + e are turned into p, by the r equations Z^T (f - Y p) = 0 with some instruments Z."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require(self, IdentificationError)

    @abstractmethod
    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """Estimate the base parameters.

        Args:
            regression: its `regressor` is Y (N, n_out, r), its `forces` are f (N, n_out), both of
                the measured outputs and in SI units, without weights.

        Raises:
            IdentificationError: the data cannot support it.
        """

    @abstractmethod
    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """Z (N, n_out, r) of the estimate; the regressor times squared weights in least squares."""

    def diagnostics(self, regression: BaseRegression, estimate: Estimate) -> tuple[Diagnostic, ...]:
        """What of an estimate only its method can judge; nothing in least squares."""
        return ()

    def equations(self, regression: BaseRegression, estimate: Estimate) -> EstimatingEquations:
        """The estimating equations at an estimate."""
        return EstimatingEquations.of(
            self.instruments(regression, estimate), regression, estimate.values
        )


def white(equations: EstimatingEquations, estimate: Estimate) -> Estimate:
    """The estimate with the covariance of independent errors of any size (White)."""
    return replace(estimate, covariance=AutocorrelatedErrors(lags=0).covariance(equations))


class CondensedEstimator(Estimator):
    """An estimator that needs no more of the samples than their triangles: a choice of the weights of the outputs."""

    __slots__ = ()

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`."""
        return self.estimate(regression.triangles, regression.samples)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 Y."""
        return regression.regressor * estimate.weights[:, None] ** 2

    @abstractmethod
    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """Estimate from condensed data.

        Args:
            triangles: (n_out, m, r + 1): for each measured output a matrix with the R^T R of
                [Y_base f], forces last.
            samples: number of samples, in all outputs or (n_out,) in each.

        Raises:
            IdentificationError: fewer samples than parameters.
        """


@final
@dataclass(frozen=True, slots=True)
class OrdinaryLeastSquares(CondensedEstimator):
    """Minimises the sum of all squared residuals, every output counted alike in SI units."""

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """See `Estimator`."""
        return weighted_solution(triangles, samples, np.ones(len(triangles)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedLeastSquares(CondensedEstimator):
    """Weights every output by the inverse standard deviation of its residual, found by repetition from ordinary ones.

    This is the usual method for robots (Gautier and Poignet 2001, eq. 12 and 13), with
    `reweightings` repetitions.

    Attributes:
        reweightings: how many times the weights are renewed.
    """

    reweightings: int = option(
        3,
        least=1,
        most=1000,
        remedy="give a whole number from 1 to 1000 (3 is usual), or use OrdinaryLeastSquares()",
    )

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """See `Estimator`."""
        result = OrdinaryLeastSquares().estimate(triangles, samples)
        least = ROUNDING_SHARE * np.linalg.norm(triangles[:, :, -1], axis=1) / np.sqrt(samples)
        for _ in range(self.reweightings):
            noise = np.maximum(result.noise, np.maximum(least, np.finfo(float).tiny))
            result = weighted_solution(triangles, samples, 1.0 / noise)
        return result


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise(CondensedEstimator):
    """Weights every output by the inverse of a noise that is known, such as from repeated periods (`average_periods`).

    Unlike residuals, that noise does not hold what the model leaves out (Swevers and others 1997,
    Optimal robot excitation and identification).

    Attributes:
        noise: standard deviation of every measured output's force, SI.
    """

    noise: tuple[float, ...] = option(
        above=0.0, below=np.inf, remedy="measure it, or use WeightedLeastSquares()"
    )

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """See `Estimator`."""
        if len(self.noise) != len(triangles):
            what = f"has {len(self.noise)} entries for {len(triangles)} measured outputs"
            raise IdentificationError.of("KnownNoise.noise", what, "give one for each")
        return weighted_solution(triangles, samples, 1.0 / np.asarray(self.noise))


def require_equations(n_outputs: int, samples: int | np.ndarray, rank: int) -> None:
    """Refuse data with no more equations than base parameters.

    Raises:
        IdentificationError: with both counts.
    """
    equations = int(np.broadcast_to(samples, n_outputs).sum())
    samples = int(np.max(samples))
    if equations <= rank:
        raise IdentificationError.of(
            "samples",
            f"{samples} samples of {n_outputs} measured outputs give {equations} equations for {rank} "
            "base parameters or more",
            f"take more than {rank // n_outputs} samples; ten times as many are needed for fair estimates",
        )


def weighted_solution(
    triangles: np.ndarray, samples: int | np.ndarray, weights: np.ndarray
) -> Estimate:
    """Least squares with given weights w_k of the outputs, and its covariance.

    With the weighted equations W Y p = W f, R the triangle of W Y and X = R^-1, an output's noise
    variance is s_k^2 = |f_k - Y_k p|^2 / (N - t_k), where t_k = |w_k Y_k X|^2 is the number of
    parameters it pays for (the t_k add up to r). The covariance is X (sum of w_k^2 s_k^2 (w_k Y_k
    X)^T (w_k Y_k X)) X^T: s^2 (Y^T Y)^-1 when all outputs are equally noisy, (Y^T W^2 Y)^-1 when
    w_k = 1 / s_k, and right in between too.

    Args:
        triangles, samples: as for `Estimator.estimate`.
        weights: (n_out,).

    Raises:
        IdentificationError: fewer samples than parameters.
    """
    n_outputs, _, columns = triangles.shape
    rank = columns - 1
    require_equations(n_outputs, samples, rank)
    weighted = weights[:, None, None] * triangles
    triangle = np.asarray(np.linalg.qr(weighted.reshape(-1, columns), mode="r"))
    inverse = solve_triangular(triangle[:rank, :rank], np.eye(rank))
    values = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank])
    squares = np.sum((triangles[:, :, :-1] @ values - triangles[:, :, -1]) ** 2, axis=1)
    directions = weighted[:, :, :-1] @ inverse
    freedom = samples - np.sum(directions**2, axis=(1, 2))
    if freedom.min() < 1e-6:
        raise IdentificationError.of(
            "samples",
            f"{int(np.min(samples))} samples leave an output without spare equations to judge its noise by",
            "take more samples; some ten times the number of parameters are needed for fair estimates",
        )
    noise = np.sqrt(squares / freedom)
    scaled = (weights * noise)[:, None, None] * directions
    half = scaled.reshape(-1, rank) @ inverse.T
    return Estimate(values=values, covariance=half.T @ half, noise=noise, weights=weights)
