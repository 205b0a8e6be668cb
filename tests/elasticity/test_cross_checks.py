"""Whole machines against full beam elements, which nothing is reduced in."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_machines import DELTA, PRPAR, PUU, gantry, hexapod
from full_frame import (
    FullFrame,
    Profile,
    full_gantry,
    full_orthoglide,
    full_telescopic_rod,
    tube_profile,
)
from full_rods import cross_matrix
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

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


TOOL = np.array([0.0, 0.0, -0.2])
ORTHOGLIDE_TOOL = np.array([0.02, 0.01, -0.08])
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


@pytest.mark.parametrize(
    ("pose", "force"),
    [
        ((0.0, 0.0, 0.0), (5000.0, 0.0, 0.0)),
        ((0.1, -0.05, 0.08), (2000.0, -3000.0, -4000.0)),
        ((0.1, -0.05, 0.08), (-2000.0, 3000.0, 4000.0)),
    ],
)
def test_a_machine_buckles_at_the_load_of_full_elements(
    tubes: tl.Model, pose: tuple[float, float, float], force: tuple[float, float, float]
) -> None:
    """With 32 elements a rod, the eigenvalues of full elements err by 1e-7."""
    result = tl.stiffness(tubes, [pose], wrench=(*force, 0.0, 0.0, 0.0), weightless=True)
    frame, plate = full_gantry(tubes, np.array(pose), 32)
    expected = frame.load_factor(plate, np.array(pose) + TOOL, np.array(force))
    assert result.load_factor[0] == pytest.approx(expected, rel=1e-6)


class LoadedTruss:
    """A plate on rods from carts on springs, whose equilibrium is solved at finite rotations."""

    def __init__(self, frame: FullFrame, plate: int, tool: np.ndarray, force: np.ndarray) -> None:
        """Preload all rods and drives, so that a force at the tool is in equilibrium at the pose."""
        self.origin, self.arm, self.force = frame.points[plate], tool - frame.points[plate], force
        self.carts = sorted({near for near, _ in frame.balls} - {plate})
        starts = {far: self.carts.index(near) for near, far in frame.balls if near != plate}
        self.cart = [starts[numbers[0]] for numbers, *_ in frame.rods]
        self.start = np.array([frame.points[numbers[0]] for numbers, *_ in frame.rods])
        self.end = np.array([frame.points[numbers[-1]] - self.origin for numbers, *_ in frame.rods])
        self.axial = np.array([stiffness for *_, stiffness in frame.rods])
        self.drives = np.zeros(len(self.carts))
        self.tension = np.zeros(len(self.axial))
        self.length = self.lengths(np.zeros(9))[0]
        # The force is balanced by the rods, and the rods by the drives.
        columns = [
            self.residual(np.zeros(9), tension=row, wrench=np.zeros(6))[3:]
            for row in np.eye(len(self.axial))
        ]
        wrench = np.concatenate([force, np.cross(self.arm, force)])
        self.tension = np.linalg.solve(np.transpose(columns), -wrench)
        self.drives = self.residual(np.zeros(9))[:3]

    def lengths(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return lengths and directions of the rods, and the rotation of the plate."""
        R = Rotation.from_rotvec(q[6:]).as_matrix()
        start = self.start + np.outer(q[self.cart], [1.0, 0.0, 0.0])
        difference = self.origin + q[3:6] + self.end @ R.T - start
        length = np.linalg.norm(difference, axis=1)
        return length, difference / length[:, None], R

    def residual(
        self, q: np.ndarray, wrench: np.ndarray | None = None, tension: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the sums of forces on the carts, and of forces and moments on the plate.

        Args:
            q: translations of carts and plate, and the plate's rotation vector.
            wrench: on the tool; by default the force of the preload.
            tension: of the rods; by default that of their springs.
        """
        if wrench is None:
            wrench = np.concatenate([self.force, np.zeros(3)])
        length, direction, R = self.lengths(q)
        if tension is None:
            tension = self.tension + self.axial * (length - self.length)
        pull = tension[:, None] * direction
        carts = np.bincount(self.cart, pull[:, 0], len(self.carts)) - 20e6 * q[:3] - self.drives
        moment = wrench[3:] + np.cross(R @ self.arm, wrench[:3])
        moment = moment - np.cross(self.end @ R.T, pull).sum(axis=0)
        return np.concatenate([carts, wrench[:3] - pull.sum(axis=0), moment])

    def tool_motion(self, wrench: np.ndarray) -> np.ndarray:
        """Return translation and rotation of the tool by a wrench in addition to the preload."""
        loaded = wrench + np.concatenate([self.force, np.zeros(3)])
        q = np.zeros(9)
        for _ in range(6):
            step = 1e-7
            columns = [
                self.residual(q + step * row, loaded) - self.residual(q - step * row, loaded)
                for row in np.eye(9)
            ]
            q = q - np.linalg.solve(np.transpose(columns) / (2.0 * step), self.residual(q, loaded))
        R = self.lengths(q)[2]
        return np.concatenate([q[3:6] + R @ self.arm - self.arm, q[6:]])

    def compliance(self) -> np.ndarray:
        """Return the compliance (6, 6) at the tool by central differences."""
        step = np.array([20.0] * 3 + [5.0] * 3)
        rows = [
            (self.tool_motion(row) - self.tool_motion(-row)) / (2.0 * row.max())
            for row in np.diag(step)
        ]
        return np.transpose(rows)


def test_stiffness_under_a_large_load_is_that_of_a_nonlinear_equilibrium(tubes: tl.Model) -> None:
    """At 0.6 of the buckling load; the compliance changes by 4 %."""
    pose, force = np.array([0.1, -0.05, 0.08]), 16.6 * np.array([2000.0, -3000.0, -4000.0])
    wrench = (*force, 0.0, 0.0, 0.0)
    result = tl.stiffness(tubes, [pose], wrench=wrench, weightless=True, loaded=True)
    frame, plate = full_gantry(tubes, pose, 1)
    expected = LoadedTruss(frame, plate, pose + TOOL, force).compliance()
    assert_same_compliance(result.compliance[0], expected, 1e-6)
    unloaded = tl.stiffness(tubes, [pose]).compliance[0]
    scale = np.sqrt(np.diagonal(expected))
    assert np.abs((unloaded - expected) / np.outer(scale, scale)).max() > 0.03


@pytest.mark.parametrize("distance", [0.0, -0.05, 0.08])
@pytest.mark.parametrize("is_puu", [True, False], ids=["3-PUU", "3-PRPaR"])
def test_an_orthoglide_is_that_of_full_elements(is_puu: bool, distance: float) -> None:
    """At the isotropic point and on the diagonal; parallelograms make it overconstrained."""
    model = tl.Model(tl.loads(PUU if is_puu else PRPAR))
    pose = np.full(3, distance)
    tool = pose + ORTHOGLIDE_TOOL
    frame, plate = full_orthoglide(pose, 1, is_puu=is_puu)
    matrix = tl.stiffness(model, [pose]).compliance[0]
    assert_same_compliance(matrix, frame.compliance(plate, tool))
    frame, plate = full_orthoglide(pose, ELEMENTS, is_puu=is_puu)
    assert_same_modes(model, [pose], frame, plate)
