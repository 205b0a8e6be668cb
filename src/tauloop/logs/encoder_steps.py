"""Positions from the times at which the reading of a coarse encoder changes.

Between two changes, the error of a reading depends on the motion and is nearly constant at a
reversal. At a change, the position is known: it is the boundary between the two readings.
"""

from __future__ import annotations

import numpy as np

from tauloop.logs.signals import integrated

#: Largest deviation of distances between readings from multiples of the step, in steps.
STEP_TOLERANCE = 0.05
#: Largest noise, as a fraction of the step, for which changes of the reading are usable.
MAX_NOISE_SHARE = 0.5
#: Minimum number of different readings.
MIN_READINGS = 16
#: Smallest drift of the integrated velocity between two samples, as a fraction of the step.
MIN_DRIFT = 1e-4


def encoder_step(position: np.ndarray) -> float:
    """Return an encoder's step, m or rad; zero if positions (N,) are not multiples of a step.

    The result is also zero if there are too few, or too many, different readings.
    """
    readings = np.unique(position)
    if len(readings) < MIN_READINGS or 2 * len(readings) > len(position):
        return 0.0
    gaps = np.diff(readings)
    counts = np.round(gaps / np.median(gaps))
    if not counts.min() >= 1.0:
        return 0.0
    step = float((readings[-1] - readings[0]) / counts.sum())
    errors = np.abs(gaps / step - counts)
    return step if errors.max() <= STEP_TOLERANCE else 0.0


def position_offset(
    position: np.ndarray, velocity: np.ndarray, step: float, noise: float, period: float
) -> np.ndarray:
    """Return the position minus the integrated velocity (N,), as a smoothed random walk.

    The velocity has white noise, so its integral drifts as a random walk. The encoder readings
    measure this offset with different variances. At a change by one step, the error is uniform over
    the motion within the period. At a change by several steps, it is uniform over one step. A
    reading that remains for n samples counts as one measurement. The smoothed walk (Rauch, Tung and
    Striebel 1965, Maximum likelihood estimates of linear dynamic systems) minimizes a sum of
    squares with a tridiagonal matrix.

    Args:
        position: readings (N,), m or rad.
        velocity: measured velocity (N,), m/s or rad/s.
        step: step of the encoder, m or rad.
        noise: standard deviation of the velocity, m/s or rad/s.
        period: sampling period, s.
    """
    from scipy.linalg import solveh_banded  # slow to import, and few logs have velocities

    count = len(position)
    integral = integrated(velocity, period)
    offset = position - integral
    changes = np.abs(np.diff(np.round((position - position[0]) / step)))
    variance = _variances_between_changes(changes, step)
    is_fast = np.zeros(count, dtype=bool)
    is_fast[1:] |= changes >= 2
    is_fast[:-1] |= changes >= 2
    variance[is_fast] = step**2 / 12.0
    single_steps = np.flatnonzero((changes == 1) & ~is_fast[:-1])
    speed = np.maximum(0.5 * np.abs(velocity[single_steps] + velocity[single_steps + 1]), noise)
    offset[single_steps] = 0.5 * (
        position[single_steps]
        + position[single_steps + 1]
        - integral[single_steps]
        - integral[single_steps + 1]
    )
    variance[single_steps] = np.minimum(speed * period, step) ** 2 / 12.0
    drift = max(noise * period, MIN_DRIFT * step) ** 2
    diagonal = np.full(count, 2.0)
    diagonal[[0, -1]] = 1.0
    bands = np.full((2, count), -1.0 / drift)
    bands[1] = diagonal / drift + 1.0 / variance
    return np.asarray(solveh_banded(bands, offset / variance))


def _variances_between_changes(changes: np.ndarray, step: float) -> np.ndarray:
    """Return each reading's variance (N,); a reading that remains counts as one measurement."""
    reading_numbers = np.concatenate([[0], np.cumsum(changes > 0)])
    sample_counts = np.bincount(reading_numbers)[reading_numbers]
    return np.asarray(sample_counts * step**2 / 12.0)
