"""Smoothed samples and their time derivatives by sine series, with cut-offs from the noise.

Differences of neighboring samples attenuate every motion: velocities by the factor sin(w T) / (w
T), accelerations by its square. A sine series only has the attenuation of its low-pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.logs.signals import (
    HIGHEST_CUTOFF,
    LEAST_FOR_DIFFERENCES,
    gain_of_sines,
    pieces_of_record,
    require_cutoff,
)

#: Accelerations are low-passed at this multiple of the cut-off with which forces and regressor are
#: filtered later. A lower cut-off here would attenuate only the regressor.
ACCELERATION_CUTOFF_FACTOR = 2.0
#: Degree of the polynomials that continue a record at its ends. They are fitted over one period of
#: the cut-off.
END_POLYNOMIAL_DEGREE = 4
#: Number of samples at the start of a log whose spectrum determines a cut-off.
INSPECTED_SAMPLES = 65_536
#: Minimum number of samples of a spectrum.
MIN_SPECTRUM_SAMPLES = 64
#: Negligible noise as a fraction of a derivative's power, by order of the derivative. The sign of a
#: velocity switches dry friction, so velocities must be more accurate than accelerations.
NOISE_SHARES = {1: 1e-9, 2: 1e-6}
#: Cut-offs that are tried, as fractions of the sampling rate, in steps of a factor of 1.19.
TRIED_CUTOFFS = HIGHEST_CUTOFF * 2.0 ** (-0.25 * np.arange(41)[::-1])
#: Number of logarithmically spaced frequency bands, and the ratio of power to noise from which on a
#: band contains motion.
FREQUENCY_BANDS, ABOVE_NOISE = 80, 3.0
#: A position that changes by no more than this fraction of its largest value is at rest.
RESTING_CHANGE = 1e-12
#: Fraction of a signal's power that defines its top frequency, and the multiple of the top
#: frequency that is the cut-off for differentiation.
BAND_POWER, BAND_CUTOFF_FACTOR = 0.999, 2.0
#: Largest loss of acceleration amplitude by the low-pass at the top frequency of a motion.
MAX_AMPLITUDE_LOSS = 0.01
#: Power of the cosine that tapers a record; ratio of median to mean of noise power at a frequency.
TAPER_POWER, MEDIAN_POWER = 8, float(np.log(2.0))


def smooth_rates(
    x: np.ndarray, *, rate: float, cutoffs: Sequence[float], order: int
) -> tuple[np.ndarray, ...]:
    """Return low-passed samples and their time derivatives.

    The record minus a cubic is expanded in sines. Their coefficients are multiplied by the gain of
    a Butterworth filter that runs forwards and backwards (see `butterworth`), and by powers of the
    angular frequency. The cubic has the values and curvatures of polynomials fitted to the ends, so
    the odd continuation of the record is smooth up to the third derivative. Without it,
    accelerations would go to zero at both ends.

    Args:
        x: evenly spaced samples (N,).
        rate: samples per second, Hz.
        cutoffs: -3 dB frequencies of one pass, Hz, for the samples, the first and the second
            derivative; fewer entries return fewer derivatives.
        order: order of one pass.

    Returns:
        The samples and their derivatives, each (N,).

    Raises:
        InputError: a cut-off is not below half the rate, or there are too few samples.
    """
    for cutoff in cutoffs:
        require_cutoff(rate, cutoff)
    if len(x) < LEAST_FOR_DIFFERENCES:
        what = f"{counted(len(x), 'sample', 'are')} too few to differentiate"
        raise InputError.of("x", what, f"give at least {LEAST_FOR_DIFFERENCES}")
    results = tuple(np.empty(len(x)) for _ in cutoffs)
    gains: dict[tuple[int, float], np.ndarray] = {}
    for part, kept in pieces_of_record(len(x), rate / min(cutoffs), order):
        inside = slice(kept.start - part.start, kept.stop - part.start)
        smooth = _smooth_rates(x[part], rate, cutoffs, order, gains)
        for whole, values in zip(results, smooth, strict=True):
            whole[kept] = values[inside]
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
        gains: gains of the filter by number of sines and cut-off. Missing gains are added, because
            most pieces have the same length.
    """
    import scipy.fft

    count, window = len(x), round(rate / min(cutoffs)) + 1
    whole = _continued(x, scipy.fft.next_fast_len(count - 1) - count + 1, window, rate)
    cubics = _cubic(whole, window, rate)[: len(cutoffs)]
    sines = scipy.fft.dst((whole - cubics[0])[1:-1], type=1, overwrite_x=True)
    along = np.linspace(0.0, 1.0, len(whole))
    omega = np.pi * rate * along[1:-1]
    for k, (cubic, cutoff) in enumerate(zip(cubics, cutoffs, strict=True)):
        key = len(sines), cutoff
        if key not in gains:
            gains[key] = gain_of_sines(along, rate=rate, cutoff=cutoff, order=order)
        series = sines * gains[key]
        if k == 1:
            cubic += _cosines(series * omega)
        else:
            series *= 1.0 if k == 0 else -(omega**2)
            cubic[1:-1] += scipy.fft.idst(series, type=1, overwrite_x=True)
    return [cubic[:count] for cubic in cubics]


def wider(cutoff: float, rate: float) -> float:
    """Return the cut-off of accelerations, Hz, for a cut-off of forces and regressor."""
    return max(cutoff, min(ACCELERATION_CUTOFF_FACTOR * cutoff, HIGHEST_CUTOFF * rate))


def allowed_cutoff(x: np.ndarray, *, rate: float, order: int, derivative: int = 2) -> float:
    """Return the cut-off, Hz, that the noise of a position permits for differentiation.

    The noise is assumed white, with the level of the upper half of the spectrum. A cut-off passes a
    fraction of the noise and removes a fraction of the motion; both are measured relative to the
    derivative's power. The result is the highest cut-off whose noise is below `NOISE_SHARES`, or
    below the smallest sum of both fractions if that sum is always larger.

    Args:
        x: evenly spaced positions (N,).
        rate: samples per second, Hz.
        order: order of the filter (see `smooth_rates`).
        derivative: order of the derivative, 1 or 2.
    """
    if len(x) < MIN_SPECTRUM_SAMPLES or np.ptp(x) <= RESTING_CHANGE * np.abs(x).max():
        return HIGHEST_CUTOFF * rate
    share, power = _spectrum(x[:INSPECTED_SAMPLES])
    noise = float(np.median(power[share > 0.25])) / MEDIAN_POWER
    edges = np.geomspace(share[0], 0.5, FREQUENCY_BANDS + 1)
    bands = np.minimum(np.searchsorted(edges, share, side="right") - 1, FREQUENCY_BANDS - 1)
    counts = np.bincount(bands, minlength=FREQUENCY_BANDS)
    used = counts > 0
    weights = np.bincount(bands, share ** (2 * derivative), FREQUENCY_BANDS)[used]
    powers = np.bincount(bands, power * share ** (2 * derivative), FREQUENCY_BANDS)[used]
    motion = np.where(powers > ABOVE_NOISE * noise * weights, powers - noise * weights, 0.0)
    if not motion.sum() > 0.0:
        return HIGHEST_CUTOFF * rate
    centers = np.bincount(bands, share, FREQUENCY_BANDS)[used] / counts[used]
    ratios = np.tan(np.pi * centers) / np.tan(np.pi * TRIED_CUTOFFS[:, None])
    with np.errstate(over="ignore"):
        gains = 1.0 / (1.0 + ratios ** (2 * order))
    noises = gains**2 @ (noise * weights) / motion.sum()
    losses = (1.0 - gains) @ motion / motion.sum()
    allowed = max(NOISE_SHARES[derivative], float((noises + losses).min()))
    return float(TRIED_CUTOFFS[noises <= allowed].max() * rate)


def top_of_motion(x: np.ndarray, *, rate: float, order: int) -> float:
    """Return the frequency, Hz, below which nearly all velocity power of positions (N,) lies."""
    part = x[:INSPECTED_SAMPLES]
    cutoff = allowed_cutoff(part, rate=rate, order=order, derivative=1)
    _, velocity = smooth_rates(part, rate=rate, cutoffs=(cutoff, cutoff), order=order)
    return top_frequency(velocity, rate=rate)


def top_frequency(x: np.ndarray, *, rate: float) -> float:
    """Return the frequency, Hz, below which the fraction `BAND_POWER` of a signal's power lies."""
    share, power = _spectrum(x[:INSPECTED_SAMPLES])
    total = np.cumsum(power)
    place = min(int(np.searchsorted(total, BAND_POWER * total[-1])), len(share) - 1)
    return float(share[place]) * rate


def amplitude_loss(frequency: float, *, rate: float, cutoff: float, order: int) -> float:
    """Return the fraction of acceleration that the low-pass removes at a frequency, Hz."""
    ratio = np.tan(np.pi * frequency / rate) / np.tan(np.pi * wider(cutoff, rate) / rate)
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
    along = np.linspace(-1.0, 1.0, len(x))
    line = np.polynomial.Polynomial.fit(along, x, 1)
    power = (
        np.abs(np.fft.rfft((x - line(along)) * np.cos(0.5 * np.pi * along) ** TAPER_POWER)[1:]) ** 2
    )
    return np.arange(1, len(power) + 1) / len(x), power


def _cosines(series: np.ndarray) -> np.ndarray:
    """Return the derivative (N,) of a sine series with coefficients multiplied by frequencies."""
    import scipy.fft

    padded = np.zeros(len(series) + 2)
    padded[1:-1] = series
    return np.asarray(scipy.fft.dct(padded, type=1, overwrite_x=True) / (2.0 * (len(padded) - 1)))


def _ends(
    x: np.ndarray, window: int, rate: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (value, curvature) at both ends, from polynomials fitted there."""
    size = min(max(window, END_POLYNOMIAL_DEGREE + 3), len(x))
    degree = min(END_POLYNOMIAL_DEGREE, size - 1)
    along = np.linspace(0.0, 1.0, size)
    powers = np.vander(along, degree + 1, increasing=True)
    fitted = np.linalg.lstsq(powers, np.stack([x[:size], x[::-1][:size]], axis=1), rcond=None)[0]
    length = (size - 1) / rate
    bend = 2.0 * fitted[2] / length**2 if degree >= 2 else np.zeros(2)
    return (float(fitted[0, 0]), float(bend[0])), (float(fitted[0, 1]), float(bend[1]))


def _continued(x: np.ndarray, more: int, window: int, rate: float) -> np.ndarray:
    """Return the record continued at its end, by odd reflection about the even polynomial."""
    if not more:
        return np.asarray(x, dtype=float)
    _, (value, bend) = _ends(x, window, rate)
    behind = np.arange(1, more + 1) / rate
    return np.concatenate([x, 2.0 * value + bend * behind**2 - x[len(x) - 1 - more : -1][::-1]])


def _cubic(x: np.ndarray, window: int, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the cubic (N,) with the values and curvatures of the ends, and its two derivatives."""
    (first, first_bend), (last, last_bend) = _ends(x, window, rate)
    time = np.arange(len(x)) / rate
    length = time[-1]
    growth = (last_bend - first_bend) / length
    slope = (last - first) / length - length * (0.5 * first_bend + growth * length / 6.0)
    value = first + time * (slope + time * (0.5 * first_bend + time * growth / 6.0))
    return value, slope + time * (first_bend + 0.5 * growth * time), first_bend + growth * time
