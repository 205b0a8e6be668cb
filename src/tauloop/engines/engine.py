"""What all engines share: a motion comes in, loops are closed, forces are shared out among the actuators.

An engine proper supplies two things for its tree: how links move, and tree forces by its own recursive Newton-Euler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from tauloop.engines.constraints import Closure, LinkMotion, closure
from tauloop.engines.motion import Motion, checked
from tauloop.engines.poses import Array, quaternion_rotation, turned, turned_quaternion
from tauloop.engines.rigid_tree import RigidTree
from tauloop.engines.start import start_coordinates
from tauloop.errors import EngineError, Problem

#: Singular values below this share of the largest count as zero: far above rounding, far below machines in use.
RANK_TOLERANCE = 1e-9

#: Newton stops at the first step below this (rad, m); convergence is quadratic, so what is left is rounding.
LAST_STEP = 1e-10
MOST_STEPS = 30

#: Share of a direction in the null space from which on an unknown counts as undetermined.
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
        closure_rate, closure_acceleration: of K v and K a + bias (N,), SI.
        balance: largest force on a coordinate that neither actuators nor constraints can supply, divided by the
            largest tree force of that sample (N,). Not small when the motion needs an actuator that is not there.
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

    Attributes:
        tree: what was written into the engine.
        name, version: of the engine.
    """

    tree: RigidTree
    name: str
    version: str

    @abstractmethod
    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Motion of the links `tree.anchored` at coordinates (N, n_q) and velocities (N, n_v).

        Balls here are as most engines have them: quaternion and angular velocity of the link nearer the tips, the
        latter in that link's own axes.
        """

    @abstractmethod
    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Forces (N, n_v) that move the links of the tree alone, gravity included; balls as in `link_motion`."""

    @final
    def inverse_dynamics(self, motion: Motion) -> EngineForces:
        """Actuator forces for a motion.

        Coordinates that the motion gives are taken as they are; all others (rods' angles, joints that Tauloop cut)
        follow from the engine's own closure by Newton, then their velocities and accelerations. Forces are the least
        squares solution of S u + Kᵀ λ = M a + h, where constraints may be redundant.

        Raises:
            InputError: the motion has unknown names, a joint in part, wrong shapes or numbers that are not finite.
            EngineError: the motion leaves coordinates undetermined, or actuators can work against each other.
        """
        given = checked(self.tree, motion)
        samples = given.samples
        parts = [
            self._chunk(
                {name: x[i : i + CHUNK] for name, x in given.q.items()},
                {name: x[i : i + CHUNK] for name, x in given.v.items()},
                {name: x[i : i + CHUNK] for name, x in given.a.items()},
            )
            for i in range(0, samples, CHUNK)
        ]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return EngineForces(
            engine=self.name,
            version=self.version,
            actuators=self.tree.loads.actuators,
            forces=columns[0],
            closure=columns[1],
            closure_rate=columns[2],
            closure_acceleration=columns[3],
            balance=columns[4],
        )

    def _chunk(
        self, given_q: dict[str, Array], given_v: dict[str, Array], given_a: dict[str, Array]
    ) -> tuple[Array, Array, Array, Array, Array]:
        names = self.tree.velocity_names
        samples = len(next(iter(given_q.values())))
        unknown = np.array([i for i, name in enumerate(names) if name not in given_v], dtype=int)
        q, K = self._close(start_coordinates(self.tree, given_q, samples), unknown)
        solve = _Inverse.of(K.jacobian[:, :, unknown])
        self._require_determined(solve, unknown)

        v, a = np.zeros((samples, len(names))), np.zeros((samples, len(names)))
        for i, name in enumerate(names):
            if name in given_v:
                v[:, i], a[:, i] = given_v[name], given_a[name]
        v[:, unknown] = -solve(turned(K.jacobian, v))
        K = self._closure(q, v)
        a[:, unknown] = -solve(turned(K.jacobian, a) + K.bias)

        tau = self._forces(q, v, a)
        S = self.tree.loads.transmission.T
        u, missing = self._share_out(np.concatenate([np.broadcast_to(S, (samples, *S.shape)), _transposed(K.jacobian)], -1), tau)
        return (
            u,
            _largest(K.residual),
            _largest(turned(K.jacobian, v)),
            _largest(turned(K.jacobian, a) + K.bias),
            _largest(missing) / np.maximum(_largest(tau), np.finfo(float).tiny),
        )

    def _close(self, q: Array, unknown: np.ndarray) -> tuple[Array, Closure]:
        """Newton on the unknown coordinates, least squares where there are more rows than unknowns."""
        still = np.zeros((len(q), len(self.tree.velocity_names)))
        K = self._closure(q, still)
        for _ in range(MOST_STEPS if len(unknown) else 0):
            step = still.copy()
            step[:, unknown] = -_Inverse.of(K.jacobian[:, :, unknown])(K.residual)
            q = self._moved(q, step)
            K = self._closure(q, still)
            if np.max(np.abs(step)) < LAST_STEP:
                break
        return q, K
