"""A planar four-bar of elastic bars in large motion, written independently of the package.

Point masses are joined by corotational beam elements, whose deformation is measured in axes that
follow each element (Crisfield 1991, Non-linear finite element analysis, section 7.3): strains are
small, rotations are not. All bars are pinned to each other; the crank's root rotates as prescribed.
Velocity Verlet integrates; nothing is linearized, reduced or damped.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.optimize import root

#: Rotary inertia of a node, as a fraction of its mass times the square of an element: small
#: enough to change no frequency by more than 0.1 %, and large enough for the time step.
NODE_INERTIA = 0.01


class NonlinearFourBar:
    """Nodes (x, y) of three bars, and an angle of each bar at each of its nodes."""

    def __init__(
        self,
        corners: np.ndarray,
        counts: tuple[int, int, int],
        stiffness: tuple[float, float],
        mass: float,
        gravity: float,
    ) -> None:
        """Divide the bars.

        Args:
            corners: (4, 2) crank root, crank tip, rocker tip, rocker root, m.
            counts: elements of crank, coupler and rocker.
            stiffness: E A and E I.
            mass: per length, kg/m.
            gravity: along -y, m/s^2.
        """
        self.EA, self.EI = stiffness
        ends = [(0, 1), (1, 2), (3, 2)]
        points, pairs, angles = list(corners), [], []
        first_angle, directions = 0, []
        for (start, end), count in zip(ends, counts, strict=True):
            inner = [len(points) + i for i in range(count - 1)]
            chain = [start, *inner, end]
            points += [
                corners[start] + (corners[end] - corners[start]) * (i + 1) / count
                for i in range(count - 1)
            ]
            pairs += list(pairwise(chain))
            angles += [(first_angle + i, first_angle + i + 1) for i in range(count)]
            first_angle += count + 1
            line = corners[end] - corners[start]
            directions += [np.arctan2(line[1], line[0])] * (count + 1)
        self.points, self.pairs = np.array(points), np.array(pairs)
        self.angles, self.start_angles = np.array(angles), np.array(directions)
        self.lengths = np.linalg.norm(
            self.points[self.pairs[:, 1]] - self.points[self.pairs[:, 0]], axis=1
        )
        self.nodes = len(self.points)
        self.size = 2 * self.nodes + first_angle
        self.masses = np.zeros(self.size)
        for (a, b), (i, j), length in zip(self.pairs, self.angles, self.lengths, strict=True):
            half = 0.5 * mass * length
            for node, angle in ((a, i), (b, j)):
                self.masses[2 * node : 2 * node + 2] += half
                self.masses[2 * self.nodes + angle] += NODE_INERTIA * half * length**2
        self.weight = np.zeros(self.size)
        self.weight[1 : 2 * self.nodes : 2] = -gravity * self.masses[1 : 2 * self.nodes : 2]
        roots = [0, 1, 6, 7, 2 * self.nodes]
        self.free = np.setdiff1d(np.arange(self.size), roots)
        self.reference = np.concatenate([self.points.ravel(), self.start_angles])
        # The angle of the coupler at the tip of the crank.
        self.coupler = 2 * self.nodes + counts[0] + 1

    def force(self, q: np.ndarray) -> np.ndarray:
        """Return elastic forces and weight on all coordinates."""
        xy, theta = q[: 2 * self.nodes].reshape(-1, 2), q[2 * self.nodes :]
        d = xy[self.pairs[:, 1]] - xy[self.pairs[:, 0]]
        length = np.sqrt((d * d).sum(axis=1))
        direction = np.arctan2(d[:, 1], d[:, 0])
        relative = theta[self.angles] - direction[:, None]
        relative = (relative + np.pi) % (2.0 * np.pi) - np.pi
        normal = self.EA * (length - self.lengths) / self.lengths
        bend = 2.0 * self.EI / self.lengths
        first = bend * (2.0 * relative[:, 0] + relative[:, 1])
        second = bend * (relative[:, 0] + 2.0 * relative[:, 1])
        shear = (first + second) / length
        along = d / length[:, None]
        across = np.stack([-along[:, 1], along[:, 0]], axis=1)
        pull = normal[:, None] * along - shear[:, None] * across
        f = self.weight.copy()
        on_nodes = np.zeros((self.nodes, 2))
        np.add.at(on_nodes, self.pairs[:, 0], pull)
        np.add.at(on_nodes, self.pairs[:, 1], -pull)
        f[: 2 * self.nodes] += on_nodes.ravel()
        np.add.at(f, 2 * self.nodes + self.angles[:, 0], -first)
        np.add.at(f, 2 * self.nodes + self.angles[:, 1], -second)
        return f

    def equilibrium(self) -> np.ndarray:
        """Return all coordinates at rest under the weight."""

        def residual(x: np.ndarray) -> np.ndarray:
            q = self.reference.copy()
            q[self.free] = x
            return self.force(q)[self.free]

        q = self.reference.copy()
        q[self.free] = root(residual, q[self.free], tol=1e-12).x
        return q

    def moved(
        self, angle: Callable[[np.ndarray], np.ndarray], duration: float, step: float, every: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return times, and a pose (N, 3), while the crank's root rotates.

        The pose is that of the coupler's end at the tip of the crank: x, y and its angle.

        Args:
            angle: times (N,) -> angle (N,), rad.
            duration: s.
            step: time step, s.
            every: steps between two of the results.
        """
        count = round(duration / step)
        time = np.arange(count + 1) * step
        prescribed, crank = angle(time), 2 * self.nodes
        q, v = self.equilibrium(), np.zeros(self.size)
        inverse = np.zeros(self.size)
        inverse[self.free] = 1.0 / self.masses[self.free]
        a = inverse * self.force(q)
        poses = []
        for i in range(count + 1):
            if i % every == 0:
                poses.append([q[2], q[3], q[self.coupler]])
            if i == count:
                break
            v += 0.5 * step * a
            q += step * v
            q[crank] = prescribed[i + 1]
            a = inverse * self.force(q)
            v += 0.5 * step * a
        return time[::every], np.array(poses)
