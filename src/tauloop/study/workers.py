"""Who computes batches of samples: this process, processes beside it, or the workers of a Dask cluster.

A worker gets the study with its machine as text, and keeps what it has built and compiled of it for
the next batch. It refuses work of another version of Tauloop. A batch whose workers die one after
the other is set aside.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import multiprocessing
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import numpy as np

from tauloop.common.errors import EngineError, Problem
from tauloop.common.processes import cores, may_begin, process_begins
from tauloop.common.records import dataclass
from tauloop.common.result import provenance
from tauloop.study.calculations import OPTION, Calculation, ComputedSamples, calculation
from tauloop.study.design import sample_design
from tauloop.study.file import Study
from tauloop.study.variations import inputs_of

_LOGGER = logging.getLogger("tauloop")
#: Workers that one batch may kill before it is set aside.
MOST_KILLED = 3
#: Seconds of work from which on processes are worth their start, which takes a second or two.
WORTH = 10.0
#: Seconds between two looks at a cluster that is silent.
LOOK = 1.0
#: Seconds that a cluster of one's own has to end, and those that are waited for a first worker, or
#: another one.
GOING, NOBODY = 30.0, 60.0


@functools.cache
def own_version() -> str:
    """Version of Tauloop with a hash of its sources: workers must have the same."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".c"):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return f"{provenance(options={}).versions['tauloop']}+{digest.hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples first to last - 1, computed.

    Attributes:
        first, last: samples.
        inputs: what they were computed from.
        outcome: what came out.
        seconds: of the computation.
    """

    first: int
    last: int
    inputs: dict[str, np.ndarray]
    outcome: ComputedSamples
    seconds: float


#: Calculations of the studies that this worker works on, by their hashes: the last one alone.
_READY: dict[str, Calculation] = {}


def compute(study: Study, version: str, first: int, last: int) -> Batch:
    """What a worker does: samples first to last - 1.

    Raises:
        EngineError: the worker has another version than who asks, or no compiler.
    """
    if version != own_version():
        what = f"this worker has Tauloop {own_version()}, the study {version}"
        raise EngineError.of("study", what, "install the same version for both")
    if study.digest not in _READY:
        _READY.clear()
        _READY[study.digest] = calculation(
            study.result, study.mechanism, study.parameters, study.options, study.keep
        )
    began = time.perf_counter()
    inputs = inputs_of(study.variations, study.seed, first, last, sample_design(study))
    whole = [number - first for number in study.whole if first <= number < last]
    read = {
        v.name: v.texts(inputs[v.name]) if v.name.startswith(OPTION) else inputs[v.name]
        for v in study.variations
    }
    outcome = _READY[study.digest].run(read, whole)
    return Batch(
        first=first, last=last, inputs=inputs, outcome=outcome, seconds=time.perf_counter() - began
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A worker that cannot work: no compiler, a full disk.

    Attributes:
        address: of the worker.
        problem: why.
    """

    address: str
    problem: str


def compute_there(study: Study, version: str, first: int, last: int) -> Batch | Unfit:
    """As `compute`, in a worker of a cluster; one that cannot work says so, for others may."""
    try:
        return compute(study, version, first, last)
    except EngineError as error:
        from distributed import get_worker

        return Unfit(address=str(get_worker().address), problem=str(error.problems[0]))


class Workers(ABC):
    """Who computes batches; use it as a context.

    Attributes:
        width: batches at work at the same time.
    """

    width: int

    @abstractmethod
    def submit(self, study: Study, first: int, last: int) -> Future[Batch | Unfit]:
        """Ask for a batch."""

    @abstractmethod
    def done(self, futures: set[Future[Batch | Unfit]]) -> set[Future[Batch | Unfit]]:
        """Wait until some are done; which.

        Raises:
            EngineError: nobody is left to wait for.
        """

    def alone(self, study: Study, first: int, last: int) -> Batch | Unfit:
        """A batch whose worker has died, once more, while nothing else is at work.

        Raises:
            BrokenProcessPool, KilledWorker: its worker has died again.
        """
        future = self.submit(study, first, last)
        while not self.done({future}):
            pass
        return future.result()

    def expect(self, seconds: float) -> None:
        """Be told how long one process would still take, s."""
        _LOGGER.debug("%.0f s of one process are left", seconds)

    def leave(self, unfit: Unfit) -> None:
        """Give no more work to a worker that cannot work.

        Raises:
            EngineError: none is left.
        """
        raise EngineError.of(unfit.address, unfit.problem)

    @abstractmethod
    def close(self) -> None:
        """End; what is at work is left alone."""


@final
class Here(Workers):
    """This process alone."""

    width = 1

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | Unfit]:
        """See `Workers`; the batch is computed now."""
        future: Future[Batch | Unfit] = Future()
        try:
            future.set_result(compute(study, own_version(), first, last))
        except Exception as error:  # raised where it is waited for
            future.set_exception(error)
        return future

    def done(self, futures: set[Future[Batch | Unfit]]) -> set[Future[Batch | Unfit]]:
        """All of them."""
        return set(futures)

    def close(self) -> None:
        """Nothing is left at work."""


@final
class Processes(Workers):
    """Processes on this machine."""

    def __init__(self, width: int) -> None:
        """Start them when they are needed."""
        self.width = width
        self._pool = self._made(width)

    @staticmethod
    def _made(width: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")  # threads may run in this one
        return ProcessPoolExecutor(width, mp_context=context, initializer=process_begins)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | Unfit]:
        """See `Workers`; a pool that has broken is made anew."""
        try:
            return self._pool.submit(compute, study, own_version(), first, last)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._made(self.width)
            return self._pool.submit(compute, study, own_version(), first, last)

    def done(self, futures: set[Future[Batch | Unfit]]) -> set[Future[Batch | Unfit]]:
        """See `Workers`."""
        return set(wait(futures, return_when=FIRST_COMPLETED).done)

    def alone(self, study: Study, first: int, last: int) -> Batch | Unfit:
        """See `Workers`: in a process of its own.

        Raises:
            EngineError: no process can begin.
        """
        with self._made(1) as pool:
            try:
                pool.submit(own_version).result()
            except BrokenProcessPool as error:
                remedy = "look whether memory is short; a script keeps its work below `if __name__ == '__main__':`"
                raise EngineError.of("processes", "each ends before it begins", remedy) from error
            return pool.submit(compute, study, own_version(), first, last).result()

    def close(self) -> None:
        """End the processes; batches that have not begun are dropped."""
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


@final
class Cores(Workers):
    """This process, and processes on all cores from when what is left is worth their start."""

    def __init__(self) -> None:
        """Begin alone."""
        self.width = 1
        self._by: Workers = Here()

    def expect(self, seconds: float) -> None:
        """See `Workers`."""
        if self.width == 1 and seconds > WORTH and cores() > 1 and may_begin():
            self.width = cores()
            self._by = Processes(self.width)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | Unfit]:
        """See `Workers`."""
        return self._by.submit(study, first, last)

    def done(self, futures: set[Future[Batch | Unfit]]) -> set[Future[Batch | Unfit]]:
        """See `Workers`."""
        return self._by.done(futures)

    def alone(self, study: Study, first: int, last: int) -> Batch | Unfit:
        """See `Workers`."""
        return self._by.alone(study, first, last)

    def close(self) -> None:
        """See `Workers`."""
        self._by.close()


@final
class DaskWorkers(Workers):
    """Workers of a Dask cluster."""

    def __init__(self, scheduler: str, width: int) -> None:
        """Connect.

        Args:
            scheduler: address of the scheduler, such as ``tcp://127.0.0.1:8786``; "local" starts
                one on this machine's loopback with as many workers as `width`.
            width: of a local cluster.

        Raises:
            EngineError: Dask is missing, nobody answers, or a worker has another version.
        """
        if find_spec("distributed") is None:
            raise EngineError.of("scheduler", "Dask is missing", "pip install tauloop[cluster]")
        import dask
        from distributed import Client, LocalCluster

        # of a local one: deaths are counted here
        dask.config.set({"distributed.scheduler.allowed-failures": 0})
        self._cluster: Any = None
        try:
            if scheduler == "local":
                here = {"host": "127.0.0.1", "dashboard_address": None}
                self._cluster = LocalCluster(n_workers=width, threads_per_worker=1, **here)
            self._client: Any = Client(
                self._cluster or scheduler, timeout="10s", set_as_default=False
            )
        except (OSError, ValueError, TimeoutError) as error:
            what = f"nobody answers: {error}"
            raise EngineError.of(
                scheduler, what, "start `dask scheduler` there, and `dask worker` beside it"
            ) from None
        # what it says of a lost scheduler, with traces, is said here in a sentence
        self._log = logging.getLogger("distributed.client")
        self._level = self._log.level
        self._log.setLevel(logging.CRITICAL)
        # an error where there is no Tauloop
        versions = self._client.run(own_version, on_error="return")
        others = {
            address: version for address, version in versions.items() if version != own_version()
        }
        if others:
            self.close()
            names = {
                a: f"Tauloop {v}" if isinstance(v, str) else f"no Tauloop ({v})"
                for a, v in others.items()
            }
            raise EngineError(
                Problem(a, f"has {x}, not {own_version()}", "install the same")
                for a, x in names.items()
            )
        self._scheduler, self._left, self.width = scheduler, set[str](), 1
        self._seen = self._looked = time.monotonic()
        self._look()
        self._executor: Executor = self._client.get_executor(pure=False, retries=0)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | Unfit]:
        """See `Workers`."""
        return self._executor.submit(compute_there, study, own_version(), first, last)

    def leave(self, unfit: Unfit) -> None:
        """See `Workers`."""
        if unfit.address not in self._left:  # it may have had other batches before it was
            _LOGGER.warning("worker %s is left: %s", unfit.address, unfit.problem)
            self._client.retire_workers([unfit.address])
        self._left.add(unfit.address)
        if not set(self._client.nthreads()) - {unfit.address}:
            raise EngineError.of(
                unfit.address, f"no worker is left: {unfit.problem}", "mend it; then --resume"
            )

    def done(self, futures: set[Future[Batch | Unfit]]) -> set[Future[Batch | Unfit]]:
        """See `Workers`."""
        while not (done := wait(futures, timeout=LOOK, return_when=FIRST_COMPLETED).done):
            self._look()
        # the client does so when it has lost the scheduler
        if any(future.cancelled() for future in done):
            raise self._gone()
        if time.monotonic() - self._looked > LOOK:
            self._look()
        return set(done)

    def _look(self) -> None:
        """How many workers there are, if any.

        Raises:
            EngineError: the scheduler is gone, or nobody has been there for long.
        """
        if self._client.status != "running":
            raise self._gone()
        self._looked = time.monotonic()
        with suppress(OSError):  # it is going: next time it is gone
            self.width = max(sum(self._client.nthreads().values()), 1)
            if set(self._client.nthreads()) - self._left:
                self._seen = self._looked
        if self._looked - self._seen > NOBODY:
            what = f"there has been no worker for {NOBODY:g} s"
            raise EngineError.of(
                self._scheduler, what, f"start `dask worker {self._scheduler}`; then --resume"
            )

    def _gone(self) -> EngineError:
        remedy = "start it again and go on with --resume; what is done is kept"
        return EngineError.of(self._scheduler, "the scheduler is gone", remedy)

    def close(self) -> None:
        """Leave the cluster; end one that was started here."""
        # all results are here: whoever is slow to go ends with this process
        with suppress(TimeoutError):
            self._client.close(timeout=LOOK)
        if self._cluster is not None:
            with suppress(TimeoutError):
                self._cluster.close(timeout=GOING)
        self._log.setLevel(self._level)


@contextmanager
def workers_of(count: int | None, scheduler: str | None, most: int) -> Iterator[Workers]:
    """Workers by what was asked for.

    Args:
        count: of processes; as many as there are cores, where they are worth their start, without
            it.
        scheduler: of a cluster; none without it.
        most: of processes that have something to do.

    Raises:
        EngineError: a cluster cannot be used.
    """
    width = min(count or cores(), most)
    workers: Workers
    if scheduler:
        workers = DaskWorkers(scheduler, width)
    elif count is None:
        workers = Cores()
    else:
        workers = Processes(width) if width > 1 else Here()
    try:
        yield workers
    finally:
        workers.close()


def killed_by(error: BaseException) -> int:
    """How many workers a batch has killed, or died beside it, before this error; none where it is another error."""
    if type(error).__name__ == "KilledWorker":  # of Dask, whose scheduler tries as often as it may
        return 1 + int(getattr(error, "allowed_failures", 0))
    return int(isinstance(error, BrokenProcessPool))
