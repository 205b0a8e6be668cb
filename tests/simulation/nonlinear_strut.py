"""A cart on a rail that a telescopic strut pushes, in large motion, independent of the package.

The strut goes from the fixed point (0, 0) to the cart at (X, height). A spring between its two parts
measures the difference of the length and of the motor's position. The strut bends over its actual
length, so the equations are nonlinear. Masses are points of the two parts, whose positions are
differentiated by the coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh
from scipy.optimize import root

#: Points of each part, sines of which shapes are sums, and lengths at which they are tabulated.
POINTS, SINES, LENGTHS = 50, 40, 41
#: Step of central differences of Jacobians along the motion.
STEP = 1e-5


@dataclass(frozen=True)
class Servo:
    """A rotor on the strut's length with u = k (1 + 1/(T s)) (p (r - y) + r' - y')."""

    inertia: float
    position: float
    speed: float
    integral_time: float


@dataclass(frozen=True)
class StrutData:
    """The cart and the strut.

    Attributes:
        height: of the cart above the strut's foot, m.
        cart: its mass, kg.
        parts: lengths of the lower and the upper part, m.
        density: mass per length of each part, kg/m.
        bending: E I of each part, N m^2.
        drive: stiffness between the parts, N/m.
        gravity: m/s^2.
    """

    height: float
    cart: float
    parts: tuple[float, float]
    density: tuple[float, float]
    bending: tuple[float, float]
    drive: float
    gravity: float


class NonlinearStrut:
    """Equations of motion in the cart's position and amplitudes of bending shapes.

    Shapes are the lowest modes of the strut between its ends, as sums of sines, for each length.
    """

    def __init__(self, data: StrutData, lengths: tuple[float, float], modes: int = 3) -> None:
        """Tabulate the shapes.

        Args:
            data: the machine.
            lengths: range of the strut's length, m.
            modes: number of shapes.
        """
        self.data, self.size = data, 1 + modes
        fractions = (np.arange(POINTS) + 0.5) / POINTS
        self.near, self.far = (fractions * size for size in data.parts)
        self.masses = np.concatenate(
            [np.full(POINTS, d * s / POINTS) for d, s in zip(data.density, data.parts, strict=True)]
        )
        grid = np.linspace(*lengths, LENGTHS)
        tables = [self._modes(L, modes) for L in grid]
        for (_, before), (_, after) in pairwise(tables):
            after *= np.where(np.sum(before * after, axis=0) < 0.0, -1.0, 1.0)
        self.stiffness = CubicSpline(grid, [K for K, _ in tables])
        self.stiffness_rate = self.stiffness.derivative()
        self.shapes = CubicSpline(grid, [shapes for _, shapes in tables])
        self.shapes_rate = self.shapes.derivative()

    def _modes(self, L: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the stiffness and the values at all points of the lowest modes for a length."""
        j = np.arange(1, SINES + 1)
        s = (np.arange(4000) + 0.5) / 4000 * L
        EI = self.data.bending[0] * (s < self.data.parts[0])
        EI = EI + self.data.bending[1] * (s > L - self.data.parts[1])
        curvature = (np.pi * j / L) ** 2 * np.sin(np.pi * j * s[:, None] / L)
        K = curvature.T @ (EI[:, None] * curvature) * (L / 4000)
        # Points of the upper part are at L - far.
        place = np.concatenate([self.near, L - self.far])
        values = np.sin(np.pi * j * place[:, None] / L)
        squared, vectors = eigh(K, values.T @ (self.masses[:, None] * values))
        return np.diag(squared[:count]), values @ vectors[:, :count]

    def length(self, x: float) -> float:
        """Return the length of the strut."""
        return float(np.hypot(x, self.data.height))

    def jacobian(self, y: np.ndarray) -> np.ndarray:
        """Return the derivatives (2 p, size) of all points' positions by the coordinates."""
        X, w = y[0], y[1:]
        L = self.length(X)
        u, n = np.array([X, self.data.height]) / L, np.array([-self.data.height, X]) / L
        L_x = X / L
        u_x = (np.array([1.0, 0.0]) - L_x * u) / L
        n_x = np.array([-u_x[1], u_x[0]])
        place = np.concatenate([self.near, L - self.far])
        place_x = np.concatenate([np.zeros(POINTS), np.full(POINTS, L_x)])
        shape, shape_x = self.shapes(L), self.shapes_rate(L) * L_x
        by_x = place_x[:, None] * u + place[:, None] * u_x
        by_x = by_x + (shape_x @ w)[:, None] * n + (shape @ w)[:, None] * n_x
        by_w = shape[:, None, :] * n[:, None]
        return np.concatenate([by_x[..., None], by_w], axis=-1).reshape(-1, self.size)

    def forces(self, y: np.ndarray, motor: float) -> np.ndarray:
        """Return the forces of springs and weight on the coordinates."""
        X, w = y[0], y[1:]
        L = self.length(X)
        elastic = np.empty_like(y)
        elastic[1:] = -self.stiffness(L) @ w
        bending = 0.5 * w @ self.stiffness_rate(L) @ w
        elastic[0] = -(bending + self.data.drive * (L - motor)) * X / L
        down = np.tile([0.0, -self.data.gravity], 2 * POINTS) * np.repeat(self.masses, 2)
        return elastic + self.jacobian(y).T @ down

    def acceleration(self, y: np.ndarray, rate: np.ndarray, motor: float) -> np.ndarray:
        """Return the accelerations of the coordinates."""
        J, mass = self.jacobian(y), np.repeat(self.masses, 2)
        moved = (self.jacobian(y + STEP * rate) - self.jacobian(y - STEP * rate)) / (2.0 * STEP)
        M = J.T @ (mass[:, None] * J)
        M[0, 0] += self.data.cart
        bias = J.T @ (mass * (moved @ rate))
        return np.linalg.solve(M, self.forces(y, motor) - bias)

    def at_rest(self, motor: float, first: float) -> np.ndarray:
        """Return the coordinates in equilibrium with the motor at a length."""
        start = np.zeros(self.size)
        start[0] = first
        solution = root(lambda y: self.forces(y, motor), start, tol=1e-12)
        return np.asarray(solution.x)

    def moved(
        self, length: Callable[[float], float], first: float, times: np.ndarray
    ) -> np.ndarray:
        """Return the cart's position and the force of the strut (N, 2), with the motor's prescribed."""
        size = self.size
        start = np.concatenate([self.at_rest(length(0.0), first), np.zeros(size)])

        def rates(t: float, z: np.ndarray) -> np.ndarray:
            acceleration = self.acceleration(z[:size], z[size:], length(t))
            return np.concatenate([z[size:], acceleration])

        run = solve_ivp(rates, times[[0, -1]], start, "DOP853", t_eval=times, rtol=1e-6, atol=1e-9)
        stretch = np.hypot(run.y[0], self.data.height) - np.array([length(t) for t in times])
        return np.stack([run.y[0], self.data.drive * stretch], axis=1)

    def controlled(
        self,
        servo: Servo,
        length: Callable[[float], tuple[float, float]],
        first: float,
        times: np.ndarray,
    ) -> np.ndarray:
        """Return the cart's position, the motor's and its force (N, 3), with a controlled motor.

        Args:
            servo: rotor and gains.
            length: time -> reference of the motor's position, and its rate.
            first: position of the cart near the first equilibrium.
            times: (N,).
        """
        size = self.size
        rest = self.at_rest(length(0.0)[0], first)
        holding = -self.data.drive * (self.length(rest[0]) - length(0.0)[0])
        integral = holding / servo.speed
        start = np.concatenate([rest, [length(0.0)[0]], np.zeros(size + 1), [integral]])

        def law(t: float, z: np.ndarray) -> tuple[float, float]:
            reference, speed = length(t)
            error = servo.position * (reference - z[size]) + speed - z[2 * size + 1]
            return error, servo.speed * (error + z[-1])

        def rates(t: float, z: np.ndarray) -> np.ndarray:
            y, motor, rate = z[:size], z[size], z[size + 1 : 2 * size + 1]
            error, force = law(t, z)
            spring = self.data.drive * (self.length(y[0]) - motor)
            return np.concatenate(
                [
                    rate,
                    [z[2 * size + 1]],
                    self.acceleration(y, rate, motor),
                    [(force + spring) / servo.inertia, error / servo.integral_time],
                ]
            )

        run = solve_ivp(rates, times[[0, -1]], start, "DOP853", t_eval=times, rtol=1e-6, atol=1e-9)
        force = [law(t, z)[1] for t, z in zip(times, run.y.T, strict=True)]
        return np.stack([run.y[0], run.y[size], np.array(force)], axis=1)
