"""Test whether sampling is nonuniform, or uniform with delayed time stamps (jitter)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.logs.checks.timing import missing_samples
from tauloop.logs.log import Log, as_signals, by_channel
from tauloop.logs.signals import butterworth

#: Time stamps count as uniform below this RMS deviation from a uniform grid, as a fraction of the
#: period.
EVEN_STAMP_SHARE = 0.01
#: Positions are compared above this fraction of the sampling rate. The motion itself is slower.
MOTION_BAND_SHARE = 0.1
#: Number of blocks of the log for the standard deviation of `StampJitter.share`.
DEVIATION_BLOCKS = 20
#: The test is conclusive if the standard deviation of `StampJitter.share` is below 1 / this number.
DECISION_DEVIATIONS = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StampJitter:
    """Deviation of time stamps from uniform sampling (jitter), and its effect on the positions.

    A position sampled at t_n = n T + d_n differs from its value at n T by the velocity times d_n.
    The high-pass filtered positions (above `MOTION_BAND_SHARE` times the sampling rate) are fitted
    with the high-pass filtered product of velocity and d_n. The coefficient is 1 if the stamps are
    the sampling times, and 0 if the samples are uniform and only the stamps are late.

    Attributes:
        size: RMS deviation of the stamps from the uniform grid, s.
        period: period of the uniform grid, s.
        share: fraction of velocity times jitter that the positions contain.
        deviation: standard deviation of `share`.
    """

    size: float
    period: float
    share: float
    deviation: float

    @property
    def decides(self) -> bool:
        """Return whether the test is conclusive."""
        return self.deviation * DECISION_DEVIATIONS < 1.0

    @property
    def stamps_are_true(self) -> bool:
        """Return whether the stamps are the sampling times, or the test is inconclusive."""
        return not self.decides or self.share > 0.5

    def __str__(self) -> str:
        return (
            f"positions contain {self.share:.2f} +- {self.deviation:.1g} of velocity times jitter; 1 means that the "
            "stamps are the sampling times, 0 that sampling is uniform and only the stamps are delayed"
        )


def sample_numbers(time: np.ndarray) -> np.ndarray:
    """Return the number (N,) of each sample in uniform sampling with missing samples.

    Args:
        time: time stamps (N,), s; they may be late.
    """
    _, missing = missing_samples(time, may_be_late=True)
    return np.arange(len(time)) + np.concatenate([[0], np.cumsum(missing)]).astype(int)


def stamp_jitter(log: Log, names: Sequence[str]) -> StampJitter | None:
    """Return a comparison of the positions of a log with its stamps.

    Args:
        log: the log as measured, before any filter.
        names: position channels; all are used together.

    Returns:
        The comparison; None for uniform stamps, too few samples, or no motion.
    """
    signals = as_signals(log)
    measured = by_channel(signals, "position")
    used_names = [name for name in names if name in measured]
    time = signals.time
    count = len(time)
    if count < 4 * DEVIATION_BLOCKS or not used_names:
        return None
    numbers = sample_numbers(time)
    centered_numbers = numbers - numbers.mean()
    centered_time = time - time.mean()
    period = float(centered_numbers @ centered_time / (centered_numbers @ centered_numbers))
    jitter = centered_time - period * centered_numbers
    size = float(np.sqrt(np.mean(jitter**2)))
    if size < EVEN_STAMP_SHARE * period:
        return None
    position = np.stack([measured[name] for name in used_names], axis=1)
    jitter_motion = jitter[:, None] * np.gradient(_low_passed(position), period, axis=0)
    inner = slice(count // 20, count - count // 20)
    expected = (jitter_motion - _low_passed(jitter_motion))[inner]
    high_passed = (position - _low_passed(position))[inner]
    noise = np.maximum(high_passed.std(axis=0), np.finfo(float).tiny)
    x = expected / noise
    y = high_passed / noise
    power = float(np.sum(x * x))
    if power == 0.0:
        return None
    share = float(np.sum(x * y)) / power
    # Successive errors are correlated, so the variance is estimated from sums over blocks.
    blocks = np.array_split(x * (y - share * x), DEVIATION_BLOCKS)
    sums = np.array([block.sum() for block in blocks])
    deviation = float(np.sqrt(sums @ sums)) / power
    return StampJitter(size=size, period=period, share=share, deviation=deviation)


def _low_passed(x: np.ndarray) -> np.ndarray:
    """Return columns (N, n) after a low-pass filter at `MOTION_BAND_SHARE`."""
    return butterworth(x, rate=1.0, cutoff=MOTION_BAND_SHARE, order=4)
