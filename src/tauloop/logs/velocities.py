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
#: Smallest correlation between a velocity's integral and the positions that confirms the channel.
MIN_CORRELATION = 0.9
#: A scale that differs from one by more than this is an error of unit or gear.
MAX_SCALE_ERROR = 0.1
#: Factors of units and signs, with their descriptions.
UNIT_FACTORS = {
    "degrees per second for what is in rad/s": 180.0 / np.pi,
    "rad/s for what is in degrees per second": np.pi / 180.0,
    "revolutions per minute for what is in rad/s": 30.0 / np.pi,
    "revolutions per second for what is in rad/s": 0.5 / np.pi,
    "milli for what is in the unit itself": 1e3,
    "k for what is in the unit itself": 1e-3,
    "per minute for what is per second": 60.0,
}
#: Relative tolerance of a scale that counts as a unit's factor.
UNIT_FACTOR_TOLERANCE = 0.02
#: Smallest delay or lead of a velocity in s, and the fraction of the difference's power that a
#: shift must explain.
MIN_DELAY, MIN_SHIFT_SHARE = 2e-3, 0.5
#: Number of steps to determine a delay.
DELAY_STEPS = 3
#: A velocity is saturated where the positions move faster by this factor.
SATURATION_FACTOR = 1.02
#: Number of logarithmically spaced frequencies over which noise is averaged.
NOISE_BINS = 24
#: The lowest of them, in periods per log: slower frequencies contain the integral's drift.
MIN_NOISE_PERIODS = 3
#: Number of noise fits, each weighted by the one before.
NOISE_FITS = 5
#: Smallest number of samples for this comparison.
MIN_SAMPLES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredVelocity:
    """Quality of a velocity channel compared with the positions of the same channel.

    With positions p and white noises e and n, the velocity channel is ``scale (dp/dt) + offset +
    e`` and the positions are read as ``p + n``.

    Attributes:
        channel: name of the channel.
        correlation: correlation of its integral with the positions, both without linear trend.
        delay: delay of the velocity after the positions, s; zero if a shift explains less than half
            of the difference. The other values are those of the channel without the delay.
        scale, offset: scale and offset of the channel; offset in m/s or rad/s.
        noise, position_noise: standard deviations per sample, m/s or rad/s, and m or rad.
        crossover: frequency, Hz, below which differentiated positions have less noise.
        saturated: samples at a limit of the instrument, replaced by the positions' derivative.
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
        """Return why this is not a velocity of its channel, or None."""
        where, otherwise = (
            f"velocity.{self.channel}",
            "correct the column or its unit; it is not used",
        )
        if not abs(self.correlation) >= MIN_CORRELATION:
            what = f"is not the derivative of position.{self.channel}: its integral correlates with that by "
            what += f"{self.correlation:.3g}"
            return Problem(where=where, what=what, remedy=otherwise)
        if not abs(self.scale - 1.0) <= MAX_SCALE_ERROR:
            what = f"is {self.scale:.4g} times the derivative of position.{self.channel}"
            texts = [
                text
                for text, factor in UNIT_FACTORS.items()
                if abs(abs(self.scale) / factor - 1.0) <= UNIT_FACTOR_TOLERANCE
            ]
            if self.scale < 0.0:
                texts.insert(0, "the wrong sign")
            return Problem(
                where=where,
                what=": ".join([what, *filter(None, [", and ".join(texts)])]),
                remedy=otherwise,
            )
        return None


def wrong_velocities(log: Log) -> dict[str, Problem]:
    """Return the velocity channels that are not the derivative of their position, with problems.

    A problem names the channel to which the velocity belongs, if there is one.
    """
    by_channel_name = {
        name: measured.problem() for name, measured in measured_velocities(log).items()
    }
    problems = {name: problem for name, problem in by_channel_name.items() if problem is not None}
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
                    "columns are exchanged"
                )
                problems[name] = Problem(
                    where=problem.where,
                    what=what,
                    remedy="correct the columns' names; it is not used",
                )
    return problems


def measured_velocities(log: Log) -> dict[str, MeasuredVelocity]:
    """Return the quality of each velocity channel with a position; empty for a short log.

    Raises:
        InputError: the log is not evenly sampled.
    """
    names = [name for name in channels(log, "velocity") if name in channels(log, "position")]
    if not names or len(as_signals(log).time) < MIN_SAMPLES:
        return {}
    return {name: _compared(name, *_read(log, name), sample_period(log)) for name in names}


def _read(log: Log, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions and velocity (N,) of a channel, and its saturated samples.

    The positions' derivative replaces the velocity in these samples.
    """
    position, velocity = (by_channel(log, kind)[name] for kind in ("position", "velocity"))
    derived = central_differences(position, sample_period(log))
    saturated = np.zeros(len(position), dtype=bool)
    for limit in limits_reached(velocity, moving(log)):
        # otherwise the machine moves evenly
        if abs(derived[limit.at].mean()) > SATURATION_FACTOR * abs(limit.value):
            saturated |= closed(limit.at)
    return position, np.where(saturated, derived, velocity), saturated


def _compared(
    name: str, position: np.ndarray, velocity: np.ndarray, saturated: np.ndarray, period: float
) -> MeasuredVelocity:
    """Compare a velocity's integral with the positions over the whole log.

    Steps of a coarse encoder do not grow in an integral.
    """
    rate, count, delay = 1.0 / period, len(position), 0.0
    if abs(_agreement(position, velocity, period)[0]) >= MIN_CORRELATION:
        delay = _whole_delay(position, velocity, period)
        velocity = earlier(velocity, delay, period)
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
    """Return correlation and scale of the integral and the positions, both without linear trend."""
    moved, turned = (_without_line(x) for x in (position, integrated(velocity, period)))
    own, common, other = moved @ moved, moved @ turned, turned @ turned
    correlation = float(common / np.sqrt(own * other)) if own > 0.0 and other > 0.0 else 0.0
    return correlation, float(other / common) if common != 0.0 else 0.0


def _whole_delay(position: np.ndarray, velocity: np.ndarray, period: float) -> float:
    """Return the delay of a velocity, found in a few steps, since each one is underestimated."""
    delay = _delay(position, velocity, period)
    for _ in range(DELAY_STEPS if delay else 0):
        delay += _delay_left(position, earlier(velocity, delay, period), period)[0]
    return delay


def earlier(velocity: np.ndarray, delay: float, period: float) -> np.ndarray:
    """Return samples (N,) advanced by a time, s, by linear interpolation; ends are held."""
    if not delay:
        return velocity
    places = np.arange(len(velocity), dtype=float)
    return np.interp(places + delay / period, places, velocity)


def _delay(position: np.ndarray, velocity: np.ndarray, period: float) -> float:
    """Return the delay of a velocity; zero if it is not significant."""
    delay, explained = _delay_left(position, velocity, period)
    return (
        delay
        if abs(delay) >= max(MIN_DELAY, period) and explained >= 1.0 - MIN_SHIFT_SHARE
        else 0.0
    )


def _delay_left(position: np.ndarray, velocity: np.ndarray, period: float) -> tuple[float, float]:
    """Return the delay d of p = c (V + d v) and the fraction of the difference that it explains.

    V is the integral of the velocity v.
    """
    moved, turned, rate = (
        _without_line(x) for x in (position, integrated(velocity, period), velocity)
    )
    columns = np.stack([turned, rate], axis=1)
    both = np.linalg.lstsq(columns, moved, rcond=None)[0]
    alone = moved - turned * (moved @ turned) / (turned @ turned)
    left = moved - columns @ both
    power = float(alone @ alone)
    explained = 1.0 - float(left @ left) / power if power > 0.0 else 0.0
    return float(both[1] / both[0]) if both[0] else 0.0, explained


def _without_line(x: np.ndarray) -> np.ndarray:
    """Return samples (N,) minus their best-fitting straight line."""
    columns = np.stack([np.linspace(-1.0, 1.0, len(x)), np.ones(len(x))], axis=1)
    return np.asarray(x - columns @ np.linalg.lstsq(columns, x, rcond=None)[0])


def _noises(difference: np.ndarray, period: float) -> tuple[float, float]:
    """Return the standard deviations of white noise of a velocity and of positions.

    They follow from the velocity minus the positions' derivative.

    Central differences turn white position noise into the density (sin(2 pi f T) / T)^2 times its
    own; both shares are fitted to the density, each time relative to the previous fit, so that all
    frequencies have equal weight.
    """
    # SciPy is of an extra and slow to import, and most logs have no velocities.
    import scipy.fft
    from scipy.optimize import nnls

    count = len(difference)
    density = np.abs(scipy.fft.rfft(difference - difference.mean())) ** 2 / count
    frequency = scipy.fft.rfftfreq(count, period)
    gain = (np.sin(2.0 * np.pi * frequency * period) / period) ** 2
    edges = np.geomspace(MIN_NOISE_PERIODS / (count * period), 0.4 / period, NOISE_BINS + 1)
    bins = [(frequency >= low) & (frequency < high) for low, high in pairwise(edges)]
    rows = np.array(
        [(1.0, gain[band].mean(), density[band].mean(), band.sum()) for band in bins if band.any()]
    )
    powers, fitted = np.zeros(2), rows[:, 2]
    for _ in range(NOISE_FITS):
        if not fitted.all():
            break
        weights = np.sqrt(rows[:, 3]) / fitted
        columns = rows[:, :2] * weights[:, None]
        size = np.linalg.norm(columns, axis=0)
        powers = nnls(columns / size, rows[:, 2] * weights)[0] / size
        fitted = rows[:, :2] @ powers
    noise, position_noise = np.sqrt(powers)
    return float(noise), float(position_noise)


def velocities_of_source(log: Log, sources: Mapping[str, str]) -> np.ndarray:
    """Return the velocities (N, n) of channels with another source than positions, unfiltered.

    The other channels are zero.

    Measured: the channel without its delay and offset, divided by its scale (see
    `MeasuredVelocity`). Fused: with both noises white, the minimum-variance combination weighs
    frequencies by 1 / (1 + (f / f_c)^2) for differentiated positions and by the rest for the
    measured velocity (a complementary filter, Brown and Hwang 2012, Introduction to random signals
    and applied Kalman filtering, section 8.12); f_c is the crossover. The error of a coarse encoder
    is not white at reversals, so that its changes of reading are used (see `encoder_steps`).

    Args:
        log: log with velocities of all channels whose source is not their positions.
        sources: source by position channel, in their order.

    Raises:
        LogError: a velocity is missing, has another unit, or does not belong to its channel; all
            problems.
    """
    velocity = np.zeros((len(as_signals(log).time), len(sources)))
    wanted = [name for name, source in sources.items() if source != "positions"]
    velocities = measured_velocities(log) if wanted else {}
    _require(log, wanted, velocities)
    for k, name in enumerate(sources):
        if name not in wanted:
            continue
        worth, period = velocities[name], sample_period(log)
        position, own, saturated = _read(log, name)
        corrected = (earlier(own, worth.delay, period) - worth.offset) / worth.scale
        own = np.where(saturated, own, corrected)
        if sources[name] == "fused":
            own = own + central_differences(_offset(position, own, worth, period), period)
        velocity[:, k] = own
    return velocity


def _offset(
    position: np.ndarray, velocity: np.ndarray, quality: MeasuredVelocity, period: float
) -> np.ndarray:
    """Return the smoothed difference (N,) between the positions and the integrated velocity."""
    step = encoder_step(position)
    if quality.noise > 0.0 and quality.position_noise < MAX_NOISE_SHARE * step:
        noise = quality.noise / abs(quality.scale)
        return position_offset(position, velocity, step, noise, period)
    # low-passed before it is differentiated: at the ends of the log the filter keeps the
    # noise as it is
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
            what = "is not in the log, but is to be used"
        elif velocity_units[name] != unit:
            what = f"is in {velocity_units[name]}, and its position in {position_units[name]}"
        elif name not in velocities:
            what = f"has fewer than {MIN_SAMPLES} samples, too few to be compared with the position"
        elif (problem := velocities[name].problem()) is not None:
            what = problem.what
        if what:
            remedy = "correct the column, or take velocities from positions (velocity: positions)"
            problems.add(f"velocity.{name}", what, remedy)
    LogError.raise_if_any(problems)
