"""Time to create a function from a machine's file, of Python and of the C compiler.

    python benchmarks/bench_loading.py [--markdown benchmarks/times.md]

Processor seconds of `load_function(NAME, outputs=("force",))` in a new process with an empty cache,
without the imports, least of three.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers.computer import compiler_version, load as busy, processor
from rows import page

LOADING_MARKS = page.marks("bench_loading.py")
LOADED_MACHINES = ("delta", "nuwar", "rcid", "gantry_tau_3dof", "gantry_tau_5dof", "spidermill")
LOADING_RUNS = 3
#: Run in a separate process: times of this process and of its children, the compilers.
PROGRAM = """
import json, resource, sys, time
import casadi, scipy.linalg
from tauloop import load_function
import tauloop.compiler.c.printing.source, tauloop.model
def seconds():
    return [sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
before, clock = seconds(), time.perf_counter()
load_function(sys.argv[1], outputs=("force",)).bind()[1]()
clock = time.perf_counter() - clock
print(json.dumps([*(b - a for a, b in zip(before, seconds())), clock]))
"""


def measured(name: str, count: int) -> tuple[float, float, float]:
    """Return the seconds of Python, of the compiler, and on the clock, of the run with the least sum."""
    runs = []
    for _ in range(count):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "XDG_CACHE_HOME": cache}
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM, name],
                capture_output=True,
                text=True,
                check=True,
                env=environment,
            )
        runs.append(tuple(json.loads(done.stdout)))
    return min(runs, key=lambda run: run[0] + run[1])


def table(machines: Sequence[str], count: int) -> Iterator[str]:
    """Yield the lines of the table of some machines, each from a number of runs."""
    yield "| machine | Python | compiler | sum | by the clock, with the first bound call |"
    yield "|---|---|---|---|---|"
    for name in machines:
        own, compiler, clock = measured(name, count)
        yield f"| {name} | {own:.2f} | {compiler:.2f} | {own + compiler:.2f} | {clock:.2f} |"


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=LOADED_MACHINES, help="by name")
    parser.add_argument(
        "--runs", type=int, default=LOADING_RUNS, help="of which the fastest counts"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    note = f"{processor().name}; {compiler_version('cc')}; load of the cores {busy():.1f}."
    lines = list(table(options.machines, options.runs))
    page.write_or_print(options.markdown, LOADING_MARKS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
