"""Growth of cost with the legs of a hexapod, and with the samples of a stream.

    python benchmarks/bench_scaling.py [--figure docs/speed-scaling.png] [--json]

The machine with n legs is the shipped hexapod with its legs spread evenly over both circles.
Forward dynamics is measured for all; inverse dynamics from six legs on, because with fewer the
platform's motion cannot be prescribed. From seven legs on it distributes forces among redundant actuators.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from peers.computer import load as busy, processor
from peers.timing import seconds_per_call
from rich.console import Console
from rich.table import Table
from rows.limits import limits
from rows.row import duration
from rows.streaming import streamed

from tauloop import Mechanism, Model, loads
from tauloop.compiler.c.printing.operations import operations
from tauloop.formats import machine_path
from tauloop.kinematics import random_states

LEGS = (3, 4, 5, 6, 7, 8, 10, 12)
FREEDOMS = 6
MILLIONS_OF_SAMPLES = (1, 2, 4, 6, 8, 10)
STREAMED_MACHINES = ("delta", "rcid")
#: A batch is short enough for a slice of the processor's time, so that some run is undisturbed on a
#: busy computer too.
SCALING_BATCH, STATES = 512, 64
#: Standard deviation of actuator forces, N.
FORCE = 20.0
INVERSE, FORWARD = "inverse_dynamics", "forward_dynamics"
RESULT = {INVERSE: "force", FORWARD: "acceleration"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """The hexapod with `legs` legs: program, operations of a sample, its time in batch and its least time, s."""

    legs: int
    program: str
    operations: int
    batch: float
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """One machine: times (s) for the given millions of samples."""

    machine: str
    millions: tuple[float, ...]
    seconds: tuple[float, ...]


def with_legs(n: int) -> Mechanism:
    """Return the shipped hexapod with n legs: pairs on the base and on the platform become evenly spread neighbors.

    The legs lean to alternate sides by the angle that they have in the original, so that six legs
    constrain all six degrees of freedom.
    """
    text = machine_path("hexapod").read_text(encoding="utf-8")
    base = [360.0 * i / n + lean for i, lean in enumerate(_leans(n))]
    plate = [360.0 * i / n - lean for i, lean in enumerate(_leans(n))]
    text, repeats = re.subn(r"repeat: 6", f"repeat: {n}", text)
    for name, angles in (("base_angle", base), ("plate_angle", plate)):
        lines = "".join(f"        - {angle:.12g} deg\n" for angle in angles)
        text, found = re.subn(rf"( {name}:\n)(?:        - .*\n)+", rf"\g<1>{lines}", text)
        repeats += found
    text, found = re.subn(
        r"reference: sqrt\(.*\)\n",
        f"reference: sqrt(base_radius^2 + plate_radius^2 - 2 * base_radius * plate_radius * cos({2 * LEAN:g} deg)"
        " + (0.35 m)^2)\n",
        text,
    )
    if repeats + found != 4:
        raise RuntimeError("the shipped hexapod does not have the form that this benchmark expects")
    return loads(text)


#: Half the angle between a leg's two ends, deg: that of the shipped machine, whose ends are 40
#: degrees apart.
LEAN = 20.0


def _leans(n: int) -> list[float]:
    return [LEAN if i % 2 else -LEAN for i in range(n)]


def measure_legs(n: int, seconds: float, seed: int) -> list[Legs]:
    """Measure forward dynamics with n legs, and inverse dynamics where the platform's motion can be prescribed."""
    model = Model(with_legs(n))
    states = random_states(model, STATES, np.random.default_rng(seed))
    sources = {
        "position": states.position,
        "velocity": states.velocity,
        "acceleration": states.acceleration,
        "force": np.random.default_rng(seed).normal(scale=FORCE, size=(STATES, n)),
        "weight": np.ones((STATES, n)),
        "start": states.q,
    }
    found = []
    for program in (FORWARD, INVERSE) if n >= FREEDOMS else (FORWARD,):
        kernel = model.platform.compiled(program, (RESULT[program],))
        given = {port.name: sources[port.name] for port in kernel.function.inputs}
        batch = {
            key: np.resize(array, (SCALING_BATCH, array.shape[1])) for key, array in given.items()
        }
        if not np.isfinite(kernel.batch(batch, SCALING_BATCH)[RESULT[program]]).all():
            raise RuntimeError(f"{n} legs, {program}: numbers are not finite")
        found.append(
            Legs(
                legs=n,
                program=program,
                operations=sum(operations(kernel.function)["once"].values()),
                batch=seconds_per_call(
                    lambda k=kernel, b=batch: k.batch(b, SCALING_BATCH), seconds, SCALING_BATCH
                ),
                limit=limits(kernel.function, in_lanes=True)[0],
            )
        )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--legs", type=int, nargs="+", default=LEGS, help="numbers of legs (default 3 to 12)"
    )
    parser.add_argument(
        "--millions",
        type=float,
        nargs="+",
        default=MILLIONS_OF_SAMPLES,
        help="of samples (default 1 to 10)",
    )
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="for each measurement (default 0.2)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the random states (default 0)")
    parser.add_argument("--figure", type=Path, help="draw into this file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    progress, start = Console(stderr=True, highlight=False), time.perf_counter()
    legs: list[Legs] = []
    for n in options.legs:
        legs += measure_legs(n, options.seconds, options.seed)
        progress.print(f"{n} legs: {time.perf_counter() - start:.0f} s")
    streams = [_stream(name, options.millions) for name in STREAMED_MACHINES]
    if options.figure is not None:
        draw(legs, streams, options.figure)
    if options.json:
        found = {"legs": [asdict(row) for row in legs], "streams": [asdict(row) for row in streams]}
        print(json.dumps({"processor": processor().name, "load": busy(), **found}, indent=2))
        return 0
    _print(legs, streams)
    return 0


def _stream(name: str, millions: Sequence[float]) -> Streams:
    counts = [round(1e6 * million) for million in millions]
    times = streamed(name, counts[-1], tuple(counts[:-1]))["times"]
    return Streams(machine=name, millions=tuple(millions), seconds=tuple(times))


def line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Return slope, value at zero, and largest distance from the line as a share of the largest value."""
    slope, zero = np.polyfit(x, y, 1)
    away = np.abs(np.asarray(y) - slope * np.asarray(x) - zero).max() / np.abs(y).max()
    return float(slope), float(zero), float(away)


def _print(legs: list[Legs], streams: list[Streams]) -> None:
    console = Console(highlight=False)
    table = Table(title="Hexapod, from the platform's motion", title_justify="left", box=None)
    for heading in ("legs", "program", "operations", "batch, a sample", "limit"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    for row in legs:
        table.add_row(
            str(row.legs),
            row.program,
            str(row.operations),
            duration(row.batch),
            duration(row.limit),
        )
    console.print(table)
    table = Table(title="Inverse dynamics streamed in chunks", title_justify="left", box=None)
    for heading in ("machine", "million samples", "time", "a sample"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for stream in streams:
        for millions, seconds in zip(stream.millions, stream.seconds, strict=True):
            table.add_row(
                stream.machine,
                f"{millions:g}",
                duration(seconds),
                duration(seconds / millions / 1e6),
            )
    console.print(table)
    for text in _fits(legs, streams):
        console.print(text)
    average = busy()
    console.print(processor().name + (f", load {average:.1f}" if average is not None else ""))


def _fits(legs: list[Legs], streams: list[Streams]) -> list[str]:
    """Return the deviations of the measured times from straight lines."""
    texts = []
    for program in (FORWARD, INVERSE):
        chosen = [row for row in legs if row.program == program]
        for what, y in (
            ("operations", [row.operations for row in chosen]),
            ("ns", [1e9 * row.batch for row in chosen]),
        ):
            if len(y) > 2:
                slope, zero, away = line([row.legs for row in chosen], y)
                fit = f"{slope:.0f} {what} a leg plus {zero:.0f}"
                texts.append(f"{program}: {fit}, at most {100 * away:.1f} % off the line")
    for stream in streams:
        if len(stream.millions) > 2:
            slope, _, away = line(stream.millions, stream.seconds)
            texts.append(
                f"{stream.machine}: {1e3 * slope:.1f} ns a sample, at most {100 * away:.1f} % off the line"
            )
    return texts


def draw(legs: list[Legs], streams: list[Streams], file: Path) -> None:
    """Draw three panels: operations and time against legs, time against samples."""
    mpl.use("agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import MaxNLocator

    figure, (counts, times, samples) = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
    for program, color in ((FORWARD, "tab:orange"), (INVERSE, "tab:blue")):
        chosen = [row for row in legs if row.program == program]
        x = [row.legs for row in chosen]
        label = program.replace("_", " ")
        counts.plot(
            x, [row.operations for row in chosen], color=color, label=label, linewidth=1, marker="o"
        )
        times.plot(
            x,
            [1e9 * row.batch for row in chosen],
            color=color,
            label=label,
            linewidth=1,
            marker="o",
        )
        if None not in (least := [row.limit for row in chosen]):
            label = "limit by operations" if program == INVERSE else None
            times.plot(
                x, [1e9 * y for y in least], color=color, linestyle=":", linewidth=1, label=label
            )
    for axes, title, unit in (
        (counts, "Operations of a sample", ""),
        (times, "Time of a sample in batch", "ns"),
    ):
        axes.set(title=title, xlabel="legs of the hexapod", ylabel=unit)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False, fontsize=8)
    for stream in streams:
        samples.plot(stream.millions, stream.seconds, marker="o", linewidth=1, label=stream.machine)
    samples.set(title="Inverse dynamics in chunks", xlabel="million samples", ylabel="s")
    samples.set_xlim(left=0)
    samples.set_ylim(bottom=0)
    samples.legend(frameon=False, fontsize=8)
    for axes in (counts, times, samples):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
