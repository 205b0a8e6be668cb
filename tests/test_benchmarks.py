"""The comparison with the other engines runs, and everyone agrees before anything is timed. No time is judged here."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tauloop.mechanism.library import load

pytest.importorskip("pinocchio", reason="Pinocchio is not installed: nothing to compare with")
pytest.importorskip("mujoco", reason="MuJoCo is not installed: nothing to compare with")

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
MACHINE = "five_bar"
STATES = 20


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("bench_inverse_dynamics")


def peers(name: str) -> ModuleType:
    return importlib.import_module(f"peers.{name}")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_small_machine_is_compared(
    bench: ModuleType, as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # one batch of a few samples each
    monkeypatch.setattr(peers("comparison"), "BATCH", STATES)
    monkeypatch.setattr(peers("comparison"), "SMALL_BATCH", STATES)
    arguments = ["--machines", MACHINE, "--states", str(STATES), "--seconds", "0", "--no-cpp"]
    assert bench.main([*arguments, *(["--json"] if as_json else [])]) == 0
    text = capsys.readouterr().out
    if not as_json:
        assert all(word in text for word in (MACHINE, "Pinocchio", "MuJoCo", "no C++ program (switched off)"))
        return
    (machine,) = json.loads(text)["machines"]
    for work in ("inverse", "forward"):
        for own in machine[work]["tauloop"]:
            assert own["note"] or own["difference"] <= bench.TOLERANCE
    for peer in machine["inverse"]["peers"]:
        assert peer["version"]
        assert peer["difference"] <= bench.TOLERANCE


def test_wrong_forces_are_not_timed(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own, comparison = peers("own"), peers("comparison")
    honest = own.INVERSE[1]

    def make(mechanism: object) -> object:
        ready = honest.make(mechanism)
        return replace(ready, work=lambda p, v, a: ready.work(p, v, a) * (1.0 + 2.0 * bench.TOLERANCE))

    monkeypatch.setattr(comparison, "INVERSE", (own.Contender(name="nearly", make=make),))
    arguments = ["--machines", MACHINE, "--states", str(STATES), "--seconds", "0", "--no-cpp"]
    assert bench.main(arguments) == 1
    assert "Tauloop nearly, inverse dynamics differs from the reference by 2.0e-09" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["five_bar", "delta", "rcid"])
def test_the_cpp_program_agrees(bench: ModuleType, name: str) -> None:
    try:
        program = bench.pinocchio_cpp.program(only_cached=True)
    except bench.NotBuilt as error:
        pytest.skip(f"Pinocchio in C++: {error}")
    comparison = peers("comparison")
    mechanism = comparison.frictionless(load(name))
    engine, motion, _ = comparison.consistent(mechanism, STATES, np.random.default_rng(1))
    states = comparison.tree_states(engine, motion)
    found = bench.pinocchio_cpp.run(program, comparison.peer_tree(engine.tree), states, 0.0)
    wanted = engine.inverse_dynamics(motion).forces
    assert comparison.difference(found.forces, wanted) <= bench.TOLERANCE
    assert found.forward_error is not None
    assert found.forward_error <= bench.TOLERANCE
