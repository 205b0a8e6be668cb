"""Measured velocities and positions: consistency, noise, and their fusion."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from tauloop.common.errors import LogError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.logs.checks.saturation import closed, limits_reached, moving
from tauloop.logs.encoder_steps import MAX_NOISE_SHARE, encoder_step, position_offset
from tauloop.logs.log import Log, as_signals, by_channel, channels, units
from tauloop.logs.signals import butterworth, central_differences, integrated, sample_period

#: Sources of a channel's velocity.
SOURCES = ("positions", "measured", "fused")
#: Minimum correlation of a velocity's integral with the positions of its channel.
MIN_CORRELATION = 0.9
#: Largest difference of the scale from 1; a larger one means a wrong unit or gear ratio.
MAX_SCALE_ERROR = 0.1
#: Scales due to wrong units, by description.
UNIT_FACTORS = {
    "the values look like deg/s, but the column is declared in rad/s": 180.0 / np.pi,
    "the values look like rad/s, but the column is declared in deg/s": np.pi / 180.0,
    "the values look like rpm, but the column is declared in rad/s": 30.0 / np.pi,
    "the values look like revolutions per second, but the column is declared in rad/s": 0.5 / np.pi,
    "the values look like milli-units of the declared unit": 1e3,
    "the values look like kilo-units of the declared unit": 1e-3,
    "the values look like rates per minute, but the column is declared per second": 60.0,
}
#: Relative deviation of a scale from a factor of `UNIT_FACTORS` up to which it counts as equal.
UNIT_FACTOR_TOLERANCE = 0.02
#: Smallest significant delay or lead of a velocity, s.
MIN_DELAY = 2e-3
#: Minimum fraction of the power of the difference that a significant delay or lead explains.
MIN_SHIFT_SHARE = 0.5
#: Number of iterations to determine a delay.
DELAY_STEPS = 3
#: A velocity is saturated at a limit if the positions move faster than the limit by this factor.
SATURATION_FACTOR = 1.02
#: Number of logarithmically spaced frequency bands in which the noise is averaged.
NOISE_BINS = 24
#: Lowest frequency of these bands, in periods per log. Lower frequencies contain the drift of the
#: integral.
MIN_NOISE_PERIODS = 3
#: Number of noise fits, each weighted by the previous one.
NOISE_FITS = 5
#: Minimum number of samples for the comparison with positions.
MIN_SAMPLES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredVelocity:
    """Quality of a velocity channel compared with the positions of the same channel.

    With true positions p and white noises e and n, the velocity channel is ``scale (dp/dt) + offset
    + e`` and the position channel is ``p + n``.

    Attributes:
        channel: name of the channel.
        correlation: correlation of the velocity's integral with the positions, both without linear
            trend.
        delay: delay of the velocity relative to the positions, s; zero if it is not significant.
            The following values refer to the channel without the delay.
        scale: factor between the derivative of the positions and the channel.
        offset: offset of the channel, m/s or rad/s.
        noise: standard deviation of e, m/s or rad/s.
        position_noise: standard deviation of n, m or rad.
        crossover: frequency, Hz, below which differentiated positions have less noise than the
            velocity channel.
        saturated: number of saturated samples, which are replaced by the positions' derivative.
    """

    channel: str
    correlation: float
    delay: float
    scale: float
    offset: float
    noise: float
    position_noise: float
    crossover: float
    saturated: int

    def problem(self) -> Problem | None:
        """Return a problem if this is not a velocity of its channel; otherwise None."""
        where = f"velocity.{self.channel}"
        remedy = "correct the column or its unit; the channel is ignored until then"
        if not abs(self.correlation) >= MIN_CORRELATION:
            what = (
                f"is not the derivative of position.{self.channel}: the correlation of its "
                f"integral with the position is {self.correlation:.3g}"
            )
            return Problem(where=where, what=what, remedy=remedy)
        if not abs(self.scale - 1.0) <= MAX_SCALE_ERROR:
            what = f"is {self.scale:.4g} times the derivative of position.{self.channel}"
            texts = [
                text
                for text, factor in UNIT_FACTORS.items()
                if abs(abs(self.scale) / factor - 1.0) <= UNIT_FACTOR_TOLERANCE
            ]
            if self.scale < 0.0:
                texts.insert(0, "the sign is wrong")
            return Problem(
                where=where,
                what=": ".join([what, *filter(None, [", and ".join(texts)])]),
                remedy=remedy,
            )
        return None


def wrong_velocities(log: Log) -> dict[str, Problem]:
    """Return a problem for each velocity channel that is not the derivative of its position.

    The problem names the channel to which the velocity belongs, if there is one.
    """
    problems = {}
    for name, quality in measured_velocities(log).items():
        problem = quality.problem()
        if problem is not None:
            problems[name] = problem
    period = sample_period(log) if problems else 0.0
    for name, problem in problems.items():
        velocity = by_channel(log, "velocity")[name]
        for other, position in by_channel(log, "position").items():
            correlation, scale = _agreement(position, velocity, period)
            if (
                other != name
                and correlation >= MIN_CORRELATION
                and abs(scale - 1.0) <= MAX_SCALE_ERROR
            ):
                what = (
                    f"is the derivative of position.{other}, not of position.{name}: "
                    "the columns are swapped"
                )
                problems[name] = Problem(
                    where=problem.where,
                    what=what,
                    remedy="correct the columns' names; the channel is ignored until then",
                )
    return problems


def measured_velocities(log: Log) -> dict[str, MeasuredVelocity]:
    """Return the quality of each velocity channel with a position; empty if the log is too short.

    Raises:
        InputError: the log is not evenly sampled.
    """
    names = [name for name in channels(log, "velocity") if name in channels(log, "position")]
    if not names or len(as_signals(log).time) < MIN_SAMPLES:
        return {}
    return {name: _compared(name, *_read(log, name), sample_period(log)) for name in names}


def _read(log: Log, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions and velocity (N,) of a channel, and whether each sample is saturated (N,).

    The positions' derivative replaces the velocity in saturated samples.
    """
    position = by_channel(log, "position")[name]
    velocity = by_channel(log, "velocity")[name]
    derived = central_differences(position, sample_period(log))
    saturated = np.zeros(len(position), dtype=bool)
    for limit in limits_reached(velocity, moving(log)):
        # if the positions are no faster than the limit, the speed of the machine is simply constant
        if abs(derived[limit.at].mean()) > SATURATION_FACTOR * abs(limit.value):
            saturated |= closed(limit.at)
    return position, np.where(saturated, derived, velocity), saturated


def _compared(
    name: str, position: np.ndarray, velocity: np.ndarray, saturated: np.ndarray, period: float
) -> MeasuredVelocity:
    """Return the quality of a velocity from a comparison of its integral with the positions.

    Comparing integrals, not derivatives, avoids amplifying the quantization of a coarse encoder.
    """
    rate = 1.0 / period
    count = len(position)
    delay = 0.0
    if abs(_agreement(position, velocity, period)[0]) >= MIN_CORRELATION:
        delay = _refined_delay(position, velocity, period)
        velocity = advanced(velocity, delay, period)
    correlation, scale = _agreement(position, velocity, period)
    offset = float(
        np.mean(velocity) - scale * (position[-1] - position[0]) / (period * (count - 1))
    )
    noise = position_noise = 0.0
    if scale:
        derived = central_differences(position, period)
        noise, position_noise = _noises(velocity / scale - derived, period)
    crossover = noise / (2.0 * np.pi * position_noise) if position_noise > 0.0 else 0.4 * rate
    return MeasuredVelocity(
        channel=name,
        correlation=correlation,
        delay=delay,
        scale=scale,
        offset=offset,
        noise=abs(scale) * noise,
        position_noise=position_noise,
        crossover=float(np.clip(crossover, MIN_NOISE_PERIODS * rate / count, 0.4 * rate)),
        saturated=int(saturated.sum()),
    )


def _agreement(position: np.ndarray, velocity: np.ndarray, period: float) -> tuple[float, float]:
    """Return correlation and scale between positions and a velocity's integral, both detrended."""
    x = _without_line(position)
    y = _without_line(integrated(velocity, period))
    xx, xy, yy = x @ x, x @ y, y @ y
    correlation = float(xy / np.sqrt(xx * yy)) if xx > 0.0 and yy > 0.0 else 0.0
    return correlation, float(yy / xy) if xy != 0.0 else 0.0


def _refined_delay(position: np.ndarray, velocity: np.ndarray, period: float) -> float:
    """Return the delay of a velocity by iteration, because each step underestimates the delay."""
    delay = _delay(position, velocity, period)
    for _ in range(DELAY_STEPS if delay else 0):
        delay += _fitted_delay(position, advanced(velocity, delay, period), period)[0]
    return delay


def advanced(samples: np.ndarray, delay: float, period: float) -> np.ndarray:
    """Return samples (N,) advanced by a delay, s, by linear interpolation; ends are constant."""
    if not delay:
        return samples
    indices = np.arange(len(samples), dtype=float)
    return np.interp(indices + delay / period, indices, samples)


def _delay(position: np.ndarray, velocity: np.ndarray, period: float) -> float:
    """Return the delay of a velocity; zero if it is not significant."""
    delay, explained = _fitted_delay(position, velocity, period)
    return delay if abs(delay) >= max(MIN_DELAY, period) and explained >= MIN_SHIFT_SHARE else 0.0


def _fitted_delay(position: np.ndarray, velocity: np.ndarray, period: float) -> tuple[float, float]:
    """Return the delay d of the fit p = c (V + d v), and the fraction that d explains.

    V is the integral of the velocity v. The fraction is the relative decrease of the sum of squares
    of p - c V due to the term with d.
    """
    p = _without_line(position)
    integral = _without_line(integrated(velocity, period))
    detrended_velocity = _without_line(velocity)
    columns = np.stack([integral, detrended_velocity], axis=1)
    fit = np.linalg.lstsq(columns, p, rcond=None)[0]
    residual_without_delay = p - integral * (p @ integral) / (integral @ integral)
    residual = p - columns @ fit
    power = float(residual_without_delay @ residual_without_delay)
    explained = 1.0 - float(residual @ residual) / power if power > 0.0 else 0.0
    return float(fit[1] / fit[0]) if fit[0] else 0.0, explained


def _without_line(x: np.ndarray) -> np.ndarray:
    """Return samples (N,) minus their regression line."""
    columns = np.stack([np.linspace(-1.0, 1.0, len(x)), np.ones(len(x))], axis=1)
    return np.asarray(x - columns @ np.linalg.lstsq(columns, x, rcond=None)[0])


def _noises(difference: np.ndarray, period: float) -> tuple[float, float]:
    """Return the standard deviations of white noise of a velocity and of positions.

    Central differences multiply the spectral density of white position noise by
    (sin(2 pi f T) / T)^2 at a frequency f, with the sampling period T. The sum of both densities is
    fitted to the density of the difference. Each fit is weighted by the previous one, so that all
    frequencies have equal weight.

    Args:
        difference: velocity minus the derivative of the positions (N,), m/s or rad/s.
        period: sampling period, s.
    """
    # SciPy is an optional dependency and slow to import, and most logs have no velocities
    import scipy.fft
    from scipy.optimize import nnls

    count = len(difference)
    density = np.abs(scipy.fft.rfft(difference - difference.mean())) ** 2 / count
    frequency = scipy.fft.rfftfreq(count, period)
    gain = (np.sin(2.0 * np.pi * frequency * period) / period) ** 2
    edges = np.geomspace(MIN_NOISE_PERIODS / (count * period), 0.4 / period, NOISE_BINS + 1)
    bins = [(frequency >= low) & (frequency < high) for low, high in pairwise(edges)]
    used_bins = [band for band in bins if band.any()]
    band_counts = np.array([band.sum() for band in used_bins])
    band_densities = np.array([density[band].mean() for band in used_bins])
    regressor = np.array([(1.0, gain[band].mean()) for band in used_bins])
    powers, fitted = np.zeros(2), band_densities
    for _ in range(NOISE_FITS):
        if not fitted.all():
            break
        weights = np.sqrt(band_counts) / fitted
        columns = regressor * weights[:, None]
        norms = np.linalg.norm(columns, axis=0)
        powers = nnls(columns / norms, band_densities * weights)[0] / norms
        fitted = regressor @ powers
    noise, position_noise = np.sqrt(powers)
    return float(noise), float(position_noise)


def velocities_of_source(log: Log, sources: Mapping[str, str]) -> np.ndarray:
    """Return unfiltered velocities (N, n) from the velocity channels of a log.

    - "measured": the channel without its delay and offset, divided by its scale (see
      `MeasuredVelocity`).
    - "fused": the minimum-variance combination of positions and velocities with white noise. The
      weight of differentiated positions is 1 / (1 + (f / f_c)^2) with the crossover f_c; the
      measured velocity has the remaining weight (a complementary filter, Brown and Hwang 2012,
      Introduction to random signals and applied Kalman filtering, section 8.12). The error of a
      coarse encoder is not white at reversals, so the times at which its reading changes are used
      instead (see `encoder_steps`).
    - "positions": zeros.

    Args:
        log: log with velocities of all channels whose source is "measured" or "fused".
        sources: source by position channel, in the order of the channels.

    Raises:
        LogError: velocities are missing, have another unit, or are not the derivatives of their
            positions.
    """
    velocity = np.zeros((len(as_signals(log).time), len(sources)))
    wanted = [name for name, source in sources.items() if source != "positions"]
    velocities = measured_velocities(log) if wanted else {}
    _require(log, wanted, velocities)
    for k, name in enumerate(sources):
        if name not in wanted:
            continue
        quality, period = velocities[name], sample_period(log)
        position, measured, saturated = _read(log, name)
        corrected = (advanced(measured, quality.delay, period) - quality.offset) / quality.scale
        corrected = np.where(saturated, measured, corrected)
        if sources[name] == "fused":
            offset = _offset(position, corrected, quality, period)
            corrected = corrected + central_differences(offset, period)
        velocity[:, k] = corrected
    return velocity


def _offset(
    position: np.ndarray, velocity: np.ndarray, quality: MeasuredVelocity, period: float
) -> np.ndarray:
    """Return the smoothed difference (N,) between the positions and the integrated velocity."""
    step = encoder_step(position)
    if quality.noise > 0.0 and quality.position_noise < MAX_NOISE_SHARE * step:
        noise = quality.noise / abs(quality.scale)
        return position_offset(position, velocity, step, noise, period)
    # filter first and differentiate later: near the ends of the log the filter does not attenuate
    # noise, which differentiation would amplify
    return butterworth(
        position - integrated(velocity, period),
        rate=1.0 / period,
        cutoff=quality.crossover,
        order=1,
    )


def _require(log: Log, wanted: list[str], velocities: dict[str, MeasuredVelocity]) -> None:
    problems = Problems()
    position_units, velocity_units = units(log, "position"), units(log, "velocity")
    for name in wanted:
        what, unit = "", f"{position_units[name]}/s"
        if name not in velocity_units:
            what = "is not in the log, but the preparation uses it"
        elif velocity_units[name] != unit:
            what = f"is in {velocity_units[name]}, but its position is in {position_units[name]}"
        elif name not in velocities:
            what = f"has fewer than {MIN_SAMPLES} samples, too few to be compared with the position"
        elif (problem := velocities[name].problem()) is not None:
            what = problem.what
        if what:
            remedy = "correct the column, or take velocities from positions (velocity: positions)"
            problems.add(f"velocity.{name}", what, remedy)
    LogError.raise_if_any(problems)
