"""Velocities and accelerations from time derivatives of positions of the platform or actuators.

Derivatives of quaternions are converted to angular velocities and accelerations.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError
from tauloop.equations.ports import ACTUATORS
from tauloop.model import Model, Motion
from tauloop.motion.paths.curves import quaternion_product

#: Condition number above which an incomplete set of quaternion components is treated as not
#: determining the angular velocity.
MAX_QUATERNION_CONDITION = 1e9


def velocities_from_position_rates(
    model: Model,
    motion: Motion,
    position: np.ndarray,
    position_rate: np.ndarray,
    position_acceleration: np.ndarray,
    q: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return velocities and accelerations from the time derivatives of positions.

    A unit quaternion p with the conjugate p* satisfies p' = (0, w) p / 2 with the angular velocity w
    in the base frame. Therefore (0, w) = 2 p' p*, and w' is the vector part of 2 p'' p*.

    Args:
        model: the machine.
        motion: motion whose inputs are the positions: `model.platform` or `model.actuators`.
        position: positions (N, n_position).
        position_rate, position_acceleration: first and second time derivatives of the positions.
        q: start values of all coordinates at these positions (N, n_q).

    Returns:
        Velocities and accelerations (N, n_velocity).

    Raises:
        PoseError: only some components of a quaternion are given, and they do not determine the
            angular velocity.
    """
    ports = motion.ports
    topology = model.topology
    if ports.entry is ACTUATORS:
        return position_rate, position_acceleration
    velocity = np.zeros((len(position), len(ports.v)))
    acceleration = np.zeros((len(position), len(ports.v)))
    for column, iv in enumerate(ports.v):
        if topology.q_of_v[iv] >= 0:
            k = ports.q.index(topology.q_of_v[iv])
            velocity[:, column] = position_rate[:, k]
            acceleration[:, column] = position_acceleration[:, k]
    for q0, v0 in topology.quaternions:
        angular = [column for column, iv in enumerate(ports.v) if v0 <= iv < v0 + 3]
        columns = [k for k, iq in enumerate(ports.q) if q0 <= iq < q0 + 4]
        if len(angular) == 3:
            conjugate = position[:, columns] * np.array([1.0, -1.0, -1.0, -1.0])
            p_rate = position_rate[:, columns]
            p_acceleration = position_acceleration[:, columns]
            velocity[:, angular] = 2 * quaternion_product(p_rate, conjugate)[:, 1:]
            acceleration[:, angular] = 2 * quaternion_product(p_acceleration, conjugate)[:, 1:]
        elif angular:
            rotation = _PartiallyGivenRotation(model, motion, position, q, q0, v0, angular, columns)
            velocity[:, angular] = rotation.velocity(velocity, position_rate[:, columns])
            acceleration[:, angular] = rotation.acceleration(
                velocity, acceleration, position_acceleration[:, columns]
            )
    return velocity, acceleration


class _PartiallyGivenRotation:
    """Angular velocity of a rotation whose quaternion is only partly given.

    The loops determine the other components. The quaternion p satisfies p' = E(p) w / 2. The angular
    velocity is w = G v, where v are the independent velocities (`motion.ports.v`) and G is the
    embedding. The angular acceleration is w' = G v' + gamma, where gamma is w' at v' = 0. The rows of
    E G / 2 for the given components are solved for the unknown angular components of v.
    """

    def __init__(
        self,
        model: Model,
        motion: Motion,
        position: np.ndarray,
        q: np.ndarray,
        q0: int,
        v0: int,
        angular: list[int],
        columns: list[int],
    ) -> None:
        q = motion.kinematics(position, start=q).q
        self.motion = motion
        self.position = position
        self.q = q
        #: Columns of the unknown angular velocities among the independent velocities.
        self.angular = angular
        #: Indices of the angular velocity w among all velocities.
        self.w = slice(v0, v0 + 3)
        #: Indices of the given components in the quaternion.
        self.components = [motion.ports.q[k] - q0 for k in columns]
        self.quaternion = q[:, q0 : q0 + 4]
        G = motion.embedding(position, start=q)[:, self.w]
        self.map = self._rows(self.quaternion) @ G
        self.others = [c for c in range(G.shape[2]) if c not in angular]

    def _rows(self, quaternion: np.ndarray) -> np.ndarray:
        """Return the rows of E / 2 for the given components (N, rows, 3), with p' = E w / 2."""
        w, x, y, z = quaternion.T
        E = np.stack([-x, -y, -z, w, z, -y, -z, w, x, y, -x, w], axis=-1).reshape(-1, 4, 3)
        return np.asarray(0.5 * E[:, self.components])

    def velocity(self, velocity: np.ndarray, component_rate: np.ndarray) -> np.ndarray:
        """Return the angular velocities (N, n) from the derivatives of the given components."""
        known = np.einsum("nij,nj->ni", self.map[:, :, self.others], velocity[:, self.others])
        return self._solve(component_rate - known)

    def acceleration(
        self, velocity: np.ndarray, acceleration: np.ndarray, component_acceleration: np.ndarray
    ) -> np.ndarray:
        """Return angular accelerations (N, n) from second derivatives of the components."""
        without_acceleration = self.motion.kinematics(
            self.position, velocity, np.zeros_like(velocity), start=self.q
        )
        w = np.asarray(without_acceleration.v)[:, self.w]
        gamma = np.asarray(without_acceleration.a)[:, self.w]
        quaternion_w = np.concatenate([np.zeros((len(w), 1)), w], axis=1)
        derivative = 0.5 * quaternion_product(quaternion_w, self.quaternion)
        bias = np.einsum("nij,nj->ni", self._rows(derivative), w)
        bias += np.einsum("nij,nj->ni", self._rows(self.quaternion), gamma)
        known = np.einsum("nij,nj->ni", self.map[:, :, self.others], acceleration[:, self.others])
        return self._solve(component_acceleration - bias - known)

    def _solve(self, rhs: np.ndarray) -> np.ndarray:
        """Return the unknown angular components (N, n) for right-hand sides (N, rows).

        Raises:
            PoseError: the given components do not determine the rotation.
        """
        matrix = self.map[:, :, self.angular]
        condition = float(np.linalg.cond(matrix).max(initial=1.0))
        if condition > MAX_QUATERNION_CONDITION:
            what = (
                "the given components do not determine the rotation: condition number "
                f"{condition:.3g}"
            )
            raise PoseError.of(
                "platform",
                what,
                "give all four components of the quaternion, or stay closer to the reference orientation",
            )
        return np.linalg.solve(matrix, rhs[:, :, None])[:, :, 0]
