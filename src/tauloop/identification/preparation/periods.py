"""Periodic excitation: averages over periods, their noise, and derivatives by Fourier series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.fft

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.logs import sample_period
from tauloop.logs.log import TIME, as_signals, build_log

if TYPE_CHECKING:
    import xarray as xr

#: Quantity of the channels that contain the standard deviation of a force's samples in the log of
#: an averaged period. All samples of such a channel have the same value.
FORCE_NOISE = "force_noise"
#: Largest deviation of all periods together from a whole number of samples per period, in samples.
MAX_DRIFT_SAMPLES = 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeriodAverage(ReprMixin):
    """The average of all periods of a log.

    Attributes:
        log: the averaged period.
        periods: number of periods; samples after the last whole period are left out.
        noise: standard deviation of one measured sample about its average, for each variable of the
            log, in the unit of the variable. The standard deviation of an averaged sample is
            smaller by the factor 1 / sqrt(periods).
        covariance: (n, n) covariance of the n variables of `noise`, in their order; its diagonal is
            the square of the noise.
    """

    log: xr.Dataset
    periods: int
    noise: dict[str, float]
    covariance: np.ndarray

    def deviation(self, name: str) -> float:
        """Return the standard deviation of an averaged sample of a variable, in its unit."""
        return float(self.noise[name] / np.sqrt(self.periods))


def average_periods(log: xr.Dataset, period: float) -> PeriodAverage:
    """Average a log of periodic motion over its periods.

    With P periods y_p of N samples and their mean, the noise variance is the sum of
    (y_p - mean)^2 / (N (P - 1)) over periods and samples (Swevers, Ganseman, Tukel, De Schutter and
    Van Brussel 1997, Optimal robot excitation and identification).

    Args:
        log: an evenly sampled log, in periodic steady state from its first sample on.
        period: period of the motion, s.

    Returns:
        The averaged log, the number of periods and the noise of each channel.

    Raises:
        InputError: fewer than two periods, or a period that is not a whole number of samples.
    """
    step = sample_period(log)
    samples = period / step if np.isfinite(period) and period > 0.0 else 0.0
    count = round(samples)
    total = len(log[TIME])
    periods = total // count if count else 0
    if periods < 2:
        what = f"{counted(total, 'sample')} of {step:g} s contain fewer than two periods of {period:g} s"
        raise InputError.of("period", what, "record a longer log, or give the period in seconds")
    drift = abs(samples - count) * periods
    if drift > MAX_DRIFT_SAMPLES:
        raise InputError.of(
            "period",
            f"{period:g} s are {samples:.6g} samples: {periods} periods drift by "
            f"{drift:.2g} samples",
            "choose a sampling rate at which the period is a whole number of samples",
        )
    channels = []
    scatter = {}
    for channel in as_signals(log).channels:
        values = channel.values[: periods * count].reshape(periods, count)
        channels.append(replace(channel, values=values.mean(axis=0)))
        scatter[channel.name] = (values - channels[-1].values).ravel()
    deviations = np.stack(list(scatter.values()))
    covariance = deviations @ deviations.T / (count * (periods - 1))
    noise = dict(zip(scatter, np.sqrt(np.diag(covariance)).tolist(), strict=True))
    averaged = build_log(log[TIME].to_numpy()[:count], channels)
    return PeriodAverage(log=averaged, periods=periods, noise=noise, covariance=covariance)


def fourier_derivatives(
    x: np.ndarray, rate: float, highest: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return position, velocity and acceleration of whole periods from their Fourier series.

    The results are exact for harmonics up to the highest frequency. For the k-th derivative, the
    discrete Fourier transform is multiplied by (i omega)^k, and all components above the highest
    frequency are removed. This is a filter without phase shift and without end effects (Swevers and
    others 1997).

    Args:
        x: (N, n) samples of a whole number of periods.
        rate: sampling rate, Hz.
        highest: highest frequency that is retained, Hz, below half the rate.

    Returns:
        x, dx/dt, d2x/dt2, each (N, n).

    Raises:
        InputError: the highest frequency is not below half the rate.
    """
    if not 0.0 < highest < 0.5 * rate:
        raise InputError.of(
            "max_frequency",
            f"{highest:g} Hz is not between zero and half the sampling rate, {0.5 * rate:g} Hz",
            "give a frequency a little above the highest harmonic of the motion",
        )
    frequencies = scipy.fft.rfftfreq(len(x), 1.0 / rate)
    spectrum = scipy.fft.rfft(x, axis=0) * (frequencies <= highest)[:, None]
    i_omega = (2j * np.pi * frequencies)[:, None]
    position, velocity, acceleration = (
        scipy.fft.irfft(spectrum * i_omega**k, n=len(x), axis=0) for k in range(3)
    )
    return np.asarray(position), np.asarray(velocity), np.asarray(acceleration)
