"""The list of nightly tests names tests that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from conftest import nightly_names, short_name

ROOT = Path(__file__).parents[1]


def files_of_tests() -> list[Path]:
    return [
        path
        for folder in ("tests", "papers/tests")
        for path in sorted((ROOT / folder).rglob("test_*.py"))
    ]


def test_every_line_of_the_list_names_a_function_of_a_file_once():
    """Quick, and hence by day; parameters are looked at by night."""
    there = {
        f"{path.name}::{name}"
        for path in files_of_tests()
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    names, exceptions = nightly_names()
    listed = [*names, *exceptions]
    assert {name.partition("[")[0] for name in listed} <= there
    assert len(set(listed)) == len(listed)


def test_every_exception_is_from_a_line_of_the_list():
    names, exceptions = nightly_names()
    assert [name for name in exceptions if not name.startswith(tuple(names))] == []


def test_every_line_of_the_list_names_a_test():
    names, exceptions = nightly_names()
    listed = [*names, *exceptions]
    named = {name.split("::")[0] for name in listed}
    files = [str(path) for path in files_of_tests() if path.name in named]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "--nightly",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [short_name(line) for line in done.stdout.splitlines()]
    assert [name for name in listed if not any(line.startswith(name) for line in collected)] == []
