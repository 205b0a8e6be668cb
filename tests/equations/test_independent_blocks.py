"""Block-wise decompositions agree with NumPy's of the whole matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tauloop.equations.assembly.blocks import (
    independent_blocks,
    null_spaces,
    pseudo_solutions,
    singular_values,
)

SAMPLES = 3


def scattered_blocks(shapes: list[tuple[int, int]], empty: int, seed: int) -> np.ndarray:
    """Return random blocks with rows and columns in random order, and columns of zeros."""
    rng = np.random.default_rng(seed)
    rows = sum(r for r, _ in shapes)
    columns = sum(c for _, c in shapes) + empty
    matrices = np.zeros((SAMPLES, rows, columns))
    r0 = c0 = 0
    for r, c in shapes:
        matrices[:, r0 : r0 + r, c0 : c0 + c] = rng.normal(size=(SAMPLES, r, c))
        r0, c0 = r0 + r, c0 + c
    return matrices[:, rng.permutation(rows)][:, :, rng.permutation(columns)]


CASES = [
    ([(2, 3), (2, 3), (4, 2), (1, 5)], 2),
    ([(3, 3)], 0),
    ([(5, 2), (5, 2)], 1),
    ([], 4),
    ([(1, 1)] * 6, 0),
]


@pytest.mark.parametrize(("shapes", "empty"), CASES)
def test_blocks_are_found_and_solved(shapes: list[tuple[int, int]], empty: int) -> None:
    matrices = scattered_blocks(shapes, empty, seed=1)
    block_rows = [block for blocks in independent_blocks(matrices) for block in blocks.rows]
    assert sorted(len(rows) for rows in block_rows) == sorted(r for r, _ in shapes)
    expected = np.linalg.svd(matrices, compute_uv=False)
    assert singular_values(matrices) == pytest.approx(expected, abs=1e-13)
    rank = int((expected > 1e-10).sum(axis=1).max(initial=0))
    basis = null_spaces(matrices, rank)
    assert basis.shape == (SAMPLES, matrices.shape[2], matrices.shape[2] - rank)
    assert np.abs(matrices @ basis).max(initial=0.0) < 1e-13
    unit = basis.transpose(0, 2, 1) @ basis
    assert unit == pytest.approx(np.broadcast_to(np.eye(unit.shape[1]), unit.shape), abs=1e-13)
    sides = np.random.default_rng(2).normal(size=matrices.shape[:2])
    x = pseudo_solutions(matrices, sides, 1e-9, np.zeros(SAMPLES))
    inverse = np.linalg.pinv(matrices, rcond=1e-9)
    assert x == pytest.approx((inverse @ sides[:, :, None])[:, :, 0], abs=1e-11)


def test_the_cutoff_and_the_damping_are_relative_to_the_whole_matrix() -> None:
    matrices = np.diag([1.0, 1e-8, 1e-3])[None]
    sides = np.ones((1, 3))
    x = pseudo_solutions(matrices, sides, 1e-6, np.zeros(1))
    assert x[0] == pytest.approx([1.0, 0.0, 1e3])
    damped = pseudo_solutions(matrices, sides, 1e-6, np.array([1e-6]))
    assert damped[0] == pytest.approx([1.0 / (1.0 + 1e-6), 0.0, 1e-3 / (1e-6 + 1e-6)])
