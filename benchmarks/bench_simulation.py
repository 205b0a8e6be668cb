"""Time of a simulation of ten seconds: free motion, in independent coordinates, on one core.

    python benchmarks/bench_simulation.py [--markdown docs/measured/simulation.md]

Whole calls of `Simulator.run` with machine code that is already compiled, least of several.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from peers.computer import load as busy, processor
from rows import page
from rows.row import duration

from tauloop import load
from tauloop.compiler.c import Compiled
from tauloop.integrate import DormandPrince, RungeKutta4
from tauloop.simulation import IndependentCoordinates, Simulator
from tauloop.simulation.free_motion import free_motion_setup

SIMULATION_MARKS = page.marks("bench_simulation.py")
SIMULATED_MACHINES = ("delta", "nuwar", "rcid")
#: Seconds of the motion, and number of runs, of which the fastest counts.
SIMULATED, SIMULATION_RUNS = 10.0, 7
ADAPTIVE = DormandPrince(rtol=1e-9, atol=1e-12)
FIXED = RungeKutta4(step=1e-3)


def measured(name: str, count: int) -> str:
    """Return the table's row of one machine."""
    ready = free_motion_setup(load(name), evaluator=Compiled())
    cells = [name]
    for integrator in (ADAPTIVE, FIXED):
        simulator = Simulator(ready.model, route=IndependentCoordinates(), integrator=integrator)
        best = float("inf")
        for _ in range(count + 1):  # the first one compiles
            start = time.perf_counter()
            result = simulator.run(SIMULATED, q=ready.q, v=ready.v)
            best = min(best, time.perf_counter() - start)
        steps = f", {len(result.time) - 1} steps" if integrator is ADAPTIVE else ""
        cells += [f"{duration(best)}{steps}", f"{SIMULATED / best:.0f}"]
    return f"| {' | '.join(cells)} |"


def table(machines: Sequence[str], count: int) -> Iterator[str]:
    """Yield the lines of the table of some machines, each from a number of runs."""
    yield "| machine | Dormand–Prince, `rtol` 1e-9 | times real time | Runge–Kutta 4, 1 ms | times real time |"
    yield "|---|---|---|---|---|"
    for name in machines:
        yield measured(name, count)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=SIMULATED_MACHINES, help="by name")
    parser.add_argument(
        "--runs", type=int, default=SIMULATION_RUNS, help="of which the fastest counts"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    lines = list(table(options.machines, options.runs))
    page.write_or_print(
        options.markdown,
        SIMULATION_MARKS,
        lines,
        f"{processor().name}; load of the cores {busy():.1f}.",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
