"""Ctrl-C ends every command that takes long within two seconds, with all that it has started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SOON
from interrupted import COMMANDS, KEEPING

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's list of processes")
#: When Ctrl-C is pressed, s after the start: while a machine is read, assembled, compiled, and at the work itself.
DAILY, NIGHTLY = "0.5", "0.3,1,2,4,8"
#: By day: what works in NumPy, machine code, SciPy, threads and processes, and what reads.
BY_DAY = ("workspace", "simulate", "workers", "identify")


def faults(delays: str, *names: str) -> list[object]:
    """What did not end soon, ended with another code, or left something behind."""
    command = [sys.executable, "interrupted.py", delays, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    document = [entry for entry in json.loads(done.stdout) if entry is not None]
    assert len(document) >= len(names)
    codes = {name: (0, 1, 130) if name in KEEPING else (130,) for name in COMMANDS}
    return [entry for entry in document if entry[2] not in codes[entry[0]] or entry[3] > SOON or entry[4]]


def test_an_interrupt_ends_long_commands_of_every_kind_soon():
    assert faults(DAILY, *BY_DAY) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_ends_it_soon_at_any_time(name):
    assert faults(NIGHTLY, name) == []
