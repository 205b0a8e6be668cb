"""The benchmarks of identification measure what they say: the stream finds the parameters, and coverage is counted."""

from __future__ import annotations

import importlib
import json
import subprocess
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tauloop import IdentificationOptions, identify
from tauloop.compiler.c.calling.compiler import find_compiler
from tauloop.formats import loads
from tauloop.identification import PreparationOptions
from tauloop.logs import write_log
from tauloop.logs.log import build_log

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SAMPLES = 12_345
#: Of some twenty parameters, in standard deviations.
DEVIATIONS = 5.0
#: Residuals agree to this share: the peer's derivatives are central differences, and ends are
#: filtered otherwise.
RESIDUALS = 0.05


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


@pytest.mark.skipif(
    find_compiler() is None,
    reason="the stream is measured with machine code, and there is no compiler",
)
def test_the_stream_finds_the_parameters_in_parts_that_do_not_divide_it(monkeypatch):
    result = module("bench_identification", monkeypatch).stream(SAMPLES)
    assert result["unknowns"] == 21
    assert result["largest_deviation"] < DEVIATIONS
    assert result["seconds"] > 0.0


def test_the_arm_of_seven_bodies_can_be_read(monkeypatch):
    machine = loads(module("bench_identification", monkeypatch).seven_bodies())
    assert len(machine.joints) == len(machine.actuators) == 7


def test_without_figaroh_its_row_says_so(monkeypatch):
    peer = module("peers.figaroh_peer", monkeypatch)
    monkeypatch.setitem(importlib.import_module("sys").modules, "figaroh.tools.regressor", None)
    with pytest.raises(peer.NotInstalled):
        peer.modules()


def test_least_squares_by_hand_leave_the_residuals_of_identify(monkeypatch, tmp_path):
    closed_form = module("closed_form", monkeypatch)
    peer = module("peers.numpy_least_squares", monkeypatch)
    signals = closed_form.log_of(closed_form.five_bar(), np.random.default_rng(0), seconds=20.0)
    path = write_log(tmp_path / "log.parquet", build_log(signals.time, signals.channels))
    residuals = peer.identify(path, 20.0, 96, 12)
    options = IdentificationOptions(
        preparation=PreparationOptions(cutoff=20.0, trim=96, decimation=12)
    )
    whole = identify(closed_form.five_bar().mechanism, path, options).whole_log
    assert residuals == pytest.approx([fit.rmse for fit in whole.training], rel=RESIDUALS)


def test_a_command_that_fails_is_not_measured(monkeypatch):
    bench = module("bench_identification", monkeypatch)
    with pytest.raises(subprocess.CalledProcessError):
        bench.in_process("-c", "raise SystemExit(1)")


def test_coverage_is_counted_by_each_model_of_the_errors(monkeypatch):
    coverage = module("interval_coverage", monkeypatch)
    arm = coverage.Arm()
    rows = {row["errors"]: row for row in coverage.torque_noise(arm, 25)}
    assert rows["filter known"]["covered"] > rows["independent"]["covered"]
    assert 0.85 < rows["filter known"]["covered"] <= 1.0  # 25 runs: a standard deviation of 1.5 %
    noise = coverage.known_correlation()
    assert noise[0] == 1.0
    assert abs(noise[1]) < 1.0


def test_what_differs_from_log_to_log_is_covered_by_deviations_clustered_by_log(monkeypatch):
    coverage = module("interval_coverage", monkeypatch)
    monkeypatch.setattr(coverage, "STRESSES", ("scale",))
    (row,) = coverage.stressed(coverage.Arm(), 6)
    assert row["logs"] > row["independent"]
    assert row["logs"] > 0.85  # 48 parameters


def test_coverage_of_a_closed_form_is_counted(monkeypatch, tmp_path):
    coverage = module("independent_coverage", monkeypatch)
    monkeypatch.setattr(
        coverage, "CONDITIONS", {"forces 2 ms late": coverage.CONDITIONS["forces 2 ms late"]}
    )
    monkeypatch.setattr(
        coverage.closed_form, "log_of", partial(coverage.closed_form.log_of, seconds=6.0)
    )
    # the default evaluator compiles what many samples need, and not every function
    monkeypatch.setattr(coverage, "Compiled", lambda **_: None)
    (row,) = coverage.rows_of(1, "five-bar")
    covered, worst, ok = coverage.fractions(row)
    assert ok == 0.0
    assert 0.0 <= worst <= covered <= 1.0
    lines = list(coverage.table([row]))
    assert lines[-1].startswith("| five-bar | forces 2 ms late | ")
    file = tmp_path / "five_bar.json"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert coverage.read_rows([file]) == [row]
    (both,) = coverage.read_rows([file, file])
    assert both["seeds"] == 2 * row["seeds"]
    assert coverage.fractions(both) == pytest.approx((covered, worst, ok))
