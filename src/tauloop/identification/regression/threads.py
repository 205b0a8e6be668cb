"""Linear algebra of an identification: in one thread, for several wait longer than they work, and with named errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

from tauloop.errors import IdentificationError, solving

P = ParamSpec("P")
R = TypeVar("R")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function with one thread of BLAS while it runs; the number of before comes back, also after an error.

    In most libraries that number is one for the whole process: what runs in other threads meanwhile has one thread of
    BLAS as well, and of two identifications in two threads at once the one that ends last gives back what it found,
    which may be one. Identify in several processes instead. What cannot be solved is an `IdentificationError`.

    The factorisations of an identification have tens of columns. On two busy cores one fit of a measured arm took
    0.09 s of processor time with one thread, and 0.7 to 1.2 s with two.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with threadpool_limits(limits=1, user_api="blas"), solving(IdentificationError):
            return function(*args, **kwargs)

    return limited
