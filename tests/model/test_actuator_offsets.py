"""Actuators whose positions are not zero at zero coordinates: p = offset + sum of ratio times coordinate.

An offset changes what an encoder reads, and nothing else. Each function is compared with that of the
same machine without offsets, at positions that differ by the offsets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from redundant_machines import redundant

import tauloop as tl
from tauloop.calibration import Position, Series
from tauloop.mechanism.expression import Constant

ANKLE = Path(__file__).parents[2] / "examples" / "ankles" / "two_rods.yaml"
#: Rounding of an offset of some radians or metres that is added and subtracted.
ROUNDING = 1e-12
#: Noise of the positions of a tracker in a calibration, m.
NOISE = 1e-6


def offsets(machine: tl.Mechanism) -> np.ndarray:
    return 0.37 + 0.11 * np.arange(len(machine.actuators))


def with_offsets(machine: tl.Mechanism) -> tl.Mechanism:
    actuators = tuple(
        replace(actuator, offset=Constant(float(value)))
        for actuator, value in zip(machine.actuators, offsets(machine), strict=True)
    )
    return replace(machine, actuators=actuators)


@cache
def both(name: str) -> tuple[tl.Model, tl.Model]:
    machine = tl.load(name)
    return tl.Model(machine), tl.Model(with_offsets(machine))


#: A planar machine, one with couplings, redundant cables.
@pytest.mark.parametrize("name", ["five_bar", "spidermill", "cable_camera"])
def test_encoders_read_the_offset_too(name: str) -> None:
    plain, shifted = both(name)
    b = offsets(plain.mechanism)
    rng = np.random.default_rng(0)
    start = plain.platform_position(plain.assembly.q)
    pose = start + 0.01 * rng.normal(size=(5, len(start)))
    q = plain.inverse_kinematics(pose).q
    p = plain.actuator_position(q)
    assert_allclose(shifted.actuator_position(q), p + b, atol=ROUNDING)
    assert_allclose(shifted.forward_kinematics(p + b).q, plain.forward_kinematics(p).q, atol=1e-9)
    lead = list(plain.assembly.leading)
    motion = rng.normal(size=(2, 5, len(lead)))
    forces = [
        model.actuators.inverse_dynamics(position, *motion).force
        for model, position in ((plain, p[:, lead]), (shifted, (p + b)[:, lead]))
    ]
    assert_allclose(forces[1], forces[0], rtol=1e-8, atol=1e-9)


def test_named_positions_of_the_command_line_have_the_offset() -> None:
    plain, shifted = both("five_bar")
    names = plain.actuators.ports.position.columns
    p = plain.actuator_position(plain.assembly.q) + 0.05
    read = dict(zip(names, p + offsets(plain.mechanism), strict=True))
    pose = tl.forward_kinematics(shifted, read)
    expected = tl.forward_kinematics(plain, dict(zip(names, p, strict=True)))
    assert_allclose(pose.q, expected.q, atol=ROUNDING)
    assert_allclose(pose.actuator_position, expected.actuator_position + offsets(plain.mechanism))
    back = tl.inverse_kinematics(shifted, expected.platform_position[0])
    assert_allclose(back.actuator_position[0], p + offsets(plain.mechanism), atol=ROUNDING)


def test_redundant_encoders_with_offsets_agree() -> None:
    machine = with_offsets(redundant("five_bar").mechanism)
    model = tl.Model(machine)
    p = model.actuator_position(model.assembly.q)
    assert model.fit_actuators(p).largest < 1e-6
    assert model.fit_actuators(p - offsets(machine)).largest > 100.0


def test_casadi_functions_take_positions_with_the_offset() -> None:
    plain, shifted = both("pendulum_arm")
    p = plain.actuator_position(plain.assembly.q)
    v, a = np.array([0.5, -0.3, 0.2]), np.array([2.0, 1.0, -1.0])
    results = [
        np.array(ca.DM(model.actuators.casadi("inverse_dynamics")(position, v, a))).ravel()
        for model, position in ((plain, p), (shifted, p + offsets(plain.mechanism)))
    ]
    assert_allclose(results[1], results[0], atol=ROUNDING)


def test_actuator_maps_and_their_ranges_have_the_offset() -> None:
    machine = tl.load(ANKLE)
    plain = tl.ActuatorMap(machine, joints=["pitch", "roll"])
    shifted = tl.ActuatorMap(with_offsets(machine), joints=["pitch", "roll"])
    q, b = np.array([[0.3, -0.2], [-0.1, 0.1]]), offsets(machine)
    p = plain.joint_to_actuator_position(q)
    assert_allclose(shifted.joint_to_actuator_position(q), p + b, atol=ROUNDING)
    assert_allclose(shifted.actuator_to_joint_position(p + b), q, atol=ROUNDING)
    assert_allclose(shifted.actuator_range, plain.actuator_range + b[:, None], atol=ROUNDING)


@pytest.mark.parametrize("law", ["pd", "computed-torque"])
def test_a_controlled_machine_moves_the_same(law: str) -> None:
    runs = [
        tl.follow_path(model, controller=law, end={"x": 0.02}, duration=0.05).runs[law]
        for model in both("five_bar")
    ]
    assert_allclose(runs[1].force, runs[0].force, rtol=1e-7, atol=1e-7)


def test_calibration_with_and_without_the_offset_finds_the_same_lengths() -> None:
    plain, shifted = both("five_bar")
    true = tl.Model(plain.mechanism.with_values(crank_length=0.2513))
    motors = true.actuator_position(true.assembly.q) + np.random.default_rng(1).uniform(
        -0.3, 0.3, (12, 2)
    )
    state = true.forward_kinematics(motors)
    columns = [state.coordinate("platform.x"), state.coordinate("platform.y"), np.zeros(12)]
    results = []
    for model, encoders in ((plain, motors), (shifted, motors + offsets(plain.mechanism))):
        series = Series(
            instrument=Position(name="tracker"),
            encoders=encoders,
            readings=np.stack(columns, axis=1),
            noise=NOISE,
        )
        result = tl.calibrate(model.mechanism, series, parameters=("crank_length",))
        results.append(result.mechanism.value("crank_length"))
    assert results == pytest.approx([0.2513, 0.2513], abs=1e-9)


def test_identification_reads_positions_with_the_offset() -> None:
    plain, shifted = both("five_bar")
    time = np.linspace(0.0, 4.0, 2001)
    rng = np.random.default_rng(1)
    rates = rng.uniform(1.0, 5.0, (3, 2))
    waves = rates * time[:, None, None] + rng.uniform(0.0, 6.0, (3, 2))
    motion = [0.1 * np.sin(waves), 0.1 * rates * np.cos(waves), -0.1 * rates**2 * np.sin(waves)]
    position, velocity, acceleration = (array.sum(axis=1) for array in motion)
    position += plain.actuator_position(plain.assembly.q)
    force = plain.actuators.inverse_dynamics(position, velocity, acceleration).force
    names = [actuator.name for actuator in plain.mechanism.actuators]
    sensors = tl.logs.Sensors(resolution=[0.0] * 2, force_noise=[1e-3] * 2)
    results = []
    for model, read in ((plain, position), (shifted, position + offsets(plain.mechanism))):
        noise = np.random.default_rng(2)
        log = tl.logs.measure(time, read, force, names, ["rad"] * 2, ["N m"] * 2, sensors, noise)
        result = tl.identify(model, log, estimator="ols", cutoff="20 Hz", consistent=True)
        results.append(result)
    assert results[1].status == results[0].status
    values = [result.mechanism().parameters.values for result in results]
    assert values[1] == pytest.approx(values[0], rel=1e-6)
