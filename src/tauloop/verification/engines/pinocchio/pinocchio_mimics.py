"""Forward dynamics with couplings as Pinocchio's mimic joints, computed with `rnea`.

`rnea` is Pinocchio's recursive Newton-Euler algorithm. Pinocchio's constraint solver and `aba`
reject models with mimic joints; this module therefore handles only machines without loops. `crba`
returns wrong mass matrices without an error if a mimic joint has a descendant that is the leading
joint of another mimic joint: in Pinocchio 4.1, the mass matrix of three geared links lacks an
entry, which changes accelerations by 1e-3. Mass matrices are therefore computed column by column
with `rnea`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.engine import NO_ACTION_NEEDED
from tauloop.verification.engines.pinocchio.in_pinocchio import PinocchioEngine
from tauloop.verification.engines.results import TreeStates


def mimic_solver(engine: PinocchioEngine, states: TreeStates) -> Callable[[Array], Array]:
    """Return the function from forces (N, n_v) to accelerations (N, n_v), with mimic joints.

    Forces and accelerations belong to the machine file's velocities. The velocities are v = E w
    with the velocities w of the leading joints, and (M + Eᵀ R E) dw/dt = Eᵀ tau - h. The mass
    matrix M and the velocity and gravity terms h are computed by `rnea` of the model with mimic
    joints; R is the inertia of rotors, and tau are the forces. Then a = E dw/dt.

    Args:
        engine: Pinocchio with a machine without loops.
        states: positions and velocities.

    Raises:
        EngineError: a coupling cannot be a mimic joint.
    """
    pin = engine.library
    model, E = _with_mimics(engine)
    # A mimic joint has no coordinates (nq = 0), so only coordinates of leading joints are listed.
    leading_q = [
        full.idx_q + k
        for full, with_mimics in _joint_pairs(engine, model)
        for k in range(with_mimics.nq)
    ]
    order = np.ix_(engine.v_order, engine.v_order)
    rotors = np.zeros((len(E), len(E)))
    rotors[order] = engine.tree.loads.inertia
    data = model.createData()
    zeros = np.zeros(model.nv)

    def accelerations(q: Array, v: Array, tau: Array) -> Array:
        w = np.linalg.lstsq(E, v, rcond=None)[0]
        at_rest = pin.rnea(model, data, q[leading_q], zeros, zeros).copy()
        h = pin.rnea(model, data, q[leading_q], w, zeros).copy()
        columns = [
            pin.rnea(model, data, q[leading_q], zeros, unit) - at_rest for unit in np.eye(model.nv)
        ]
        M = np.column_stack(columns) + E.T @ rotors @ E
        return np.asarray(E @ np.linalg.solve(M, E.T @ tau - h))

    def solve(tau: Array) -> Array:
        a = np.array([accelerations(*sample) for sample in engine.model_states(states, tau)])
        # The map between the velocities of the engine and of the file is orthogonal. The map of
        # forces is therefore also that of accelerations.
        return engine.file_forces(states, a[:, engine.v_order])

    return solve


def _joint_pairs(engine: PinocchioEngine, model: Any) -> list[tuple[Any, Any]]:
    """Return for each moving joint its two forms: in the engine's model, and in the mimic model.

    In the latter, a joint that follows another joint has no coordinates.
    """
    return list(zip(engine.model.joints, model.joints, strict=True))[1:]


def _with_mimics(engine: PinocchioEngine) -> tuple[Any, Array]:
    """Return the model with a mimic joint for each coupling, and E (n_v, n_w).

    The matrix E maps the velocities of the leading joints to all velocities.
    """
    couplings = engine.tree.loads.gears
    offsets = engine.tree.loads.gear_offsets
    names = engine.tree.velocity_names
    joint_of = {joint.idx_v: i for i, joint in enumerate(engine.model.joints) if i}
    follows: dict[int, tuple[int, float]] = {}
    model = engine.model
    problems = Problems()
    for ratios, offset in zip(couplings, offsets, strict=True):
        coupled = sorted(np.flatnonzero(ratios), key=lambda i: joint_of[int(engine.v_order[i])])
        last = coupled[-1]
        # Pinocchio requires that the mimic joint comes after its leading joint.
        if len(coupled) != 2 or np.count_nonzero(couplings[:, last]) > 1:
            what = "is not a joint that follows a single earlier joint, as mimic joints require"
            where = f"coupling of {', '.join(names[i] for i in coupled)}"
            problems.add(where, what, NO_ACTION_NEEDED)
            continue
        leader = joint_of[int(engine.v_order[coupled[0]])]
        follower = joint_of[int(engine.v_order[coupled[1]])]
        scale = -float(ratios[coupled[0]] / ratios[last])
        model = engine.library.transformJointIntoMimic(
            model, leader, follower, scale, float(offset / ratios[last])
        )
        follows[follower] = (leader, scale)
    EngineError.raise_if_any(problems)
    E = np.zeros((engine.model.nv, model.nv))
    for i, (old, new) in enumerate(_joint_pairs(engine, model), start=1):
        if i in follows:
            leader, scale = follows[i]
            E[old.idx_v, model.joints[leader].idx_v] = scale
        else:
            E[old.idx_v : old.idx_v + old.nv, new.idx_v : new.idx_v + new.nv] = np.eye(old.nv)
    return model, E
