"""Machines that hang freely: a plate on fewer cables than freedoms, whose weight gives the rest of its pose.

Truth solves lengths, forces and moments together in NumPy (`hanging_plate`), without Tauloop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from calibration_sessions import encoders, machine, measured
from hanging_plate import HangingPlate
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.calibration import (
    Calibration,
    CalibrationOptions,
    FitOptions,
    Inclinometer,
    LoopEquations,
    Position,
    Series,
    calibrate,
    calibration_problem,
    hanging_coordinates,
)
from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.common.result import Status

NOISE = 1e-4
FOUR = HangingPlate(
    anchors=np.array([[1.0, 1.0, 2.0], [-1.0, 1.0, 2.1], [-1.0, -1.0, 2.0], [1.0, -1.0, 1.9]]),
    points=np.array(
        [[0.15, 0.1, 0.05], [-0.15, 0.1, 0.05], [-0.15, -0.1, 0.05], [0.15, -0.1, 0.05]]
    ),
)
THREE = HangingPlate(
    anchors=np.array([[1.2, 0.0, 2.0], [-0.6, 1.0, 2.1], [-0.6, -1.0, 1.9]]),
    points=np.array([[0.15, 0.0, 0.05], [-0.08, 0.13, 0.05], [-0.08, -0.13, 0.05]]),
)
UNKNOWNS = ("point?", "centre_x")
#: Standard deviations within which estimates must lie.
SURE = 4.5


def nominal(plate: HangingPlate) -> tl.Mechanism:
    return tl.loads(plate.text())


def series_of(
    plate: HangingPlate, count: int, noise: float, seed: int = 1
) -> tuple[Series, np.ndarray]:
    """Positions of a marker on the plate, with noise, and the true tensions."""
    rng = np.random.default_rng(seed)
    marker = (0.05, -0.08, -0.1)
    lengths, positions, turns, tensions = plate.hung(count, rng)
    seen = positions + Rotation.from_rotvec(turns).apply(marker)
    instrument = Position(name="camera", target=marker)
    read = seen + noise * rng.standard_normal(seen.shape)
    return Series(
        instrument=instrument, encoders=lengths, readings=read, noise=noise or NOISE
    ), tensions


def fitted(series: list[Series], plate: HangingPlate = FOUR) -> Calibration:
    return calibrate(nominal(plate), series, options(*UNKNOWNS))


def options(*parameters: str, **more: Any) -> CalibrationOptions:
    """Without the search for exchanged encoders, which takes seconds."""
    fit = FitOptions(swap_search_time=0.0)
    return CalibrationOptions(parameters=parameters, equilibrium=True, fit=fit, **more)


@pytest.mark.parametrize("plate", [FOUR, THREE], ids=["four cables", "three cables"])
def test_the_pose_and_the_tensions_are_those_of_an_independent_solution(plate: HangingPlate):
    series, tensions = series_of(plate, 12, 0.0)
    problem = calibration_problem(nominal(plate), [series], ["centre_x"], equilibrium=True)
    (state,) = problem.evaluate(np.zeros(1)).states
    assert np.abs(state.errors).max() < 1e-9
    (measured_pose,) = problem.measured_poses
    (pull,) = measured_pose.functions.tensions([state.q, np.zeros((12, 1))], 12)
    assert np.abs(pull - tensions).max() < 1e-6


def test_derivatives_are_those_of_the_residuals():
    series, _ = series_of(FOUR, 6, 0.0)
    problem = calibration_problem(nominal(FOUR), [series], UNKNOWNS, equilibrium=True)
    at = 1e-3 * np.random.default_rng(2).standard_normal(len(problem.free))
    linear = problem.linearized(problem.evaluate(at))
    for k, direction in enumerate(np.eye(len(at))):
        above, below = (
            problem.evaluate(at + sign * 1e-6 * direction).residual for sign in (1.0, -1.0)
        )
        assert np.allclose((above - below) / 2e-6, linear.jacobian[:, k], rtol=1e-4, atol=1.0)


def test_lengths_and_the_positions_of_a_marker_give_geometry_and_mass_centre():
    """The plate is built otherwise than drawn: points up to 3 mm off, and its mass centre 5 mm."""
    shift = np.array([[3e-3, 0.0, 0.0], [-2e-3, 0.0, 0.0], [1e-3, 0.0, 0.0], [-1e-3, 0.0, 0.0]])
    built = replace(
        FOUR, points=FOUR.points + shift, center=FOUR.center + np.array([5e-3, 0.0, 0.0])
    )
    series, _ = series_of(built, 40, NOISE)
    result = fitted([series])
    truth = {f"point{i}": float(b[0]) for i, b in enumerate(built.points, 1)} | {
        "centre_x": float(built.center[0])
    }
    assert result.status is Status.OK, result.advice
    assert {estimate.name for estimate in result.estimates} == set(truth)
    for estimate in result.estimates:
        assert abs(estimate.value - truth[estimate.name]) < SURE * estimate.deviation, estimate.name
        assert estimate.deviation < 1e-3
    assert result.variance_factor == pytest.approx(1.0, abs=0.4)


def test_an_inclinometer_alone_shows_the_mass_centre():
    """Partial pose readings: two angles, which without equilibrium would be the freedoms that are left open."""
    built = replace(FOUR, center=FOUR.center + np.array([5e-3, 0.0, 0.0]))
    rng = np.random.default_rng(3)
    lengths, _, turns, _ = built.hung(25, rng)
    up = Rotation.from_rotvec(turns).inv().apply([0.0, 0.0, 1.0])
    angles = np.stack([np.arctan2(up[:, 1], up[:, 2]), -np.arcsin(up[:, 0])], axis=1)
    read = angles + 1e-4 * rng.standard_normal(angles.shape)
    series = Series(
        instrument=Inclinometer(name="level"), encoders=lengths, readings=read, noise=1e-4
    )
    result = calibrate(nominal(FOUR), series, options("centre_x"))
    assert result.status is Status.OK, result.advice
    (estimate,) = result.estimates
    assert abs(estimate.value - built.center[0]) < SURE * estimate.deviation
    assert estimate.deviation < 1e-3


def test_a_frame_of_the_camera_is_aligned_with_the_machine_that_hangs():
    series, _ = series_of(FOUR, 20, NOISE)
    turn = Rotation.from_rotvec([0.2, -0.4, 1.0])
    moved = replace(series, readings=turn.apply(series.readings) + np.array([0.4, -0.2, 0.3]))
    result = calibrate(nominal(FOUR), moved, options("centre_x", "camera.frame.*", align=True))
    assert result.status is Status.OK, result.advice
    assert abs(result.values["centre_x"] - FOUR.center[0]) < 5e-3


def test_a_cable_that_would_have_to_push_is_doubtful():
    """Lengths with which the fourth cable is slack in truth: as a taut one it would have to push."""
    rng = np.random.default_rng(4)
    series, _ = series_of(FOUR, 12, NOISE)
    lengths = series.encoders.copy()
    for _ in range(200):
        tried = lengths[0] + rng.uniform(-0.05, 0.05, 4)
        position, turn, tension = FOUR.pose(tried, np.array([0.0, 0.0, 1.0]))
        if -20.0 < tension.min() < -2.0:
            break
    lengths[0] = tried
    readings = series.readings.copy()
    readings[0] = position + Rotation.from_rotvec(turn).apply(series.instrument.target)
    result = fitted([replace(series, encoders=lengths, readings=readings)])
    (item,) = [item for item in result.diagnostics if item.name.startswith("least tension")]
    assert item.value == pytest.approx(float(tension.min()), rel=0.05)
    assert "camera, pose 1" in item.name
    assert result.status is Status.DOUBTFUL


def test_where_nothing_hangs_equilibrium_is_refused():
    name = "gantry_tau_3dof"
    series = measured(
        name, {}, Position(name="t"), encoders(name, 5, np.random.default_rng(5)), NOISE
    )
    with pytest.raises(InputError, match="the actuators leave no degree of freedom open"):
        calibrate(machine(name), series, options("track*.length"))
    hung, _ = series_of(FOUR, 5, NOISE)
    with pytest.raises(InputError, match="ForwardKinematics"):
        calibrate(nominal(FOUR), hung, options("centre_x", residuals=LoopEquations()))
    weightless = tl.loads(FOUR.text().replace("-9.81 m/s^2", "0 m/s^2"))
    with pytest.raises(InputError, match="no weight or spring acts"):
        calibrate(weightless, hung, options("centre_x"))


def test_a_plate_that_stands_on_its_head_is_refused():
    """Gravity upwards: the cables would press, and the equilibrium is not stable."""
    series, _ = series_of(FOUR, 5, NOISE)
    upside_down = tl.loads(FOUR.text().replace("-9.81 m/s^2", "9.81 m/s^2"))
    with pytest.raises(PoseError, match="unstable equilibrium"):
        calibrate(upside_down, series, options("centre_x"))


def test_where_a_plate_hangs_follows_from_its_lengths_alone():
    rng = np.random.default_rng(6)
    lengths, positions, turns, _ = FOUR.hung(6, rng)
    model = tl.Model(nominal(FOUR))
    pose = model.platform_position(hanging_coordinates(nominal(FOUR), lengths))
    assert np.abs(pose[:, :3] - positions).max() < 1e-9
    expected = Rotation.from_rotvec(turns)
    assert (
        Rotation.from_quat(pose[:, 3:], scalar_first=True) * expected.inv()
    ).magnitude().max() < 1e-9
    with pytest.raises(PoseError, match="out of reach"):
        hanging_coordinates(nominal(FOUR), np.array([0.3, 0.3, 0.3, 0.3]))


def test_a_reading_that_leaves_the_pose_open_names_equilibrium():
    """Height alone: what hangs freely is not determined without the weight."""
    series, _ = series_of(FOUR, 12, NOISE)
    instrument = Position(name="camera", target=series.instrument.target, components="z")
    height = replace(series, instrument=instrument, readings=series.readings[:, 2:])
    with pytest.raises(TauloopError, match="--equilibrium"):
        calibrate(nominal(FOUR), height, CalibrationOptions(parameters=("centre_x",)))
    result = calibrate(nominal(FOUR), height, options("centre_x"))
    assert result.degrees_of_freedom == 11
