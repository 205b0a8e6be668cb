"""Work shared out over processes of this computer: results in their order, whatever the number of processes."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, TypeVar

from tauloop.common.blas import one_blas_thread
from tauloop.common.errors import EngineError

Common = TypeVar("Common")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
#: Parts for each process: pieces of work take different times.
PARTS = 8


def cores() -> int:
    """How many of this computer's cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Return the bytes of memory that a process can still take here; infinity where the system does not state them."""
    limits: list[float] = []
    with suppress(OSError, ValueError, IndexError):
        (line,) = (
            line
            for line in Path("/proc/meminfo").read_text().splitlines()
            if line.startswith("MemAvailable:")
        )
        limits.append(1024.0 * int(line.split()[1]))
    with suppress(OSError, ValueError):  # of a container; "max" where there is no limit
        group = Path("/sys/fs/cgroup")
        limits.append(
            float(
                int((group / "memory.max").read_text())
                - int((group / "memory.current").read_text())
            )
        )
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=math.inf)


def lifeline() -> int:
    """Return the reading end of a pipe that closes when this process ends, however it does.

    It is the standard input of a process that must not outlive this one.
    """
    return _lifeline(os.getpid())


@functools.cache
def _lifeline(process: int) -> int:
    """Return that of a process; a fork has its own. Nothing closes the other end but the end of the process."""
    reading, _ = os.pipe()
    return reading


#: Runs a command in a group that it leads, and kills that group when standard input closes.
_FOLLOW = """\
exec 3<&0 </dev/null
{ read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 &
"$@" 3<&-
status=$?
kill -s PIPE $!
wait $!
[ $status -gt 128 ] && kill -s "$(kill -l $status)" $$
exit $status
"""


def following(command: Sequence[str]) -> list[str]:
    """Return a command that ends, with all that it started, when this process ends.

    Start it with `lifeline` as its standard input, and in a session of its own. The command itself
    has no input. The exit code, or the signal that ended it, is the command's own.
    """
    return ["/bin/sh", "-c", _FOLLOW, "sh", *command] if os.name == "posix" else [*command]


def may_begin() -> bool:
    """Whether a process beside this one may read the program once more: a script's work stands below its `__main__`."""
    path = getattr(sys.modules["__main__"], "__file__", None)
    return path is None or "__main__" in Path(path).read_text(encoding="utf-8", errors="replace")


class SharedWork:
    """Processes of this computer, started when there is work; one is this process itself.

    A piece of work depends on nothing but its arguments, so that no number depends on how many
    processes there are. Interrupts go to this process, which ends the others.
    """

    def __init__(self, count: int = 1) -> None:
        """Take their number."""
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> SharedWork:
        """The same, which ends its processes behind a `with`."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
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
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=context, initializer=process_begins
            )
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


def _done(
    work: Callable[[Common, Item], Outcome], packed: bytes, items: Sequence[Item]
) -> list[Outcome]:
    """Some pieces of work. Cores are taken by processes, so linear algebra has one thread in each."""
    with one_blas_thread():
        return [work(_common(packed), item) for item in items]
