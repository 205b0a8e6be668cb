"""What threads gain: whole calls of batches by the clock, on one thread and on several.

    python benchmarks/bench_threads.py [--threads 2] [--samples 400000] [--machines delta ...]
        [--markdown docs/outgrowing-one-core.md]

A call checks what goes in, computes, and looks at the evidence of what comes out. By the clock threads gain what cores
are free: the least time of several runs counts, and a busy computer still gains less. The processor's time beside it is
that of all threads together.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peers.computer import load as busy, processor
from rows import page
from rows.row import duration

from tauloop import Model, load
from tauloop.codegen import Compiled
from tauloop.kinematics import random_states
from tauloop.simulation import Simulator, simulate_many

MARKS = page.marks("bench_threads.py")
MACHINES = ("delta", "rcid", "hexapod")
#: States that the samples repeat.
STATES = 64
#: At which a simulated start is kept.
TIMES = 100
#: Parts of the samples for calls that take microseconds a sample.
PARTS = {"forward kinematics": 2, "condition numbers": 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """One call: seconds a sample by the clock and of the processor, on one thread and on several."""

    machine: str
    call: str
    samples: int
    alone: float
    shared: float
    alone_processor: float
    shared_processor: float


def calls(model: Model, samples: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Whole calls by name, each with its number of samples."""
    states = random_states(model, STATES, np.random.default_rng(0))
    q, v, a = (
        np.resize(array, (samples, array.shape[1])) for array in (states.q, states.velocity, states.acceleration)
    )
    x, u = model.platform_position(q), model.actuator_position(q)
    force = np.ones((samples, len(model.mechanism.actuators)))
    counts = {name: samples // part for name, part in PARTS.items()}
    platform, simulator = model.platform, Simulator(model)
    starts = np.tile(model.assembly.q, (samples // TIMES, 1))
    works: dict[str, Callable[[int], object]] = {
        "inverse dynamics": lambda n: platform.inverse_dynamics(x[:n], v[:n], a[:n]),
        "forward dynamics": lambda n: platform.forward_dynamics(x[:n], v[:n], force[:n]),
        "inverse kinematics": lambda n: model.inverse_kinematics(x[:n]),
        "forward kinematics": lambda n: model.forward_kinematics(u[:n]),
        "Jacobians": lambda n: platform.actuator_jacobian(x[:n]),
        "mass matrices": lambda n: platform.mass_matrix(x[:n]),
        "condition numbers": lambda n: platform.condition(q[:n]),
        "states of simulated starts": lambda n: simulate_many(simulator, 0.1, starts[: n // TIMES], samples=TIMES),
    }
    return {
        name: (n, lambda work=work, n=n: work(n)) for name, work in works.items() for n in [counts.get(name, samples)]
    }


def least(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Least time (s) by the clock of some runs behind the first, and the processor's of that run."""
    work()
    times = []
    for _ in range(runs):
        clock, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - clock, time.process_time() - used))
    return min(times)


def measured(machine: str, samples: int, threads: int, runs: int) -> list[Gain]:
    """All calls of a machine."""
    alone, shared = (
        calls(Model(load(machine), evaluator=Compiled(at_least=0, threads=count)), samples) for count in (1, threads)
    )
    gains = []
    for name, (n, work) in alone.items():
        (clock, used), (shared_clock, shared_used) = least(work, runs), least(shared[name][1], runs)
        gains.append(
            Gain(
                machine=machine,
                call=name,
                samples=n,
                alone=clock / n,
                shared=shared_clock / n,
                alone_processor=used / n,
                shared_processor=shared_used / n,
            )
        )
    return gains


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2, help="beside one (default 2)")
    parser.add_argument("--samples", type=int, default=400_000, help="of the fast calls (default 400 000)")
    parser.add_argument("--runs", type=int, default=15, help="of which the fastest counts (default 15)")
    parser.add_argument("--machines", nargs="+", default=MACHINES, help="by name (default delta, rcid, hexapod)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page")
    options = parser.parse_args(arguments)
    lines = [
        f"| a sample of | one thread | {options.threads} threads | gain | processor's time | of all |",
        "|---" * 6 + "|",
    ]
    for machine in options.machines:
        for gain in measured(machine, options.samples, options.threads, options.runs):
            times = (duration(t) for t in (gain.alone, gain.shared))
            used = (duration(t) for t in (gain.alone_processor, gain.shared_processor))
            cells = (f"{machine}, {gain.call}", *times, f"{gain.alone / gain.shared:.2f}", *used)
            lines.append("| " + " | ".join(cells) + " |")
    note = f"{options.samples} samples; {processor().name}; load of the {processor().cores} cores {busy() or 0.0:.1f}."
    if options.markdown:
        page.write(options.markdown, MARKS, [*lines, "", note])
    else:
        print("\n".join([*lines, note]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
