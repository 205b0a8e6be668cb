"""The gain of threads: whole calls of batches, measured on the clock, on one thread and on several.

    python benchmarks/bench_threads.py [--threads 2] [--seconds 0.3] [--machines delta ...]
        [--markdown benchmarks/kernels.md]

A call checks the inputs, computes, and evaluates the diagnostics of the outputs. On the clock,
threads gain only from free cores: runs alternate, the least time of several counts, and a busy
computer still shows a smaller gain (first rows).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from peers.computer import load as busy, processor
from rows import page
from rows.row import duration

from tauloop import Model, load
from tauloop.compiler.c import Compiled
from tauloop.compiler.c.calling.compiled import SHARES
from tauloop.compiler.c.calling.library import Library
from tauloop.compiler.c.calling.threads import share_out, shares
from tauloop.kinematics import random_states
from tauloop.simulation import Simulator, simulate_many

THREADS_MARKS = page.marks("bench_threads.py")
THREADED_MACHINES = ("delta", "rcid")
#: Number of different states, which the samples repeat.
DIFFERENT_STATES = 64
#: Number of time points at which a simulated motion is stored.
TIMES = 100
#: Duration of the simulated motion, s.
DURATION = 1.0
#: Samples of a first call, from which the number of samples that takes long enough follows.
FEW = 10_000
#: Products and sums in all lanes, a few hundred per sample, of numbers that stay in the nearest
#: cache.
SUMS = """#include <stddef.h>

void sums(size_t n, double *sum);
void sums(size_t n, double *sum)
{
    double x[64] = {0.0};
    for (size_t i = 0; i < 4 * n; ++i)
        for (size_t k = 0; k < 64; ++k)
            x[k] = 0.999 * x[k] + 1.0;
    for (size_t k = 0; k < 64; ++k)
        *sum += x[k];
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One call: seconds per sample on the clock, on one thread and on several."""

    machine: str
    call: str
    samples: int
    alone: float
    shared: float


def calls(model: Model, most: int) -> dict[str, Callable[[int], object]]:
    """Return functions that compute n samples in whole calls, by name."""
    states = random_states(model, DIFFERENT_STATES, np.random.default_rng(0))
    q, v, a = (
        np.resize(array, (most, array.shape[1]))
        for array in (states.q, states.velocity, states.acceleration)
    )
    x, u = model.platform_position(q), model.actuator_position(q)
    force = np.ones((most, len(model.mechanism.actuators)))
    platform, simulator = model.platform, Simulator(model)
    starts = np.tile(model.assembly.q, (most // TIMES, 1))
    return {
        "inverse dynamics": lambda n: platform.inverse_dynamics(x[:n], v[:n], a[:n]),
        "forward dynamics": lambda n: platform.forward_dynamics(x[:n], v[:n], force[:n]),
        "inverse kinematics": lambda n: model.inverse_kinematics(x[:n]),
        "forward kinematics": lambda n: model.forward_kinematics(u[:n]),
        "Jacobians": lambda n: platform.actuator_jacobian(x[:n]),
        "mass matrices": lambda n: platform.mass_matrix(x[:n]),
        "condition numbers": lambda n: platform.condition(q[:n]),
        "states of simulated starts": lambda n: simulate_many(
            simulator, DURATION, starts[: n // TIMES], samples=TIMES
        ),
    }


def least(works: Sequence[Callable[[], object]], runs: int) -> list[float]:
    """Return the least time (s) of alternate runs of each work on the clock, without the first run."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(runs + 1):
        for work, own in zip(works, times, strict=True):
            clock = time.perf_counter()
            work()
            own.append(time.perf_counter() - clock)
    return [min(own[1:]) for own in times]


def arithmetic(threads: int) -> Callable[[int], None]:
    """Return sums without memory access, distributed as batches are: the best gain of threads on this computer."""
    run = Library.create(SUMS).function("sums", "n*")

    def work(part: slice) -> None:
        run(part.stop - part.start, np.zeros(1))

    return lambda n: share_out(shares(n, SHARES * threads), threads, work)


def memory(threads: int, most: int) -> Callable[[int], None]:
    """Return a copy of sixteen numbers per sample, distributed alike: the gain of calls that wait for memory."""
    read, written = (np.zeros((most, 16)) for _ in range(2))

    def work(part: slice) -> None:
        np.copyto(written[part], read[part])

    return lambda n: share_out(shares(n, SHARES * threads), threads, work)


def gain(
    machine: str, call: str, works: Sequence[Callable[[int], object]], options: argparse.Namespace
) -> Gain:
    """Return the gain of a call from one thread to several."""
    works[0](FEW)
    clock = time.perf_counter()
    works[0](FEW)
    n = int(min(options.seconds * FEW / (time.perf_counter() - clock), options.most))
    alone, shared = least([partial(work, n) for work in works], options.runs)
    return Gain(machine=machine, call=call, samples=n, alone=alone / n, shared=shared / n)


def measured(options: argparse.Namespace) -> Iterator[Gain]:
    """Yield all calls of the machines, after arithmetic alone and memory alone."""
    counts = (1, options.threads)
    yield gain("arithmetic", "alone", [arithmetic(count) for count in counts], options)
    yield gain("memory", "alone", [memory(count, options.most) for count in counts], options)
    for machine in options.machines:
        alone, shared = (
            calls(Model(load(machine), evaluator=Compiled(at_least=0, threads=count)), options.most)
            for count in counts
        )
        for name, work in alone.items():
            yield gain(machine, name, (work, shared[name]), options)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--threads", type=int, default=2, help="number compared with one (default 2)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="duration of a call on one thread (default 0.3)"
    )
    parser.add_argument(
        "--most", type=int, default=2_000_000, help="samples of a call (default 2 000 000)"
    )
    parser.add_argument(
        "--runs", type=int, default=30, help="of which the fastest counts (default 30)"
    )
    parser.add_argument(
        "--machines", nargs="+", default=THREADED_MACHINES, help="by name (default delta, rcid)"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    lines = [
        f"| a sample of | samples | one thread | {options.threads} threads | gain |",
        "|---" * 5 + "|",
    ]
    for row in measured(options):
        times = (duration(t) for t in (row.alone, row.shared))
        cells = (
            f"{row.machine}, {row.call}",
            f"{row.samples}",
            *times,
            f"{row.alone / row.shared:.2f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    note = f"{processor().name}; load of the {processor().cores} cores {busy() or 0.0:.1f}."
    page.write_or_print(options.markdown, THREADS_MARKS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
