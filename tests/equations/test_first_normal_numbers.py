"""The stored normal numbers are those of NumPy's generator."""

from __future__ import annotations

import numpy as np

from tauloop.equations.assembly.closing import FirstNormalNumbers, stored_numbers


def test_stored_numbers_are_those_of_numpy():
    numbers = stored_numbers()
    assert np.array_equal(numbers, np.random.default_rng(0).normal(size=len(numbers)))


def test_numbers_continue_after_the_stored_ones():
    ours, numpy = FirstNormalNumbers(), np.random.default_rng(0)
    for size in ((6, 12), (6, 12), (30, 40), (2, 3)):
        assert np.array_equal(ours.normal(size=size), numpy.normal(size=size))


def test_stored_numbers_do_not_change_with_an_array_made_of_them():
    first = FirstNormalNumbers().normal(size=(2, 2))
    first[:] = 0.0
    assert (FirstNormalNumbers().normal(size=(2, 2)) != 0.0).all()
