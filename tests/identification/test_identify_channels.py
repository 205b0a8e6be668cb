"""Channels of a log: measured velocities with coarse encoders, cut-offs, and forces at a limit.

The results are compared with the multisine that moved the machine, differentiated in closed form,
with the parameters of the simulated machine, and with the noise that was added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from identifying import identified, options_of, tables_of
from planar_arm import with_channel

from tauloop import Model, load
from tauloop.common.errors import InputError, LogError
from tauloop.identification import (
    WeightedLeastSquares,
    choose_channels,
    fit_regression,
    identify,
    split_data,
    usable_velocities,
)
from tauloop.identification.regression.from_log import regression_data
from tauloop.logs import (
    Preparation,
    Signals,
    load_recording,
    measured_velocities,
    prepared_signals,
    samples,
)
from tauloop.logs.checks.saturation import LEFT_OUT, without_saturated
from tauloop.logs.log import Channel
from tauloop.logs.velocities import wrong_velocities
from tauloop.motion import SampledMotion, random_multisine

RATE, DURATION = 500.0, 16.0  # Hz, s
NAMES = ("motor_1", "motor_2")
PREPARATION = Preparation(cutoff=20.0, trim=100, decimation=5)
OPTIONS: dict[str, Any] = {"cutoff": 20.0, "trim": 100, "decimation": 5}
#: Step of an encoder with 1000 lines and fourfold evaluation, rad.
COARSE_STEP = 2 * np.pi / 4000
#: Noise of a good tachometer, rad/s, and of the torques, N m.
TACHOMETER_NOISE, FORCE_NOISE = 0.01, 0.02
#: Estimates are within this number of standard deviations of the truth.
MAX_DEVIATIONS = 5.0


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(load("five_bar"))


@pytest.fixture(scope="module")
def motion(model) -> SampledMotion:
    rng = np.random.default_rng(3)
    center = model.actuator_position(model.assembly.q)
    excitation = random_multisine(center, np.full(2, 0.3), rng, terms=5, lowest=0.2, highest=3.0)
    return excitation.sample(np.arange(0.0, DURATION, 1.0 / RATE))


def log_of(
    model: Model,
    motion: SampledMotion,
    *,
    steps: Sequence[float] = (COARSE_STEP, COARSE_STEP),
    tachometer: float = TACHOMETER_NOISE,
    scale: float = 1.0,
    offset: float = 0.0,
) -> Signals:
    """Return the log of a motion, with stepped encoders and noisy tachometers and torques."""
    rng = np.random.default_rng(7)
    start = model.forward_kinematics(motion.position).q
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=start
    ).force
    rows = []
    for k, name in enumerate(NAMES):
        read = np.round(motion.position[:, k] / steps[k]) * steps[k]
        noise = rng.normal(size=(2, len(motion.time)))
        values = {
            "position": (read, "rad"),
            "velocity": (scale * motion.velocity[:, k] + offset + tachometer * noise[0], "rad/s"),
            "force": (forces[:, k] + FORCE_NOISE * noise[1], "N m"),
        }
        rows += [
            Channel(quantity=q, channel=name, values=x, unit=unit)
            for q, (x, unit) in values.items()
        ]
    return Signals(time=motion.time, channels=tuple(rows))


@pytest.fixture(scope="module")
def coarse(model, motion) -> Signals:
    return log_of(model, motion)


def held_out(document: dict[str, Any]) -> np.ndarray:
    return np.array([row["held_out"]["rmse"] for row in document["outputs"]])


def deviations(model: Model, log: Signals, preparation: Preparation) -> np.ndarray:
    """Return the errors of the estimates against the simulated machine, in standard deviations."""
    result = fit_regression(
        *split_data(regression_data(model, log, preparation), 0.7), WeightedLeastSquares()
    )
    return (result.values - result.base.regrouping @ model.pi) / result.standard_deviations


def test_scale_offset_and_noise_of_a_tachometer_are_those_put_on(model, motion):
    velocities = measured_velocities(
        log_of(model, motion, scale=1.02, offset=0.05, tachometer=0.05)
    )
    for case in velocities.values():
        assert case.scale == pytest.approx(1.02, abs=2e-3)
        assert case.offset == pytest.approx(0.05, abs=5e-3)
        assert case.noise == pytest.approx(0.05, rel=0.1)
        assert case.position_noise == pytest.approx(
            COARSE_STEP / np.sqrt(12.0), rel=0.15
        )  # of rounding
        assert case.crossover == pytest.approx(
            case.noise / 1.02 / case.position_noise / (2 * np.pi), rel=5e-3
        )


@pytest.mark.parametrize("tachometer", [0.02, 0.1])
def test_fused_velocities_are_nearer_to_the_true_ones_than_either(model, motion, tachometer):
    log = log_of(model, motion, tachometer=tachometer, offset=0.02)
    errors = {}
    for source in ("positions", "measured", "fused"):
        values = samples(
            prepared_signals(log, replace(PREPARATION, cutoff=40.0, velocity=source)), "velocity"
        )
        errors[source] = np.sqrt(np.mean((values - motion.velocity[100:-100]) ** 2))
    assert errors["fused"] < 1.02 * min(errors["positions"], errors["measured"])
    assert errors["fused"] < 0.8 * max(errors["positions"], errors["measured"])


def test_coarse_encoders_with_good_tachometers(model, coarse):
    """Ignored velocities had up to three times the error, without a warning."""
    result = identify(model, coarse, options_of(**OPTIONS))
    ignored, used = (
        identified(model, coarse, **OPTIONS, velocity_source="positions"),
        result.as_dict(),
    )
    assert (held_out(used) < held_out(ignored) / 2.5).all()
    decided = used["channels"]
    assert {channel["velocity"] for channel in decided["prepared"][0]["channels"]} <= {
        "measured",
        "fused",
    }
    tried = decided["validation_percent"]
    assert min(tried["velocity measured"], tried["velocity fused"]) < tried["as given"] / 2.5
    assert all(f"velocity of {name}: " in " ".join(decided["notes"]) for name in NAMES)
    chosen = replace(PREPARATION, velocities=chosen_sources(used))
    assert np.abs(deviations(model, coarse, chosen)).max() < MAX_DEVIATIONS
    text = " ".join(tables_of(result).split())
    assert (
        "forces and regressor pass the same filters: that of the decimation by 5 and one at" in text
    )
    assert "velocity of motor_1: measured" in text or "velocity of motor_1: fused" in text
    assert "validation error over all outputs" in text


def chosen_sources(document: dict[str, Any]) -> dict[str, str]:
    return {
        channel["channel"]: channel["velocity"]
        for channel in document["channels"]["prepared"][0]["channels"]
    }


def test_good_encoders_keep_their_derivative_beside_a_bad_tachometer(model, motion):
    log = log_of(model, motion, steps=(1e-6, 1e-6), tachometer=0.2)
    choice = choose_channels(
        model, [log], [PREPARATION], velocities=tuple(usable_velocities(model, [log]))
    )
    assert all(choice.preparations[0].source_of(name) == "positions" for name in NAMES)
    assert choice.common["velocity measured"] > 2.0 * choice.common["as given"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (
            lambda v: np.rad2deg(v),
            "57.31 times the derivative of position.motor_1: the values look like deg/s, but the column is declared in",
        ),
        (lambda v: -v, "is -1 times the derivative of position.motor_1: the sign is wrong"),
        (
            lambda v: -30.0 / np.pi * v,
            "the sign is wrong, and the values look like rpm, but the column is declared in rad/s",
        ),
        (lambda v: np.roll(v, 137), "is not the derivative of position.motor_1"),
    ],
)
def test_a_velocity_of_another_unit_sign_or_motion_is_named_and_not_used(
    model, coarse, damage, says
):
    values = next(c.values for c in coarse.channels if c.name == "velocity.motor_1")
    log = with_channel(coarse, "velocity.motor_1", damage(values))
    document = identified(model, log, **OPTIONS)
    assert any(
        says in case["what"] and case["where"] == "velocity.motor_1"
        for case in document["findings"]
    )
    assert chosen_sources(document)["motor_1"] == "positions"
    assert document["status"] != "ok"
    with pytest.raises(LogError) as caught:
        identified(model, log, **OPTIONS, velocity_source="measured")
    assert says in str(caught.value)


@pytest.mark.parametrize("samples_late", [5, 10, -5])
def test_a_late_velocity_is_corrected_and_the_delay_stated(model, coarse, samples_late):
    """The encoder is so coarse that the corrected velocity is better than its derivative."""
    values = next(c.values for c in coarse.channels if c.name == "velocity.motor_1")
    log = with_channel(coarse, "velocity.motor_1", np.roll(values, samples_late))
    period = float(np.diff(log.time).mean())
    velocity = measured_velocities(log)["motor_1"]
    assert velocity.delay == pytest.approx(samples_late * period, abs=0.1 * period)
    sound, late = (identified(model, entry, **OPTIONS) for entry in (coarse, log))
    assert late["status"] == "ok", late["findings"]
    assert chosen_sources(late)["motor_1"] != "positions"
    assert (held_out(late) < 1.1 * held_out(sound)).all()
    word = "late" if samples_late > 0 else "early"
    note = next(text for text in late["channels"]["notes"] if "velocity of motor_1" in text)
    assert f" ms {word}" in note


def test_exchanged_velocities_are_named_as_such(coarse):
    by_name = {channel.name: channel.values for channel in coarse.channels}
    first = by_name["velocity.motor_1"]
    second = by_name["velocity.motor_2"]
    log = with_channel(with_channel(coarse, "velocity.motor_1", second), "velocity.motor_2", first)
    result = wrong_velocities(log)
    assert {name: problem.what for name, problem in result.items()} == {
        "motor_1": "is the derivative of position.motor_2, not of position.motor_1: the columns are swapped",
        "motor_2": "is the derivative of position.motor_1, not of position.motor_2: the columns are swapped",
    }
    assert wrong_velocities(coarse) == {}


def test_velocities_that_cannot_be_used_are_said(model, coarse):
    renamed = replace(
        coarse,
        channels=tuple(
            replace(c, channel="spindle") if c.name == "velocity.motor_2" else c
            for c in coarse.channels
        ),
    )
    notes = identified(model, renamed, **OPTIONS)["channels"]["notes"]
    assert any(note.startswith("velocity.spindle is not used") for note in notes)
    notes = identified(model, coarse, period=4.0, max_frequency=3.0, trim=0)["channels"]["notes"]
    assert any(note.startswith("velocity.motor_1 is not used: the periods") for note in notes)


def test_a_saturated_tachometer_is_replaced_by_the_positions_where_it_is(model, motion, coarse):
    limit = 0.6 * np.abs(motion.velocity[:, 0]).max()
    values = next(c.values for c in coarse.channels if c.name == "velocity.motor_1")
    log = with_channel(coarse, "velocity.motor_1", np.clip(values, -limit, limit))
    true = np.abs(motion.velocity[:, 0]) > 1.05 * limit
    velocity = measured_velocities(log)["motor_1"]
    assert true.sum() < velocity.saturated < 1.5 * true.sum()
    series = samples(prepared_signals(log, replace(PREPARATION, velocity="measured")), "velocity")[
        :, 0
    ]
    assert np.abs(series - motion.velocity[100:-100, 0]).max() < 0.1 * limit


def test_each_channel_has_the_cut_off_that_suits_it(model, motion):
    """Motor 1 has a coarse encoder and needs a low cut-off; motor 2 is fast and needs a high one.

    Forces are predicted for the true motion, without a filter.
    """
    t = motion.time
    center = motion.position.mean(axis=0)
    frequencies = 2 * np.pi * np.array([0.7, 12.0])
    sizes = np.array([0.3, 0.02])
    angle = frequencies * t[:, None]
    moved = replace(
        motion,
        position=center + sizes * (np.sin(angle) + 0.4 * np.sin(0.37 * angle)),
        velocity=sizes * frequencies * (np.cos(angle) + 0.4 * 0.37 * np.cos(0.37 * angle)),
        acceleration=-sizes
        * frequencies**2
        * (np.sin(angle) + 0.4 * 0.37**2 * np.sin(0.37 * angle)),
    )
    log = log_of(model, moved, steps=(COARSE_STEP, 1e-6))
    cutoffs = (12.0, 20.0, 40.0)
    choice = choose_channels(model, [log], [replace(PREPARATION, cutoff=80.0)], cutoffs=cutoffs)
    outcome = choice.preparations[0]
    assert outcome.cutoff_of("motor_1") == 12.0
    assert outcome.cutoff_of("motor_2") > 12.0
    regressor = model.actuators.regressor(moved.position, moved.velocity, moved.acceleration)
    forces = regressor @ model.pi

    def error(preparation: Preparation) -> float:
        result = fit_regression(
            *split_data(regression_data(model, log, preparation), 0.7), WeightedLeastSquares()
        )
        return float(np.sqrt(((regressor @ result.parameters - forces) ** 2).mean()))

    assert error(outcome) < 0.5 * min(
        error(replace(PREPARATION, cutoff=cutoff)) for cutoff in (*cutoffs, 80.0)
    )


def test_the_held_out_part_takes_no_part_in_the_choice(model, coarse):
    spoilt = coarse
    last = np.arange(len(coarse.time)) > 0.7 * len(coarse.time) + 1
    for name in NAMES:
        values = next(c.values for c in coarse.channels if c.name == f"force.{name}")
        spoilt = with_channel(spoilt, f"force.{name}", np.where(last, 0.0, values))
    first, second = (
        choose_channels(model, [log], [PREPARATION], velocities=NAMES) for log in (coarse, spoilt)
    )
    assert first.preparations == second.preparations
    assert np.array_equal(first.after, second.after)


def test_a_force_at_its_limit_is_left_out_while_it_is(model, motion):
    """A fit with the clipped samples has large errors; a fit without them has not."""
    log = log_of(model, motion, steps=(1e-6, 1e-6))
    log = replace(log, channels=tuple(c for c in log.channels if c.quantity != "velocity"))
    forces = next(c.values for c in log.channels if c.name == "force.motor_2")
    limit = 0.55 * np.abs(forces).max()
    log = with_channel(log, "force.motor_2", np.clip(forces, -limit, limit))
    true = np.abs(forces) >= limit
    marked = without_saturated(log)
    marks = samples(marked, LEFT_OUT, ("motor_2",))[:, 0] != 0.0
    assert np.mean(marks[true]) > 0.9
    assert np.sum(marks & ~true) < 0.3 * true.sum()
    assert np.abs(deviations(model, log, PREPARATION)).max() > 2 * MAX_DEVIATIONS
    assert np.abs(deviations(model, marked, PREPARATION)).max() < MAX_DEVIATIONS
    document = identified(model, log, **OPTIONS)
    assert document["status"] == "ok"
    assert not document["findings"]
    assert document["channels"]["prepared"][0]["left_out"] == {"motor_2": int(marks.sum())}
    assert any(
        note.startswith("force.motor_2 is at a limit in") for note in document["channels"]["notes"]
    )


def test_rows_left_out_count_for_nothing_also_when_forces_mix(model, motion):
    """The values of marked forces do not change the regression data, with a transmission either."""
    log = without_velocity = log_of(model, motion)
    marks = np.zeros(len(log.time))
    marks[2000:2300] = 1.0
    mark = Channel(quantity=LEFT_OUT, channel="motor_1", values=marks, unit="1")
    without_velocity = replace(log, channels=(*log.channels, mark))
    forces = next(c.values for c in log.channels if c.name == "force.motor_1")
    wild = with_channel(without_velocity, "force.motor_1", np.where(marks > 0.0, 1e6, forces))
    for output in ("actuators", "joints"):
        single, other = (
            regression_data(model, x, PREPARATION, output=output) for x in (without_velocity, wild)
        )
        assert np.array_equal(single.forces, other.forces)
        assert np.array_equal(single.regressor, other.regressor)
        assert single.present is not None
        assert single.present[:, 0].sum() == len(single) - 60
        assert single.present[:, 1].all()
        # Rows next to the gap are still equations: with the true parameters, only noise remains.
        left = single.forces - single.regressor @ model.pi
        assert np.abs(left[380:460, 0]).max() < 10 * FORCE_NOISE


def test_a_recording_says_how_each_channel_is_prepared(tmp_path):
    text = (
        "format: tauloop-log/1\nfiles:\n- {path: log.csv}\npreparation:\n  cutoff: 20 Hz\n"
        "  cutoffs: {motor_1: 0.01 kHz}\n  velocity: measured\n  velocities: {motor_2: fused}\n"
    )
    (tmp_path / "log.yaml").write_text(text)
    recording = load_recording(tmp_path / "log.yaml").preparation
    assert recording is not None
    assert [recording.cutoff_of(name) for name in NAMES] == [10.0, 20.0]
    assert [recording.source_of(name) for name in NAMES] == ["measured", "fused"]
    (tmp_path / "log.yaml").write_text(
        text.replace("fused", "guessed").replace("0.01 kHz", "-1 Hz")
    )
    with pytest.raises(LogError) as refused:
        load_recording(tmp_path / "log.yaml")
    assert any(problem.where == "preparation.cutoffs.motor_1" for problem in refused.value.problems)


def test_channels_that_are_not_there_are_refused(coarse):
    with pytest.raises(InputError, match=r"motor_3.*is not a position channel"):
        prepared_signals(coarse, replace(PREPARATION, cutoffs={"motor_3": 10.0}))
    bare = replace(coarse, channels=tuple(c for c in coarse.channels if c.quantity != "velocity"))
    with pytest.raises(LogError, match=r"velocity.motor_1"):
        prepared_signals(bare, replace(PREPARATION, velocity="fused"))
    with pytest.raises(InputError, match="guessed"):
        replace(PREPARATION, velocity="guessed")
