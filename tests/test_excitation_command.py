"""``tauloop excite``: what is refused before the work, and what an early interrupt leaves."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tauloop import load
from tauloop.cli import excite as command
from tauloop.cli.app import app
from tauloop.errors import IdentificationError
from tauloop.identification import excitation_search
from tauloop.identification.excitation.design import ExcitationOptions, excite
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.search import random_search
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.result import Status

TASK = ExcitationTask(harmonics=3, period=3.0, limits=ExcitationLimits(stroke=0.3, speed=3.0, acceleration=20.0))


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["excite", "five_bar", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def test_files_that_cannot_be_written_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(command, "optimised", never)
    code, said = run(
        *("--out", tmp_path / "missing" / "motion.txt", "--figure", tmp_path / "motion.tiffy", "--frequency", 0)
    )
    assert code == 2
    for part in ("the ending '.txt'", "unknown ending 'tiffy'", "0 Hz; the fastest term", "No such file or directory"):
        assert part in said
    (tmp_path / "folder.csv").mkdir()
    code, said = run("--out", tmp_path / "folder.csv")
    assert code == 2
    assert "is a folder" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv"]  # nothing is left by the trial


def test_times_and_tolerances_below_zero_are_refused() -> None:
    wrong = ExcitationOptions(solver=SolverOptions(seconds=-4.0, tolerance=0.0, iterations=0))
    with pytest.raises(IdentificationError) as caught:
        excite(load("five_bar"), TASK, np.random.default_rng(0), options=wrong)
    names = {problem.where for problem in caught.value.problems}
    assert names == {f"options.solver.{name}" for name in ("seconds", "tolerance", "iterations")}


def test_ranges_of_the_file_are_limits_enough() -> None:
    """No stroke, speed or acceleration: series are as large as the joints' ranges let them be, not infinite."""
    problem = ExcitationProblem(load("five_bar"), ExcitationTask(harmonics=3, period=3.0))
    assert np.isinf(problem.limits).all()
    found = random_search(problem, 8, np.random.default_rng(0))
    assert len(found.coefficients) == 8
    for coefficients in found.coefficients:
        judged = problem.judge(problem.series(coefficients).sample(problem.grid))
        assert 0.1 < judged.largest_share < 1.0


def test_an_interrupt_of_the_random_search_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excitation_search, "CHUNK", 5 * len(ExcitationProblem(load("five_bar"), TASK).grid))

    def progress(phase: str, done: float, _: float) -> None:
        assert phase == "random"
        if done == 10:
            os.kill(os.getpid(), signal.SIGINT)

    options = ExcitationOptions(random=1000, starts=2)
    found = excite(load("five_bar"), TASK, np.random.default_rng(0), options=options, progress=progress)
    whole = excite(load("five_bar"), TASK, np.random.default_rng(0), options=ExcitationOptions(random=10, starts=0))
    assert found.random.tried == 10
    assert found.series.mu == pytest.approx(whole.series.mu)
    assert found.starts == ()
    assert found.status is Status.DOUBTFUL
    assert any("nothing was optimised" in line for line in found.advice)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)  # the former handler is back
