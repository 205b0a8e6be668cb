"""`tl.identify`: equal to the command, from files or memory, with a user's estimators."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from planar_arm import MACHINE, arm_log, arm_motion

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.formats.library import loads
from tauloop.identification import (
    Estimate,
    Estimator,
    MeasuredLog,
    OrdinaryLeastSquares,
    PreparationOptions,
    TermOptions,
    TotalLeastSquares,
)
from tauloop.logs import Preparation, read_signals, write_log
from tauloop.model import Model

#: Number of samples of each log, at 200 Hz.
SAMPLE_COUNT = 2400
FILTER = PreparationOptions(cutoff=30.0, trim=60, decimation=2)
#: Relative difference of two calculations of the same fit: rounding only.
ROUNDING_TOLERANCE = 1e-12


class Halfway(Estimator):
    """An estimator of a user: the mean of ordinary and total least squares."""

    __slots__ = ()

    def estimate_from(self, regression: Any) -> Estimate:
        ordinary = OrdinaryLeastSquares().estimate_from(regression)
        total = TotalLeastSquares(column_error=1e-3).estimate_from(regression)
        return replace(ordinary, values=0.5 * (ordinary.values + total.values))

    def instruments(self, regression: Any, estimate: Estimate) -> np.ndarray:
        return OrdinaryLeastSquares().instruments(regression, estimate)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model(loads(MACHINE))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, model: Model) -> tuple[Path, Path]:
    """Return the files of two motions of the arm with its torques, next to the machine file."""
    folder = tmp_path_factory.mktemp("function")
    (folder / "arm.yaml").write_text(MACHINE, encoding="utf-8")
    paths = []
    for number, phase in enumerate((0.0, 1.0)):
        motion = arm_motion(SAMPLE_COUNT, phase)
        forces = model.actuators.inverse_dynamics(*motion[1:]).force
        log = arm_log(motion, forces, rng=np.random.default_rng(number))
        paths.append(write_log(folder / f"log_{number}.csv", log.dataset()))
    return paths[0], paths[1]


def test_logs_in_memory_need_no_files(model, files):
    """Logs are data alone, or data with a name, a preparation and known forces."""
    options = tl.IdentificationOptions(preparation=replace(FILTER, order=4, standstill=1e-6))
    read = tl.identify(model, files[0], options)
    bare = tl.identify(model, read_signals(files[0]), options)
    named = MeasuredLog(
        name="mine",
        log=read_signals(files[0]),
        preparation=Preparation(cutoff=30.0, trim=60, decimation=2),
    )
    own = tl.identify(model, named, tl.IdentificationOptions())
    assert (read.logs, bare.logs, own.logs) == (("log_0.csv",), ("log 1",), ("mine",))
    for case in (bare, own):
        assert np.array_equal(case.identification.values, read.identification.values)


def test_an_estimator_of_ones_own_stands_in_the_options(model, files):
    document = [
        tl.identify(
            model, files, tl.IdentificationOptions(preparation=FILTER, estimator=case)
        ).identification
        for case in ("ols", TotalLeastSquares(column_error=1e-3), Halfway())
    ]
    assert document[2].values == pytest.approx(
        0.5 * (document[0].values + document[1].values), rel=ROUNDING_TOLERANCE
    )


def test_options_are_refused_all_at_once():
    with pytest.raises(InputError) as raised:
        tl.IdentificationOptions(estimator="lasso", errors="none", hold_out=2.0)
    assert {problem.where for problem in raised.value.problems} == {
        "estimator",
        "errors",
        "hold_out",
    }
    with pytest.raises(InputError) as raised:
        tl.IdentificationOptions(estimator="iv", hold_out=0.0, terms=TermOptions(gains=True))
    assert {problem.where for problem in raised.value.problems} == {
        "commanded",
        "hold_out",
        "gains",
    }


@contextmanager
def packages_called(packages: set[str]) -> Iterator[None]:
    """Record the packages of Tauloop whose functions are called."""

    def called(frame: FrameType, event: str, _: object) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("tauloop."):
            packages.add(name.split(".")[1])

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def test_a_log_from_file_to_parameters_never_climbs_back_into_a_command(model, files, capsys):
    called: set[str] = set()
    with packages_called(called):
        tl.identify(model, files, tl.IdentificationOptions(preparation=FILTER, compare_logs=True))
    assert {"identification", "logs", "model"} <= called
    assert not called & {"cli", "report", "viewer", "engines"}
    assert capsys.readouterr().out == ""
