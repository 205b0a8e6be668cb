"""Late forces are found neither in columns of rounding errors nor in white residuals."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.identification.faults.late_forces import _Output, _remove_rounding, late_forces
from tauloop.identification.faults.measured_motion import measured_motion
from tauloop.logs import Preparation, Sensors, measure, prepared_signals

AXES = ("z", "y", "z")
TIME = np.arange(0.0, 8.0, 2e-3)
NOISE = 0.05  # N m


def arm() -> tl.Model:
    """Return an arm whose first motor, about a vertical axis, does not feel all parameters."""
    links = range(len(AXES))
    bodies = "\n".join(
        f"  link_{k}: {{mass: {6 - k} kg, center: [{10 * k} mm, 20 mm, 100 mm], "
        f"inertia: {{xx: 0.12 kg m^2, yy: 0.15 kg m^2, zz: 0.06 kg m^2}}}}"
        for k in links
    )
    joints = "\n".join(
        f"  joint_{k}: {{type: revolute, axis: {axis}, "
        f"parent: {'base' if k == 0 else f'{{on: link_{k - 1}, at: [30 mm, 0, 250 mm]}}'}, "
        f"child: link_{k}, reference: {10 + 5 * k} deg, "
        "friction: {viscous: 0.5 N m s/rad, coulomb: 1 N m}}"
        for k, axis in enumerate(AXES)
    )
    motors = "\n".join(f"  motor_{k}: {{on: joint_{k}}}" for k in links)
    independent = ", ".join(f"joint_{k}" for k in links)
    return tl.Model(
        tl.loads(
            "format: tauloop-machine/1\nname: arm\ngravity: [0, 0, -9.81 m/s^2]\n"
            f"bodies:\n{bodies}\njoints:\n{joints}\nactuators:\n{motors}\n"
            f"platform: {{body: link_2, independent: [{independent}]}}\n"
            "provenance: {status: chosen, source: test}\n"
        )
    )


def motion_at(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, v and a of sines up to 1.3 Hz."""
    w = np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 8.3], [2.7, 5.1, 8.1]])
    size = np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12], [0.5, 0.4, 0.14]])
    angle = w * t[:, None, None] + np.arange(3)
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, v, a = (part.sum(axis=2) for part in parts)
    return q, v, a


def late_outputs(model: tl.Model, delay: float = 0.0) -> list[str]:
    """Return the outputs with a late force in a log whose first force is delayed."""
    forces = model.actuators.inverse_dynamics(*motion_at(TIME)).force
    forces[:, 0] = model.actuators.inverse_dynamics(*motion_at(TIME - delay)).force[:, 0]
    names, units = model.output_ports("actuators")
    sensors = Sensors(resolution=np.full(3, 1e-5), force_noise=np.full(3, NOISE))
    log = measure(
        TIME,
        motion_at(TIME)[0],
        forces,
        names,
        model.actuators.ports.position.units,
        units,
        sensors,
        np.random.default_rng(0),
    )
    motion = measured_motion(model, prepared_signals(log, Preparation(cutoff=30.0, trim=60)))
    return [late.output for late in late_forces(model, motion)]


def test_the_first_motor_has_columns_of_rounding_errors():
    """The premise: some columns of the motor about z are nearly, but not exactly, zero."""
    model = arm()
    columns = model.actuators.regressor(*motion_at(TIME[::40]))
    norms = np.linalg.norm(columns, axis=0)
    relative = norms[0] / np.maximum(norms.max(axis=0), 1e-300)
    is_rounding = (relative > 0.0) & (relative < 1e-11)
    assert is_rounding.any()
    cleaned = columns.copy()
    _remove_rounding(cleaned)
    assert not cleaned[:, 0, is_rounding].any()
    np.testing.assert_array_equal(cleaned[:, :, ~is_rounding], columns[:, :, ~is_rounding])


@pytest.mark.parametrize(("delay", "expected"), [(0.0, []), (6e-3, ["motor_0"])])
def test_a_late_force_is_found_only_if_there_is_one(delay, expected):
    assert late_outputs(arm(), delay) == expected


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_white_residuals_are_skipped_only_if_they_have_no_cause(monkeypatch, share):
    """The first force has a delay of a fraction of a sample; the other two forces have none."""
    model, delay = arm(), share * (TIME[1] - TIME[0])
    skipped = []

    def count(single: _Output) -> bool:
        skipped.append(is_white(single))
        return skipped[-1]

    is_white = _Output.has_white_residual
    monkeypatch.setattr(_Output, "has_white_residual", count)
    with_test = late_outputs(model, delay)
    monkeypatch.setattr(_Output, "has_white_residual", lambda single: False)
    assert with_test == late_outputs(model, delay) == []
    assert skipped[0] == (share == 0.0)
    assert skipped[1:] == [True, True]
