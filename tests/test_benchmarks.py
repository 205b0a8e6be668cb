"""The comparison with the other engines runs, and everyone agrees before anything is timed. No time is judged here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from extras import extra

from tauloop import Model
from tauloop.compiler.c.printing.operations import operations
from tauloop.formats.library import load

extra("pinocchio")
extra("mujoco")

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
MACHINE = "five_bar"
STATES = 20


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("compare_engines")


def peers(name: str) -> ModuleType:
    return importlib.import_module(f"peers.{name}")


def rows(name: str) -> ModuleType:
    return importlib.import_module(f"rows.{name}")


def quiet(text: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_small_machine_is_compared(
    bench: ModuleType,
    as_json: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # one batch of a few samples each
    monkeypatch.setattr(peers("comparison"), "BATCH", STATES)
    monkeypatch.setattr(peers("comparison"), "SMALL_BATCH", STATES)
    arguments = ["--machines", MACHINE, "--states", str(STATES), "--seconds", "0", "--no-cpp"]
    assert bench.main([*arguments, *(["--json"] if as_json else [])]) == 0
    text = capsys.readouterr().out
    if not as_json:
        assert all(
            word in text
            for word in (MACHINE, "Pinocchio", "MuJoCo", "no C++ program (switched off)")
        )
        return
    (machine,) = json.loads(text)["machines"]
    for work in ("inverse", "forward"):
        for own in machine[work]["tauloop"]:
            assert own["note"] or own["difference"] <= bench.TOLERANCE
    assert [peer["name"] for peer in machine["inverse"]["peers"]] == [
        "Pinocchio",
        "MuJoCo",
        "Drake",
        "CasADi's C",
    ]
    for peer in machine["inverse"]["peers"]:
        if "pip install 'tauloop[bench]'" in peer["note"]:
            continue
        assert peer["version"]
        assert peer["difference"] <= bench.TOLERANCE


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["delta", "gantry_tau_5dof", "hexapod", "spidermill"])
def test_drake_agrees(bench: ModuleType, name: str) -> None:
    extra("pydrake")
    comparison = peers("comparison")
    mechanism = comparison.frictionless(load(name))
    engine, motion, _ = comparison.consistent(mechanism, STATES, np.random.default_rng(2))
    states = comparison.tree_states(engine, motion)
    result = peers("drake_peer").run(comparison.peer_tree(engine.tree), states, 0.0)
    wanted = engine.inverse_dynamics(motion).forces
    assert comparison.difference(result.forces, wanted) <= bench.TOLERANCE


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_c_code_of_casadi_agrees(bench: ModuleType, function: str) -> None:
    comparison = peers("comparison")
    mechanism = comparison.frictionless(load(MACHINE))
    engine, motion, states = comparison.consistent(mechanism, STATES, np.random.default_rng(3))
    forces = engine.inverse_dynamics(motion).forces
    third, wanted = (
        (states.acceleration, forces)
        if function == "inverse_dynamics"
        else (forces, states.acceleration)
    )
    arrays = (states.position, states.velocity, third)
    result = peers("casadi_peer").run(mechanism, function, arrays, 0.0)
    assert comparison.difference(result.values, wanted) <= bench.TOLERANCE


def test_ratios_to_every_peer_are_listed(bench: ModuleType) -> None:
    row = rows("row")
    made = [
        row.Row(work="a", tauloop=1e-7, limit=5e-8, all_peers={"One 1": 2e-6, "Two 2": 3e-6}),
        row.Row(work="b", tauloop=2e-7, all_peers={"Two 2": 3e-6}),
        row.Row(work="with one peer", tauloop=1e-7, peer="Peer", peer_time=1e-6),
    ]
    assert list(row.ratios(made)) == [
        ["work", "Tauloop", "over limit", "One 1", "Two 2"],
        ["a", "100 ns", "2.00×", "20.0×", "30.0×"],
        ["b", "200 ns", "", "", "15.0×"],
    ]


def test_wrong_forces_are_not_timed(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, comparison = peers("own"), peers("comparison")
    honest = own.INVERSE[1]

    def make(mechanism: object) -> object:
        ready = honest.make(mechanism)
        return replace(
            ready, work=lambda p, v, a: ready.work(p, v, a) * (1.0 + 2.0 * bench.TOLERANCE)
        )

    monkeypatch.setattr(comparison, "INVERSE", (own.Contender(name="nearly", make=make),))
    arguments = ["--machines", MACHINE, "--states", str(STATES), "--seconds", "0", "--no-cpp"]
    assert bench.main(arguments) == 1
    assert (
        "Tauloop nearly, inverse dynamics differs from the reference by 2.0e-09"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["five_bar", "delta", "rcid"])
def test_the_cpp_program_agrees(bench: ModuleType, name: str) -> None:
    try:
        program = bench.pinocchio_cpp.program()
    except peers("cache").NotBuilt as error:
        pytest.skip(f"Pinocchio in C++: {error}")
    comparison = peers("comparison")
    mechanism = comparison.frictionless(load(name))
    engine, motion, _ = comparison.consistent(mechanism, STATES, np.random.default_rng(1))
    states = comparison.tree_states(engine, motion)
    record = bench.pinocchio_cpp.run(program, comparison.peer_tree(engine.tree), states, 0.0)
    wanted = engine.inverse_dynamics(motion).forces
    assert comparison.difference(record.forces, wanted) <= bench.TOLERANCE
    assert record.forward_error is not None
    assert record.forward_error <= bench.TOLERANCE


def test_the_cpp_regressor_gives_the_forces(bench: ModuleType) -> None:
    try:
        program = bench.pinocchio_cpp.program()
    except peers("cache").NotBuilt as error:
        pytest.skip(f"Pinocchio in C++: {error}")
    settings = peers("comparison").Settings(states=STATES, seconds=0.0, cpp=program)
    (row,) = rows("regressor").rows(settings, quiet, name="delta")
    assert row.peer == "Pinocchio C++"


def test_regressors_of_both_give_the_forces_or_are_not_timed(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    regressor = rows("regressor")
    settings = peers("comparison").Settings(states=STATES, seconds=0.0)
    (row,) = regressor.rows(settings, quiet, name="delta")
    assert row.peer == "Pinocchio in Python"
    assert row.work == f"delta, regressor (3 × {len(Model(load('delta')).pi)}), batch"
    honest = regressor.pinocchio_python.regressor

    def nearly(*arguments: object) -> object:
        result = honest(*arguments)
        return replace(result, forces=result.forces * (1.0 + 2.0 * bench.TOLERANCE))

    monkeypatch.setattr(regressor.pinocchio_python, "regressor", nearly)
    with pytest.raises(peers("comparison").Disagreement, match="by Pinocchio in Python differs"):
        list(regressor.rows(settings, quiet, name="delta"))


@pytest.mark.parametrize("name", ["delta", "rcid"])
def test_scipy_solves_the_same_loops(bench: ModuleType, name: str) -> None:
    """SciPy's coordinates along a motion are those of the interpreter, found from the reference pose."""
    tracking, model = rows("tracking"), Model(load(name))
    position = tracking.motion(model, STATES)
    _, q = tracking.scipy_time(model, position)
    assert np.abs(q - model.forward_kinematics(position).q).max() <= tracking.TOLERANCE
    assert np.ptp(position, axis=0).min() > 1e-4  # the actuators move


def test_a_stream_stays_within_its_memory_and_repeats_its_input(bench: ModuleType) -> None:
    streaming, samples = rows("streaming"), 20_000
    result = streaming.streamed("delta", samples, (samples // 2,))
    assert (result["input"], result["output"], len(result["times"])) == (
        samples * 9 * 8,
        samples * 3 * 8,
        2,
    )
    assert result["beyond"] is None or 0 <= result["beyond"] < streaming.ALLOWED


def test_least_times_follow_from_operations(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = rows("limits")
    measured = limits.core()
    if measured is None:
        pytest.skip("there is no C compiler: nothing was measured")
    assert 1e-10 < measured.cycle < 1e-8
    assert measured.root > 0.0 < measured.division
    monkeypatch.setattr(
        limits, "core", lambda further: limits.Core(cycle=1.0, division=2.0, root=3.0, lanes=4)
    )
    function = Model(load("delta")).platform.source_function("inverse_dynamics", ("force",))
    counts = operations(function)["once"]
    slow = 2.0 * counts["divisions"] + 3.0 * counts["roots"]
    assert counts["divisions"] > 0 < counts["roots"]
    assert limits.limits(function, in_lanes=True) == (sum(counts.values()) / 8.0, slow)
    assert limits.limits(function, in_lanes=False) == (sum(counts.values()) / 2.0, 4.0 * slow)


def test_the_hexapod_gets_as_many_legs_as_are_asked_for(bench: ModuleType) -> None:
    scaling = importlib.import_module("bench_scaling")
    totals = []
    for n in (3, 4, 5, 7):
        model = Model(scaling.with_legs(n))
        assert (len(model.mechanism.actuators), model.assembly.mobility) == (n, 6)
        function = model.platform.source_function("forward_dynamics", ("acceleration",))
        totals.append(sum(operations(function)["once"].values()))
    slope, _, away = scaling.line((3, 4, 5, 7), totals)
    assert slope > 0.0
    assert away < 0.01  # of the largest count: the elimination orders differ a little


def test_a_line_is_fitted(bench: ModuleType) -> None:
    slope, zero, away = importlib.import_module("bench_scaling").line(
        (1.0, 2.0, 3.0), (5.0, 7.0, 9.0)
    )
    assert (slope, zero) == pytest.approx((2.0, 3.0))
    assert away < 1e-12
    assert importlib.import_module("bench_scaling").line((0, 1, 2), (0, 3, 0))[2] == pytest.approx(
        2.0 / 3.0
    )


def test_the_table_goes_between_the_marks_of_a_page(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    speed, row = importlib.import_module("bench_speed"), rows("row")
    made = [
        row.Row(
            work="a | b",
            tauloop=2e-7,
            peer="Peer",
            version="1.2",
            peer_time=5e-6,
            target="40×",
            limit=1e-7,
        ),
        row.Row(work="left out", tauloop=None, note="it is not here"),
    ]
    monkeypatch.setitem(speed.SECTIONS, "regressor", lambda settings, say: made)
    page = tmp_path / "page.md"
    arguments = ["--only", "regressor", "--no-cpp", "--markdown", str(page)]
    page.write_text("before\n", encoding="utf-8")
    assert speed.main(arguments) == 1
    assert "lacks the marks" in capsys.readouterr().err
    page.write_text(
        "\n".join(("before", speed.SPEED_MARKS[0], "old", speed.SPEED_MARKS[1], "after\n")),
        encoding="utf-8",
    )
    assert speed.main(arguments) == 0
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert "old" not in lines
    assert "| a / b | 200 ns | Peer 1.2 | 5.00 µs | 25.0× | 100 ns |  |" in lines
    assert not any("left out" in line for line in lines)  # it has no peer


#: Options with which a benchmark takes seconds.
SHORT = {
    "bench_batches": ["--machines", "five_bar", "--seconds", "0"],
    "bench_calibration": ["--seconds", "0", "--candidates", "200", "--replicates", "10"],
    "bench_certificates": ["--boxes", "delta, 0.3", "--runs", "1"],
    "bench_compilers": ["--machines", "five_bar"],
    "bench_control": ["--seconds", "0", "--no-cpp", "--no-mujoco"],
    "bench_derivatives": ["--no-cpp"],
    "bench_drives": ["--runs", "1"],
    "bench_fastest": ["--paths", "1"],
    "bench_gpu": ["--machines", "five_bar", "--samples", "2000", "--seconds", "0", "--processor"],
    "bench_growth": ["--loops", "1", "2"],
    "bench_identification": ["--samples", "20000"],
    "bench_loading": ["--machines", "five_bar", "--runs", "1"],
    "bench_scaling": ["--legs", "6", "--millions", "0.02", "--seconds", "0"],
    "bench_simulation": ["--machines", "delta", "--runs", "1"],
    "bench_speed": ["--states", str(STATES), "--seconds", "0", "--no-cpp"],
    "bench_start_up": ["--rounds", "1", "--short"],
    "bench_threads": ["--seconds", "0.01", "--runs", "1", "--most", "20000", "--machines", "delta"],
    "bench_tracker": ["--machines", "five_bar"],
    "bench_transfers": [],
}
#: Files of `make bench`.
BENCHMARKS = sorted(FOLDER.glob("bench_*.py"))


def test_every_file_of_make_bench_has_a_short_run() -> None:
    assert [file.stem for file in BENCHMARKS] == list(SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize("file", BENCHMARKS, ids=lambda file: file.stem)
def test_every_file_of_make_bench_runs(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, file, *SHORT[file.stem]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
