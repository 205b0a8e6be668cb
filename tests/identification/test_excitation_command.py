"""``tauloop excite``: what is refused before the work, and what an early interrupt leaves."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
from typer.testing import CliRunner

import tauloop as tl
from tauloop import Model, load
from tauloop.cli.app import app
from tauloop.errors import InputError
from tauloop.identification.excitation import progress as excitation_progress, search as excitation_search
from tauloop.identification.excitation.criteria import CRITERIA
from tauloop.identification.excitation.design import ExcitationOptions, excite
from tauloop.identification.excitation.limits import ExcitationLimits
from tauloop.identification.excitation.problem import ExcitationProblem, ExcitationTask
from tauloop.identification.excitation.search import random_search
from tauloop.identification.excitation.solver import STOPPED, SolverOptions, StartOutcome
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

    monkeypatch.setattr(tl, "excite", never)
    code, text = run(
        *("--out", tmp_path / "missing" / "motion.txt", "--figure", tmp_path / "motion.tiffy", "--frequency", 0)
    )
    assert code == 2
    for part in ("the ending '.txt'", "unknown ending 'tiffy'", "0 Hz; the fastest term", "No such file or directory"):
        assert part in text
    (tmp_path / "folder.csv").mkdir()
    code, text = run("--out", tmp_path / "folder.csv")
    assert code == 2
    assert "is a folder" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.csv"]  # nothing is left by the trial


def test_times_and_tolerances_below_zero_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        SolverOptions(seconds=-4.0, tolerance=0.0, iterations=0)
    assert {problem.where for problem in caught.value.problems} == {"seconds", "tolerance", "iterations"}
    code, text = run("--iterations", 0, "--random", 0, "--stroke", "1 kg", "--speed", "elbow=x")
    assert code == 2
    for part in ("--iterations: is 0", "--random: is 0", "--stroke: '1 kg' is a mass", "--speed: 'x' is not a number"):
        assert part in text


def test_the_commands_json_is_the_functions(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    words = ["--harmonics", 3, "--period", 3, "--stroke", "0.3", "--random", 12, "--starts", 0]
    assert run(*words, "--out", first)[0] == 0
    model = Model(load("five_bar"))
    ports = model.actuators.ports
    names = ports.position.columns
    center = float(ports.at(model.assembly.q)[0])
    limits = ["--speed", f"{names[0]}=3,{names[1]}=172 deg/s", "--acceleration", "20"]
    held = ["--hold", f"{names[0]}={center!r}", "--after", first, "--criterion", "determinant", "--moving", "--seed", 3]
    result = CliRunner().invoke(app, ["excite", "five_bar", *map(str, [*words, *limits, *held]), "--json"])
    speed = {names[0]: 3.0, names[1]: float(np.radians(172))}
    task = ExcitationTask(
        harmonics=3,
        period=3.0,
        limits=ExcitationLimits(stroke=0.3, speed=speed, acceleration=20.0),
        held={names[0]: center},
        rests=False,
    )
    criterion = CRITERIA["determinant"]
    options = ExcitationOptions(task=task, random=12, starts=0, after=(first,), criterion=criterion, seed=3)
    excitation = excite(load("five_bar"), options)
    assert json.loads(result.stdout) == json.loads(json.dumps(excitation.as_dict()))
    assert excitation.write_log(second, 100.0) == second


def test_ranges_of_the_file_are_limits_enough() -> None:
    """No stroke, speed or acceleration: series are as large as the joints' ranges let them be, not infinite."""
    problem = ExcitationProblem(load("five_bar"), ExcitationTask(harmonics=3, period=3.0))
    assert np.isinf(problem.limits).all()
    search = random_search(problem, 8, np.random.default_rng(0))
    assert len(search.coefficients) == 8
    for coefficients in search.coefficients:
        judged = problem.judge(problem.series(coefficients).sample(problem.grid))
        assert 0.1 < judged.largest_share < 1.0


def test_an_interrupt_of_the_random_search_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excitation_search, "CHUNK", 5 * len(ExcitationProblem(load("five_bar"), TASK).grid))

    def progress(phase: str, done: float, _: float) -> None:
        assert phase == "random"
        if done == 10:
            os.kill(os.getpid(), signal.SIGINT)

    excitation = excite(load("five_bar"), ExcitationOptions(task=TASK, random=1000, starts=2), progress=progress)
    tried = excitation.random.tried
    assert 10 <= tried < 1000
    whole = excite(load("five_bar"), ExcitationOptions(task=TASK, random=tried, starts=0))
    assert excitation.series.mu == pytest.approx(whole.series.mu)
    assert excitation.starts == ()
    assert excitation.status is Status.DOUBTFUL
    assert any("nothing was optimised" in line for line in excitation.advice)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)  # the former handler is back


def test_a_step_that_takes_long_is_left_with_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimiser does not look around for a minute, as in the middle of an iteration with many loops."""
    woken = threading.Event()

    def asleep(*_: object, **__: object) -> Iterator[tuple[int, StartOutcome]]:
        os.kill(os.getpid(), signal.SIGINT)
        woken.wait(60.0)
        return iter(())

    monkeypatch.setattr(excitation_progress, "solve_all", asleep)
    began = monotonic()
    excitation = excite(load("five_bar"), ExcitationOptions(task=TASK, random=20, starts=2))
    assert monotonic() - began < 30.0
    woken.set()
    assert [start.status for start in excitation.starts] == [STOPPED]
    assert excitation.status is Status.DOUBTFUL
    alone = excite(load("five_bar"), ExcitationOptions(task=TASK, random=20, starts=0))
    assert excitation.series.mu == pytest.approx(alone.series.mu)


def test_an_interrupt_before_there_is_a_series_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        woken.wait(60.0)

    woken = threading.Event()
    monkeypatch.setattr(excitation_progress, "random_search", asleep)
    with pytest.raises(KeyboardInterrupt):
        excite(load("five_bar"), ExcitationOptions(task=TASK, random=20))
    woken.set()
