"""Samples that no sensor measured are reported with their times and left out of the fit.

The torques come from the closed formulae of `planar_arm`.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from identifying import identified
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_regressor

from tauloop import InputError, Model, identify
from tauloop.formats import loads
from tauloop.identification.estimation.evaluation import OutputFit
from tauloop.identification.faults.forces import worse_than_comparable
from tauloop.logs import Signals, samples
from tauloop.logs.checks.bad_samples import (
    EXPECTED_FALSE_SPIKES,
    bad_samples,
    spike_samples,
    without_bad_samples,
)
from tauloop.logs.log import by_channel

RATE, DURATION = 500.0, 12.0  # Hz, s
TIME = np.arange(round(RATE * DURATION)) / RATE
OPTIONS: dict[str, Any] = {"trim": 100, "decimation": 5}
NOISE = 0.1


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    w, size = (
        np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
        np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
    )
    angle = w * TIME[:, None, None] + np.arange(3)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=2) for part in parts)
    return q, v, a


def sound(seed: int = 1) -> Signals:
    q, v, a = motion()
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    return arm_log((TIME, q), forces, noise=NOISE, encoder=1.2e-5, rng=np.random.default_rng(seed))


def changed(log: Signals, name: str, at: Any, values: Any) -> Signals:
    channels = []
    for channel in log.channels:
        if channel.name == name:
            spoiled = channel.values.copy()
            spoiled[at] = values(spoiled[at]) if callable(values) else values
            channel = replace(channel, values=spoiled)
        channels.append(channel)
    return replace(log, channels=tuple(channels))


SPIKES = np.array([300, 901, 1702, 2500, 3333, 4444, 5200, 5201 + 50])
DROPOUTS = np.array([250, 777, 1234, 2222, 3210, 4321, 5678])
FAULTS = {
    "spikes": (
        "force.motor_1",
        SPIKES,
        lambda x: x + 30.0 * NOISE,
        "jumps for single samples: 8 of them",
    ),
    "zeros": ("position.motor_1", DROPOUTS, 0.0, "jumps for single samples: 7 of them"),
    "two zeros": (
        "position.motor_2",
        np.r_[DROPOUTS, DROPOUTS + 1],
        0.0,
        "jumps for single samples: 7 of them",
    ),
    "frozen force": (
        "force.motor_2",
        slice(1500, 2100),
        lambda x: x[0],
        "does not change while its motor moves",
    ),
    "frozen twice": (
        "force.motor_2",
        np.r_[1500:1550, 4000:4050],
        3.21,
        "from 3 to 3.098 s, 3.21 from 8 to 8.098 s",
    ),
    "frozen position": (
        "position.motor_1",
        slice(1500, 1800),
        lambda x: x[0],
        "does not change while the machine moves",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_named_and_the_estimates_stay_right(model: Model, fault: str) -> None:
    name, at, values, what = FAULTS[fault]
    document = identified(model, changed(sound(), name, at, values), **OPTIONS)
    assert [finding["where"] for finding in document["findings"]] == [name]
    assert what in document["findings"][0]["what"]
    assert document["status"] == "doubtful"
    reference = {
        row["name"]: row for row in identified(model, sound(), **OPTIONS)["base_parameters"]
    }
    for row in document["base_parameters"]:
        other = reference[row["name"]]
        assert abs(row["value"] - other["value"]) < 1.5 * other["standard_deviation"], row["name"]
        assert row["standard_deviation"] < 1.5 * other["standard_deviation"], row["name"]


def test_every_time_is_listed() -> None:
    (stretch,) = bad_samples(changed(sound(), "position.motor_1", DROPOUTS, 0.0))
    assert np.flatnonzero(stretch.at).tolist() == DROPOUTS.tolist()
    for number in DROPOUTS:
        assert f"{TIME[number]:g}" in stretch.problem.what.rpartition("; at ")[2]
    many = changed(sound(), "force.motor_1", np.arange(100, 5900, 400), lambda x: x - 40.0 * NOISE)
    assert "and 5 more s" in bad_samples(many)[0].problem.what


def test_positions_are_interpolated_and_forces_marked() -> None:
    log = changed(
        changed(sound(), "position.motor_1", DROPOUTS, 0.0), "force.motor_1", SPIKES, 50.0
    )
    mended, problems = without_bad_samples(log)
    assert len(problems) == 2
    error = samples(mended, "position") - samples(sound(), "position")
    assert np.abs(error).max() < 1e-4
    assert (
        np.flatnonzero(samples(mended, "left_out", ("motor_1",))[:, 0]).tolist() == SPIKES.tolist()
    )


def coarse(step: float) -> Signals:
    """Return a log with forces quantised by a converter of few bits, without further noise."""
    return changed(sound(), "force.motor_2", slice(None), lambda x: np.round(x / step) * step)


def resting() -> Signals:
    """Return a log in which the machine is at rest for two seconds, with constant forces."""
    log = sound()
    for name in ("position.motor_1", "position.motor_2", "force.motor_1", "force.motor_2"):
        log = changed(log, name, slice(4000, 5000), lambda x: np.full(len(x), x[0]))
    return log


@pytest.mark.parametrize(
    ("height", "fewest"), [(7.0, 0.7), (9.0, 0.9)], ids=["7 deviations", "9 deviations"]
)
def test_small_spikes_of_forces_are_listed(height: float, fewest: float) -> None:
    """A parabola through many neighbors shows them; only those near a reversal may remain."""
    rng = np.random.default_rng(3)
    count = 0
    shown = 0
    for seed in range(4):
        at = np.sort(rng.choice(np.arange(30, 5970, 20), 12, replace=False))
        signs = rng.choice([-1.0, 1.0], len(at))
        log = changed(
            sound(seed), "force.motor_1", at, lambda x, signs=signs: x + height * NOISE * signs
        )
        listed = np.zeros(len(TIME), dtype=bool)
        for stretch in bad_samples(log):
            assert stretch.quantity == "force"
            assert stretch.channel == "motor_1"
            listed |= stretch.at
        count += len(at)
        shown += int(listed[at].sum())
        assert listed.sum() == listed[at].sum()
    assert shown >= fewest * count


@pytest.mark.parametrize("noise", ["Student", "two sizes"])
def test_noise_with_outliers_has_no_spikes(noise: str) -> None:
    """Noise of Student's t with 3 degrees of freedom, and of which 5 % is five times as large."""
    q, v, a = motion()
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    spikes = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        if noise == "Student":
            unit = rng.standard_t(3, forces.shape) / np.sqrt(3.0)
        else:
            unit = rng.standard_normal(forces.shape)
            unit *= np.where(rng.uniform(size=forces.shape) < 0.05, 5.0, 1.0)
        for position, force in zip(q.T, (forces + NOISE * unit).T, strict=True):
            spikes += int(spike_samples(force, "force", position).sum())
    assert spikes <= 1  # 8 channels


def test_spikes_next_to_reversals_are_nearly_as_many_as_with_known_residuals() -> None:
    """The reference knows the forces without noise, and tests normal noise at the same rate."""
    q, v, a = motion()
    exact = (arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v)))[:, 0]
    reversals = np.flatnonzero(np.diff(np.sign(v[:, 0]))) + 1
    near = np.unique(np.concatenate([reversals - 7, reversals + 6]))
    near = near[(near > 30) & (near < len(TIME) - 30)]
    largest_noise = NormalDist().inv_cdf(1.0 - 0.5 * EXPECTED_FALSE_SPIKES / len(TIME))
    shown = 0
    known = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        at = rng.choice(near, 6, replace=False)
        spikes = 9.0 * NOISE * rng.choice([-1.0, 1.0], len(at))
        log = changed(sound(seed), "force.motor_1", at, lambda x, spikes=spikes: x + spikes)
        force = by_channel(log, "force")["motor_1"]
        listed = spike_samples(force, "force", by_channel(log, "position")["motor_1"])
        assert listed.sum() == listed[at].sum()
        shown += int(listed[at].sum())
        known += int((np.abs(force - exact)[at] > largest_noise * NOISE).sum())
    assert known > 68
    assert shown > 0.85 * known


@pytest.mark.parametrize(
    "log",
    [
        *(sound(seed) for seed in range(3)),
        coarse(0.5),
        coarse(2.0),
        changed(sound(), "force.motor_1", slice(None), lambda x: x[np.arange(len(x)) // 16 * 16]),
        changed(sound(), "position.motor_1", slice(None), lambda x: np.round(x / 5e-3) * 5e-3),
        changed(
            sound(),
            "force.motor_1",
            slice(None),
            lambda x: x + 0.5 * np.random.default_rng(1).laplace(size=len(x)),
        ),
    ],
    ids=["sound", "sound", "sound", "coarse", "coarser", "held", "coarse encoder", "heavy tails"],
)
def test_nothing_is_said_of_sound_channels(log: Signals) -> None:
    assert bad_samples(log) == ()


def test_a_step_of_dry_friction_on_a_slope_is_not_a_spike() -> None:
    """At 250 Hz a force falls by 0.04 N m per sample, and friction adds a step of 0.11 N m."""
    time = np.arange(1500) / 250.0
    force = -1.2 * np.sin(2.0 * np.pi * 1.3 * time)
    stepped = force + 0.11 * (time > time[np.argmin(np.diff(force))])
    assert not spike_samples(stepped, "force").any()
    stepped[700] += 0.11
    assert np.flatnonzero(spike_samples(stepped, "force")).tolist() == [700]


def test_forces_that_rest_with_the_machine_are_not_frozen() -> None:
    """Only the abrupt stop of the positions is reported, because no machine moves like this."""
    assert all(stretch.quantity == "position" for stretch in bad_samples(resting()))


def output(name: str, error: float, scale: float = 5.0, unit: str = "N m") -> OutputFit:
    return OutputFit(
        output=name,
        unit=unit,
        samples=100,
        rmse=1.0,
        bias=0.0,
        largest_residual=1.0,
        scale=scale,
        rmse_percent=1.0,
        relative_error_percent=error,
        residual_correlation=0.0,
    )


def test_an_output_ten_times_worse_than_its_twins_is_a_finding() -> None:
    comparable = (output("a", 1.0), output("b", 1.3), output("c", 14.0))
    (problem,) = worse_than_comparable(comparable, ())
    assert problem.where == "force.c"
    assert "is 14 % of this force, but 1.15 % of the others" in problem.what
    assert worse_than_comparable(comparable, (output("c", 3.0),)) == ()
    assert worse_than_comparable((output("a", 1.0), output("c", 14.0, scale=0.5)), ()) == ()
    assert worse_than_comparable((output("a", 1.0), output("c", 14.0, unit="N")), ()) == ()
    assert worse_than_comparable((output("a", 1e-6), output("c", 1e-4)), ()) == ()


def test_drives_at_their_limits_together_are_no_copies_of_training_samples(model: Model) -> None:
    """The rows of such samples are zero; the others give the parameters of the whole log."""
    log, at_limits = sound(), np.ones(len(TIME), dtype=bool)
    for name, values in by_channel(log, "force").items():
        bound = 0.7 * np.abs(values).max()
        log = changed(log, f"force.{name}", slice(None), np.clip(values, -bound, bound))
        at_limits &= np.abs(values) >= bound
    assert len({*by_channel(log, "position")["motor_1"]}) > 0.9 * len(TIME)
    assert at_limits.mean() > 0.05
    document = identified(model, log, **OPTIONS)
    assert document["status"] == "ok"
    reference = {
        row["name"]: row for row in identified(model, sound(), **OPTIONS)["base_parameters"]
    }
    for row in document["base_parameters"]:
        other = reference[row["name"]]
        assert abs(row["value"] - other["value"]) < 4.0 * row["standard_deviation"], row["name"]


def test_a_data_frame_is_identified_like_the_same_samples_in_memory(model: Model) -> None:
    log = sound().dataset()
    units = {name: log[name].attrs["units"] for name in log.data_vars}
    frame = pd.DataFrame({f"{name} [{unit}]": log[name].values for name, unit in units.items()})
    frame.insert(0, "time [s]", log["time"].values)
    results = [identified(model, source, **OPTIONS) for source in (log, frame)]
    assert results[1]["base_parameters"] == results[0]["base_parameters"]
    for wrong in (3, [frame.to_numpy()]):
        with pytest.raises(InputError, match="give a path"):
            identify(model, wrong)


def test_a_held_position_is_named_and_its_remedy_gives_the_parameters(model: Model) -> None:
    log, name = sound(), "position.motor_2"
    held = np.repeat(by_channel(log, "position")["motor_2"][::4], 4)
    log = changed(log, name, slice(None), held)
    document = identified(model, log, **OPTIONS)
    assert [finding["where"] for finding in document["findings"]] == [name]
    assert "changes only every 4 samples" in document["findings"][0]["what"]
    remedied = identified(model, log.part(slice(None, None, 4)), trim=30)
    assert remedied["status"] == "ok"
    reference = {
        row["name"]: row for row in identified(model, sound(), **OPTIONS)["base_parameters"]
    }
    for row in remedied["base_parameters"]:
        other = reference[row["name"]]
        assert abs(row["value"] - other["value"]) < 5.0 * row["standard_deviation"], row["name"]
