"""The list of nightly tests names tests that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import nightly_names, short_name


def test_every_line_of_the_list_names_a_test():
    root = Path(__file__).parents[1]
    names = {name.split("::")[0] for name in nightly_names()}
    tests = (path for folder in ("tests", "papers/tests") for path in (root / folder).rglob("test_*.py"))
    files = sorted(str(path) for path in tests if path.name in names)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--nightly", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [short_name(line) for line in done.stdout.splitlines()]
    assert [name for name in nightly_names() if not any(line.startswith(name) for line in collected)] == []
