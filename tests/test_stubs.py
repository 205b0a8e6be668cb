"""What type checkers see of the public calls: the generated stub is current, and misspelt keywords are errors."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from extras import extra

import tauloop

ROOT = Path(__file__).parents[1]
CALLS = ROOT / "tests" / "support" / "typed_calls"
#: Modules whose types mypy needs for these calls; it takes others as unknown, which is quick.
MYPY = """
[mypy]
follow_imports = skip
explicit_package_bases = true
[mypy-tauloop,tauloop.model.model,tauloop.model.tool,tauloop.motion.planning,tauloop.mechanism.model,tauloop.export.controller.options,tauloop.common.*]
follow_imports = normal
ignore_errors = true
"""


def mistakes() -> set[int]:
    """Numbers of the lines below the imports, each with one mistake."""
    lines = (CALLS / "mistakes.py").read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.startswith("tl.")}


def run(folder: Path, *command: str) -> str:
    """Run a checker on the calls in a folder of its own."""
    for path in CALLS.glob("*.py"):
        shutil.copy(path, folder)
    path = str(Path(tauloop.__file__).parents[1])
    settings = {"include": ["."], "extraPaths": [path], "typeCheckingMode": "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env={"MYPYPATH": path, "PATH": str(Path(sys.executable).parent), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr  # there are mistakes
    return done.stdout


def test_the_stub_follows_from_the_classes_of_options() -> None:
    """Run `python tools/write_stubs.py` after a change of them."""
    tool = runpy.run_path(str(ROOT / "tools" / "write_stubs.py"))
    assert tool["STUB"].read_text(encoding="utf-8") == tool["stub"]()


def test_mypy_passes_the_calls_and_refuses_each_mistake(tmp_path: Path) -> None:
    extra("mypy")
    text = run(tmp_path, "mypy", "--cache-dir=cache", "calls.py", "mistakes.py")
    places = set(re.findall(r"^(\w+\.py):(\d+): error", text, re.MULTILINE))
    assert places == {("mistakes.py", str(number)) for number in mistakes()}, text


def test_pyright_passes_the_calls_and_refuses_each_mistake(tmp_path: Path) -> None:
    extra("basedpyright")
    text = run(tmp_path, "basedpyright", "--outputjson", "--pythonpath", sys.executable)
    diagnostics = json.loads(text)["generalDiagnostics"]
    places = {
        (Path(item["file"]).name, item["range"]["start"]["line"] + 1)
        for item in diagnostics
        if item["severity"] == "error"
    }
    assert places == {("mistakes.py", number) for number in mistakes()}, text
