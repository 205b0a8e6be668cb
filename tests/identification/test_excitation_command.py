"""``tauloop plan excitation``: what is refused before the work, and what an early interrupt leaves."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from time import monotonic

import numpy as np
import pytest

from tauloop import load
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.identification.excitation import (
    progress as excitation_progress,
    search as excitation_search,
)
from tauloop.identification.excitation.design import ExcitationOptions, plan_excitation
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.search import random_search
from tauloop.identification.excitation.solver import STOPPED, SolverOptions, StartOutcome

TASK = ExcitationTask(
    harmonics=3,
    period=3.0,
    limits=ExcitationLimits(stroke=0.3, max_velocity=3.0, max_acceleration=20.0),
)


def test_times_and_tolerances_below_zero_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        SolverOptions(start_time_limit=-4.0, optimality=0.0, iterations=0)
    assert {problem.where for problem in caught.value.problems} == {
        "start_time_limit",
        "optimality",
        "iterations",
    }


def test_ranges_of_the_file_are_limits_enough() -> None:
    """No stroke, speed or acceleration: series are as large as the joints' ranges let them be, not infinite."""
    problem = ExcitationProblem(load("five_bar"), ExcitationTask(harmonics=3, period=3.0))
    assert np.isinf(problem.limits).all()
    search = random_search(problem, 8, np.random.default_rng(0))
    assert len(search.coefficients) == 8
    for coefficients in search.coefficients:
        judged = problem.evaluate(problem.series(coefficients).sample(problem.grid))
        assert 0.1 < judged.largest_share < 1.0


def test_an_interrupt_of_the_random_search_keeps_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        excitation_search,
        "SAMPLES_PER_CHUNK",
        5 * len(ExcitationProblem(load("five_bar"), TASK).grid),
    )

    def progress(phase: str, done: float, _: float) -> None:
        assert phase == "random"
        if done == 10:
            os.kill(os.getpid(), signal.SIGINT)

    excitation = plan_excitation(
        load("five_bar"), ExcitationOptions(task=TASK, random=1000, starts=2), progress=progress
    )
    tried = excitation.random.tried
    assert 10 <= tried < 1000
    whole = plan_excitation(load("five_bar"), ExcitationOptions(task=TASK, random=tried, starts=0))
    assert excitation.series.mu == pytest.approx(whole.series.mu)
    assert excitation.starts == ()
    assert excitation.status is Status.DOUBTFUL
    assert any("was not optimized" in line for line in excitation.advice)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)  # the former handler is back


def test_a_step_that_takes_long_is_left_with_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The optimiser does not look around for a minute, as in the middle of an iteration with many loops."""
    woken = threading.Event()

    def asleep(*_: object, **__: object) -> Iterator[tuple[int, StartOutcome]]:
        os.kill(os.getpid(), signal.SIGINT)
        woken.wait(60.0)
        return iter(())

    monkeypatch.setattr(excitation_progress, "solve_all", asleep)
    began = monotonic()
    excitation = plan_excitation(
        load("five_bar"), ExcitationOptions(task=TASK, random=20, starts=2)
    )
    assert monotonic() - began < 30.0
    woken.set()
    assert [start.status for start in excitation.starts] == [STOPPED]
    assert excitation.status is Status.DOUBTFUL
    alone = plan_excitation(load("five_bar"), ExcitationOptions(task=TASK, random=20, starts=0))
    assert excitation.series.mu == pytest.approx(alone.series.mu)


def test_an_interrupt_before_there_is_a_series_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        woken.wait(60.0)

    woken = threading.Event()
    monkeypatch.setattr(excitation_progress, "random_search", asleep)
    with pytest.raises(KeyboardInterrupt):
        plan_excitation(load("five_bar"), ExcitationOptions(task=TASK, random=20))
    woken.set()
