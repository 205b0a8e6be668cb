"""Whole machines against full beam elements, which nothing is reduced in."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import DELTA, gantry, hexapod
from full_frame import FullFrame, Profile, full_telescopic_rod, tube_profile
from full_rods import cross_matrix
from scipy.linalg import eigh

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


def full_gantry(model: tl.Model, pose: np.ndarray, elements: int) -> tuple[FullFrame, int]:
    """Return the Gantry-Tau of full elements with its plate at a position, and the plate's node."""
    value = model.mechanism.value
    frame = FullFrame()
    inertia = [value(name) for name in ("I_pxx", "I_pyy", "I_pzz")]
    plate = frame.node(pose, np.diag([value("m_p")] * 3 + inertia))
    tube = tube_profile(0.05, 0.003)
    along = np.eye(6)[0]
    for joint in model.mechanism.joints:
        if joint.kind != "prismatic":
            continue
        track = np.array([value(x) for x in joint.parent.position])
        cart = None
        for rod in model.mechanism.rods:
            if rod.start.body != joint.child.body:
                continue
            length = value(rod.length)
            arm = np.array([value(x) for x in rod.start.position])
            end = pose + [value(x) for x in rod.end.position]
            gap = end - arm - track
            # The first cart is behind the plate, the others are before it.
            side = np.sign(joint.reference[0])
            place = gap[0] + side * np.sqrt(length**2 - gap[1] ** 2 - gap[2] ** 2)
            if cart is None:
                origin = track + place * along[:3]
                cart = frame.node(origin, np.diag([value("cart_mass")] * 3 + [0.0] * 3))
                frame.join(None, cart, origin, along[:, None])
                frame.spring(None, cart, origin, along, 20e6)
            start = frame.points[cart] + arm
            nodes = frame.beam(start, end, tube, elements)
            frame.lock_spin(nodes, (end - start) / length)
            frame.ball(cart, nodes[0], start)
            frame.ball(plate, nodes[-1], end)
    return frame, plate


TOOL = np.array([0.0, 0.0, -0.2])
GANTRY_POSES = np.random.default_rng(1).uniform([-0.2, -0.15, -0.15], [0.2, 0.15, 0.15], (50, 3))


@pytest.fixture(scope="module")
def tubes() -> tl.Model:
    """Return the Gantry-Tau of tubes."""
    return tl.Model(gantry())


def test_compliance_of_a_gantry_at_fifty_poses(tubes: tl.Model) -> None:
    result = tl.stiffness(tubes, GANTRY_POSES)
    for pose, matrix in zip(GANTRY_POSES, result.compliance, strict=True):
        frame, plate = full_gantry(tubes, pose, 1)
        assert_same_compliance(matrix, frame.compliance(plate, pose + TOOL))


def test_modes_of_a_gantry_far_from_its_reference(tubes: tl.Model) -> None:
    pose = GANTRY_POSES[0]
    frame, plate = full_gantry(tubes, pose, ELEMENTS)
    assert_same_modes(tubes, [pose], frame, plate)


def spatial_matrix(mass: float, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return the inertia (6, 6) about an origin; `inertia` (3, 3) is about the center."""
    M = np.zeros((6, 6))
    S = cross_matrix(center)
    M[:3, :3] = mass * np.eye(3)
    M[:3, 3:], M[3:, :3] = -mass * S, mass * S
    M[3:, 3:] = inertia - mass * S @ S
    return M


HEXAPOD_PLATE = spatial_matrix(20.0, np.array([0.0, 0.0, 0.03]), np.diag([0.25, 0.25, 0.45]))
HEXAPOD_TOOL = np.array([0.0, 0.0, 0.41])


def hexapod_legs() -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the plate's origin, and the end points A and B of the six struts at the reference."""
    plate = np.array([0.0, 0.0, 0.35])
    pairs = zip((10, 110, 130, 230, 250, 350), (50, 70, 170, 190, 290, 310), strict=True)
    legs = []
    for base_angle, plate_angle in pairs:
        A = turned_about_z(np.deg2rad(base_angle)) @ [0.35, 0.0, 0.0]
        legs.append((A, plate + turned_about_z(np.deg2rad(plate_angle)) @ [0.2, 0.0, 0.0]))
    return plate, legs


def test_a_hexapod_of_telescopic_tubes_is_that_of_full_elements() -> None:
    """The drive is between the parts, which move with different ends of the rod."""
    model = tl.Model(hexapod(drives="8 N/um", sections=True))
    origin, legs = hexapod_legs()
    frame = FullFrame()
    plate = frame.node(origin, HEXAPOD_PLATE)
    parts = (0.3, tube_profile(0.03, 0.003)), (0.25, tube_profile(0.02, 0.003))
    for A, B in legs:
        start, end = full_telescopic_rod(frame, (A, B), parts, 8e6, 8)
        frame.ball(None, start, A)
        frame.ball(plate, end, B)
    matrix = tl.stiffness(model).compliance[0]
    assert_same_compliance(matrix, frame.compliance(plate, HEXAPOD_TOOL))
    assert_same_modes(model, None, frame, plate)


def test_parts_of_a_rigid_telescopic_rod_move_with_its_ends() -> None:
    """Along a strut its cylinder rests and its piston moves with the plate; across, both turn about A."""
    model = tl.Model(hexapod(drives="8 N/um"))
    origin, legs = hexapod_legs()
    K, M = np.zeros((6, 6)), HEXAPOD_PLATE.copy()
    for A, B in legs:
        length = np.linalg.norm(B - A)
        x = (B - A) / length
        J = np.concatenate([np.eye(3), -cross_matrix(B - origin)], axis=1)
        cylinder = 9e-3 + 1.8 * 0.12**2
        piston = 5e-3 + 0.7 * (length - 0.14) ** 2
        across = (cylinder + piston) / length**2
        K += 8e6 * J.T @ np.outer(x, x) @ J
        M += J.T @ (0.7 * np.outer(x, x) + across * (np.eye(3) - np.outer(x, x))) @ J
    expected = np.sqrt(eigh(K, M, eigvals_only=True)) / (2.0 * np.pi)
    assert tl.vibration(model, count=6).frequency[0] == pytest.approx(expected, rel=ROUNDING)
