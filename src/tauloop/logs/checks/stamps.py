"""Test whether uneven stamps are the sampling times, or the samples are even but stamped late."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.logs.checks.timing import missing_samples
from tauloop.logs.log import Log, as_signals, by_channel
from tauloop.logs.signals import butterworth

#: Stamps count as even below this RMS deviation from the even grid, as a fraction of the period.
EVEN_STAMP_SHARE = 0.01
#: Positions are compared above this fraction of the sampling rate; the motion itself is below it.
MOTION_BAND_SHARE = 0.1
#: Number of blocks for the standard deviation of the fraction.
DEVIATION_BLOCKS = 20
#: The test is conclusive if the standard deviation of the fraction is at most 1 / this number.
DECISION_DEVIATIONS = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StampJitter:
    """Deviation of stamps from the even grid, and the fraction of it that positions contain.

    A position sampled at t_n = n T + d_n differs from its value at n T by the velocity times d_n.
    The part of the positions above `MOTION_BAND_SHARE` times the sampling rate is fitted with the
    same part of v d. The fraction is 1 if the stamps are the sampling times, and 0 if samples are
    even and only the stamps are late.

    Attributes:
        size: RMS distance of the stamps from the even grid, s.
        period: period of the even grid, s.
        share: fraction of velocity times jitter that the positions contain.
        deviation: standard deviation of this fraction.
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
            "stamps are the sampling times, 0 that the samples are even but stamped late"
        )


def sample_numbers(time: np.ndarray) -> np.ndarray:
    """Return each sample's number (N,) in an even grid with missing samples; stamps may be late."""
    _, missing = missing_samples(time, may_be_late=True)
    return np.arange(len(time)) + np.concatenate([[0], np.cumsum(missing)]).astype(int)


def stamp_jitter(log: Log, names: Sequence[str]) -> StampJitter | None:
    """Return a comparison of the positions of a log with its stamps.

    Args:
        log: the log as measured, before any filter.
        names: position channels; all are used together.

    Returns:
        The comparison; None for even stamps, too few samples, or no motion.
    """
    signals = as_signals(log)
    measured = by_channel(signals, "position")
    names = [name for name in names if name in measured]
    time, count = signals.time, len(signals.time)
    if count < 4 * DEVIATION_BLOCKS or not names:
        return None
    numbers = sample_numbers(time)
    along = numbers - numbers.mean()
    late = time - time.mean()
    period = float(along @ late / (along @ along))
    late = late - period * along
    size = float(np.sqrt(np.mean(late**2)))
    if size < EVEN_STAMP_SHARE * period:
        return None
    position = np.stack([measured[name] for name in names], axis=1)
    moved = late[:, None] * np.gradient(_slow(position), period, axis=0)
    inner = slice(count // 20, count - count // 20)
    expected, fast = (moved - _slow(moved))[inner], (position - _slow(position))[inner]
    noise = np.maximum(fast.std(axis=0), np.finfo(float).tiny)
    x, y = expected / noise, fast / noise
    power = float(np.sum(x * x))
    if power == 0.0:
        return None
    share = float(np.sum(x * y)) / power
    # successive errors are correlated, so the variance is estimated from sums over blocks
    parts = np.array([part.sum() for part in np.array_split(x * (y - share * x), DEVIATION_BLOCKS)])
    return StampJitter(
        size=size, period=period, share=share, deviation=float(np.sqrt(parts @ parts)) / power
    )


def _slow(x: np.ndarray) -> np.ndarray:
    return butterworth(x, rate=1.0, cutoff=MOTION_BAND_SHARE, order=4)
