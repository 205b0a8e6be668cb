"""Inverse and forward dynamics of parallel machines: Tauloop compared with other engines in one run.

    python benchmarks/compare_engines.py [--machines rcid delta ...] [--json]

Every contender's forces (and Pinocchio's accelerations) must agree before anything is timed. The
first run on a computer builds Pinocchio's C++ program, which takes one to two minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from dataclasses import asdict

from peers import pinocchio_cpp
from peers.comparison import TOLERANCE, Comparison, Disagreement, Settings, Times, Work, compared
from peers.computer import compiler_version, load, processor
from rich.console import Console
from rich.table import Table

from tauloop.common.errors import TauloopError
from tauloop.compiler.c.calling.compiler import FLAGS
from tauloop.formats.library import load as load_machine

MACHINES = ("rcid", "delta", "gantry_tau_5dof", "hexapod", "spidermill", "five_bar")
#: Below this the tables' columns would wrap.
MIN_TABLE_WIDTH = 140
#: Share of the cores that may be busy before times are called uncertain; the benchmark itself keeps
#: one busy.
BUSY = 0.75

#: (peer, field of `Times`, heading) of the peers' columns.
INVERSE_COLUMNS = (
    ("Pinocchio", "call", "C++"),
    ("Pinocchio", "part", "rnea"),
    ("Pinocchio", "python", "Python"),
    ("MuJoCo", "call", "C"),
    ("MuJoCo", "python", "Python"),
    ("Drake", "call", "C++"),
    ("Drake", "python", "Python"),
    ("CasADi's C", "call", ""),
)
FORWARD_COLUMNS = (
    ("Pinocchio", "call", "C++"),
    ("MuJoCo", "call", "C"),
    ("CasADi's C", "call", ""),
)
LEGEND = (
    "Tauloop starts from the platform's motion and computes the kinematics; the peers are given all coordinates.",
    "call: one call in machine code. batch: a sample of a large batch, one core, all checks included. "
    "Python: set a state, call, take the result.",
    "ratios: the fastest peer's call by Tauloop's call and by its batch; the fastest peer's Python loop by Tauloop's.",
    "worst: largest difference of forces (accelerations) from an independent reference. rnea: the tree's forces alone.",
)


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    progress = Console(stderr=True, highlight=False)
    start = time.perf_counter()
    with progress.status("Pinocchio's C++ program (one to two minutes where it has to be built)"):
        cpp = pinocchio_cpp.program_or_reason(options.no_cpp)
    settings = Settings(states=options.states, seconds=options.seconds, seed=options.seed, cpp=cpp)
    found: list[Comparison] = []
    try:
        for i, name in enumerate(options.machines):
            head = f"{name} ({i + 1} of {len(options.machines)})"
            with progress.status(head) as status:
                found.append(
                    compared(
                        load_machine(name),
                        settings,
                        lambda text, h=head: status.update(f"{h}: {text}"),
                    )
                )
            progress.print(f"{head}: {time.perf_counter() - start:.0f} s")
    except (Disagreement, TauloopError) as error:
        progress.print(f"{name}: {error}", style="bold red", markup=False)
        return 1
    surroundings = _surroundings(settings)
    if options.json:
        machines = [asdict(comparison) for comparison in found]
        print(
            json.dumps(
                {**surroundings, "unit": "s", "machines": machines}, indent=2, ensure_ascii=False
            )
        )
    else:
        _print(found, surroundings)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--machines", nargs="+", default=MACHINES, metavar="NAME", help="shipped names or files"
    )
    parser.add_argument("--states", type=int, default=256, help="random states (default 256)")
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for each measurement (default 0.2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random states (default 0)")
    parser.add_argument("--no-cpp", action="store_true", help="leave Pinocchio's C++ program out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args(arguments)


def _surroundings(settings: Settings) -> dict[str, object]:
    """Return the conditions of the measurement."""
    compilers = filter(None, map(shutil.which, ("cc", "c++")))
    return {
        "processor": asdict(processor()),
        "load": load(),
        "python": sys.version.split()[0],
        "compilers": [compiler_version(path) for path in compilers],
        "flags": {"Tauloop": " ".join(FLAGS), "Pinocchio": " ".join(pinocchio_cpp.FLAGS)},
        "states": settings.states,
        "seconds": settings.seconds,
        "seed": settings.seed,
        "tolerance": TOLERANCE,
    }


def _print(found: list[Comparison], surroundings: dict[str, object]) -> None:
    screen = Console(highlight=False)
    screen = (
        screen
        if screen.width >= MIN_TABLE_WIDTH
        else Console(highlight=False, width=MIN_TABLE_WIDTH)
    )
    screen.print(
        _table(
            "Inverse dynamics, µs a state", [(c.machine, c.inverse) for c in found], INVERSE_COLUMNS
        )
    )
    screen.print()
    screen.print(
        _table(
            "Forward dynamics, µs a state", [(c.machine, c.forward) for c in found], FORWARD_COLUMNS
        )
    )
    screen.print()
    for line in (*LEGEND, *_notes(found), *_computer(surroundings)):
        screen.print(line, markup=False)


def _table(
    title: str, works: list[tuple[str, Work]], columns: tuple[tuple[str, str, str], ...]
) -> Table:
    """Return a table: machines by columns (peer, field, heading), Tauloop's own times and the ratios."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column("machine", no_wrap=True)
    table.add_column("Tauloop", no_wrap=True)
    peers = [f"{name}\n{heading}" for name, _, heading in columns]
    for head in ("call", "batch", "Python", *peers, "ratios\ncall", "batch", "Python", "worst"):
        table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
    for machine, work in works:
        by_name = {peer.name: peer for peer in work.peers}
        for i, own in enumerate(work.tauloop):
            shown = [
                getattr(by_name.get(name, Times(name=name)), field) for name, field, _ in columns
            ]
            table.add_row(
                machine if i == 0 else "",
                own.name,
                *map(_microseconds, (own.call, own.batch, own.python)),
                *([""] * len(shown) if i else map(_microseconds, shown)),
                _ratio(work.fastest_call, own.call),
                _ratio(work.fastest_call, own.batch),
                _ratio(work.fastest_python, own.python),
                "–" if own.difference is None else f"{own.difference:.0e}",
            )
    return table


def _notes(found: list[Comparison]) -> list[str]:
    """Return versions, notes of contenders with the machines they hold for, and what call times leave out."""
    notes: dict[str, list[str]] = {}
    left_out: dict[str, list[float]] = {}
    for comparison in found:
        for work in (comparison.inverse, comparison.forward):
            for times in (*work.tauloop, *work.peers):
                name = f"{times.name} {times.version}".strip()
                if times.note:
                    notes.setdefault(f"{name}, {work.name}: {times.note}", []).append(
                        comparison.machine
                    )
                if times.overhead is not None:
                    left_out.setdefault(name, []).append(times.overhead)
    lines = [
        f"{name}: calls are made from Python, and {_microseconds(min(x))} to {_microseconds(max(x))} µs, what a call "
        "that does nothing takes, are left out"
        for name, x in left_out.items()
    ]
    return lines + [
        note if len(machines) == len(found) else f"{note} [{', '.join(machines)}]"
        for note, machines in notes.items()
    ]


def _computer(surroundings: dict[str, object]) -> list[str]:
    computer, load_, flags = (surroundings[key] for key in ("processor", "load", "flags"))
    lines = [
        f"{computer['name']}, {computer['cores']} cores, {' '.join(computer['features'])}; "
        f"Python {surroundings['python']}; {'; '.join(surroundings['compilers'])}",
        *(f"{name}: {text}" for name, text in flags.items()),
    ]
    if load_ is not None and load_ > BUSY * computer["cores"]:
        lines.append(
            f"The computer was busy (load {load_:.1f}): all times are upper bounds, and ratios are uncertain."
        )
    return lines


def _microseconds(seconds: float | None) -> str:
    return "–" if seconds is None else _three(seconds * 1e6)


def _ratio(peer: float | None, own: float | None) -> str:
    return f"{_three(peer / own)}×" if peer and own else "–"


def _three(number: float) -> str:
    """Return a number with three digits, never with an exponent."""
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f}" if number > 0.0 else "0"


if __name__ == "__main__":
    sys.exit(main())
