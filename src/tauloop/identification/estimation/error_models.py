"""Standard deviations under three models of the errors: independent, of unknown correlation, and filtered.

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
    """Estimating equations Z^T (f - Y p) = 0 at their solution.

    Attributes:
        instruments: Z (N, n_out, r).
        regressor: Y (N, n_out, r).
        residual: f - Y p (N, n_out), SI.
        counts: (n_out,) samples of every output that were measured, where the others are zero; N
            without it.
        logs: (N,) number of the log of every sample; one log without it.
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
        """Those of instruments (N, n_out, r) and parameters (r,) in a regression."""
        return cls(
            instruments=instruments,
            regressor=regression.regressor,
            residual=regression.residual(values),
            counts=regression.data.counts,
            logs=regression.data.logs,
        )

    @property
    def measured(self) -> np.ndarray:
        """Number of samples (n_out,) of every output."""
        return (
            np.full(self.residual.shape[1], len(self.residual))
            if self.counts is None
            else self.counts
        )

    @property
    def sensitivity(self) -> np.ndarray:
        """(Z^T Y)^-1 (r, r): the parameters' errors are this times Z^T e."""
        rank = self.regressor.shape[-1]
        return np.linalg.inv(
            self.instruments.reshape(-1, rank).T @ self.regressor.reshape(-1, rank)
        )

    @property
    def scores(self) -> np.ndarray:
        """Z_n^T e_n of every sample (N, r); they add up to zero."""
        return np.asarray(np.einsum("nkr,nk->nr", self.instruments, self.residual))


class ErrorModel(ReprMixin, ABC):
    """What is assumed of the errors of the forces."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        require(self, IdentificationError)

    @abstractmethod
    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """Covariance (r, r) of the parameters, SI."""


@final
@dataclass(frozen=True, slots=True)
class IndependentErrors(ErrorModel):
    """White errors, of a constant standard deviation in each output."""

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`."""
        return _filtered(equations, np.ones(1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AutocorrelatedErrors(ErrorModel):
    """Errors of any correlation in time and between outputs, and any size: heteroskedasticity and autocorrelation.

    B S B^T with B = (Z^T Y)^-1 and S = sum over l of k_l (G_l + G_l^T), G_l = sum of s_n s_(n+l)^T
    of the scores s, of each log for itself. The kernel k is the quadratic spectral one with its
    bandwidth chosen from the scores, each a first-order autoregression (Andrews 1991,
    Heteroskedasticity and autocorrelation consistent covariance matrix estimation); with a given
    number of lags it is 1 - l / (L + 1) (Newey and West 1987, A simple, positive semi-definite,
    heteroskedasticity and autocorrelation consistent covariance matrix). Residuals are smaller than
    errors by what the parameters follow, as in `FilteredErrors`: multiplied by N / (N - t), t = sum
    over parameters of S_jj / G_0,jj, per output.

    Few samples show little of an unknown correlation of the scores, and such a covariance is then
    too small on average. That of the residuals is known better. Where forces passed a filter whose
    length is known, no variance is smaller than that of errors of one size with the residuals' own
    correlation, as `FilteredErrors` has it.

    Attributes:
        lags: L; None to choose the bandwidth. 0 is White's estimator: independent, but of any size.
        lobe: samples over which the known filter of the forces correlates errors; None where none
            is known.
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
        return not_below(total, np.diag(_filtered(equations, correlation)))

    def _correlated(self, equations: EstimatingEquations) -> np.ndarray:
        """Return the covariance (r, r) by the residuals' own correlation."""
        directions = equations.scores @ equations.sensitivity.T
        count, outputs = float(equations.measured.mean()), len(equations.measured)
        kernel = (
            _score_sums(directions, equations.logs).kernel if self.lags is None else self.window
        )
        white = directions.T @ directions
        total = directions.T @ _correlated_within(directions, kernel, equations.logs)
        return less_followed(total, np.diag(white), count, outputs)

    @property
    def window(self) -> np.ndarray:
        """Newey's and West's kernel (L + 1,) of the given lags."""
        lags = self.lags or 0
        return np.asarray(1.0 - np.arange(lags + 1) / (lags + 1))


def score_variances(directions: np.ndarray, logs: np.ndarray | None) -> np.ndarray:
    """Return the variance of the sum of each column of steps (N, m); see `AutocorrelatedErrors`."""
    variances = []
    for column in directions.T:
        d = column[:, None]
        kernel = _score_sums(d, logs).kernel
        variances.append(max(float((d.T @ _correlated_within(d, kernel, logs))[0, 0]), 0.0))
    return np.array(variances)


def sum_variance(
    column: np.ndarray, errors: np.ndarray, logs: np.ndarray | None, lags: int
) -> float:
    """Return the variance of the sum of column times errors, both (N, n_out), for errors of their own correlation.

    Each output has errors of one size: few products show little of a correlation, the errors
    themselves more.

    Args:
        column, errors: zero in samples that do not count.
        logs: number of the log of each sample, where there are several.
        lags: up to which errors are correlated.
    """
    spread = _correlated_within(column, _residual_correlation(errors, logs, lags), logs)
    counts = np.maximum(np.sum(errors != 0.0, axis=0), 1)
    sizes = np.sum(errors**2, axis=0) / counts
    return max(float(np.sum(sizes * np.sum(column * spread, axis=0))), 0.0)


def less_followed(total: np.ndarray, sizes: np.ndarray, count: float, outputs: int) -> np.ndarray:
    """A covariance from residuals, enlarged by what the parameters follow of the errors: see `AutocorrelatedErrors`.

    Args:
        total: S (r, r).
        sizes: diagonal of G_0 (r,).
        count: samples of an output.
        outputs: how many there are.
    """
    # a kernel that ends makes variances negative that are nearly zero, such as those of periodic
    # scores
    total = total + np.diag(np.maximum(_KERNEL_END * sizes - np.diag(total), 0.0))
    followed = np.sum(np.diag(total)[sizes > 0.0] / sizes[sizes > 0.0]) / outputs
    return np.asarray(total * count / max(count - followed, 1.0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilteredErrors(ErrorModel):
    """White errors that went through a known filter, as forces do in decimation.

    Attributes:
        correlation: (L,) of the filtered errors at lags 0 to L - 1; 1 at lag 0.
            `decimation_correlation` gives that of `tauloop.logs.decimate`.
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
                "is no list of finite correlations that begins with 1",
                "give the correlation at lags 0, 1, ..., such as decimation_correlation(factor)",
            )
        object.__setattr__(self, "correlation", correlation)

    def covariance(self, equations: EstimatingEquations) -> np.ndarray:
        """See `ErrorModel`."""
        return _filtered(equations, self.correlation)


def correlated(columns: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Symmetric Toeplitz matrix of correlations (L,) at lags 0, 1, ... times columns (N, n)."""
    kept = correlation[: len(columns)]
    if len(kept) == 1:
        return np.asarray(kept[0] * columns)
    size = scipy.fft.next_fast_len(len(columns) + len(kept) - 1, real=True)
    # a symmetric circulant
    around = np.concatenate([kept, np.zeros(size - 2 * len(kept) + 1), kept[:0:-1]])
    spectrum = scipy.fft.rfft(columns, size, axis=0) * scipy.fft.rfft(around).real[:, None]
    return np.asarray(scipy.fft.irfft(spectrum, size, axis=0)[: len(columns)])


def _correlated_within(
    columns: np.ndarray, correlation: np.ndarray, logs: np.ndarray | None
) -> np.ndarray:
    """As `correlated`, for samples of several logs, whose errors have nothing to do with one another."""
    if logs is None or len(correlation) == 1:
        return correlated(columns, correlation)
    return np.concatenate([correlated(part, correlation) for part in _parts(columns, logs)])


def _parts(columns: np.ndarray, logs: np.ndarray) -> list[np.ndarray]:
    """Rows of each log."""
    return np.split(columns, np.flatnonzero(np.diff(logs)) + 1)


def residual_lags(lobe: float) -> int:
    """Return the number of lags of the residuals' correlation where a filter correlates errors over some samples."""
    return max(2, int(np.ceil(LOBES * lobe)))


def not_below(covariance: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Return a covariance (r, r) whose variances are at least some (r,), with the same correlations."""
    grown = np.sqrt(np.maximum(least / np.maximum(np.diag(covariance), np.finfo(float).tiny), 1.0))
    return np.asarray(covariance * np.outer(grown, grown))


def _residual_correlation(residual: np.ndarray, logs: np.ndarray | None, lags: int) -> np.ndarray:
    """Return the correlation of residuals at fewer than `lags`; see `fading_correlation`."""
    parts = [residual] if logs is None else _parts(residual, logs)
    lags = min(lags, min(map(len, parts)))
    return fading_correlation(sum((residual_products(part, lags) for part in parts), np.zeros(1)))


def residual_products(residual: np.ndarray, lags: int) -> np.ndarray:
    """Return sums (lags, n_out) of products of residuals (N, n_out) at 0, 1, ... lags; they add up over logs."""
    count = len(residual)
    return np.array(
        [
            np.sum(residual[lag:] * residual[: count - lag], axis=0)
            for lag in range(min(lags, count))
        ]
    )


def fading_correlation(sums: np.ndarray) -> np.ndarray:
    """Return the correlation (lags,) of residuals from their products, fading as Hann's window, mean of all outputs."""
    lags = len(sums)
    is_exact = sums[0] <= 0.0
    correlations = (sums / np.where(is_exact, 1.0, sums[0]))[:, ~is_exact]
    mean = correlations.mean(axis=1) if correlations.size else np.eye(1, lags)[0]
    return np.asarray(mean * np.cos(0.5 * np.pi * np.arange(lags) / lags) ** 2)


def _filtered(equations: EstimatingEquations, correlation: np.ndarray) -> np.ndarray:
    """B (sum over outputs k of s_k^2 sum over lags of c_l Z_k^T Z_k,shifted) B^T.

    The noise variance s_k^2 is the residual's sum of squares over N - t_k, where t_k is the part of
    the errors' own sum of squares that the parameters follow; it takes the correlation into
    account.
    """
    instruments, regressor, residual = (
        equations.instruments,
        equations.regressor,
        equations.residual,
    )
    sensitivity = equations.sensitivity
    outputs, rank = regressor.shape[1:]
    total = np.zeros((rank, rank))
    for k in range(outputs):
        left, right = instruments[:, k], regressor[:, k]
        spread = _correlated_within(left, correlation, equations.logs)
        meat, mixed = left.T @ spread, spread.T @ right
        freedom = max(equations.measured[k] - float(np.trace(sensitivity @ mixed)), 1.0)
        total += residual[:, k] @ residual[:, k] / freedom * meat
    return np.asarray(sensitivity @ total @ sensitivity.T)


#: Lobes of a filter up to which the correlation of residuals is taken.
LOBES = 8.0
#: From this many samples on the residuals' own correlation is known well enough.
MANY_SAMPLES = 50_000
#: The quadratic spectral kernel is left out beyond this many bandwidths, where it is below this
#: share.
_BANDWIDTHS, _KERNEL_END = 10.0, 0.002


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreSums(ReprMixin):
    """What the kernel is chosen by: sums over the samples of a log, which add up over logs.

    Attributes:
        samples: N.
        squares: of d_n^2 (r,), d the steps of the parameters.
        products: of d_n d_(n+1) (r,), both of one log.
        heads, tails: of d^2 of the first and the last sample (r,).
    """

    samples: int
    squares: np.ndarray
    products: np.ndarray
    heads: np.ndarray
    tails: np.ndarray

    @classmethod
    def of(cls, d: np.ndarray) -> ScoreSums:
        """Those of the steps (N, r) of one log."""
        products = np.sum(d[1:] * d[:-1], axis=0)
        return cls(
            samples=len(d),
            squares=np.sum(d**2, axis=0),
            products=products,
            heads=d[0] ** 2,
            tails=d[-1] ** 2,
        )

    def __add__(self, other: ScoreSums) -> ScoreSums:
        """Of the samples of both."""
        return ScoreSums(
            **{
                item.name: getattr(self, item.name) + getattr(other, item.name)
                for item in fields(self)
            }
        )

    @property
    def kernel(self) -> np.ndarray:
        """Kernel (L,) at lags 0, 1, ..., by Andrews' rule for first-order autoregressions."""
        power, after = self.squares - self.tails, self.squares - self.heads
        rho = np.clip(self.products / np.maximum(power, np.finfo(float).tiny), -0.97, 0.97)
        variance = (after - 2.0 * rho * self.products + rho**2 * power) / self.samples
        # every parameter counts alike
        weight = 1.0 / np.maximum(self.squares, np.finfo(float).tiny) ** 2
        above = np.sum(weight * 4.0 * rho**2 * variance**2 / (1.0 - rho) ** 8)
        below = np.sum(weight * variance**2 / (1.0 - rho) ** 4)
        if not above > 0.0 or not below > 0.0:
            return np.ones(1)
        bandwidth = 1.3221 * (above / below * self.samples) ** 0.2
        x = (
            1.2
            * np.pi
            * np.arange(1, int(min(_BANDWIDTHS * bandwidth, self.samples - 1.0)) + 1)
            / bandwidth
        )
        return np.append(1.0, 3.0 / x**2 * (np.sin(x) / x - np.cos(x)))


def _score_sums(d: np.ndarray, logs: np.ndarray | None) -> ScoreSums:
    """Those of the steps (N, r) of all logs."""
    return reduce(ScoreSums.__add__, map(ScoreSums.of, [d] if logs is None else _parts(d, logs)))


def decimation_correlation(factor: int, cutoff: float | None = None) -> np.ndarray:
    """Return the correlation of white noise after `tauloop.logs.decimate`, at lags 0, 1, ... of its samples.

    Taken from the filter itself: its response to an impulse at every sample of one decimated step.

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
