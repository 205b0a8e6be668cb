"""Work shared out over processes of this computer: results in their order, whatever the number of processes."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from tauloop.errors import EngineError

Common = TypeVar("Common")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
#: Parts for each process: pieces of work take different times.
PARTS = 8


def cores() -> int:
    """How many of this computer's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def may_begin() -> bool:
    """Whether a process beside this one may read the program once more: a script's work stands below its `__main__`."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return path is None or "__main__" in Path(path).read_text(encoding="utf-8", errors="replace")


class SharedWork:
    """Processes of this computer, started when there is work; one is this process itself.

    A piece of work depends on nothing but its arguments, so that no number depends on how many processes there are.
    Interrupts go to this process, which ends the others.
    """

    def __init__(self, count: int = 1) -> None:
        """Take their number."""
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> SharedWork:
        """The same, which ends its processes behind a `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes, in the middle of work where that failed."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def results(
        self, work: Callable[[Common, Item], Outcome], common: Common, items: Sequence[Item]
    ) -> Iterator[Outcome]:
        """What work(common, item) gives for each item, in their order.

        Args:
            work: a function of a module, so that it can be sent to a process.
            common: what all pieces of work share.
            items: one for each.

        Raises:
            EngineError: a process was killed.
            Exception: what the work of the first item that failed has raised.
        """
        if self._count == 1 or len(items) < 2:
            yield from (work(common, item) for item in items)
            return
        if self._pool is None:
            context = multiprocessing.get_context("spawn")  # threads may run in this one
            self._pool = ProcessPoolExecutor(self._count, mp_context=context, initializer=process_begins)
        size = -(-len(items) // (PARTS * self._count))
        parts = [items[first : first + size] for first in range(0, len(items), size)]
        try:
            packed = pickle.dumps(common)
            for future in [self._pool.submit(_done, work, packed, part) for part in parts]:
                yield from future.result()
        except BrokenProcessPool as error:
            remedy = "look whether memory is short; a script keeps its work below `if __name__ == '__main__':`"
            raise EngineError.of("processes", "one of them was killed", remedy) from error


def process_begins() -> None:
    """What a process does before its work: interrupts are for the one that waits for it, with which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    """A pool's process waits for work for ever where its parent was killed."""
    parent.join()
    os._exit(1)


@functools.lru_cache(maxsize=1)
def _common(packed: bytes) -> Any:
    """What pieces of work share, which a process makes once: functions take longer to get ready than to run."""
    return pickle.loads(packed)


def _done(work: Callable[[Common, Item], Outcome], packed: bytes, items: Sequence[Item]) -> list[Outcome]:
    """Some pieces of work. Cores are taken by processes, so linear algebra has one thread in each."""
    with threadpool_limits(limits=1, user_api="blas"):
        return [work(_common(packed), item) for item in items]
