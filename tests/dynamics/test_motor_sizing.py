"""Motor sizing: loads by hand, candidates by another route, and catalogues that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.result import Status
from tauloop.display.plots.motion.motor_plots import motor_plots

CATALOGUE = Path(__file__).parents[2] / "examples" / "motors.yaml"
ARM = """
format: tauloop-machine/1
name: arm
description: an arm in a horizontal plane, with a motor
provenance: {{status: chosen, source: own example}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{b: {{mass: 2 kg, center: [0.3 m, 0, 0], inertia: {{zz: 0.04 kg m^2}}, unchecked: yes}}}}
joints: {{j: {{type: revolute, axis: z, parent: base, child: b, reference: 0 deg}}}}
actuators: {{a: {{on: j, inertia: {inertia} kg m^2}}}}
platform: {{body: b, independent: [j]}}
"""
#: Inertia of the arm about its joint, kg m^2.
INERTIA = 0.04 + 2 * 0.3**2
SMALL_MOTOR = """
format: tauloop-motors/1
source: by hand
motors:
  m: {rated_torque: 0.5 N m, peak_torque: 1.5 N m, rated_speed: 300 rad/s, max_speed: 600 rad/s,
      inertia: 2e-5 kg m^2, mass: 1 kg}
gears:
  g: {ratio: 20, efficiency: 0.8, inertia: 1e-5 kg m^2, mass: 0.5 kg, peak_torque: 20 N m}
"""


def swing(machine: object, amplitude: float = 0.5, rate: float = 4.0) -> tl.dynamics.MotionForces:
    """Return the forces of a sine with a whole number of periods."""
    t = np.linspace(0.0, 2 * np.pi / rate, 2001)
    position = amplitude * np.sin(rate * t)
    velocity = amplitude * rate * np.cos(rate * t)
    acceleration = -(rate**2) * position
    return tl.inverse_dynamics(
        machine, position[:, None], velocity[:, None], acceleration[:, None], time=t
    )


def test_loads_of_a_sine_are_those_by_hand():
    motion = swing(tl.loads(ARM.format(inertia=0.01)))
    (load,) = tl.size_motors(motion.model, motion).loads
    peak = (INERTIA + 0.01) * 0.5 * 16
    assert load.peak_force == pytest.approx(peak)
    assert load.rms_force == pytest.approx(peak / np.sqrt(2), rel=1e-6)
    assert load.peak_speed == pytest.approx(2.0)
    assert load.mean_speed == pytest.approx(4.0 / np.pi, rel=1e-6)
    assert load.peak_power == pytest.approx(peak * 2.0 / 2, rel=1e-5)
    energy = 0.5 * (INERTIA + 0.01) * 2.0**2
    assert load.work == pytest.approx(2 * energy, rel=1e-5)
    assert load.returned_work == pytest.approx(load.work, rel=1e-9)
    assert load.inertia_ratio == pytest.approx(INERTIA / 0.01)


def test_a_pause_cools_the_motor_which_holds_the_machine():
    motion = swing(tl.loads(ARM.format(inertia=0.01)))
    duration = 2 * (motion.time[-1] - motion.time[0])
    (load,) = tl.size_motors(motion.model, motion, duration=duration).loads
    (busy,) = tl.size_motors(motion.model, motion).loads
    assert load.rms_force == pytest.approx(busy.rms_force / np.sqrt(2), rel=1e-6)
    with pytest.raises(tl.InputError, match="shorter than the motion"):
        tl.size_motors(motion.model, motion, duration="1 ms")


def test_a_candidate_is_the_machine_with_its_rotor(tmp_path):
    """Another route: the rotor and gear as inertia of the machine file, n^2 J, without losses."""
    catalogue = tmp_path / "motors.yaml"
    catalogue.write_text(SMALL_MOTOR.replace("efficiency: 0.8, ", ""), encoding="utf-8")
    motion = swing(tl.loads(ARM.format(inertia=0.0)))
    sizing = tl.size_motors(motion.model, motion, catalogue=catalogue)
    (candidate,) = sizing.candidates["a"]
    geared = swing(tl.loads(ARM.format(inertia=400 * 3e-5))).forces.force[:, 0]
    assert candidate.points[:, 1] == pytest.approx(geared / 20, abs=1e-12)
    assert candidate.torque == pytest.approx(np.abs(geared).max() / 20 / 1.5)
    assert candidate.speed == pytest.approx(20 * 2.0 / 600)
    assert candidate.inertia_ratio == pytest.approx(INERTIA / 400 / 3e-5)
    assert candidate.mass == pytest.approx(1.5)


def test_motors_of_unknown_mass_are_not_the_lightest(tmp_path):
    """A mass that the catalogue lacks is not a mass of zero."""
    motor = SMALL_MOTOR[SMALL_MOTOR.index("  m: {") : SMALL_MOTOR.index("gears:")]
    unweighed = motor.replace("  m: {", "  unweighed: {").replace(", mass: 1 kg", "")
    catalogue = tmp_path / "motors.yaml"
    catalogue.write_text(
        SMALL_MOTOR.replace("motors:\n", f"motors:\n{unweighed}"), encoding="utf-8"
    )
    motion = swing(tl.loads(ARM.format(inertia=0.0)))
    sizing = tl.size_motors(motion.model, motion, catalogue=catalogue)
    assert [(c.motor, c.mass) for c in sizing.suitable("a")] == [("m", 1.5), ("unweighed", None)]
    assert sizing.unweighed == ("unweighed",)


def test_the_plot_has_the_torque_that_heats_the_motor(tmp_path):
    """A sine: the mean speed is 2/pi of the peak, the root mean square 1/sqrt(2) of the peak."""
    catalogue = tmp_path / "motors.yaml"
    catalogue.write_text(SMALL_MOTOR.replace("efficiency: 0.8, ", ""), encoding="utf-8")
    motion = swing(tl.loads(ARM.format(inertia=0.0)))
    (plot,) = motor_plots(tl.size_motors(motion.model, motion, catalogue=catalogue))
    point = {trace.name: trace for trace in plot.traces}["RMS at the mean speed"]
    geared = (INERTIA + 400 * 3e-5) * 0.5 * 16 / 20
    assert point.x == pytest.approx((20 * 2.0 * 2 / np.pi * 30 / np.pi,), rel=1e-5)
    assert point.y == pytest.approx((geared / np.sqrt(2),), rel=1e-5)


def test_losses_add_where_the_motor_drives_and_help_where_it_brakes(tmp_path):
    catalogue = tmp_path / "motors.yaml"
    catalogue.write_text(SMALL_MOTOR, encoding="utf-8")
    motion = swing(tl.loads(ARM.format(inertia=0.0)))
    (candidate,) = tl.size_motors(motion.model, motion, catalogue=catalogue).candidates["a"]
    force, speed = motion.forces.force[:, 0], motion.forces.state.v[:, 0]
    acceleration = motion.forces.state.a[:, 0]
    rotor = 3e-5 * 20 * acceleration
    driving = force * speed > 0
    assert candidate.points[driving, 1] == pytest.approx(
        (force / 0.8 / 20 + rotor)[driving], abs=1e-12
    )
    assert candidate.points[~driving, 1] == pytest.approx(
        (force * 0.8 / 20 + rotor)[~driving], abs=1e-12
    )


def test_torque_falls_above_the_rated_speed():
    motor = tl.load_motors(CATALOGUE).motors[0]
    rated = 3000 * np.pi / 30
    assert motor.continuous_torque([0.0, rated, 2 * rated]) == pytest.approx([0.32, 0.32, 0.16])
    assert motor.peak_torque([0.0, rated, 2 * rated]) == pytest.approx([0.96, 0.96, 0.16])
    assert motor.peak_torque(2.1 * rated) == 0.0


def test_a_motion_beyond_every_motor_suits_none():
    motion = swing(tl.loads(ARM.format(inertia=0.0)), amplitude=0.5, rate=400.0)
    sizing = tl.size_motors(motion.model, motion, catalogue=CATALOGUE)
    assert sizing.suitable("a") == ()
    assert all(candidate.use > 1 for candidate in sizing.candidates["a"])
    assert sizing.status is Status.DOUBTFUL
    (item,) = (item for item in sizing.diagnostics if "suitable motor-gear pairs" in item.name)
    assert (item.value, item.is_good) == (0, False)
    written = sizing.as_dict()["candidates"]["a"]
    assert any(row["torque"] is None for row in written)  # beyond the largest speed
    assert tl.size_motors(motion.model, motion).status is Status.OK


def test_motors_of_the_machine_file_are_checked():
    text = ARM.format(inertia=0.01).replace("kg m^2}}", "kg m^2, force: 1 N m}}")
    motion = swing(tl.loads(text))
    sizing = tl.size_motors(motion.model, motion)
    (item,) = (item for item in sizing.diagnostics if "largest force" in item.name)
    assert not item.is_good
    assert item.value == pytest.approx((INERTIA + 0.01) * 8)


def test_screws_drive_linear_actuators(tmp_path):
    """By hand: a screw turns 2 pi / lead per metre."""
    sizing_of = tl.load_motors(CATALOGUE)
    screw = next(gear for gear in sizing_of.gears if gear.name == "screw_10")
    assert screw.ratio == pytest.approx(2 * np.pi / 0.01)
    assert screw.is_linear


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("peak_torque: 1.5 N m", "peak_torque: 0.1 N m", "below the rated torque"),
        ("max_speed: 600 rad/s", "max_speed: 100 rad/s", "below the rated speed"),
        ("ratio: 20", "ratio: 20, lead: 5 mm", "ratio and lead"),
        ("ratio: 20, ", "", "neither ratio nor lead"),
        ("efficiency: 0.8", "efficiency: 1.2", "above 1"),
        ("peak_torque: 20 N m", "peak_force: 20 N", "does not belong"),
        ("rated_torque: 0.5 N m", "rated_torque: 0.5 N", "torque"),
        ("source: by hand", "sauce: by hand", "source"),
    ],
)
def test_catalogues_that_contradict_themselves_are_refused(old, new, message, tmp_path):
    path = tmp_path / "motors.yaml"
    assert old in SMALL_MOTOR
    path.write_text(SMALL_MOTOR.replace(old, new), encoding="utf-8")
    with pytest.raises(tl.TauloopError, match=message):
        tl.load_motors(path)


def test_samples_without_times_are_refused():
    motion = swing(tl.loads(ARM.format(inertia=0.01)))
    with pytest.raises(tl.InputError, match="not the derivatives of positions"):
        tl.size_motors(motion.model, replace(motion, time=np.arange(len(motion.time), dtype=float)))


def test_a_single_pose_and_unknown_actuators_are_refused():
    with pytest.raises(tl.InputError, match="one sample"):
        tl.size_motors("delta", tl.inverse_dynamics("delta"))
    motion = swing(tl.loads(ARM.format(inertia=0.0)))
    with pytest.raises(tl.InputError, match="'b' has no candidates"):
        tl.size_motors(motion.model, motion, catalogue=CATALOGUE).suitable("b")
    with pytest.raises(tl.InputError, match="that of arm, not of delta"):
        tl.size_motors("delta", motion)
