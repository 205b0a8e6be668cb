"""Trends of residuals: drifts, compliance, clocks and jitter from formulas are found with their size.

The torques come from the closed formulae of `planar_arm`, so that logs do not depend on the
machine's equations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from identifying import identified
from planar_arm import DRIVES, FRICTION, MACHINE, TRUE, arm_forces, arm_log, arm_regressor

from tauloop import Model
from tauloop.formats import loads
from tauloop.identification import regression_data
from tauloop.identification.faults.recording.time_stamps import jitter
from tauloop.identification.faults.residual_trends import (
    ResidualTrend,
    residual_trends,
    trend_problems,
)
from tauloop.logs import Preparation, Signals

RATE, DURATION = 200.0, 40.0  # Hz, s
PREPARATION = Preparation(cutoff=30.0, trim=60, decimation=2)
FRICTION_NAMES = ("shoulder.viscous", "shoulder.coulomb", "elbow.viscous", "elbow.coulomb")
#: Frequencies, rad/s, and amplitudes, rad, of sines of both joints.
SINES = (
    np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
    np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
)
#: Relative tolerance of the value of a trend, because of noise of 0.02 N m and of other columns.
VALUE_TOLERANCE = 0.1


def motion_at(t: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return times and q, v, a of the sines at given times."""
    w, size = SINES
    angle = w * t[:, None, None] + np.arange(3)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    return (t, *(part.sum(axis=2) for part in parts))


TIME = np.arange(round(RATE * DURATION)) / RATE
MOTION = motion_at(TIME)
FORCES = arm_forces(MOTION)
SPAN = DURATION - 2 * PREPARATION.trim / RATE


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


def trends(
    model: Model, forces: np.ndarray, preparation: Preparation = PREPARATION
) -> tuple[ResidualTrend, ...]:
    data = regression_data(model, arm_log(MOTION, forces), preparation)
    return residual_trends(data, FRICTION_NAMES, speeds=speeds_of(MOTION, preparation, len(data)))


def speeds_of(motion: tuple[np.ndarray, ...], preparation: Preparation, count: int) -> np.ndarray:
    return motion[2][preparation.trim :: preparation.decimation][:count]


def second_derivative(forces: np.ndarray) -> np.ndarray:
    """Return the second derivative by differences of fourth order, independent of the library."""
    stretched = np.pad(forces, ((2, 2), (0, 0)), mode="edge")
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0 * RATE**2
    return sum(w * stretched[k : k + len(forces)] for k, w in enumerate(weights))  # type: ignore[return-value]


def smooth(motion: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the torques without Coulomb friction, whose jumps have no second derivative."""
    return arm_regressor(*motion[1:]) @ TRUE + FRICTION * motion[2]


def test_nothing_is_said_of_a_sound_log_nor_of_one_whose_friction_is_of_another_shape(
    model: Model,
) -> None:
    _, q, v, _ = MOTION
    stribeck = 0.3 * np.sign(v) * np.exp(-np.abs(v) / 0.2)
    for forces in (
        FORCES,
        FORCES + stribeck,
        FORCES + 0.3 * np.sin(9.0 * q),
        FORCES + 0.05 * v * np.abs(v),
    ):
        assert trends(model, forces) == ()


def test_friction_that_falls_while_the_machine_warms_up(model: Model) -> None:
    """Five times the friction of the file, falling by 30 % of its mean from beginning to end."""
    _, _, v, _ = MOTION
    course = 1.0 - 0.3 * (TIME / DURATION - 0.5)
    forces = smooth(MOTION) + (FRICTION * 5.0) * course[:, None] * (v + np.sign(v)) - FRICTION * v
    by_name = {trend.output: trend for trend in trends(model, forces)}
    for drive in DRIVES:
        assert (by_name[drive].kind, by_name[drive].cause) == ("friction", "time")
        assert by_name[drive].value == pytest.approx(-0.3 * SPAN / DURATION, rel=0.2)
        assert "its friction changes by -" in str(by_name[drive])


def test_an_offset_that_creeps(model: Model) -> None:
    by_name = {
        trend.output: trend
        for trend in trends(model, FORCES + np.array([0.0, 0.4]) * (TIME / DURATION)[:, None])
    }
    assert set(by_name) == {"motor_2"}
    assert (by_name["motor_2"].kind, by_name["motor_2"].unit) == ("offset", "N m")
    assert by_name["motor_2"].value == pytest.approx(0.4 * SPAN / DURATION, rel=VALUE_TOLERANCE)


def test_a_payload_from_one_moment_on(model: Model) -> None:
    """From 14 s on, the second link carries 0.3 kg at 0.3 m."""
    loaded = TRUE + np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.09, 0.0, 0.027])
    change = arm_regressor(*MOTION[1:]) @ (loaded - TRUE)
    rows = trends(model, FORCES + np.where(TIME >= 14.0, 1.0, 0.0)[:, None] * change)
    assert {trend.output for trend in rows} == set(DRIVES)
    for output in DRIVES:
        trend = next(trend for trend in rows if trend.output == output)
        assert trend.cause == "step"
        assert trend.time == pytest.approx(14.0, abs=0.2)
        assert re.search(r"changes suddenly at 1(3\.9|4)\d* s: its force .* by \+", str(trend))
        (problem, *_) = trend_problems([trend])
        assert "several logs" in problem.remedy


def test_warmth_that_comes_and_goes_with_the_load(model: Model) -> None:
    """The machine is at rest in the middle third; the heat is integrated step by step."""
    calm = 0.5 + 0.5 * np.abs(np.tanh(4.0 * (TIME / DURATION - 0.5)))
    t, q, *_ = MOTION
    q = q * calm[:, None]
    v = np.gradient(q, t, axis=0, edge_order=2)
    moved = (t, q, v, np.gradient(v, t, axis=0, edge_order=2))
    forces = smooth(moved)
    heat = forces**2 / np.mean(forces**2, axis=0)
    warmth = np.zeros_like(heat)
    for k in range(1, len(t)):
        warmth[k] = warmth[k - 1] + (heat[k - 1] - warmth[k - 1]) * 3.0 / len(t)
    data = regression_data(model, arm_log(moved, forces * (1.0 - 0.05 * warmth)), PREPARATION)
    rows = [trend for trend in residual_trends(data, FRICTION_NAMES) if trend.output == "motor_1"]
    assert (rows[0].kind, rows[0].cause) == ("scale", "warmth")
    assert rows[0].value == pytest.approx(-0.05 * np.ptp(warmth[:, 0]), rel=0.25)


@pytest.mark.parametrize("frequency", [6.0, 10.0])
def test_a_transmission_that_bends(model: Model, frequency: float) -> None:
    """Torques are rigid torques minus their second derivative over the squared load frequency."""
    forces = smooth(MOTION)
    bent = forces - second_derivative(forces) / (2.0 * np.pi * frequency) ** 2
    by_name = {trend.output: trend for trend in trends(model, bent)}
    assert by_name
    for trend in by_name.values():
        assert trend.kind == "compliance"
        assert 1.0 / (2.0 * np.pi * np.sqrt(trend.value)) == pytest.approx(frequency, rel=0.3)


def test_a_filter_of_the_positions_is_no_transmission_that_bends(model: Model) -> None:
    """A pole forwards and backwards removes 1 % of the fastest sine, in forces and regressor."""
    first_order = Preparation(cutoff=6.0, order=1, trim=100, decimation=2)
    data = regression_data(model, arm_log(MOTION, smooth(MOTION)), first_order)
    assert "compliance" not in {trend.kind for trend in residual_trends(data, FRICTION_NAMES)}


def test_clocks_that_drift_apart(model: Model) -> None:
    """The stamps of torques are later by 250 us every second: torques belong to earlier motion."""
    drift = 2.5e-4
    late = motion_at(TIME - drift * (TIME - 0.5 * DURATION))
    by_name = {trend.output: trend for trend in trends(model, arm_forces(late))}
    for drive in DRIVES:
        assert by_name[drive].kind == "clock"
        assert by_name[drive].value == pytest.approx(drift, rel=VALUE_TOLERANCE)
    assert "+25" in trend_problems(tuple(by_name.values()))[0].what


@pytest.mark.parametrize("late", [3e-3, -3e-3, 6e-3])
@pytest.mark.parametrize("rate", [200.0, 5000.0])
def test_a_delay_of_less_than_a_sample_and_of_many(model: Model, late: float, rate: float) -> None:
    """Torques belong to the motion 3 ms before: 0.6 and 15 samples."""
    t = np.arange(round(15.0 * rate)) / rate
    forces = arm_forces(motion_at(t))
    forces[:, 0] = arm_forces(motion_at(t - late))[:, 0]
    preparation = Preparation(
        cutoff=30.0, trim=round(0.3 * rate), decimation=max(round(rate / 200.0), 1)
    )
    data = regression_data(model, arm_log(motion_at(t), forces), preparation)
    (trend,) = residual_trends(
        data, FRICTION_NAMES, speeds=speeds_of(motion_at(t), preparation, len(data))
    )
    assert (trend.output, trend.kind) == ("motor_1", "delay")
    assert trend.value == pytest.approx(late, rel=VALUE_TOLERANCE)
    assert f"{'lags' if late > 0.0 else 'leads'} the motion by" in str(trend)


def test_hysteresis_at_reversals_is_no_delay(model: Model) -> None:
    """Dahl's friction, integrated step by step, follows a reversal like a delay."""
    q = MOTION[1]
    dahl = np.zeros_like(q)
    for k in range(1, len(q)):
        step = q[k] - q[k - 1]
        dahl[k] = np.clip(
            dahl[k - 1] + step / 0.05 * (1.0 - dahl[k - 1] * np.sign(step)), -1.0, 1.0
        )
    assert trends(model, smooth(MOTION) + 0.5 * dahl) == ()


def uneven(share: float, taken: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Signals:
    """Return a log whose stamps jitter by up to a share of the period.

    Args:
        share: largest jitter, as a share of the period.
        taken: function that returns the times at which samples are taken.
    """
    stamps = TIME + share / RATE * np.random.default_rng(5).uniform(-1.0, 1.0, len(TIME))
    _, q, *_ = motion_at(taken(stamps, TIME))
    return arm_log((stamps, q), FORCES, encoder=1e-4)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_samples_taken_at_uneven_times_and_stamps_that_only_say_so(share: float) -> None:
    (problem,) = jitter(uneven(share, lambda stamps, even: stamps), DRIVES)
    rms = 100.0 * share / np.sqrt(3.0)  # of a uniform distribution
    assert float(problem.what.split("RMS, ")[1].split(" %")[0]) == pytest.approx(rms, rel=0.05)
    assert jitter(uneven(share, lambda stamps, even: even), DRIVES) == ()
    # A clock that advances every second sample.
    coarse = arm_log((np.round(TIME, 2) + 0.0, MOTION[1]), FORCES)
    assert jitter(coarse, DRIVES) == ()


def test_a_drift_makes_the_result_doubtful() -> None:
    for creep, status in ((0.0, "ok"), (0.4, "doubtful")):
        log = arm_log(MOTION, FORCES + creep * (TIME / DURATION)[:, None])
        document = identified(loads(MACHINE), log, cutoff=30.0, trim=60, decimation=2)
        assert document["status"] == status
        assert any("its offset changes by" in row["what"] for row in document["findings"]) is bool(
            creep
        )


def test_nothing_is_said_of_the_measured_arm(shared: Path) -> None:
    """The residual of its model is 7 to 17 % of the torques and has no trend."""
    from tauloop.formats.urdf.reader import load_urdf
    from tauloop.logs import load_recording, prepared_signals, read_signals, samples

    data, arm = shared / "data" / "tx40", Path(__file__).parents[2] / "examples" / "tx40"
    machine = Model(load_urdf(data / "tx40_nomesh.urdf", arm / "side.yaml"))
    recording = load_recording(arm / "recording.yaml", data)
    log = read_signals(*recording.files, sample_rate=recording.sample_rate)
    assert recording.preparation is not None
    rows = regression_data(machine, log, recording.preparation, output="joints")
    rubbing = [
        parameter.name
        for parameter in machine.parameters
        if parameter.role in ("viscous", "coulomb")
    ]
    moved = samples(prepared_signals(log, recording.preparation), "velocity")
    assert (
        residual_trends(
            rows, rubbing, speeds=moved[:: recording.preparation.decimation][: len(rows)]
        )
        == ()
    )
    assert jitter(log, machine.actuators.ports.position.columns) == ()
