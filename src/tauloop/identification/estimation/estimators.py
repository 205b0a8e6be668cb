"""Least-squares estimators of the base parameters' values and standard deviations.

Source: Swevers, Ganseman, Tükel, De Schutter and Van Brussel 1997, Optimal robot excitation and
identification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import final

import numpy as np
from scipy.linalg import solve_triangular

from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.identification.estimation.error_models import AutocorrelatedErrors, EstimatingEquations

#: The noise of an output is at least this fraction of its RMS force, so that the weights of
#: noise-free data are finite.
ROUNDING_SHARE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(ReprMixin):
    """Values of r base parameters estimated from n_out measured outputs.

    Attributes:
        values: (r,), SI.
        covariance: (r, r) for independent errors with the standard deviation `noise`, unless
            `fit_regression` uses another error model.
        noise: (n_out,) standard deviation of the residual of each output, SI.
        weights: (n_out,) factor by which the equations of each output were multiplied.
    """

    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    weights: np.ndarray

    @property
    def standard_deviations(self) -> np.ndarray:
        """Standard deviations (r,) of the values, SI."""
        deviations: np.ndarray = np.sqrt(np.diag(self.covariance))
        return deviations


class Estimator(ReprMixin, ABC):
    """A method to estimate the base parameters p from forces f = Y p + e.

    An estimator solves the r equations Z^T (f - Y p) = 0 with instruments Z that depend on the
    method.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the ranges of the options."""
        require(self, IdentificationError)

    @abstractmethod
    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """Return the estimate of the base parameters.

        Args:
            regression: regressor Y (N, n_out, r) and forces f (N, n_out) of the measured outputs,
                in SI units and without weights.

        Raises:
            IdentificationError: the data do not determine the estimate.
        """

    @abstractmethod
    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """Return the instruments Z (N, n_out, r) of an estimate.

        In least squares, Z is the regressor times the squared weights.
        """

    def diagnostics(self, regression: BaseRegression, estimate: Estimate) -> tuple[Diagnostic, ...]:
        """Return the diagnostics that are specific to the method; none for least squares."""
        return ()

    def equations(self, regression: BaseRegression, estimate: Estimate) -> EstimatingEquations:
        """Return the estimating equations at an estimate."""
        return EstimatingEquations.of(
            self.instruments(regression, estimate), regression, estimate.values
        )


def white(equations: EstimatingEquations, estimate: Estimate) -> Estimate:
    """Return the estimate with White's covariance, for independent errors of any size."""
    return replace(estimate, covariance=AutocorrelatedErrors(lags=0).covariance(equations))


class CondensedEstimator(Estimator):
    """An estimator that needs only the QR factors of the samples, and weights the outputs."""

    __slots__ = ()

    def estimate_from(self, regression: BaseRegression) -> Estimate:
        """See `Estimator`."""
        return self.estimate(regression.triangles, regression.samples)

    def instruments(self, regression: BaseRegression, estimate: Estimate) -> np.ndarray:
        """See `Estimator`: Z = W^2 Y."""
        return regression.regressor * estimate.weights[:, None] ** 2

    @abstractmethod
    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """Return the estimate from condensed data.

        Args:
            triangles: (n_out, m, r + 1), one matrix R for each measured output, with R^T R equal to
                the product [Y_base f]^T [Y_base f]; the forces are the last column.
            samples: number of samples, the same for all outputs or (n_out,) for each.

        Raises:
            IdentificationError: fewer samples than parameters.
        """


@final
@dataclass(frozen=True, slots=True)
class OrdinaryLeastSquares(CondensedEstimator):
    """Ordinary least squares: the sum of all squared residuals in SI units, without weights."""

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """See `Estimator`."""
        return weighted_solution(triangles, samples, np.ones(len(triangles)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedLeastSquares(CondensedEstimator):
    """Least squares in which every output is weighted by the inverse noise of its residual.

    This is the usual method for robots (Gautier and Poignet 2001, eq. 12 and 13). It starts with
    ordinary least squares and updates the weights `reweightings` times.

    Attributes:
        reweightings: number of times that the weights are updated.
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
        rounding = ROUNDING_SHARE * np.linalg.norm(triangles[:, :, -1], axis=1) / np.sqrt(samples)
        min_noise = np.maximum(rounding, np.finfo(float).tiny)
        for _ in range(self.reweightings):
            noise = np.maximum(result.noise, min_noise)
            result = weighted_solution(triangles, samples, 1.0 / noise)
        return result


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise(CondensedEstimator):
    """Least squares in which every output is weighted by the inverse of a known noise.

    The noise can be measured with repeated periods (`average_periods`). Unlike residuals, it does
    not include model errors (Swevers and others 1997, Optimal robot excitation and identification).

    Attributes:
        noise: standard deviation of every measured output's force, SI.
    """

    noise: tuple[float, ...] = option(
        above=0.0, below=np.inf, remedy="measure it, or use WeightedLeastSquares()"
    )

    def estimate(self, triangles: np.ndarray, samples: int | np.ndarray) -> Estimate:
        """See `Estimator`."""
        if len(self.noise) != len(triangles):
            raise IdentificationError.of(
                "KnownNoise.noise",
                f"has {counted(len(self.noise), 'entry')} for {counted(len(triangles), 'measured output')}",
                "give one value for each measured output",
            )
        return weighted_solution(triangles, samples, 1.0 / np.asarray(self.noise))


def require_equations(n_outputs: int, samples: int | np.ndarray, rank: int) -> None:
    """Raise an error if there are not more equations than base parameters.

    Raises:
        IdentificationError: there are too few equations.
    """
    equations = int(np.broadcast_to(samples, n_outputs).sum())
    samples = int(np.max(samples))
    if equations <= rank:
        raise IdentificationError.of(
            "samples",
            f"{samples} samples of {counted(n_outputs, 'measured output')} give "
            f"{counted(equations, 'equation')} for at least {rank} base parameters",
            f"record more than {counted(rank // n_outputs, 'sample')}; good estimates need about ten times as many",
        )


def weighted_solution(
    triangles: np.ndarray, samples: int | np.ndarray, weights: np.ndarray
) -> Estimate:
    """Return the least-squares solution with given weights w_k of the outputs, and its covariance.

    Let W Y p = W f be the weighted equations, R the triangular QR factor of W Y, and X = R^-1. The
    noise variance of output k is s_k^2 = |f_k - Y_k p|^2 / (N - t_k). Here t_k = |w_k Y_k X|^2 is
    the number of parameters that output k determines (the t_k add up to r). The covariance is X
    (sum of w_k^2 s_k^2 (w_k Y_k X)^T (w_k Y_k X)) X^T. It equals s^2 (Y^T Y)^-1 if all outputs are
    equally noisy and have equal weights, equals (Y^T W^2 Y)^-1 if w_k = 1 / s_k, and is valid for
    other weights too.

    Args:
        triangles, samples: as for `CondensedEstimator.estimate`.
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
            f"with {counted(int(np.min(samples)), 'sample')}, an output has no redundant equations, so its "
            "noise cannot be estimated",
            "record more samples; good estimates need about ten times the number of parameters",
        )
    noise = np.sqrt(squares / freedom)
    scaled = (weights * noise)[:, None, None] * directions
    square_root = scaled.reshape(-1, rank) @ inverse.T
    covariance = square_root.T @ square_root
    return Estimate(values=values, covariance=covariance, noise=noise, weights=weights)
