"""Time to find the fastest law along a path, compared with TOPP-RA with the same rows precomputed: `make bench`.

    python benchmarks/bench_fastest.py [--paths 20] [--markdown benchmarks/times.md]

Medians over random paths of each machine at 1 000 points, the least of five runs each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from peers.computer import load, processor
from rows import page
from rows.row import duration, three

import tauloop as tl
from tauloop.motion import PathRows
from tauloop.motion.fastest import planning
from tauloop.motion.fastest.limits import LimitRows

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

FASTEST_MARKS = page.marks("bench_fastest.py")
POINTS, TIMED_RUNS = 1000, 5
FASTEST_HEADINGS = (
    "path of",
    "TOPP-RA",
    "our two sweeps",
    "all sweeps and looks between points",
    "faster by",
    "with the rows",
)


class Kept(PathRows):
    """Rows that are computed once for each grid of points."""

    def __init__(self, rows: PathRows) -> None:
        self.stroke, self.rows, self.made = rows.stroke, rows, dict[tuple[int, float], LimitRows]()

    def at(self, u: np.ndarray, unit: float) -> LimitRows:
        """Return the rows of these points, stored by their number and sum."""
        key = (len(u), float(u.sum()))
        if key not in self.made:
            self.made[key] = self.rows.at(u, unit)
        return self.made[key]


def least(work: Callable[[], object]) -> float:
    """Return the least processor time of several runs, s."""
    times = []
    for _ in range(TIMED_RUNS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def measured(name: str, paths: int) -> tuple[str, ...]:
    """Return the cells of a machine."""
    from toppra_paths import limits_of, random_stroke, toppra_duration

    model, times = tl.Model(tl.load(name)), []
    grid = np.linspace(0.0, 1.0, POINTS + 1)
    for seed in range(1, paths + 1):
        rows = limits_of(random_stroke(model, name, seed))
        unit = rows.unit()
        kept = Kept(rows)
        pair = planning._Grid(kept, unit, grid, np.array(rows.stroke.breaks), between=False)
        sweeps = partial(pair.swept, rows.stroke, np.ones(POINTS))
        ours = [
            least(partial(planning.fastest_profile, made, unit, POINTS)) for made in (kept, rows)
        ]
        peer = min(toppra_duration(rows, unit, POINTS)[1] for _ in range(TIMED_RUNS))
        times.append((peer, least(sweeps), *ours))
    peer, two, alone, whole = np.median(times, axis=0)
    ratio = np.array(times)[:, 0] / np.array(times)[:, 2]
    faster = f"{three(float(np.median(ratio)))}× (least {three(float(ratio.min()))}×)"
    return (name, duration(peer), duration(two), duration(alone), faster, duration(whole))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--paths", type=int, default=20, help="random paths of each machine (default 20)"
    )
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write the table between the marks of a page"
    )
    options = parser.parse_args(arguments)
    try:
        from toppra_paths import BOXES
    except BaseException as error:  # what pytest raises where an extra is not installed
        print(f"TOPP-RA is not installed, so that there is no comparison: {error}")
        return 0
    lines = ["| " + " | ".join(FASTEST_HEADINGS) + " |", "|---" * len(FASTEST_HEADINGS) + "|"]
    lines += ["| " + " | ".join(measured(name, options.paths)) + " |" for name in BOXES]
    note = f"{options.paths} paths each; {processor().name}; load of the {processor().cores} cores {load() or 0.0:.1f}."
    page.write_or_print(options.markdown, FASTEST_MARKS, lines, note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
