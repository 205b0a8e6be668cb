"""Quantiles beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tauloop.equations.values import quantile

#: Rounding of an interpolation.
ROUNDING = 1e-15


@pytest.mark.parametrize("count", [1, 2, 7, 10])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_quantiles_are_numpys(count: int, share: float) -> None:
    values = np.random.default_rng(count).normal(size=(count, 3))
    assert np.abs(quantile(values, share) - np.quantile(values, share, axis=0)).max() < ROUNDING


def test_infinite_numbers_have_a_median() -> None:
    assert quantile([1.0, np.inf, 2.0], 0.5) == 2.0
    assert quantile([np.inf, np.inf], 0.5) == np.inf
