"""Growth of the cost of `tauloop check` with the number of loops of a machine.

    python benchmarks/bench_growth.py [--markdown benchmarks/times.md] [--figure FILE]

Every machine is checked in a separate process: processor time without the import of the package,
largest memory, and the operations of its inverse dynamics. The times hold for one thread of the
linear-algebra library; the largest machine of each family is also checked with two.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from peers.computer import load as busy
from peers.growing import FAMILIES
from rows import page

MARKS = page.marks("bench_growth.py")
#: Numbers of loops, nearly; each family has the nearest number of whole stages.
LOOPS = (1, 2, 4, 8, 16, 36, 64, 100)
#: The exponent of the growth is fitted over machines with at least this number of loops.
MIN_LOOPS_OF_FIT = 16
MEGABYTE = 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One machine.

    Attributes:
        family: key of `FAMILIES`.
        loops: its number of loops.
        seconds: processor time of reading and checking it, s.
        memory: largest memory of the process, MB.
        operations: operations of its inverse dynamics, with one step of each iteration.
    """

    family: str
    loops: int
    seconds: float
    memory: float
    operations: int


def checked(family: str, stages: int) -> Growth:
    """Check a machine in this process."""
    from tauloop import Model, check, loads

    text = FAMILIES[family].text(stages)
    start = time.process_time()
    model = Model(loads(text))
    inspection = check(model)
    seconds = time.process_time() - start
    if not inspection.is_usable:
        raise RuntimeError(f"{family}, {stages} stages: not usable: {inspection.problems}")
    program = model.platform.program("inverse_dynamics")
    functions = [step.function for step in program.steps if hasattr(step, "function")]
    return Growth(
        family=family,
        loops=stages * FAMILIES[family].loops,
        seconds=seconds,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTE,
        operations=sum(function.function.n_instructions() for function in functions),
    )


def in_new_process(family: str, stages: int, threads: int) -> Growth:
    """Check a machine in a process whose linear algebra may use this number of threads."""
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, __file__, "--single", family, str(stages)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | limits,
    )
    return Growth(**json.loads(done.stdout))


def measured(loops: tuple[int, ...]) -> Iterator[Growth]:
    """Check all machines, the small ones first."""
    for name, family in FAMILIES.items():
        for stages in sorted({max(1, round(number / family.loops)) for number in loops}):
            yield in_new_process(name, stages, threads=1)


def exponent(rows: list[Growth]) -> float:
    """Return k of the fit time = c loops^k over the large machines; NaN for fewer than two."""
    large = [row for row in rows if row.loops >= MIN_LOOPS_OF_FIT]
    if len(large) < 2:
        return float("nan")
    loops, seconds = (
        np.log([getattr(row, name) for row in large]) for name in ("loops", "seconds")
    )
    return float(np.polyfit(loops, seconds, 1)[0])


def table(rows: list[Growth]) -> Iterator[str]:
    """Yield the table of the larger machines in Markdown; the picture shows all."""
    yield "| machine | loops | processor time [s] | memory [MB] | operations of the equations per loop |"
    yield "|---|---|---|---|---|"
    for row in rows:
        if row.loops < MIN_LOOPS_OF_FIT:
            continue
        yield (
            f"| {row.family} | {row.loops} | {row.seconds:.2f} | {row.memory:.0f} |"
            f" {row.operations / row.loops:.0f} |"
        )


def summary(rows: list[Growth]) -> str:
    """Return the table of each family's growth in Markdown, with its explanation."""
    lines = [
        f"Exponent: processor time grows with this power of the loops, from {MIN_LOOPS_OF_FIT} loops on.",
        "",
        "| machine | exponent | processor time of two threads / one |",
        "|---|---|---|",
    ]
    for name, family in FAMILIES.items():
        own = [row for row in rows if row.family == name]
        largest = own[-1]
        doubled = in_new_process(name, largest.loops // family.loops, threads=2)
        ratio = doubled.seconds / largest.seconds
        lines.append(f"| {name}, {largest.loops} loops | {exponent(own):.2f} | {ratio:.2f} |")
    return "\n".join(lines)


def draw(rows: list[Growth], file: Path) -> None:
    """Draw time and memory against the number of loops."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for axis, attribute, label in (
        (axes[0], "seconds", "processor time of check [s]"),
        (axes[1], "memory", "largest memory [MB]"),
    ):
        for name in FAMILIES:
            own = [row for row in rows if row.family == name]
            axis.loglog(
                [row.loops for row in own],
                [getattr(row, attribute) for row in own],
                "o-",
                label=name,
            )
        axis.set_xlabel("loops")
        axis.set_ylabel(label)
        axis.grid(visible=True, which="both", alpha=0.3)
    axes[0].legend()
    figure.savefig(file, dpi=150)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loops", type=int, nargs="+", default=LOOPS, help="numbers of loops")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write into this page")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw into this file")
    parser.add_argument("--single", nargs=2, metavar=("FAMILY", "STAGES"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.single:
        row = checked(options.single[0], int(options.single[1]))
        print(json.dumps({name: getattr(row, name) for name in Growth.__slots__}))
        return 0
    rows = list(measured(tuple(options.loops)))
    note = f"{summary(rows)}\n\nLoad of the cores: {busy():.1f}."
    page.write_or_print(options.markdown, MARKS, list(table(rows)), note)
    if options.figure:
        draw(rows, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
