"""One thread of BLAS while Tauloop solves its small linear systems; the user's number of threads comes back.

The matrices of a machine have tens of rows. Several threads of BLAS wait for each other longer than
they work: on two busy cores the check of a machine of 16 four-bars took 15.9 s of processor time
with two threads and 1.5 s with one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, get_ident
from typing import Any

#: Modules that load a BLAS of their own. They are imported late, so a library can appear while the
#: limit holds.
LOADERS = ("numpy", "scipy.linalg")


class _Limit:
    """The limit of the process. One Python thread holds it: the number of BLAS threads belongs to the whole process.

    Attributes:
        lock: held while the holder changes.
        holder: the Python thread that set the limit, and that alone takes it back.
        contexts: number of contexts that the holder is in.
        limited: loaders whose libraries are limited now.
        restore: restores the numbers of threads.
        controller: the libraries that were found; a search for them takes milliseconds.
        searched: loaders that were imported when it was made.
    """

    __slots__ = ("contexts", "controller", "holder", "limited", "lock", "restore", "searched")

    def __init__(self) -> None:
        """Begin without a limit."""
        self.lock = Lock()
        self.holder: int | None = None
        self.contexts = 0
        self.limited: tuple[str, ...] = ()
        self.restore = ExitStack()
        self.controller: Any = None
        self.searched: tuple[str, ...] = ()

    def enter(self) -> bool:
        """Limit the libraries that are loaded and not limited yet; False where another Python thread does so."""
        with self.lock:
            if self.holder is None:
                self.holder = get_ident()
        if self.holder != get_ident():
            return False
        self.contexts += 1
        loaded = tuple(name for name in LOADERS if name in sys.modules)
        if self.limited != loaded:
            if self.searched != loaded:
                from threadpoolctl import (
                    ThreadpoolController,  # late: a look-up that loads no BLAS does not wait for it
                )

                self.controller, self.searched = ThreadpoolController(), loaded
            self.restore.enter_context(self.controller.limit(limits=1, user_api="blas"))
            self.limited = loaded
        return True

    def leave(self) -> None:
        """Give the numbers of threads back after the holder's last context."""
        self.contexts -= 1
        if self.contexts == 0:
            self.limited = ()
            self.restore.close()
            self.holder = None


_LIMIT = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give BLAS one thread inside a context or a decorated function; it costs 11 µs, and 1.4 µs inside another context.

    The number of threads belongs to the process: the Python thread that enters first sets it and
    takes it back, and contexts of other Python threads meanwhile change nothing.
    """
    is_holder = _LIMIT.enter()
    try:
        yield
    finally:
        if is_holder:
            _LIMIT.leave()
