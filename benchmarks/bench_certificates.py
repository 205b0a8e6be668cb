"""Processor time to prove or refute boxes of poses.

    python benchmarks/bench_certificates.py [--boxes delta ...] [--markdown benchmarks/times.md]

`tl.certify` on one core, least of some runs. Rotations count by 0.2 m in the unit rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from peers.computer import load as busy, processor
from rows import page

import tauloop as tl
from tauloop.mechanism.shipped import SHIPPED

CERTIFICATE_MARKS = page.marks("bench_certificates.py")
CERTIFICATE_RUNS = 3
TILT = "rx=-10deg:10deg,ry=-10deg:10deg"
UNIT_ROWS = {"moment_length": 0.2}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A box: the machine, text that is replaced in its file, keywords, and what is expected."""

    machine: str
    ranges: str
    keywords: dict[str, Any] = field(default_factory=dict)
    stops: str = ""
    verdict: str = "proved"
    limit: str = "-"


def near_base() -> str:
    """Return ranges about the point above a base joint of the hexapod, where a leg is shortest."""
    a, b = np.radians(10), np.radians(50)
    x = 0.35 * np.cos(a) - 0.2 * np.cos(b)
    y = 0.35 * np.sin(a) - 0.2 * np.sin(b)
    return f"x={x - 0.04}:{x + 0.03},y={y - 0.02}:{y + 0.04},z=0.35:0.40"


CASES = {
    "delta, 0.3 x 0.3 x 0.1 m, arm limits": Case(
        machine="delta",
        ranges="x=-0.15:0.15,y=-0.15:0.15,z=-0.55:-0.45",
        keywords={"drawing_limits": True},
        limit="0.1 s",
    ),
    "hexapod, 60 mm, rx and ry 10 deg, at least 0.65": Case(
        machine="hexapod",
        ranges=f"x=-0.03:0.03,y=-0.03:0.03,z=0.33:0.39,{TILT}",
        keywords={"parallel": 0.65, **UNIT_ROWS},
        limit="5 s",
    ),
    "hexapod, 100 mm, rx and ry 10 deg": Case(
        machine="hexapod",
        ranges=f"x=-0.05:0.05,y=-0.05:0.05,z=0.31:0.41,{TILT}",
        keywords={"parallel": 0.65, **UNIT_ROWS},
        verdict="refuted",
        limit="0.5 s",
    ),
    "hexapod, 100 mm, three rotations of 10 deg, stops 0.28 to 0.60 m, at least 0.5": Case(
        machine="hexapod",
        ranges=f"x=-0.05:0.05,y=-0.05:0.05,z=0.31:0.41,{TILT},rz=-10deg:10deg",
        keywords={"parallel": 0.5, "time_limit": 120.0, **UNIT_ROWS},
        stops="limits: [0.28 m, 0.60 m]",
        limit="30 s",
    ),
    "hexapod, bad region of 2.4 mm": Case(
        machine="hexapod",
        ranges=near_base(),
        stops="limits: [0.350008 m, 1 m]",
        verdict="refuted",
        limit="1 s",
    ),
    "five_bar, 0.2 x 0.1 m": Case(machine="five_bar", ranges="x=-0.1:0.1,y=0.36:0.46"),
    "linear_delta, 0.12 x 0.12 x 0.13 m": Case(
        machine="linear_delta", ranges="x=-0.06:0.06,y=-0.06:0.06,z=0.02:0.15"
    ),
    "gantry_tau_5dof, 0.3 x 0.2 x 0.2 m, two rotations of 0.05 rad": Case(
        machine="gantry_tau_5dof",
        ranges="x=-0.15:0.15,y=-0.1:0.1,z=-0.1:0.1,rx=-0.05:0.05,ry=-0.05:0.05",
    ),
    "rcid, 10 mm, three rotations of 0.05 rad": Case(
        machine="rcid",
        ranges="x=-0.005:0.005,y=-0.005:0.005,z=0.108:0.118,"
        "rx=-0.05:0.05,ry=-0.05:0.05,rz=-0.05:0.05",
    ),
    "delta, 0.12 x 0.12 x 0.02 m, errors of encoders (50 urad) and arms (50 um) below 0.1 mm": Case(
        machine="delta",
        ranges="x=-0.06:0.06,y=-0.06:0.06,z=-0.51:-0.49",
        keywords={
            "encoders": {"*": 5e-5},
            "deviations": {"arm_length": 5e-5},
            "limits": {"x": 1e-4, "y": 1e-4, "z": 1e-4},
        },
    ),
}


def machine_of(case: Case, folder: Path) -> str:
    """Return the machine, or a file of it with other stops."""
    if not case.stops:
        return case.machine
    text = (SHIPPED / f"{case.machine}.yaml").read_text(encoding="utf-8")
    path = folder / f"{case.machine}.yaml"
    path.write_text(text.replace("limits: [0.33 m, 0.53 m]", case.stops), encoding="utf-8")
    return str(path)


def certified(case: Case, count: int) -> tl.Certification:
    """Return the certification of the fastest of some runs.

    Raises:
        RuntimeError: the verdict is another one.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = tl.Model(machine_of(case, Path(folder)))
        runs = [tl.certify(model, ranges=case.ranges, **case.keywords) for _ in range(count)]
    if any(run.verdict != case.verdict for run in runs):
        raise RuntimeError(f"{case.machine}, {case.ranges}: {runs[0].verdict}")
    return min(runs, key=lambda run: run.duration)


def table(names: Sequence[str], count: int) -> Iterator[str]:
    """Yield the lines of the table of boxes, each from a number of runs."""
    yield "| box | verdict | boxes evaluated | processor time | goal |"
    yield "|---|---|---|---|---|"
    for name in names:
        case = CASES[name]
        result = certified(case, count)
        yield (
            f"| {name} | {result.verdict} | {result.evaluated} | {result.duration:.2f} s "
            f"| {case.limit} |"
        )


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boxes", nargs="+", default=[""], help="by the beginnings of names")
    parser.add_argument(
        "--runs", type=int, default=CERTIFICATE_RUNS, help="of which the fastest counts"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    names = [name for name in CASES if name.startswith(tuple(options.boxes))]
    note = f"{processor().name}; load of the cores {busy():.1f}."
    lines = list(table(names, options.runs))
    page.write_or_print(options.markdown, CERTIFICATE_MARKS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
