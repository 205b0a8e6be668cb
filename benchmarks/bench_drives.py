"""Drive lines: a 10 s step of the three-mass axis, and the Gantry-Tau on its circle with two motors, one, and rigid.

    python benchmarks/bench_drives.py [--runs 20] [--json]

Least processor time of several runs of compiled code; deriving and compiling equations and
evaluating a run are not included. The limits are those of issue 7.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from peers.computer import load as busy, processor
from rich.console import Console
from rich.table import Table

from tauloop import Model, load
from tauloop.drives import Axis, load_drive, simulate_axis
from tauloop.drives.machine.circle import Circle, circle_trajectory
from tauloop.drives.machine.path import PATH_INTEGRATOR, DrivenMachine, PathRun, Variation

MACHINE = (
    Path(__file__).resolve().parents[1] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
)
#: Limit of the time of a step, s, and least speed of a machine as a multiple of real time.
STEP, FASTER = 2e-3, 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: seconds simulated and needed, steps, events."""

    name: str
    simulated: float
    seconds: float
    steps: int
    events: int
    is_good: bool

    @property
    def faster(self) -> float:
        """Return how many times faster than real time."""
        return self.simulated / self.seconds


def least(run: Callable[[], object], runs: int) -> float:
    """Return the least processor time of a call, s."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def axis_row(runs: int) -> Row:
    """Return the row of a 10 s step of the three-mass axis."""
    axis = Axis(load_drive("dual_motor_axis"), runs=10**6)
    criteria = simulate_axis(axis, duration=10.0)
    seconds = least(lambda: simulate_axis(axis, duration=10.0), runs)
    steps, events = int(criteria.steps[0]), int(criteria.events[0])
    name = "three-mass axis, step"
    return Row(
        name=name,
        simulated=10.0,
        seconds=seconds,
        steps=steps,
        events=events,
        is_good=seconds < STEP,
    )


def machine_row(variation: Variation, runs: int) -> Row:
    """Return the row of the circle of 100 mm at 0.8 m/s."""
    mechanism = load(MACHINE)
    circle = Circle(columns=("platform.x", "platform.y"), radius=0.1, speed=0.8)
    machine = DrivenMachine(mechanism, variation=variation)
    run = PathRun(machine, circle_trajectory(Model(mechanism), circle))
    samples = run.sampled_run(PATH_INTEGRATOR)
    trace = machine.runner(samples)
    seconds = least(lambda: machine.runner(samples), runs)
    simulated = float(run.time[-1] - run.time[0])
    return Row(
        name=f"circle, drives {variation.value}",
        simulated=simulated,
        seconds=seconds,
        steps=trace.steps,
        events=trace.events,
        is_good=simulated / seconds >= FASTER,
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    rows = [axis_row(given.runs), *(machine_row(variation, given.runs) for variation in Variation)]
    if given.json:
        found = [asdict(row) | {"times_real_time": row.faster} for row in rows]
        print(
            json.dumps({"processor": asdict(processor()), "load": busy(), "rows": found}, indent=2)
        )
        return
    computer = processor()
    title = f"{computer.name}, {computer.cores} cores, load {busy() or 0.0:.1f}"
    table = Table(title=title, title_justify="left", box=None)
    for column in (
        "run",
        "simulated [s]",
        "time [ms]",
        "times real time",
        "steps",
        "events",
        "bar",
    ):
        table.add_column(column, justify="left" if column in ("run", "bar") else "right")
    for row in rows:
        cells = (
            f"{row.simulated:.2f}",
            f"{1e3 * row.seconds:.2f}",
            f"{row.faster:.0f}",
            str(row.steps),
        )
        table.add_row(row.name, *cells, str(row.events), "met" if row.is_good else "MISSED")
    Console().print(table)


if __name__ == "__main__":
    main()
