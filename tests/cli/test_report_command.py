"""``tauloop report``, and the files that commands write for it."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import problems, run

from tauloop.display import read_record
from tauloop.display.page_records import KEY


def test_a_command_writes_a_file_of_which_a_page_is_made(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    run("simulate", "five_bar", "--duration", "0.02", "--out", file)
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["reached_s"] == 0.02
    command = [piece["text"] for piece in content[KEY]["made"] if piece.get("tone") == "code"]
    assert command == [f"tauloop simulate five_bar --duration 0.02 --out {file}"]
    assert read_record(file).title == "Simulation: five_bar"


def test_problems_of_several_files_are_said_together(tmp_path: Path) -> None:
    broken, out = tmp_path / "broken.json", tmp_path / "page.html"
    broken.write_text("{", encoding="utf-8")
    refused = problems("report", broken, tmp_path / "missing.json", "--out", out)
    assert [problem["where"] for problem in refused] == [
        str(broken),
        str(tmp_path / "missing.json"),
    ]
    assert not out.exists()
    assert problems("report", broken, "--out", tmp_path / "page.pdf")[0]["where"] == "--out"
