"""Optimization from several starts, in sequence or in parallel processes."""

from __future__ import annotations

import multiprocessing as mp
import queue
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from tauloop.common.execution.processes import prepare_worker
from tauloop.common.records import dataclass
from tauloop.identification.excitation.criteria import ExcitationCriterion
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.solver import (
    ExcitationProgram,
    SolverOptions,
    StartOutcome,
    Watch,
)
from tauloop.mechanism.model import Mechanism

#: Function that is called with the phase, and the completed and total number of steps.
Report = Callable[[str, float, float], None]
#: Function that optimizes from a start.
Solve = Callable[[np.ndarray, SolverOptions, Watch], StartOutcome]
#: Time between two checks of workers, s.
POLL_INTERVAL = 0.1
#: Time after which workers that do not stop are terminated, s.
STOP_TIMEOUT = 0.5
#: Shortest time between two interim series of a worker, s.
REPORT_INTERVAL = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """The input of a worker, which can be sent to another process.

    Attributes:
        mechanism, task, before: arguments of the `ExcitationProblem`.
        independent: indices of the unknowns that represent the base parameters.
        criterion: criterion to minimize.
        starts: coefficients (n_free, 2 K + 1) of series that meet all limits, each with its number.
        options: options of the solver.
        polishes: whether the starts are optima to be optimized further on the finer grid.
    """

    mechanism: Mechanism
    task: ExcitationTask
    before: np.ndarray
    independent: np.ndarray
    criterion: ExcitationCriterion
    starts: tuple[tuple[int, np.ndarray], ...]
    options: SolverOptions
    polishes: bool


def solve_all(
    problem: ExcitationProblem,
    work: Work,
    processes: int,
    report: Report,
    *,
    is_stopped: Callable[[], bool],
    offer: Callable[[np.ndarray], None],
) -> Iterator[tuple[int, StartOutcome]]:
    """Optimize from all starts, and yield the number and outcome of each when it ends.

    Args:
        problem: the task.
        work: all starts.
        processes: number of processes; with 1, all starts run in this process.
        report: called with "optimizing" or "polishing", and the completed and total number of
            starts.
        is_stopped: function that returns True to end early.
        offer: called during the optimization with each series that is better than all before.
    """
    phase = "polishing" if work.polishes else "optimizing"
    done = 0
    total = len(work.starts)

    def poll() -> bool:
        report(phase, done, total)
        return is_stopped()

    if processes == 1 or total == 1:
        outcomes = _solve_in_sequence(problem, work, poll, offer)
    else:
        parts = [
            replace(work, starts=work.starts[k::processes]) for k in range(min(processes, total))
        ]
        outcomes = _solve_in_parallel(parts, total, poll, offer)
    for number, outcome in outcomes:
        done += 1
        report(phase, done, total)
        yield number, outcome


def _solver(problem: ExcitationProblem, work: Work) -> Solve:
    """Return the function that optimizes from a start."""
    if work.polishes:
        grid = problem.polish_grid
        return ExcitationProgram(problem, work.independent, work.criterion, grid).polish
    return ExcitationProgram(problem, work.independent, work.criterion).solve


def _solve_in_sequence(
    problem: ExcitationProblem,
    work: Work,
    poll: Callable[[], bool],
    offer: Callable[[np.ndarray], None],
) -> Iterator[tuple[int, StartOutcome]]:
    """Yield the number and outcome of each start, in this process."""
    solve = _solver(problem, work)

    def watch(better: np.ndarray | None) -> bool:
        if better is not None:
            offer(better)
        return poll()

    for number, start in work.starts:
        if poll():
            return
        yield number, solve(start, work.options, watch)


def _solve_in_parallel(
    parts: list[Work], total: int, poll: Callable[[], bool], offer: Callable[[np.ndarray], None]
) -> Iterator[tuple[int, StartOutcome]]:
    """Yield the number and outcome of each start, in parallel processes, one for each part.

    The processes are new interpreters, because threads may run in this one.
    """
    context = mp.get_context("spawn")
    stop = context.Event()
    answers = context.Queue()
    workers = [
        context.Process(target=_run_worker, args=(part, stop, answers), daemon=True)
        for part in parts
    ]
    for worker in workers:
        worker.start()
    remaining = total
    deadline = float("inf")
    try:
        while remaining and monotonic() < deadline:
            is_last = not any(worker.is_alive() for worker in workers)
            if poll() and not stop.is_set():
                stop.set()
                deadline = monotonic() + STOP_TIMEOUT
            try:
                number, answer = answers.get(timeout=POLL_INTERVAL)
            except queue.Empty:
                if is_last:
                    return
                continue
            if isinstance(answer, StartOutcome):
                remaining -= 1
                yield number, answer
            else:
                offer(answer)
    finally:
        for worker in workers:
            # The worker has completed its starts, or is in a long step and cannot react.
            worker.terminate()
            worker.join()


def _run_worker(work: Work, stop: Any, answers: Any) -> None:
    """Run one worker's starts in this process."""
    prepare_worker()
    problem = ExcitationProblem(work.mechanism, work.task, work.before)
    solve = _solver(problem, work)
    for number, start in work.starts:
        latest = monotonic()

        def watch(better: np.ndarray | None, number: int = number) -> bool:
            nonlocal latest
            if better is not None and monotonic() - latest > REPORT_INTERVAL:
                latest = monotonic()
                answers.put((number, better))
            return bool(stop.is_set())

        if stop.is_set():
            return
        answers.put((number, solve(start, work.options, watch)))
