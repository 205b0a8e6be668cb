"""Thresholds of alarms from the residuals of motions without contact, and the false alarms that a threshold raises.

Of the largest residuals of blocks of time, the highest twentieth exceed a level by amounts that
fall off exponentially. The threshold is the value that this tail exceeds a stated number of times
an hour.

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

HOUR = 3600.0
#: Shortest block, s; residuals of neighbouring blocks are then hardly correlated.
SHORTEST_BLOCK = 0.2
#: Shortest block, in time constants of the observer.
TIME_CONSTANTS = 5.0
#: Share of the blocks that make up the tail, and how many these are at least.
TAIL_SHARE = 0.05
SMALLEST_TAIL = 10
#: Quantiles of the largest residuals that the search for contacts relies on: contacts may fill the
#: rest of the log.
QUANTILES = (0.5, 0.75)
#: Probability that a log without contact shows a contact.
FALSE_CONTACT = 0.05
#: Share of the largest threshold that every other threshold has at least: rounding raises no alarm.
SMALLEST_SHARE = 1e-3
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks(ReprMixin):
    """Largest absolute residual of each block of a log.

    Attributes:
        size: samples of a block.
        duration: of a block, s.
        largest: (blocks, n).
    """

    size: int
    duration: float
    largest: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms(ReprMixin):
    """Alarms during a log without contact.

    Attributes:
        alarms: how many times an estimate rises above its threshold.
        duration: of the log, s.
        expected: alarms in that time, by the threshold's own rate.
    """

    alarms: int
    duration: float = field(metadata=json_keys("duration_s"))
    expected: float

    @property
    @in_json()
    def per_hour(self) -> float:
        """Alarms per hour."""
        return HOUR * self.alarms / self.duration

    @property
    @in_json("per_hour_interval_95")
    def interval(self) -> tuple[float, float]:
        """95 % interval of the alarms per hour, for alarms that are independent (Garwood 1936)."""
        tail = 0.5 * (1.0 - CONFIDENCE)
        lower = 0.5 * chi2.ppf(tail, 2 * self.alarms) if self.alarms else 0.0
        upper = 0.5 * chi2.isf(tail, 2 * self.alarms + 2)
        return HOUR * float(lower) / self.duration, HOUR * float(upper) / self.duration

    @property
    def probability(self) -> float:
        """Probability of at least as many alarms at the expected rate."""
        return float(poisson.sf(self.alarms - 1, self.expected))


def blocks_of(residuals: np.ndarray, period: float, bandwidth: float) -> Blocks:
    """Return the largest absolute residual of each whole block.

    Args:
        residuals: (N, n) evenly sampled.
        period: between two samples, s.
        bandwidth: of the observer, rad/s.
    """
    duration = max(SHORTEST_BLOCK, TIME_CONSTANTS / bandwidth)
    size = min(max(1, round(duration / period)), len(residuals))
    count = len(residuals) // size
    largest = np.abs(residuals[: count * size]).reshape(count, size, -1).max(axis=1)
    return Blocks(size=size, duration=size * period, largest=largest)


def blocks_without_contact(blocks: Blocks) -> np.ndarray:
    """Return which blocks (blocks,) hold no contact, judged by their largest residuals alone.

    Gumbel's law through the median and the upper quartile of all blocks gives the value that none
    of them exceeds without contact. The blocks before and after one that exceeds it hold the
    beginning and the end of the contact.
    """
    scale = np.maximum(np.median(blocks.largest, axis=0), 1e-300)
    largest = (blocks.largest / scale).max(axis=1)
    lower, upper = np.quantile(largest, QUANTILES)
    spread = (upper - lower) / (_reduced(QUANTILES[1]) - _reduced(QUANTILES[0]))
    level = lower + spread * (_reduced(1.0 - FALSE_CONTACT / len(largest)) - _reduced(QUANTILES[0]))
    is_contact = largest > level
    widened = is_contact.copy()
    widened[1:] |= is_contact[:-1]
    widened[:-1] |= is_contact[1:]
    return ~widened


def _reduced(probability: float) -> float:
    """Quantile of Gumbel's law with location 0 and scale 1."""
    return float(-np.log(-np.log(probability)))


def threshold(largest: np.ndarray, block: float, alarms: float) -> np.ndarray:
    """Return the threshold (n,) that residuals without contact exceed a number of times an hour.

    Args:
        largest: of the blocks without contact (blocks, n).
        block: duration of a block, s.
        alarms: false alarms in an hour, of all n estimates together.
    """
    chance = min(alarms * block / HOUR, 0.5) / largest.shape[1]
    limits = np.array([_exceeded(column, chance) for column in largest.T])
    return np.maximum(limits, SMALLEST_SHARE * limits.max())


def _exceeded(largest: np.ndarray, chance: float) -> float:
    """Return the value that the exponential tail of some largest residuals exceeds with a given chance."""
    ordered = np.sort(largest)
    count = min(max(SMALLEST_TAIL, round(TAIL_SHARE * len(ordered))), len(ordered) - 1)
    if count < 1:
        return float(ordered[-1])
    level, excess = ordered[-count - 1], ordered[-count:] - ordered[-count - 1]
    beyond = np.log(max(count / len(ordered) / chance, 1.0))
    return float(level + excess.mean() * beyond)


def alarms_above(residuals: np.ndarray, limits: np.ndarray, pause: int) -> list[tuple[int, int]]:
    """Return first and last sample of each alarm; alarms less than `pause` samples apart are one.

    Args:
        residuals: (N, n).
        limits: thresholds (n,).
        pause: samples.
    """
    above = np.flatnonzero((np.abs(residuals) > limits).any(axis=1))
    if not len(above):
        return []
    breaks = np.flatnonzero(np.diff(above) > pause)
    firsts = above[np.concatenate([[0], breaks + 1])]
    lasts = above[np.concatenate([breaks, [len(above) - 1]])]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
