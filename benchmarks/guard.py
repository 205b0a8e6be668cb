"""Compare the speed of generated code with stored ratios, so that a change that makes code slower is noticed.

    python benchmarks/guard.py [--rows TEXT ...] [--store] [--json]

Each row is timed alternately with a fixed reference kernel (`guard_reference.c`), compiled in the
same run with the same flags. The median of the ratios of neighboring times hardly depends on the
clock or on other programs. It does depend on the memory pages of the code (up to a quarter), so the
code is loaded several times from copies. The ratios are stored for each kind of processor and for
each vector width in `guard.json`. A row fails where its ratio is more than 7 % above the stored one
in three measurements. `--store` writes the ratios of this processor.

Exit codes: 0 all rows pass, or nothing is stored for this processor; 1 a row is slower; 2 nothing
can be measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import CDLL, c_size_t, c_void_p
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from peers.c_loop import c_loop
from peers.computer import family, processor
from peers.states import NotComparable
from rich.console import Console
from rich.table import Table
from rows.machines import machine

from tauloop import Model
from tauloop.common.errors import EngineError
from tauloop.common.files import write_file
from tauloop.compiler.c.calling.compiled import CompiledFunction, compile_function
from tauloop.compiler.c.calling.compiler import FLAGS, Compiler, build, find_compiler
from tauloop.compiler.c.calling.library import Library
from tauloop.kinematics import random_states
from tauloop.verification.engines import frictionless

FOLDER = Path(__file__).resolve().parent
STORED = FOLDER / "guard.json"
REFERENCE = FOLDER / "guard_reference.c"
#: Largest allowed increase of a row's ratio.
LIMIT = 0.07
#: Measurements of a row before it fails.
TRIES = 3
#: Number of copies of the code, whose median counts; pairs of times for each; and runs, of whose
#: times the least counts.
COPIES, PAIRS, RUNS = 5, 25, 4
#: Samples of a loop of single calls, of a batch, and of a regressor's batch, which fits into the
#: core's own cache.
CALLS, BATCH, REGRESSOR_BATCH = 256, 4096, 128
#: Flags that restrict a compiler to a width of vectors, by its name.
WIDTHS: Mapping[str, tuple[str, ...]] = {"avx2": ("-mno-avx512f",), "avx512": ()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedRow:
    """A timed function of a machine, called sample by sample in a loop in C, or on a batch from Python."""

    machine: str
    program: str
    output: str
    samples: int
    is_batch: bool

    @property
    def name(self) -> str:
        """Name in the table and in the file."""
        return f"{self.machine}, {self.program}, {'batch' if self.is_batch else 'call'} of {self.samples}"


def _row(name: str, program: str, *, is_batch: bool) -> GuardedRow:
    output = {"inverse_dynamics": "force", "forward_dynamics": "acceleration"}[program]
    samples = BATCH if is_batch else CALLS
    return GuardedRow(
        machine=name, program=program, output=output, samples=samples, is_batch=is_batch
    )


ROWS = (
    _row("rcid", "inverse_dynamics", is_batch=False),
    _row("rcid", "inverse_dynamics", is_batch=True),
    _row("rcid", "forward_dynamics", is_batch=False),
    _row("rcid", "forward_dynamics", is_batch=True),
    _row("delta", "inverse_dynamics", is_batch=False),
    _row("delta", "inverse_dynamics", is_batch=True),
    _row("hexapod", "inverse_dynamics", is_batch=True),
    _row("spidermill", "inverse_dynamics", is_batch=True),
    _row("five_bar", "inverse_dynamics", is_batch=False),
    _row("five_bar", "inverse_dynamics", is_batch=True),
    _row("gantry_tau_5dof", "inverse_dynamics", is_batch=False),
    _row("gantry_tau_5dof", "inverse_dynamics", is_batch=True),
    GuardedRow(
        machine="gantry_tau_5dof",
        program="regressor_actuators",
        output="regressor",
        samples=REGRESSOR_BATCH,
        is_batch=True,
    ),
)


def main(arguments: list[str] | None = None) -> int:
    """Measure, compare or store, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rows",
        nargs="+",
        default=[""],
        metavar="TEXT",
        help="rows whose names contain one of these",
    )
    parser.add_argument("--store", action="store_true", help="store the ratios of this processor")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    compiler = find_compiler()
    if compiler is None:
        print("guard: no C compiler: nothing can be measured", file=sys.stderr)
        return 2
    rows = [row for row in ROWS if _has_one_of(row.name, options.rows)]
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.is_file() else {}
    before = stored.get(family(), {})
    measured: dict[str, dict[str, float]] = {}
    try:
        for width in widths():
            measured[width] = measured_ratios(
                rows, restricted(compiler, width), before.get(width, {})
            )
    except (EngineError, NotComparable) as error:
        print(f"guard: {error}", file=sys.stderr)
        return 2
    if options.store:
        merged = {width: before.get(width, {}) | ratios for width, ratios in measured.items()}
        text = json.dumps(stored | {family(): before | merged}, indent=1, sort_keys=True) + "\n"
        write_file(STORED, lambda path: path.write_text(text, encoding="utf-8"))
    slower = [
        row for width, ratios in measured.items() for row in too_slow(ratios, before.get(width, {}))
    ]
    if options.json:
        print(
            json.dumps(
                {"processor": family(), "measured": measured, "stored": before, "slower": slower},
                indent=1,
            )
        )
    else:
        _print(measured, before)
    if not before and not options.store:
        print(f"No ratios are stored for {family()}: nothing was compared. `--store` writes them.")
    return int(bool(slower) and not options.store)


def widths() -> list[str]:
    """Return the widths of vectors that this processor has."""
    features = processor().features
    return [
        width for width, needed in (("avx2", "avx2"), ("avx512", "avx512f")) if needed in features
    ]


def restricted(compiler: Compiler, width: str) -> Compiler:
    """Return a compiler that uses vectors of a width at most."""
    return replace(compiler, flags=(*FLAGS, *WIDTHS[width])) if WIDTHS[width] else compiler


def too_slow(measured: Mapping[str, float], stored: Mapping[str, float]) -> list[str]:
    """Return the names of the rows whose ratio is above the stored one by more than the limit."""
    return [
        name
        for name, ratio in measured.items()
        if name in stored and ratio > (1.0 + LIMIT) * stored[name]
    ]


def measured_ratios(
    rows: Sequence[GuardedRow], compiler: Compiler, stored: Mapping[str, float]
) -> dict[str, float]:
    """Return the ratio of each row to the reference kernel; a row that seems slower is measured again."""
    reference = build(REFERENCE.read_text(encoding="ascii"), compiler)
    progress = Console(stderr=True, highlight=False)
    ratios: dict[str, float] = {}
    for row in rows:
        with progress.status(row.name):
            model = Model(frictionless(machine(row.machine)))
            function = model.platform.source_function(row.program, (row.output,))
            kernel = compile_function(function, compiler)
            inputs = dict(inputs_of(model, kernel, row))
            for _ in range(TRIES):
                ratio = (
                    median_ratio(row, kernel, inputs, reference)
                    * reference_samples(row)
                    / row.samples
                )
                ratios[row.name] = min(ratio, ratios.get(row.name, ratio))
                if not too_slow({row.name: ratios[row.name]}, stored):
                    break
    return ratios


def reference_samples(row: GuardedRow) -> int:
    """Return the number of samples of the reference kernel's loop of calls, or of its batch."""
    return BATCH if row.is_batch else CALLS


def reference_work(library: CDLL, row: GuardedRow) -> Callable[[], object]:
    """Return what runs the reference kernel: in a loop of calls, or on a batch."""
    n = reference_samples(row)
    rng = np.random.default_rng(0)
    position = np.array([-0.05, 0.4]) + rng.uniform(-0.02, 0.02, (n, 2))
    arrays = [
        position,
        *(rng.normal(size=(n, 2)) for _ in range(2)),
        *(np.zeros((n, k)) for k in (2, 4)),
    ]
    if not row.is_batch:
        return c_loop(library.reference, arrays)
    pointers = [c_void_p(array.ctypes.data) for array in arrays]

    def run(arrays: Sequence[np.ndarray] = arrays) -> None:
        # the arrays live as long as this function: `pointers` point into them
        library.reference_batch(c_size_t(n), *pointers)

    return run


def median_ratio(
    row: GuardedRow, kernel: CompiledFunction, inputs: Mapping[str, np.ndarray], reference: Path
) -> float:
    """Return the median over several copies of the code of the ratio of a row's time to the reference kernel's."""
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(COPIES):
            row_copy, reference_copy = (
                Path(folder) / f"row_{k}.so",
                Path(folder) / f"reference_{k}.so",
            )
            shutil.copyfile(kernel.library, row_copy)
            shutil.copyfile(reference, reference_copy)
            copied = CompiledFunction(kernel.function, Library(row_copy))
            ratios.append(
                time_ratio(
                    row_work(row, copied, inputs), reference_work(CDLL(str(reference_copy)), row)
                )
            )
    return statistics.median(ratios)


def row_work(
    row: GuardedRow, kernel: CompiledFunction, inputs: Mapping[str, np.ndarray]
) -> Callable[[], object]:
    """Return what runs a row's function on random states."""
    if row.is_batch:
        out = kernel.batch(inputs, row.samples)
        return lambda: kernel.batch(inputs, row.samples, out=out)
    arrays = [inputs[port.name] for port in kernel.function.inputs]
    arrays += [
        np.zeros((row.samples, port.size)) for port in kernel.function.arguments[len(arrays) :]
    ]
    return c_loop(getattr(CDLL(str(kernel.library)), kernel.function.name), arrays)


def inputs_of(
    model: Model, kernel: CompiledFunction, row: GuardedRow
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the inputs of a row's kernel in random states, by name."""
    states = random_states(model, row.samples, np.random.default_rng(0))
    values = {
        "position": states.position,
        "velocity": states.velocity,
        "acceleration": states.acceleration,
        "start": np.tile(model.assembly.q, (row.samples, 1)),
    }
    for port in kernel.function.inputs:
        yield (
            port.name,
            np.ascontiguousarray(values.get(port.name, np.zeros((row.samples, port.size)))),
        )


def time_ratio(work: Callable[[], object], reference: Callable[[], object]) -> float:
    """Return the median ratio of the times of two functions that take turns."""
    work()
    reference()
    return statistics.median(_least_time(work) / _least_time(reference) for _ in range(PAIRS))


def _least_time(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _has_one_of(name: str, texts: Sequence[str]) -> bool:
    return any(text in name for text in texts)


def _print(
    measured: Mapping[str, Mapping[str, float]], stored: Mapping[str, Mapping[str, float]]
) -> None:
    table = Table("vectors", "row", "ratio", "stored", "change", "verdict", box=None)
    for width, ratios in measured.items():
        slower = too_slow(ratios, stored.get(width, {}))
        for name, ratio in ratios.items():
            before = stored.get(width, {}).get(name)
            change, verdict = "", "not stored"
            if before:
                change = f"{100.0 * (ratio / before - 1.0):+.1f} %"
                verdict = "SLOWER" if name in slower else "ok"
            table.add_row(
                width, name, f"{ratio:.3f}", f"{before:.3f}" if before else "", change, verdict
            )
    Console(width=120, highlight=False).print(table)


if __name__ == "__main__":
    sys.exit(main())
