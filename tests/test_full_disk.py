"""On a full disk a command refuses with the file's name and leaves the old file; without a cache it goes on.

What is written and where room ends is told by a small disk of its own (tmpfs) in a namespace of its
own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import full_disks
import pytest
from full_disks import PLACE
from kills import COMMANDS

UNSHARE = ["unshare", "--mount", "--map-root-user"]


def no_mounts() -> str:
    """Why nothing can be mounted here, or nothing."""
    if shutil.which("unshare") is None:
        return "there is no unshare(1), by which a process gets disks of its own"
    if any(
        Path(path).resolve().is_relative_to(PLACE)
        for path in (__file__, sys.prefix, sys.base_prefix)
    ):
        return f"Tauloop or Python lies under {PLACE}, in whose place the disks would be mounted"
    tried = subprocess.run(
        [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(PLACE)],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no disk can be mounted: {tried.stderr.strip()}" if tried.returncode else ""


def faults(full: str, left: str, *names: str) -> list[str]:
    if reason := no_mounts():
        pytest.skip(reason)
    command = [*UNSHARE, sys.executable, "full_disks.py", full, left, *names]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1] / "tools",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_full_disk_is_named_and_the_old_files_stay():
    assert faults("outputs", "0", "yaml", "c") == []


def test_commands_work_in_a_read_only_home():
    assert faults("home", "0", "drive") == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_keeps_the_old_files_on_a_full_disk(name):
    assert faults("outputs", "0,4,16,32", name) == []


@pytest.mark.nightly
@pytest.mark.parametrize("full", ["cache", "temporary", "home"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_goes_on_without_its_cache_or_temporary_files(name, full):
    assert faults(full, "0", name) == []


@pytest.mark.nightly
def test_a_careless_command_would_be_seen(tmp_path):
    """The same look, at a command that writes in place and does not mind errors."""
    if reason := no_mounts():
        pytest.skip(reason)
    (tmp_path / "careless.py").write_text(CARELESS)
    done = subprocess.run(
        [
            *UNSHARE,
            sys.executable,
            str(tmp_path / "careless.py"),
            str(Path(full_disks.__file__).parent),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "neither the old nor the new file" in done.stdout
    assert "ended with 0" in done.stdout


CARELESS = """
import sys

sys.path.insert(0, sys.argv[1])
import full_disks

full_disks.surround("outputs")
import kills

def careless():
    try:
        with open(sys.argv[1], "wb", buffering=0) as stream:
            while stream.tell() < 50000:
                stream.write(bytes(1000))
    except OSError:
        pass

full_disks.kills = kills
kills.main = careless
kills.COMMANDS["careless"] = ("{out}/file",)
print(full_disks.faults("careless", "outputs", [0, 4]))
"""
