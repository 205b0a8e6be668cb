"""Positions from the changes of a coarse encoder's reading, next to a noisy velocity."""

from __future__ import annotations

import numpy as np
import pytest

from tauloop.logs.encoder_steps import encoder_step, position_offset
from tauloop.logs.signals import butterworth, integrated

PERIOD, STEP, NOISE = 1e-3, 6e-4, 0.02
TIME = np.arange(0.0, 12.0, PERIOD)


def motion() -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity of a slow motion with many reversals."""
    omega = 2.0 * np.pi * np.array([0.12, 0.31, 0.56])
    size = np.array([0.3, 0.1, 0.05])
    angle = omega * TIME[:, None] + [0.3, 1.1, 2.0]
    return (size * np.sin(angle)).sum(axis=1), (size * omega * np.cos(angle)).sum(axis=1)


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean((x - x.mean()) ** 2)))


@pytest.mark.parametrize("start", [0.0, 0.37])
def test_the_step_of_an_encoder_is_found_from_its_readings(start):
    position, _ = motion()
    read = STEP * np.round((position + start) / STEP) - start
    assert encoder_step(read) == pytest.approx(STEP, rel=1e-9)
    assert encoder_step(np.round(read, 9)) == pytest.approx(STEP, rel=1e-4)
    skipping = STEP * np.round(200.0 * position / STEP)
    assert encoder_step(skipping) == 0.0


def test_noisy_and_exact_positions_have_no_step():
    position, _ = motion()
    rng = np.random.default_rng(0)
    assert encoder_step(position) == 0.0
    assert encoder_step(position + 1e-4 * rng.normal(size=len(position))) == 0.0
    assert encoder_step(np.zeros(len(position))) == 0.0


def test_changes_of_reading_give_positions_that_a_filter_of_readings_does_not():
    """White noise of the readings was assumed, which they do not have at reversals."""
    position, velocity = motion()
    rng = np.random.default_rng(1)
    read = STEP * np.round(position / STEP)
    measured = velocity + NOISE * rng.normal(size=len(velocity))
    moved = integrated(measured, PERIOD)
    offset = position_offset(read, measured, STEP, NOISE, PERIOD)
    crossover = NOISE / (2.0 * np.pi * STEP / np.sqrt(12.0))
    filtered = butterworth(read - moved, rate=1.0 / PERIOD, cutoff=crossover, order=1)
    slow = np.abs(velocity) < 0.1 * np.abs(velocity).max()
    errors = [rms((moved + x - position)[slow]) for x in (offset, filtered)]
    assert errors[0] < 0.08 * STEP < errors[1]


def test_fast_motion_over_several_steps_a_sample_uses_all_readings():
    position, velocity = motion()
    read = STEP * np.round(8.0 * position / STEP)
    offset = position_offset(read, 8.0 * velocity, STEP, NOISE, PERIOD)
    error = integrated(8.0 * velocity, PERIOD) + offset - 8.0 * position
    assert rms(error) < 0.1 * STEP
