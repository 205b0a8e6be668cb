"""All starts of an optimisation, one after the other or in parallel processes."""

from __future__ import annotations

import multiprocessing as mp
import queue
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from tauloop.common.processes import process_begins
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

#: Called with the phase, what is done and what there is to do.
Report = Callable[[str, float, float], None]
Solve = Callable[[np.ndarray, SolverOptions, Watch], StartOutcome]
#: Seconds between two looks at workers that are silent, until a stopped one is ended, and between
#: two series that one tells of before it has arrived.
LOOK, END, TOLD = 0.1, 0.5, 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What a worker needs; all of it can be sent to another process.

    Attributes:
        mechanism, task, before: of the `ExcitationProblem`.
        independent: which unknowns represent the base parameters.
        criterion: what is made small.
        starts: series (n_free, 2 K + 1) that keep all limits, each with its number.
        options: of the solver.
        polishes: whether the starts are optima already, to be followed on the finer grid.
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
    """Optimise from all starts: the number of each, and what came out, as it ends.

    Args:
        problem: the task.
        work: all starts.
        processes: among which starts are shared out; with one, they run here.
        report: called with "optimising" or "polishing", the number of starts that have ended, and
            of all.
        is_stopped: whether to end soon.
        offer: called with series that are better than those before, while a start is on its way.
    """
    phase, done, total = "polishing" if work.polishes else "optimising", 0, len(work.starts)

    def look() -> bool:
        report(phase, done, total)
        return is_stopped()

    if processes == 1 or total == 1:
        outcomes = _one_by_one(problem, work, look, offer)
    else:
        shares = [
            replace(work, starts=work.starts[k::processes]) for k in range(min(processes, total))
        ]
        outcomes = _in_parallel(shares, total, look, offer)
    for number, outcome in outcomes:
        done += 1
        report(phase, done, total)
        yield number, outcome


def _solver(problem: ExcitationProblem, work: Work) -> Solve:
    if work.polishes:
        return ExcitationProgram(
            problem, work.independent, work.criterion, problem.polish_grid
        ).polish
    return ExcitationProgram(problem, work.independent, work.criterion).solve


def _one_by_one(
    problem: ExcitationProblem,
    work: Work,
    look: Callable[[], bool],
    offer: Callable[[np.ndarray], None],
) -> Iterator[tuple[int, StartOutcome]]:
    solve = _solver(problem, work)

    def watch(better: np.ndarray | None) -> bool:
        if better is not None:
            offer(better)
        return look()

    for number, start in work.starts:
        if look():
            return
        yield number, solve(start, work.options, watch)


def _in_parallel(
    shares: list[Work], total: int, look: Callable[[], bool], offer: Callable[[np.ndarray], None]
) -> Iterator[tuple[int, StartOutcome]]:
    """Outcomes by number of the start. New interpreters are started, for threads may run in this one."""
    context = mp.get_context("spawn")
    stop, answers = context.Event(), context.Queue()
    workers = [
        context.Process(target=_work, args=(share, stop, answers), daemon=True) for share in shares
    ]
    for worker in workers:
        worker.start()
    left, until = total, float("inf")
    try:
        while left and monotonic() < until:
            is_last = not any(worker.is_alive() for worker in workers)
            if look() and not stop.is_set():
                stop.set()
                until = monotonic() + END
            try:
                number, answer = answers.get(timeout=LOOK)
            except queue.Empty:
                if is_last:
                    return
                continue
            if isinstance(answer, StartOutcome):
                left -= 1
                yield number, answer
            else:
                offer(answer)
    finally:
        for worker in workers:
            worker.terminate()  # its share is done, or it is in the middle of a long step
            worker.join()


def _work(work: Work, stop: Any, answers: Any) -> None:
    """Run a share of the starts in a process of its own."""
    process_begins()
    problem = ExcitationProblem(work.mechanism, work.task, work.before)
    solve = _solver(problem, work)
    for number, start in work.starts:
        latest = monotonic()

        def watch(better: np.ndarray | None, number: int = number) -> bool:
            nonlocal latest
            if better is not None and monotonic() - latest > TOLD:
                latest = monotonic()
                answers.put((number, better))
            return bool(stop.is_set())

        if stop.is_set():
            return
        answers.put((number, solve(start, work.options, watch)))
