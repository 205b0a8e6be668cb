"""Rank of the loops: decided once, over many assembled states, from singular values made free of units."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tauloop.errors import Problem
from tauloop.functions.closing import RANK_FLOOR, random_walk
from tauloop.functions.loops import Loops

#: Gap between kept and dropped singular values that a rank decision needs (design, "How the general machine works").
RANK_GAP = 1e3


def sampled(loops: Loops, q: np.ndarray, locked: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (N, n_q) around an assembled one, unit-free Jacobians without the locked columns, singular values."""
    states = random_walk(loops, q, np.random.default_rng(0), locked=locked)
    _, K = loops.residuals(states)
    K_scaled = loops.scaled(K)
    K_scaled[:, :, list(locked)] = 0.0
    sigma = np.linalg.svd(K_scaled, compute_uv=False) if K.shape[1] else np.zeros((len(states), 0))
    return states, K_scaled, sigma


def most_regular(sigma: np.ndarray) -> int:
    """The state farthest from a loss of rank, where the first state has lost some; else 0."""
    if sigma.shape[1] == 0 or not (sigma[:, 0] > 0).all():
        return 0
    relative = sigma / sigma[:, :1]
    ranks = (relative > RANK_FLOOR).sum(axis=1)
    rank = int(ranks.max())
    return 0 if ranks[0] == rank else int(np.argmax(relative[:, rank - 1]))


def left_singular(loops: Loops, sigma: np.ndarray) -> Problem:
    """The note that the loops are singular at the reference pose of the file, and that another one is used."""
    ranks = (sigma > RANK_FLOOR * sigma[:, :1]).sum(axis=1)
    return Problem(
        where="reference pose",
        what=f"is singular: the loops have rank {ranks[0]} there and {ranks.max()} around it, so that ways to move "
        "branch off; a regular pose nearby, on one of them, is the reference instead",
        remedy="give a reference pose on the branch that you want",
        file=loops.mechanism.file,
    )


def common_rank(sigma: np.ndarray, findings: list[Problem]) -> tuple[int, float]:
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


def kept_rows(K_scaled: np.ndarray, rank: int) -> tuple[int, ...]:
    """A subset of rows that is independent at all states: pivoted QR over all of them, first rows preferred."""
    n, c, n_moving = K_scaled.shape
    if rank <= 0:
        return ()
    if rank == c:
        return tuple(range(c))
    preference = 1.0 - 1e-6 * np.arange(c) / c
    stacked = (preference[:, None, None] * K_scaled.transpose(1, 0, 2)).reshape(c, n * n_moving)
    triangle = np.linalg.qr(stacked.T, mode="r")  # the same pivots from a small matrix, which needs no threads
    _, pivots = scipy.linalg.qr(triangle, mode="r", pivoting=True)
    chosen: list[int] = []
    for row in pivots:
        candidate = sorted([*chosen, int(row)])
        sigma = np.linalg.svd(K_scaled[:, candidate], compute_uv=False)
        if (sigma[:, -1] > RANK_FLOOR * sigma[:, 0]).all():
            chosen = candidate
        if len(chosen) == rank:
            break
    return tuple(chosen)


def conditions(matrices: np.ndarray) -> np.ndarray:
    """Condition numbers (N,) in the 2-norm; infinite where singular, one for empty matrices."""
    if matrices.shape[1] == 0 or matrices.shape[2] == 0:
        return np.ones(len(matrices))
    sigma = np.linalg.svd(matrices, compute_uv=False)
    with np.errstate(divide="ignore"):
        return np.asarray(sigma[:, 0] / sigma[:, -1])
