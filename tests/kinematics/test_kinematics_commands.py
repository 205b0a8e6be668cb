"""``tauloop fk | ik | jacobian | modes`` and the functions behind them: units, short names, all modes, Jacobians."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tauloop as tl

#: Rounding through the loops.
ROUNDING = 1e-9
#: Step of central differences and their error.
STEP, DIFFERENCES = 1e-5, 1e-7


def test_one_direction_undoes_the_other() -> None:
    model = tl.Model(tl.load("rcid"))
    there = tl.inverse_kinematics(model, "x=10mm,z=-5mm,rz=3deg")
    back = tl.forward_kinematics(model, there.actuator_position[0])
    assert np.abs(back.platform_position - there.platform_position).max() < ROUNDING
    assert np.abs(back.tool - there.tool).max() < ROUNDING


def test_the_reference_pose_is_turned_by_the_rotation_vector() -> None:
    """Oracle: Rodrigues' formula."""
    model = tl.Model(tl.load("rcid"))
    poses = [tl.inverse_kinematics(model, text).tool_rotation[0] for text in ("", "rz=3deg")]
    c, s = np.cos(np.radians(3)), np.sin(np.radians(3))
    assert (
        np.abs(poses[1] - np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ poses[0]).max() < ROUNDING
    )


def test_every_mode_closes_and_has_the_given_position() -> None:
    state = tl.inverse_kinematics(delta(), "x=50mm", tl.KinematicsOptions(all_modes=True))
    assert len(state.q) == 8  # two postures of each of three legs
    assert state.residual.max() < ROUNDING
    assert np.abs(state.platform_position - state.platform_position[0]).max() < ROUNDING
    assert len(np.unique(state.actuator_position.round(6), axis=0)) == 8
    single = tl.inverse_kinematics(delta(), "x=50mm")
    assert np.abs(single.actuator_position - state.actuator_position[0]).max() < ROUNDING


@functools.cache
def delta() -> tl.Model:
    return tl.Model(tl.load("delta"))


@pytest.mark.parametrize("of", ["tool", "actuators", "platform"])
@pytest.mark.parametrize("port", ["pose", "actuators"])
def test_jacobians_are_differences(port: str, of: str) -> None:
    """Oracle: central differences of forward or inverse kinematics."""
    model = delta()
    start = tl.inverse_kinematics(model, "x=50mm,y=20mm")
    at = (start.platform_position if port == "pose" else start.actuator_position)[0]
    kinematics = tl.inverse_kinematics if port == "pose" else tl.forward_kinematics

    def place(position: np.ndarray) -> np.ndarray:
        state = kinematics(model, position)
        return {
            "tool": state.tool,
            "actuators": state.actuator_position,
            "platform": state.platform_position,
        }[of][0]

    wanted = np.stack(
        [(place(at + e) - place(at - e)) / (2 * STEP) for e in STEP * np.eye(len(at))], axis=1
    )
    state = tl.jacobian(model, options=tl.JacobianOptions(of=of), **{port: at})
    assert np.abs(state.matrix[: len(wanted)] - wanted).max() < DIFFERENCES * np.abs(wanted).max()
