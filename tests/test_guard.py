"""The guard of speed measures, compares and stores; no time is judged here."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from compiled_machines import compilers

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    module = importlib.import_module("guard")
    for name in ("COPIES", "PAIRS", "RUNS"):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(module, "STORED", tmp_path / "guard.json")
    return module


def test_a_row_is_stored_and_a_loss_is_a_failure(
    guard: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    row = "five_bar, inverse_dynamics, call"
    assert guard.main(["--rows", row]) == 0
    assert "nothing was compared" in capsys.readouterr().out
    assert guard.main(["--rows", row, "--store"]) == 0
    stored = json.loads(guard.STORED.read_text(encoding="utf-8"))
    (ratios,) = stored.values()
    assert set(ratios) == set(guard.widths())
    for width in ratios:
        ratios[width] = {name: 1e-3 * ratio for name, ratio in ratios[width].items()}
    guard.STORED.write_text(json.dumps(stored), encoding="utf-8")
    capsys.readouterr()
    assert guard.main(["--rows", row, "--json"]) == 1
    slower = json.loads(capsys.readouterr().out)["slower"]
    assert set(slower) == {"five_bar, inverse_dynamics, call of 256"}


def test_stored_rows_are_those_that_are_measured() -> None:
    stored = json.loads((FOLDER / "guard.json").read_text(encoding="utf-8"))
    text = (FOLDER / "guard.py").read_text(encoding="utf-8")
    assert stored
    for ratios in stored.values():
        assert ratios.keys() <= {"avx2", "avx512"}
        for rows in ratios.values():
            assert len(rows) == text.count("    _row(") + 1
            assert min(rows.values()) > 0.0


def test_a_ratio_up_to_the_limit_passes(guard: ModuleType) -> None:
    assert guard.too_slow(
        {"a": 1.0 + guard.LIMIT - 1e-9, "b": 1.0 + guard.LIMIT + 1e-9, "c": 9.0}, {"a": 1, "b": 1}
    ) == ["b"]
