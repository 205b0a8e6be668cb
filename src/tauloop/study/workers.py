"""Workers that compute batches of samples: this process, further processes, or a Dask cluster.

A worker receives the study with its machine as text. It reuses compiled functions for the next
batch, and rejects work from another version of Tauloop. A batch whose workers die repeatedly is
skipped.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, final

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.execution.cluster import ClusterConnection, own_version
from tauloop.common.execution.processes import can_import_main, cores, prepare_worker
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.library import stored_code_only
from tauloop.study.calculations import OPTION, Calculation, ComputedSamples, calculation
from tauloop.study.design import sample_design
from tauloop.study.file import Study
from tauloop.study.variations import inputs_of

_LOGGER = logging.getLogger("tauloop")
#: Number of workers that may die with one batch before the batch is skipped.
MAX_KILLED_WORKERS = 3
#: Seconds of remaining work above which processes are started; starting takes a second or two.
MIN_WORK_FOR_PROCESSES = 10.0
#: Seconds between two checks of a cluster.
WORKER_CHECK_INTERVAL = 1.0
#: Seconds to wait for the first worker, or for a new worker after all others have disappeared.
FIRST_WORKER_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Computed samples first to last - 1.

    Attributes:
        first: number of the first sample.
        last: number of the sample after the last.
        inputs: inputs of the samples.
        outcome: results of the samples.
        seconds: computing time, s.
    """

    first: int
    last: int
    inputs: dict[str, np.ndarray]
    outcome: ComputedSamples
    seconds: float


#: The calculation of this worker's current study, by the hash of the study.
_CALCULATIONS: dict[str, Calculation] = {}


def compute(study: Study, version: str, first: int, last: int) -> Batch:
    """Compute samples first to last - 1 of a study in a worker.

    Returns:
        The samples, with the computing time.

    Raises:
        EngineError: the worker has another version than the caller, or no compiler.
    """
    if version != own_version():
        what = f"this worker runs Tauloop {own_version()}, but the study was started with {version}"
        raise EngineError.of("study", what, "install the same version for both")
    if study.digest not in _CALCULATIONS:
        _CALCULATIONS.clear()
        _CALCULATIONS[study.digest] = calculation(
            study.result, study.mechanism, study.parameters, study.options, study.keep
        )
    start = time.perf_counter()
    inputs = inputs_of(study.variations, study.seed, first, last, sample_design(study))
    whole = [number - first for number in study.whole if first <= number < last]
    arguments = dict(inputs)
    for item in study.variations:
        if item.name.startswith(OPTION):
            arguments[item.name] = item.texts(inputs[item.name])
    outcome = _CALCULATIONS[study.digest].run(arguments, whole)
    return Batch(
        first=first, last=last, inputs=inputs, outcome=outcome, seconds=time.perf_counter() - start
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUnavailable:
    """A worker that cannot compute, for example without a compiler or with a full disk.

    Attributes:
        address: address of the worker.
        problem: reason.
    """

    address: str
    problem: str


def compute_in_cluster(
    study: Study, version: str, first: int, last: int
) -> Batch | WorkerUnavailable:
    """Compute samples in a worker of a cluster; a worker that cannot compute reports the reason.

    Returns:
        The samples, or the reason why this worker cannot compute.
    """
    try:
        with stored_code_only():
            return compute(study, version, first, last)
    except EngineError as error:
        from distributed import get_worker

        return WorkerUnavailable(address=str(get_worker().address), problem=str(error.problems[0]))


class Workers(ABC):
    """Workers that compute batches, as a context manager.

    Attributes:
        width: number of batches computed at the same time.
    """

    width: int

    @abstractmethod
    def submit(self, study: Study, first: int, last: int) -> Future[Batch | WorkerUnavailable]:
        """Start the computation of a batch.

        Returns:
            The future batch.
        """

    @abstractmethod
    def done(
        self, futures: set[Future[Batch | WorkerUnavailable]]
    ) -> set[Future[Batch | WorkerUnavailable]]:
        """Wait until some batches are done, and return their futures.

        Raises:
            EngineError: no worker is left.
        """

    def alone(self, study: Study, first: int, last: int) -> Batch | WorkerUnavailable:
        """Compute a batch whose worker died before, while no other batch is in progress.

        Returns:
            The batch, or the reason why no worker can compute it.

        Raises:
            BrokenProcessPool, KilledWorker: its worker died again.
        """
        future = self.submit(study, first, last)
        while not self.done({future}):
            pass
        return future.result()

    def adapt_to(self, seconds: float) -> None:
        """Adapt the number of workers to the remaining computing time of a single process (s)."""
        _LOGGER.debug("%.0f s of one process remain", seconds)

    def exclude(self, unavailable: WorkerUnavailable) -> None:
        """Exclude a worker that cannot compute from further work.

        Raises:
            EngineError: no worker is left.
        """
        raise EngineError.of(unavailable.address, unavailable.problem)

    @abstractmethod
    def close(self) -> None:
        """Release the workers without waiting for batches in progress."""


@final
class LocalWorker(Workers):
    """The calling process, without other workers."""

    width = 1

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | WorkerUnavailable]:
        """Compute a batch immediately.

        Returns:
            The finished batch, as a future.
        """
        future: Future[Batch | WorkerUnavailable] = Future()
        try:
            future.set_result(compute(study, own_version(), first, last))
        except Exception as error:  # raised by `result`
            future.set_exception(error)
        return future

    def done(
        self, futures: set[Future[Batch | WorkerUnavailable]]
    ) -> set[Future[Batch | WorkerUnavailable]]:
        """Return all futures."""
        return set(futures)

    def close(self) -> None:
        """Do nothing, because no batch is in progress."""


@final
class Processes(Workers):
    """Processes on this machine."""

    def __init__(self, width: int) -> None:
        """Prepare the processes, which start when they are needed."""
        self.width = width
        self._pool = self._new_pool(width)

    @staticmethod
    def _new_pool(width: int) -> ProcessPoolExecutor:
        # Fork is not safe if this process has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(width, mp_context=context, initializer=prepare_worker)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | WorkerUnavailable]:
        """Start the computation of a batch; replace a broken pool.

        Returns:
            The future batch.
        """
        try:
            return self._pool.submit(compute, study, own_version(), first, last)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._new_pool(self.width)
            return self._pool.submit(compute, study, own_version(), first, last)

    def done(
        self, futures: set[Future[Batch | WorkerUnavailable]]
    ) -> set[Future[Batch | WorkerUnavailable]]:
        """Wait until some batches are done, and return these."""
        return set(wait(futures, return_when=FIRST_COMPLETED).done)

    def alone(self, study: Study, first: int, last: int) -> Batch | WorkerUnavailable:
        """Compute a batch in a separate process.

        Returns:
            The batch.

        Raises:
            EngineError: no process can start.
        """
        with self._new_pool(1) as pool:
            try:
                pool.submit(own_version).result()
            except BrokenProcessPool as error:
                remedy = "check the available memory; a script must keep its work below `if __name__ == '__main__':`"
                raise EngineError.of(
                    "processes", "every worker process exited during its start-up", remedy
                ) from error
            return pool.submit(compute, study, own_version(), first, last).result()

    def close(self) -> None:
        """Terminate the processes, and cancel batches that have not started."""
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


@final
class AutoPool(Workers):
    """The calling process; processes start on all cores if the remaining work justifies it."""

    def __init__(self) -> None:
        """Start with only the calling process."""
        self.width = 1
        self._workers: Workers = LocalWorker()

    def adapt_to(self, seconds: float) -> None:
        """Start processes if the remaining time is long enough."""
        is_worth_it = seconds > MIN_WORK_FOR_PROCESSES and cores() > 1
        if self.width == 1 and is_worth_it and can_import_main():
            self.width = cores()
            self._workers = Processes(self.width)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | WorkerUnavailable]:
        """Start the computation of a batch.

        Returns:
            The future batch.
        """
        return self._workers.submit(study, first, last)

    def done(
        self, futures: set[Future[Batch | WorkerUnavailable]]
    ) -> set[Future[Batch | WorkerUnavailable]]:
        """Wait until some batches are done, and return these."""
        return self._workers.done(futures)

    def alone(self, study: Study, first: int, last: int) -> Batch | WorkerUnavailable:
        """Compute a batch while no other batch is in progress.

        Returns:
            The batch.
        """
        return self._workers.alone(study, first, last)

    def close(self) -> None:
        """Release the workers."""
        self._workers.close()


@final
class DaskWorkers(Workers):
    """Workers of a Dask cluster."""

    def __init__(self, scheduler: str, width: int) -> None:
        """Connect to the cluster.

        Args:
            scheduler: address of the scheduler, such as ``tcp://127.0.0.1:8786``; "local" starts
                a cluster on this machine's loopback interface.
            width: number of workers of a local cluster.

        Raises:
            EngineError: Dask is not installed, the scheduler does not answer, or a worker has
                another version.
        """
        self._connection = ClusterConnection(scheduler, width)
        self._client: Any = self._connection.client
        self._scheduler = scheduler
        self._excluded: set[str] = set()
        self.width = 1
        self._last_check = time.monotonic()
        self._last_seen = self._last_check
        self._check_cluster()
        self._executor: Executor = self._client.get_executor(pure=False, retries=0)

    def submit(self, study: Study, first: int, last: int) -> Future[Batch | WorkerUnavailable]:
        """Start the computation of a batch.

        Returns:
            The future batch.
        """
        return self._executor.submit(compute_in_cluster, study, own_version(), first, last)

    def exclude(self, unavailable: WorkerUnavailable) -> None:
        """Exclude a worker that cannot compute from further work."""
        address = unavailable.address
        if address not in self._excluded:  # it can be reported again by earlier batches
            _LOGGER.warning("worker %s is excluded: %s", address, unavailable.problem)
            self._client.retire_workers([address])
        self._excluded.add(address)
        if not set(self._client.nthreads()) - {address}:
            problem = f"no worker is left: {unavailable.problem}"
            raise EngineError.of(address, problem, "restart the worker and continue with --resume")

    def done(
        self, futures: set[Future[Batch | WorkerUnavailable]]
    ) -> set[Future[Batch | WorkerUnavailable]]:
        """Wait until some batches are done, and return these."""
        while not (
            done := wait(futures, timeout=WORKER_CHECK_INTERVAL, return_when=FIRST_COMPLETED).done
        ):
            self._check_cluster()
        # The client cancels all futures when it loses the scheduler.
        if any(future.cancelled() for future in done):
            raise self._scheduler_lost()
        if time.monotonic() - self._last_check > WORKER_CHECK_INTERVAL:
            self._check_cluster()
        return set(done)

    def _check_cluster(self) -> None:
        """Update the number of workers.

        Raises:
            EngineError: the scheduler is lost, or there was no worker for a long time.
        """
        if self._client.status != "running":
            raise self._scheduler_lost()
        self._last_check = time.monotonic()
        with suppress(OSError):  # the scheduler is shutting down, which the next check reports
            self.width = max(sum(self._client.nthreads().values()), 1)
            if set(self._client.nthreads()) - self._excluded:
                self._last_seen = self._last_check
        if self._last_check - self._last_seen > FIRST_WORKER_TIMEOUT:
            problem = f"there was no worker for {FIRST_WORKER_TIMEOUT:g} s"
            remedy = f"start `dask worker {self._scheduler}` and continue with --resume"
            raise EngineError.of(self._scheduler, problem, remedy)

    def _scheduler_lost(self) -> EngineError:
        remedy = "restart the scheduler and continue with --resume; computed samples are stored"
        return EngineError.of(self._scheduler, "the scheduler is lost", remedy)

    def close(self) -> None:
        """Disconnect from the cluster; shut down a local one."""
        self._connection.close()


@contextmanager
def workers_of(count: int | None, scheduler: str | None, most: int) -> Iterator[Workers]:
    """Yield the workers of a study.

    Args:
        count: number of processes; by default one for each core if the work justifies their start.
        scheduler: address of the scheduler of a cluster; None to use no cluster.
        most: largest useful number of processes.

    Raises:
        EngineError: a cluster cannot be used.
    """
    width = min(count or cores(), most)
    workers: Workers
    if scheduler:
        workers = DaskWorkers(scheduler, width)
    elif count is None:
        workers = AutoPool()
    else:
        workers = Processes(width) if width > 1 else LocalWorker()
    try:
        yield workers
    finally:
        workers.close()


def killed_by(error: BaseException) -> int:
    """Return the number of workers that died with a batch before this error; 0 for other errors."""
    if type(error).__name__ == "KilledWorker":  # raised by Dask, whose scheduler retries a batch
        return 1 + int(getattr(error, "allowed_failures", 0))
    return int(isinstance(error, BrokenProcessPool))
