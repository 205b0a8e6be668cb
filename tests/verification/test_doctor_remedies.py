"""The commands that `tauloop env doctor` names bring what they say: run one after the other in an empty environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT


def output(command: list[str] | str, clone: Path) -> str:
    """What a command prints in a clone, with nothing of this environment in its surroundings."""
    surroundings = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=clone,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
def test_every_command_that_it_names_brings_what_is_missing(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, files.split("\0")):
        if name.startswith("src/") or "/" not in name:
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    output([sys.executable, "-m", "venv", str(tmp_path / "empty")], clone)
    python = str(tmp_path / "empty" / "bin" / "python")
    output([python, "-m", "pip", "install", "-e", "."], clone)

    def missing() -> dict[str, str]:
        parts = json.loads(output([python, "-m", "tauloop", "env", "doctor", "--json"], clone))[
            "parts"
        ]
        absent = {part["name"]: part["remedy"] for part in parts if not part["state"]}
        absent.pop("torch", None)  # gigabytes, which `make torch-test` takes a small build of
        return {name: remedy for name, remedy in absent.items() if "pip install" in remedy}

    left = missing()
    assert {"mujoco", "pin", "viser", "pyarrow"} <= left.keys()  # an empty environment it is
    while left:
        name, command = next(iter(left.items()))
        brought = {other for other, same in left.items() if same == command}
        output(command, clone)
        after = missing()
        assert not brought & after.keys(), f"{command} brings no {name}"
        left = after
