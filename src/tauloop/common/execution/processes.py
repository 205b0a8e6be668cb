"""Parallel work in processes of this computer, with results in the order of the items.

The functions that start processes import Python's modules for processes, because this import takes
longer than a short calculation.
"""

from __future__ import annotations

import functools
import math
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from tauloop.common.errors import EngineError
from tauloop.common.execution.blas import one_blas_thread

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

Common = TypeVar("Common")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
#: Number of chunks of work for each process. Several chunks balance items that take different
#: times.
CHUNKS_PER_PROCESS = 8


def cores() -> int:
    """Return the number of this computer's cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Return the memory that a process can still allocate, bytes; infinity if it is unknown."""
    limits: list[float] = []
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024.0 * int(line.split()[1]))
    # The limit of a container. Without a limit, the file contains "max", which is not a number.
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        limits.append(float(limit - used))
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return min(limits, default=math.inf)


def lifeline() -> int:
    """Return the reading end of a pipe that closes when this process ends for any reason.

    Use it as the standard input of a process that must end with this process.
    """
    return _lifeline(os.getpid())


@functools.cache
def _lifeline(process: int) -> int:
    """Return the pipe of a process; a fork has a different one. The writing end is never closed."""
    reading, _ = os.pipe()
    return reading


#: Shell script that runs a command as the leader of a process group, and kills the group when
#: standard input closes.
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


def tied_to_process(command: Sequence[str]) -> list[str]:
    """Return a command that is killed when this process ends, with all processes that it started.

    Start it in a new session with `lifeline` as its standard input. The wrapped command has no
    input. Its exit code or signal is passed on.
    """
    return ["/bin/sh", "-c", _FOLLOW, "sh", *command] if os.name == "posix" else [*command]


def can_import_main() -> bool:
    """Return whether child processes may import the main module of this program.

    A script may be imported if its work is below `if __name__ == "__main__":`.
    """
    path = getattr(sys.modules["__main__"], "__file__", None)
    return path is None or "__main__" in Path(path).read_text(encoding="utf-8", errors="replace")


class SharedWork:
    """A pool of processes on this computer; they start with the first work.

    With a single process the work is done in this process. Work depends only on its arguments, so
    that results do not depend on the number of processes. This process handles interrupts and ends
    the others.
    """

    def __init__(self, count: int = 1) -> None:
        """Store the number of processes."""
        self._count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> SharedWork:
        """Return the object itself; its processes end when the context ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, even if they are still working after an error."""
        if self._pool is not None:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)

    def results(
        self, work: Callable[[Common, Item], Outcome], common: Common, items: Sequence[Item]
    ) -> Iterator[Outcome]:
        """Yield work(common, item) for each item, in the order of the items.

        Args:
            work: a module-level function, so that it can be sent to a process.
            common: first argument, the same for all items.
            items: second arguments of the calls.

        Raises:
            EngineError: a process was killed.
            Exception: the exception of the first item whose work failed.
        """
        if self._count == 1 or len(items) < 2:
            yield from (work(common, item) for item in items)
            return
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        from concurrent.futures.process import BrokenProcessPool

        if self._pool is None:
            # A fork is unsafe, because threads may run in this process.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=context, initializer=prepare_worker
            )
        chunk_length = math.ceil(len(items) / (CHUNKS_PER_PROCESS * self._count))
        starts = range(0, len(items), chunk_length)
        chunks = [items[start : start + chunk_length] for start in starts]
        try:
            packed = pickle.dumps(common)
            futures = [self._pool.submit(_process_chunk, work, packed, chunk) for chunk in chunks]
            for future in futures:
                yield from future.result()
        except BrokenProcessPool as error:
            remedy = (
                "check whether memory is short; in a script, put the work below "
                "`if __name__ == '__main__':`"
            )
            raise EngineError.of("processes", "a worker process was killed", remedy) from error


def prepare_worker() -> None:
    """Prepare a process of a pool: ignore interrupts, and end with the parent process.

    The parent process, which waits for the results, handles interrupts.
    """
    import multiprocessing

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()


def _exit_with_parent(parent: BaseProcess) -> None:
    """End this process when its parent ends; otherwise it would wait for work indefinitely."""
    parent.join()
    os._exit(1)


@functools.lru_cache(maxsize=1)
def _unpickle_common(packed: bytes) -> Any:
    """Return the unpickled common argument; it is cached, because unpickling may be slow."""
    return pickle.loads(packed)


def _process_chunk(
    work: Callable[[Common, Item], Outcome], packed: bytes, items: Sequence[Item]
) -> list[Outcome]:
    """Return the results of a chunk, with one BLAS thread because processes use all cores."""
    with one_blas_thread():
        return [work(_unpickle_common(packed), item) for item in items]
