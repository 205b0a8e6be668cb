"""Couplings as Pinocchio has them: mimic joints, with its own recursive Newton-Euler on them.

Its constraint solver rejects models with mimic joints, so that this serves trees without loops. So
does its `aba`, and its `crba` is silently wrong where a joint that follows carries another that
leads (Pinocchio 4.1: the mass matrix of three geared links lacks an entry, 1e-3 of the
accelerations), so that mass matrices are made column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.engine import OTHER_ROWS
from tauloop.verification.engines.pinocchio.in_pinocchio import PinocchioEngine
from tauloop.verification.engines.results import TreeStates


def mimic_solver(engine: PinocchioEngine, states: TreeStates) -> Callable[[Array], Array]:
    """Return the function from forces (N, n_v) to accelerations (N, n_v), with couplings as mimics.

    Both are on the machine file's velocities.

    With v = E w, where w are the velocities of the joints that lead:
    (M + Eᵀ R E) dw/dt = Eᵀ tau - h, where M (mass matrix) and h (velocity terms and gravity) are
    computed by `rnea` of the model with mimic joints, R is the inertia of rotors, and tau are the
    forces. Then a = E dw/dt.

    Args:
        engine: Pinocchio with the machine; a tree.
        states: positions and velocities.

    Raises:
        EngineError: a coupling that is not a mimic joint.
    """
    pin = engine.library
    model, E = _with_mimics(engine)
    leading = [old.idx_q + k for old, new in _moving(engine, model) for k in range(new.nq)]
    places = np.ix_(engine.v_order, engine.v_order)
    rotors = np.zeros((len(E), len(E)))
    rotors[places] = engine.tree.loads.inertia
    data, rest = model.createData(), np.zeros(model.nv)

    def accelerations(q: Array, v: Array, tau: Array) -> Array:
        w, at_rest = (
            np.linalg.lstsq(E, v, rcond=None)[0],
            pin.rnea(model, data, q[leading], rest, rest).copy(),
        )
        h = pin.rnea(model, data, q[leading], w, rest).copy()
        columns = [
            pin.rnea(model, data, q[leading], rest, unit) - at_rest for unit in np.eye(model.nv)
        ]
        M = np.column_stack(columns) + E.T @ rotors @ E
        return np.asarray(E @ np.linalg.solve(M, E.T @ tau - h))

    def solve(tau: Array) -> Array:
        a = np.array([accelerations(*sample) for sample in engine.model_states(states, tau)])
        return engine.file_forces(states, a[:, engine.v_order])

    return solve


def _moving(engine: PinocchioEngine, model: Any) -> list[tuple[Any, Any]]:
    """Return pairs of each moving joint of the engine's model and that of the other model.

    A mimic joint has no coordinates in the other model.
    """
    return list(zip(engine.model.joints, model.joints, strict=True))[1:]


def _with_mimics(engine: PinocchioEngine) -> tuple[Any, Array]:
    """Return the model with a mimic joint for every coupling, and E (n_v, n_w): all velocities from those that lead."""
    loads, names = engine.tree.loads, engine.tree.velocity_names
    joint_of = {joint.idx_v: i for i, joint in enumerate(engine.model.joints) if i}
    follows: dict[int, tuple[int, float]] = {}
    model, problems = engine.model, Problems()
    for ratios, offset in zip(loads.gears, loads.gear_offsets, strict=True):
        coupled = sorted(np.flatnonzero(ratios), key=lambda i: joint_of[int(engine.v_order[i])])
        last = coupled[-1]
        # Pinocchio wants the joint that follows behind the one that leads
        if len(coupled) != 2 or np.count_nonzero(loads.gears[:, last]) > 1:
            what = (
                "is not one joint that follows an earlier one, as Pinocchio's mimic joints require"
            )
            where = f"coupling of {', '.join(names[i] for i in coupled)}"
            problems.add(where, what, OTHER_ROWS)
            continue
        leader, follower = (joint_of[int(engine.v_order[i])] for i in coupled)
        scale = -float(ratios[coupled[0]] / ratios[last])
        model = engine.library.transformJointIntoMimic(
            model, leader, follower, scale, float(offset / ratios[last])
        )
        follows[follower] = leader, scale
    EngineError.raise_if_any(problems)
    E = np.zeros((engine.model.nv, model.nv))
    for i, (old, new) in enumerate(_moving(engine, model), start=1):
        if i in follows:
            leader, scale = follows[i]
            E[old.idx_v, model.joints[leader].idx_v] = scale
        else:
            E[old.idx_v : old.idx_v + old.nv, new.idx_v : new.idx_v + new.nv] = np.eye(old.nv)
    return model, E
