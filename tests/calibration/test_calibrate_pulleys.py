"""Lines over swivelling pulleys: kinematics, forces and calibration agree with the closed form of the wrapped line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hanging_plate import PulleyPlate
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.calibration import (
    CalibrationOptions,
    FitOptions,
    Position,
    Series,
    Tolerances,
    calibrate,
    calibration_problem,
)
from tauloop.common.result import Status
from tauloop.model import Model

SIX = PulleyPlate(
    anchors=np.array(
        [
            [1.2, 0.0, 2.0],
            [-0.6, 1.0, 2.0],
            [-0.6, -1.0, 2.0],
            [1.1, 0.3, 0.0],
            [-0.8, 0.8, 0.0],
            [-0.5, -1.0, 0.0],
        ]
    ),
    points=np.array(
        [
            [0.15, 0.05, 0.05],
            [-0.1, 0.13, 0.05],
            [-0.08, -0.13, 0.05],
            [0.12, -0.1, -0.05],
            [0.02, 0.14, -0.05],
            [-0.14, -0.02, -0.05],
        ]
    ),
    up=np.array([1, 1, 1, -1, -1, -1]),
)
THREE = PulleyPlate(
    anchors=np.array([[1.2, 0.0, 2.0], [-0.6, 1.0, 2.1], [-0.6, -1.0, 1.9]]),
    points=np.array([[0.15, 0.0, 0.05], [-0.08, 0.13, 0.05], [-0.08, -0.13, 0.05]]),
    up=np.array([1, 1, 1]),
    mass=40.0,
    stiffness=2e4,
)
#: Standard deviations within which estimates must lie.
SURE = 4.5


def test_lengths_winch_forces_and_forward_kinematics_are_those_of_the_closed_form():
    model = Model(tl.loads(SIX.text()))
    rng = np.random.default_rng(1)
    turns = Rotation.from_rotvec(rng.uniform(-0.1, 0.1, (6, 3)))
    positions = rng.uniform([-0.2, -0.2, 0.8], [0.2, 0.2, 1.2], (6, 3))
    poses = np.hstack([positions, turns.as_quat(scalar_first=True)])
    q = model.platform.evaluate(poses).q
    lengths = model.actuator_position(q)
    forces = model.platform.inverse_dynamics(poses, np.zeros((6, 6)), np.zeros((6, 6))).force
    for k in range(6):
        arms = turns[k].apply(SIX.points)
        expected, direction = SIX.lines(positions[k] + arms)
        assert np.abs(lengths[k] - expected).max() < 1e-10
        structure = np.concatenate([direction.T, np.cross(arms, direction).T])
        weight = SIX.mass * np.array([0.0, 0.0, -9.81])
        load = np.concatenate([weight, np.cross(turns[k].apply(SIX.center), weight)])
        assert np.allclose(structure @ forces[k], -load, atol=1e-8)
    again = model.forward_kinematics(lengths)
    assert np.abs(again.coordinate("platform.x") - positions[:, 0]).max() < 1e-8


def test_the_direction_of_a_line_is_the_gradient_of_its_length():
    """Of the closed form itself: what is wound on and how the pulley swivels do no work."""
    ends = np.array([0.1, -0.05, 1.1]) + SIX.points
    _, direction = SIX.lines(ends)
    for k, step in enumerate(1e-6 * np.eye(3)):
        slope = (SIX.lines(ends + step)[0] - SIX.lines(ends - step)[0]) / 2e-6
        assert np.abs(slope - direction[:, k]).max() < 1e-9


def hung(plate: PulleyPlate, count: int, noise: float) -> tuple[Series, np.ndarray]:
    rng = np.random.default_rng(2)
    marker = np.array([0.05, -0.08, -0.1])
    winches, seen, tensions = [], [], []
    for _ in range(count):
        near = rng.uniform([-0.2, -0.2, 0.7], [0.2, 0.2, 1.3])
        lengths = plate.lines(near + plate.points)[0] + rng.uniform(-0.02, 0.02, 3)
        position, turn, tension = plate.pose(lengths, near)
        winches.append(lengths)
        seen.append(position + Rotation.from_rotvec(turn).apply(marker))
        tensions.append(tension)
    readings = np.array(seen) + noise * rng.standard_normal((count, 3))
    x, y, z = (float(value) for value in marker)
    instrument = Position(name="camera", target=(x, y, z))
    return Series(
        instrument=instrument, encoders=np.array(winches), readings=readings, noise=noise or 1e-4
    ), np.array(tensions)


@pytest.mark.parametrize(
    "stiffness", [np.inf, 2e4], ids=["lines that do not stretch", "lines that stretch"]
)
def test_a_plate_that_hangs_over_pulleys_is_where_an_independent_solution_has_it(stiffness: float):
    plate = replace(THREE, stiffness=stiffness)
    series, tensions = hung(plate, 8, 0.0)
    assert tensions.min() > 50.0
    problem = calibration_problem(tl.loads(plate.text()), [series], ["radius"], equilibrium=True)
    (state,) = problem.evaluate(np.zeros(1)).states
    assert np.abs(state.errors).max() < 1e-9
    (measured_pose,) = problem.measured_poses
    assert measured_pose.functions.cables == ("winch1", "winch2", "winch3")
    (pull,) = measured_pose.functions.tensions([state.q, np.zeros((8, 1))], 8)
    assert np.abs(pull - tensions).max() < 1e-5


def test_radius_stiffness_and_mass_centre_are_found_together():
    built = replace(
        THREE, radius=0.0415, stiffness=1.7e4, center=THREE.center + np.array([5e-3, 0.0, 0.0])
    )
    series, _ = hung(built, 24, 1e-4)
    options = CalibrationOptions(
        parameters=("radius", "stiffness", "centre_x"),
        tolerances=Tolerances(named={"stiffness": 2e3, "centre_x": 5e-3}),
        equilibrium=True,
        fit=FitOptions(swap_search_time=0.0),
    )
    result = calibrate(tl.loads(THREE.text()), series, options)
    assert result.status is Status.OK, result.advice
    truth = {"radius": 0.0415, "stiffness": 1.7e4, "centre_x": float(built.center[0])}
    for estimate in result.estimates:
        assert abs(estimate.value - truth[estimate.name]) < SURE * estimate.deviation, estimate.name
    assert {e.name: e.deviation / truth[e.name] < 0.03 for e in result.estimates} == dict.fromkeys(
        truth, True
    )
