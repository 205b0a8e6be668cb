"""Work shared out over processes: in its order, with the first error, and what is said of a process that was killed."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tauloop.common.errors import EngineError
from tauloop.common.execution.processes import SharedWork, lifeline, tied_to_process


def test_results_come_in_order_and_errors_with_the_first_item_that_fails():
    items = list(range(1, 40))
    with SharedWork(2) as shared:
        assert list(shared.results(operator.pow, 3, items)) == [3**k for k in items]
        with pytest.raises(ZeroDivisionError):
            list(shared.results(operator.floordiv, 7, [1, 0, 2]))
        assert list(shared.results(operator.floordiv, 7, [3, 2])) == [2, 3]
        with pytest.raises(EngineError, match="a worker process was killed"):
            list(shared.results(operator.call, os._exit, [3, 3]))


def test_alone_no_process_is_started():
    here = SharedWork()
    assert list(here.results(operator.sub, os.getpid(), [os.getpid(), 0])) == [0, os.getpid()]


@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="looks at Linux's list of processes"
)
def test_processes_end_with_the_one_that_was_killed():
    """Nobody could tell them: they wait for work, or are in the middle of it."""
    work = "list(SharedWork(2).results(operator.call, time.sleep, [90, 90]))"
    code = (
        f"import operator, time; from tauloop.common.execution.processes import SharedWork; {work}"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    at_work = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    while len(children := at_work.read_text().split()) < 3:  # two, and Python's own beside them
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    for _ in range(600):
        if not any(map(is_running, children)):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {[process for process in children if is_running(process)]}")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -s KILL $$", -9), ("kill -s SEGV $$", -11)],
)
def test_a_process_that_ends_with_this_one_has_its_own_exit_code(script, code):
    pipe = subprocess.PIPE
    command = tied_to_process(["/bin/sh", "-c", f"cat; echo printed; echo wrong >&2; {script}"])
    process = subprocess.Popen(
        command, stdin=lifeline(), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    printed, complaint = process.communicate(timeout=60)
    assert process.returncode == code
    assert printed == "printed\n", "it reads nothing, and its output is its own"
    assert complaint.startswith("wrong\n")


def is_running(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
