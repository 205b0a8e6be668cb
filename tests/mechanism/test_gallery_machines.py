"""Every machine of the gallery is what its file says, moves over its stroke, and has its dynamics by two routes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extras import extra
from gallery_machines import GALLERY_MACHINES, model, stroke_of

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import PoseError
from tauloop.common.result import Status
from tauloop.kinematics import random_states

#: Freedoms that a machine is known to have.
MOBILITY = {
    "agile_eye": 3,
    "bennett": 1,
    "cable_camera": 3,
    "cable_robot": 6,
    "excavator": 4,
    "hexaglide": 6,
    "irb360": 4,
    "jansen": 1,
    "orthoglide": 3,
    "palletiser": 4,
    "par4": 4,
    "peaucellier": 1,
    "planar_3rrr": 3,
    "sarrus": 1,
    "scissor_lift": 1,
    "slider_crank": 1,
    "three_prs": 3,
    "three_upu": 3,
    "tricept": 3,
    "wishbone": 2,
}
#: What counting in space gives (Chebyshev, Gruebler, Kutzbach), for machines whose axes are special
#: and others.
COUNTED = {
    "agile_eye": -3,
    "bennett": -2,
    "sarrus": 0,
    "three_upu": 3,
    "three_prs": 3,
    "wishbone": 2,
    "tricept": 3,
}
#: Loops along a stroke, m or rad; Newton's steps reach 1e-15.
CLOSED = 1e-10
#: There and back between platform and actuators, m or rad: rounding through the conditioning of a
#: regular machine.
SAME = 1e-9
#: Forces of two formulations, relative to the largest.
AGREE = 1e-10
by_name = pytest.mark.parametrize("name", GALLERY_MACHINES)


def test_every_machine_of_the_gallery_is_named_here() -> None:
    assert tuple(MOBILITY) == GALLERY_MACHINES
    assert len(tl.shipped_machines()) >= 25


@by_name
def test_the_check_is_clean_and_the_mobility_is_the_known_one(name: str) -> None:
    checked = tl.check(model(name))
    assert checked.status is Status.OK
    assert model(name).assembly.mobility == MOBILITY[name]
    redundant = len(model(name).mechanism.actuators) - MOBILITY[name]
    notes = [note.what for note in model(name).assembly.notes]
    assert len(notes) == (redundant > 0)
    assert all("actuation is redundant" in note for note in notes)


@pytest.mark.parametrize(("name", "count"), COUNTED.items())
def test_counting_is_wrong_where_axes_are_special_and_right_elsewhere(
    name: str, count: int
) -> None:
    machine = model(name).mechanism
    joints = [joint for joint in machine.joints if joint.name != "platform"]
    held = sum(6 - len(joint.velocity_names) for joint in joints) + sum(
        not rod.telescope for rod in machine.rods
    )
    assert 6 * len(machine.bodies) - held == count


@by_name
def test_loops_stay_closed_along_the_stroke(name: str) -> None:
    q = stroke_of(name)
    assert np.abs(model(name).assembly.loops.residuals(q)[0]).max() < CLOSED
    moved = np.ptp(model(name).platform_position(q), axis=0)
    assert (moved > 0.01).all()  # m, rad or components of a quaternion: every freedom moves
    assert model(name).limits.room(q, ("stop",)).min(initial=0.0) >= -1e-9


@by_name
def test_forward_after_inverse_kinematics_returns(name: str) -> None:
    q = stroke_of(name)
    for before, here in itertools.islice(itertools.pairwise(q[:-1]), 0, None, 6):
        back = model(name).actuators.follow(model(name).actuators.ports.at(here), start=before).q
        assert np.abs(back - here).max() < SAME


@by_name
def test_two_formulations_agree_at_random_states(name: str) -> None:
    # of a machine of 100 m, whose cables cannot hold 100 m/s^2
    speed = 0.02 if name == "cable_camera" else 1.0
    states = random_states(model(name), 4, np.random.default_rng(11), step=0.02, speed=speed)
    motion = (states.position, states.velocity, states.acceleration)
    other = Model(load(name), formulation="lagrange")
    force = model(name).platform.inverse_dynamics(*motion, start=states.q).force
    assert np.abs(force).max() > 0.0
    expected = other.platform.inverse_dynamics(*motion, start=states.q).force
    assert np.abs(force - expected).max() < AGREE * np.abs(force).max()


@pytest.mark.nightly
@by_name
def test_two_engines_agree(name: str) -> None:
    extra("mujoco")
    extra("pinocchio")
    assert tl.verify(model(name)).status is Status.OK


def test_a_redundant_equation_that_opens_is_named() -> None:
    """Beyond its flat pose the two equations that stand for Bennett's five have a solution that breaks the others."""
    platform, beyond = model("bennett").platform, np.radians([[150.0], [200.0]])
    words = r"follower_hinge: \w+: is open by .* in sample 1 of 2: this equation follows"
    with pytest.raises(PoseError, match=words):
        platform.follow(beyond)
    with pytest.raises(PoseError, match=words):
        platform.inverse_dynamics(beyond, np.zeros((2, 1)), np.zeros((2, 1)))
    assert platform.evaluate(beyond).health.is_reached.tolist() == [True, False]
    turned = np.radians(np.linspace(100.0, 250.0, 400))[:, None]
    tracked = model("bennett").platform.track(turned).q
    # 2e-9 beside the flat pose
    assert np.abs(model("bennett").assembly.loops.residuals(tracked)[0]).max() < 1e-7
