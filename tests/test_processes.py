"""Work shared out over processes: in its order, with the first error, and what is said of a process that was killed."""

from __future__ import annotations

import operator
import os

import pytest

from tauloop.errors import EngineError
from tauloop.processes import SharedWork


def test_results_come_in_order_and_errors_with_the_first_item_that_fails():
    items = list(range(1, 40))
    with SharedWork(2) as shared:
        assert list(shared.results(operator.pow, 3, items)) == [3**k for k in items]
        with pytest.raises(ZeroDivisionError):
            list(shared.results(operator.floordiv, 7, [1, 0, 2]))
        assert list(shared.results(operator.floordiv, 7, [3, 2])) == [2, 3]
        with pytest.raises(EngineError, match="one of them was killed"):
            list(shared.results(operator.call, os._exit, [3, 3]))


def test_alone_no_process_is_started():
    here = SharedWork()
    assert list(here.results(operator.sub, os.getpid(), [os.getpid(), 0])) == [0, os.getpid()]
