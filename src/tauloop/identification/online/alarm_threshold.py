"""Alarm thresholds from residuals of motions without contact, and false alarms.

A log is divided into blocks of time, and the largest residual of each block is used. The highest
5 % of these residuals are the tail: they exceed a level by amounts that are assumed to be
exponentially distributed. The threshold is the value that this tail exceeds a given number of times
per hour.

Source: Coles 2001, An introduction to statistical modeling of extreme values, chapters 3 and 4
(shape parameter 0).
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from scipy.stats import chi2, poisson

from tauloop.common.plain import in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

SECONDS_PER_HOUR = 3600.0
#: Shortest duration of a block, s, so that residuals of neighboring blocks are hardly correlated.
MIN_BLOCK_DURATION = 0.2
#: Shortest duration of a block in time constants of the observer.
MIN_BLOCK_TIME_CONSTANTS = 5.0
#: Fraction of the blocks in the tail.
TAIL_SHARE = 0.05
#: Minimum number of blocks in the tail.
MIN_TAIL_BLOCKS = 10
#: Quantiles of the blocks' largest residuals that determine the level of contacts. Contacts may
#: occur in the fraction of the blocks above the larger quantile.
GUMBEL_QUANTILES = (0.5, 0.75)
#: Probability of a false detection of contact in a log without contact.
FALSE_CONTACT_PROBABILITY = 0.05
#: Every threshold is at least this fraction of the largest, so that rounding errors raise no alarm.
MIN_THRESHOLD_SHARE = 1e-3
#: Confidence of the interval of the alarm rate.
INTERVAL_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(ReprMixin):
    """The largest absolute residuals of each block of a log.

    Attributes:
        size: number of samples of a block.
        duration: duration of a block, s.
        largest: (blocks, n) largest absolute residuals.
    """

    size: int
    duration: float
    largest: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms(ReprMixin):
    """Alarms during a log without contact.

    Attributes:
        alarms: number of times that an estimate rises above its threshold.
        duration: duration of the log, s.
        expected: expected number of alarms at the rate of the threshold.
    """

    alarms: int
    duration: float = field(metadata=json_keys("duration_s"))
    expected: float

    @property
    @in_json()
    def per_hour(self) -> float:
        """Alarms per hour."""
        return SECONDS_PER_HOUR * self.alarms / self.duration

    @property
    @in_json("per_hour_interval_95")
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of alarms per hour, for independent alarms (Garwood 1936)."""
        tail = 0.5 * (1.0 - INTERVAL_CONFIDENCE)
        lower = 0.5 * chi2.ppf(tail, 2 * self.alarms) if self.alarms else 0.0
        upper = 0.5 * chi2.isf(tail, 2 * self.alarms + 2)
        per_hour = SECONDS_PER_HOUR / self.duration
        return per_hour * float(lower), per_hour * float(upper)

    @property
    def probability(self) -> float:
        """Probability of at least as many alarms at the expected rate."""
        return float(poisson.sf(self.alarms - 1, self.expected))


def blocks_of(residuals: np.ndarray, period: float, bandwidth: float) -> Blocks:
    """Return the largest absolute residuals of each complete block.

    Args:
        residuals: (N, n) evenly sampled.
        period: sampling period, s.
        bandwidth: bandwidth of the observer, rad/s.
    """
    duration = max(MIN_BLOCK_DURATION, MIN_BLOCK_TIME_CONSTANTS / bandwidth)
    size = min(max(1, round(duration / period)), len(residuals))
    count = len(residuals) // size
    largest = np.abs(residuals[: count * size]).reshape(count, size, -1).max(axis=1)
    return Blocks(size=size, duration=size * period, largest=largest)


def blocks_without_contact(blocks: Blocks) -> np.ndarray:
    """Return a mask (blocks,) of the blocks without contact, from their largest residuals.

    A Gumbel distribution with the median and the upper quartile of all blocks gives a level that no
    block exceeds without contact. The blocks directly before and after a block above this level
    also count as contact, because they contain its beginning and its end.
    """
    scale = np.maximum(np.median(blocks.largest, axis=0), 1e-300)
    largest = (blocks.largest / scale).max(axis=1)
    lower, upper = np.quantile(largest, GUMBEL_QUANTILES)
    lower_unit, upper_unit = map(_gumbel_quantile, GUMBEL_QUANTILES)
    scale_unit = (upper - lower) / (upper_unit - lower_unit)
    level_unit = _gumbel_quantile(1.0 - FALSE_CONTACT_PROBABILITY / len(largest))
    is_above = largest > lower + scale_unit * (level_unit - lower_unit)
    is_contact = is_above.copy()
    is_contact[1:] |= is_above[:-1]
    is_contact[:-1] |= is_above[1:]
    return ~is_contact


def _gumbel_quantile(probability: float) -> float:
    """Return a quantile of the Gumbel distribution with location 0 and scale 1."""
    return float(-np.log(-np.log(probability)))


def threshold(largest: np.ndarray, block: float, alarms: float) -> np.ndarray:
    """Return the thresholds (n,) that residuals without contact exceed at a given rate.

    Args:
        largest: (blocks, n) largest residuals of the blocks without contact.
        block: duration of a block, s.
        alarms: allowed false alarms per hour, of all n estimates together.
    """
    probability = min(alarms * block / SECONDS_PER_HOUR, 0.5) / largest.shape[1]
    limits = np.array([_tail_quantile(column, probability) for column in largest.T])
    return np.maximum(limits, MIN_THRESHOLD_SHARE * limits.max())


def _tail_quantile(largest: np.ndarray, probability: float) -> float:
    """Return the value that the exponential tail of residuals exceeds with a given probability."""
    ordered = np.sort(largest)
    count = min(max(MIN_TAIL_BLOCKS, round(TAIL_SHARE * len(ordered))), len(ordered) - 1)
    if count < 1:
        return float(ordered[-1])
    level = ordered[-count - 1]
    excess = ordered[-count:] - level
    log_ratio = np.log(max(count / len(ordered) / probability, 1.0))
    return float(level + excess.mean() * log_ratio)


def alarms_above(residuals: np.ndarray, limits: np.ndarray, pause: int) -> list[tuple[int, int]]:
    """Return the first and last sample index of each alarm.

    Args:
        residuals: (N, n).
        limits: thresholds (n,).
        pause: alarms that are at most this number of samples apart are one alarm.
    """
    above = np.flatnonzero((np.abs(residuals) > limits).any(axis=1))
    if not len(above):
        return []
    breaks = np.flatnonzero(np.diff(above) > pause)
    firsts = above[np.concatenate([[0], breaks + 1])]
    lasts = above[np.concatenate([breaks, [len(above) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
