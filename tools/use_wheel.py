"""Checks of an installed wheel, run by `make wheel-test` with the Python of an otherwise empty environment.

Commands and imports run from an empty folder, once with the system's compiler and once without it;
the answers must be the same.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(sys.executable).parent

IMPORTS = """
import importlib, pkgutil, tauloop
def is_present(package, name):
    try:
        return hasattr(package, name)
    except tauloop.EngineError as error:  # of an extra
        return "pip install 'tauloop[" in str(error)
names = [m.name for m in pkgutil.walk_packages(tauloop.__path__, "tauloop.") if m.ispkg]
public = [package for package in map(importlib.import_module, names) if getattr(package, "__all__", None)]
for package in (tauloop, *public):
    missing = [name for name in package.__all__ if not is_present(package, name)]
    assert not missing, (package.__name__, missing)
print(len(public), "packages of Tauloop", tauloop.__version__)
"""

#: A batch that the system's compiler takes where there is one, else the embedded one, else the
#: virtual machine.
BATCH = """
import json, sys
import numpy, tauloop
from tauloop.compiler.c.calling.compiler import find_compiler
assert (find_compiler() is not None) == (sys.argv[1] == "system"), find_compiler()
model = tauloop.Model(tauloop.load("delta"), evaluator=tauloop.compiler.c.Compiled())
position = numpy.array([0.0, 0.0, -0.5]) + 1e-5 * numpy.arange(30_000).reshape(-1, 3) / 10
zero = numpy.zeros_like(position)
print(json.dumps(model.platform.inverse_dynamics(position, zero, zero).force[::500].tolist()))
"""


def run(*command: str, folder: str, path: str) -> str:
    """Return the output of a command run in a folder with its own cache."""
    environment = {"PATH": path, "HOME": folder, "XDG_CACHE_HOME": folder, "LANG": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def answers(how: str, path: str) -> tuple[str, list[float]]:
    """Return the packages and machines of the wheel as text, and the forces of one machine."""
    with tempfile.TemporaryDirectory() as folder:
        packages = run(sys.executable, "-c", IMPORTS, folder=folder, path=path)
        tauloop = str(BIN / "tauloop")
        machines = run(tauloop, "list", folder=folder, path=path)
        assert "delta" in machines, machines
        forces = json.loads(run(tauloop, "dynamics", "delta", "--json", folder=folder, path=path))
        batch = json.loads(run(sys.executable, "-c", BATCH, how, folder=folder, path=path))
        return packages + machines, numbers([forces, batch])


def numbers(value: object) -> list[float]:
    """Return all numbers of plain data, in order."""
    if isinstance(value, dict | list):
        return [
            x
            for item in (value.values() if isinstance(value, dict) else value)
            for x in numbers(item)
        ]
    return [float(value)] if isinstance(value, int | float) else []


if __name__ == "__main__":
    printed, compiled = answers("system", f"{BIN}:{os.environ['PATH']}")
    said_without, others = answers("none", str(BIN))
    assert printed == said_without
    assert len(compiled) == len(others) > 0
    # two evaluations of the same program: rounding errors of some hundred operations
    assert all(abs(a - b) <= 1e-9 * (1 + abs(a)) for a, b in zip(compiled, others, strict=True))
    print(
        printed.splitlines()[0], "with a compiler and without: the same", len(compiled), "numbers"
    )
