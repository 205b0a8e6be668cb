"""The path of a number from a machine's YAML to a torque stays short, and reading goes one way."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import trace_files

#: Most files that it passes. A change that shortens the path lowers the number.
MOST_FILES = {
    "in Python": 40,
    "on the command line": 60,
    "of code generation on the command line": 12,
}


@pytest.fixture(scope="module")
def printed() -> str:
    # a process of its own: the command line changes the environment and handlers of signals
    run = subprocess.run(
        [sys.executable, trace_files.__file__], capture_output=True, text=True, check=True
    )
    return run.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("title", MOST_FILES)
def test_a_number_passes_few_files(printed: str, title: str) -> None:
    (count,) = re.findall(rf"(\d+)  files {title}\n", printed)
    assert int(count) <= MOST_FILES[title], printed


@pytest.mark.parametrize("machine", ["delta", "hexapod"])
def test_no_stage_of_the_reader_calls_a_later_one(machine: str) -> None:
    assert not trace_files.returns_while_reading(machine)
