"""What a process has started ends with it, also where it is killed and can do nothing about it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_machines import compilers
from interrupted import MARK, processes_of
from plants import wait_until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs Linux's list of processes"
)

#: Processes are at work, and gone after the kill, within this time, s. A worker that loses its parent
#: while it imports ends when it has imported: half a second of processor time each, but more than
#: ten seconds on two cores that 33 processes share.
PATIENCE = 180.0
#: A compiler that reads a pipe into which nothing is written never ends by itself.
COMPILES = """
import sys
from pathlib import Path
from tauloop.compiler.c.calling.compiler import build, find_compiler
build(f'#include "{sys.argv[1]}/pipe"', find_compiler(), folder=Path(sys.argv[1]) / "cache")
"""
#: Workers that search for longer than the test waits.
SEARCHES = """
import tauloop as tl
if __name__ == "__main__":
    tl.plan_excitation(tl.load("delta"), tl.ExcitationOptions(random=3000, starts=40, workers=2))
"""


def kill_while(script: str, folder: Path, is_at_work: Callable[[list[str]], bool]) -> list[str]:
    """Kill a script while what it started is at work; command lines of what is left some time later."""
    program, mark = folder / "script.py", secrets.token_hex(8)
    program.write_text(script)
    environment = os.environ | {MARK: mark, "XDG_CACHE_HOME": str(folder / "user")}
    with subprocess.Popen([sys.executable, str(program), str(folder)], env=environment) as process:
        try:
            wait_until(
                lambda: process.poll() is not None or is_at_work(processes_of(mark)), PATIENCE
            )
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "it had ended by itself"
    try:
        wait_until(lambda: not processes_of(mark), PATIENCE)
    except AssertionError:
        left = processes_of(mark)
        for place in Path("/proc").glob("[1-9]*"):
            if is_marked(place, mark):
                os.kill(int(place.name), signal.SIGKILL)
        return left
    return []


def is_marked(place: Path, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in (place / "environ").read_bytes()
    except OSError:
        return False


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
def test_compilers_end_with_a_killed_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert (
        kill_while(
            COMPILES,
            tmp_path,
            lambda lines: any("_0.c" in line and "cc1" in line for line in lines),
        )
        == []
    )


# By day, test_processes.py kills a process whose workers sleep.
@pytest.mark.nightly
def test_workers_of_a_search_end_with_a_killed_process(tmp_path: Path) -> None:
    assert (
        kill_while(
            SEARCHES, tmp_path, lambda lines: sum("spawn_main" in line for line in lines) == 2
        )
        == []
    )
