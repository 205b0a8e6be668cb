"""Late forces: delay, hold, compliant transmission and presliding friction are distinguished.

The torques come from the closed formulae of `planar_arm`. Delays are exact, because the motion is a
function of time. Dahl's friction and a load behind a spring are integrated step by step.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import planar_3rrr_by_hand
import pytest
from identifying import identified
from planar_arm import MACHINE, TRUE, arm_log, arm_regressor

from tauloop import Model, load
from tauloop.formats import loads
from tauloop.identification.faults.late_forces import (
    NEGLIGIBLE_DELAY_SHARE,
    _Output,
    late_forces,
)
from tauloop.identification.faults.measured_motion import measured_motion
from tauloop.logs import Preparation, prepared_signals
from tauloop.logs.log import Channel, Signals
from tauloop.motion import random_multisine

RATE, DURATION = 500.0, 14.0  # Hz, s
TIME = np.arange(round(RATE * DURATION)) / RATE
OPTIONS: dict[str, Any] = {"cutoff": 40.0, "trim": 100, "decimation": 5}
#: Coulomb friction, N m, viscous friction, N m s/rad, and noise, N m, of torques of about 10 N m.
COULOMB, VISCOUS, NOISE = 0.6, 0.1, 0.1
#: Number of integration steps of Dahl's friction and of the spring in a sampling period.
INTEGRATION_STEPS = 20


def motion_at(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v, a of sines up to 1.5 Hz."""
    w, size = (
        np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
        np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
    )
    angle = w * t[:, None, None] + np.arange(3)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=2) for part in parts)
    return q, v, a


def smooth_at(t: np.ndarray) -> np.ndarray:
    q, v, a = motion_at(t)
    return np.asarray(arm_regressor(q, v, a) @ TRUE + VISCOUS * v)


def forces_at(t: np.ndarray) -> np.ndarray:
    return np.asarray(smooth_at(t) + COULOMB * np.sign(motion_at(t)[1]))


FORCES = forces_at(TIME)


def first_alone(changed: np.ndarray) -> np.ndarray:
    """Return the forces with those of motor 1 replaced."""
    return np.stack([changed[:, 0], FORCES[:, 1]], axis=1)


def dahl(length: float) -> np.ndarray:
    """Return Dahl's friction (N, 2) of both joints, from -1 to 1."""
    fine = np.arange(len(TIME) * INTEGRATION_STEPS) / (RATE * INTEGRATION_STEPS)
    moved = np.diff(motion_at(fine)[0], axis=0, prepend=motion_at(fine[:1])[0])
    columns = []
    for step in moved.T:
        state, states = 0.0, []
        kept = np.exp(-np.abs(step) / length)
        for direction, share in zip(np.sign(step).tolist(), kept.tolist(), strict=True):
            state = direction + (state - direction) * share
            states.append(state)
        columns.append(states[::INTEGRATION_STEPS])
    return np.array(columns).T


def behind_a_spring(frequency: float, inertia: float = 0.5) -> np.ndarray:
    """Return the torque (N,) of motor 1 on a load with Coulomb friction behind a spring.

    Args:
        frequency: frequency, Hz, at which the load oscillates with the motor held.
        inertia: inertia of the load, kg m^2.
    """
    step = 1.0 / (RATE * INTEGRATION_STEPS)
    q, v, _ = motion_at(np.arange(len(TIME) * INTEGRATION_STEPS) * step)
    stiffness = inertia * (2.0 * math.pi * frequency) ** 2
    damping = 0.04 * math.sqrt(inertia * stiffness)
    place, speed, torque = float(q[0, 0]), float(v[0, 0]), np.zeros(len(q))
    for k, (angle, rate) in enumerate(zip(q[:, 0].tolist(), v[:, 0].tolist(), strict=True)):
        torque[k] = stiffness * (angle - place) + damping * (rate - speed)
        speed += step * (torque[k] - COULOMB * math.tanh(speed / 1e-3)) / inertia
        place += step * speed
    return torque[::INTEGRATION_STEPS]


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


def findings(
    model: Model, forces: np.ndarray, seed: int = 8, noise: float = NOISE, **options: Any
) -> dict[str, str]:
    log = arm_log(
        (TIME, motion_at(TIME)[0]),
        forces,
        noise=noise,
        encoder=1.2e-5,
        rng=np.random.default_rng(seed),
    )
    document = identified(model, log, **OPTIONS | options)
    assert (document["status"] == "ok") is not bool(document["findings"])
    return {
        finding["where"]: f"{finding['what']} remedy: {finding['remedy']}"
        for finding in document["findings"]
    }


def number(pattern: str, text: str) -> float:
    matched = re.search(pattern.replace("#", r"([-+.e0-9]+)"), text)
    assert matched, text
    return float(matched.group(1))


def test_nothing_is_named_where_only_rounding_is_left(model: Model) -> None:
    """Without noise and Coulomb friction, only an error of the filter remains, which seems late."""
    log = arm_log((TIME, motion_at(TIME)[0]), smooth_at(TIME), noise=0.0, encoder=0.0)
    document = identified(model, log, **OPTIONS)
    assert [row["training"]["rmse_percent"] < 1e-3 for row in document["outputs"]] == [True, True]
    assert document["findings"] == []


@pytest.mark.parametrize("milliseconds", [2.0, 5.0, -3.0])
@pytest.mark.parametrize("every", [False, True], ids=["one", "all"])
def test_a_delay_is_named_with_its_size(model: Model, milliseconds: float, every: bool) -> None:
    late = forces_at(TIME - 1e-3 * milliseconds)
    problems = findings(model, late if every else first_alone(late))
    assert set(problems) == ({"force.motor_1", "force.motor_2"} if every else {"force.motor_1"})
    for text in problems.values():
        verb = "lags" if milliseconds > 0.0 else "leads"
        assert number(rf"{verb} the motion by # \+-", text) == pytest.approx(
            abs(milliseconds), abs=0.2
        )
        assert "--presliding" not in text


@pytest.mark.parametrize("milliseconds", [4.4])
def test_deviations_of_delays_are_those_of_many_logs(model: Model, milliseconds: float) -> None:
    errors = []
    for seed in range(4):
        forces = first_alone(forces_at(TIME - 1e-3 * milliseconds))
        log = arm_log(
            (TIME, motion_at(TIME)[0]), forces, noise=NOISE, rng=np.random.default_rng(seed)
        )
        motion = measured_motion(model, prepared_signals(log, Preparation(cutoff=40.0, trim=100)))
        (late,) = late_forces(model, motion, only=["motor_1"])
        best = next(cause for cause in late.ranked if cause.kind == "delay")
        errors.append((1e3 * best.size - milliseconds) / (1e3 * best.deviation))
        assert 1e3 * best.deviation < 0.3
        assert re.search(r"lags the motion by [.0-9]+ \+- [.0-9]+ ms", late.problem("").what)
    assert np.abs(errors).max() < 3.0
    assert np.sqrt(np.mean(np.square(errors))) < 1.7


@pytest.mark.nightly
def test_deviations_of_delays_of_a_parallel_machine() -> None:
    """The torques of the 3-RRR are 4.4 ms late; the median of its outputs is given to all."""
    model = Model(load("planar_3rrr"))
    time = np.arange(0.0, 10.0, 1.0 / RATE)
    forces = planar_3rrr_by_hand.forces_of(*planar_3rrr_by_hand.motion_at(time - 4.4e-3))
    errors = []
    for seed in range(3):
        log = planar_3rrr_by_hand.log_of(
            time, forces, np.random.default_rng(seed), noise=0.02, encoder=1.2e-5
        )
        motion = measured_motion(model, prepared_signals(log, Preparation(cutoff=40.0, trim=60)))
        explained = late_forces(model, motion)
        assert [late.output for late in explained] == list(planar_3rrr_by_hand.MOTORS)
        for late in explained:
            assert late.kind == "delay"
            assert late.ranked[0].deviation < 0.2e-3
            errors.append((late.delay - 4.4e-3) / late.ranked[0].deviation)
    assert np.abs(errors).max() < 3.0
    assert np.sqrt(np.mean(np.square(errors))) < 1.5


@pytest.mark.parametrize(("coulomb", "milliseconds"), [(1.5, 3.0), (3.0, 10.0)])
def test_a_chosen_standstill_does_not_change_the_size_of_a_delay(
    model: Model, coulomb: float, milliseconds: float
) -> None:
    """Reversals at which late friction is wrong are fitted better if they count as a rest."""
    shifted = TIME - 1e-3 * milliseconds
    late = smooth_at(shifted) + coulomb * np.sign(motion_at(shifted)[1])
    positions = motion_at(TIME)[0]
    rng = np.random.default_rng(8)
    log = arm_log((TIME, positions), late, noise=NOISE, encoder=1.2e-5, rng=rng)
    document = identified(model, log)
    assert len(document["findings"]) == 2
    for finding in document["findings"]:
        assert number(r"lags the motion by # \+-", finding["what"]) == pytest.approx(
            milliseconds, rel=0.05
        )


@pytest.fixture(scope="module")
def hardly_late(model: Model) -> dict[str, str]:
    """Return the findings of a log with 0.8 of the negligible delay and with little noise.

    The delay is significant because of the small noise, but samples next to reversals of a log
    without faults have the same effect.
    """
    return findings(model, forces_at(TIME - 0.8 * NEGLIGIBLE_DELAY_SHARE / RATE), noise=0.003)


def test_no_delay_below_a_twentieth_of_a_sample_is_named(hardly_late: dict[str, str]) -> None:
    assert [text for text in hardly_late.values() if "lags the motion" in text] == []


def test_a_delay_below_a_twentieth_of_a_sample_gives_no_finding(
    hardly_late: dict[str, str],
) -> None:
    assert hardly_late == {}


def test_a_bending_is_sought_on_the_samples_that_it_is_judged_on() -> None:
    """Every third sample of transmitted columns comes from a shorter transform and is the same."""
    rng, count, parameters = np.random.default_rng(0), 12_000, 40
    columns = rng.normal(size=(count, parameters)).cumsum(axis=0)
    names = [f"p{number}" for number in range(parameters)]
    output = _Output(columns, names, rng.normal(size=count), None, 0.01)
    assert np.all(np.diff(output._searched) == 3)
    thinned = output.through_spring(0.1, 0.1)
    whole = thinned(output._searched.copy())
    np.testing.assert_allclose(thinned(output._searched), whole, atol=1e-6 * np.abs(whole).max())


@pytest.mark.parametrize("decimation", [1, 10])
def test_the_decimation_does_not_matter(model: Model, decimation: int) -> None:
    problems = findings(model, first_alone(forces_at(TIME - 5e-3)), decimation=decimation)
    assert number(r"lags the motion by # \+-", problems["force.motor_1"]) == pytest.approx(
        5.0, abs=0.2
    )


@pytest.mark.parametrize("length", [4, 8])
@pytest.mark.parametrize("noise_is_held", [False, True])
def test_a_held_force_is_named_with_its_samples(
    model: Model, length: int, noise_is_held: bool
) -> None:
    at = np.arange(len(TIME)) // length * length
    noisy = FORCES + NOISE * np.random.default_rng(3).normal(size=FORCES.shape)
    forces, noise = (noisy[at], 0.0) if noise_is_held else (FORCES[at], NOISE)
    problems = findings(model, first_alone(forces), noise=noise)
    assert set(problems) == {"force.motor_1"}
    assert f"is held for {length} samples" in problems["force.motor_1"]


@pytest.mark.parametrize("length", [0.003, 0.03])
@pytest.mark.parametrize("every", [False, True], ids=["one", "all"])
def test_presliding_friction_is_named_with_its_length(
    model: Model, length: float, every: bool
) -> None:
    forces = smooth_at(TIME) + COULOMB * dahl(length)
    problems = findings(model, forces if every else first_alone(forces))
    assert set(problems) == ({"shoulder", "elbow"} if every else {"shoulder"})
    for where, text in problems.items():
        assert number("builds up over # rad", text) == pytest.approx(length, rel=0.25)
        assert text.endswith(f"--presliding {where}")


@pytest.mark.parametrize("frequency", [20.0, 40.0])
def test_a_load_with_friction_behind_a_spring_is_named(model: Model, frequency: float) -> None:
    """Only the friction excites the load, at a frequency that the residual shows."""
    forces = smooth_at(TIME)
    forces[:, 0] += behind_a_spring(frequency)
    problems = findings(model, first_alone(forces))
    assert set(problems) == {"force.motor_1"}
    assert number("its load oscillates at # Hz", problems["force.motor_1"]) == pytest.approx(
        frequency, rel=0.05
    )


def test_friction_that_turns_before_its_motion_is_no_lead_of_the_force(model: Model) -> None:
    """Soft constraints of a simulator cause it: friction follows the speed without friction."""
    early = smooth_at(TIME) + COULOMB * np.sign(motion_at(TIME + 7e-3)[1])
    (finding,) = findings(model, first_alone(early)).items()
    assert finding[0] == "shoulder"
    assert number(r"reverses # \+-", finding[1]) == pytest.approx(7.0, abs=0.4)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_named_on_sound_logs(model: Model, seed: int) -> None:
    assert findings(model, FORCES, seed=seed) == {}


def test_presliding_fitted_to_a_late_force_is_a_finding(model: Model) -> None:
    late = first_alone(forces_at(TIME - 5e-3))
    problems = findings(model, late, presliding={"shoulder": "0.0003 rad"})
    assert number(r"lags the motion by # \+-", problems["force.motor_1"]) == pytest.approx(
        5.0, abs=0.2
    )
    text = problems["shoulder.presliding"]
    assert number("length of # rad is shorter than", text) == pytest.approx(3e-4)
    assert "rad that motor_1 moves between samples" in text
    # friction that pushes
    problems = findings(
        model,
        first_alone(smooth_at(TIME) - COULOMB * dahl(0.05)),
        presliding={"shoulder": "0.05 rad"},
    )
    assert "is negative in a fit with presliding friction" in problems["shoulder.presliding"]


def test_presliding_fitted_to_presliding_friction_is_sound(model: Model) -> None:
    forces = first_alone(smooth_at(TIME) + COULOMB * dahl(0.01))
    assert findings(model, forces, presliding={"shoulder": ""}) == {}


@pytest.mark.nightly
def test_a_delay_of_all_forces_is_named_for_each_of_many() -> None:
    """One leg of a hexapod hardly determines its parameters; the delay of the others explains it."""
    model = Model(load("hexapod"))
    center = model.actuator_position(model.assembly.q)
    rng = np.random.default_rng(3)
    motion = random_multisine(center, np.full(6, 0.025), rng, terms=5, lowest=0.2, highest=2.0)
    time = np.arange(10_000) / 500.0
    late = motion.sample(time - 4e-3)
    forces = model.actuators.inverse_dynamics(late.position, late.velocity, late.acceleration).force
    forces = forces + 0.01 * np.sqrt(np.mean(forces**2, axis=0)) * rng.standard_normal(forces.shape)
    position = 1e-6 * np.round(1e6 * motion.sample(time).position)
    channels = tuple(
        Channel(quantity=quantity, channel=actuator.name, values=column.copy(), unit=unit)
        for quantity, unit, values in (("position", "m", position), ("force", "N", forces))
        for actuator, column in zip(model.mechanism.actuators, values.T, strict=True)
    )
    log = Signals(time=time, channels=channels)
    document = identified(model, log, trim=100, decimation=5)
    delays = {
        finding["where"]: re.match(r"lags the motion by ([.0-9]+) \+-", finding["what"])
        for finding in document["findings"]
    }
    assert set(delays) == {f"force.{actuator.name}" for actuator in model.mechanism.actuators}
    for match in delays.values():
        assert match is not None
        assert float(match.group(1)) == pytest.approx(4.0, abs=0.4)
