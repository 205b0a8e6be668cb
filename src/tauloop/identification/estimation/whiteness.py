"""Test for white residuals: the portmanteau test of their autocorrelations.

Source: Ljung and Box 1978, On a measure of lack of fit in time series models.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Whiteness:
    """Ljung-Box test of one residual.

    Attributes:
        lags: number of autocorrelations in the test.
        statistic: Q = N (N + 2) sum of r_l^2 / (N - l) over l = 1 to lags, with the
            autocorrelations r_l of N samples; None if the residual is zero.
        probability: probability that white noise has a larger Q; below 0.01 the residual is not
            white.
        correlations: r_1 to r_lags; None if the residual is zero.
    """

    lags: int
    statistic: float | None
    probability: float | None
    correlations: tuple[float, ...] | None


def whiteness(residual: np.ndarray, lags: int = 20) -> Whiteness:
    """Test a residual (N,) for whiteness.

    Source: Ljung and Box 1978, On a measure of lack of fit in time series models.

    Args:
        residual: evenly spaced in time.
        lags: number of autocorrelations; limited to a quarter of the samples.

    Returns:
        The Ljung-Box statistic, its probability and the autocorrelations.

    Raises:
        InputError: fewer than eight samples, or no lags.
    """
    count = len(residual)
    if count < 8 or lags < 1:
        raise InputError.of(
            "residual",
            f"has {counted(count, 'sample')} for {counted(lags, 'lag')}, too few for a whiteness test",
            "give at least 8 samples and 1 lag",
        )
    lags = min(lags, count // 4)
    centered = residual - residual.mean()
    power = float(centered @ centered)
    if power <= (np.finfo(float).eps * np.abs(residual).max(initial=0.0)) ** 2 * count:
        return Whiteness(lags=lags, statistic=None, probability=None, correlations=None)
    numbers = np.arange(1, lags + 1)
    correlations = np.array([centered[lag:] @ centered[:-lag] for lag in numbers]) / power
    statistic = float(count * (count + 2.0) * np.sum(correlations**2 / (count - numbers)))
    return Whiteness(
        lags=lags,
        statistic=statistic,
        probability=float(chdtrc(lags, statistic)),
        correlations=tuple(float(r) for r in correlations),
    )
