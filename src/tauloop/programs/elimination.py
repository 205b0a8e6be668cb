"""Gaussian elimination written out as straight-line code, in a pivot order fixed beforehand.

The order is chosen at build from sampled states, so that nothing is compared at run time and nothing divides by
zero where the natural order would; the pivots are kept as evidence.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

#: A pivot whose worst relative size is at least this share of the best candidate's may be taken for its sparsity.
PREFERENCE = 0.2


def pivot_order(samples: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Rows and columns in which to eliminate, chosen for the worst pivot over all samples.

    At every step the candidates are judged by their least size over the samples, relative to the largest entry of
    their row; among the good ones the one that fills in least is taken (Markowitz).

    Args:
        samples: matrices (M, n, n) at sampled states.

    Returns:
        n pairs (row, column).
    """
    work = np.array(samples, dtype=float)
    n = work.shape[1]
    work = work / np.maximum(np.abs(work).max(axis=2, keepdims=True), 1e-300)
    work = work / np.maximum(np.abs(work).max(axis=1, keepdims=True), 1e-300)
    rows, columns = list(range(n)), list(range(n))
    order: list[tuple[int, int]] = []
    while rows:
        block = np.abs(work[:, rows][:, :, columns])
        largest = np.maximum(block.max(axis=2, keepdims=True), 1e-300)
        size = (block / largest).min(axis=0) * np.minimum(1.0, block.min(axis=0) / 1e-6)
        pattern = block.max(axis=0) > 1e-12
        fill = np.outer(pattern.sum(axis=1) - 1, pattern.sum(axis=0) - 1).astype(float)
        fill[size < PREFERENCE * size.max()] = np.inf
        best = np.argmin(fill - 1e-3 * size)
        i, j = rows[best // len(columns)], columns[best % len(columns)]
        order.append((i, j))
        rows.remove(i)
        columns.remove(j)
        pivot = work[:, i, j]
        with np.errstate(all="ignore"):
            factor = work[:, :, j] / pivot[:, None]
        factor = np.where(np.isfinite(factor), factor, 0.0)
        for r in rows:
            work[:, r] -= factor[:, r, None] * work[:, i]
    return tuple(order)


def eliminate(A: ca.SX, b: ca.SX, order: tuple[tuple[int, int], ...]) -> tuple[ca.SX, ca.SX]:
    """Solve A x = b by elimination in a given order.

    Args:
        A: matrix (n, n).
        b: right sides (n, k).
        order: n pairs (row, column).

    Returns:
        x (n, k) and the pivots (n,).
    """
    A, b = ca.SX(A), ca.SX(b)
    pivots: list[ca.SX] = []
    reciprocals: list[ca.SX | None] = []
    for step, (i, j) in enumerate(order):
        pivots.append(A[i, j])
        rest = order[step + 1 :]
        # the last reciprocal would be used only once: a division is shorter
        reciprocal = 1 / A[i, j]
        reciprocals.append(reciprocal if rest else None)
        for r, _ in rest:
            if A[r, j].is_zero():
                continue
            factor = A[r, j] * reciprocal
            for _, c in rest:
                if not A[i, c].is_zero():
                    A[r, c] = A[r, c] - factor * A[i, c]
            b[r, :] = b[r, :] - factor * b[i, :]
    x = ca.SX(*b.shape)
    for step in range(len(order) - 1, -1, -1):
        i, j = order[step]
        value = b[i, :]
        for _, c in order[step + 1 :]:
            if not A[i, c].is_zero():
                value = value - A[i, c] * x[c, :]
        inverse = reciprocals[step]
        x[j, :] = value / A[i, j] if inverse is None else value * inverse
    return x, ca.vertcat(ca.SX(0, 1), *pivots)


def solve_symmetric(A: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Solve A x = b for a symmetric positive matrix by L D L^T, which needs no pivoting; only the lower half is read.

    Returns:
        x (n, k) and the pivots D (n,).
    """
    n = A.size1()
    A, x = ca.SX(A), ca.SX(b)
    L = ca.SX(n, n)
    reciprocals: list[ca.SX] = []
    pivots: list[ca.SX] = []
    for j in range(n):
        pivots.append(A[j, j])
        reciprocals.append(1 / A[j, j])
        for i in range(j + 1, n):
            L[i, j] = A[i, j] * reciprocals[j]
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                A[i, k] = A[i, k] - L[i, j] * A[k, j]
    for j in range(n):
        for i in range(j + 1, n):
            x[i, :] = x[i, :] - L[i, j] * x[j, :]
    for j in range(n - 1, -1, -1):
        x[j, :] = x[j, :] * reciprocals[j]
        for i in range(j + 1, n):
            x[j, :] = x[j, :] - L[i, j] * x[i, :]
    return x, ca.vertcat(ca.SX(0, 1), *pivots)
