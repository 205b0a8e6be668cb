"""What all engines share: a motion comes in, loops are closed, forces are shared out among the actuators.

An engine proper supplies two things for its tree: how links move, and tree forces by its own recursive Newton-Euler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from tauloop.engines.constraints import Closure, LinkMotion, closure
from tauloop.engines.least_squares import LeastSquares, times
from tauloop.engines.motion import Motion, checked
from tauloop.engines.poses import Array, quaternion_rotation, turned_quaternion
from tauloop.engines.rigid_tree import RigidTree
from tauloop.engines.start import start_coordinates
from tauloop.errors import EngineError, Problem

#: Newton stops at the first step below this (rad, m): convergence is quadratic, so what is left is rounding.
LAST_STEP = 1e-10
MOST_STEPS = 30

#: An unknown that lies in the null space by more than this is not determined.
UNDETERMINED = 1e-6

#: Samples worked on at once: bounds the memory for Jacobians.
CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineForces:
    """Actuator forces by an engine, with what shows how far they can be trusted.

    Attributes:
        engine, version: name and version of the engine.
        actuators: names.
        forces: (N, n_u), N or N m; friction is left out.
        closure: largest residual of the loops per sample (N,), m or rad.
        closure_rate, closure_acceleration: of their first and second derivatives (N,).
        balance: largest force that neither actuators nor constraints can supply, divided by the largest tree force
            of that sample (N,). Not small when the motion needs an actuator that is not there.
    """

    engine: str
    version: str
    actuators: tuple[str, ...]
    forces: Array
    closure: Array
    closure_rate: Array
    closure_acceleration: Array
    balance: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(ABC):
    """A rigid-body engine that holds one machine.

    Balls in `link_motion` and `tree_forces` are as engines have them: quaternion (w x y z) and angular velocity of
    the link nearer the tips, the latter in that link's own axes.

    Attributes:
        tree: what was written into the engine.
        name, version: of the engine.
    """

    tree: RigidTree
    name: str
    version: str

    @abstractmethod
    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Motion of the links `tree.anchored` at coordinates (N, n_q) and velocities (N, n_v)."""

    @abstractmethod
    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Forces (N, n_v) that move the links of the tree alone, gravity included."""

    @final
    def inverse_dynamics(self, motion: Motion) -> EngineForces:
        """Actuator forces for a motion.

        Coordinates that the motion gives are taken as they are; all others (rods' angles, joints that are missing in
        it) follow from the engine's own closure by Newton, then their velocities and accelerations. Forces are the
        least squares solution of S u + Kᵀ λ = M a + h, where constraints may be redundant.

        Raises:
            InputError: the motion has unknown names, a joint in part, wrong shapes or numbers that are not finite.
            EngineError: the motion leaves coordinates undetermined, or actuators can work against each other.
        """
        given = checked(self.tree, motion)
        samples = len(next(iter(given.q.values())))
        chunks = [self._chunk(_cut_out(given, slice(i, i + CHUNK))) for i in range(0, samples, CHUNK)]
        return replace(
            chunks[0],
            forces=np.concatenate([chunk.forces for chunk in chunks]),
            closure=np.concatenate([chunk.closure for chunk in chunks]),
            closure_rate=np.concatenate([chunk.closure_rate for chunk in chunks]),
            closure_acceleration=np.concatenate([chunk.closure_acceleration for chunk in chunks]),
            balance=np.concatenate([chunk.balance for chunk in chunks]),
        )

    def _chunk(self, given: Motion) -> EngineForces:
        names = self.tree.velocity_names
        unknown = [i for i, name in enumerate(names) if name not in given.v]
        q = self._close(start_coordinates(self.tree, given.q), unknown)
        v, a = _columns(names, given.v, len(q)), _columns(names, given.a, len(q))
        K = self._closure(q, v)
        rows = LeastSquares.of(K.jacobian[:, :, unknown])
        self._require_determined(rows, unknown)
        v[:, unknown] = -rows.solve(times(K.jacobian, v))
        K = self._closure(q, v)
        a[:, unknown] = -rows.solve(times(K.jacobian, a) + K.bias)

        tau = self._forces(q, v, a)
        u, missing = self._share_out(K, tau)
        return EngineForces(
            engine=self.name,
            version=self.version,
            actuators=self.tree.loads.actuators,
            forces=u,
            closure=_largest(K.residual),
            closure_rate=_largest(times(K.jacobian, v)),
            closure_acceleration=_largest(times(K.jacobian, a) + K.bias),
            balance=_largest(missing) / np.maximum(_largest(tau), np.finfo(float).tiny),
        )

    def _close(self, q: Array, unknown: list[int]) -> Array:
        """Newton on the unknown coordinates; least squares, for there may be more rows than unknowns."""
        still = np.zeros((len(q), len(self.tree.velocity_names)))
        for _ in range(MOST_STEPS if unknown else 0):
            K = self._closure(q, still)
            step = still.copy()
            step[:, unknown] = -LeastSquares.of(K.jacobian[:, :, unknown]).solve(K.residual)
            q = self._moved(q, step)
            if np.max(np.abs(step)) < LAST_STEP:
                break
        return q

    def _moved(self, q: Array, step: Array) -> Array:
        """Coordinates after a finite displacement (N, n_v)."""
        moved = np.empty_like(q)
        for i, j in enumerate(self.tree.loads.q_index):
            if j >= 0:
                moved[:, j] = q[:, j] + step[:, i]
        for iq, iv, _ in self.tree.balls:
            moved[:, iq : iq + 4] = turned_quaternion(q[:, iq : iq + 4], step[:, iv : iv + 3])
        return moved

    def _closure(self, q: Array, v: Array) -> Closure:
        moving = self.link_motion(self._engine_q(q), self._engine_v(q, v))
        return closure(self.tree, replace(moving, jacobian=self._from_engine(q, moving.jacobian)), v)

    def _forces(self, q: Array, v: Array, a: Array) -> Array:
        """M a + h with rotors and springs (N, n_v).

        An angular acceleration of a ball turns into the engine's axes like a velocity: the rate of the rotation
        itself acts on w as w × w = 0.
        """
        loads = self.tree.loads
        local = self.tree_forces(self._engine_q(q), self._engine_v(q, v), self._engine_v(q, a))
        tau = self._from_engine(q, local[:, None, None, :])[:, 0, 0] + a @ loads.inertia
        for i, j in enumerate(loads.q_index):
            if j >= 0:
                tau[:, i] += loads.stiffness[i] * q[:, j] - loads.preload[i]
        return tau

    def _share_out(self, K: Closure, tau: Array) -> tuple[Array, Array]:
        """Actuator forces (N, n_u), and what is missing of the tree forces (N, n_v)."""
        S = self.tree.loads.transmission.T
        actuators = S.shape[1]
        size = np.linalg.norm(S, axis=0)
        size[size == 0.0] = 1.0
        drives = np.broadcast_to(S / size, (len(tau), *S.shape))
        supply = LeastSquares.of(np.concatenate([drives, np.swapaxes(K.jacobian, 1, 2)], axis=2))
        free = supply.undetermined()[:actuators]
        if np.any(free > UNDETERMINED):
            names = [name for name, x in zip(self.tree.loads.actuators, free, strict=True) if x > UNDETERMINED]
            raise EngineError(
                Problem(
                    where=f"actuators {', '.join(names)}",
                    what=f"can work against each other without moving {self.tree.name}, so their forces are not unique",
                    remedy="compare poses away from singularities, or a machine with as many actuators as freedoms",
                )
            )
        x = supply.solve(tau)
        return x[:, :actuators] / size, tau - times(supply.matrix, x)

    def _require_determined(self, rows: LeastSquares, unknown: list[int]) -> None:
        names = [self.tree.velocity_names[i] for i in unknown]
        free = [name for name, x in zip(names, rows.undetermined(), strict=True) if x > UNDETERMINED]
        if free:
            raise EngineError(
                Problem(
                    where="motion",
                    what=f"leaves {', '.join(free)} of {self.tree.name} undetermined in some samples",
                    remedy="give these joints too; of a rod's angle: keep the rod off its first axis",
                )
            )

    def _engine_q(self, q: Array) -> Array:
        """Coordinates with the quaternions of reversed balls inverted."""
        q = q.copy()
        for iq, _, is_reversed in self.tree.balls:
            if is_reversed:
                q[:, iq + 1 : iq + 4] *= -1.0
        return q

    def _engine_v(self, q: Array, v: Array) -> Array:
        """Velocities with the angular ones of balls in the moving link: Rᵀ w, or -w of a reversed one."""
        v = v.copy()
        for iq, iv, is_reversed in self.tree.balls:
            w = v[:, iv : iv + 3]
            R = quaternion_rotation(q[:, iq : iq + 4])
            v[:, iv : iv + 3] = -w if is_reversed else times(np.swapaxes(R, 1, 2), w)
        return v

    def _from_engine(self, q: Array, rows: Array) -> Array:
        """Rows (N, k, l, n_v) on the engine's velocities, as rows on the file's: the transpose of `_engine_v`."""
        rows = rows.copy()
        for iq, iv, is_reversed in self.tree.balls:
            part = rows[..., iv : iv + 3]
            R = quaternion_rotation(q[:, iq : iq + 4])
            rows[..., iv : iv + 3] = -part if is_reversed else part @ np.swapaxes(R, 1, 2)[:, None]
        return rows


def _cut_out(motion: Motion, samples: slice) -> Motion:
    return Motion(
        q={name: x[samples] for name, x in motion.q.items()},
        v={name: x[samples] for name, x in motion.v.items()},
        a={name: x[samples] for name, x in motion.a.items()},
    )


def _columns(names: tuple[str, ...], given: Mapping[str, Array], samples: int) -> Array:
    """Columns (N, n) by name; zero where not given."""
    return np.stack([given.get(name, np.zeros(samples)) for name in names], axis=1)


def _largest(x: Array) -> Array:
    return np.max(np.abs(x), axis=1, initial=0.0)
