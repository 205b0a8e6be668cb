"""Limit of BLAS to one thread for small linear systems; the user's setting is restored afterwards.

The matrices of a machine have tens of rows. For them, several BLAS threads wait for each other
longer than they work: on two busy cores the check of a machine with 16 four-bars took 15.9 s of
processor time with two threads and 1.5 s with one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, get_ident
from typing import Any

#: Modules each of which loads a BLAS library. They may be imported while the limit is active.
BLAS_LOADERS = ("numpy", "scipy.linalg")


class _Limit:
    """The limit of BLAS threads in this process.

    The number of BLAS threads is a property of the whole process, so that only one Python thread at
    a time sets the limit.

    Attributes:
        lock: lock for changes of the holder.
        holder: id of the Python thread that set the limit and must remove it; None without a limit.
        contexts: number of nested contexts of the holder.
        limited: modules whose libraries are limited.
        restore: context stack that restores the numbers of threads.
        controller: the loaded BLAS libraries; finding them takes milliseconds.
        searched: modules that were imported when the libraries were searched.
    """

    __slots__ = ("contexts", "controller", "holder", "limited", "lock", "restore", "searched")

    def __init__(self) -> None:
        """Start without a limit."""
        self.lock = Lock()
        self.holder: int | None = None
        self.contexts = 0
        self.limited: tuple[str, ...] = ()
        self.restore = ExitStack()
        self.controller: Any = None
        self.searched: tuple[str, ...] = ()

    def enter(self) -> bool:
        """Limit all loaded libraries; return False if another Python thread has set the limit."""
        with self.lock:
            if self.holder is None:
                self.holder = get_ident()
        if self.holder != get_ident():
            return False
        self.contexts += 1
        loaded = tuple(name for name in BLAS_LOADERS if name in sys.modules)
        if self.limited != loaded:
            if self.searched != loaded:
                # Imported late: code that loads no BLAS does not wait for this import.
                from threadpoolctl import ThreadpoolController

                self.controller, self.searched = ThreadpoolController(), loaded
            self.restore.enter_context(self.controller.limit(limits=1, user_api="blas"))
            self.limited = loaded
        return True

    def leave(self) -> None:
        """Restore the numbers of threads after the holder's last context."""
        self.contexts -= 1
        if self.contexts == 0:
            self.limited = ()
            self.restore.close()
            self.holder = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside a context or a decorated function.

    The number of threads is a property of the process. The Python thread that enters first sets and
    restores it; contexts of other Python threads do nothing meanwhile. A context takes 11 µs, or
    1.4 µs inside another context.
    """
    is_holder = _LIMIT.enter()
    try:
        yield
    finally:
        if is_holder:
            _LIMIT.leave()
