"""Functions of CasADi on any number of samples: by NumPy, in several threads, and as copies."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from tauloop.equations.values import BatchFunction


def function() -> BatchFunction:
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    return BatchFunction(ca.Function("f", [x, y], [x * y[0] + y[1], ca.sum1(x), ca.SX(0, 1)]))


def expected(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x * y[:, :1] + y[:, 1:], x.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 600])
def test_values_are_numpys_for_any_number_of_samples(n: int) -> None:
    rng = np.random.default_rng(n)
    f, x, row = function(), rng.normal(size=(n, 3)), rng.normal(size=(1, 2))
    y = np.broadcast_to(row, (n, 2))  # as of a value that all samples share
    for _ in range(2):  # memory of the first call is used again
        outputs = f([x, y], n)
        assert [array.shape for array in outputs] == [(n, 3), (n, 1), (n, 0)]
        for array, values in zip(outputs, expected(x, y), strict=False):
            assert np.allclose(array, values, rtol=1e-15, atol=1e-15)


def test_a_later_call_does_not_change_an_earlier_result() -> None:
    f, x, y = function(), np.ones((8, 3)), np.ones((8, 2))
    first = f([x, y], 8)[0]
    f([5.0 * x, y], 8)
    assert np.array_equal(first, np.full((8, 3), 2.0))


def test_threads_do_not_share_memory() -> None:
    f, rng = function(), np.random.default_rng(1)
    batches = [(rng.normal(size=(200, 3)), rng.normal(size=(200, 2))) for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(lambda batch: f(list(batch), 200)[0], batches))
    for array, batch in zip(outputs, batches, strict=True):
        assert np.allclose(array, expected(*batch)[0], rtol=1e-15, atol=1e-15)


def test_a_copy_computes_the_same() -> None:
    f, x, y = function(), np.ones((9, 3)), np.ones((9, 2))
    assert np.array_equal(copy.deepcopy(f)([x, y], 9)[0], f([x, y], 9)[0])
