"""Rank of the loops: decided once, over many assembled states, from singular values made free of units."""

from __future__ import annotations

import numpy as np

from tauloop.assembly.closing import RANK_FLOOR, STEP, random_walk
from tauloop.assembly.freedoms import independent_rows
from tauloop.assembly.loops import Loops
from tauloop.errors import Problem, Problems
from tauloop.records import dataclass

#: Gap between kept and dropped singular values that a rank decision needs (design, "How the general machine works").
RANK_GAP = 1e3
#: A pose is singular where a kept singular value falls below this share of the largest, and not so at other poses.
NEARLY = 1e-6
#: Steps of the walks to further states, rad or characteristic lengths; states that differ by less are one.
STEPS, SAME = (STEP, 0.1 * STEP, 0.01 * STEP), 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Assembled states around a pose, over which decisions are made.

    Attributes:
        q: the pose (1, n_q), assembled.
        residual: largest residual there (1,).
        states: states (N, n_q), the pose first.
        K: unit-free Jacobians (N, c, n_v) there, without the columns of locked velocities.
        sigma: their singular values (N, min(c, n_v)).
    """

    q: np.ndarray
    residual: np.ndarray
    states: np.ndarray
    K: np.ndarray
    sigma: np.ndarray

    def standing_still(self, loops: Loops) -> tuple[Problem, ...]:
        """The finding that all states are one pose; none where they differ."""
        if (np.abs(self.states - self.q) > SAME).any():
            return ()
        return (
            Problem(
                where=loops.mechanism.name,
                what=f"all {len(self.states)} poses tried around the reference pose are that pose: nothing moves within"
                " the limits, and rank, mobility and conditions decided at one pose cannot be relied on",
                remedy="give a reference pose within the limits and away from their ends, or widen them; a joint that "
                "is not meant to move is a fixed one",
                file=loops.mechanism.file,
            ),
        )


def probed(loops: Loops, q: np.ndarray, locked: tuple[int, ...]) -> Probe:
    """States around an assembled pose (1, n_q), by shorter steps where limits allow no long ones."""
    states = q
    for step in STEPS:
        states = random_walk(loops, q, np.random.default_rng(0), step=step, locked=locked)
        if (np.abs(states - q) > SAME).any():
            break
    phi, K = loops.residuals(states)
    K_scaled = loops.scaled(K)
    K_scaled[:, :, list(locked)] = 0.0
    sigma = np.linalg.svd(K_scaled, compute_uv=False) if K.shape[1] else np.zeros((len(states), 0))
    return Probe(q=q, residual=np.abs(phi[:1]).max(axis=1, initial=0.0), states=states, K=K_scaled, sigma=sigma)


def most_regular(sigma: np.ndarray) -> int:
    """The state farthest from a loss of rank, where the first state has lost some, or nearly; else 0."""
    if sigma.shape[1] == 0 or not (sigma[:, 0] > 0).all():
        return 0
    relative = sigma / sigma[:, :1]
    ranks = (relative > RANK_FLOOR).sum(axis=1)
    rank = int(ranks.max())
    if rank == 0:
        return 0
    least = relative[:, rank - 1]
    best = int(np.argmax(least))
    nearly = least[0] < NEARLY and least[best] > RANK_GAP * least[0]
    return best if ranks[0] < rank or nearly else 0


def common_rank(sigma: np.ndarray, findings: Problems) -> tuple[int, float]:
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
        findings.add(
            "loops",
            f"the rank of the loop equations is unclear: it is {int(ranks.min())} to {rank} over the states "
            f"tried, with a gap of {gap:.2g} between kept and dropped singular values (needs {RANK_GAP:.0g})",
            "the reference pose is singular, or joints meant to be parallel or equal are not quite so",
        )
    return rank, gap


def null_space(K_scaled: np.ndarray, rank: int, free: list[int]) -> np.ndarray:
    """Orthonormal motions (N, n_v, mobility), unit-free; velocities that are not free rest."""
    n, c, n_v = K_scaled.shape
    motions = np.zeros((n, n_v, len(free) - rank))
    if c == 0:
        motions[:, free] = np.eye(len(free))
        return motions
    _, _, Vt = np.linalg.svd(K_scaled[:, :, free], full_matrices=True)
    motions[:, free] = Vt[:, rank:, :].transpose(0, 2, 1)
    return motions


def motions_at(loops: Loops, q: np.ndarray, rank: int, locked: tuple[int, ...]) -> np.ndarray:
    """Motions (1, n_v, mobility), as of `null_space`, at a pose (1, n_q); none where the loops have less rank there."""
    free = [i for i in range(loops.topology.n_v) if i not in locked]
    K = loops.scaled(loops.residuals(q)[1])
    motions = null_space(K, rank, free)
    sigma = np.linalg.svd(K[:, :, free], compute_uv=False) if K.shape[1] else np.ones((1, 1))
    return motions[: int(rank == 0 or sigma[0, rank - 1] > RANK_FLOOR * sigma[0, 0])]


def kept_rows(K_scaled: np.ndarray, rank: int) -> tuple[int, ...]:
    """A subset of rows that is independent at all states: pivots over all of them, first rows preferred."""
    n, c, n_moving = K_scaled.shape
    if rank <= 0:
        return ()
    if rank == c:
        return tuple(range(c))
    preference = 1.0 - 1e-6 * np.arange(c) / c
    stacked = (preference[:, None, None] * K_scaled.transpose(1, 0, 2)).reshape(c, n * n_moving)
    triangle = np.asarray(
        np.linalg.qr(stacked.T, mode="r")
    )  # the same pivots from a small matrix, which needs no threads
    chosen: list[int] = []
    for row in independent_rows(triangle.T[None], c):
        candidate = sorted([*chosen, row])
        sigma = np.linalg.svd(K_scaled[:, candidate], compute_uv=False)
        if (sigma[:, -1] > RANK_FLOOR * sigma[:, 0]).all():
            chosen = candidate
        if len(chosen) == rank:
            break
    return tuple(chosen)


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Condition numbers (N,) in the 2-norm; infinite where singular or not finite, one for empty matrices."""
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    found = np.full(len(matrices), np.inf)
    known = np.isfinite(matrices).all(axis=(1, 2))
    sigma = np.linalg.svd(matrices[known], compute_uv=False)
    with np.errstate(divide="ignore"):
        found[known] = np.maximum(sigma[:, 0], 1e-300) / sigma[:, -1]
    return found
