"""Rods of full Euler-Bernoulli elements between rigid bodies, written independently of the package.

Textbook matrices (Przemieniecki 1968, eqs. 5.116 and 11.23), element by element, without reduction.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh


def bending(EI: float, rho: float, h: float) -> tuple[np.ndarray, np.ndarray]:
    """Return stiffness and consistent mass of an element for v1, v1', v2, v2'."""
    K = (
        EI
        / h**3
        * np.array(
            [
                [12, 6 * h, -12, 6 * h],
                [6 * h, 4 * h**2, -6 * h, 2 * h**2],
                [-12, -6 * h, 12, -6 * h],
                [6 * h, 2 * h**2, -6 * h, 4 * h**2],
            ]
        )
    )
    M = (
        rho
        * h
        / 420
        * np.array(
            [
                [156, 22 * h, 54, -13 * h],
                [22 * h, 4 * h**2, 13 * h, -3 * h**2],
                [54, 13 * h, 156, -22 * h],
                [-13 * h, -3 * h**2, -22 * h, 4 * h**2],
            ]
        )
    )
    return K, M


def rod(
    EA: float, EI: float, rho: float, length: float, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return stiffness and mass of a rod with ball ends.

    The first six coordinates are u, v, w of the start and of the end; the others are inside.
    """
    n, h = count + 1, length / count
    size = 5 * n
    K, M = np.zeros((size, size)), np.zeros((size, size))
    for i in range(count):
        u = [i, i + 1]
        K[np.ix_(u, u)] += EA / h * np.array([[1, -1], [-1, 1]])
        M[np.ix_(u, u)] += rho * h / 6 * np.array([[2, 1], [1, 2]])
        for first in (n, 3 * n):
            v = [first + 2 * i + j for j in range(4)]
            k, m = bending(EI, rho, h)
            K[np.ix_(v, v)] += k
            M[np.ix_(v, v)] += m
    ends = [0, n, 3 * n, n - 1, 3 * n - 2, 5 * n - 2]
    order = ends + [i for i in range(size) if i not in ends]
    return K[np.ix_(order, order)], M[np.ix_(order, order)]


def cross_matrix(r: np.ndarray) -> np.ndarray:
    """Return the matrix S with S x = r × x."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


class SlidingTruss:
    """A rigid plate (6 freedoms) on rods from sliders along x (1 freedom each) with drive springs."""

    def __init__(
        self,
        *,
        rods: list[tuple[int, np.ndarray, np.ndarray, float, float, float]],
        sliders: list[tuple[float, float]],
        plate: np.ndarray,
        count: int,
    ) -> None:
        """Assemble stiffness and mass.

        Args:
            rods: slider, start, end (base frame), EA, EI and mass per length of each.
            sliders: mass and drive stiffness of each.
            plate: (6, 6) inertia about the base frame's origin.
            count: elements of each rod.
        """
        few = 6 + len(sliders)
        inside = 5 * (count + 1) - 6
        size = few + inside * len(rods)
        self.K, self.M = np.zeros((size, size)), np.zeros((size, size))
        self.M[:6, :6] = plate
        for i, (mass, stiffness) in enumerate(sliders):
            self.M[6 + i, 6 + i] = mass
            self.K[6 + i, 6 + i] = stiffness
        for i, (slider, start, end, EA, EI, rho) in enumerate(rods):
            length = float(np.linalg.norm(end - start))
            x = (end - start) / length
            y = np.linalg.svd(x[None])[2][1]
            R = np.stack([x, y, np.cross(x, y)])
            k, m = rod(EA, EI, rho, length, count)
            T = np.zeros((len(k), size))
            T[:3, 6 + slider] = R[:, 0]
            T[3:6, :3] = R
            T[3:6, 3:6] = -R @ cross_matrix(end)
            T[6 + np.arange(inside), few + inside * i + np.arange(inside)] = 1.0
            self.K += T.T @ k @ T
            self.M += T.T @ m @ T

    def compliance(self, point: np.ndarray) -> np.ndarray:
        """Return the compliance (6, 6) of the plate at a point."""
        J = np.zeros((6, len(self.K)))
        J[:3, :3] = J[3:, 3:6] = np.eye(3)
        J[:3, 3:6] = -cross_matrix(point)
        return J @ np.linalg.solve(self.K, J.T)

    def modes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return frequencies (Hz), and twists of the plate and motions of the sliders (n, count)."""
        values, shapes = eigh(self.K, self.M, subset_by_index=[0, count - 1])
        return np.sqrt(values) / (2 * np.pi), shapes
