"""States of the tree that both peers are given: computed beforehand, so that they need not close loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from tauloop.mechanism.poses import Array
from tauloop.verification.engines import Engine, NamedMotion, TreeStates

#: Constraint rows whose matrix has a larger condition number in some sample are not usable; on the
#: machines it is below 1e4.
WORST_CONDITION = 1e8


class NotComparable(Exception):
    """A machine that a peer does not support; the text states the reason."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerStates:
    """States (N) of an engine's tree with closed loops.

    Attributes:
        q, v, a: coordinates, velocities and accelerations as engines have them: quaternions w x y z
            of the link nearer the tips, its angular velocities in its own axes.
        jacobian: all constraint rows (N, n_c, n_v) on velocities as the machine file has them.
        rows: constraint rows, as many as there are passive velocities, that leave the multipliers
            unique.
        driven: velocities that the actuators drive.
        forward_mu: Pinocchio's regularization of constraints of points alone; None where these do
            not close the loops.
        in_file: the same as machine files have them.
        is_regular: whether the tree's mass matrix can be inverted: not with massless links that are
            free to move.
    """

    q: Array
    v: Array
    a: Array
    jacobian: Array
    rows: tuple[int, ...]
    driven: tuple[int, ...]
    forward_mu: float | None
    in_file: TreeStates
    is_regular: bool


def tree_states(engine: Engine, motion: NamedMotion) -> PeerStates:
    """Return the coordinates of the engine's tree for a motion of the machine; missing ones follow from the loops.

    Raises:
        NotComparable: actuators and constraints together do not determine the forces.
    """
    found = engine.states(motion)
    q, v, a = engine.own(found)
    K = found.jacobian

    driven = _driven(engine)
    passive = [i for i in range(len(found.names)) if i not in driven]
    points = sum(len(c.position_directions) for c in engine.tree.constraints)
    mu = _regularization(K, points)
    usable = K if mu is None else K[:, :points]
    return PeerStates(
        q=q,
        v=v,
        a=a,
        jacobian=K,
        rows=_independent_rows(usable[:, :, passive]),
        driven=driven,
        forward_mu=mu,
        in_file=found,
        is_regular=_mass_condition(engine.whole_mass_matrix(found)[0]) < WORST_CONDITION,
    )


def _driven(engine: Engine) -> tuple[int, ...]:
    S = engine.tree.loads.transmission
    driven = tuple(int(i) for i in np.flatnonzero(np.any(S != 0.0, axis=0)))
    if len(driven) != len(S) or np.linalg.matrix_rank(S) < len(S):
        raise NotComparable(f"{len(S)} actuators drive {len(driven)} coordinates")
    return driven


def _independent_rows(K: Array) -> tuple[int, ...]:
    """Return rows of K (N, n_c, n_p) that form a square matrix with the least largest condition number."""
    n = K.shape[2]
    if n == 0:
        return ()
    if K.shape[1] == n:
        return tuple(range(n))
    best, choice = np.inf, ()
    for sample in K[:: max(1, len(K) // 8)]:
        rows = tuple(sorted(int(i) for i in qr(sample.T, mode="r", pivoting=True)[1][:n]))
        worst = float(np.max(np.linalg.cond(K[:, rows, :]))) if len(rows) == n else np.inf
        if worst < best:
            best, choice = worst, rows
    if best > WORST_CONDITION:
        raise NotComparable(
            f"{K.shape[1]} constraint rows do not determine {n} passive coordinates"
        )
    return choice


def _regularization(K: Array, points: int) -> float | None:
    """Return 1e-12 where constraints are redundant, as Pinocchio's documentation suggests; 1e-8 measured better."""
    rank = np.linalg.matrix_rank(K[0])
    if np.linalg.matrix_rank(K[0, :points]) < rank:
        return None
    return 0.0 if rank == points else 1e-8


def _mass_condition(M: Array) -> float:
    """Return the condition number of a mass matrix (n_v, n_v), independent of units."""
    scale = np.sqrt(np.abs(np.diag(M)))
    scale[scale == 0.0] = 1.0
    return float(np.linalg.cond(M / np.outer(scale, scale)))


def shared_out(states: PeerStates, engine: Engine, tau: Array) -> Array:
    """Return actuator forces (N, n_u) that, with the multipliers of the chosen rows, give tree forces (N, n_v)."""
    S = np.broadcast_to(
        engine.tree.loads.transmission.T, (len(tau), *engine.tree.loads.transmission.T.shape)
    )
    A = np.concatenate([S, np.swapaxes(states.jacobian[:, states.rows, :], 1, 2)], axis=2)
    return np.linalg.solve(A, tau[:, :, None])[:, : S.shape[2], 0]
