"""Limits mean the same everywhere: also of joints that close a loop and so have no coordinate.

Angles of the slider-crank and of the five-bar are written out here, from the dimensions in their
files.
"""

from __future__ import annotations

import numpy as np
import pytest

from tauloop import Model, PoseError, loads
from tauloop.calibration.pose_selection.candidates import PoseLimits, candidate_poses
from tauloop.identification.preparation.motion_limits import motion_limits
from tauloop.kinematics import random_states
from tauloop.kinematics.modes.modes import assembly_modes
from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, workspace_grid
from tauloop.logs.log import Channel, build_log

CRANK, ROD = 0.1, 0.3
#: The crank turns by c; the rod, from its pin at (0.1 cos c, 0.1 sin c) to the axis, leans by k,
#: which closes the loop.
SLIDER = """
format: tauloop-machine/1
name: slider
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  crank: {mass: 1 kg, center: [0.05 m, 0, 0]}
  rod: {mass: 1 kg, center: [0.15 m, 0, 0]}
  piston: {mass: 1 kg}
joints:
  c: {type: revolute, axis: z, parent: base, child: crank, reference: 60 deg, OWN}
  r: {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: rod, reference: -76.7787 deg}
  p: {type: prismatic, axis: x, parent: base, child: piston, reference: 0.3372 m}
  k: {type: revolute, axis: z, parent: {on: rod, at: [0.3 m, 0, 0]}, child: piston, cut: yes, reference: 16.7787 deg,
    limits: [10 deg, 18 deg]}
actuators: {motor: {on: c}}
platform: {body: piston, independent: [c], tool: {at: [0, 0, 0]}}
"""
#: Poses with rods leaning by 10 to 18 deg have the crank at 31.4 to 67.98 deg, or at the same
#: angles from 180 deg.
ROUNDING = 1e-9
#: The border of a map lies within a thousandth of a step of its grid.
BISECTED = 1e-3


def lean(c: np.ndarray) -> np.ndarray:
    """Law of sines, deg: the rod's angle against the axis, which the joint to the piston has."""
    return np.asarray(np.degrees(np.arcsin(CRANK * np.sin(c) / ROD)))


def slider(own: str = "limits: {drawing: [0 deg, 180 deg]}") -> Model:
    model = Model(loads(SLIDER.replace("OWN", own)))
    assert [joint.name for joint in model.topology.cuts] == ["k"]
    return model


def crank(model: Model, q: np.ndarray) -> np.ndarray:
    return np.asarray(q[..., model.topology.coordinate_names.index("c")])


def test_random_states_keep_the_stops_of_a_joint_that_closes_the_loop() -> None:
    model = slider()
    states = lean(crank(model, random_states(model, 200, np.random.default_rng(1)).q))
    assert np.ptp(states) > 3
    assert states.min() >= 10 - ROUNDING
    assert states.max() <= 18 + ROUNDING


def test_a_workspace_ends_where_a_joint_that_closes_the_loop_stops() -> None:
    c = np.radians(np.linspace(20, 160, 57))
    grid = workspace_grid(slider(), {"c": c}, limits=WorkspaceLimits(singularity=0.0))
    inside = (lean(c) >= 10) & (lean(c) <= 18)
    assert 10 < inside.sum() < 50
    # between both stretches the rod leans beyond its stop
    assert (grid.usable == inside & (c < np.pi / 2)).all()
    assert (grid.reason[inside & (c > np.pi / 2)] == Reason.CUT_OFF).all()
    ends = np.arcsin(ROD * np.sin(np.radians([10, 18])) / CRANK)
    assert grid.size == (pytest.approx(np.ptp(ends), rel=BISECTED), "rad")
    assert (grid.reason[~inside] == Reason.JOINT_LIMIT).all()
    assert grid.excluded_by() == {"k": (~inside).sum()}


def test_a_workspace_ends_at_the_stops_of_its_own_axes_too() -> None:
    c = np.radians(np.linspace(40, 66, 27))
    model = slider("limits: [45 deg, 62.5 deg]")
    grid = workspace_grid(model, {"c": c}, limits=WorkspaceLimits(singularity=0.0))
    assert (grid.usable == ((c >= np.radians(45)) & (c <= np.radians(62.5)))).all()
    assert workspace_grid(
        model, {"c": c}, limits=WorkspaceLimits(singularity=0.0, ranges=False)
    ).usable.all()


def test_chosen_poses_of_a_calibration_keep_all_stops() -> None:
    ranges = {"c": (np.radians(20), np.radians(160))}
    model = slider("limits: [0 deg, 60 deg]")
    limits = PoseLimits(singularity=0.0, clearance=None, max_rotation=0.1, ranges=ranges)
    c = crank(model, candidate_poses(model, 40, np.random.default_rng(0), limits=limits).q)
    assert (c <= np.radians(60) + ROUNDING).all()
    assert (lean(c) >= 10 - ROUNDING).all()


def test_modes_say_by_how_much_a_joint_is_beyond_its_stop() -> None:
    """Of the two ends of the rod on the axis the one behind the crank has it lean by 180 deg less the lean."""
    model = slider()
    modes = assembly_modes(model)
    own, other = modes.modes
    assert own.within_limits
    (item,) = other.beyond
    expected = 180 - float(lean(np.radians(60)))
    assert item.coordinate == "k"
    assert np.degrees(item.value) == pytest.approx(expected, abs=1e-3)
    assert np.degrees(item.by) == pytest.approx(expected - 18, abs=1e-3)
    kept = modes.within_limits()
    assert (len(kept.modes), kept.left_out["something is beyond a stop"]) == (1, 1)
    beyond = assembly_modes(model, [np.radians(80)])
    with pytest.raises(
        PoseError, match=r"beyond its stop at 18 deg; 2 modes, and none is within the stops"
    ):
        beyond.within_limits()


#: A double crank: base 0.1 m, cranks 0.3 and 0.28 m, coupler 0.25 m. Both cranks go round.
DOUBLE = """
format: tauloop-machine/1
name: double
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  driver: {mass: 1 kg, center: [0.15 m, 0, 0]}
  coupler: {mass: 1 kg, center: [0.125 m, 0, 0]}
  follower: {mass: 1 kg, center: [0.14 m, 0, 0]}
joints:
  a: {type: revolute, axis: z, parent: base, child: driver, reference: 30 deg}
  b: {type: revolute, axis: z, parent: {on: driver, at: [0.3 m, 0, 0]}, child: coupler, reference: -94 deg}
  d: {type: revolute, axis: z, parent: {on: base, at: [0.1 m, 0, 0]}, child: follower, reference: -15 deg,
    limits: [-200 deg, 300 deg]}
  c: {type: revolute, axis: z, parent: {on: coupler, at: [0.25 m, 0, 0]}, child: {on: follower, at: [0.28 m, 0, 0]},
    cut: yes}
actuators: {motor: {on: a}}
platform: {body: follower, independent: [a]}
"""


def test_a_log_is_judged_by_all_the_turns_that_a_dependent_joint_makes() -> None:
    """After two turns of one crank the other has made two as well: 704.58 deg, for it starts at -15.42 deg."""
    model = Model(loads(DOUBLE))
    names = model.topology.coordinate_names
    start = dict(zip(names, model.assembly.q, strict=True))
    time = np.linspace(0, 2, 2001)
    motor = Channel(
        quantity="position", channel="motor", values=start["a"] + 2 * np.pi * time, unit="rad"
    )
    (item,) = motion_limits(model, build_log(time, [motor]))
    end = np.degrees(start["d"]) + 720
    assert item.value == 1.0
    assert f"d at {end:.6g} deg, {end - 300:.4g} deg beyond its stop at 300 deg" in item.advice
