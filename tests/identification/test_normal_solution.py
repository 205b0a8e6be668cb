"""Solutions of normal equations in the search for late forces, next to singular values."""

from __future__ import annotations

import numpy as np
import pytest

from tauloop.identification.faults.late_forces import DELAY_RANK_TOLERANCE, _normal_solution


def gram(smallest: float, *, n: int = 12) -> np.ndarray:
    """Return a symmetric matrix with eigenvalues from 1 down to the smallest."""
    rng = np.random.default_rng(5)
    directions = np.linalg.qr(rng.normal(size=(n, n)))[0]
    sizes = np.append(np.geomspace(1.0, 1e-3, n - 1), smallest)
    return np.asarray(directions * sizes @ directions.T)


@pytest.mark.parametrize("smallest", [1e-2, 1e-6, 1e-10, 0.0, -1e-18])
def test_all_determined_directions_are_solved(smallest: float) -> None:
    matrix = gram(smallest)
    products = matrix @ np.arange(1.0, 13.0)
    solution = _normal_solution(matrix, products)
    expected = np.linalg.pinv(matrix, rcond=DELAY_RANK_TOLERANCE) @ products
    assert solution == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert matrix @ solution == pytest.approx(products, abs=1e-12)


def test_an_indefinite_matrix_is_not_factored() -> None:
    matrix = gram(-1e-2)
    products = np.ones(12)
    expected = np.linalg.solve(matrix, products)
    assert _normal_solution(matrix, products) == pytest.approx(expected, rel=1e-9)
