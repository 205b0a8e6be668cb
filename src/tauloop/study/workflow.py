"""Computation of studies in batches of measured size, with results stored after each batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from tauloop.common.errors import InputError
from tauloop.common.execution.cluster import own_version
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.study.design import require_salib
from tauloop.study.file import Study, load_study
from tauloop.study.folder import StudyFolder
from tauloop.study.reductions import StudyResult, summarize
from tauloop.study.workers import (
    MAX_KILLED_WORKERS,
    Batch,
    Workers,
    WorkerUnavailable,
    killed_by,
    workers_of,
)

#: Shortest computing time of a batch, s: long compared with the overhead of a batch.
MIN_BATCH_TIME = 0.1
#: Longest computing time of a batch, s: short enough that an interruption loses little work.
MAX_BATCH_TIME = 10.0
#: Desired number of batches per worker, if the computing times of the batches are within the limits
#: above.
BATCHES_PER_WORKER = 50
#: Largest growth from one batch to the next while the computing time is being measured.
BATCH_GROWTH = 8


def _workers(text: str) -> int | str:
    """Return a number of workers, or the unchanged address of a cluster."""
    return int(text) if text.lstrip("-").isdecimal() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(Options):
    """Workers of a study, and whether to resume it.

    Attributes:
        workers: number of parallel workers, or the address of a Dask scheduler, such as
            'tcp://127.0.0.1:8786' ('local' starts one on this machine). Results do not depend on
            it. By default one process per core if a single process would take more than ten seconds
            (a script must then call it inside `if __name__ == '__main__':`).
        scheduler: address of the scheduler; in Python also 'local' together with a number of
            workers.
        resume: reuse the results in the folder.

    Examples:
        >>> import tauloop as tl
        >>> tl.StudyOptions(workers=2).resume
        False
    """

    workers: int | str | None = option(
        None, least=1, flag="--workers -j", read=_workers, metavar="N"
    )
    scheduler: str | None = option(None, flag="")
    resume: bool = False

    @property
    def count(self) -> int | None:
        """Number of processes; None if it is chosen automatically or determined by a cluster."""
        return None if isinstance(self.workers, str) else self.workers

    @property
    def cluster(self) -> str | None:
        """Address of a cluster's scheduler; None if no cluster is used."""
        return self.workers if isinstance(self.workers, str) else self.scheduler


@keywords(StudyOptions)
def run_study(
    study: Study | str | Path,
    folder: str | Path,
    options: StudyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> StudyResult:
    """Compute a study or its missing samples, and return the results.

    Results depend only on the study, not on workers, batches or interruptions (if all workers have
    the same kind of processor and compiler).

    Args:
        study: the study, or its file.
        folder: folder of the stored results; created if it does not exist.
        options: workers, and whether to resume.
        progress: called with the completed and total number of samples.

    Returns:
        The results of all samples, with statistics.

    Raises:
        DescriptionError: the file has errors.
        InputError: the folder belongs to another study, or cannot be written.
        EngineError: pyarrow or a compiler is missing, the cluster is lost, or a worker has another
            version.

    Examples:
        >>> import tauloop as tl
        >>> text = '''{format: tauloop-study/1, machine: delta, samples: 50, vary: {arm_length: {normal: 20 um}},
        ...   compute: {result: accuracy, options: {poses: 20}}}'''
        >>> result = tl.run_study(tl.study.loads_study(text), "arms")
        >>> result.samples, len(result.scalars)
        (50, 4)
    """
    study = study if isinstance(study, Study) else load_study(study)
    options = options or StudyOptions()
    if study.design == "sobol":
        require_salib()
    stored = StudyFolder(folder)
    with stored.locked():
        stored.begin(study, {"tauloop": own_version()}, resume=options.resume)
        stored.delete_outdated_parts(study)
        missing_ranges = deque(stored.missing(study.count))
        remaining = sum(last - first for first, last in missing_ranges)
        report = progress or (lambda *_: None)
        skipped_ranges: list[tuple[int, int]] = []
        if remaining:
            with workers_of(options.count, options.cluster, remaining) as workers:
                done = study.count - remaining
                for batch in _batches(study, missing_ranges, workers, skipped_ranges):
                    stored.write(batch.first, batch.inputs, batch.outcome)
                    done += batch.last - batch.first
                    report(done, study.count)
        else:
            report(study.count, study.count)
        return summarize(study, stored, sorted(skipped_ranges))


def read_results(study: Study | str | Path, folder: str | Path) -> StudyResult:
    """Return the results of a study from its stored samples, without computing further samples.

    Raises:
        InputError: the folder belongs to another study, or does not contain a study.
    """
    study = study if isinstance(study, Study) else load_study(study)
    stored = StudyFolder(folder)
    if not stored.manifest:
        raise InputError.of(str(folder), "does not contain a study", "compute the study first")
    stored.begin(study, {}, resume=True)
    return summarize(study, stored, ())


class _BatchSize:
    """The size of the next batch, from the computing times of the previous batches."""

    def __init__(self, remaining: int) -> None:
        self._remaining = remaining
        self.size = 1

    def update(self, batch: Batch, workers: Workers) -> None:
        """Adapt the size to the remaining work, and pass its estimated time to the workers."""
        n = batch.last - batch.first
        self._remaining -= n
        sample_time = max(batch.seconds / n, 1e-9)
        workers.adapt_to(self._remaining * sample_time)
        batch_time = self._remaining * sample_time / (workers.width * BATCHES_PER_WORKER)
        batch_time = min(max(batch_time, MIN_BATCH_TIME), MAX_BATCH_TIME)
        is_measured = batch.seconds >= MIN_BATCH_TIME
        largest = self.size * 2 if is_measured else BATCH_GROWTH * n
        self.size = max(min(int(batch_time / sample_time), largest), 1)


def _batches(
    study: Study,
    missing_ranges: deque[tuple[int, int]],
    workers: Workers,
    skipped_ranges: list[tuple[int, int]],
) -> Iterator[Batch]:
    """Yield batches when they are done, in any order; skip ranges whose workers die repeatedly."""
    batch_size = _BatchSize(sum(last - first for first, last in missing_ranges))
    running: dict[Future[Batch | WorkerUnavailable], tuple[int, int]] = {}
    suspects: dict[tuple[int, int], int] = {}
    while missing_ranges or running or suspects:
        # One additional batch per worker is queued, so that no worker is idle.
        max_batches = 2 * workers.width if workers.width > 1 else 1
        while missing_ranges and not suspects and len(running) < max_batches:
            first, last = missing_ranges.popleft()
            end = min(first + batch_size.size, last)
            if end < last:
                missing_ranges.appendleft((end, last))
            running[workers.submit(study, first, end)] = (first, end)
        finished = workers.done(set(running)) if running else ()
        for future in finished:
            sample_range = running.pop(future)
            try:
                batch = future.result()
            except Exception as error:
                deaths = killed_by(error)
                if not deaths:
                    raise
                suspects[sample_range] = deaths
            else:
                if isinstance(batch, WorkerUnavailable):
                    workers.exclude(batch)
                    missing_ranges.appendleft(sample_range)
                    continue
                batch_size.update(batch, workers)
                yield batch
        while suspects and not running:
            sample_range, deaths = suspects.popitem()
            batch_alone = _alone(study, sample_range, workers, deaths)
            if batch_alone is None:
                skipped_ranges.append(sample_range)
            else:
                yield batch_alone


def _alone(
    study: Study, sample_range: tuple[int, int], workers: Workers, deaths: int
) -> Batch | None:
    """Compute a batch whose worker died before, while no other batch is in progress.

    The result is None if the workers of the batch die repeatedly.
    """
    has_died_alone = False
    while deaths < MAX_KILLED_WORKERS or not has_died_alone:
        try:
            batch = workers.alone(study, *sample_range)
        except Exception as error:
            further_deaths = killed_by(error)
            if not further_deaths:
                raise
            deaths += further_deaths
            has_died_alone = True
        else:
            if isinstance(batch, Batch):
                return batch
            workers.exclude(batch)
    return None
