"""Ctrl-C, SIGTERM and SIGHUP end every command that takes long within two seconds, with all that it has started."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SOON
from interrupted import COMMANDS, KEEPING

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs Linux's list of processes"
)
#: When Ctrl-C is pressed, s after the start: while a machine is read, assembled, compiled, and at
#: the work itself.
DAILY, NIGHTLY = "0.5", "0.3,1,2,4,8"
#: By day: what works in NumPy, machine code, SciPy, threads and processes, and what reads.
BY_DAY = ("workspace", "simulate", "workers", "identify")


def faults(delays: str, *names: str, ending: signal.Signals = signal.SIGINT) -> list[object]:
    """What did not end soon, ended with another code, or left something behind."""
    command = [sys.executable, "interrupted.py", ending.name, delays, *names]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1] / "tools",
    )
    assert done.returncode == 0, done.stderr
    document = [entry for entry in json.loads(done.stdout) if entry is not None]
    assert len(document) >= len(names)
    ended = 128 + ending
    codes = {name: (0, 1, ended) if name in KEEPING else (ended,) for name in COMMANDS}
    return [
        entry
        for entry in document
        if entry[2] not in codes[entry[0]] or entry[3] > SOON or entry[4]
    ]


def test_an_interrupt_ends_long_commands_of_every_kind_soon():
    assert faults(DAILY, *BY_DAY) == []


@pytest.mark.parametrize(
    ("ending", "name"),
    [
        (signal.SIGTERM, "check"),
        pytest.param(signal.SIGTERM, "workers", marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, "workers", marks=pytest.mark.nightly),
        pytest.param(signal.SIGHUP, "check", marks=pytest.mark.nightly),
    ],
)
def test_other_signals_end_a_command_with_its_compilers_and_workers(ending, name):
    """A supervisor or a closed terminal left them at work."""
    assert faults("1.5", name, ending=ending) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupt_ends_it_soon_at_any_time(name):
    assert faults(NIGHTLY, name) == []
