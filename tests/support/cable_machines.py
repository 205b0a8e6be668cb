"""Cable machines, and what they need by lines of their own: a plate on straight cables, without any of the toolkit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, lsq_linear
from scipy.spatial.transform import Rotation

GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Plate:
    """A rigid plate on k cables: anchors (k, 3) on the frame and (k, 3) on the plate, mass, principal moments."""

    anchors: np.ndarray
    points: np.ndarray
    mass: float
    moments: np.ndarray
    least: float = 5.0
    greatest: float = 500.0

    def text(self, tension: str = "", actuator: str = "", anywhere: str = "") -> str:
        """Its machine file; further keys of `tension`, of each actuator, and of each rod."""
        rows = [
            f"  cable{i}: {{from: {{on: base, at: [{', '.join(f'{x!r} m' for x in map(float, a))}]}}, "
            f"to: {{on: plate, at: [{', '.join(f'{x!r} m' for x in map(float, b))}]}}, "
            f"telescopic: {{reference: 2 m{anywhere}}}, model: massless, "
            f"tension: {{least: {self.least!r} N, greatest: {self.greatest!r} N{tension}}}}}"
            for i, (a, b) in enumerate(zip(self.anchors, self.points, strict=True), 1)
        ]
        drives = [f"  winch{i}: {{on: cable{i}{actuator}}}" for i in range(1, len(rows) + 1)]
        moments = ", ".join(
            f"{n}: {float(x)!r} kg m^2"
            for n, x in zip(("xx", "yy", "zz"), self.moments, strict=True)
        )
        return "\n".join(
            [
                "format: tauloop-machine/1",
                "name: plate",
                "provenance: {status: chosen, source: a test}",
                "gravity: [0, 0, -9.81 m/s^2]",
                "bodies:",
                f"  plate: {{mass: {self.mass!r} kg, inertia: {{{moments}}}}}",
                "rods:",
                *rows,
                "actuators:",
                *drives,
                "platform: {body: plate, motion: free, independent: [x, y, z, wx, wy, wz], "
                "reference: {at: [0.1 m, 0.05 m, 1.2 m], turn: [{x: 2 deg}, {y: -3 deg}]}}",
            ]
        )

    def structure(self, position: np.ndarray) -> np.ndarray:
        """Wrench about the plate's origin per unit of tension (6, k) at x y z and a quaternion w x y z."""
        R = Rotation.from_quat(position[3:], scalar_first=True).as_matrix()
        r = self.points @ R.T
        u = self.anchors - (position[:3] + r)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        return np.concatenate([u.T, np.cross(r, u).T])

    def needed(
        self, position: np.ndarray, velocity: np.ndarray, acceleration: np.ndarray
    ) -> np.ndarray:
        """Wrench (6,) of the cables: Newton's law, and Euler's about the mass centre in the base frame."""
        R = Rotation.from_quat(position[3:], scalar_first=True).as_matrix()
        inertia = R @ np.diag(self.moments) @ R.T
        w, alpha = velocity[3:], acceleration[3:]
        return np.concatenate(
            [self.mass * (acceleration[:3] - GRAVITY), inertia @ alpha + np.cross(w, inertia @ w)]
        )

    def distribution(
        self, position: np.ndarray, wrench: np.ndarray, wanted: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """The tensions within bounds that are nearest to the wanted ones, and how many are at a bound.

        By SciPy's bounded least squares, whose heavy rows hold the wrench nearly; then exactly, on
        the bounds that it ends at: the conditions of Karush, Kuhn and Tucker hold to rounding,
        which proves it, whoever found the bounds.
        """
        A, k = self.structure(position), len(wanted)
        rows, sides = np.concatenate([np.eye(k), 1e5 * A]), np.r_[wanted, 1e5 * wrench]
        bound = lsq_linear(
            rows, sides, (self.least, self.greatest), method="bvls", tol=1e-15
        ).active_mask
        least, greatest = bound == -1, bound == 1
        E = np.concatenate([A, np.eye(k)[least], np.eye(k)[greatest]])
        sides = np.r_[
            wrench, np.full(least.sum(), self.least), np.full(greatest.sum(), self.greatest)
        ]
        K = np.block([[np.eye(k), -E.T], [E, np.zeros((len(E), len(E)))]])
        solution = np.linalg.solve(K, np.r_[wanted, sides])
        exact, multipliers = solution[:k], solution[k + len(A) :]
        assert (multipliers[: least.sum()] >= -1e-9).all()
        assert (multipliers[least.sum() :] <= 1e-9).all()
        assert ((exact > self.least - 1e-9) & (exact < self.greatest + 1e-9)).all()
        return exact, int((least | greatest).sum())

    def margin(self, position: np.ndarray, wrench: np.ndarray) -> float:
        """max m with least + m <= T <= greatest - m and structure T = wrench, by SciPy's HiGHS."""
        A = self.structure(position)
        k = A.shape[1]
        ones = np.ones((k, 1))
        solution = linprog(
            np.r_[np.zeros(k), -1.0],
            A_ub=np.block([[-np.eye(k), ones], [np.eye(k), ones]]),
            b_ub=np.r_[np.full(k, -self.least), np.full(k, self.greatest)],
            A_eq=np.c_[A, np.zeros(6)],
            b_eq=wrench,
            bounds=[(None, None)] * (k + 1),
            method="highs",
        )
        return float(-solution.fun)


#: Eight cables from above: the plate hangs, and gravity tautens.
SUSPENDED = Plate(
    anchors=np.array(
        [
            [x, y, 3.0 + 0.1 * z]
            for x, y, z in (
                (-2, -1.6, 0),
                (-1.7, -2, 1),
                (1.8, -2, 0),
                (2, -1.7, 1),
                (2, 1.7, 0),
                (1.6, 2, 1),
                (-1.8, 2, 0),
                (-2, 1.7, 1),
            )
        ]
    ),
    points=np.array(
        [
            (0.3, -0.25, 0.2),
            (-0.3, 0.2, -0.2),
            (-0.3, -0.25, 0.2),
            (0.25, 0.3, -0.2),
            (-0.3, 0.25, 0.2),
            (0.3, -0.2, -0.2),
            (0.3, 0.25, 0.2),
            (-0.25, -0.3, -0.2),
        ]
    ),
    mass=40.0,
    moments=np.array([1.2, 1.4, 1.9]),
    least=40.0,
    greatest=180.0,
)
#: Seven cables from above and below: they hold the plate against any wrench.
CONSTRAINED = Plate(
    anchors=np.array(
        [
            (-2, -2, 3),
            (2, -2, 3),
            (2, 2, 3),
            (-2, 2, 3),
            (-1.8, 0.3, 0),
            (1.5, -1.9, 0),
            (1.6, 1.8, 0),
        ],
        dtype=float,
    ),
    points=np.array(
        [
            (-0.1, 0.25, 0.15),
            (-0.2, -0.25, 0.2),
            (0.15, -0.2, 0.15),
            (0.2, 0.25, 0.2),
            (0.05, -0.3, -0.2),
            (0.25, 0.1, -0.2),
            (-0.25, 0.1, -0.25),
        ]
    ),
    mass=12.0,
    moments=np.array([0.5, 0.6, 0.7]),
)
