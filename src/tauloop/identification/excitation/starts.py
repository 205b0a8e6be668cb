"""All starts of an optimisation, one after the other or in parallel processes; an interrupt keeps what there is."""

from __future__ import annotations

import multiprocessing as mp
import queue
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tauloop.identification.excitation.criteria import Criterion
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.solver import ExcitationProgram, Outcome, SolverOptions
from tauloop.interrupts import interrupts
from tauloop.mechanism.model import Mechanism

Report = Callable[[str, float, float], None]
Solve = Callable[[np.ndarray, SolverOptions, Callable[[float], bool]], Outcome]
#: Seconds between two looks at workers that are silent, and until a stopped one must have ended.
LOOK, END = 0.2, 20.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What a worker needs; all of it can be sent to another process."""

    mechanism: Mechanism
    task: ExcitationTask
    before: np.ndarray
    independent: np.ndarray
    criterion: Criterion
    starts: tuple[tuple[int, np.ndarray], ...]
    options: SolverOptions
    polishes: bool


def solve_all(
    problem: ExcitationProblem,
    independent: np.ndarray,
    criterion: Criterion,
    starts: list[np.ndarray],
    options: SolverOptions,
    processes: int,
    report: Report,
    *,
    polishes: bool = False,
) -> list[Outcome]:
    """Optimise from all starts.

    Args:
        problem: the task.
        independent: which unknowns represent the base parameters.
        criterion: what is made small.
        starts: series (n_free, 2 K + 1) that keep all limits.
        options: of the solver.
        processes: among which starts are shared out; with one, they run here.
        report: called with "optimising" or "polishing", the number of starts that have ended, and of all.
        polishes: whether the starts are optima already, to be followed on the finer grid.

    Returns:
        One outcome per start that has begun: with an interrupt there may be fewer, but at least one.
    """
    phase = "polishing" if polishes else "optimising"

    def tell(done: int) -> None:
        report(phase, done, len(starts))

    tell(0)
    with interrupts() as is_stopped:
        if processes == 1 or len(starts) == 1:
            solve = _solver(problem, independent, criterion, polishes)
            return _one_by_one(solve, starts, options, is_stopped, tell)
        shares = [
            Work(
                mechanism=problem.mechanism,
                task=problem.task,
                before=problem.before,
                independent=independent,
                criterion=criterion,
                starts=tuple(enumerate(starts))[k::processes],
                options=options,
                polishes=polishes,
            )
            for k in range(min(processes, len(starts)))
        ]
        found = _in_parallel(shares, len(starts), is_stopped, tell)
        return [found.get(k) or _failed(criterion, start) for k, start in enumerate(starts)]


def _solver(problem: ExcitationProblem, independent: np.ndarray, criterion: Criterion, polishes: bool) -> Solve:
    if polishes:
        return ExcitationProgram(problem, independent, criterion, problem.polish_grid).polish
    return ExcitationProgram(problem, independent, criterion).solve


def _failed(criterion: Criterion, start: np.ndarray) -> Outcome:
    """A start whose worker has died or was stopped before it began."""
    return Outcome(coefficients=start, value=np.inf, started=np.inf, status="no answer", converged=False, iterations=0)


def _one_by_one(
    solve: Solve,
    starts: list[np.ndarray],
    options: SolverOptions,
    is_stopped: Callable[[], bool],
    tell: Callable[[int], None],
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for start in starts:

        def watch(_: float, done: int = len(outcomes)) -> bool:
            tell(done)
            return is_stopped()

        outcomes.append(solve(start, options, watch))
        tell(len(outcomes))
        if is_stopped():
            break
    return outcomes


def _in_parallel(
    shares: list[Work], total: int, is_stopped: Callable[[], bool], tell: Callable[[int], None]
) -> dict[int, Outcome]:
    """Outcomes by number of the start. New interpreters are started, for threads may run in this one."""
    context = mp.get_context("spawn")
    stop, answers = context.Event(), context.Queue()
    workers = [context.Process(target=_work, args=(share, stop, answers), daemon=True) for share in shares]
    for worker in workers:
        worker.start()
    found: dict[int, Outcome] = {}
    try:
        while len(found) < total:
            if is_stopped():
                stop.set()
            try:
                number, outcome = answers.get(timeout=LOOK)
            except queue.Empty:
                tell(len(found))
                if any(worker.is_alive() for worker in workers):
                    continue
                with suppress(queue.Empty):
                    number, outcome = answers.get(timeout=LOOK)
                    found[number] = outcome
                    continue
                break
            found[number] = outcome
            tell(len(found))
    finally:
        stop.set()
        for worker in workers:
            worker.join(timeout=END)
            if worker.is_alive():
                worker.terminate()
    return found


def _work(work: Work, stop: Any, answers: Any) -> None:
    """Run a share of the starts in a process of its own; interrupts go to the process that waits for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    problem = ExcitationProblem(work.mechanism, work.task, work.before)
    solve = _solver(problem, work.independent, work.criterion, work.polishes)
    for number, start in work.starts:
        if stop.is_set():
            break
        answers.put((number, solve(start, work.options, lambda _: bool(stop.is_set()))))
