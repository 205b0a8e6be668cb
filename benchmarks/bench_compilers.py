"""Time to compile and to run inverse dynamics by the system's compiler, TinyCC and the interpreter.

    python benchmarks/bench_compilers.py [--machines NAME ...] [--markdown benchmarks/times.md]

The first call with an empty cache takes the time of the next call, the time to derive the
equations, which is that of the interpreter, and the time to print and compile. The time per sample
is that of a batch of `BATCH` samples. The system's compiler pays from the number of samples at which
both take the same time in all.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rows import page

import tauloop as tl
from tauloop.compiler.c import Compiled, Evaluator, Interpreted

MARKS = page.marks("bench_compilers.py")
MACHINES = ("five_bar", "delta", "rcid", "gantry_tau_5dof", "hexapod")
#: Samples of a batch; the shortest of several runs counts.
BATCH, RUNS = 4096, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Processor time of one machine by one evaluator.

    Attributes:
        first: time of the first call more than of the next, s.
        sample: time per sample of a batch, s.
    """

    first: float
    sample: float


def seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call, s."""
    start = time.process_time()
    call()
    return time.process_time() - start


def children(call: Callable[[], object]) -> float:
    """Return the processor time of a call and of its child processes, s."""
    start = time.process_time() + _of_children()
    call()
    return time.process_time() + _of_children() - start


def _of_children() -> float:
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(name: str, evaluator: Evaluator) -> Cost:
    """Return the cost of a machine by an evaluator."""
    model = tl.Model(name, evaluator=evaluator)
    ports = model.platform.ports
    position = np.tile(ports.at(model.assembly.q), (BATCH, 1))
    still = np.zeros((BATCH, ports.velocity.size))

    def run(count: int) -> object:
        rates = still[:count]
        return model.platform.inverse_dynamics(position[:count], rates, rates)

    first = children(lambda: run(1))
    again = min(seconds(lambda: run(1)) for _ in range(RUNS))
    run(BATCH)
    batch = min(seconds(lambda: run(BATCH)) for _ in range(RUNS))
    return Cost(first=first - again, sample=batch / BATCH)


def rows(machines: tuple[str, ...]) -> Iterator[str]:
    """Yield the table of some machines."""
    yield (
        "| machine | system's compiler: compile, sample | TinyCC: print and compile, sample | "
        "interpreter | system's compiler pays from |"
    )
    yield "|---|---|---|---|---|"
    cost(machines[0], Compiled(at_least=math.inf))  # imports
    for name in machines:
        with tempfile.TemporaryDirectory() as folder:
            system = cost(name, Compiled(at_least=1, folder=Path(folder)))
            embedded = cost(name, Compiled(at_least=math.inf, folder=Path(folder)))
        interpreted = cost(name, Interpreted())
        printed, compiled = (max(0.0, x.first - interpreted.first) for x in (embedded, system))
        even = (compiled - printed) / (embedded.sample - system.sample)
        yield (
            f"| `{name}` | {compiled:.2f} s, {1e9 * system.sample:.0f} ns | "
            f"{1e3 * printed:.0f} ms, {1e6 * embedded.sample:.2f} us | "
            f"{1e6 * interpreted.sample:.2f} us | {float(f'{even:.2g}'):,.0f} samples |".replace(
                ",000", " 000"
            )
        )


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=MACHINES, metavar="NAME")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write into this page")
    options = parser.parse_args(arguments)
    table = list(rows(tuple(options.machines)))
    note = f"`python benchmarks/bench_compilers.py`; batches of {BATCH} samples."
    page.write_or_print(options.markdown, MARKS, table, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
