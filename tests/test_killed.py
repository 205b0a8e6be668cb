"""A command that is killed while it writes leaves the old file or the whole new one, never half of one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import interrupted
import pytest
from commands import function_of, written_by
from extras import extra
from kills import COMMANDS

from tauloop.cli.app import command_words, renew_command_line
from tauloop.cli.commands import COMMANDS as TAULOOP_COMMANDS

#: Kills of each command in `make test` and in `make nightly` (issue 13).
DAILY, NIGHTLY = 2, 200
#: Commands that together write every kind of file, for `make test`.
EVERY_KIND = (
    "mjcf",
    "urdf",
    "c",
    "parquet",
    "workspace",
    "subtract",
    "calibrate",
    "film",
    "equations",
    "sdf",
    "bag",
    "bag-folder",
    "fold",
)


def harmed(kills: int, *names: str) -> list[str]:
    command = [sys.executable, "kills.py", str(kills), *names]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1] / "tools",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_of_every_kind_are_whole_after_kills():
    extra("pyarrow")
    endings = {
        name: {Path(word).suffix for word in words if word.startswith("{out}/")}
        for name, words in COMMANDS.items()
    }
    assert set.union(*endings.values()) == set.union(*(endings[name] for name in EVERY_KIND))
    assert harmed(DAILY, *EVERY_KIND) == []


#: Commands that write the same files by the same code as others.
ALIKE = {"study show": "study run"}


@pytest.mark.parametrize("name", TAULOOP_COMMANDS)
def test_every_file_that_a_command_writes_is_among_those(name):
    """By what the command declares to write, which tests/test_files.py compares with its options."""
    names = {name, ALIKE.get(name, name)}
    words = [words for words in COMMANDS.values() if command_words(list(words[:2])) in names]
    files = [word for line in words for word in line if word.startswith(("{out}", "{given}/parts"))]
    for kind in written_by(function_of(name)).values():
        assert kind is None or any(kind.takes(file) for file in files), kind.content


def test_commands_have_current_names_and_options():
    """A word that is deprecated or unknown would end a command before it writes."""
    lines = {name: list(words) for name, words in COMMANDS.items()}
    lines |= {name: shlex.split(text) for name, text in interrupted.COMMANDS.items()}
    for words in lines.values():
        assert renew_command_line(words) == (words, [])
        assert command_words(words[:2]) or words[:2] == ["paper", "reproduce"], words


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_files_are_whole_after_two_hundred_kills(name):
    assert harmed(NIGHTLY, name) == []


def test_half_a_file_would_be_seen(tmp_path):
    """The look at files, put to a command that writes in place."""
    (tmp_path / "careless.py").write_text(CARELESS)
    command = [sys.executable, str(tmp_path / "careless.py")]
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join(
            [str(Path(interrupted.__file__).parent), os.environ.get("PYTHONPATH", "")]
        )
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings)
    assert "neither the old nor the new file" in done.stdout


CARELESS = """
import sys
import kills

def careless():
    path = sys.argv[1]
    with open(path, "wb") as stream:
        stream.write(b"half")
        stream.flush()
        open(path, "rb").close()
        stream.write(b" and half")

kills.main = careless
kills.COMMANDS["careless"] = ("{out}/file",)
print(kills.harmed("careless", 8, 0))
"""
