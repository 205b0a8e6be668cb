"""Whole machines against full beam elements, which nothing is reduced in."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import DELTA
from full_frame import FullFrame, Profile, tube_profile

import tauloop as tl

#: Rounding of the solution of equations with a condition number of about 1e8.
ROUNDING = 1e-8
#: Of a frequency to the tenth mode, with 16 elements a link.
FREQUENCY_ERROR = 1e-4
#: Elements of each link.
ELEMENTS = 16


def turned_about_z(angle: float) -> np.ndarray:
    """Return the rotation about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def box_profile(width: float, height: float, wall: float) -> Profile:
    """Return a box of the alloy; its torsion is that of Bredt's formula on the wall's middle line."""
    young, poisson, density = 70e9, 0.3, 2700.0
    inner_width, inner_height = width - 2.0 * wall, height - 2.0 * wall
    area = width * height - inner_width * inner_height
    I_y = (width * height**3 - inner_width * inner_height**3) / 12.0
    I_z = (height * width**3 - inner_height * inner_width**3) / 12.0
    b, h = width - wall, height - wall
    return Profile(
        EA=young * area,
        EI_y=young * I_y,
        EI_z=young * I_z,
        GJ=young / 2.0 / (1.0 + poisson) * 2.0 * wall * (b * h) ** 2 / (b + h),
        mass=density * area,
        polar=density * (I_y + I_z),
    )


def full_delta(pose: np.ndarray) -> tuple[FullFrame, int]:
    """Return the delta of full elements with its plate at a position, and the plate's node.

    Its arms are boxes of full elements; forearms are pairs of tubes between balls.
    """
    frame = FullFrame()
    inertia = np.diag([0.5, 0.5, 0.5, 4e-4, 4e-4, 8e-4])
    plate = frame.node(pose, inertia)
    arm_section, tube = box_profile(0.04, 0.025, 0.002), tube_profile(0.012, 0.001)
    for number in range(3):
        R = turned_about_z(np.deg2rad(120.0 * number))
        shoulder = R @ [0.194, 0.0, 0.0]
        # The plate's joint in the plane of the leg; the arm points down by a positive angle.
        x, y, z = R.T @ pose + [0.03 - 0.194, 0.0, 0.0]
        a, b = 2.0 * 0.26 * x, -2.0 * 0.26 * z
        c = x**2 + y**2 + z**2 + 0.26**2 - 0.48**2
        angle = np.arctan2(b, a) - np.arccos(c / np.hypot(a, b))
        elbow = shoulder + 0.26 * R @ [np.cos(angle), 0.0, -np.sin(angle)]
        up = R @ [np.sin(angle), 0.0, np.cos(angle)]
        across = R[:, 1]
        arm = frame.beam(shoulder, elbow, arm_section, ELEMENTS, up)
        hinge = np.concatenate([np.zeros(3), across])
        frame.join(None, arm[0], shoulder, hinge[:, None])
        frame.spring(None, arm[0], shoulder, hinge, 8000.0)
        for side in (0.03, -0.03):
            start, end = elbow + side * across, pose + R @ [0.03, side, 0.0]
            assert np.linalg.norm(end - start) == pytest.approx(0.48, rel=1e-9)
            rod = frame.beam(start, end, tube, ELEMENTS)
            frame.lock_spin(rod, (end - start) / 0.48)
            frame.ball(arm[-1], rod[0], start)
            frame.ball(plate, rod[-1], end)
    return frame, plate


def assert_same_compliance(
    matrix: np.ndarray, expected: np.ndarray, tolerance: float = ROUNDING
) -> None:
    """Assert that all entries agree, relative to those of the diagonal in their row and column."""
    scale = np.sqrt(np.diagonal(expected))
    assert np.abs((matrix - expected) / np.outer(scale, scale)).max() < tolerance


def assert_same_modes(
    model: tl.Model, poses: object, frame: FullFrame, node: int, count: int = 10
) -> None:
    """Assert that frequencies are those of a full frame, and the tool moves as much in each cluster.

    A mode moves the tool by twists φ; the sum of φ φᵀ over a cluster does not depend on the basis of
    its subspace.
    """
    result = tl.vibration(model, poses, count=count + 4)
    tool = tl.stiffness(model, poses).tool[0]
    frequencies, twists = frame.modes(count + 4, node, tool)
    assert result.frequency[0, :count] == pytest.approx(frequencies[:count], rel=FREQUENCY_ERROR)
    largest = np.abs(twists).max(axis=0)
    for cluster in result.clusters:
        modes = [number - 1 for number in cluster]
        if modes[-1] >= count:
            break
        ours, full = (shapes[modes] / largest for shapes in (result.tool_shapes[0], twists))
        assert ours.T @ ours == pytest.approx(full.T @ full, abs=5e-3)


@pytest.mark.parametrize("pose", [(0.0, 0.0, -0.5), (0.12, -0.07, -0.55)])
def test_a_delta_with_elastic_arms_is_that_of_full_elements(
    pose: tuple[float, float, float],
) -> None:
    model = tl.Model(tl.loads(DELTA))
    frame, plate = full_delta(np.array(pose))
    result = tl.stiffness(model, [pose])
    tool = np.array(pose) - [0.0, 0.0, 0.05]
    assert result.tool[0] == pytest.approx(tool, abs=1e-9)
    assert_same_compliance(result.compliance[0], frame.compliance(plate, tool))
    assert_same_modes(model, [pose], frame, plate)
