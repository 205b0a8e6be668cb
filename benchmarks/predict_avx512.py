"""Times of the kernels on a core with AVX-512: predicted from their machine code, or measured on such a core.

    python benchmarks/predict_avx512.py [--core icelake-server] [--clocks 3.0 3.5] [--kinds]
    [--json] [--markdown FILE]

The toolkit's C text is compiled under the toolkit's own flags for the core of this computer and for
one with AVX-512. LLVM's machine code analyzer gives the cycles of a block of samples on each. The
measured time on this computer divided by the predicted one, kernel by kernel, corrects the other
prediction. On a core that has AVX-512 itself the table is a different one: times measured there,
with the prediction for the core that LLVM knows best of its kind (`--core`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from machine_code.analyser import Analyser, Cycles, Missing, analyser
from machine_code.assembly import parsed
from machine_code.kernels import assembly, kernel, passed, predicted
from machine_code.kinds import KINDS, counts, widest
from machine_code.walk import Lost
from peers.computer import compiler_version, load, processor
from rich.console import Console
from rich.table import Table
from rows import page
from rows.dynamics import TARGETS
from rows.limits import core
from rows.row import three

from tauloop.compiler.c.calling.compiler import Compiler, find_compiler

KERNELS = (
    ("rcid", "inverse"),
    ("rcid", "forward"),
    ("delta", "inverse"),
    ("delta", "forward"),
    ("spidermill reduced", "inverse"),
    ("gantry_tau_5dof", "inverse"),
    ("spidermill", "inverse"),
)
#: Architectures to compile for where the compiler may not know the core: with the same instructions.
ARCHITECTURES = {"znver4": "icelake-server", "znver5": "icelake-server"}
PREDICTION_HEADINGS = (
    "work",
    "predicted here",
    "measured here",
    "ratio",
    "with AVX-512",
    "times ratio",
    "units alone",
    "target",
)
KIND_HEADINGS = ("instructions a sample", *KINDS)
PREDICTION_MARKS = page.marks("predict_avx512.py", "predicted")
#: Headings and marks of the table on a core that has AVX-512.
MEASURED_HEADINGS = ("work", "predicted", "measured", "ratio", "time", "units alone")
MEASURED_MARKS = page.marks("predict_avx512.py")
MIN_PREDICTION_WIDTH = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A kernel on this computer and on the core with AVX-512; cycles of a sample or of a call.

    Attributes:
        work: what is computed.
        here: predicted for the core of this computer.
        measured: on that core.
        there: predicted for the core with AVX-512.
        cycle: of the clock of this computer, s.
        times: on the core with AVX-512, corrected by measured over predicted, at each clock, s.
        least: by the units of that core alone, s.
        target: of issue 3, in words.
        lanes: of the registers that products use there.
        kinds: instructions of a sample on both.
    """

    work: str
    here: Cycles
    measured: float
    there: Cycles
    cycle: float
    times: tuple[float, ...]
    least: tuple[float, ...]
    target: str
    lanes: int
    kinds: tuple[dict[str, float], dict[str, float]]

    @property
    def ratio(self) -> float:
        """Return measured over predicted."""
        return self.measured / self.here.simulated

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the texts of a row in the order of `PREDICTION_HEADINGS`."""
        return (
            self.work,
            f"{three(self.here.simulated)} cycles",
            f"{three(self.measured)} cycles",
            f"{self.ratio:.2f}",
            f"{three(self.there.simulated)} cycles",
            _nanoseconds(self.times),
            _nanoseconds(self.least),
            self.target,
        )

    @property
    def measured_cells(self) -> tuple[str, ...]:
        """Return the texts of a row in the order of `MEASURED_HEADINGS`."""
        return (
            *self.cells[:4],
            _nanoseconds((self.measured * self.cycle,)),
            _nanoseconds((self.here.bound * self.cycle,)),
        )


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    progress = Console(stderr=True, highlight=False, soft_wrap=True)
    marks, headings = (
        (MEASURED_MARKS, MEASURED_HEADINGS) if has_it() else (PREDICTION_MARKS, PREDICTION_HEADINGS)
    )
    if options.markdown and not page.is_marked(options.markdown, marks):
        progress.print(
            f"{options.markdown} lacks the marks {marks[0]} and {marks[1]}",
            style="bold red",
            markup=False,
        )
        return 1
    try:
        tool, compiler = analyser(options.analyser), find_compiler()
        if compiler is None or core() is None:
            raise Missing("there is no C compiler: install gcc or clang")
        found = []
        for name, what in KERNELS:
            if not options.only or name in options.only:
                with progress.status(f"{name}, {what} dynamics"):
                    found += _predictions(name, what, tool, compiler, options)
    except (Missing, Lost) as error:
        progress.print(str(error), style="bold red", markup=False)
        return 1
    about = list(_about(tool, compiler, options))
    rows = [one.measured_cells if has_it() else one.cells for one in found]
    if options.markdown:
        page.write(
            options.markdown,
            marks,
            [*_markdown(headings, rows), "", *(f"{line}\n" for line in about)],
        )
    elif options.json:
        print(
            json.dumps(
                {"about": about, "rows": [asdict(one) for one in found]},
                indent=2,
                ensure_ascii=False,
            )
        )
    else:
        _print(headings, rows)
        if options.kinds:
            _print(KIND_HEADINGS, [row for one in found for row in _kind_rows(one)])
        print("\n".join(about))
    return 0


def has_it() -> bool:
    """Return whether the core of this computer has AVX-512."""
    return "avx512f" in processor().features


def _host(tool: Analyser, options: argparse.Namespace) -> str:
    """Return LLVM's name of this computer's core; for one with AVX-512, which LLVM may not know, that of its kind."""
    return str(options.core) if has_it() else tool.host


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        choices=sorted({name for name, _ in KERNELS}),
        help="machines",
    )
    parser.add_argument(
        "--core", default="icelake-server", help="LLVM's name of a core with AVX-512"
    )
    parser.add_argument(
        "--clocks", nargs="+", type=float, default=[3.5, 3.0], help="of that core, GHz"
    )
    parser.add_argument("--analyser", default="llvm-mca", help="name or path of llvm-mca")
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="for each measurement (default 2)"
    )
    parser.add_argument("--kinds", action="store_true", help="count instructions by kind too")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    return parser.parse_args(arguments)


def _predictions(
    name: str, what: str, tool: Analyser, compiler: Compiler, options: argparse.Namespace
) -> Iterator[Prediction]:
    """Yield the predictions for a call and for a sample of a batch."""
    one = kernel(name, what)
    here = parsed(assembly(one.function, compiler, "native"))
    there = parsed(assembly(one.function, compiler, ARCHITECTURES.get(options.core, options.core)))
    wanted = TARGETS[name].inverse if what == "inverse" else TARGETS[name].forward
    for label, in_lanes, target in zip(
        ("call", "batch"), (False, True), wanted or ("", ""), strict=True
    ):
        steps = one.iterations(in_lanes=in_lanes)
        found = core()
        assert found is not None
        measured = one.seconds(options.seconds / 2, in_lanes=in_lanes)
        cycles = [
            predicted(one.function, code, steps, tool, of, in_lanes=in_lanes)
            for code, of in ((here, _host(tool, options)), (there, options.core))
        ]
        walks = [
            (code, passed(one.function, code, round(steps), in_lanes=in_lanes))
            for code in (here, there)
        ]
        # before and after, so that a busy minute has no effect
        measured = min(measured, one.seconds(options.seconds / 2, in_lanes=in_lanes)) / found.cycle
        yield Prediction(
            work=f"{one.name}, {label}",
            here=cycles[0],
            measured=measured,
            there=cycles[1],
            cycle=found.cycle,
            times=tuple(
                1e-9 * cycles[1].simulated * measured / cycles[0].simulated / c
                for c in options.clocks
            ),
            least=tuple(1e-9 * cycles[1].bound / c for c in options.clocks),
            target=target,
            lanes=widest(walks[1][0], walks[1][1][0]),
            kinds=tuple(_per_sample(counts(code, x), samples) for code, (x, samples) in walks),
        )


def _per_sample(counted: dict[str, int], samples: int) -> dict[str, float]:
    return {kind: n / samples for kind, n in counted.items()}


def _about(tool: Analyser, compiler: Compiler, options: argparse.Namespace) -> Iterator[str]:
    """Yield the conditions of the measurement and the prediction."""
    found = core()
    clock = f"{1e-9 / found.cycle:.2f} GHz (measured)" if found else ""
    yield (
        f"Here: {processor().name}, {_host(tool, options)} to LLVM, {clock}; {compiler_version(compiler.path)}; "
        f"llvm-mca {tool.version}; AVX-512: "
        + (
            "measured."
            if has_it()
            else f"{options.core} at {' and '.join(map(str, options.clocks))} GHz."
        )
    )
    if (busy := load()) is not None:
        yield f"Load at the end: {busy:.1f} (its own: one)."


def _kind_rows(one: Prediction) -> Iterator[tuple[str, ...]]:
    for label, kinds in zip(("here", f"with AVX-512, {one.lanes} lanes"), one.kinds, strict=True):
        yield (f"{one.work}, {label}", *(f"{kinds[kind]:.1f}" for kind in KINDS))


def _nanoseconds(times: tuple[float, ...]) -> str:
    return f"{' to '.join(three(1e9 * time) for time in times)} ns"


def _markdown(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(headings) + " |"
    yield "|---" * len(headings) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _print(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    screen = Console(highlight=False)
    screen = (
        screen
        if screen.width >= MIN_PREDICTION_WIDTH
        else Console(highlight=False, width=MIN_PREDICTION_WIDTH)
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, heading in enumerate(headings):
        table.add_column(
            heading, justify="right" if i else "left", vertical="bottom", no_wrap=not i
        )
    for row in rows:
        table.add_row(*row)
    screen.print(table)


if __name__ == "__main__":
    sys.exit(main())
