"""What NumPy and SciPy cannot solve is an error with a name, from every public function and command that solves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from kills import prepare

import tauloop as tl
from tauloop.common.errors import IdentificationError, PoseError, TauloopError, solving

ZERO, INFINITE = np.zeros((2, 2)), np.full((2, 2), np.inf)


@pytest.mark.parametrize(
    "solve",
    [
        lambda: np.linalg.solve(ZERO, np.ones(2)),
        lambda: np.linalg.inv(ZERO),
        lambda: np.linalg.cholesky(-np.eye(2)),
        lambda: np.linalg.svd(np.full((2, 2), np.nan)),
        lambda: np.linalg.lstsq(INFINITE, np.ones(2)),
        lambda: scipy.linalg.solve_triangular(ZERO, np.ones(2)),
        lambda: scipy.linalg.qr(INFINITE),
    ],
)
def test_an_equation_without_a_solution_is_named(solve: Callable[[], object]) -> None:
    with pytest.raises(PoseError, match="the equations cannot be solved"), solving(PoseError):
        solve()


def test_other_errors_pass() -> None:
    @solving(IdentificationError)
    def wrong(n: int) -> int:
        return int("n" * n)

    with pytest.raises(ValueError, match="invalid literal"):
        wrong(2)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of a five-bar's stroke, and measured poses."""
    folder = tmp_path_factory.mktemp("given")
    prepare(folder)
    return folder


def scaled(inputs: Path, out: Path, name: str, columns: slice, factor: float) -> str:
    """A table with some of its columns multiplied."""
    header, *_ = (inputs / name).read_text(encoding="utf-8").splitlines()
    rows = np.loadtxt(inputs / name, delimiter=",", skiprows=1)
    rows[:, columns] *= factor
    np.savetxt(out / name, rows, delimiter=",", header=header, comments="")
    return str(out / name)


def test_forces_that_say_nothing_are_named(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(TauloopError) as caught:
        tl.identify(tl.load("five_bar"), scaled(inputs, tmp_path, "log.csv", slice(3, 5), 0.0))
    assert "forces" in [problem.where for problem in caught.value.problems]


def test_numbers_that_overflow_are_named_with_their_column(inputs: Path, tmp_path: Path) -> None:
    log = scaled(inputs, tmp_path, "log.csv", slice(3, 5), 1e200)
    with pytest.raises(TauloopError) as caught:
        tl.identify(tl.load("five_bar"), log)
    refusals = caught.value.problems
    assert all(
        "exceeds 1e+100, more than any sensor measures" in problem.what for problem in refusals[:3]
    )
    assert refusals[0].where == "column 'force.motor_1'"
    poses = scaled(inputs, tmp_path, "poses.csv", slice(2, 4), 1e200)
    options = tl.CalibrationOptions(parameters=("*length*",), noise="0.01 mm")
    with pytest.raises(TauloopError, match=r"exceeds 1e\+100"):
        tl.calibrate(tl.load("five_bar"), [poses], options)
