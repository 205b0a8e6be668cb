"""Smoothed samples and their time derivatives by sine series, with cutoffs from the noise.

Differences of neighboring samples attenuate every motion of angular frequency w with the sampling
period T: velocities by the factor sin(w T) / (w T), accelerations by its square. A sine series only
has the attenuation of its low-pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.logs.signals import (
    HIGHEST_CUTOFF,
    MIN_DIFFERENCE_SAMPLES,
    gain_of_sines,
    pieces_of_record,
    require_cutoff,
)

#: Accelerations are low-passed at this multiple of the cutoff with which forces and regressor are
#: filtered later. A lower cutoff here would attenuate only the regressor.
ACCELERATION_CUTOFF_FACTOR = 2.0
#: Degree of the polynomials that continue a record at its ends. They are fitted over one period of
#: the cutoff.
END_POLYNOMIAL_DEGREE = 4
#: Number of samples at the start of a log whose spectrum determines a cutoff.
INSPECTED_SAMPLES = 65_536
#: Minimum number of samples of a spectrum.
MIN_SPECTRUM_SAMPLES = 64
#: Negligible noise as a fraction of a derivative's power, by order of the derivative. The sign of a
#: velocity switches dry friction, so velocities must be more accurate than accelerations.
NOISE_SHARES = {1: 1e-9, 2: 1e-6}
#: Candidate cutoffs, as fractions of the sampling rate, in steps of a factor of 1.19.
TRIED_CUTOFFS = HIGHEST_CUTOFF * 2.0 ** (-0.25 * np.arange(41)[::-1])
#: Number of logarithmically spaced frequency bands of a spectrum.
FREQUENCY_BANDS = 80
#: A band contains motion if the ratio of its power to the noise exceeds this value.
MIN_SIGNAL_TO_NOISE = 3.0
#: A position that changes by no more than this fraction of its largest value is at rest.
RESTING_CHANGE = 1e-12
#: Fraction of a signal's power below its top frequency.
BAND_POWER = 0.999
#: Cutoff for differentiation as a multiple of the top frequency.
BAND_CUTOFF_FACTOR = 2.0
#: Largest loss of acceleration amplitude by the low-pass at the top frequency of a motion.
MAX_AMPLITUDE_LOSS = 0.01
#: Exponent of the cosine window that tapers a record.
TAPER_POWER = 8
#: Ratio of median to mean of the power of white noise at a frequency (exponential distribution).
MEDIAN_POWER = float(np.log(2.0))


def smooth_rates(
    x: np.ndarray, *, rate: float, cutoffs: Sequence[float], order: int
) -> tuple[np.ndarray, ...]:
    """Return low-passed samples and their time derivatives.

    The record minus a cubic is expanded in sines. Their coefficients are multiplied by the gain of
    a Butterworth filter that runs forwards and backwards (see `butterworth`), and by powers of the
    angular frequency. The cubic has the values and second derivatives of polynomials fitted to the
    ends, so the odd continuation of the record is smooth up to the third derivative. Without the
    cubic, accelerations would go to zero at both ends.

    Args:
        x: evenly spaced samples (N,).
        rate: samples per second, Hz.
        cutoffs: -3 dB frequencies of one pass, Hz, for the samples, the first and the second
            derivative; fewer entries return fewer derivatives.
        order: order of one pass.

    Returns:
        The samples and their derivatives, each (N,).

    Raises:
        InputError: a cutoff is not between zero and half the rate, or there are too few samples.
    """
    for cutoff in cutoffs:
        require_cutoff(rate, cutoff)
    if len(x) < MIN_DIFFERENCE_SAMPLES:
        what = f"{counted(len(x), 'sample', 'are')} too few to differentiate"
        raise InputError.of("x", what, f"give at least {MIN_DIFFERENCE_SAMPLES}")
    results = tuple(np.empty(len(x)) for _ in cutoffs)
    gains: dict[tuple[int, float], np.ndarray] = {}
    for piece, valid in pieces_of_record(len(x), rate / min(cutoffs), order):
        inside = slice(valid.start - piece.start, valid.stop - piece.start)
        smooth = _smooth_rates(x[piece], rate, cutoffs, order, gains)
        for result, values in zip(results, smooth, strict=True):
            result[valid] = values[inside]
    return results


def _smooth_rates(
    x: np.ndarray,
    rate: float,
    cutoffs: Sequence[float],
    order: int,
    gains: dict[tuple[int, float], np.ndarray],
) -> list[np.ndarray]:
    """Return the result of `smooth_rates` for one piece.

    Args:
        x, rate, cutoffs, order: as for `smooth_rates`.
        gains: gains of the filter by number of sines and cutoff. Missing gains are added, because
            most pieces have the same length.
    """
    import scipy.fft

    count = len(x)
    window = round(rate / min(cutoffs)) + 1
    padding = scipy.fft.next_fast_len(count - 1) - count + 1
    padded = _padded(x, padding, window, rate)
    cubics = _cubic(padded, window, rate)[: len(cutoffs)]
    sines = scipy.fft.dst((padded - cubics[0])[1:-1], type=1, overwrite_x=True)
    frequencies = np.linspace(0.0, 1.0, len(padded))  # relative to half the rate
    omega = np.pi * rate * frequencies[1:-1]
    for k, (cubic, cutoff) in enumerate(zip(cubics, cutoffs, strict=True)):
        key = len(sines), cutoff
        if key not in gains:
            gains[key] = gain_of_sines(frequencies, rate=rate, cutoff=cutoff, order=order)
        series = sines * gains[key]
        if k == 1:
            cubic += _cosines(series * omega)
        else:
            series *= 1.0 if k == 0 else -(omega**2)
            cubic[1:-1] += scipy.fft.idst(series, type=1, overwrite_x=True)
    return [cubic[:count] for cubic in cubics]


def cutoff_for_accelerations(cutoff: float, rate: float) -> float:
    """Return the cutoff of accelerations, Hz, for the cutoff of forces and regressor, Hz."""
    return max(cutoff, min(ACCELERATION_CUTOFF_FACTOR * cutoff, HIGHEST_CUTOFF * rate))


def allowed_cutoff(x: np.ndarray, *, rate: float, order: int, derivative: int = 2) -> float:
    """Return the cutoff, Hz, that the noise of a position permits for differentiation.

    The noise is assumed to be white, with the level of the upper half of the spectrum. A low-pass
    leaves some noise power in the derivative and removes some power of the motion. Both are divided
    by the power of the motion's derivative. The result is the highest cutoff whose noise fraction
    is at most `NOISE_SHARES`, or at most the smallest sum of both fractions if that sum is larger.

    Args:
        x: evenly spaced positions (N,).
        rate: samples per second, Hz.
        order: order of the filter (see `smooth_rates`).
        derivative: order of the derivative, 1 or 2.
    """
    if len(x) < MIN_SPECTRUM_SAMPLES or np.ptp(x) <= RESTING_CHANGE * np.abs(x).max():
        return HIGHEST_CUTOFF * rate
    frequency, power = _spectrum(x[:INSPECTED_SAMPLES])
    noise = float(np.median(power[frequency > 0.25])) / MEDIAN_POWER
    edges = np.geomspace(frequency[0], 0.5, FREQUENCY_BANDS + 1)
    bands = np.minimum(np.searchsorted(edges, frequency, side="right") - 1, FREQUENCY_BANDS - 1)
    counts = np.bincount(bands, minlength=FREQUENCY_BANDS)
    used = counts > 0
    gain = frequency ** (2 * derivative)  # of the derivative's power, up to a constant
    weights = np.bincount(bands, gain, FREQUENCY_BANDS)[used]
    powers = np.bincount(bands, power * gain, FREQUENCY_BANDS)[used]
    is_motion = powers > MIN_SIGNAL_TO_NOISE * noise * weights
    motion = np.where(is_motion, powers - noise * weights, 0.0)
    if not motion.sum() > 0.0:
        return HIGHEST_CUTOFF * rate
    centers = np.bincount(bands, frequency, FREQUENCY_BANDS)[used] / counts[used]
    ratios = np.tan(np.pi * centers) / np.tan(np.pi * TRIED_CUTOFFS[:, None])
    with np.errstate(over="ignore"):
        gains = 1.0 / (1.0 + ratios ** (2 * order))
    noises = gains**2 @ (noise * weights) / motion.sum()
    losses = (1.0 - gains) @ motion / motion.sum()
    allowed = max(NOISE_SHARES[derivative], float((noises + losses).min()))
    return float(TRIED_CUTOFFS[noises <= allowed].max() * rate)


def top_of_motion(x: np.ndarray, *, rate: float, order: int) -> float:
    """Return the frequency, Hz, below which nearly all power of the velocity lies.

    Args:
        x: evenly spaced positions (N,).
        rate: samples per second, Hz.
        order: order of the filter (see `smooth_rates`).
    """
    part = x[:INSPECTED_SAMPLES]
    cutoff = allowed_cutoff(part, rate=rate, order=order, derivative=1)
    _, velocity = smooth_rates(part, rate=rate, cutoffs=(cutoff, cutoff), order=order)
    return top_frequency(velocity, rate=rate)


def top_frequency(x: np.ndarray, *, rate: float) -> float:
    """Return the frequency, Hz, below which the fraction `BAND_POWER` of a signal's power lies."""
    frequency, power = _spectrum(x[:INSPECTED_SAMPLES])
    total = np.cumsum(power)
    index = min(int(np.searchsorted(total, BAND_POWER * total[-1])), len(frequency) - 1)
    return float(frequency[index]) * rate


def amplitude_loss(frequency: float, *, rate: float, cutoff: float, order: int) -> float:
    """Return the fraction of an acceleration's amplitude that the low-pass removes.

    Args:
        frequency: frequency of the acceleration, Hz.
        rate: samples per second, Hz.
        cutoff: cutoff of forces and regressor, Hz.
        order: order of the filter (see `smooth_rates`).
    """
    ratio = np.tan(np.pi * frequency / rate) / np.tan(
        np.pi * cutoff_for_accelerations(cutoff, rate) / rate
    )
    return float(1.0 - 1.0 / (1.0 + ratio ** (2 * order)))


def in_band(
    x: np.ndarray, *, rate: float, order: int = 4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a signal and its first two derivatives (N,), low-passed above its top frequency.

    Args:
        x: evenly spaced samples (N,), at least `MIN_SPECTRUM_SAMPLES`.
        rate: samples per second, Hz.
        order: order of the filter (see `smooth_rates`).
    """
    highest = BAND_CUTOFF_FACTOR * top_frequency(x, rate=rate)
    cutoff = float(np.clip(highest, 4.0 / len(x) * rate, HIGHEST_CUTOFF * rate))
    value, first, second = smooth_rates(x, rate=rate, cutoffs=(cutoff, cutoff, cutoff), order=order)
    return value, first, second


def _spectrum(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies (fractions of the sampling rate) and power of a record without its trend.

    The record is tapered, because its ends would otherwise appear as high-frequency motion.
    """
    position = np.linspace(-1.0, 1.0, len(x))
    line = np.polynomial.Polynomial.fit(position, x, 1)
    taper = np.cos(0.5 * np.pi * position) ** TAPER_POWER
    power = np.abs(np.fft.rfft((x - line(position)) * taper)[1:]) ** 2
    return np.arange(1, len(power) + 1) / len(x), power


def _cosines(series: np.ndarray) -> np.ndarray:
    """Return the cosine series (N + 2,) that is the derivative of a sine series.

    Args:
        series: coefficients of the sines multiplied by their angular frequencies (N,).
    """
    import scipy.fft

    padded = np.zeros(len(series) + 2)
    padded[1:-1] = series
    return np.asarray(scipy.fft.dct(padded, type=1, overwrite_x=True) / (2.0 * (len(padded) - 1)))


def _ends(
    x: np.ndarray, window: int, rate: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (value, second derivative) at both ends, from polynomials fitted there."""
    count = min(max(window, END_POLYNOMIAL_DEGREE + 3), len(x))
    degree = min(END_POLYNOMIAL_DEGREE, count - 1)
    powers = np.vander(np.linspace(0.0, 1.0, count), degree + 1, increasing=True)
    end_samples = np.stack([x[:count], x[::-1][:count]], axis=1)
    coefficients = np.linalg.lstsq(powers, end_samples, rcond=None)[0]
    duration = (count - 1) / rate
    values = coefficients[0]
    curvatures = 2.0 * coefficients[2] / duration**2 if degree >= 2 else np.zeros(2)
    return (float(values[0]), float(curvatures[0])), (float(values[1]), float(curvatures[1]))


def _padded(x: np.ndarray, padding: int, window: int, rate: float) -> np.ndarray:
    """Return the record padded at its end by odd reflection about a parabola.

    The parabola is even in the time after the last sample, with the value and second derivative of
    the record there.

    Args:
        x: samples (N,).
        padding: number of added samples.
        window: number of samples at the end that determine the parabola.
        rate: samples per second, Hz.
    """
    if not padding:
        return np.asarray(x, dtype=float)
    _, (value, curvature) = _ends(x, window, rate)
    time = np.arange(1, padding + 1) / rate
    mirrored = x[len(x) - 1 - padding : -1][::-1]
    return np.concatenate([x, 2.0 * value + curvature * time**2 - mirrored])


def _cubic(x: np.ndarray, window: int, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cubic (N,) with the end values and second derivatives, and its two derivatives."""
    (first, first_curvature), (last, last_curvature) = _ends(x, window, rate)
    time = np.arange(len(x)) / rate
    duration = time[-1]
    third = (last_curvature - first_curvature) / duration
    slope = (last - first) / duration - duration * (0.5 * first_curvature + third * duration / 6.0)
    value = first + time * (slope + time * (0.5 * first_curvature + time * third / 6.0))
    derivative = slope + time * (first_curvature + 0.5 * third * time)
    return value, derivative, first_curvature + third * time
