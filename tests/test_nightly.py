"""The list of nightly tests names tests that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import nightly_names, short_name


def test_every_line_of_the_list_names_a_test():
    folder = Path(__file__).parent
    names = {name.split("::")[0] for name in nightly_names()}
    files = sorted(str(path) for path in folder.rglob("test_*.py") if path.name in names)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--nightly", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [short_name(line) for line in done.stdout.splitlines()]
    assert [name for name in nightly_names() if not any(line.startswith(name) for line in collected)] == []
