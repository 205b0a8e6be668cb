"""Uneven stamps: true sampling times or even samples stamped late, told apart by the positions.

Truth is a sum of sines sampled at known times; the torques are the closed formulae of `planar_arm`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from identifying import identified
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_regressor

from tauloop import loads
from tauloop.common.errors import LogError
from tauloop.logs import FillGaps, Signals, read_signals, resampled, samples, write_log
from tauloop.logs.log import Channel

PERIOD, COUNT = 2e-3, 6000
EVEN = PERIOD * np.arange(COUNT)
OPTIONS = {"trim": 60, "decimation": 5}
#: Steps of the encoder, rad.
ENCODER = 1.2e-5


def sampled_at(times: np.ndarray, stamps: np.ndarray, seed: int = 0) -> Signals:
    """A log of the arm sampled at some times with some stamps."""
    w, size = (
        np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
        np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
    )
    angle = w * times[:, None, None] + np.arange(3)
    q = (size * np.sin(angle)).sum(axis=2)
    v = (size * w * np.cos(angle)).sum(axis=2)
    a = (-size * w**2 * np.sin(angle)).sum(axis=2)
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    return arm_log(
        (stamps, q), forces, noise=0.05, encoder=ENCODER, rng=np.random.default_rng(seed)
    )


def uneven(seed: int = 1, share: float = 0.35) -> Signals:
    times = np.sort(EVEN + share * PERIOD * np.random.default_rng(seed).uniform(-1.0, 1.0, COUNT))
    return sampled_at(times, times)


def stamped_late(seed: int = 1) -> Signals:
    """Even samples; most stamps are a little late, some by more than a period."""
    late = np.random.default_rng(seed).exponential(0.3 * PERIOD, COUNT).clip(0.0, 1.9 * PERIOD)
    return sampled_at(EVEN, np.maximum.accumulate(EVEN + late) + 1e-7 * np.arange(COUNT))


def refused(path: Path, **options: object) -> list[str]:
    with pytest.raises(LogError) as caught:
        read_signals(path, **options)  # type: ignore[arg-type]
    return [f"{problem.what}: {problem.remedy}" for problem in caught.value.problems]


@pytest.mark.parametrize("make", [uneven, stamped_late])
def test_the_remedy_for_uneven_stamps_names_the_option(tmp_path: Path, make) -> None:
    path = write_log(tmp_path / "log.csv", make().dataset())
    problems = [text for text in refused(path) if "a gap of" in text]
    assert problems
    assert all("--resample" in text and "--fill-gaps" not in text for text in problems)
    assert len(read_signals(path, resample=True).time) == COUNT


def test_samples_taken_at_the_stamped_times_are_taken_from_there() -> None:
    log = uneven()
    even = resampled(log)
    truth = sampled_at(even.time, even.time)
    error = samples(even, "position") - samples(truth, "position")
    assert np.sqrt(np.mean(error[100:-100] ** 2)) < 2.0 * ENCODER
    (note,) = even.notes
    assert note.startswith("resampled at the stamped times")
    assert "positions contain 1.00 +-" in note


def test_even_samples_with_late_stamps_stay_as_they_are() -> None:
    log = stamped_late()
    even = resampled(log)
    np.testing.assert_allclose(samples(even, "position"), samples(log, "position"), atol=1e-12)
    assert np.ptp(np.diff(even.time)) < 1e-9
    assert np.diff(even.time)[0] == pytest.approx(PERIOD, rel=1e-3)
    (note,) = even.notes
    assert note.startswith("resampled as even samples with late stamps")


def test_repeated_stamps_can_only_be_late(tmp_path: Path) -> None:
    """A clock of one tick for two samples."""
    log = sampled_at(EVEN, np.floor(EVEN / (2.0 * PERIOD) + 1e-9) * 2.0 * PERIOD)
    path = write_log(tmp_path / "log.csv", log.dataset())
    assert any("--resample" in text for text in refused(path))
    even = read_signals(path, resample=True)
    np.testing.assert_allclose(samples(even, "position"), samples(log, "position"), atol=1e-9)
    assert "some stamps are repeated" in even.notes[0]


@pytest.mark.parametrize("make", [uneven, stamped_late])
def test_missing_samples_are_filled_up_to_the_stated_limit(tmp_path: Path, make) -> None:
    log, there = make(), np.ones(COUNT, dtype=bool)
    there[[700, 1500, 1501, 4000]] = False
    channels = tuple(
        Channel(quantity=c.quantity, channel=c.channel, values=c.values[there], unit=c.unit)
        for c in log.channels
    )
    path = write_log(
        tmp_path / "log.csv", Signals(time=log.time[there], channels=channels).dataset()
    )
    problems = refused(path, resample=True)
    assert any("--resample --fill-gaps" in text for text in problems)
    assert refused(path, resample=True, gaps=FillGaps(longest=1))
    even = read_signals(path, resample=True, gaps=FillGaps(longest=2))
    filled = len(even.time) - len(log.time[there])
    # of steps that are uneven by a third, one missing sample more or less cannot be told
    assert abs(filled - 4) <= (1 if make is uneven else 0)
    assert set(even.interpolated.values()) == {filled}
    truth = sampled_at(even.time, even.time) if make is uneven else log
    error = samples(even, "position") - samples(truth, "position")
    assert np.abs(error[100:-100]).max() < 20.0 * ENCODER
    with pytest.raises(LogError, match="may be interpolated"):
        resampled(Signals(time=log.time[there], channels=channels))


def test_missing_rows_of_even_stamps_name_their_option(tmp_path: Path) -> None:
    log, there = sampled_at(EVEN, EVEN), np.ones(COUNT, dtype=bool)
    there[[700, 1500, 1501]] = False
    rows = log.dataset().isel(time=there)
    problems = refused(write_log(tmp_path / "log.csv", rows))
    assert all("(--fill-gaps 2)" in text for text in problems)
    there[2000:2600] = False
    problems = refused(write_log(tmp_path / "log.csv", log.dataset().isel(time=there)))
    assert any(
        text.endswith("samples are missing: use the log before or after the gap")
        for text in problems
    )


@pytest.mark.parametrize(
    ("make", "cause"), [(uneven, "at the stamped times"), (stamped_late, "as even samples")]
)
def test_identification_reports_the_choice_and_finds_the_friction(
    tmp_path: Path, make, cause: str
) -> None:
    path = write_log(tmp_path / "log.csv", make().dataset())
    document = identified(loads(MACHINE), path, **OPTIONS, resample=True)
    assert document["status"] == "ok", document["findings"]
    assert any(f"resampled {cause}" in line for line in document["repairs"])
    rows = {row["name"]: row for row in document["base_parameters"]}
    for name in ("shoulder.coulomb", "elbow.coulomb"):
        assert abs(rows[name]["value"] - FRICTION) < 5.0 * rows[name]["standard_deviation"]


def test_positions_that_do_not_move_leave_the_stamps_as_they_are() -> None:
    log = uneven(share=0.2)
    still = tuple(
        Channel(quantity=c.quantity, channel=c.channel, values=np.zeros(COUNT), unit=c.unit)
        for c in log.channels
    )
    assert resampled(Signals(time=log.time, channels=still)).notes == ()


def test_a_resampled_step_of_a_force_does_not_overshoot():
    """A spline through a step of dry friction would overshoot by a tenth of it."""
    rng = np.random.default_rng(1)
    even = np.arange(400) * 2e-3
    time = np.sort(even + 7e-4 * rng.uniform(-1.0, 1.0, len(even)))
    position = np.sin(20.0 * time)
    force = np.sign(np.cos(20.0 * time))
    channels = (
        Channel(quantity="position", channel="m", values=position, unit="rad"),
        Channel(quantity="force", channel="m", values=force, unit="N m"),
    )
    log = resampled(Signals(time=time, channels=channels))
    assert np.abs(log.channels[1].values).max() <= 1.0
    assert np.abs(log.channels[0].values - np.sin(20.0 * log.time)).max() < 1e-6
