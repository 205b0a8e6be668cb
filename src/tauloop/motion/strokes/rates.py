"""Velocities and accelerations from derivatives of the positions of platform or actuators.

Derivatives of quaternions become angular velocities.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.equations.ports import ACTUATORS
from tauloop.model import Model, Motion
from tauloop.motion.paths.curves import quaternion_product

#: Condition number above which components of a quaternion do not determine the angular velocity.
SINGULAR_MAP = 1e9


def entry_rates(
    model: Model,
    functions: Motion,
    position: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    q: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities and accelerations from the time derivatives of positions.

    A unit quaternion p satisfies p' = (0, w) p / 2 with the angular velocity w in the base frame,
    so (0, w) = 2 p' p*, and w' is the vector part of 2 p'' p*.

    Args:
        model: the machine.
        functions: functions that take the positions: `model.platform` or `model.actuators`.
        position, first, second: positions and two derivatives (N, n_position).
        q: start values of all coordinates at these positions (N, n_q).

    Returns:
        Velocities and accelerations (N, n_velocity).

    Raises:
        PoseError: some components of a rotation are given, and they do not determine it.
    """
    ports, shape = functions.ports, model.topology
    if ports.entry is ACTUATORS:
        return first, second
    velocity, acceleration = (np.zeros((len(position), len(ports.v))) for _ in range(2))
    for column, iv in enumerate(ports.v):
        if shape.q_of_v[iv] >= 0:
            k = ports.q.index(shape.q_of_v[iv])
            velocity[:, column], acceleration[:, column] = first[:, k], second[:, k]
    for q0, v0 in shape.quaternions:
        turning = [column for column, iv in enumerate(ports.v) if v0 <= iv < v0 + 3]
        columns = [k for k, iq in enumerate(ports.q) if q0 <= iq < q0 + 4]
        if len(turning) == 3:
            inverse = position[:, columns] * np.array([1.0, -1.0, -1.0, -1.0])
            velocity[:, turning] = 2 * quaternion_product(first[:, columns], inverse)[:, 1:]
            acceleration[:, turning] = 2 * quaternion_product(second[:, columns], inverse)[:, 1:]
        elif turning:
            rates = _PartOfRotation(model, functions, position, q, q0, v0, turning, columns)
            velocity[:, turning] = rates.velocity(velocity, first[:, columns])
            acceleration[:, turning] = rates.acceleration(
                velocity, acceleration, second[:, columns]
            )
    return velocity, acceleration


class _PartOfRotation:
    """Rates of a quaternion of which some components are given and loops determine the others.

    p' = E(p) w / 2 with w = G v_given, and w' = G a_given + gamma, where gamma is w' at a_given =
    0. The given rows of E G / 2 are split into the columns of the unknown angular velocities and of
    the known velocities, and solved for the former.
    """

    def __init__(
        self,
        model: Model,
        functions: Motion,
        position: np.ndarray,
        q: np.ndarray,
        q0: int,
        v0: int,
        turning: list[int],
        columns: list[int],
    ) -> None:
        q = functions.kinematics(position, start=q).q
        self.functions, self.position, self.q = functions, position, q
        self.turning, self.w = turning, slice(v0, v0 + 3)
        self.components = [functions.ports.q[k] - q0 for k in columns]
        self.quaternion = q[:, q0 : q0 + 4]
        G = functions.embedding(position, start=q)[:, self.w]
        self.map = self._rows(self.quaternion) @ G
        self.others = [c for c in range(G.shape[2]) if c not in turning]

    def _rows(self, quaternion: np.ndarray) -> np.ndarray:
        """Return the rows of E / 2 for the given components (N, rows, 3), with p' = E w / 2."""
        w, x, y, z = quaternion.T
        E = np.stack([-x, -y, -z, w, z, -y, -z, w, x, y, -x, w], axis=-1).reshape(-1, 4, 3)
        return np.asarray(0.5 * E[:, self.components])

    def velocity(self, velocity: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Return the angular velocities (N, n) from the rates of the given components."""
        known = np.einsum("nij,nj->ni", self.map[:, :, self.others], velocity[:, self.others])
        return self._solved(first - known)

    def acceleration(
        self, velocity: np.ndarray, acceleration: np.ndarray, second: np.ndarray
    ) -> np.ndarray:
        """Return angular accelerations (N, n) from second derivatives of the components."""
        still = self.functions.kinematics(
            self.position, velocity, np.zeros_like(velocity), start=self.q
        )
        w, g = np.asarray(still.v)[:, self.w], np.asarray(still.a)[:, self.w]
        rate = 0.5 * quaternion_product(
            np.concatenate([np.zeros((len(w), 1)), w], axis=1), self.quaternion
        )
        bias = np.einsum("nij,nj->ni", self._rows(rate), w) + np.einsum(
            "nij,nj->ni", self._rows(self.quaternion), g
        )
        known = np.einsum("nij,nj->ni", self.map[:, :, self.others], acceleration[:, self.others])
        return self._solved(second - bias - known)

    def _solved(self, right: np.ndarray) -> np.ndarray:
        condition = float(np.linalg.cond(self.map[:, :, self.turning]).max(initial=1.0))
        if condition > SINGULAR_MAP:
            what = f"the given components do not determine the rotation: condition number {condition:.3g}"
            raise PoseError.of("platform", what, "rotate the platform less")
        return np.linalg.solve(self.map[:, :, self.turning], right[:, :, None])[:, :, 0]
