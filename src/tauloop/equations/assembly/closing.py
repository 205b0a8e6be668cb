"""Closing of the loops from a reference pose, and random walks to other assembled states.

The loop equations of a joint that fixes directions (a weld, a hinge) require some directions to be
perpendicular. This is also true at wrong orientations, a third or half a revolution away. If a
joint closes at such an orientation, or does not close, additional equations require axes to
coincide (`loops.aligned`). Equations for the limits of coordinates help to close loops from a
distant start within the limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.execution.blas import one_blas_thread
from tauloop.common.names.lazy import lazy_functions
from tauloop.common.records import dataclass
from tauloop.equations.assembly.blocks import pseudo_solutions, singular_values
from tauloop.equations.assembly.limits import coordinate_limits, limits_of
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import integrate

if TYPE_CHECKING:
    from tauloop.equations.assembly.distant_start import close_from_distant_start
else:
    (close_from_distant_start,) = lazy_functions(
        "tauloop.equations.assembly.distant_start", "close_from_distant_start"
    )

#: Loops count as closed below this residual, characteristic lengths (or dimensionless).
CLOSED = 1e-10
#: Residual, in characteristic lengths, below which open loops are due to rounded numbers in the
#: file (six digits).
ROUNDED_NUMBERS = 1e-5
#: Iterations that close loops stop at this residual, characteristic lengths (or dimensionless).
RESIDUAL_ROUNDING = 1e-14
#: Below this residual, iterations also stop if a step hardly reduces it, because rounding errors of
#: long chains of links exceed `RESIDUAL_ROUNDING`.
CHAIN_ROUNDING = 1e-12
#: Ratio of the residuals after and before a step above which the step hardly reduces it.
STAGNATION_RATIO = 0.5
#: Singular values of the dimensionless Jacobian below this fraction of the largest are ignored in
#: the projection.
PROJECTION_CUTOFF = 1e-6
#: Singular values below this fraction of the largest belong to loops that are nearly redundant.
WEAK_SINGULAR_VALUE = 1e-3
#: Singular values below this fraction of the largest count as zero, regardless of the gap.
RANK_FLOOR = 1e-9
#: Difference below which axes count as coincident. Wrong orientations are at least a quarter of a
#: revolution away.
AXIS_TOLERANCE = 1e-6
#: Number of Gauss-Newton iterations from a distant start.
FAR_ITERATIONS = 300
#: Number of random starts around it, and largest standard deviation of their displacements (rad, or
#: characteristic lengths).
FAR_STARTS, START_SCATTER = 12, 0.6
#: Number of random walks to the states at which the rank is determined, and steps per walk.
WALK_COUNT, WALK_STEPS = 6, 6
#: Length of such a step, rad or characteristic lengths.
WALK_STEP = 0.08


def close_from_reference(
    loops: Loops, independent: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the assembled pose with the platform at the file's values, or the nearest pose found.

    The platform moves only if the loops do not close otherwise.

    Args:
        loops: the loop equations.
        independent: velocities whose coordinates keep the file's values if the loops close there.

    Returns:
        Coordinates (1, n_q) and the largest residual (1,), characteristic lengths (or
        dimensionless).
    """
    start = np.array([loops.topology.reference])
    q, residual = close_loops(loops, start, held=independent)
    if residual[0] > CLOSED:
        q, residual = close_loops(loops, start)
    if residual[0] > CLOSED:
        nearer, smaller = _close_weakly(loops, q)
        if smaller[0] < residual[0]:
            q, residual = nearer, smaller
    return _with_right_orientations(loops, start, q, residual)


def _with_right_orientations(
    loops: Loops, start: np.ndarray, q: np.ndarray, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a better pose, if one is found, for open loops or wrongly oriented joints."""
    strict = loops.aligned
    if residual[0] <= CLOSED and strict.openings(strict.residuals(q)[0]).max() < AXIS_TOLERANCE:
        return q, residual
    for nearer, strict_residual in _attempts(strict, start):
        if strict_residual < AXIS_TOLERANCE:
            closed, closed_residual = close_loops(loops, nearer)
            if closed_residual[0] <= CLOSED:
                return closed, closed_residual
    return q, residual


def _attempts(loops: Loops, start: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """Yield coordinates (1, n_q) and residuals of attempts, with short steps first."""
    q, residual = close_loops(loops, start, iterations=FAR_ITERATIONS)
    yield q, float(residual[0])
    for trial in (start, *scattered(loops, start)):
        nearer, residual_of_trial = close_from_distant_start(loops, trial[0])
        yield nearer[None, :], residual_of_trial


def scattered(loops: Loops, start: np.ndarray) -> list[np.ndarray]:
    """Return further starts (1, n_q) around a pose at growing distances; repeated calls agree."""
    rng = np.random.default_rng(0)
    spread = np.linspace(START_SCATTER / FAR_STARTS, START_SCATTER, FAR_STARTS)
    steps = (
        rng.normal(size=(FAR_STARTS, loops.topology.n_v)) * spread[:, None] * loops.velocity_scale
    )
    return [integrate(loops.topology, start, step[None, :]) for step in steps]


def _close_weakly(loops: Loops, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Close nearly redundant loops by steps along weak directions, closing the others after each.

    A small error of directions that should be parallel leaves a residual. Only a large motion along
    a curved valley of the cost removes it, which ordinary steps cannot follow.
    """
    phi, K = loops.residuals(q)
    for _ in range(60):
        if loops.openings(phi).max() < CLOSED:
            break
        step = _full_step(loops, phi, K, RANK_FLOOR, WEAK_SINGULAR_VALUE)
        step *= np.minimum(1.0, WALK_STEP / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        for halving in range(8):
            trial = integrate(loops.topology, q, 0.5**halving * step * loops.velocity_scale)
            trial = _close_strongly(loops, trial)
            trial_phi, trial_K = loops.residuals(trial)
            if loops.openings(trial_phi).max() < loops.openings(phi).max():
                q, phi, K = trial, trial_phi, trial_K
                break
        else:
            break
    return q, loops.openings(phi)


def _close_strongly(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Return the pose after Gauss-Newton steps along the strong directions."""
    for _ in range(8):
        phi, K = loops.residuals(q)
        step = _full_step(loops, phi, K, WEAK_SINGULAR_VALUE)
        q = integrate(loops.topology, q, step * loops.velocity_scale)
    return q


def _full_step(
    loops: Loops, phi: np.ndarray, K: np.ndarray, least: float, most: float = np.inf
) -> np.ndarray:
    """Return the dimensionless Gauss-Newton step (N, n_v) along some singular vectors.

    Their singular values are between the fractions `least` and `most` of the largest one.
    """
    U, s, Vt = np.linalg.svd(loops.scaled(K), full_matrices=False)
    kept = (s >= least * s[:, :1]) & (s < most * s[:, :1])
    inverse = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    return -_along_singular_vectors(U, inverse, Vt, loops.row_scale * phi)


@one_blas_thread()
@np.errstate(over="ignore", invalid="ignore")  # starts may be too far away for finite numbers
def close_loops(
    loops: Loops, q: np.ndarray, iterations: int = 80, held: tuple[int, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest assembled states by damped Gauss-Newton iterations.

    Args:
        loops: the loop equations.
        q: start values (N, n_q).
        iterations: maximum number of steps.
        held: indices of velocities whose coordinates do not move.

    Returns:
        Coordinates (N, n_q) and largest residuals (N,), characteristic lengths (or dimensionless);
        infinite if a start is too far away for finite numbers.
    """
    if not loops.names:
        return q, np.zeros(len(q))
    movable = np.ones(loops.topology.n_v)
    movable[list(held)] = 0.0
    q = np.array(q, dtype=float)
    phi, K = loops.residuals(q)
    lost = ~(np.isfinite(phi).all(axis=1) & np.isfinite(K).all(axis=(1, 2)))
    phi[lost] = 0.0
    cost = np.sum((loops.row_scale * phi) ** 2, axis=1)
    damping = np.full(len(q), 1e-3)
    open_samples = np.flatnonzero(loops.openings(phi) >= RESIDUAL_ROUNDING)
    for _ in range(iterations):
        if not open_samples.size:
            break
        i = open_samples
        step = _damped_step(loops, phi[i], loops.scaled(K[i]) * movable, damping[i])
        trial = integrate(loops.topology, q[i], step)
        trial_phi, trial_K = loops.residuals(trial)
        trial_cost = np.sum((loops.row_scale * trial_phi) ** 2, axis=1)
        is_better = trial_cost < cost[i]
        # Rounding errors grow with the machine, so stop when the residual hardly decreases.
        gains_little = trial_cost > STAGNATION_RATIO**2 * cost[i]
        j = i[is_better]
        q[j], phi[j], K[j] = trial[is_better], trial_phi[is_better], trial_K[is_better]
        cost[j] = trial_cost[is_better]
        smaller = np.where(damping[i] < 1e-12, 0.0, damping[i] * 0.1)
        larger = np.maximum(damping[i], 1e-12) * 10
        damping[i] = np.where(is_better, smaller, larger)
        opening = loops.openings(phi[i])
        is_done = (opening < RESIDUAL_ROUNDING) | ((opening < CHAIN_ROUNDING) & gains_little)
        open_samples = i[~is_done]
        if not is_better.any() and damping[i].min() > 1e3:
            break
    return q, np.where(lost, np.inf, loops.openings(phi))


def _damped_step(loops: Loops, phi: np.ndarray, J: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return damped Gauss-Newton steps (N, n_v) of at most 0.3 rad or characteristic lengths."""
    step = -pseudo_solutions(J, loops.row_scale * phi, PROJECTION_CUTOFF, damping)
    longest = np.abs(step).max(axis=1)
    step *= np.minimum(1.0, 0.3 / np.maximum(longest, 1e-300))[:, None]
    return step * loops.velocity_scale


def _along_singular_vectors(
    U: np.ndarray, weights: np.ndarray, Vt: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return V diag(weights) U^T rows, sample by sample (N, n_v)."""
    components = np.einsum("nkj,nk->nj", U, rows)
    return np.einsum("nji,nj->ni", Vt, weights * components)


class NormalSource(Protocol):
    """A source of normally distributed numbers, such as `np.random.Generator`."""

    def normal(self, *, size: tuple[int, int]) -> np.ndarray:
        """Return normally distributed numbers in an array of the given shape."""
        ...


class FirstNormalNumbers:
    """The normally distributed numbers of ``np.random.default_rng(0)``, in order.

    The first 1024 numbers, enough for 28 velocities, are read from a file, because importing
    `numpy.random` takes as long as assembling a small machine.
    """

    def __init__(self) -> None:
        """Start with the first number."""
        self._used = 0

    def normal(self, *, size: tuple[int, int]) -> np.ndarray:
        """Return the next numbers in an array of the given shape."""
        first, self._used = self._used, self._used + math.prod(size)
        numbers = stored_numbers()
        if self._used > len(numbers):
            numbers = np.random.default_rng(0).normal(size=self._used)
        return numbers[first : self._used].reshape(size).copy()


@lru_cache(maxsize=1)
def stored_numbers() -> np.ndarray:
    """Return the numbers of the file (1024,)."""
    text = Path(__file__).with_name("normal_numbers.txt").read_text(encoding="ascii")
    return np.array(text.split(), dtype=float)


def random_walk(
    loops: Loops,
    q: np.ndarray,
    rng: NormalSource,
    walks: int = WALK_COUNT,
    steps: int = WALK_STEPS,
    step: float = WALK_STEP,
    locked: tuple[int, ...] = (),
    mirrored: bool = False,
) -> np.ndarray:
    """Return assembled states along random walks.

    The walks stay within the limits of all coordinates that the start does not exceed.

    Args:
        loops: the loop equations.
        q: assembled start (1, n_q).
        rng: source of normal numbers, such as a generator of NumPy.
        walks: number of walks.
        steps: number of steps per walk.
        step: size of a step, rad or characteristic lengths.
        locked: indices of velocities that stay zero.
        mirrored: whether a coordinate that passes a limit is mirrored at the limit. Otherwise the
            whole step is skipped, which happens to nearly all steps if many coordinates start at a
            limit.

    Returns:
        States (walks * steps + 1, n_q), the start first.
    """
    limits = limits_of(loops.mechanism, loops.topology)
    starts_outside = limits.margins(q)[0] < 0.0
    current = np.repeat(q, walks, axis=0)
    states = [q]
    for _ in range(steps):
        _, K = loops.residuals(current)
        direction = rng.normal(size=(walks, loops.topology.n_v))
        direction[:, list(locked)] = 0.0
        if K.shape[1]:
            J = loops.scaled(K)
            J[:, :, list(locked)] = 0.0
            moving = (J @ direction[:, :, None])[:, :, 0]
            direction -= pseudo_solutions(J, moving, PROJECTION_CUTOFF, np.zeros(walks))
        size = np.abs(direction).max(axis=1, keepdims=True)
        direction *= step / np.maximum(size, 1e-12) * loops.velocity_scale
        target = integrate(loops.topology, current, direction)
        if mirrored:
            target = _mirrored(loops, current, target)
        trial, residual = close_loops(loops, target, 25, locked)
        inside = ((limits.room(trial) >= 0.0) | starts_outside).all(axis=1)
        is_near = loops.gaps(current, trial) < 10 * step
        good = (residual < CLOSED) & inside & is_near
        current = np.where(good[:, None], trial, current)
        states.append(current.copy())
    return np.concatenate(states)


def _mirrored(loops: Loops, inside: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return coordinates (N, n_q), mirrored at the limits that they exceed."""
    lower, upper = coordinate_limits(loops.topology)
    above = np.where((q > upper) & (inside <= upper), 2.0 * upper - q, q)
    return np.where((q < lower) & (inside >= lower), 2.0 * lower - q, above)


@np.errstate(over="ignore", invalid="ignore")
def _loop_errors(loops: Loops, q: np.ndarray) -> np.ndarray:
    """Return the error of each loop (c,): for rods the difference of distance and length, m."""
    phi, _ = loops.residuals(q)
    errors = np.abs(phi[0])
    coordinate = dict(zip(loops.topology.coordinate_names, q[0], strict=True))
    for rod in loops.mechanism.rods:
        if rod.drum is not None:
            continue
        i = loops.elements.index(rod.name)
        length = coordinate[rod.name] if rod.length is None else loops.mechanism.value(rod.length)
        errors[i] = abs(np.sqrt(max(length**2 + 2 * length * phi[0, i], 0.0)) - length)
    return np.nan_to_num(errors, nan=np.inf)


def open_loops(loops: Loops, q: np.ndarray) -> list[Problem]:
    """Return the problems of loops that are open at a pose (1, n_q), the largest error first."""
    phi = _loop_errors(loops, q)
    remedy = (
        "check lengths and joint positions, or give a reference pose nearer to an assembled pose"
    )
    if loops.openings(loops.residuals(q)[0]).max() < ROUNDED_NUMBERS:
        remedy = (
            "rounded numbers in a file cause errors of this size: loops with redundant constraints "
            "close only with exact numbers; write the numbers with 15 digits, or remove redundant "
            "constraints (one contact point fewer, a ball joint instead of a hinge)"
        )
    worst: dict[str, tuple[float, bool]] = {}
    for element, value, is_length in zip(loops.elements, phi, loops.is_length, strict=True):
        opening = value / loops.length if is_length else value
        if opening > CLOSED and value > worst.get(element, (0.0, True))[0]:
            worst[element] = (float(value), bool(is_length))
    return [
        Problem(
            where=element,
            what=f"the loop cannot be closed at this geometry: it misses by {1e3 * value:.4g} mm"
            if is_length
            else f"the loop cannot be closed at this geometry: directions miss by {value:.4g} rad",
            remedy=remedy,
            file=loops.mechanism.file,
        )
        for element, (value, is_length) in sorted(worst.items(), key=lambda item: -item[1][0])
    ]


#: Step lengths of the walks to other states, which are tried in this order, rad or characteristic
#: lengths.
PROBE_STEPS = (WALK_STEP, 0.1 * WALK_STEP, 0.01 * WALK_STEP)
#: Difference below which states count as equal, rad or characteristic lengths.
STATE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Assembled states around a pose, at which properties of the machine are determined.

    Attributes:
        q: the pose (1, n_q), assembled.
        residual: largest residual at the pose, m.
        states: states (N, n_q), the pose first.
        K: dimensionless Jacobians (N, c, n_v) at the states, without the columns of locked
            velocities.
        sigma: singular values of K (N, min(c, n_v)).
    """

    q: np.ndarray
    residual: float
    states: np.ndarray
    K: np.ndarray
    sigma: np.ndarray

    def standing_still(self, loops: Loops) -> tuple[Problem, ...]:
        """Return the problem that all states are equal; empty if they differ."""
        if (loops.gaps(self.q, self.states) > STATE_TOLERANCE).any():
            return ()
        return (
            Problem(
                where=loops.mechanism.name,
                what=f"all {len(self.states)} poses tried around the reference pose equal it: "
                "nothing moves within the limits, and rank, mobility and condition numbers from a "
                "single pose are unreliable",
                remedy="give a reference pose inside the limits, away from their ends, or widen "
                "the limits; make joints that must not move fixed joints",
                file=loops.mechanism.file,
            ),
        )


@one_blas_thread()
def probed(loops: Loops, q: np.ndarray, locked: tuple[int, ...]) -> Probe:
    """Return states around an assembled pose (1, n_q); steps are shorter if limits are narrow."""
    states = q
    for step in PROBE_STEPS:
        states = random_walk(loops, q, FirstNormalNumbers(), step=step, locked=locked)
        if (loops.gaps(q, states) > STATE_TOLERANCE).any():
            break
    else:
        states = random_walk(
            loops, q, FirstNormalNumbers(), step=PROBE_STEPS[-1], locked=locked, mirrored=True
        )
    phi, K = loops.residuals(states)
    K_scaled = loops.scaled(K)
    K_scaled[:, :, list(locked)] = 0.0
    sigma = singular_values(K_scaled)
    return Probe(
        q=q, residual=float(loops.largest_residual(phi)[0]), states=states, K=K_scaled, sigma=sigma
    )
