"""From a machine's file to a first call of compiled inverse dynamics, in new processes, with cold and warm cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from peers.comparison import Settings

from rows.row import Row

STARTED_MACHINES = ("delta", "nuwar", "rcid", "gantry_tau_5dof", "spidermill")
FOLDER = Path(__file__).resolve().parents[1]
#: Number of runs with a warm cache, of which the fastest counts.
WARM = 3


def rows(settings: Settings, say: Callable[[str], None]) -> Iterator[Row]:
    """Yield the rows of all machines with a cold and a warm cache."""
    for name in STARTED_MACHINES:
        say(name)
        with tempfile.TemporaryDirectory() as cache:
            cold = started(name, cache, "cold")
            warm = min(
                (started(name, cache) for _ in range(WARM)), key=lambda found: found["ready"]
            )
        for label, found, target in (("cold", cold, "1 s"), ("warm", warm, "10 ms")):
            note = f"importing took {found['imports']:.2f} s before"
            work = f"{name}, from file to compiled inverse dynamics, {label} cache"
            yield Row(work=work, tauloop=found["ready"], target=target, note=note)


def started(name: str, cache: str, *arguments: str) -> dict[str, float]:
    """Return the times (s) of importing, and from the file to a first call.

    Raises:
        RuntimeError: the process failed.
    """
    paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "XDG_CACHE_HOME": cache}
    command = [sys.executable, "-m", "rows.first_call", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)
