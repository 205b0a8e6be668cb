"""Times of Python calls."""

from __future__ import annotations

import time
from collections.abc import Callable

#: States that a Python loop goes through: few, so that a sweep is short and rarely disturbed.
LOOP = 32


def seconds_per_call(work: Callable[[], object], budget: float, calls: int = 1) -> float:
    """Return the least time of `work` over as many runs as fit into the budget (s), divided by its calls.

    One run is made beforehand, to fill caches and to complete lazy initialization.
    """
    work()
    best, start = float("inf"), time.perf_counter()
    while True:
        before = time.perf_counter()
        work()
        after = time.perf_counter()
        best = min(best, after - before)
        if after - start >= budget:
            return best / calls
