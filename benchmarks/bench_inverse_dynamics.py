"""Inverse and forward dynamics of parallel machines: Tauloop beside Pinocchio and MuJoCo, all in one run.

    python benchmarks/bench_inverse_dynamics.py [--machines rcid delta ...] [--json]

Every contender's forces (and Pinocchio's accelerations) must agree before anything is timed. The first run on a
computer builds Pinocchio's C++ program, which takes one to two minutes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import asdict

from peers import pinocchio_cpp
from peers.cache import NotBuilt
from peers.comparison import TOLERANCE, Comparison, Disagreement, Settings, Times, Work, compared
from peers.computer import compiler_version, load, processor
from rich.console import Console
from rich.table import Table

from tauloop.errors import TauloopError
from tauloop.functions.compiler import FLAGS
from tauloop.mechanism.library import load as load_machine

MACHINES = ("rcid", "delta", "gantry_tau_5dof", "hexapod", "spidermill", "five_bar")
#: Below this the tables' columns would wrap.
WIDTH = 132


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    progress = Console(stderr=True, highlight=False)
    start = time.perf_counter()
    with progress.status("Pinocchio's C++ program (one to two minutes where it has to be built)"):
        try:
            cpp = "switched off" if options.no_cpp else pinocchio_cpp.program()
        except NotBuilt as error:
            cpp = str(error)
    settings = Settings(states=options.states, seconds=options.seconds, seed=options.seed, cpp=cpp)
    found: list[Comparison] = []
    try:
        for i, name in enumerate(options.machines):
            head = f"{name} ({i + 1} of {len(options.machines)})"
            with progress.status(head) as status:
                found.append(
                    compared(load_machine(name), settings, lambda text, h=head: status.update(f"{h}: {text}"))
                )
            progress.print(f"{head}: {time.perf_counter() - start:.0f} s")
    except (Disagreement, TauloopError) as error:
        progress.print(f"{name}: {error}", style="bold red", markup=False)
        return 1
    surroundings = _surroundings(settings)
    if options.json:
        machines = [asdict(comparison) for comparison in found]
        print(json.dumps({**surroundings, "unit": "s", "machines": machines}, indent=2, ensure_ascii=False))
    else:
        _print(found, surroundings)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="+", default=MACHINES, metavar="NAME", help="shipped names or files")
    parser.add_argument("--states", type=int, default=256, help="random states (default 256)")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each measurement (default 0.2)")
    parser.add_argument("--seed", type=int, default=0, help="of the random states (default 0)")
    parser.add_argument("--no-cpp", action="store_true", help="leave Pinocchio's C++ program out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args(arguments)


def _surroundings(settings: Settings) -> dict[str, object]:
    """On what, and how, it was measured."""
    compilers = [path for name in ("cc", "c++") if (path := shutil.which(name))]
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
    screen = screen if screen.width >= WIDTH else Console(highlight=False, width=WIDTH)
    for title, works in (
        ("Inverse dynamics", [(c.machine, c.inverse) for c in found]),
        ("Forward dynamics", [(c.machine, c.forward) for c in found]),
    ):
        screen.print(_table(title, works))
        screen.print()
    screen.print(
        "Tauloop starts from the platform's motion, kinematics included; the peers are given all coordinates.\n"
        "call: one call in machine code. batch: a sample of a large batch, checks included, one core. "
        "Python: set a state, call, take the result.\n"
        "Ratios: the fastest peer's call by Tauloop's call and batch; the fastest peer's Python loop by Tauloop's "
        "Python call. worst: largest difference of forces or accelerations from the reference."
    )
    for note in _notes(found):
        screen.print(note, markup=False)
    computer = surroundings["processor"]
    screen.print(
        f"{computer['name']}, {computer['cores']} cores, {' '.join(computer['features'])}; "
        f"load {surroundings['load']:.1f}; Python {surroundings['python']}; "
        f"{'; '.join(surroundings['compilers'])}\n"
        f"Tauloop {surroundings['flags']['Tauloop']}\nPinocchio {surroundings['flags']['Pinocchio']}",
        markup=False,
    )


def _table(title: str, works: list[tuple[str, Work]]) -> Table:
    versions = {peer.name: peer.version for _, work in works for peer in work.peers if peer.version}
    names = list(dict.fromkeys(peer.name for _, work in works for peer in work.peers))
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("machine\n", no_wrap=True)
    table.add_column("Tauloop\n", no_wrap=True)
    heads = ["Tauloop\ncall", "\nbatch", "\nPython"]
    for name in names:
        heads += [f"{name} {versions.get(name, '')}\n{'C++' if name == 'Pinocchio' else 'C'}"]
        heads += ["\n(rnea)"] if name == "Pinocchio" and title.startswith("Inverse") else []
        heads += ["\nPython"] if title.startswith("Inverse") else []
    for head in [*heads, "ratio\ncall", "\nbatch", "\nPython", "\nworst"]:
        table.add_column(head, justify="right", no_wrap=True)
    for machine, work in works:
        peers = {peer.name: peer for peer in work.peers}
        for i, own in enumerate(work.tauloop):
            cells = [machine if i == 0 else "", own.name, *map(_time, (own.call, own.batch, own.python))]
            for name in names:
                peer = peers.get(name, Times(name=name))
                shown = [peer.call]
                if title.startswith("Inverse"):
                    shown += [peer.part, peer.python] if name == "Pinocchio" else [peer.python]
                cells += map(_time, shown) if i == 0 else [""] * len(shown)
            cells += [
                _ratio(work.fastest_call, own.call),
                _ratio(work.fastest_call, own.batch),
                _ratio(work.fastest_python, own.python),
            ]
            table.add_row(*cells, "" if own.difference is None else f"{own.difference:.0e}")
    return table


def _notes(found: list[Comparison]) -> list[str]:
    """Notes of all contenders, each with the machines that it holds for."""
    notes: dict[str, list[str]] = {}
    for comparison in found:
        for work in (comparison.inverse, comparison.forward):
            for times in (*work.tauloop, *work.peers):
                if times.note:
                    notes.setdefault(f"{times.name}, {work.name}: {times.note}", []).append(comparison.machine)
    return [
        note if len(machines) == len(found) else f"{note} [{', '.join(machines)}]" for note, machines in notes.items()
    ]


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1e6:.3g} µs" if seconds >= 1e-6 else f"{seconds * 1e9:.3g} ns"


def _ratio(peer: float | None, own: float | None) -> str:
    return f"{peer / own:.3g}×" if peer and own else "–"


if __name__ == "__main__":
    sys.exit(main())
