"""Studies from their files to results: batches of a measured size, computed by whoever is there, kept as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from tauloop.common.errors import InputError
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.study.design import require_salib
from tauloop.study.file import Study, load_study
from tauloop.study.folder import StudyFolder
from tauloop.study.reductions import StudyResult, reduced
from tauloop.study.workers import (
    MOST_KILLED,
    Batch,
    Unfit,
    Workers,
    killed_by,
    own_version,
    workers_of,
)

#: Seconds that a batch takes: at least, so that its overhead does not count; at most, so that a
#: stop loses little; and batches of each worker that a study is cut into where both allow it.
SHORTEST, LONGEST, BATCHES = 0.1, 10.0, 50
#: Growth of a batch over the one before it, while its duration is still being measured.
GROWTH = 8


def _workers(text: str) -> int | str:
    """Return a number of workers, or the address of a cluster as it is."""
    return int(text) if text.lstrip("-").isdecimal() else text


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(Options):
    """Where a study is computed, and whether one goes on.

    Attributes:
        workers: number of parallel workers, or the address of a Dask scheduler whose workers
            compute, such as 'tcp://127.0.0.1:8786' ('local' starts one on this machine); no result
            depends on it. Without it as many processes as there are cores, where this process alone
            would take more than ten seconds (in a script that keeps its work below `if __name__ ==
            '__main__':`).
        scheduler: the address, in Python also next to a number of workers for 'local'.
        resume: continue with what the folder contains.

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
        """The number of processes; None where it is left to the study or to a cluster."""
        return None if isinstance(self.workers, str) else self.workers

    @property
    def cluster(self) -> str | None:
        """The address of a cluster's scheduler; None without one."""
        return self.workers if isinstance(self.workers, str) else self.scheduler


@keywords(StudyOptions)
def run_study(
    study: Study | str | Path,
    folder: str | Path,
    options: StudyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> StudyResult:
    """Compute a study, or what is missing of it, and reduce it.

    Numbers depend on the study alone: neither on workers nor on batches, nor on where it was
    stopped in between (workers of one kind of processor and compiler provided).

    Args:
        study: the study, or its file.
        folder: where its parts are kept; it is made where it is not there.
        options: who computes.
        progress: called with the number of samples that are done, and of all.

    Raises:
        DescriptionError: the file is wrong.
        InputError: the folder holds another study, or cannot be written.
        EngineError: pyarrow or a compiler is missing, the cluster is gone, or a worker has another
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
    kept = StudyFolder(folder)
    with kept.alone():
        kept.begin(study, {"tauloop": own_version()}, resume=options.resume)
        kept.forget_changed(study)
        todo = deque(kept.missing(study.count))
        left, tick = sum(last - first for first, last in todo), progress or (lambda *_: None)
        aside: list[tuple[int, int]] = []
        if left:
            with workers_of(options.count, options.cluster, left) as workers:
                done = study.count - left
                for batch in _batches(study, todo, workers, aside):
                    kept.write(batch.first, batch.inputs, batch.outcome)
                    done += batch.last - batch.first
                    tick(done, study.count)
        else:
            tick(study.count, study.count)
        return reduced(study, kept, sorted(aside))


def read_results(study: Study | str | Path, folder: str | Path) -> StudyResult:
    """What a study says by the parts that are there, without computing any.

    Raises:
        InputError: the folder holds another study or none.
    """
    study = study if isinstance(study, Study) else load_study(study)
    kept = StudyFolder(folder)
    if not kept.manifest:
        raise InputError.of(str(folder), "holds no study", "compute it first")
    kept.begin(study, {}, resume=True)
    return reduced(study, kept, ())


class _Pace:
    """How many samples a batch shall have, by what those before have taken."""

    def __init__(self, left: int) -> None:
        self._left, self.size = left, 1

    def learn(self, batch: Batch, workers: Workers) -> None:
        """Aim at a share of the work, within the limits of a batch; workers are told what is left."""
        n = batch.last - batch.first
        self._left -= n
        each = max(batch.seconds / n, 1e-9)
        workers.expect(self._left * each)
        aim = min(max(self._left * each / (workers.width * BATCHES), SHORTEST), LONGEST)
        self.size = max(
            min(int(aim / each), GROWTH * n if batch.seconds < SHORTEST else self.size * 2), 1
        )


def _batches(
    study: Study, todo: deque[tuple[int, int]], workers: Workers, aside: list[tuple[int, int]]
) -> Iterator[Batch]:
    """Batches as they are done, in whatever order; ranges that kill their workers are put aside."""
    pace = _Pace(sum(last - first for first, last in todo))
    at_work: dict[Future[Batch | Unfit], tuple[int, int]] = {}
    suspects: dict[tuple[int, int], int] = {}
    while todo or at_work or suspects:
        # one waits for each worker, so that none is idle
        most = 2 * workers.width if workers.width > 1 else 1
        while todo and not suspects and len(at_work) < most:
            first, last = todo.popleft()
            end = min(first + pace.size, last)
            if end < last:
                todo.appendleft((end, last))
            at_work[workers.submit(study, first, end)] = (first, end)
        for future in workers.done(set(at_work)) if at_work else ():
            place = at_work.pop(future)
            try:
                batch = future.result()
            except Exception as error:
                if not (deaths := killed_by(error)):
                    raise
                suspects[place] = deaths
            else:
                if isinstance(batch, Unfit):
                    workers.leave(batch)
                    todo.appendleft(place)
                    continue
                pace.learn(batch, workers)
                yield batch
        while suspects and not at_work:
            place, deaths = suspects.popitem()
            batch_alone = _alone(study, place, workers, deaths)
            if batch_alone is None:
                aside.append(place)
            else:
                yield batch_alone


def _alone(study: Study, place: tuple[int, int], workers: Workers, deaths: int) -> Batch | None:
    """A batch that was at work when a worker died, with nothing beside it; None where it kills that again and again."""
    is_proven = False
    while deaths < MOST_KILLED or not is_proven:
        try:
            batch = workers.alone(study, *place)
        except Exception as error:
            if not (again := killed_by(error)):
                raise
            deaths, is_proven = deaths + again, True
        else:
            if isinstance(batch, Batch):
                return batch
            workers.leave(batch)
    return None
