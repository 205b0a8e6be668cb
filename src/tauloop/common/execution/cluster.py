"""Work on the workers of a Dask cluster.

A worker must run the same version of Tauloop, because results depend on it.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tauloop.common.errors import EngineError, Problem
from tauloop.common.execution.blas import one_blas_thread
from tauloop.common.result import tauloop_version

Common = TypeVar("Common")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")
#: Maximum time for closing a connection, s.
CLOSE_TIMEOUT = 1.0
#: Maximum time for shutting down a local cluster, s.
SHUTDOWN_TIMEOUT = 30.0
#: Default number of workers of a cluster on this computer.
LOCAL_WORKERS = 2


class WorkSharing(Protocol):
    """Processes or workers that share work, with results in the order of the work."""

    def results(
        self, work: Callable[[Common, Item], Outcome], common: Common, items: Sequence[Item]
    ) -> Iterator[Outcome]:
        """Yield work(common, item) for each item, in their order."""


@functools.cache
def own_version() -> str:
    """Return the version of Tauloop with a hash of its sources; workers must have the same."""
    folder = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".c"):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return f"{tauloop_version()}+{digest.hexdigest()[:12]}"


class ClusterConnection:
    """Connection to a Dask cluster whose workers have this version of Tauloop.

    Attributes:
        client: Dask's client.
    """

    def __init__(self, scheduler: str, n_workers: int) -> None:
        """Connect to the cluster.

        Args:
            scheduler: address of the scheduler, such as ``tcp://127.0.0.1:8786``; "local" starts
                a cluster on this machine's loopback interface.
            n_workers: number of workers of a local cluster.

        Raises:
            EngineError: Dask is not installed, the scheduler does not answer, or a worker has
                another version.
        """
        if find_spec("distributed") is None:
            raise EngineError.of(
                "scheduler", "Dask is not installed", "pip install 'tauloop[cluster]'"
            )
        import dask
        from distributed import Client, LocalCluster

        # no retries in a local cluster: `killed_by` counts deaths
        dask.config.set({"distributed.scheduler.allowed-failures": 0})
        self._cluster: Any = None
        try:
            if scheduler == "local":
                local = {"host": "127.0.0.1", "dashboard_address": None}
                self._cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, **local)
            self.client: Any = Client(
                self._cluster or scheduler, timeout="10s", set_as_default=False
            )
        except (OSError, ValueError, TimeoutError) as error:
            remedy = "start `dask scheduler` there, and `dask worker` next to it"
            raise EngineError.of(scheduler, f"does not answer: {error}", remedy) from None
        # suppress Dask's traces of a lost scheduler, which callers report in one sentence
        self._log = logging.getLogger("distributed.client")
        self._level = self._log.level
        self._log.setLevel(logging.CRITICAL)
        self._require_own_version()

    def _require_own_version(self) -> None:
        """Raise EngineError if a worker has another version of Tauloop, and close the connection."""
        # the version is an exception for workers without Tauloop
        versions = self.client.run(own_version, on_error="return")
        problems = []
        for address, version in versions.items():
            if version == own_version():
                continue
            software = f"no Tauloop ({version})"
            if isinstance(version, str):
                software = f"Tauloop {version}"
            what = f"has {software}, not {own_version()}"
            problems.append(Problem(address, what, "install the same version"))
        if problems:
            self.close()
            raise EngineError(problems)

    def close(self) -> None:
        """Disconnect from the cluster; shut down a local one."""
        # all results have arrived: slow workers end with this process
        with suppress(TimeoutError):
            self.client.close(timeout=CLOSE_TIMEOUT)
        if self._cluster is not None:
            with suppress(TimeoutError):
                self._cluster.close(timeout=SHUTDOWN_TIMEOUT)
        self._log.setLevel(self._level)


class ClusterWork:
    """Workers of a Dask cluster that share work, as `SharedWork` does with processes."""

    def __init__(self, scheduler: str, n_workers: int = LOCAL_WORKERS) -> None:
        """Connect to the cluster.

        Args:
            scheduler: address of the scheduler; "local" starts one on this computer.
            n_workers: number of workers of a local cluster.

        Raises:
            EngineError: the cluster cannot be used (`ClusterConnection`).
        """
        self._scheduler = scheduler
        self._connection = ClusterConnection(scheduler, n_workers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def results(
        self, work: Callable[[Common, Item], Outcome], common: Common, items: Sequence[Item]
    ) -> Iterator[Outcome]:
        """Yield work(common, item) for each item, in their order.

        Args:
            work: a function of a module, so that it can be sent to a worker.
            common: argument that is the same for all items.
            items: arguments of the calls, in their order.

        Raises:
            EngineError: the cluster is lost, or a worker was killed.
            Exception: the exception of the first item whose work failed.
        """
        from concurrent.futures import CancelledError

        from distributed import CancelledError as DaskCancelledError, KilledWorker
        from distributed.comm.core import CommClosedError

        executor = self._connection.client.get_executor(pure=False, retries=0)
        packed = pickle.dumps(common)
        futures = [executor.submit(_cluster_item, work, packed, item) for item in items]
        loss_errors = (CancelledError, DaskCancelledError, KilledWorker, CommClosedError)
        for future in futures:
            try:
                outcome = future.result()
            except loss_errors as error:
                what = f"the scheduler or a worker is lost ({type(error).__name__})"
                remedy = "start it again and continue with --resume"
                raise EngineError.of(self._scheduler, what, remedy) from error
            yield outcome


@functools.lru_cache(maxsize=1)
def _cluster_common(packed: bytes) -> Any:
    """Return the common argument of all items, built once per worker (this may be slow)."""
    return pickle.loads(packed)


def _cluster_item(work: Callable[[Common, Item], Outcome], packed: bytes, item: Item) -> Outcome:
    """Return the result of an item, with one BLAS thread because workers use all cores."""
    with one_blas_thread():
        return work(_cluster_common(packed), item)
