"""Machines of full beam elements, joints as constraints, written independently of the package.

Every beam has all its nodes, with six freedoms each; nothing is reduced. Elements are those of textbooks
(Przemieniecki 1968, eqs. 5.116 and 11.23) or of another program.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from full_rods import bending, cross_matrix
from scipy.linalg import eigh, null_space

import tauloop as tl

#: Freedoms u, v, w, θx, θy, θz of both nodes that bend in the plane x-y, and in x-z, with signs.
_IN_XY, _IN_XZ = [1, 5, 7, 11], [2, 4, 8, 10]
_SIGNS_XZ = np.array([1.0, -1.0, 1.0, -1.0])


@dataclass(frozen=True)
class Profile:
    """Stiffness and mass per length of a section."""

    EA: float
    EI_y: float
    EI_z: float
    GJ: float
    mass: float
    polar: float


def tube_profile(
    outer: float, wall: float, *, young: float = 70e9, poisson: float = 0.3, density: float = 2700.0
) -> Profile:
    """Return a round tube."""
    inner = outer - 2.0 * wall
    area = np.pi / 4.0 * (outer**2 - inner**2)
    moment = np.pi / 64.0 * (outer**4 - inner**4)
    return Profile(
        EA=young * area,
        EI_y=young * moment,
        EI_z=young * moment,
        GJ=young / (1.0 + poisson) * moment,
        mass=density * area,
        polar=2.0 * density * moment,
    )


def joined_profiles(first: Profile, second: Profile) -> Profile:
    """Return two sections that move together."""
    names = Profile.__dataclass_fields__
    return Profile(**{name: getattr(first, name) + getattr(second, name) for name in names})


def own_element(profile: Profile, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Return stiffness and consistent mass (12, 12) of an element in its own axes."""
    K, M = np.zeros((12, 12)), np.zeros((12, 12))
    difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
    linear = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6.0
    K[np.ix_([0, 6], [0, 6])] = profile.EA / h * difference
    K[np.ix_([3, 9], [3, 9])] = profile.GJ / h * difference
    M[np.ix_([0, 6], [0, 6])] = profile.mass * h * linear
    M[np.ix_([3, 9], [3, 9])] = profile.polar * h * linear
    K[np.ix_(_IN_XY, _IN_XY)], M[np.ix_(_IN_XY, _IN_XY)] = bending(profile.EI_z, profile.mass, h)
    signs = np.outer(_SIGNS_XZ, _SIGNS_XZ)
    k, m = bending(profile.EI_y, profile.mass, h)
    K[np.ix_(_IN_XZ, _IN_XZ)], M[np.ix_(_IN_XZ, _IN_XZ)] = signs * k, signs * m
    return K, M


def own_geometric(h: float) -> np.ndarray:
    """Return the geometric stiffness (12, 12) of an element by a unit of tension in it."""
    k = (
        np.array(
            [
                [36.0, 3.0 * h, -36.0, 3.0 * h],
                [3.0 * h, 4.0 * h**2, -3.0 * h, -(h**2)],
                [-36.0, -3.0 * h, 36.0, -3.0 * h],
                [3.0 * h, -(h**2), -3.0 * h, 4.0 * h**2],
            ]
        )
        / 30.0
        / h
    )
    K = np.zeros((12, 12))
    K[np.ix_(_IN_XY, _IN_XY)] = k
    K[np.ix_(_IN_XZ, _IN_XZ)] = np.outer(_SIGNS_XZ, _SIGNS_XZ) * k
    return K


#: Stiffness and mass of an element in its own axes, by its profile and length.
ElementMatrices = Callable[[Profile, float], tuple[np.ndarray, np.ndarray]]


def arm_transport(arm: np.ndarray) -> np.ndarray:
    """Return the matrix (6, 6) from the twist of a point to that of another one by `arm` from it."""
    T = np.eye(6)
    T[:3, 3:] = -cross_matrix(arm)
    return T


class FullFrame:
    """Nodes with six freedoms, beams between them, and joints as linear constraints."""

    def __init__(self, element: ElementMatrices = own_element) -> None:
        """Begin without nodes."""
        self.element = element
        self.points: list[np.ndarray] = []
        self.stiffness: list[tuple[np.ndarray, np.ndarray]] = []
        self.mass: list[tuple[np.ndarray, np.ndarray]] = []
        self.rows: list[dict[int, np.ndarray]] = []
        #: Rods: nodes, axes as rows, and axial stiffness of their elements.
        self.rods: list[tuple[list[int], np.ndarray, float]] = []
        #: Balls between a body and the end of a rod.
        self.balls: list[tuple[int, int]] = []

    def node(self, point: np.ndarray, inertia: np.ndarray | None = None) -> int:
        """Add a node, which may have an inertia (6, 6), and return its number."""
        self.points.append(np.asarray(point, float))
        number = len(self.points) - 1
        if inertia is not None:
            self.mass.append((self._freedoms(number), inertia))
        return number

    def beam(
        self,
        start: np.ndarray,
        end: np.ndarray,
        profile: Profile,
        count: int,
        z_axis: np.ndarray | None = None,
        nodes: tuple[int | None, int | None] = (None, None),
    ) -> list[int]:
        """Add `count` elements, and return their nodes; `nodes` are existing ones at the ends."""
        x = (end - start) / np.linalg.norm(end - start)
        across = np.eye(3)[np.argmin(np.abs(x))] if z_axis is None else z_axis
        y = np.cross(across, x)
        y /= np.linalg.norm(y)
        R = np.stack([x, y, np.cross(x, y)])
        numbers = []
        for i in range(count + 1):
            present = {0: nodes[0], count: nodes[1]}.get(i)
            if present is None:
                present = self.node(start + i / count * (end - start))
            numbers.append(present)
        T = np.kron(np.eye(4), R)
        K, M = self.element(profile, float(np.linalg.norm(end - start)) / count)
        for pair in itertools.pairwise(numbers):
            freedoms = np.concatenate([self._freedoms(number) for number in pair])
            self.stiffness.append((freedoms, T.T @ K @ T))
            self.mass.append((freedoms, T.T @ M @ T))
        self.rods.append((numbers, R, K[0, 0]))
        return numbers

    def lock_spin(self, numbers: list[int], axis: np.ndarray) -> None:
        """Hold the rotation of nodes about an axis: rods between balls carry no torsion."""
        row = np.concatenate([np.zeros(3), axis])[None]
        self.rows.extend({number: row} for number in numbers)

    def join(
        self, near: int | None, far: int, point: np.ndarray, free: np.ndarray | None = None
    ) -> None:
        """Hold two nodes (None: the base) together at a point, but for twists (6, f) that are free."""
        held = np.eye(6) if free is None else null_space(free.T).T
        rows = {far: held @ arm_transport(point - self.points[far])}
        if near is not None:
            rows[near] = -held @ arm_transport(point - self.points[near])
        self.rows.append(rows)

    def ball(self, near: int | None, far: int, point: np.ndarray) -> None:
        """Hold the translations of two nodes together at a point."""
        self.join(near, far, point, np.eye(6)[:, 3:])
        if near is not None:
            self.balls.append((near, far))

    def spring(
        self, near: int | None, far: int, point: np.ndarray, twist: np.ndarray, stiffness: float
    ) -> None:
        """Add a spring against a relative twist (6,) of two nodes at a point."""
        row = twist @ arm_transport(point - self.points[far])
        freedoms = self._freedoms(far)
        if near is not None:
            row = np.concatenate([row, -twist @ arm_transport(point - self.points[near])])
            freedoms = np.concatenate([freedoms, self._freedoms(near)])
        self.stiffness.append((freedoms, stiffness * np.outer(row, row)))

    @staticmethod
    def _freedoms(number: int) -> np.ndarray:
        """Return the places of a node's freedoms."""
        return 6 * number + np.arange(6)

    def _assembled(self, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return the sum of matrices of all nodes' freedoms."""
        total = np.zeros((6 * len(self.points),) * 2)
        for freedoms, matrix in parts:
            total[np.ix_(freedoms, freedoms)] += matrix
        return total

    def free_motions(self) -> np.ndarray:
        """Return the motions (6 n, f) that all constraints allow."""
        size = 6 * len(self.points)
        C = np.zeros((sum(len(next(iter(rows.values()))) for rows in self.rows), size))
        first = 0
        for rows in self.rows:
            height = len(next(iter(rows.values())))
            for number, matrix in rows.items():
                C[first : first + height, self._freedoms(number)] = matrix
            first += height
        touched = np.flatnonzero(C.any(axis=0))
        untouched = np.flatnonzero(~C.any(axis=0))
        inside = null_space(C[:, touched], rcond=1e-10)
        motions = np.zeros((size, len(untouched) + inside.shape[1]))
        motions[untouched, np.arange(len(untouched))] = 1.0
        motions[touched, len(untouched) :] = inside
        return motions

    def point_motion(self, number: int, point: np.ndarray) -> np.ndarray:
        """Return the twist (6, 6 n) of a point that a node carries."""
        J = np.zeros((6, 6 * len(self.points)))
        J[:, self._freedoms(number)] = arm_transport(point - self.points[number])
        return J

    def compliance(self, number: int, point: np.ndarray) -> np.ndarray:
        """Return the compliance (6, 6) of a point that a node carries."""
        N = self.free_motions()
        J = self.point_motion(number, point) @ N
        return J @ np.linalg.solve(N.T @ self._assembled(self.stiffness) @ N, J.T)

    def modes(self, count: int, number: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return frequencies (count,) in Hz, and twists (count, 6) of a point in each mode."""
        N = self.free_motions()
        K, M = (N.T @ self._assembled(part) @ N for part in (self.stiffness, self.mass))
        values, shapes = eigh(K, M, subset_by_index=[0, count - 1])
        return np.sqrt(values) / (2.0 * np.pi), (self.point_motion(number, point) @ N @ shapes).T

    def load_factor(
        self,
        number: int,
        point: np.ndarray,
        force: np.ndarray,
        geometric: Callable[[float], np.ndarray] = own_geometric,
    ) -> float:
        """Return the factor of a force at which a machine of rods between balls buckles.

        Args:
            number: node that carries the force.
            point: where it acts; it keeps its direction.
            force: (3,) on the node.
            geometric: geometric stiffness (12, 12) of an element of a length, by a unit of tension.
        """
        N = self.free_motions()
        K = N.T @ self._assembled(self.stiffness) @ N
        load = (self.point_motion(number, point)[:3] @ N).T @ force
        motion = N @ np.linalg.solve(K, load)
        parts = [self._turning(number, point, force)]
        tension: dict[int, np.ndarray] = {}
        for numbers, R, stiffness in self.rods:
            T = np.kron(np.eye(4), R)
            for near, far in itertools.pairwise(numbers):
                stretch = R[0] @ (motion[6 * far :][:3] - motion[6 * near :][:3])
                h = float(np.linalg.norm(self.points[far] - self.points[near]))
                freedoms = np.concatenate([self._freedoms(near), self._freedoms(far)])
                parts.append((freedoms, stiffness * stretch * T.T @ geometric(h) @ T))
            # What the rod's ends pull with.
            tension[numbers[0]] = stiffness * stretch * R[0]
            tension[numbers[-1]] = -stiffness * stretch * R[0]
        for body, end in self.balls:
            parts.append(self._turning(body, self.points[end], tension[end]))
        values = eigh(-N.T @ self._assembled(parts) @ N, K, eigvals_only=True)
        return float(1.0 / values[-1])

    def _turning(
        self, number: int, point: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the second derivative of -f · ½ θ × (θ × r), by which a force resists rotation."""
        r = point - self.points[number]
        H = np.zeros((6, 6))
        H[3:, 3:] = (force @ r) * np.eye(3) - 0.5 * (np.outer(force, r) + np.outer(r, force))
        return self._freedoms(number), H


def full_telescopic_rod(
    frame: FullFrame,
    ends: tuple[np.ndarray, np.ndarray],
    parts: tuple[tuple[float, Profile], tuple[float, Profile]],
    drive: float,
    count: int,
) -> tuple[int, int]:
    """Add a rod of two parts that overlap, and return its end nodes.

    In the overlap both bend together, and strain together along the axis but for the stretch of the
    drive, which is the same everywhere in it.

    Args:
        frame: the machine.
        ends: points A and B.
        parts: length and profile of the lower part (from A) and of the upper one (to B).
        drive: stiffness between the parts.
        count: elements of each piece.
    """
    A, B = ends
    (lower_length, lower), (upper_length, upper) = parts
    length = float(np.linalg.norm(B - A))
    x = (B - A) / length
    first, second = A + (length - upper_length) * x, A + lower_length * x
    only_lower = frame.beam(A, first, lower, count)
    inner = frame.beam(first, second, lower, count, nodes=(only_lower[-1], None))
    outer = frame.beam(first, second, upper, count)
    only_upper = frame.beam(second, B, upper, count, nodes=(outer[-1], None))
    frame.lock_spin([*only_lower, *inner[1:], *only_upper[1:]], x)
    along = np.concatenate([x, np.zeros(3)])
    for near, far in zip(inner, outer, strict=True):
        frame.join(near, far, frame.points[near], along[:, None])
        if near != inner[0]:
            row = along[None]
            frame.rows.append({near: row, far: -row, inner[0]: -row, outer[0]: row})
    frame.spring(inner[0], outer[0], first, along, drive)
    return only_lower[0], only_upper[-1]


def full_gantry(
    model: tl.Model, pose: np.ndarray, elements: int, element: ElementMatrices = own_element
) -> tuple[FullFrame, int]:
    """Return the Gantry-Tau of full elements with its plate at a position, and the plate's node."""
    value = model.mechanism.value
    frame = FullFrame(element)
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


def rotation_twist(axis: np.ndarray) -> np.ndarray:
    """Return the twist (6,) of a rotation about an axis."""
    return np.concatenate([np.zeros(3), axis])


def full_orthoglide(
    pose: np.ndarray, elements: int, *, is_puu: bool, element: ElementMatrices = own_element
) -> tuple[FullFrame, int]:
    """Return an Orthoglide of full elements with its plate at a position, and the plate's node.

    Args:
        pose: (3,) of the plate.
        elements: of each bar.
        is_puu: whether a leg is a bar between universal joints, or a parallelogram between hinges.
        element: matrices of an element.
    """
    frame = FullFrame(element)
    plate = frame.node(pose, np.diag([4.5, 4.5, 4.5, 0.01, 0.01, 0.01]))
    for columns in ("xyz", "yXz", "zyX"):
        # Axes of the leg in the base; capitals are negative.
        leg = np.transpose(
            [(1.0 if c.islower() else -1.0) * np.eye(3)["xyz".index(c.lower())] for c in columns]
        )
        x, y, _ = leg.T
        _, across, up = leg.T @ pose
        b = np.arcsin(across / 0.31)
        a = -np.arcsin(up / 0.31 / np.cos(b))
        direction = leg @ [np.cos(a) * np.cos(b), np.sin(b), -np.sin(a) * np.cos(b)]
        z = leg @ [np.sin(a), 0.0, np.cos(a)]
        end = pose - 0.06 * x
        start = end - 0.31 * direction
        cart = frame.node(start, np.diag([4.0, 4.0, 4.0, 0.0, 0.0, 0.0]))
        slide = np.concatenate([x, np.zeros(3)])
        frame.join(None, cart, start, slide[:, None])
        frame.spring(None, cart, start, slide, 10e6)
        hinges = rotation_twist(y), rotation_twist(z)
        if is_puu:
            bar = frame.beam(start, end, tube_profile(0.03, 0.003), elements)
            frame.join(cart, bar[0], start, np.transpose(hinges))
            frame.join(plate, bar[-1], end, np.transpose(hinges))
            continue
        fork, hand = (frame.node(p, np.diag([0.2] * 3 + [0.0] * 3)) for p in (start, end))
        frame.join(cart, fork, start, hinges[0][:, None])
        frame.join(plate, hand, end, hinges[0][:, None])
        for side in (0.04, -0.04):
            near, far = start + side * y, end + side * y
            bar = frame.beam(near, far, tube_profile(0.016, 0.003), elements)
            frame.join(fork, bar[0], near, hinges[1][:, None])
            frame.join(hand, bar[-1], far, hinges[1][:, None])
    return frame, plate
