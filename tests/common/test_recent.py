"""`Recent`: a bounded memory of values."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tauloop.common.recent import Recent


def test_computes_a_value_once():
    recent, calls = Recent(4), []
    for _ in range(3):
        assert recent.get("a", lambda: calls.append(1) or "value") == "value"
    assert len(calls) == 1


def test_removes_the_value_that_was_unused_for_longest():
    recent = Recent(2)
    for key in ("a", "b", "a", "c"):
        recent.get(key, key.upper)
    assert recent.get("a", lambda: "new") == "A"
    assert recent.get("b", lambda: "new") == "new"


def test_bounds_the_sum_of_sizes_but_keeps_the_last_value():
    recent = Recent(10)
    for size in (4, 5, 6):
        recent.get(size, lambda size=size: size, float)
    assert len(recent) == 1  # 5 + 6 exceeds the bound
    recent.get("large", lambda: 99, float)
    assert len(recent) == 1
    assert recent.get("large", lambda: 0, float) == 99
    recent.get("small", lambda: 1, float)
    assert recent.get("small", lambda: 0, float) == 1


def test_stores_nothing_when_computing_fails():
    recent = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 / 0)
    assert len(recent) == 0
    assert recent.get("a", lambda: 1.0) == 1.0


def test_threads_get_the_same_value():
    recent, barrier = Recent(2), Barrier(4)

    def compute():
        barrier.wait(timeout=10)  # all threads compute at the same time
        return object()

    with ThreadPoolExecutor(4) as threads:
        values = list(threads.map(lambda _: recent.get("a", compute), range(4)))
    assert len({id(value) for value in values}) == 1


def test_a_copy_and_a_cleared_memory_are_empty():
    recent = Recent(3)
    recent.get("a", lambda: 1)
    copy = pickle.loads(pickle.dumps(recent))
    assert (len(copy), copy.largest) == (0, 3)
    recent.clear()
    assert len(recent) == 0
