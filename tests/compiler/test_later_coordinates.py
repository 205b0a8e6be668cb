"""Coordinates of later blocks that appear in terms which cancel, as where a rod joins two bodies of one carriage."""

from __future__ import annotations

import numpy as np
import pytest

import tauloop as tl
from tauloop.compiler.c import Interpreted

#: A carriage on an arm: both ends of the jack move with it, and so does the tip from which a rod
#: leads to the arm.
CARRIAGE = """
format: tauloop-machine/1
name: carriage
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  arm: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
  cart: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
  tip: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
joints:
  ball: {type: revolute, axis: y, parent: base, child: arm}
  slide: {type: prismatic, axis: x, parent: arm, child: cart}
  slide2: {type: prismatic, axis: y, parent: cart, child: tip}
rods:
  far: {from: {on: tip, at: [0.1 m, 0, 0.4 m]}, to: {on: arm, at: [0, 0.3 m, 0]},
        telescopic: {reference: 0.6 m}, model: massless}
  jack: {from: {on: tip, at: [0, 0.2 m, 1 m]}, to: {on: cart, at: [0.5 m, 0, 0]},
         telescopic: {reference: 1.2 m}, model: massless}
actuators:
  m0: {on: jack}
  m1: {on: far}
  m2: {on: ball}
platform: {body: arm, independent: [ball, slide, jack]}
"""
#: Rounding of positions in metres.
ROUNDING = 1e-12
#: Step of a central difference, m and rad, and its error: rounding over the step, and the step
#: squared.
STEP, SLOPE_ERROR = 1e-5, 1e-7


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(tl.loads(CARRIAGE), evaluator=Interpreted())


def test_lengths_of_both_rods_give_the_pose_at_which_they_were_taken(model):
    """Oracle: Pythagoras, with the positions of the points in the arm's frame."""
    rng = np.random.default_rng(0)
    q = np.array(model.assembly.q)
    names = model.topology.coordinate_names
    slide, slide2 = (
        q[names.index("slide")] + 0.02 * rng.normal(),
        q[names.index("slide2")] + 0.02 * rng.normal(),
    )
    far = np.linalg.norm([slide + 0.1, slide2 - 0.3, 0.4])
    jack = np.linalg.norm([-0.5, slide2 + 0.2, 1.0])
    pose = model.forward_kinematics(np.array([jack, far, 0.1]))
    coordinates = dict(zip(names, np.asarray(pose.q), strict=True))
    assert coordinates["slide"] == pytest.approx(slide, abs=ROUNDING)
    assert coordinates["slide2"] == pytest.approx(slide2, abs=ROUNDING)


def potential(motors: np.ndarray, signs: tuple[float, float]) -> float:
    """Potential energy of the three bodies, J, from the motors' positions by Pythagoras."""
    jack, far, ball = motors
    slide2 = -0.2 + signs[1] * np.sqrt(jack**2 - 0.25 - 1.0)
    slide = -0.1 + signs[0] * np.sqrt(far**2 - (slide2 - 0.3) ** 2 - 0.16)
    along = np.array([0.1, slide + 0.1, slide + 0.1])
    return 9.81 * float(np.sum(-along * np.sin(ball)))


@pytest.mark.parametrize("entry", ["platform", "actuators"])
def test_forces_at_rest_are_the_slopes_of_the_potential_energy(model, entry):
    """Oracle: the potential energy in closed form, differentiated along the motors."""
    motion = getattr(model, entry)
    rest = np.zeros(3)
    names = model.topology.coordinate_names
    at = np.add(model.actuator_position(np.array(model.assembly.q)), [0.01, 0.01, 0.3])
    q = np.asarray(model.forward_kinematics(at).q)
    signs = (
        float(np.sign(q[names.index("slide")] + 0.1)),
        float(np.sign(q[names.index("slide2")] + 0.2)),
    )
    forces = np.asarray(motion.inverse_dynamics(motion.ports.at(q), rest, rest).force)
    slopes = [
        (potential(at + h, signs) - potential(at - h, signs)) / (2 * STEP) for h in STEP * np.eye(3)
    ]
    assert np.abs(slopes).min() > 1e-3
    np.testing.assert_allclose(forces, slopes, atol=SLOPE_ERROR)
