"""Frequencies under weight and a constant wrench, against closed forms of pendulums and columns."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import gantry

import tauloop as tl
from tauloop.common.errors import AssemblyError, InputError

#: Rounding of small eigenproblems.
ROUNDING = 1e-9
#: Elements of a rod represent its sine by polynomials: 4e-7 of the buckling load.
SINE = 1e-6
#: A bar of this stiffness bends by 1e-4 in its slowest motion.
BENDING = 1e-3
GRAVITY, LENGTH, MASS, INERTIA = 9.81, 0.4, 3.0, 0.02
#: A body on a hinge, with its mass center on the y axis.
PENDULUM = """
format: tauloop-machine/1
name: pendulum
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm:
    mass: 3 kg
    center: [0 m, {height} m, 0 m]
    inertia: {{xx: 0.01 kg m^2, yy: 0.015 kg m^2, zz: 0.02 kg m^2}}
joints: {{hinge: {{type: revolute, axis: z, parent: base, child: arm}}}}
actuators: {{motor: {{on: hinge, force: 10 N m, stiffness: {stiffness} N m/rad}}}}
platform: {{body: arm, tool: {{at: [0 m, {height} m, 0 m]}}, independent: [hinge]}}
"""
#: A vertical tube between ball joints that a carriage pushes against a cap.
COLUMN = """
format: tauloop-machine/1
name: column
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
materials:
  alloy: {young_modulus: 70 GPa, poisson_ratio: 0.3, density: 2700 kg/m^3}
bodies: {carriage: {mass: 5 kg}, cap: {mass: 5 kg}}
joints:
  lift: {type: prismatic, axis: z, parent: base, child: carriage}
  slide: {type: prismatic, axis: z, parent: base, child: cap, reference: 1 m}
actuators: {motor: {on: lift, force: 10 N, stiffness: 50 N/um}}
rods:
  tube:
    from: {on: carriage, at: [0, 0, 0]}
    to: {on: cap, at: [0, 0, 0]}
    length: 1 m
    model: slender
    tube: {outer: 50 mm, wall: 3 mm, material: alloy}
platform: {body: cap, independent: [slide]}
"""
#: A steel bar on a hinge with a motor.
BAR = """
format: tauloop-machine/1
name: bar
provenance: {{status: chosen, source: test}}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm:
    beams:
      bar: {{from: hinge, to: [0, {end} m, 0], z_axis: [0, 0, 1],
        rectangle: {{width: 30 mm, height: 30 mm, material: steel}}}}
joints: {{hinge: {{type: revolute, axis: z, parent: base, child: arm}}}}
actuators: {{motor: {{on: hinge, force: 10 N m}}}}
platform: {{body: arm, tool: {{at: [0, {end} m, 0]}}, independent: [hinge]}}
"""


def pendulum(height: float, stiffness: float = 30.0) -> tl.Model:
    return tl.Model(tl.loads(PENDULUM.format(height=height, stiffness=stiffness)))


def test_weight_softens_an_inverted_pendulum() -> None:
    machine = pendulum(LENGTH)
    about_hinge = INERTIA + MASS * LENGTH**2
    plain, loaded = tl.vibration(machine), tl.vibration(machine, loaded=True)
    at_rest = np.sqrt(30.0 / about_hinge) / (2.0 * np.pi)
    expected = np.sqrt((30.0 - MASS * GRAVITY * LENGTH) / about_hinge) / (2.0 * np.pi)
    assert plain.frequency[0] == pytest.approx([at_rest], rel=ROUNDING)
    assert plain.status == "doubtful"
    assert loaded.frequency[0] == pytest.approx([expected], rel=ROUNDING)
    assert loaded.status == "ok"


def test_a_wrench_stiffens_a_hanging_pendulum() -> None:
    held = tl.vibration(pendulum(-LENGTH), loaded=True, wrench={"fy": -20.0})
    torque = (MASS * GRAVITY + 20.0) * LENGTH
    expected = np.sqrt((30.0 + torque) / (INERTIA + MASS * LENGTH**2)) / (2.0 * np.pi)
    assert held.frequency[0] == pytest.approx([expected], rel=ROUNDING)


def test_a_column_loses_its_frequency_at_the_buckling_load() -> None:
    """f = f0 sqrt(1 - P / P_cr) of a pinned uniform column."""
    machine = tl.Model(tl.loads(COLUMN))
    outer, inner = 25e-3, 22e-3
    area, moment = np.pi * (outer**2 - inner**2), np.pi / 4.0 * (outer**4 - inner**4)
    euler = np.pi**2 * 70e9 * moment
    unloaded = np.pi / 2.0 * np.sqrt(70e9 * moment / (2700.0 * area))
    for part in (-1.0, 0.3, 0.9, 0.99):
        result = tl.vibration(
            machine, count=2, loaded=True, weightless=True, wrench={"fz": -part * euler}
        )
        expected = unloaded * np.sqrt(1.0 - part)
        assert result.frequency[0] == pytest.approx([expected] * 2, rel=SINE / min(1.0, 1.0 - part))
    with pytest.raises(AssemblyError, match="a load exceeds the buckling load"):
        tl.vibration(machine, loaded=True, weightless=True, wrench={"fz": -1.001 * euler})


def test_frequencies_vanish_at_the_load_factor_of_the_machine() -> None:
    machine = tl.Model(gantry())
    wrench = {"fx": 5000.0, "fz": 2000.0}
    factor = tl.stiffness(machine, wrench=wrench, weightless=True).load_factor[0]
    below = {name: 0.9999 * factor * force for name, force in wrench.items()}
    settings = {"loaded": True, "weightless": True}
    unloaded, almost = tl.vibration(machine), tl.vibration(machine, wrench=below, **settings)
    assert almost.frequency[0, 0] < 0.02 * unloaded.frequency[0, 0]
    above = {name: 1.0001 * factor * force for name, force in wrench.items()}
    with pytest.raises(AssemblyError, match="a load exceeds the buckling load"):
        tl.vibration(machine, wrench=above, **settings)


def test_a_load_above_the_buckling_load_is_refused() -> None:
    with pytest.raises(AssemblyError, match="a load exceeds the buckling load"):
        tl.vibration(pendulum(LENGTH, 10.0), loaded=True)


def test_a_wrench_needs_loaded() -> None:
    with pytest.raises(InputError, match="set `loaded`"):
        tl.vibration(pendulum(LENGTH), wrench={"fx": 1.0})


def test_weight_holds_a_hanging_bar_whose_motor_is_free() -> None:
    """A uniform bar swings with the angular frequency sqrt(3 g / 2 L)."""
    machine = tl.Model(tl.loads(BAR.format(end=-0.5)))
    assert tl.vibration(machine, motor_state="free", count=2).free == 1
    hanging = tl.vibration(machine, motor_state="free", count=2, loaded=True, damping=0.01)
    assert hanging.free == 0
    swing = np.sqrt(1.5 * GRAVITY / 0.5) / (2.0 * np.pi)
    assert hanging.frequency[0, 0] == pytest.approx(swing, rel=BENDING)
    # The weight of the bar acts at half its length: the tip yields to a force by 2 / (m g) or more.
    weight = 7850.0 * 0.03**2 * 0.5 * GRAVITY
    static = hanging.tool_response([1e-6])[0, 0, 0, 0].real
    assert static == pytest.approx(2.0 * 0.5 / weight, rel=BENDING)


def test_a_standing_bar_with_a_free_motor_falls() -> None:
    machine = tl.Model(tl.loads(BAR.format(end=0.5)))
    with pytest.raises(AssemblyError, match=r"grows by exp\(5\.4"):
        tl.vibration(machine, motor_state="free", loaded=True)


def test_free_motors_that_the_weight_moves_are_refused() -> None:
    with pytest.raises(AssemblyError, match="free motors are not in equilibrium"):
        tl.vibration(gantry(), motor_state="free", loaded=True)
