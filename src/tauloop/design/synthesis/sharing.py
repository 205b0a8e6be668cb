"""Compute the scores of a population with several processes or the workers of a cluster.

The scores of a candidate depend only on the candidate. Therefore they do not depend on the number of
workers or on the division of a population.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import replace

import numpy as np

from tauloop.common.execution.cluster import ClusterWork, WorkSharing
from tauloop.common.execution.processes import SharedWork, can_import_main, cores
from tauloop.design.synthesis.actuator_scores import PreparedMotion
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import Scores, TaskEvaluator
from tauloop.design.synthesis.task import DesignTask
from tauloop.model import Model

#: Number of parts of a population for each process.
PARTS_PER_PROCESS = 4
#: Number of parts of a population for a cluster.
CLUSTER_PARTS = 16
#: Seconds of remaining work above which processes are started; a start takes several seconds.
MIN_WORK_FOR_PROCESSES = 30.0


class CandidateScorer:
    """A task with its motion, from which a worker builds its evaluator once."""

    def __init__(self, task: DesignTask, prepared: PreparedMotion) -> None:
        """Store the task and its motion."""
        self._task = task
        self._prepared = prepared
        self._scores: ExpensiveScores | None = None

    def __getstate__(self) -> tuple[DesignTask, PreparedMotion]:
        """Return the state that is sent to a worker: the model without its compiled functions."""
        return replace(self._task, model=Model(self._task.model.mechanism)), self._prepared

    def __setstate__(self, state: tuple[DesignTask, PreparedMotion]) -> None:
        """Restore the task in a worker."""
        self._task, self._prepared = state
        self._scores = None

    @property
    def scores(self) -> ExpensiveScores:
        """The scores of candidates in this process."""
        if self._scores is None:
            self._scores = ExpensiveScores(TaskEvaluator(self._task), self._prepared)
        return self._scores


def part_scores(scorer: CandidateScorer, x: np.ndarray) -> tuple[Scores, int, str]:
    """Return scores of candidates (N, d), the number of expensive ones, and their last problem."""
    scores = scorer.scores
    previously_evaluated = scores.evaluated
    scores.problem = ""
    result = scores(x)
    return result, scores.evaluated - previously_evaluated, scores.problem


class SharedScores:
    """Scores of populations, computed by several processes if this is faster.

    A task without expensive quantities is scored in this process, whose threads use all cores. If
    the address of a cluster is given, its scheduler must answer even for such a task.
    """

    def __init__(
        self, expensive: ExpensiveScores, task: DesignTask, workers: int | str | None
    ) -> None:
        """Store how populations are divided.

        Args:
            expensive: scores in this process.
            task: the task.
            workers: number of processes, or address of a Dask scheduler; None to decide by the time
                of the first generation.
        """
        self._expensive = expensive
        self._task = task
        self._workers = workers
        self._scorer = CandidateScorer(task, expensive.actuators.prepared)
        self._stack = ExitStack()
        self._sharing: WorkSharing | None = None
        self._parts = 1
        self._generations_done = 0

    def close(self) -> None:
        """End the processes, or disconnect from the cluster."""
        self._stack.close()

    def __call__(self, x: np.ndarray) -> Scores:
        """Return the scores of candidates (N, d).

        Raises:
            EngineError: a process was killed, or the cluster cannot be used.
        """
        is_shared = bool(self._expensive.wanted)
        if self._sharing is None and (is_shared or isinstance(self._workers, str)):
            self._start(self._workers)
        if self._sharing is None or not is_shared:
            return self._score_here(x)
        items = np.array_split(x, min(self._parts, len(x)))
        parts = []
        for scores, evaluated, problem in self._sharing.results(part_scores, self._scorer, items):
            parts.append(scores)
            self._expensive.evaluated += evaluated
            self._expensive.problem = problem or self._expensive.problem
        return joined(parts)

    def _start(self, workers: int | str | None) -> None:
        """Start a number of processes, or connect to a cluster."""
        if isinstance(workers, str):
            self._sharing = self._stack.enter_context(closing(ClusterWork(workers)))
            self._parts = CLUSTER_PARTS
        elif workers is not None and workers > 1:
            self._sharing = self._stack.enter_context(SharedWork(workers))
            self._parts = PARTS_PER_PROCESS * workers

    def _score_here(self, x: np.ndarray) -> Scores:
        """Return scores from this process; start processes if much work remains."""
        start = time.perf_counter()
        scores = self._expensive(x)
        seconds = time.perf_counter() - start
        self._generations_done += 1
        remaining = seconds * (self._task.search.generations - self._generations_done)
        is_worth_it = self._workers is None and remaining > MIN_WORK_FOR_PROCESSES
        if is_worth_it and self._expensive.wanted and cores() > 1 and can_import_main():
            self._start(cores())
        return scores


def joined(parts: list[Scores]) -> Scores:
    """Return the scores of all parts of a population, in their order."""
    values = {}
    for name in parts[0].values:
        values[name] = np.concatenate([part.values[name] for part in parts])
    return Scores(
        values=values,
        violations=np.concatenate([part.violations for part in parts]),
        objectives=np.concatenate([part.objectives for part in parts]),
        poses=np.concatenate([part.poses for part in parts]),
    )
