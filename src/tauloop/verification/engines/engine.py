"""Base class of all engines: motions, loop closures, and distribution of forces to actuators.

A derived class supplies three functions of its tree: the motion of links, tree forces from the
engine's recursive Newton-Euler algorithm, and mass matrices from its composite-rigid-body
algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import EngineError, InputError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.poses import Array, quaternion_rotation, turned_quaternion
from tauloop.verification.engines.least_squares import LeastSquares, times
from tauloop.verification.engines.motion import NamedMotion, checked_motion
from tauloop.verification.engines.results import (
    EngineAccelerations,
    EngineForces,
    EngineVelocities,
    Residuals,
    TreeStates,
)
from tauloop.verification.engines.trees.constraints import (
    ConstraintRows,
    LinkMotion,
    anchored_frames,
    concatenated_rows,
    constraint_rows,
    gear_rows,
)
from tauloop.verification.engines.trees.rigid_tree import RigidTree
from tauloop.verification.engines.trees.start import start_coordinates

#: Newton stops at the first step below this value (rad, m). Convergence is quadratic, so that only
#: rounding errors remain.
START_STEP_TOLERANCE = 1e-10
#: Maximum number of Newton steps.
MAX_STEPS = 30

#: An unknown is undetermined if its projection on the null space is larger than this value.
NULL_SPACE_TOLERANCE = 1e-6

#: Condition number of the projected mass matrix above which a degree of freedom has no inertia.
#: Links of very different sizes stay below 1e8.
MAX_POSE_CONDITION = 1e13

#: Outputs of an engine from which its values are computed (RNEA is the recursive Newton-Euler
#: algorithm); this module closes the loops.
BY_FORCES = "RNEA"
BY_MASS_MATRIX = "mass matrix"
BY_JACOBIANS = "Jacobians"
#: Remedy if an engine's constraint solver cannot serve as a reference.
NO_ACTION_NEEDED = (
    "no action needed: the rows without 'own solver' compare this machine with the engine"
)

#: Number of samples that are computed together, which limits the memory for Jacobians.
ENGINE_CHUNK = 256

#: A result of a chunk of a motion.
Part = TypeVar("Part", bound=Any)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(ReprMixin, ABC):
    """A rigid-body engine with the model of a machine.

    In `link_motion` and `tree_forces`, ball joints use the engines' convention: the quaternion
    (w x y z) and the angular velocity of the outer link, the latter in the axes of this link.

    Attributes:
        tree: the rigid tree from which the engine's model was built.
        name: name of the engine.
        version: version of the engine.
        library: Python module of the engine.
        model: model of the machine in the engine, with a joint for each moving link.
        q_order: indices of the tree's coordinates in the model.
        v_order: indices of the tree's velocities in the model.
    """

    tree: RigidTree
    name: str
    version: str
    library: Any
    model: Any
    q_order: Array
    v_order: Array

    @abstractmethod
    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Return the motion of the links `tree.anchored` at (N, n_q) and (N, n_v)."""

    @abstractmethod
    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Return the forces (N, n_v) that move the links of the tree, including gravity."""

    @abstractmethod
    def mass_matrix(self, q: Array) -> Array:
        """Return the mass matrices (N, n_v, n_v) of the tree's links at coordinates (N, n_q)."""

    @final
    def states(self, motion: NamedMotion) -> TreeStates:
        """Return the tree's states for a motion of the machine.

        Coordinates in the motion are not changed. All other coordinates (angles of rods, joints
        that are missing in the motion) follow from the engine's loop closure by Newton's method;
        their velocities and accelerations follow from its derivatives.

        Raises:
            InputError: the motion has unknown names, incomplete joints, wrong shapes or values that
                are not finite.
            EngineError: the motion leaves coordinates undetermined.
        """
        return _joined([self._states(part) for part in _parts(checked_motion(self.tree, motion))])

    @final
    def inverse_dynamics(self, motion: NamedMotion) -> EngineForces:
        """Return the actuator forces u for a motion by least squares: S u + Kᵀ λ = M a + h.

        S maps actuator forces to forces on the tree's velocities, K is the Jacobian of the
        constraints with multipliers λ, M is the mass matrix, and h holds all forces at zero
        acceleration. Constraints may be redundant. Redundant actuators share forces with the
        smallest sum of squares. Missing coordinates follow from the loops, as in `states`.

        Raises:
            InputError: see `states`.
            EngineError: see `states`; or actuators can work against each other.
        """
        return _joined(
            [
                self._inverse(self._states(part))
                for part in _parts(checked_motion(self.tree, motion))
            ]
        )

    @final
    def forward_dynamics(
        self, motion: NamedMotion, forces: Array, wrench: Array | None = None
    ) -> EngineAccelerations:
        """Return the tree's accelerations for actuator forces.

        The accelerations a follow from M a + h = S u + Jᵀ w + Kᵀ λ with K a + bias = 0 (symbols as
        in `inverse_dynamics`; J is the Jacobian of the tool center point, w the wrench). With the
        projector P on the null space of K and the minimum-norm solution a_0, a = a_0 + P y and
        P M P y = P (S u - h - M a_0). Constraints may therefore be redundant and links massless,
        without any regularization.

        Args:
            motion: positions and velocities; its accelerations have no effect.
            forces: (N, n_u) in the order of the actuators, N or N m.
            wrench: w (6,), force and moment at the tool center point in the base frame, N and N m;
                None for no wrench.

        Raises:
            InputError: see `states`; or forces have the wrong shape.
            EngineError: see `states`; or the tree has a motion without inertia.
        """
        parts = list(_parts(checked_motion(self.tree, motion)))
        force_parts = np.split(
            self._checked_forces(parts, forces), np.cumsum([_samples(part) for part in parts])[:-1]
        )
        return _joined(
            [
                self._forward(self._states(part), u, wrench)
                for part, u in zip(parts, force_parts, strict=True)
            ]
        )

    @final
    def velocities(self, motion: NamedMotion, independent: tuple[str, ...]) -> EngineVelocities:
        """Return the velocities of tree and actuators per independent velocity.

        The velocities of the tree are G times the independent velocities, with K G = 0 and the
        Jacobian K of the constraints.

        Args:
            motion: positions; its velocities and accelerations have no effect.
            independent: names of m velocities, where m is the mobility of the machine.

        Raises:
            InputError: see `states`.
            EngineError: see `states`; or an independent velocity is not in the tree, or the
                independent velocities leave others undetermined.
        """
        missing = [name for name in independent if name not in self.tree.velocity_names]
        if missing:
            what = f"are not velocities of the tree, because {self.name} cuts these joints"
            remedy = "choose independent coordinates of joints that are in the tree"
            raise EngineError.of(", ".join(missing), what, remedy)
        parts = _parts(checked_motion(self.tree, motion))
        return _joined([self._velocities(self._states(part), independent) for part in parts])

    @final
    def own(self, states: TreeStates) -> tuple[Array, Array, Array]:
        """Return coordinates, velocities and accelerations in the engine's convention.

        They are the arguments of `link_motion` and `tree_forces`.
        """
        q = states.q
        return self._engine_q(q), self._engine_v(q, states.v), self._engine_v(q, states.a)

    @final
    def file_forces(self, states: TreeStates, tau: Array) -> Array:
        """Return forces (N, n_v) on the engine's velocities as forces on the file's velocities.

        The map is orthogonal, so accelerations are mapped in the same way.
        """
        return self._from_engine(states.q, tau[:, None, None, :])[:, 0, 0]

    @final
    def whole_mass_matrix(self, states: TreeStates) -> Array:
        """Return the mass matrices (N, n_v, n_v) with rotors, in the machine file's velocities.

        The result is Tᵀ M T + R with the inertia R of rotors and M from `mass_matrix`.
        """
        half = self._from_engine(
            states.q, self.mass_matrix(self._engine_q(states.q))[:, :, None, :]
        )
        M = self._from_engine(states.q, np.swapaxes(half, 1, 3))[:, :, 0]
        return M + self.tree.loads.inertia

    def _states(self, motion: NamedMotion) -> TreeStates:
        """Return the tree's states for a chunk of a motion; see `states`."""
        names = self.tree.velocity_names
        unknown = [i for i, name in enumerate(names) if name not in motion.v]
        q = self._close(start_coordinates(self.tree, motion.q), unknown)
        v = _columns(names, motion.v, len(q))
        a = _columns(names, motion.a, len(q))
        K = self._closure(q, v).jacobian
        unknown_columns = LeastSquares.of(K[:, :, unknown])
        self._require_determined(unknown_columns, [names[i] for i in unknown])
        v[:, unknown] = -unknown_columns.solve(times(K, v))
        # The bias depends on the velocities; the Jacobian does not.
        rows = self._closure(q, v)
        K = rows.jacobian
        a[:, unknown] = -unknown_columns.solve(times(K, a) + rows.bias)
        residuals = Residuals(
            closure=_largest(rows.residual),
            closure_rate=_largest(times(K, v)),
            closure_acceleration=_largest(times(K, a) + rows.bias),
        )
        return TreeStates(
            names=names, q=q, v=v, a=a, jacobian=K, bias=rows.bias, residuals=residuals
        )

    def _inverse(self, states: TreeStates) -> EngineForces:
        """Return the actuator forces for states; see `inverse_dynamics`."""
        tau = self._forces(states.q, states.v, states.a)
        u, imbalance = self._distribute(states.jacobian, tau)
        return EngineForces(
            actuators=self.tree.loads.actuators,
            forces=u,
            residuals=states.residuals,
            balance=_largest(imbalance) / np.maximum(_largest(tau), np.finfo(float).tiny),
            method=BY_FORCES,
        )

    @final
    def tool_forces(self, states: TreeStates, wrench: Array | None) -> Array:
        """Return the generalized forces Jᵀ w (N, n_v) of a wrench (6,) at the tool center point."""
        if wrench is None:
            return np.zeros_like(states.v)
        links = self._link_motion(states.q, states.v)
        J = anchored_frames(self.tree, links, [self.tree.tool], states.v).jacobian[:, 0]
        return np.asarray(np.swapaxes(J, 1, 2) @ np.asarray(wrench, dtype=float))

    def _forward(self, states: TreeStates, u: Array, wrench: Array | None) -> EngineAccelerations:
        """Return the accelerations for actuator forces; see `forward_dynamics`."""
        M = self.whole_mass_matrix(states)
        K = LeastSquares.of(states.jacobian)
        P = K.null
        applied = u @ self.tree.loads.transmission + self.tool_forces(states, wrench)
        net = applied - self._forces(states.q, states.v, np.zeros_like(states.v))
        a_0 = K.solve(-states.bias)
        right = times(P, net - times(M, a_0))
        weight = np.trace(M, axis1=1, axis2=2)[:, None, None] / M.shape[1]
        A = P @ M @ P + weight * (np.eye(M.shape[1]) - P)
        if np.max(np.linalg.cond(A)) > MAX_POSE_CONDITION:
            what = "has a motion without inertia, so that its accelerations are not unique"
            raise EngineError.of(self.tree.name, what, "give each moving part a mass")
        a = a_0 + times(P, np.linalg.solve(A, right[:, :, None])[:, :, 0])
        return EngineAccelerations(
            names=states.names, accelerations=a, residuals=states.moving(a), method=BY_MASS_MATRIX
        )

    def _velocities(self, states: TreeStates, independent: tuple[str, ...]) -> EngineVelocities:
        """Return the velocities per independent velocity; see `velocities`."""
        names = states.names
        K = states.jacobian
        known = [names.index(name) for name in independent]
        others = [i for i in range(len(names)) if i not in known]
        rows = LeastSquares.of(K[:, :, others])
        self._require_determined(rows, [names[i] for i in others])
        G = np.zeros((len(K), len(names), len(known)))
        G[:, known] = np.eye(len(known))
        G[:, others] = -rows.inverse @ K[:, :, known]
        residuals = replace(states.residuals, closure_rate=_largest((K @ G).reshape(len(K), -1)))
        jacobian = self.tree.loads.transmission @ G
        return EngineVelocities(
            names=names,
            embedding=G,
            actuator_jacobian=jacobian,
            residuals=residuals,
            method=BY_JACOBIANS,
        )

    def _checked_forces(self, parts: list[NamedMotion], forces: Array) -> Array:
        """Return actuator forces as an array (N, n_u) for chunks of a motion.

        Raises:
            InputError: the shape is wrong, or values are not finite.
        """
        expected = (sum(_samples(part) for part in parts), len(self.tree.loads.actuators))
        forces = np.asarray(forces, dtype=float)
        if forces.shape != expected or not np.all(np.isfinite(forces)):
            what = f"has shape {forces.shape}"
            if forces.shape == expected:
                what = f"{counted(np.sum(~np.isfinite(forces)), 'value', 'are')} not finite"
            raise InputError.of(
                "forces", what, f"give finite numbers (samples, actuators) = {expected}"
            )
        return forces

    def _close(self, q: Array, unknown: list[int]) -> Array:
        """Return the coordinates with unknown ones solved by least-squares Newton steps."""
        zero_velocity = np.zeros((len(q), len(self.tree.velocity_names)))
        for _ in range(MAX_STEPS if unknown else 0):
            K = self._closure(q, zero_velocity)
            step = zero_velocity.copy()
            step[:, unknown] = -LeastSquares.of(K.jacobian[:, :, unknown]).solve(K.residual)
            q = self._displaced(q, step)
            if np.max(np.abs(step)) < START_STEP_TOLERANCE:
                break
        return q

    def _displaced(self, q: Array, step: Array) -> Array:
        """Return the coordinates after a finite displacement (N, n_v)."""
        displaced = np.empty_like(q)
        for i, j in enumerate(self.tree.loads.q_index):
            if j >= 0:
                displaced[:, j] = q[:, j] + step[:, i]
        for iq, iv, _ in self.tree.balls:
            displaced[:, iq : iq + 4] = turned_quaternion(q[:, iq : iq + 4], step[:, iv : iv + 3])
        return displaced

    def _closure(self, q: Array, v: Array) -> ConstraintRows:
        """Return the constraint rows of loops and couplings."""
        loops = constraint_rows(self.tree, self._link_motion(q, v), v)
        if not len(self.tree.loads.gears):
            return loops
        return concatenated_rows(loops, gear_rows(self.tree.loads, q, v))

    def _link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Return the motion of the links, with Jacobians for the machine file's velocities."""
        links = self.link_motion(self._engine_q(q), self._engine_v(q, v))
        return replace(links, jacobian=self._from_engine(q, links.jacobian))

    def _forces(self, q: Array, v: Array, a: Array) -> Array:
        """Return M a + h (N, n_v) with rotors and springs.

        The angular acceleration of a ball joint is rotated into the engine's axes like a velocity,
        because the time derivative of the rotation contributes w × w = 0.
        """
        loads = self.tree.loads
        local = self.tree_forces(self._engine_q(q), self._engine_v(q, v), self._engine_v(q, a))
        return (
            self._from_engine(q, local[:, None, None, :])[:, 0, 0]
            + a @ loads.inertia
            + loads.springs(q)
        )

    def _distribute(self, K: Array, tau: Array) -> tuple[Array, Array]:
        """Return the actuator forces (N, n_u), and the unbalanced tree forces (N, n_v).

        If there are more actuators than degrees of freedom, u is the minimum-norm solution of
        P S u = P tau with the projector P on the null space of K.
        """
        S = self.tree.loads.transmission.T
        n_actuators = S.shape[1]
        motions = LeastSquares.of(K)
        if n_actuators > motions.max_nullity():
            distribution = LeastSquares.of(motions.null @ S)
            required_forces = times(motions.null, tau)
            u = distribution.solve(required_forces)
            return u, required_forces - times(distribution.matrix, u)
        norms = np.linalg.norm(S, axis=0)
        norms[norms == 0.0] = 1.0
        drives = np.broadcast_to(S / norms, (len(tau), *S.shape))
        supply = LeastSquares.of(np.concatenate([drives, np.swapaxes(K, 1, 2)], axis=2))
        undetermined = [
            name
            for name, projection in zip(
                self.tree.loads.actuators, supply.null_norms()[:n_actuators], strict=True
            )
            if projection > NULL_SPACE_TOLERANCE
        ]
        if undetermined:
            what = (
                f"can work against each other without moving {self.tree.name}, so that their "
                "forces are not unique"
            )
            remedy = (
                "compare poses away from singularities, or use one actuator per degree of freedom"
            )
            raise EngineError.of(f"actuators {', '.join(undetermined)}", what, remedy)
        x = supply.solve(tau)
        return x[:, :n_actuators] / norms, tau - times(supply.matrix, x)

    def _require_determined(self, rows: LeastSquares, names: list[str]) -> None:
        """Check that constraint rows determine all unknown velocities.

        Raises:
            EngineError: some velocities are undetermined.
        """
        undetermined = [
            name
            for name, projection in zip(names, rows.null_norms(), strict=True)
            if projection > NULL_SPACE_TOLERANCE
        ]
        if undetermined:
            what = (
                f"leaves {', '.join(undetermined)} of {self.tree.name} undetermined in some samples"
            )
            remedy = (
                "add these joints to the motion; for the angle of a rod, avoid poses where the rod is "
                "parallel to its first axis"
            )
            raise EngineError.of("motion", what, remedy)

    def _engine_q(self, q: Array) -> Array:
        """Return the coordinates with the quaternions of reversed balls inverted."""
        q = q.copy()
        for iq, _, is_reversed in self.tree.balls:
            if is_reversed:
                q[:, iq + 1 : iq + 4] *= -1.0
        return q

    def _engine_v(self, q: Array, v: Array) -> Array:
        """Return the velocities with those of balls in the axes of the outer link.

        They are Rᵀ w, or -w if the ball is reversed.
        """
        v = v.copy()
        for iq, iv, is_reversed in self.tree.balls:
            w = v[:, iv : iv + 3]
            R = quaternion_rotation(q[:, iq : iq + 4])
            v[:, iv : iv + 3] = -w if is_reversed else times(np.swapaxes(R, 1, 2), w)
        return v

    def _from_engine(self, q: Array, rows: Array) -> Array:
        """Return rows (N, k, l, n_v) that multiply the file's velocities.

        The argument contains rows that multiply the engine's velocities. This is the transpose of
        `_engine_v`.
        """
        rows = rows.copy()
        for iq, iv, is_reversed in self.tree.balls:
            block = rows[..., iv : iv + 3]
            R = quaternion_rotation(q[:, iq : iq + 4])
            if is_reversed:
                rows[..., iv : iv + 3] = -block
            else:
                rows[..., iv : iv + 3] = block @ np.swapaxes(R, 1, 2)[:, None]
        return rows


def _parts(motion: NamedMotion) -> Iterator[NamedMotion]:
    """Yield the motion in chunks of at most `ENGINE_CHUNK` samples."""
    for first in range(0, _samples(motion), ENGINE_CHUNK):
        piece = slice(first, first + ENGINE_CHUNK)
        yield NamedMotion(
            q={name: x[piece] for name, x in motion.q.items()},
            v={name: x[piece] for name, x in motion.v.items()},
            a={name: x[piece] for name, x in motion.a.items()},
        )


def _samples(motion: NamedMotion) -> int:
    """Return the number of samples of a motion."""
    return len(next(iter(motion.q.values())))


def _joined(parts: list[Part]) -> Part:
    """Return a single result from the results of chunks.

    Arrays are concatenated; other values are those of the first chunk.
    """
    if len(parts) == 1:
        return parts[0]
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(**{name: _joined_field(parts, name) for name in names})


def _joined_field(parts: list[Any], name: str) -> Any:
    """Return a field of the single result; see `_joined`."""
    values = [getattr(part, name) for part in parts]
    if isinstance(values[0], np.ndarray):
        return np.concatenate(values)
    return _joined(values) if is_dataclass(values[0]) else values[0]


def _columns(names: tuple[str, ...], values: Mapping[str, Array], samples: int) -> Array:
    """Return the columns (N, n) of named values; missing values are zero."""
    return np.stack([values.get(name, np.zeros(samples)) for name in names], axis=1)


def _largest(x: Array) -> Array:
    """Return the largest magnitude (N,) of each row of x (N, k)."""
    return np.max(np.abs(x), axis=1, initial=0.0)
