"""Forces from outside, from logs of a five-bar in closed form (NumPy) that a known force pushes."""

import json

import numpy as np
import pytest
from scipy.signal import lfilter

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.identification.online.alarm_threshold import (
    FalseAlarms,
    alarms_above,
    blocks_of,
    threshold,
)
from tauloop.identification.online.external_wrench import wrench_components
from tauloop.logs import write_log
from tauloop.model import Model

PERIOD, DURATION = 0.002, 30.0
PUSH = np.array([6.0, -4.0])
BEGIN, END = 12.0, 12.4
NAMES = ["motor_1", "motor_2"]


class FiveBar:
    """Closed form of the shipped five-bar, from the numbers of its file alone."""

    def __init__(self):
        values = tl.load("five_bar").parameters
        self.numbers = {item.name: item.value for item in values}

    def points(self, angles):
        """Return (N, 5, 2): mass centres of crank 1, crank 2, link 1, link 2, and the tip; and angles of the links."""
        p = self.numbers
        axes = np.array([[-p["motor_distance"] / 2, 0.0], [p["motor_distance"] / 2, 0.0]])
        crank = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        elbows = axes + p["crank_length"] * crank
        between = elbows[:, 1] - elbows[:, 0]
        distance = np.linalg.norm(between, axis=1, keepdims=True)
        across = np.stack([-between[:, 1], between[:, 0]], axis=1) / distance
        tip = elbows.mean(axis=1) + across * np.sqrt(p["link_length"] ** 2 - distance**2 / 4)
        links = tip[:, None] - elbows
        centers = [*(axes + 0.45 * p["crank_length"] * crank).transpose(1, 0, 2)]
        centers += [*(0.5 * (tip[:, None] + elbows)).transpose(1, 0, 2), tip]
        return np.stack(centers, axis=1), np.arctan2(links[..., 1], links[..., 0])

    def bodies(self, angles):
        """Return mass centres (N, 10) and angles of cranks and links (N, 4)."""
        points, turns = self.points(angles)
        return points.reshape(len(angles), -1), np.concatenate([angles, turns], axis=1)

    def jacobians(self, angles, step=1e-6):
        """Return the same by crank angles (N, 2, 10) and (N, 2, 4), by central differences."""
        moved = [
            [
                (a - b) / (2 * step)
                for a, b in zip(self.bodies(angles + d), self.bodies(angles - d), strict=True)
            ]
            for d in step * np.eye(2)
        ]
        return tuple(np.stack([moved[k][i] for k in range(2)], axis=1) for i in range(2))

    def forces(self, motion, time, step=1e-4):
        """Return the motors' forces (N, 2) of a motion in time, by virtual work."""
        p = self.numbers
        masses = np.repeat(
            [p["crank_mass"], p["crank_mass"], p["link_mass"], p["link_mass"], p["tip_mass"]], 2
        )
        inertias = np.array(
            [p["crank_inertia"], p["crank_inertia"], p["link_inertia"], p["link_inertia"]]
        )
        before, now, after = (motion(time + shift) for shift in (-step, 0.0, step))
        moved = zip(*(self.bodies(angles) for angles in (before, now, after)), strict=True)
        linear, angular = ((a - 2 * b + c) / step**2 for a, b, c in moved)
        linear = linear + np.tile([0.0, 9.81], 5)
        by_position, by_angle = self.jacobians(now)
        velocity, acceleration = (after - before) / (2 * step), (after - 2 * now + before) / step**2
        forces = np.einsum("nkj,nj->nk", by_position, masses * linear)
        forces += np.einsum("nkj,nj->nk", by_angle, inertias * angular)
        return (
            forces + p["rotor_inertia"] * acceleration + 0.01 * velocity + 0.05 * np.sign(velocity)
        )


def swing(phase):
    """Return a motion of both cranks, as a function of time."""
    center = np.deg2rad([130.76658827968447, 49.23341172031553])
    size, rate = np.array([[0.15, 0.1], [0.12, -0.08]]), 2 * np.pi * np.array([0.4, 1.1])

    def motion(time):
        angle = time[:, None] * rate + phase
        return center + np.sin(angle) @ size.T

    return motion


def recorded(*, seed=0, push=PUSH, phase=0.3, duration=DURATION, noise=0.01):
    """Return a log of the five-bar, which is pushed at its tip from `BEGIN` to `END`."""
    machine, motion, rng = FiveBar(), swing(phase), np.random.default_rng(seed)
    time = PERIOD * np.arange(round(duration / PERIOD))
    forces = machine.forces(motion, time)
    by_tip = machine.jacobians(motion(time))[0][:, :, -2:]
    pushed = (time >= BEGIN) & (time < END)
    forces -= pushed[:, None] * (by_tip @ push)
    forces += noise * rng.standard_normal(forces.shape)
    sensors = tl.logs.Sensors(resolution=[2e-5, 2e-5], force_noise=[0.0, 0.0])
    return tl.logs.measure(
        time, motion(time), forces, NAMES, ["rad"] * 2, ["N m"] * 2, sensors, rng
    )


@pytest.fixture(scope="module")
def model():
    return Model(tl.load("five_bar"))


@pytest.fixture(scope="module")
def pushed():
    return recorded()


@pytest.fixture(scope="module")
def named(model, pushed):
    """The result for the log that is pushed, with stated intervals without contact."""
    options = tl.ExternalWrenchOptions(contact_free=((0.0, 11.0), (14.0, 30.0)))
    return tl.estimate_external_wrench(model, pushed, options)


@pytest.fixture(scope="module")
def searched(model, pushed):
    """The result for the same log, whose intervals without contact are searched."""
    return tl.estimate_external_wrench(model, pushed)


@pytest.mark.parametrize("observer", ["momentum", "differences"])
def test_a_push_at_the_tool_is_found_with_its_size(model, pushed, named, observer):
    options = tl.ExternalWrenchOptions(contact_free=((0.0, 11.0), (14.0, 30.0)), observer=observer)
    is_default = observer == tl.ExternalWrenchOptions().observer
    result = named if is_default else tl.estimate_external_wrench(model, pushed, options)
    assert result.status.value == "ok", result.advice
    assert result.components == ("fx", "fy")
    (contact,) = result.contacts
    assert contact.start == pytest.approx(BEGIN, abs=0.02)
    assert contact.end == pytest.approx(END, abs=0.06)
    lag = 5.0 / 100.0
    held = (result.time > BEGIN + lag) & (result.time < END)
    assert result.wrench[held, :2].mean(axis=0) == pytest.approx(PUSH, abs=0.03)
    assert not result.wrench[:, 2:].any()
    # no mean force without contact: friction and weight are explained
    assert (np.abs(result.offset) < 0.02).all()


def test_stretches_without_contact_are_found(named, searched):
    assert searched.free_is_searched
    assert not named.free_is_searched
    assert searched.status.value == "ok", searched.advice
    assert not any(start < END and end > BEGIN for start, end in searched.free)
    assert searched.threshold == pytest.approx(named.threshold, rel=0.15)
    assert len(searched.contacts) == 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.nightly) for k in (1, 2))])
def test_a_log_without_contact_shows_none(model, seed):
    result = tl.estimate_external_wrench(model, recorded(seed=seed, push=np.zeros(2)))
    assert result.status.value == "ok", result.advice
    assert result.contacts == ()


def test_false_alarms_of_another_log_are_counted(model, pushed):
    free = recorded(seed=5, push=np.zeros(2), phase=1.0)
    result = tl.estimate_external_wrench(
        model, pushed, tl.ExternalWrenchOptions(contact_free_log=free)
    )
    assert result.false_alarms.alarms == 0
    assert result.false_alarms.per_hour == 0.0
    lower, upper = result.false_alarms.interval
    assert lower == 0.0
    # no event: closed form
    assert upper == pytest.approx(3600 / result.false_alarms.duration * -np.log(0.025))
    loud = recorded(seed=5, push=np.zeros(2), noise=0.05)
    result = tl.estimate_external_wrench(
        model, pushed, tl.ExternalWrenchOptions(contact_free_log=loud)
    )
    assert result.false_alarms.alarms > 5
    assert result.status.value == "doubtful"
    assert "false alarms" in result.advice[0]


def test_a_model_with_wrong_masses_is_doubtful(pushed):
    heavy = Model(tl.load("five_bar").with_values({"tip_mass": 1.5}))
    result = tl.estimate_external_wrench(
        heavy, pushed, tl.ExternalWrenchOptions(contact_free=((0.0, 11.0),))
    )
    assert result.status.value == "doubtful"
    assert any("does not explain" in line and "identify" in line for line in result.advice)


def test_a_log_that_is_mostly_contact_is_doubtful(model):
    log = recorded(duration=13.2)
    options = tl.ExternalWrenchOptions(contact_free=((0.0, 1.0),))
    result = tl.estimate_external_wrench(model, log, options)
    # five blocks without contact are too few for a threshold
    assert result.status.value == "doubtful"
    assert any("record a longer log" in line for line in result.advice)


@pytest.mark.parametrize(
    ("name", "components"),
    [
        ("five_bar", (0, 1)),
        ("four_bar", (0,)),
        ("delta", (0, 1, 2)),
        ("hexapod", (0, 1, 2, 3, 4, 5)),
        ("gantry_tau_5dof", (0, 1, 2, 3, 4)),
    ],
)
def test_the_components_are_those_that_the_machine_tells_apart(name, components):
    assert wrench_components(Model(tl.load(name)), ()) == components


def test_components_that_cannot_be_told_are_refused(model, pushed):
    options = tl.ExternalWrenchOptions(components=("fx", "fy", "mz"))
    with pytest.raises(
        InputError, match="mz cannot be determined at the reference pose in addition to fx, fy"
    ):
        tl.estimate_external_wrench(model, pushed, options)


def test_stretches_outside_the_log_are_refused(model):
    with pytest.raises(InputError, match="give longer intervals"):
        tl.estimate_external_wrench(
            model, recorded(duration=5.0), tl.ExternalWrenchOptions(contact_free=((40.0, 50.0),))
        )


def test_a_log_without_forces_is_refused(model, pushed):
    signals = pushed if hasattr(pushed, "data_vars") else pushed.dataset()
    without = signals.drop_vars([name for name in signals.data_vars if name.startswith("force")])
    with pytest.raises(InputError, match="motor_1"):
        tl.estimate_external_wrench(model, without)


def test_a_threshold_raises_the_stated_false_alarms():
    """Gaussian noise behind the observer's lag: thresholds from ten minutes, alarms counted in ten hours."""
    rate, bandwidth, alarms = 100.0, 50.0, 6.0
    share = -np.expm1(-bandwidth / rate)
    counts = []
    for seed in range(12):
        noise = np.random.default_rng(seed).standard_normal((round(10.0 * 3600 * rate), 1))
        estimate = lfilter([share], [1.0, share - 1.0], noise, axis=0)
        blocks = blocks_of(estimate[: round(600 * rate)], 1 / rate, bandwidth)
        limits = threshold(blocks.largest, blocks.duration, alarms)
        counts.append(len(alarms_above(estimate, limits, round(3 * rate / bandwidth))) / 10.0)
    # on the safe side: a Gaussian tail falls off faster
    assert 0.2 * alarms < np.mean(counts) < 1.2 * alarms


def test_the_probability_of_false_alarms_is_that_of_a_poisson_count():
    alarms = FalseAlarms(alarms=3, duration=3600.0, expected=1.0)
    assert alarms.probability == pytest.approx(1 - np.exp(-1) * (1 + 1 + 0.5))
    assert alarms.per_hour == 3.0
    # Garwood's table for three events
    assert alarms.interval == pytest.approx((0.6187, 8.7673), abs=1e-3)


def test_forces_that_the_recording_knows_are_taken_off(model, pushed, named, tmp_path):
    """A spring that the machine file lacks looks like a force from outside, unless the recording states it."""
    sprung = pushed.copy(deep=True)
    sprung["force.motor_1"].values += 0.5 + 2.0 * sprung["position.motor_1"].values
    write_log(tmp_path / "log.csv", sprung)
    plain = "format: tauloop-log/1\nfiles: [{path: log.csv}]\n"
    known = "known_forces:\n  motor_1: {polynomial: [0.5 N m, 2 N m/rad]}\n"
    (tmp_path / "plain.yaml").write_text(plain, encoding="utf-8")
    (tmp_path / "known.yaml").write_text(plain + known, encoding="utf-8")
    options = tl.ExternalWrenchOptions(contact_free=((0.0, 11.0), (14.0, 30.0)))
    result = tl.estimate_external_wrench(model, tmp_path / "known.yaml", options)
    assert result.status.value == "ok", result.advice
    assert result.wrench == pytest.approx(named.wrench, abs=1e-6)
    assert (
        tl.estimate_external_wrench(model, tmp_path / "plain.yaml", options).status.value
        == "doubtful"
    )


def test_a_force_at_its_limit_makes_the_wrench_doubtful(model, pushed):
    held = pushed.copy(deep=True)
    limit = float(np.abs(held["force.motor_2"]).quantile(0.98))
    held["force.motor_2"] = held["force.motor_2"].clip(-limit, limit)
    at_limit = int((np.abs(held["force.motor_2"]) == limit).sum())
    result = tl.estimate_external_wrench(model, held)
    counts = {item.name: item.value for item in result.diagnostics}
    # runs of five and more
    assert 0.5 * at_limit < counts["samples of force.motor_2 at its limit"] <= at_limit
    assert result.status.value == "doubtful"
    assert any("the drive's force differs from the logged force" in line for line in result.advice)


def test_json_holds_no_number_that_is_not_finite(searched):
    content = json.loads(json.dumps(searched.as_dict()))
    assert content["components"] == ["fx", "fy"]
    assert content["contacts"][0]["wrench"][2:] == [0.0] * 4
