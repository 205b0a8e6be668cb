"""The table of speed: every row measured together with its peer in one run.

    python benchmarks/bench_speed.py [--only dynamics ...] [--json] [--markdown docs/speed.md]

`--markdown` writes two tables between the two marks in a page: the ratios of dynamics to every peer,
and the other rows with their peer. Results must agree before they are
timed. The first run on a computer builds Pinocchio's C++ program, which takes about six minutes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from peers import pinocchio_cpp
from peers.comparison import Disagreement, Settings
from peers.computer import compiler_version, load, processor
from rich.console import Console
from rich.table import Table
from rows import dynamics, page, regressor, starting, streaming, tracking
from rows.limits import core
from rows.row import HEADINGS, LEGEND, Row, markdown, ratios, ratios_markdown

from tauloop.common.errors import TauloopError
from tauloop.compiler.c.calling.compiler import FLAGS

SECTIONS = {
    "dynamics": dynamics.rows,
    "regressor": regressor.rows,
    "tracking": tracking.rows,
    "streaming": streaming.rows,
    "starting": starting.rows,
}
SPEED_MARKS = page.marks("bench_speed.py")
SPEED_TABLE_WIDTH = 200


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    progress = Console(stderr=True, highlight=False, soft_wrap=True)
    if options.markdown and not page.is_marked(options.markdown, SPEED_MARKS):
        progress.print(
            f"{options.markdown} lacks the marks {SPEED_MARKS[0]} and {SPEED_MARKS[1]}",
            style="bold red",
            markup=False,
        )
        return 1
    start = time.perf_counter()
    with progress.status("Pinocchio's C++ program (about six minutes where it has to be built)"):
        cpp = pinocchio_cpp.program_or_reason(options.no_cpp)
    settings = Settings(states=options.states, seconds=options.seconds, seed=options.seed, cpp=cpp)
    before, found = load(), []
    for section in options.only:
        try:
            with progress.status(section) as status:
                found += SECTIONS[section](
                    settings, lambda text, s=section: status.update(f"{s}: {text}")
                )
        except (Disagreement, TauloopError) as error:
            progress.print(f"{section}: {error}", style="bold red", markup=False)
            return 1
        progress.print(f"{section}: {time.perf_counter() - start:.0f} s")
    about = list(_about(settings, before))
    if options.markdown:
        page.write(
            options.markdown,
            SPEED_MARKS,
            [
                *ratios_markdown(found),
                "",
                *markdown(found),
                "",
                *(f"{line}\n" for line in about),
            ],
        )
        progress.print(f"written: {options.markdown}")
        return 0
    if options.json:
        print(
            json.dumps(
                {"about": about, "rows": [asdict(row) for row in found]},
                indent=2,
                ensure_ascii=False,
            )
        )
    else:
        _print(found, about)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        nargs="+",
        default=list(SECTIONS),
        choices=list(SECTIONS),
        help="sections to measure",
    )
    parser.add_argument("--states", type=int, default=256, help="random states (default 256)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for each measurement (default 0.2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random states (default 0)")
    parser.add_argument("--no-cpp", action="store_true", help="leave Pinocchio's C++ program out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    return parser.parse_args(arguments)


def _about(settings: Settings, before: float | None) -> Iterator[str]:
    """Return the conditions of the measurement."""
    computer, found = processor(), core()
    paths = filter(None, map(shutil.which, ("cc", "c++")))
    compilers = [compiler_version(path) for path in paths]
    clock = f"clock {1e-9 / found.cycle:.2f} GHz (measured), " if found else ""
    yield (
        f"{computer.name}, {clock}{' '.join(computer.features)}; Python {platform.python_version()}; "
        f"{'; '.join(compilers)}; Tauloop's flags {' '.join(FLAGS)}; Pinocchio's {' '.join(pinocchio_cpp.FLAGS)}; "
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}."
    )
    if isinstance(settings.cpp, str):
        yield f"No C++ program of Pinocchio: {settings.cpp}."
    if before is not None:
        yield f"Load of the {computer.cores} cores before and after: {before:.1f} and {load():.1f} (its own: one)."


def _print(rows: list[Row], about: list[str]) -> None:
    screen = Console(highlight=False)
    screen = (
        screen
        if screen.width >= SPEED_TABLE_WIDTH
        else Console(highlight=False, width=SPEED_TABLE_WIDTH)
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in HEADINGS:
        words = heading in ("work", "peer", "must reach", "note")
        table.add_column(
            heading,
            justify="left" if words else "right",
            no_wrap=heading != "note",
            vertical="bottom",
        )
    for row in rows:
        table.add_row(*row.cells)
    screen.print(table)
    head, *lines = ratios(rows)
    compared = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for cells in lines:
        compared.add_row(*cells)
    screen.print(compared)
    for line in (*LEGEND, *about):
        screen.print(line, markup=False)


if __name__ == "__main__":
    sys.exit(main())
