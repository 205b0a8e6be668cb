"""Batches called from Python and from C, compared with the nearer of two limits of the core.

    python benchmarks/bench_batches.py [--machines rcid delta ...] [--seconds 1] [--markdown benchmarks/kernels.md]

The limits are those of `rows.limits`: the operations, in two arithmetic units with full registers,
and the divisions and roots alone. A processor with AVX-512 is also measured with AVX2 alone.

All rows are measured in several rounds, and each has its least time. On shared computers, the time
of the same code changes between two levels for seconds at a time, at the same clock.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from guard import BATCH, WIDTHS, GuardedRow, inputs_of, restricted, widths
from peers.timing import seconds_per_call
from rows import page
from rows.dynamics import PROGRAMS, newton_iterations
from rows.limits import limits
from rows.machines import machine
from rows.row import duration

from tauloop import Model
from tauloop.compiler.c.calling.compiled import CompiledFunction, compile_function
from tauloop.compiler.c.calling.compiler import Compiler, find_compiler
from tauloop.verification.engines import frictionless

MACHINES = ("rcid", "delta", "hexapod", "gantry_tau_5dof", "spidermill", "five_bar")
#: Largest multiple of the nearer limit of a batch from Python and from C, by width of the vectors.
BARS = {"avx2": (1.3, 1.2), "avx512": (1.5, 1.5)}
#: Number of rounds in which all rows are measured.
ROUNDS = 10
MARKS = page.marks("bench_batches.py")
HEADINGS = (
    "work",
    "vectors",
    "Python",
    "C",
    "operations",
    "divider",
    "Python / limit",
    "C / limit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTimes:
    """Times of a sample of a batch, s.

    Attributes:
        work: machine and program.
        width: width of the vectors.
        python, native: of a batch called from Python and from C.
        operations, divider: the two limits.
    """

    work: str
    width: str
    python: float
    native: float
    operations: float
    divider: float

    @property
    def multiples(self) -> tuple[float, float]:
        """Return the times from Python and from C as multiples of the nearer limit."""
        nearer = max(self.operations, self.divider)
        return self.python / nearer, self.native / nearer

    @property
    def cells(self) -> list[str]:
        """Return the cells of a row; a multiple above its bar is bold."""
        times = (self.python, self.native, self.operations, self.divider)
        multiples = [
            f"**{multiple:.2f}**" if multiple > bar else f"{multiple:.2f}"
            for multiple, bar in zip(self.multiples, BARS[self.width], strict=True)
        ]
        return [self.work, self.width, *map(duration, times), *multiples]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A row that can be measured again and again.

    Attributes:
        limited: the row without its times.
        python, native: what runs a batch from Python and from C.
    """

    limited: BatchTimes
    python: Callable[[], object]
    native: Callable[[], object]

    def again(self, before: BatchTimes, seconds: float) -> BatchTimes:
        """Return a row with the lesser of its earlier times and those of another measurement."""
        return replace(
            before,
            python=min(before.python, seconds_per_call(self.python, seconds, BATCH)),
            native=min(before.native, seconds_per_call(self.native, seconds, BATCH)),
        )


def measurement(name: str, direction: str, width: str, compiler: Compiler) -> Measurement:
    """Compile one direction of a machine's dynamics, and compute its limits."""
    model = Model(frictionless(machine(name)))
    program, output = PROGRAMS[direction]
    function = model.platform.source_function(program, (output,))
    kernel = compile_function(function, restricted(compiler, width))
    row = GuardedRow(machine=name, program=program, output=output, samples=BATCH, is_batch=True)
    inputs = dict(inputs_of(model, kernel, row))
    outputs = kernel.batch(inputs, BATCH)
    iterations = newton_iterations(model, kernel, direction)
    operations, divider = limits(kernel.function, iterations, in_lanes=True, further=WIDTHS[width])
    limited = BatchTimes(
        work=f"{name}, {direction} dynamics",
        width=width,
        python=float("inf"),
        native=float("inf"),
        operations=operations or float("nan"),
        divider=divider or float("nan"),
    )
    return Measurement(
        limited=limited,
        python=lambda: kernel.batch(inputs, BATCH, out=outputs),
        native=native_call(kernel, inputs),
    )


def native_call(kernel: CompiledFunction, inputs: dict[str, np.ndarray]) -> Callable[[], object]:
    """Return what runs the kernel in C on fixed arrays, without checks."""
    arrays = [
        inputs.get(port.name, np.zeros((BATCH, port.size))) for port in kernel.function.arguments
    ]
    batch = getattr(ctypes.CDLL(str(kernel.library)), f"{kernel.function.name}_counted")
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    steps = (ctypes.c_size_t * len(arrays))(*(array.shape[1] for array in arrays))

    def run(arrays: list[np.ndarray] = arrays) -> None:
        # the arrays live as long as this function: `pointers` point into them
        batch(ctypes.c_size_t(BATCH), pointers, steps)

    return run


def table(rows: list[BatchTimes]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(HEADINGS)} |"
    yield f"|{'---|' * len(HEADINGS)}"
    for row in rows:
        yield f"| {' | '.join(row.cells)} |"


def main(arguments: list[str] | None = None) -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=MACHINES, choices=MACHINES)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write into this page")
    options = parser.parse_args(arguments)
    compiler = find_compiler()
    if compiler is None:
        print("there is no C compiler: nothing can be measured")
        return
    measurements = [
        measurement(name, direction, width, compiler)
        for name in options.machines
        for direction in PROGRAMS
        for width in widths()
    ]
    rows = [item.limited for item in measurements]
    for _ in range(ROUNDS):
        rows = [
            item.again(row, options.seconds / ROUNDS)
            for item, row in zip(measurements, rows, strict=True)
        ]
    bars = "; ".join(
        f"{width}: {python} from Python, {native} from C"
        for width, (python, native) in BARS.items()
    )
    note = f"Bold: above the bar ({bars}). Each time is for a sample of a batch of {BATCH}.\n"
    page.write_or_print(options.markdown, MARKS, table(rows), note)


if __name__ == "__main__":
    main()
