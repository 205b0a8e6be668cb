"""Singular values and null spaces of matrices that consist of independent blocks.

The loops of a large machine often form groups without common coordinates. Decomposing each group
separately costs far less than decomposing the whole matrix, whose cost is cubic. The blocks are the
connected components of rows and columns with nonzero entries in at least one matrix of a batch.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True)
class EqualBlocks:
    """Independent blocks of equal size.

    Attributes:
        rows: indices of the rows of each block (B, r).
        columns: indices of the columns of each block (B, c).
    """

    rows: np.ndarray
    columns: np.ndarray

    def of(self, matrices: np.ndarray) -> np.ndarray:
        """Return the blocks (N, B, r, c) of matrices."""
        return np.asarray(matrices[:, self.rows[:, :, None], self.columns[:, None, :]])


def independent_blocks(matrices: np.ndarray) -> list[EqualBlocks]:
    """Return the independent blocks of matrices (N, r, c), grouped by their size.

    Rows and columns of zeros belong to no block.
    """
    pattern = (matrices != 0.0).any(axis=0)
    return _grouped(pattern.tobytes(), *pattern.shape)


@lru_cache(maxsize=256)
def _grouped(pattern: bytes, row_count: int, column_count: int) -> list[EqualBlocks]:
    nonzero = np.frombuffer(pattern, dtype=bool).reshape(row_count, column_count)
    grouped: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    waiting = nonzero.any(axis=1)
    while waiting.any():
        rows = np.zeros(row_count, dtype=bool)
        further = np.zeros(row_count, dtype=bool)
        further[int(np.argmax(waiting))] = True
        columns = np.zeros(column_count, dtype=bool)
        while further.any():
            rows |= further
            reached = nonzero[further].any(axis=0) & ~columns
            columns |= reached
            further = nonzero[:, reached].any(axis=1) & ~rows
        waiting &= ~rows
        block = np.flatnonzero(rows), np.flatnonzero(columns)
        grouped.setdefault((len(block[0]), len(block[1])), []).append(block)
    return [_stacked(blocks) for blocks in grouped.values()]


def _stacked(blocks: list[tuple[np.ndarray, np.ndarray]]) -> EqualBlocks:
    """Return blocks of equal size, given by the rows and columns of each."""
    rows, columns = zip(*blocks, strict=True)
    return EqualBlocks(rows=np.array(rows), columns=np.array(columns))


def singular_values(matrices: np.ndarray) -> np.ndarray:
    """Return the singular values (N, min(r, c)) of matrices (N, r, c), the largest first."""
    n, row_count, column_count = matrices.shape
    sorted_values = np.zeros((n, min(row_count, column_count)))
    values = [
        np.linalg.svd(blocks.of(matrices), compute_uv=False).reshape(n, -1)
        for blocks in independent_blocks(matrices)
    ]
    if values:
        joined = -np.sort(-np.concatenate(values, axis=1), axis=1)
        sorted_values[:, : joined.shape[1]] = joined
    return sorted_values


def pseudo_solutions(
    matrices: np.ndarray, sides: np.ndarray, cutoff: float, damping: np.ndarray
) -> np.ndarray:
    """Return damped least-squares solutions x (N, c) of A x = b.

    x = V diag(s / (s^2 + damping s_1^2)) U^T b over the singular values s above `cutoff` s_1.

    Args:
        matrices: A (N, r, c).
        sides: b (N, r).
        cutoff: smallest singular value that counts, relative to the largest one s_1.
        damping: damping (N,), relative to s_1^2.
    """
    x = np.zeros((len(matrices), matrices.shape[2]))
    parts = [
        (blocks, *np.linalg.svd(blocks.of(matrices), full_matrices=False))
        for blocks in independent_blocks(matrices)
    ]
    if not parts:
        return x
    largest = np.max([s[:, :, 0].max(axis=1) for _, _, s, _ in parts], axis=0)[:, None, None]
    for blocks, U, s, Vt in parts:
        kept = np.where(s > cutoff * largest, s, 0.0)
        inverse = kept / (kept**2 + damping[:, None, None] * largest**2 + 1e-300)
        components = (sides[:, blocks.rows][:, :, None, :] @ U)[:, :, 0]
        x[:, blocks.columns] = ((inverse * components)[:, :, None, :] @ Vt)[:, :, 0]
    return x


def null_spaces(matrices: np.ndarray, rank: int) -> np.ndarray:
    """Return orthonormal bases (N, c, c - rank) of the null spaces of matrices (N, r, c).

    If a matrix has a higher rank, its basis belongs to the smallest singular values.
    """
    n, _, column_count = matrices.shape
    parts = independent_blocks(matrices)
    solved = [(blocks, *np.linalg.svd(blocks.of(matrices))[1:]) for blocks in parts]
    sizes = [_padded(s, blocks.columns.shape[1]) for blocks, s, _ in solved]
    # `np.setdiff1d` imports masked arrays, which takes longer than computing the bases
    is_free = np.ones(column_count, dtype=bool)
    for part in parts:
        is_free[part.columns.ravel()] = False
    free = np.flatnonzero(is_free)
    values = np.concatenate(
        [*(size.reshape(n, -1) for size in sizes), np.zeros((n, len(free)))], axis=1
    )
    vectors = np.zeros((n, column_count, column_count))
    start = 0
    for blocks, _, Vt in solved:
        count, size = blocks.columns.shape
        rows = start + np.arange(count * size).reshape(count, size)
        vectors[:, rows[:, :, None], blocks.columns[:, None, :]] = Vt
        start += count * size
    vectors[:, start + np.arange(len(free)), free] = 1.0
    order = np.argsort(-values, axis=1, kind="stable")[:, rank:]
    return np.take_along_axis(vectors, order[:, :, None], axis=1).transpose(0, 2, 1)


def _padded(s: np.ndarray, size: int) -> np.ndarray:
    """Return singular values (N, B, k) with zeros up to the number of columns."""
    return np.concatenate([s, np.zeros((*s.shape[:2], size - s.shape[2]))], axis=2)
