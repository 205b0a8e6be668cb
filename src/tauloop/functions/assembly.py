"""Assembly: whether the loops close, their rank and redundancy, the mobility, and what is constant on the manifold.

Decided once at build, over many assembled states, from singular values of the loop Jacobian made free of units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from tauloop.equations.topology import integrate
from tauloop.errors import AssemblyError, Problem
from tauloop.functions.loops import Loops

#: Loops count as closed below this residual, m (or pure number).
CLOSED = 1e-10
#: Singular values of the unit-free Jacobian below this fraction of the largest do not steer the projection.
PROJECTION_CUTOFF = 1e-6
#: Singular values below this fraction of the largest belong to loops that are nearly redundant.
WEAK = 1e-3
#: Gap between kept and dropped singular values that a rank decision needs (design, "How the general machine works").
RANK_GAP = 1e3
#: Singular values below this fraction of the largest are zero whatever the gap.
RANK_FLOOR = 1e-9
#: A coordinate is constant when no motion of unit size moves it by more than this.
FROZEN = 1e-9
#: Walks and steps per walk of the states over which rank is decided, and the step length (rad, or lengths).
WALKS, WALK_STEPS, STEP = 6, 6, 0.08
#: Jacobians above this condition number count as singular.
SINGULAR = 1e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What the loops of a machine allow.

    Attributes:
        loops: the loop equations.
        q: assembled reference coordinates (n_q,).
        residual: largest loop residual there, m.
        states: assembled states (N, n_q) over which the rank was decided.
        singular_values: unit-free singular values of K at those states (N, min(c, n_v)).
        rank: rank of K.
        gap: smallest ratio of the last kept to the first dropped singular value.
        mobility: n_v - rank.
        frozen: indices of velocities that are zero in every motion.
        rows: indices of the loop equations kept.
        dropped: indices of the redundant ones.
        independent: indices of the independent velocities (the platform's).
        driven: indices of the velocities that actuators drive.
        platform_condition: condition of the kept loops in the dependent velocities, platform motion given (N,).
        actuator_condition: condition of the map from independent to actuator velocities (N,).
        actuator_rank: rank of the map from all motions to actuator velocities.
        findings: what keeps the machine from working as described.
    """

    loops: Loops
    q: np.ndarray
    residual: float
    states: np.ndarray
    singular_values: np.ndarray
    rank: int
    gap: float
    mobility: int
    frozen: tuple[int, ...]
    rows: tuple[int, ...]
    dropped: tuple[int, ...]
    independent: tuple[int, ...]
    driven: tuple[int, ...]
    platform_condition: np.ndarray
    actuator_condition: np.ndarray
    actuator_rank: int
    findings: tuple[Problem, ...]

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        shape, names = self.loops.topology, self.loops.names
        return {
            "coordinates": list(shape.coordinate_names),
            "velocities": list(shape.velocity_names),
            "reference": dict(zip(shape.coordinate_names, map(float, self.q), strict=True)),
            "residual_m": self.residual,
            "states": len(self.states),
            "loop_equations": len(names),
            "rank": self.rank,
            "singular_value_gap": self.gap if np.isfinite(self.gap) else None,
            "mobility": self.mobility,
            "actuators": len(self.loops.mechanism.actuators),
            "actuator_rank": self.actuator_rank,
            "frozen": [shape.velocity_names[i] for i in self.frozen],
            "redundant_equations": [names[i] for i in self.dropped],
            "independent": [shape.velocity_names[i] for i in self.independent],
            "actuator_condition": _finite(self.actuator_condition),
            "platform_condition": _finite(self.platform_condition),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def _finite(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) and np.isfinite(np.median(values)) else None


def assemble(loops: Loops) -> Assembly:
    """Close the loops from the reference pose and decide rank, mobility and redundancy.

    Raises:
        AssemblyError: the loops cannot be closed at the given geometry; says which and by how much.
    """
    independent = _independent(loops)
    q, residual = _close_from_reference(loops, independent)
    if residual[0] > CLOSED:
        raise AssemblyError(_open_loops(loops, q))
    states = random_walk(loops, q, np.random.default_rng(0))
    _, K = loops.residuals(states)
    K_scaled = loops.scaled(K)
    sigma = np.linalg.svd(K_scaled, compute_uv=False) if K.shape[1] else np.zeros((len(states), 0))
    findings: list[Problem] = []
    rank, gap = _rank(sigma, findings)
    motions = _null_space(K_scaled, rank)
    n_v = loops.topology.n_v
    extent = np.abs(motions).max(axis=(0, 2)) if motions.shape[2] else np.zeros(n_v)
    frozen = tuple(int(i) for i in np.flatnonzero(extent < FROZEN))
    moving = [i for i in range(n_v) if i not in frozen]
    mobility = n_v - rank
    rows = _kept_rows(K_scaled[:, :, moving], len(moving) - mobility)
    driven = tuple(int(i) for i in np.flatnonzero(np.abs(loops.transmission).max(axis=0, initial=0.0) > 0))
    if not mobility:
        findings.append(
            Problem(
                where=loops.mechanism.name,
                what="the machine is locked: mobility 0",
                remedy="a geometry error of joints that must be parallel or equal may have locked it; compare the "
                "singular values of the nominal machine",
            )
        )
    platform_condition = _platform_condition(loops, K_scaled, rows, independent, frozen, mobility, findings)
    actuator_condition, actuator_rank = _actuation(loops, motions, independent, mobility, findings)
    return Assembly(
        loops=loops,
        q=q[0],
        residual=float(residual[0]),
        states=states,
        singular_values=sigma,
        rank=rank,
        gap=gap,
        mobility=mobility,
        frozen=frozen,
        rows=rows,
        dropped=tuple(i for i in range(len(loops.names)) if i not in rows),
        independent=independent,
        driven=driven,
        platform_condition=platform_condition,
        actuator_condition=actuator_condition,
        actuator_rank=actuator_rank,
        findings=tuple(findings),
    )


def _close_from_reference(loops: Loops, independent: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The reference pose of the file with its platform left where it is; moved too only where that cannot close."""
    start = np.array([loops.topology.reference])
    q, residual = close_loops(loops, start, held=independent)
    if residual[0] > CLOSED:
        q, residual = close_loops(loops, start)
    if residual[0] > CLOSED:
        nearer, smaller = _close_weakly(loops, q)
        if smaller[0] < residual[0]:
            q, residual = nearer, smaller
    return q, residual


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
        Coordinates (N, n_q) and largest residuals (N,).
    """
    if not loops.names:
        return q, np.zeros(len(q))
    weight = loops.row_scale
    movable = np.ones(loops.topology.n_v)
    movable[list(held)] = 0.0
    damping = np.full(len(q), 1e-3)
    phi, K = loops.residuals(q)
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
    return q, np.abs(phi).max(axis=1)


def random_walk(
    loops: Loops,
    q: np.ndarray,
    rng: np.random.Generator,
    walks: int = WALKS,
    steps: int = WALK_STEPS,
    step: float = STEP,
) -> np.ndarray:
    """Assembled states along random walks on the loops' manifold, within the limits of the file.

    Args:
        loops: the loop equations.
        q: assembled start (1, n_q).
        rng: source of randomness.
        walks: how many walks.
        steps: steps of each.
        step: size of a step, rad or characteristic lengths.

    Returns:
        States (walks * steps + 1, n_q), the start first.
    """
    lower, upper = coordinate_limits(loops)
    current = np.repeat(q, walks, axis=0)
    states = [q]
    for _ in range(steps):
        _, K = loops.residuals(current)
        direction = rng.normal(size=(walks, loops.topology.n_v))
        if K.shape[1]:
            J = loops.scaled(K)
            _, s, Vt = np.linalg.svd(J, full_matrices=False)
            kept = np.where(s > PROJECTION_CUTOFF * s[:, :1], 1.0, 0.0)
            direction -= np.einsum("nji,nj,njk,nk->ni", Vt, kept, Vt, direction)
        size = np.abs(direction).max(axis=1, keepdims=True)
        direction *= step / np.maximum(size, 1e-12) * loops.velocity_scale
        trial, residual = close_loops(loops, integrate(loops.topology, current, direction), iterations=25)
        inside = ((trial >= lower) & (trial <= upper)).all(axis=1)
        moved = np.abs(trial - current).max(axis=1) < 10 * step * max(loops.length, 1.0)
        good = (residual < CLOSED) & inside & moved
        current = np.where(good[:, None], trial, current)
        states.append(current.copy())
    return np.concatenate(states)


def coordinate_limits(loops: Loops) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (n_q,) of the coordinates, SI; infinite where the file gives none."""
    shape = loops.topology
    lower, upper = np.full(shape.n_q, -np.inf), np.full(shape.n_q, np.inf)
    for i, freedom in zip(shape.q_of_v, shape.freedoms, strict=True):
        if i >= 0:
            lower[i], upper[i] = freedom.lower, freedom.upper
    return lower, upper


def _misses(loops: Loops, q: np.ndarray) -> np.ndarray:
    """By how much each loop misses (c,): for rods the difference of distance and length, m."""
    phi, _ = loops.residuals(q)
    misses = np.abs(phi[0])
    coordinate = dict(zip(loops.topology.coordinate_names, q[0], strict=True))
    for rod in loops.mechanism.rods:
        i = loops.elements.index(rod.name)
        length = coordinate[rod.name] if rod.length is None else loops.mechanism.value(rod.length)
        misses[i] = abs(np.sqrt(max(length**2 + 2 * length * phi[0, i], 0.0)) - length)
    return misses


def _open_loops(loops: Loops, q: np.ndarray) -> list[Problem]:
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


def _rank(sigma: np.ndarray, findings: list[Problem]) -> tuple[int, float]:
    """Rank with the largest gap common to all states; a singular reference or an unclear gap is a finding."""
    if sigma.shape[1] == 0 or sigma.size == 0:
        return 0, np.inf
    floor = np.maximum(sigma, RANK_FLOOR * 1e-6 * sigma[:, :1])
    ranks = (sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1)
    rank = int(ranks.max())
    gap = np.inf
    if rank < sigma.shape[1]:
        gap = float((floor[:, rank - 1] / floor[:, rank]).min()) if rank else np.inf
    if gap < RANK_GAP or (ranks != rank).any():
        findings.append(
            Problem(
                where="loops",
                what=f"the rank of the loop equations is unclear: it is {int(ranks.min())} to {rank} over the states "
                f"tried, with a gap of {gap:.2g} between kept and dropped singular values (needs {RANK_GAP:.0g})",
                remedy="the reference pose is singular, or joints meant to be parallel or equal are not quite so",
            )
        )
    return rank, gap


def _null_space(K_scaled: np.ndarray, rank: int) -> np.ndarray:
    """Orthonormal motions (N, n_v, mobility), unit-free."""
    n, c, n_v = K_scaled.shape
    if c == 0:
        return np.broadcast_to(np.eye(n_v), (n, n_v, n_v))
    _, _, Vt = np.linalg.svd(K_scaled, full_matrices=True)
    return Vt[:, rank:, :].transpose(0, 2, 1)


def _kept_rows(K_scaled: np.ndarray, rank: int) -> tuple[int, ...]:
    """A subset of rows that is independent at all states: pivoted QR over all of them, first rows preferred."""
    n, c, n_moving = K_scaled.shape
    if rank <= 0:
        return ()
    if rank == c:
        return tuple(range(c))
    preference = 1.0 - 1e-6 * np.arange(c) / c
    stacked = (preference[:, None, None] * K_scaled.transpose(1, 0, 2)).reshape(c, n * n_moving)
    _, _, pivots = scipy.linalg.qr(stacked.T, mode="economic", pivoting=True)
    chosen: list[int] = []
    for row in pivots:
        candidate = sorted([*chosen, int(row)])
        sigma = np.linalg.svd(K_scaled[:, candidate], compute_uv=False)
        if (sigma[:, -1] > RANK_FLOOR * sigma[:, 0]).all():
            chosen = candidate
        if len(chosen) == rank:
            break
    return tuple(chosen)


def _independent(loops: Loops) -> tuple[int, ...]:
    names = loops.topology.velocity_names
    wanted = loops.mechanism.platform.independent
    problems = [
        Problem(
            where="platform.independent",
            what=f"{name} is not a coordinate of the extended space: its joint closes a loop",
            remedy=f"choose among {', '.join(names)}",
            file=loops.mechanism.file,
        )
        for name in wanted
        if name not in names
    ]
    if problems:
        raise AssemblyError(problems)
    return tuple(names.index(name) for name in wanted)


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Condition numbers (N,) in the 2-norm; infinite where singular, one for empty matrices."""
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    sigma = np.linalg.svd(matrices, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(sigma[:, 0] / sigma[:, -1])


def _platform_condition(
    loops: Loops,
    K_scaled: np.ndarray,
    rows: tuple[int, ...],
    independent: tuple[int, ...],
    frozen: tuple[int, ...],
    mobility: int,
    findings: list[Problem],
) -> np.ndarray:
    names = [loops.topology.velocity_names[i] for i in independent]
    if len(independent) != mobility:
        findings.append(
            Problem(
                where="platform.independent",
                what=f"names {len(independent)} coordinates ({', '.join(names)}) but the mobility is {mobility}",
                remedy=f"name {mobility} coordinates, or check the joints",
                file=loops.mechanism.file,
            )
        )
        return np.full(len(K_scaled), np.inf)
    dependent = [i for i in range(loops.topology.n_v) if i not in independent and i not in frozen]
    condition = conditions(K_scaled[:, list(rows)][:, :, dependent])
    if np.median(condition) > SINGULAR:
        findings.append(
            Problem(
                where="platform.independent",
                what=f"{', '.join(names)} do not determine the pose (condition number {np.median(condition):.2g})",
                remedy="name other coordinates of the platform",
                file=loops.mechanism.file,
            )
        )
    return condition


def _actuation(
    loops: Loops, motions: np.ndarray, independent: tuple[int, ...], mobility: int, findings: list[Problem]
) -> tuple[np.ndarray, int]:
    """Condition of the map from platform to actuator velocities, and the rank of the actuation."""
    A = loops.transmission
    unit = np.abs(A * loops.velocity_scale).max(axis=1, initial=0.0)
    scaled = (A * loops.velocity_scale) / np.where(unit > 0, unit, 1.0)[:, None]
    driven = scaled @ motions
    sigma = np.linalg.svd(driven, compute_uv=False) if driven.size else np.zeros((len(motions), 0))
    rank = int((sigma > 1.0 / SINGULAR * np.maximum(sigma[:, :1], 1e-300)).sum(axis=1).max(initial=0))
    names = [actuator.name for actuator in loops.mechanism.actuators]
    if rank < mobility:
        findings.append(
            Problem(
                where="actuators",
                what=f"no actuator moves {mobility - rank} of the {mobility} freedoms of the machine"
                + (f": {_unmoved(loops, motions, scaled)}" if mobility else ""),
                remedy="add actuators, or lock the passive freedoms",
                file=loops.mechanism.file,
            )
        )
    if rank < len(names):
        findings.append(
            Problem(
                where="actuators",
                what=f"{len(names)} actuators ({', '.join(names)}) act on only {rank} freedoms",
                remedy="two of them work on the same freedom: remove one, or use redundant actuation knowingly",
                file=loops.mechanism.file,
            )
        )
    if len(independent) != mobility or rank < mobility or len(names) != mobility:
        return np.full(len(motions), np.inf), rank
    ind = motions[:, list(independent), :]
    with np.errstate(all="ignore"):
        try:
            J = driven @ np.linalg.inv(ind)
        except np.linalg.LinAlgError:
            return np.full(len(motions), np.inf), rank
    return conditions(J), rank


def _unmoved(loops: Loops, motions: np.ndarray, scaled: np.ndarray) -> str:
    """Names of the velocities that move most while all actuators rest."""
    first = motions[0]
    _, s, Vt = np.linalg.svd(scaled @ first, full_matrices=True)
    rank = int((s > 1.0 / SINGULAR).sum())
    free = np.abs(first @ Vt[rank:].T).max(axis=1)
    names = loops.topology.velocity_names
    order = np.argsort(-free)
    return ", ".join(names[i] for i in order[:4] if free[i] > 1e-6)
