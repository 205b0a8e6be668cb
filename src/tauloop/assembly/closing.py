"""Closing the loops: from a reference pose, however open, to assembled states, and walks along them.

The loop equations of a joint that fixes directions (a weld, a hinge) say that some directions are
perpendicular, which also holds at orientations that the joint does not mean, a third or half turn away. Where a joint
closed so, or did not close, the axes that have to coincide are therefore compared too (`loops.aligned`). Ranges of
coordinates can be equations too, to close loops from afar without leaving them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.assembly.far_start import close_from_afar
from tauloop.assembly.limits import AT_THE_STOP, limits_of
from tauloop.assembly.loops import Loops, aligned
from tauloop.equations.topology import integrate
from tauloop.equations.values import BatchFunction
from tauloop.errors import Problem
from tauloop.mechanism.model import LIMIT_KINDS, LimitKind

#: Loops count as closed below this residual, m (or pure number).
CLOSED = 1e-10
#: Singular values of the unit-free Jacobian below this fraction of the largest do not steer the projection.
PROJECTION_CUTOFF = 1e-6
#: Singular values below this fraction of the largest belong to loops that are nearly redundant.
WEAK = 1e-3
#: Singular values below this fraction of the largest are zero whatever the gap.
RANK_FLOOR = 1e-9
#: Axes that have to coincide do so when they differ by less than this (the others are a quarter turn or more away).
ALIGNED = 1e-6
#: From afar: Gauss-Newton steps, further starts, and how far these lie from the first (rad, or lengths).
FAR_ITERATIONS, STARTS, SCATTER = 300, 12, 0.6
#: Walks and steps per walk of the states over which rank is decided, and the step length (rad, or lengths).
WALKS, WALK_STEPS, STEP = 6, 6, 0.08


def close_from_reference(loops: Loops, independent: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The reference pose of the file with its platform left where it is; moved too only where that cannot close.

    Args:
        loops: the loop equations.
        independent: velocities whose coordinates stay where the file puts them, if the loops close there.

    Returns:
        Coordinates (1, n_q) and the largest residual (1,).
    """
    start = np.array([loops.topology.reference])
    q, residual = close_loops(loops, start, held=independent)
    if residual[0] > CLOSED:
        q, residual = close_loops(loops, start)
    if residual[0] > CLOSED:
        nearer, smaller = _close_weakly(loops, q)
        if smaller[0] < residual[0]:
            q, residual = nearer, smaller
    return _facing_right(loops, start, q, residual)


def _facing_right(
    loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A better closure, if there is one, where the loops are open or a joint closed a third or half turn away."""
    strict = aligned(loops) if loops.topology.cuts else loops
    if residual[0] <= CLOSED and np.abs(strict.residuals(q)[0]).max(initial=0.0) < ALIGNED:
        return q, residual
    for nearer, left in _attempts(strict, start):
        if left < ALIGNED:
            closed, closed_residual = close_loops(loops, nearer)
            if closed_residual[0] <= CLOSED:
                return closed, closed_residual
    return q, residual


def _attempts(loops: Loops, start: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Coordinates (1, n_q) and residuals: by short steps, which end nearby, then by ever bolder ones."""
    q, residual = close_loops(loops, start, iterations=FAR_ITERATIONS)
    yield q, float(residual[0])
    for trial in (start, *scattered(loops, start)):
        nearer, left = close_from_afar(loops, trial[0])
        yield nearer[None, :], left


def scattered(loops: Loops, start: np.ndarray) -> list[np.ndarray]:
    """Further starts (1, n_q) around one, ever farther away, always the same ones."""
    rng = np.random.default_rng(0)
    spread = np.linspace(SCATTER / STARTS, SCATTER, STARTS)
    steps = rng.normal(size=(STARTS, loops.topology.n_v)) * spread[:, None] * loops.velocity_scale
    return [integrate(loops.topology, start, step[None, :]) for step in steps]


def _close_weakly(loops: Loops, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Close nearly redundant loops: steps along weak directions, each followed by closing the others again.

    A small error of parts that are meant to be parallel leaves a residual that only a large motion along a curved
    valley removes; ordinary steps cannot follow the valley.
    """
    phi, K = loops.residuals(q)
    for _ in range(60):
        if np.abs(phi).max() < CLOSED:
            break
        U, s, Vt = np.linalg.svd(loops.scaled(K), full_matrices=False)
        weak = (s < WEAK * s[:, :1]) & (s > RANK_FLOOR * s[:, :1])
        inverse = np.where(weak, 1.0 / np.where(weak, s, 1.0), 0.0)
        step = -np.einsum("nji,nj,nkj,nk->ni", Vt, inverse, U, loops.row_scale * phi)
        step *= np.minimum(1.0, STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        for halving in range(8):
            trial = integrate(loops.topology, q, 0.5**halving * step * loops.velocity_scale)
            trial = _close_strongly(loops, trial)
            trial_phi, trial_K = loops.residuals(trial)
            if np.abs(trial_phi).max() < np.abs(phi).max():
                q, phi, K = trial, trial_phi, trial_K
                break
        else:
            break
    return q, np.abs(phi).max(axis=1)


def _close_strongly(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Gauss-Newton on what the strong directions can remove."""
    for _ in range(8):
        phi, K = loops.residuals(q)
        U, s, Vt = np.linalg.svd(loops.scaled(K), full_matrices=False)
        strong = s >= WEAK * s[:, :1]
        inverse = np.where(strong, 1.0 / np.where(strong, s, 1.0), 0.0)
        step = -np.einsum("nji,nj,nkj,nk->ni", Vt, inverse, U, loops.row_scale * phi)
        q = integrate(loops.topology, q, step * loops.velocity_scale)
    return q


@np.errstate(over="ignore", invalid="ignore")  # of starts that are too far away for numbers to hold
def close_loops(
    loops: Loops, q: np.ndarray, iterations: int = 80, held: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Nearest assembled states by damped Gauss-Newton.

    Args:
        loops: the loop equations.
        q: start values (N, n_q).
        iterations: most steps taken.
        held: indices of velocities whose coordinates are not moved.

    Returns:
        Coordinates (N, n_q) and largest residuals (N,); infinite where a start is too far away for numbers to hold.
    """
    if not loops.names:
        return q, np.zeros(len(q))
    weight = loops.row_scale
    movable = np.ones(loops.topology.n_v)
    movable[list(held)] = 0.0
    damping = np.full(len(q), 1e-3)
    phi, K = loops.residuals(q)
    lost = ~(np.isfinite(phi).all(axis=1) & np.isfinite(K).all(axis=(1, 2)))
    phi[lost], K[lost] = 0.0, 0.0
    cost = np.sum((weight * phi) ** 2, axis=1)
    for _ in range(iterations):
        if np.abs(phi).max() < 1e-14:
            break
        J = loops.scaled(K) * movable
        U, s, Vt = np.linalg.svd(J, full_matrices=False)
        s = np.where(s > PROJECTION_CUTOFF * s[:, :1], s, 0.0)
        filtered = s / (s**2 + (damping * s[:, 0] ** 2)[:, None] + 1e-300)
        step = -np.einsum("nji,nj,nkj,nk->ni", Vt, filtered, U, weight * phi) * loops.velocity_scale
        longest = np.abs(step / loops.velocity_scale).max(axis=1)
        step *= np.minimum(1.0, 0.3 / np.maximum(longest, 1e-300))[:, None]
        trial = integrate(loops.topology, q, step)
        trial_phi, trial_K = loops.residuals(trial)
        trial_cost = np.sum((weight * trial_phi) ** 2, axis=1)
        better = trial_cost < cost
        q = np.where(better[:, None], trial, q)
        phi = np.where(better[:, None], trial_phi, phi)
        K = np.where(better[:, None, None], trial_K, K)
        cost = np.where(better, trial_cost, cost)
        damping = np.where(better, np.where(damping < 1e-12, 0.0, damping * 0.1), np.maximum(damping, 1e-12) * 10)
        if not better.any() and damping.min() > 1e3:
            break
    return q, np.where(lost, np.inf, np.abs(phi).max(axis=1))


def random_walk(
    loops: Loops,
    q: np.ndarray,
    rng: np.random.Generator,
    walks: int = WALKS,
    steps: int = WALK_STEPS,
    step: float = STEP,
    locked: tuple[int, ...] = (),
) -> np.ndarray:
    """Assembled states along random walks on the loops' manifold, within those limits of the file that the start keeps.

    Args:
        loops: the loop equations.
        q: assembled start (1, n_q).
        rng: source of randomness.
        walks: how many walks.
        steps: steps of each.
        step: size of a step, rad or characteristic lengths.
        locked: indices of velocities that stay zero.

    Returns:
        States (walks * steps + 1, n_q), the start first.
    """
    limits = limits_of(loops.mechanism, loops.topology)
    left = limits.room(q)[0] < -AT_THE_STOP
    current = np.repeat(q, walks, axis=0)
    states = [q]
    for _ in range(steps):
        _, K = loops.residuals(current)
        direction = rng.normal(size=(walks, loops.topology.n_v))
        direction[:, list(locked)] = 0.0
        if K.shape[1]:
            J = loops.scaled(K)
            J[:, :, list(locked)] = 0.0
            _, s, Vt = np.linalg.svd(J, full_matrices=False)
            kept = np.where(s > PROJECTION_CUTOFF * s[:, :1], 1.0, 0.0)
            direction -= np.einsum("nji,nj,njk,nk->ni", Vt, kept, Vt, direction)
        size = np.abs(direction).max(axis=1, keepdims=True)
        direction *= step / np.maximum(size, 1e-12) * loops.velocity_scale
        trial, residual = close_loops(loops, integrate(loops.topology, current, direction), 25, locked)
        inside = ((limits.room(trial) >= 0.0) | left).all(axis=1)
        moved = np.abs(trial - current).max(axis=1) < 10 * step * max(loops.length, 1.0)
        good = (residual < CLOSED) & inside & moved
        current = np.where(good[:, None], trial, current)
        states.append(current.copy())
    return np.concatenate(states)


def coordinate_limits(loops: Loops, kinds: tuple[LimitKind, ...] = LIMIT_KINDS) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (n_q,) of the coordinates, SI; infinite where the file gives none.

    Args:
        loops: the loop equations.
        kinds: the kinds of limits that count: all for a search, ("stop",) for what is given.
    """
    shape = loops.topology
    lower, upper = np.full(shape.n_q, -np.inf), np.full(shape.n_q, np.inf)
    for i, freedom in zip(shape.q_of_v, shape.freedoms, strict=True):
        if i >= 0 and freedom.limit in kinds:
            lower[i], upper[i] = freedom.lower, freedom.upper
    return lower, upper


@np.errstate(over="ignore", invalid="ignore")
def _misses(loops: Loops, q: np.ndarray) -> np.ndarray:
    """By how much each loop misses (c,): for rods the difference of distance and length, m."""
    phi, _ = loops.residuals(q)
    misses = np.abs(phi[0])
    coordinate = dict(zip(loops.topology.coordinate_names, q[0], strict=True))
    for rod in loops.mechanism.rods:
        i = loops.elements.index(rod.name)
        length = coordinate[rod.name] if rod.length is None else loops.mechanism.value(rod.length)
        misses[i] = abs(np.sqrt(max(length**2 + 2 * length * phi[0, i], 0.0)) - length)
    return np.nan_to_num(misses, nan=np.inf)


def open_loops(loops: Loops, q: np.ndarray) -> list[Problem]:
    """Which rods and joints do not close at coordinates (1, n_q), and by how much; the worst first."""
    phi = _misses(loops, q)
    worst: dict[str, tuple[float, bool]] = {}
    for element, value, is_length in zip(loops.elements, phi, loops.is_length, strict=True):
        if value > CLOSED and value > worst.get(element, (0.0, True))[0]:
            worst[element] = (float(value), bool(is_length))
    return [
        Problem(
            where=element,
            what=f"the loop cannot be closed at this geometry: it misses by {1e3 * value:.4g} mm"
            if is_length
            else f"the loop cannot be closed at this geometry: directions miss by {value:.4g} rad",
            remedy="check lengths and joint positions, or give a reference pose nearer to an assembled one",
            file=loops.mechanism.file,
        )
        for element, (value, is_length) in sorted(worst.items(), key=lambda item: -item[1][0])
    ]


#: A coordinate is beyond its limit by more than rounding, m or rad.
BEYOND = 1e-9
#: Share of a range by which poses that are sought keep off its ends.
MARGIN = 0.02


def excess(loops: Loops, q: np.ndarray) -> np.ndarray:
    """By how much coordinates (..., n_q) are beyond their limits (..., n_q), m or rad; negative below the lower one."""
    lower, upper = coordinate_limits(loops)
    beyond = q - np.clip(q, lower, upper)
    return np.asarray(np.where(np.abs(beyond) > BEYOND, beyond, 0.0))


def moved_inside(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Coordinates (..., n_q), those beyond their limits in the middle of their range, or at its only end."""
    lower, upper = coordinate_limits(loops)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (lower + upper), np.clip(q, lower, upper))
    return np.where((q < lower) | (q > upper), middle, q)


def limited(loops: Loops) -> Loops:
    """The same loops with one more equation for every limited coordinate: by how much it leaves its range.

    They serve to close the loops from afar; poses within the limits satisfy them.
    """
    shape = loops.topology
    lower, upper = coordinate_limits(loops)
    margin = np.where(np.isfinite(upper - lower), MARGIN * (upper - lower), 0.0)
    chosen = [i for i, j in enumerate(shape.q_of_v) if j >= 0 and np.isfinite([lower[j], upper[j]]).any()]
    q = ca.SX.sym("q", shape.n_q)
    phi, K = loops.function.function(q) if loops.names else (ca.SX(0, 1), ca.SX(0, 1))
    rows, columns = [], []
    for i in chosen:
        j = shape.q_of_v[i]
        above = q[j] - (upper[j] - margin[j]) if np.isfinite(upper[j]) else ca.SX(-1)
        below = (lower[j] + margin[j]) - q[j] if np.isfinite(lower[j]) else ca.SX(-1)
        rows.append(ca.fmax(above, 0) - ca.fmax(below, 0))
        columns.append((i, ca.logic_or(above > 0, below > 0)))
    K = ca.reshape(K, len(loops.names), shape.n_v)
    extra = ca.SX(len(chosen), shape.n_v)
    for row, (i, active) in enumerate(columns):
        extra[row, i] = active
    phi, K = ca.vertcat(phi, *rows), ca.vertcat(K, extra)
    names = tuple(shape.velocity_names[i] for i in chosen)
    return replace(
        loops,
        names=(*loops.names, *(f"{name}: limits" for name in names)),
        elements=(*loops.elements, *names),
        is_length=np.concatenate([loops.is_length, [not shape.angular[i] for i in chosen]]).astype(bool),
        function=BatchFunction(ca.Function("limited", [q], [ca.densify(phi), ca.densify(ca.vec(K))])),
    )
