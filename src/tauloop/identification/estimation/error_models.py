"""Standard deviations for independent, autocorrelated and filtered errors.

Source: White 1980, A heteroskedasticity-consistent covariance matrix estimator and a direct test
for heteroskedasticity; Newey and West 1987, A simple, positive semi-definite, heteroskedasticity
and autocorrelation consistent covariance matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from functools import reduce
from typing import final

import numpy as np
import scipy.fft

from tauloop.common.errors import IdentificationError
from tauloop.common.options import option, require
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.identification.estimation.base_columns import BaseRegression
from tauloop.logs import decimate
from tauloop.logs.signals import filter_reach


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimatingEquations:
    """The estimating equations Z^T (f - Y p) = 0 at their solution.

    Attributes:
        instruments: Z (N, n_out, r).
        regressor: Y (N, n_out, r).
        residual: f - Y p (N, n_out), SI.
        counts: (n_out,) number of measured samples of every output; the rows of the other samples
            are zero. None if all N samples were measured.
        logs: (N,) index of the log of every sample; None for a single log.
    """

    instruments: np.ndarray
    regressor: np.ndarray
    residual: np.ndarray
    counts: np.ndarray | None = None
    logs: np.ndarray | None = None

    @classmethod
    def of(
        cls, instruments: np.ndarray, regression: BaseRegression, values: np.ndarray
    ) -> EstimatingEquations:
        """Return the equations of a regression.

        Args:
            instruments: Z (N, n_out, r).
            regression: the regression, with its regressor and forces.
            values: parameters p (r,).
        """
        return cls(
            instruments=instruments,
            regressor=regression.regressor,
            residual=regression.residual(values),
            counts=regression.data.counts,
            logs=regression.data.logs,
        )

    @property
    def measured(self) -> np.ndarray:
        """Number of measured samples (n_out,) of every output."""
        if self.counts is not None:
            return self.counts
        return np.full(self.residual.shape[1], len(self.residual))

    @property
    def sensitivity(self) -> np.ndarray:
        """The matrix (Z^T Y)^-1 (r, r); the parameters' errors are this matrix times Z^T e."""
        rank = self.regressor.shape[-1]
        return np.linalg.inv(
            self.instruments.reshape(-1, rank).T @ self.regressor.reshape(-1, rank)
        )

    @property
    def scores(self) -> np.ndarray:
        """The score Z_n^T e_n of every sample (N, r); the scores add up to zero."""
        return np.asarray(np.einsum("nkr,nk->nr", self.instruments, self.residual))


class ErrorModel(ReprMixin, ABC):
    """An assumption on the statistics of the errors of the forces."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the ranges of the options."""
        require(self, IdentificationError)

    @abstractmethod
    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """Return the covariance (r, r) of the parameters, SI."""


@final
@dataclass(frozen=True, slots=True)
class IndependentErrors(ErrorModel):
    """White errors with a constant standard deviation in each output."""

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`."""
        return _filtered(equations, np.ones(1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AutocorrelatedErrors(ErrorModel):
    """Errors of any size, with any correlation in time and between outputs (HAC covariance).

    The covariance is B S B^T with B = (Z^T Y)^-1 and S = G_0 + sum over l > 0 of k_l (G_l + G_l^T).
    Here G_l = sum over n of s_n s_(n+l)^T of the scores s, computed for each log separately. The
    kernel k is the quadratic spectral kernel. Its bandwidth follows from the scores, each modeled
    as a first-order autoregression (Andrews 1991, Heteroskedasticity and autocorrelation consistent
    covariance matrix estimation). With a given number of lags, the kernel is 1 - l / (L + 1) (Newey
    and West 1987, A simple, positive semi-definite, heteroskedasticity and autocorrelation
    consistent covariance matrix).

    Residuals understate the errors because the parameters absorb part of them. The covariance is
    therefore multiplied by N / (N - t), with t = sum over parameters of S_jj / G_0,jj, per output,
    as in `FilteredErrors`.

    With few samples, the correlation of the scores is poorly determined, and the covariance is too
    small on average. The correlation of the residuals is determined better. If the forces passed a
    filter of known length, every variance is therefore at least the variance from `FilteredErrors`
    with the residuals' correlation and errors of constant size.

    Attributes:
        lags: L; None to choose the bandwidth from the data. 0 gives White's estimator, for
            independent errors of any size.
        lobe: number of samples over which the filter of the forces correlates errors; None if no
            filter is known.
    """

    lags: int | None = option(
        None, least=0, remedy="give a whole number from 0 on, or None to choose it from the data"
    )
    lobe: float | None = option(None, above=0.0, below=np.inf, remedy="give a number of samples")

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`."""
        total = self._correlated(equations)
        if self.lobe is None or len(equations.residual) > MANY_SAMPLES:
            return total
        lags = residual_lags(self.lobe)
        correlation = _residual_correlation(equations.residual, equations.logs, lags)
        return with_min_variances(total, np.diag(_filtered(equations, correlation)))

    def _correlated(self, equations: EstimatingEquations) -> np.ndarray:
        """Return the covariance (r, r) from the correlation of the scores."""
        directions = equations.scores @ equations.sensitivity.T
        count = float(equations.measured.mean())
        outputs = len(equations.measured)
        if self.lags is None:
            kernel = _score_sums(directions, equations.logs).kernel
        else:
            kernel = self.window
        white = directions.T @ directions
        total = directions.T @ _correlated_within(directions, kernel, equations.logs)
        return with_absorbed_errors(total, np.diag(white), count, outputs)

    @property
    def window(self) -> np.ndarray:
        """The Newey-West kernel (L + 1,) of the given lags."""
        lags = self.lags or 0
        return np.asarray(1.0 - np.arange(lags + 1) / (lags + 1))


def score_variances(directions: np.ndarray, logs: np.ndarray | None) -> np.ndarray:
    """Return the variances (m,) of the sums over samples of scores (N, m).

    See `AutocorrelatedErrors`.
    """
    variances = []
    for column in directions.T:
        d = column[:, None]
        kernel = _score_sums(d, logs).kernel
        variance = (d.T @ _correlated_within(d, kernel, logs))[0, 0]
        variances.append(max(float(variance), 0.0))
    return np.array(variances)


def sum_variance(
    column: np.ndarray, errors: np.ndarray, logs: np.ndarray | None, lags: int
) -> float:
    """Return the variance of the sum of column times errors, from the errors' correlation.

    The errors of each output are assumed to have a constant size. The correlation is estimated from
    the errors, because it is poorly determined by a few products of column and errors.

    Args:
        column, errors: (N, n_out), zero in samples that are not used.
        logs: (N,) index of the log of each sample; None for a single log.
        lags: number of lags at which errors are correlated.
    """
    spread = _correlated_within(column, _residual_correlation(errors, logs, lags), logs)
    counts = np.maximum(np.sum(errors != 0.0, axis=0), 1)
    sizes = np.sum(errors**2, axis=0) / counts
    return max(float(np.sum(sizes * np.sum(column * spread, axis=0))), 0.0)


def with_absorbed_errors(
    total: np.ndarray, sizes: np.ndarray, count: float, outputs: int
) -> np.ndarray:
    """Return a covariance corrected for the part of the errors that the parameters absorb.

    The result is S N / (N - t), see `AutocorrelatedErrors`.

    Args:
        total: covariance S (r, r) from the residuals.
        sizes: (r,) diagonal of G_0, the covariance for independent errors.
        count: number of samples of an output.
        outputs: number of outputs.
    """
    # The truncated kernel can make variances near zero negative, such as those of periodic scores.
    total = total + np.diag(np.maximum(_KERNEL_END * sizes - np.diag(total), 0.0))
    absorbed = np.sum(np.diag(total)[sizes > 0.0] / sizes[sizes > 0.0]) / outputs
    return np.asarray(total * count / max(count - absorbed, 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilteredErrors(ErrorModel):
    """White errors that passed a known filter, such as that of a decimation.

    Attributes:
        correlation: (L,) correlation of the filtered errors at lags 0 to L - 1; 1 at lag 0.
            `decimation_correlation` returns the correlation for `tauloop.logs.decimate`.
    """

    correlation: np.ndarray

    def __post_init__(self) -> None:
        """Check the shape."""
        correlation = np.asarray(self.correlation, dtype=float)
        if (
            correlation.ndim != 1
            or not len(correlation)
            or not np.isfinite(correlation).all()
            or correlation[0] != 1.0
        ):
            raise IdentificationError.of(
                "FilteredErrors.correlation",
                "is not a list of finite correlations that begins with 1",
                "give the correlation at lags 0, 1, ..., such as decimation_correlation(factor)",
            )
        object.__setattr__(self, "correlation", correlation)

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`."""
        return _filtered(equations, self.correlation)


def correlated(columns: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return the product of a symmetric Toeplitz matrix with columns (N, n).

    Args:
        columns: (N, n).
        correlation: (L,) entries of the matrix at lags 0, 1, ...
    """
    entries = correlation[: len(columns)]
    if len(entries) == 1:
        return np.asarray(entries[0] * columns)
    size = scipy.fft.next_fast_len(len(columns) + len(entries) - 1, real=True)
    # The Toeplitz matrix is a block of a symmetric circulant matrix, which the FFT diagonalizes.
    padding = np.zeros(size - 2 * len(entries) + 1)
    circulant = np.concatenate([entries, padding, entries[:0:-1]])
    spectrum = scipy.fft.rfft(columns, size, axis=0) * scipy.fft.rfft(circulant).real[:, None]
    return np.asarray(scipy.fft.irfft(spectrum, size, axis=0)[: len(columns)])


def _correlated_within(
    columns: np.ndarray, correlation: np.ndarray, logs: np.ndarray | None
) -> np.ndarray:
    """Return the result of `correlated`, applied to each log separately.

    Errors of different logs are independent.
    """
    if logs is None or len(correlation) == 1:
        return correlated(columns, correlation)
    return np.concatenate([correlated(part, correlation) for part in _split_logs(columns, logs)])


def _split_logs(columns: np.ndarray, logs: np.ndarray) -> list[np.ndarray]:
    """Return the rows of `columns` that belong to each log."""
    return np.split(columns, np.flatnonzero(np.diff(logs)) + 1)


def residual_lags(lobe: float) -> int:
    """Return the number of lags at which residuals are correlated.

    Args:
        lobe: number of samples over which a filter correlates errors.
    """
    return max(2, int(np.ceil(CORRELATION_LOBES * lobe)))


def with_min_variances(covariance: np.ndarray, minimum: np.ndarray) -> np.ndarray:
    """Return a covariance (r, r) with variances of at least `minimum` and the same correlations."""
    variances = np.maximum(np.diag(covariance), np.finfo(float).tiny)
    factors = np.sqrt(np.maximum(minimum / variances, 1.0))
    return np.asarray(covariance * np.outer(factors, factors))


def _residual_correlation(residual: np.ndarray, logs: np.ndarray | None, lags: int) -> np.ndarray:
    """Return the correlation of residuals at fewer than `lags` lags; see `fading_correlation`."""
    parts = [residual] if logs is None else _split_logs(residual, logs)
    lags = min(lags, min(map(len, parts)))
    return fading_correlation(sum((residual_products(part, lags) for part in parts), np.zeros(1)))


def residual_products(residual: np.ndarray, lags: int) -> np.ndarray:
    """Return the sums (lags, n_out) of products of residuals (N, n_out) at lags 0, 1, ...

    The sums of several logs can be added.
    """
    count = len(residual)
    return np.array(
        [
            np.sum(residual[lag:] * residual[: count - lag], axis=0)
            for lag in range(min(lags, count))
        ]
    )


def fading_correlation(sums: np.ndarray) -> np.ndarray:
    """Return the mean correlation (lags,) of all outputs' residuals, with a Hann window applied.

    Args:
        sums: (lags, n_out), see `residual_products`.
    """
    lags = len(sums)
    is_exact = sums[0] <= 0.0
    correlations = (sums / np.where(is_exact, 1.0, sums[0]))[:, ~is_exact]
    mean = correlations.mean(axis=1) if correlations.size else np.eye(1, lags)[0]
    return np.asarray(mean * np.cos(0.5 * np.pi * np.arange(lags) / lags) ** 2)


def _filtered(equations: EstimatingEquations, correlation: np.ndarray) -> np.ndarray:
    """Return the covariance (r, r) for errors with a known correlation in time.

    The covariance is B (sum over outputs k of s_k^2 Z_k^T C Z_k) B^T, with the Toeplitz matrix C of
    the correlation. The noise variance s_k^2 is the residual's sum of squares divided by N - t_k,
    where t_k is the number of parameters that output k determines, computed with the correlation.
    """
    instruments = equations.instruments
    regressor = equations.regressor
    residual = equations.residual
    sensitivity = equations.sensitivity
    outputs, rank = regressor.shape[1:]
    total = np.zeros((rank, rank))
    for k in range(outputs):
        left, right = instruments[:, k], regressor[:, k]
        spread = _correlated_within(left, correlation, equations.logs)
        meat = left.T @ spread
        mixed = spread.T @ right
        freedom = max(equations.measured[k] - float(np.trace(sensitivity @ mixed)), 1.0)
        total += residual[:, k] @ residual[:, k] / freedom * meat
    return np.asarray(sensitivity @ total @ sensitivity.T)


#: The correlation of residuals is computed up to this number of lobes of the filter.
CORRELATION_LOBES = 8.0
#: With more samples than this, the correlation of the scores is known well enough.
MANY_SAMPLES = 50_000
#: The quadratic spectral kernel is truncated beyond this number of bandwidths.
_KERNEL_BANDWIDTHS = 10.0
#: Upper bound of the truncated part of the kernel.
_KERNEL_END = 0.002


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSums(ReprMixin):
    """Sums over the samples of a log that determine the kernel. The sums of logs can be added.

    Attributes:
        samples: number of samples N.
        squares: (r,) sum of d_n^2, where d_n = B s_n is the contribution of a sample's score s_n to
            the parameters.
        products: (r,) sum of d_n d_(n+1) over consecutive samples of the same log.
        heads: (r,) d^2 of the first sample of each log, summed over the logs.
        tails: (r,) d^2 of the last sample of each log, summed over the logs.
    """

    samples: int
    squares: np.ndarray
    products: np.ndarray
    heads: np.ndarray
    tails: np.ndarray

    @classmethod
    def of(cls, d: np.ndarray) -> ScoreSums:
        """Return the sums of the steps (N, r) of one log."""
        return cls(
            samples=len(d),
            squares=np.sum(d**2, axis=0),
            products=np.sum(d[1:] * d[:-1], axis=0),
            heads=d[0] ** 2,
            tails=d[-1] ** 2,
        )

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """Return the sums over the samples of both."""
        names = [item.name for item in fields(self)]
        return ScoreSums(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def kernel(self) -> np.ndarray:
        """The kernel (L,) at lags 0, 1, ..., by Andrews' rule for first-order autoregressions."""
        power = self.squares - self.tails  # of all samples with a next sample
        after = self.squares - self.heads  # of all samples with a previous sample
        rho = np.clip(self.products / np.maximum(power, np.finfo(float).tiny), -0.97, 0.97)
        variance = (after - 2.0 * rho * self.products + rho**2 * power) / self.samples
        # All parameters have the same weight, independent of their units.
        weight = 1.0 / np.maximum(self.squares, np.finfo(float).tiny) ** 2
        numerator = np.sum(weight * 4.0 * rho**2 * variance**2 / (1.0 - rho) ** 8)
        denominator = np.sum(weight * variance**2 / (1.0 - rho) ** 4)
        if not numerator > 0.0 or not denominator > 0.0:
            return np.ones(1)
        bandwidth = 1.3221 * (numerator / denominator * self.samples) ** 0.2
        lags = int(min(_KERNEL_BANDWIDTHS * bandwidth, self.samples - 1.0))
        x = 1.2 * np.pi * np.arange(1, lags + 1) / bandwidth
        return np.append(1.0, 3.0 / x**2 * (np.sin(x) / x - np.cos(x)))


def _score_sums(d: np.ndarray, logs: np.ndarray | None) -> ScoreSums:
    """Return the sums of the steps (N, r) of all logs."""
    parts = [d] if logs is None else _split_logs(d, logs)
    return reduce(ScoreSums.__add__, map(ScoreSums.of, parts))


def decimation_correlation(factor: int, cutoff: float | None = None) -> np.ndarray:
    """Return the correlation of white noise after `tauloop.logs.decimate`, at lags 0, 1, ...

    The correlation follows from the filter's responses to unit impulses at each of the `factor`
    samples of one decimated step.

    Args:
        factor, cutoff: as for `decimate`.
    """
    reach = filter_reach(factor, cutoff)
    if not reach:
        return np.ones(1)
    middle = 2 * reach * factor
    impulses = np.zeros((4 * reach * factor + factor, factor))
    impulses[middle + np.arange(factor), np.arange(factor)] = 1.0
    responses = decimate(impulses, factor, cutoff)
    lags = 2 * reach + 1
    size = len(responses)
    products = np.array([np.sum(responses[lag:] * responses[: size - lag]) for lag in range(lags)])
    return np.asarray(products / products[0])
