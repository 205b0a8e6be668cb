"""What moves alike in a machine: bodies that turn together or never, rods that stay parallel; and the mass centre."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.assembly.loops import nominal
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.model import Inertia, Mechanism, Rod
from tauloop.model import Model
from tauloop.reduction import BodyMotions, numbers

#: Orientations (and rod directions, in lengths) that differ by less over all states move alike: far above the residual
#: of closed loops, far below what a joint error of a micrometre makes.
ALIKE = 1e-8


def motion(model: Model, states: np.ndarray) -> BodyMotions:
    """Which bodies turn alike, from their orientations over assembled states.

    Bodies b and c turn alike when R_b(q) R_b(q_0)^T = R_c(q) R_c(q_0)^T in every state q.

    Args:
        model: the machine.
        states: assembled coordinates (N, n_q).
    """
    # the loops of the reference pose are closed to 1e-10 m only; this closes them to rounding
    reference = model.platform.kinematics(model.platform_position(model.assembly.q), start=model.assembly.q).q
    names, R, p = _poses(model, np.vstack([reference[None, :], states]))
    since = np.einsum("nbij,bkj->bnik", R, R[0])
    groups: list[list[int]] = []
    for i in range(len(names)):
        home = next((g for g in groups if np.abs(since[g[0]] - since[i]).max() < ALIKE), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    return BodyMotions(
        groups=tuple(frozenset(names[i] for i in group) for group in groups),
        orientation={name: R[0, i] for i, name in enumerate(names)},
        position={name: p[0, i] for i, name in enumerate(names)},
        steady={name: R[0, i].T @ _steady(since[i]) for i, name in enumerate(names)},
    )


def _steady(turns: np.ndarray) -> np.ndarray:
    """Directions (3, k) that rotations (N, 3, 3) leave as they are: null space of all R - 1."""
    _, s, Vt = np.linalg.svd((turns - np.eye(3)).reshape(-1, 3), full_matrices=False)
    return np.asarray(Vt[s < 2.0 * ALIKE * np.sqrt(len(turns))].T)


def parallel_rods(model: Model, states: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Groups of equal fixed rods between the same bodies that stay parallel, with ends that move alike.

    Args:
        model: the machine.
        states: assembled coordinates (N, n_q).
    """
    mechanism = model.mechanism
    names, R, p = _poses(model, states)
    index = {name: i for i, name in enumerate(names)}

    def end(rod: Rod, which: str) -> np.ndarray:
        placement = rod.start if which == "start" else rod.end
        r = numbers(mechanism, placement.position)
        i = index[placement.body]
        return np.asarray(p[:, i] + R[:, i] @ r)

    def alike(a: Rod, b: Rod) -> bool:
        if (a.start.body, a.end.body) != (b.start.body, b.end.body) or a.length is None or b.length is None:
            return False
        offsets = [end(b, which) - end(a, which) for which in ("start", "end")]
        spread = max(float(np.abs(offset - offset[0]).max()) for offset in offsets)
        tilt = float(np.abs(offsets[1] - offsets[0]).max())
        return max(spread, tilt) < ALIKE * mechanism.value(a.length)

    groups: list[list[Rod]] = []
    for rod in mechanism.rods:
        home = next((group for group in groups if alike(group[0], rod)), None)
        if home is None:
            groups.append([rod])
        else:
            home.append(rod)
    return tuple(tuple(rod.name for rod in group) for group in groups if len(group) > 1)


def mass_center(model: Model, q: np.ndarray) -> np.ndarray:
    """Mass centre (N, 3) of all bodies and rods in the base frame, m.

    Args:
        model: the machine.
        q: assembled coordinates (N, n_q).
    """
    mechanism = model.mechanism
    names, R, p = _poses(model, q)
    index = {name: i for i, name in enumerate(names)}
    mass, moment = 0.0, np.zeros((len(q), 3))

    def at(body: str, vector: np.ndarray, m: float) -> np.ndarray:
        return np.asarray(m * p[:, index[body]] + R[:, index[body]] @ vector)

    for body in mechanism.bodies:
        if body.inertia is not None:
            m = mechanism.value(body.inertia.mass)
            mass += m
            moment += at(body.name, numbers(mechanism, body.inertia.first_moment), m)
    for rod in mechanism.rods:
        ends = [at(end.body, numbers(mechanism, end.position), 1.0) for end in (rod.start, rod.end)]
        frame = _rod_frame(mechanism, rod, R[:, index[rod.start.body]], ends[1] - ends[0])
        for end, sign, part in ((ends[0], 1.0, rod.lower), (ends[1], -1.0, rod.upper)):
            if part is not None:
                m = mechanism.value(part.mass)
                mass += m
                moment += m * end
                if isinstance(part, Inertia):
                    moment += frame @ numbers(mechanism, part.first_moment)
                else:
                    moment += sign * mechanism.value(part.first_moment) * frame[:, :, 2]
    return moment / mass if mass else moment


def _rod_frame(mechanism: Mechanism, rod: Rod, R: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Orientation (N, 3, 3) of the rod frame: z along the rod, y along h x z where the rod has a first axis h."""
    z = along / np.linalg.norm(along, axis=1, keepdims=True)
    frame = np.zeros((len(z), 3, 3))
    frame[:, :, 2] = z
    if rod.first_axis is not None:
        y = np.cross(R @ numbers(mechanism, rod.first_axis), z)
        frame[:, :, 1] = y / np.linalg.norm(y, axis=1, keepdims=True)
        frame[:, :, 0] = np.cross(frame[:, :, 1], z)
    return frame


def _poses(model: Model, q: np.ndarray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of all bodies, the base first, with orientations (N, n, 3, 3) and origins (N, n, 3)."""
    topology = model.topology
    symbol = ca.SX.sym("q", topology.n_q)
    zero = ca.SX(topology.n_v, 1)
    bodies = tree_motion(topology, nominal(model.mechanism), Configuration(symbol, {}), zero, zero).bodies
    R = ca.vertcat(*(ca.vec(moving.R.T) for moving in bodies.values()))
    p = ca.vertcat(*(moving.p for moving in bodies.values()))
    function = BatchFunction(ca.Function("poses", [symbol], [ca.densify(R), ca.densify(p)]))
    rotations, origins = function([q], len(q))
    n = len(bodies)
    return list(bodies), rotations.reshape(-1, n, 3, 3), origins.reshape(-1, n, 3)
