"""Files of printers' firmware on the command line."""

from __future__ import annotations

from pathlib import Path

from command_line import run

from conftest import ROOT


def test_the_command_converts_both_ways(tmp_path: Path) -> None:
    run("convert", ROOT / "examples" / "printers" / "kossel.cfg", tmp_path / "kossel.yaml")
    run("convert", tmp_path / "kossel.yaml", tmp_path / "config.g")
    text = (tmp_path / "config.g").read_text(encoding="utf-8")
    assert text.startswith(
        "M665 L333.000000:333.000000:333.000000 R174.750000 H297.050000 B140.000000"
    )
