"""Positions of a slow bus, each value of which is repeated; sines and ramps of which the answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from tauloop.identification.faults.recording.held_positions import held_length, held_positions
from tauloop.logs.log import Channel, Signals

TIME = np.arange(6000) / 500.0
SINE = 0.7 * np.sin(3.0 * TIME) + 0.2 * np.sin(11.0 * TIME)
#: Steps of an encoder of 19 bits, and of one that is coarse, rad.
FINE, COARSE = 1.2e-5, 0.02


def stepped(values: np.ndarray, step: float) -> np.ndarray:
    return np.asarray(np.round(values / step) * step)


def repeated(values: np.ndarray, length: int, first: int = 0) -> np.ndarray:
    rows = np.arange(len(values))
    return np.asarray(values[np.maximum(rows - (rows - first) % length, 0)])


@pytest.mark.parametrize("length", [2, 3, 5, 20])
@pytest.mark.parametrize("first", [0, 1])
def test_the_number_of_repeated_values_is_found(length: int, first: int) -> None:
    assert held_length(repeated(stepped(SINE, FINE), length, first)) == length
    rests = np.where((TIME > 3.0) & (TIME < 6.0), SINE[1500], SINE)
    assert held_length(repeated(stepped(rests, FINE), length, first)) == length


@pytest.mark.parametrize("ratio", [1.25, 2.5, 1.0 / 0.7, 3.7])
def test_the_ratio_of_two_rates_need_not_be_an_integer(ratio: float) -> None:
    """A bus of 400 Hz in a log of 1 kHz has the ratio 2.5."""
    last = np.floor(np.arange(6000) / ratio + 0.3) * ratio - 0.3 * ratio  # in samples
    moves = 0.7 * np.sin(3.0 * last / 500.0) + 0.2 * np.sin(11.0 * last / 500.0)
    assert held_length(stepped(moves, FINE)) == pytest.approx(ratio, rel=2e-3)


@pytest.mark.parametrize(
    "values",
    [
        SINE,
        stepped(SINE, FINE),
        stepped(SINE, COARSE),
        stepped(0.05 * SINE, COARSE),
        stepped(COARSE * np.arange(6000) / 4.0, COARSE),
        np.zeros(6000),
        SINE[:3],
    ],
    ids=["exact", "fine", "coarse", "slow", "one step in four samples", "at rest", "short"],
)
def test_encoders_that_are_coarse_or_at_rest_are_not_held(values: np.ndarray) -> None:
    assert held_length(values) == 1


def test_the_channel_and_its_delay_are_named() -> None:
    columns = {"a": SINE, "b": repeated(stepped(SINE, FINE), 4)}
    log = Signals(
        time=TIME,
        channels=tuple(
            Channel(quantity="position", channel=name, values=values, unit="rad", source="made")
            for name, values in columns.items()
        ),
    )
    (problem,) = held_positions(log, ("a", "b", "c"))
    assert problem.where == "position.b"
    assert problem.what == "changes only every 4 samples, which is a mean delay of 3 ms"
    assert "one row in 4" in problem.remedy
