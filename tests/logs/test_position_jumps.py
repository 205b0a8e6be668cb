"""Wrapped angles are made continuous, and other jumps of positions are named with their times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tauloop.logs.checks.bad_samples import without_bad_samples
from tauloop.logs.checks.position_jumps import jump_steps, position_jumps
from tauloop.logs.log import Channel, Signals, by_channel

TIME = np.arange(4000) / 500.0
ANGLE = 2.5 + 1.3 * np.sin(3.0 * TIME) + 0.4 * np.sin(11.0 * TIME)
STEP = 2.0 * np.pi / 2**17


def log_of(position: np.ndarray, unit: str = "rad") -> Signals:
    rng = np.random.default_rng(0)
    force = 3.0 * np.cos(ANGLE) + 0.1 * rng.standard_normal(len(TIME))
    channels = (
        Channel(quantity="position", channel="motor", values=position, unit=unit),
        Channel(quantity="force", channel="motor", values=force, unit="N m"),
    )
    return Signals(time=TIME, channels=channels)


def rounded(position: np.ndarray) -> np.ndarray:
    return np.round(position / STEP) * STEP


@pytest.mark.parametrize("revolutions", [1.0, 3.0])
def test_a_wrapped_angle_is_made_continuous(revolutions: float) -> None:
    """The reference is NumPy's `unwrap`."""
    read = rounded(revolutions * ANGLE)
    wrapped = (read + np.pi) % (2.0 * np.pi) - np.pi
    mended, problems = without_bad_samples(log_of(wrapped))
    assert len(problems) == 1
    assert "is a wrapped angle: it jumps by a revolution at" in problems[0].what
    np.testing.assert_allclose(
        by_channel(mended, "position")["motor"], np.unwrap(wrapped), atol=1e-12
    )


def test_lost_counts_are_named_with_their_time() -> None:
    lost = rounded(ANGLE) + np.where(TIME >= 5.0, 0.4, 0.0)
    mended, (problem,) = without_bad_samples(log_of(lost))
    assert problem.where == "position.motor"
    assert "at 5 s" in problem.what
    assert "several logs" in problem.remedy
    np.testing.assert_array_equal(by_channel(mended, "position")["motor"], lost)


@pytest.mark.parametrize("step", [0.01, -0.02, 0.1])
def test_a_step_that_is_smaller_than_those_of_the_motion_is_named(step: float) -> None:
    """An encoder that slips in mid-log: the fastest motion has steps of 0.016 rad."""
    (problem,) = without_bad_samples(log_of(rounded(ANGLE) + np.where(TIME >= 5.0, step, 0.0)))[1]
    assert problem.where == "position.motor"
    assert "at 5 s" in problem.what
    missing = np.flatnonzero(np.abs(TIME - 3.0) > 2e-3)
    log = log_of(rounded(ANGLE))
    channels = [replace(channel, values=channel.values[missing]) for channel in log.channels]
    assert position_jumps(Signals(time=TIME[missing], channels=tuple(channels))) == ()


@pytest.mark.parametrize(
    "position",
    [
        rounded(ANGLE),
        np.cumsum(np.where(np.floor(4.0 * TIME) % 3 == 1, 0.01, 0.0)),
        np.round(ANGLE / 0.01) * 0.01,
        np.cumsum(np.where(np.sin(3.0 * TIME) > 0.95, 0.02, 0.0)),
        40.0 * TIME,
        np.zeros(len(TIME)),
    ],
    ids=[
        "sound",
        "steps of velocity",
        "coarse encoder",
        "short moves",
        "constant speed",
        "at rest",
    ],
)
def test_motions_do_not_jump(position: np.ndarray) -> None:
    assert not jump_steps(position).any()
    assert without_bad_samples(log_of(position))[1] == ()


def test_lengths_have_no_revolutions() -> None:
    wrapped = (rounded(ANGLE) + np.pi) % (2.0 * np.pi) - np.pi
    problems = without_bad_samples(log_of(wrapped, unit="m"))[1]
    assert [problem.what.split(" ")[0] for problem in problems] == ["jumps"]
