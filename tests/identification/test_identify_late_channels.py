"""A late force that shifts of whole channels confuse with an early position.

The torques come from the closed forms of `benchmarks/closed_form.py`.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tauloop as tl

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
LATE = 16e-3  # s


@pytest.fixture
def closed_form(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("closed_form")


@pytest.mark.parametrize("channel", [0, 2], ids=["position", "force"])
def test_a_late_force_and_an_early_position_that_fit_equally_well_are_both_stated(
    closed_form: ModuleType, channel: int
) -> None:
    """The delay of the force has its exact size; the position is shifted by whole samples."""
    motion = closed_form.Multisine.random(np.zeros(2), 0.55, 2.2, seed=2)
    truth = replace(closed_form.five_bar(), motion=motion)
    rng = np.random.default_rng(0)
    sound = closed_form.log_of(truth, rng, seconds=10.0)
    late = closed_form.log_of(truth, rng, seconds=10.0, late=LATE)
    channels = list(sound.channels)
    if channel:
        channels[channel] = late.channels[channel]
    else:
        samples = round(LATE * 500.0)
        channels = [replace(each, values=each.values[:-samples]) for each in sound.channels]
        channels[0] = replace(channels[0], values=sound.channels[0].values[samples:])
        sound = replace(sound, time=sound.time[:-samples])
    log = replace(sound, channels=tuple(channels))
    result = tl.identify(truth.mechanism, log, trim=100, decimation=1, cutoff=16.7)
    (finding,) = result.data_findings
    assert finding.where == "force.ma"
    delay = float(finding.what.split("lags the motion by ")[1].split(" +-")[0])
    assert delay == pytest.approx(1e3 * LATE, abs=0.3)
    assert (
        "equally good explanation: position.ma leads the other channels by 8 samples"
        in finding.what
    )
