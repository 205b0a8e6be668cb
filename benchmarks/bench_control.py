"""Simulation of machines under computed torque at 1 kHz, all in machine code: how many times real time.

    python benchmarks/bench_control.py [--seconds 1.0] [--no-mujoco] [--no-cpp] [--json]

One core. The peers are MuJoCo's `rollout` and a loop in C++ around Pinocchio's constrained forward
dynamics, of the same machine under the same forces, held over the same samples (without the
controller, which they would have to call). Every run's actuator positions are compared with those
of 64 integration steps per sample.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from peers import pinocchio_cpp, pinocchio_rollout
from peers.computer import load as busy, processor, show
from peers.mujoco_rollout import rollouts
from peers.states import NotComparable
from rich.table import Table

from tauloop import Model, load
from tauloop.common.errors import EngineError
from tauloop.compiler.c import Compiled
from tauloop.motion import (
    POLYNOMIAL_345,
    AxisTurn,
    CombinedPath,
    Ellipse,
    Line,
    MachineLimits,
    Trajectory,
    plan,
    stroke,
)
from tauloop.simulation.controllers.laws import (
    HEUN_3,
    RUNGE_KUTTA_4,
    SPACES,
    ComputedTorque,
    Loop,
    Sampling,
)
from tauloop.simulation.controllers.loop import CompiledLoop, Trace
from tauloop.simulation.controllers.run import follow

BANDWIDTH, FREQUENCY, SHARE, SCALE = 150.0, 1000.0, 0.8, 0.72
METHODS = {"Runge-Kutta 4, 1 step": RUNGE_KUTTA_4, "Heun 3, 1 step": HEUN_3}
FINE = 64
#: Units of the actuators.
UNITS = {"nuwar": "rad", "rcid": "m"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One machine, contender and method.

    Attributes:
        contender: Tauloop with its controller's space, or an engine.
        faster: simulated time over computing time, best of the runs.
        median: the same of the median run; None where it was not taken.
        sample: best computing time of a controller's sample, s.
        error: largest difference of actuator positions from those of fine steps, m or rad.
        tracking: largest distance of the platform from its reference, m; None without a controller.
    """

    machine: str
    contender: str
    method: str
    faster: float
    median: float | None
    sample: float
    error: float
    tracking: float | None


class Kept:
    """Runs a compiled loop and keeps its inputs, so that it can be timed again."""

    def __init__(self, loop: CompiledLoop) -> None:
        self.compiled = loop
        self.given: Loop | None = None

    def __call__(self, loop: Loop) -> Trace:
        """Run the loop and keep its inputs."""
        self.given = loop
        return self.compiled(loop)


def nuwar() -> Trajectory:
    """Return the paper's stroke, scaled, forth and back."""
    path = Ellipse([0, 0, -0.9 * SCALE], [0, -0.2 * SCALE, 0], [0, 0, 0.4 * SCALE], 0.0, np.pi)
    placed = stroke(
        Model(load("nuwar"), evaluator=Compiled()), path, ("platform.x", "platform.y", "platform.z")
    )
    return plan(placed, POLYNOMIAL_345, MachineLimits(force=SHARE), returns=True)


def rcid() -> Trajectory:
    """Return a diagonal of 17 mm with a turn, forth and back."""
    model = Model(load("rcid"), evaluator=Compiled())
    here = model.platform.ports.at(model.assembly.q)
    path = CombinedPath(
        (Line(here[:3] - 0.005, here[:3] + 0.005), AxisTurn(here[3:], [0.05, 0.05, -0.05]))
    )
    placed = stroke(model, path, model.platform.ports.position.columns)
    return plan(placed, POLYNOMIAL_345, MachineLimits(force=SHARE, speed=SHARE), returns=True)


def measured(
    name: str, made: Trajectory, seconds: float, with_mujoco: bool, cpp: Path | str
) -> tuple[list[Row], list[str]]:
    """Return all contenders and methods on one machine, and the engines that were not run, with the reason."""
    model, sampling, rows = made.stroke.model, Sampling(frequency=FREQUENCY), []
    for space in SPACES:
        controller = ComputedTorque(bandwidth=BANDWIDTH, space=space)
        fine = follow(made, controller, sampling, substeps=FINE)
        for label, method in METHODS.items():
            kept = Kept(CompiledLoop(model, model, controller))
            found = follow(made, controller, sampling, loop=kept, method=method, substeps=1)
            if found.end or kept.given is None:
                raise RuntimeError(f"{name}: {found.end}")
            times = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until or not times:
                start = time.perf_counter()
                kept.compiled(kept.given)
                times.append(time.perf_counter() - start)
            simulated = float(found.time[-1])
            rows.append(
                Row(
                    machine=name,
                    contender=f"Tauloop, {space} space",
                    method=label,
                    faster=simulated / min(times),
                    median=simulated / float(np.median(times)),
                    sample=min(times) / len(found.time),
                    error=float(np.abs(found.actuator_error - fine.actuator_error).max()),
                    tracking=found.peak_error,
                )
            )
    start_q = made.states(np.zeros(1)).q[0]
    reached = model.actuator_position(made.states(fine.time).q) - fine.actuator_error
    given = (model, start_q, fine.force[:-1], reached[1:], 1.0 / FREQUENCY, seconds)
    peers, left_out = [], []
    for engine, is_wanted, run in (
        ("MuJoCo", with_mujoco, lambda: rollouts(*given)),
        (
            "Pinocchio",
            not isinstance(cpp, str),
            lambda: [pinocchio_rollout.rollout(Path(cpp), *given)],
        ),
    ):
        try:
            if not is_wanted:
                raise NotComparable(cpp if engine == "Pinocchio" else "switched off")
            peers += [(engine, peer) for peer in run()]
        except (EngineError, NotComparable) as error:
            left_out.append(f"{engine} on {name}: {error}")
    simulated = float(fine.time[-1])
    rows += [
        Row(
            machine=name,
            contender=f"{engine}, same forces",
            method=peer.method,
            faster=simulated / peer.seconds,
            median=None,
            sample=peer.seconds / (len(fine.time) - 1),
            error=peer.error,
            tracking=None,
        )
        for engine, peer in peers
    ]
    return rows, left_out


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="for each measurement (default 1)"
    )
    parser.add_argument("--no-mujoco", action="store_true", help="leave MuJoCo out")
    parser.add_argument("--no-cpp", action="store_true", help="leave Pinocchio's C++ program out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    cpp = pinocchio_cpp.program_or_reason(options.no_cpp)
    rows: list[Row] = []
    left_out: list[str] = []
    for name, made in (("nuwar", nuwar()), ("rcid", rcid())):
        found, reasons = measured(name, made, options.seconds, not options.no_mujoco, cpp)
        rows += found
        left_out += reasons
    average = busy()
    about = {"processor": processor().name, "load": average, "left_out": left_out}
    if options.json:
        print(json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=2))
        return 0
    table = Table(title="Computed torque at 1 kHz", title_justify="left", box=None)
    headings = (
        "machine",
        "engine",
        "method",
        "x real time",
        "median",
        "a sample",
        "step error",
        "tracking",
    )
    for heading in headings:
        table.add_column(heading, justify="left" if heading in headings[:3] else "right")
    for row in rows:
        median = f"{row.median:.0f}" if row.median is not None else ""
        numbers = (
            f"{row.faster:.0f}",
            median,
            f"{1e6 * row.sample:.2f} us",
            f"{row.error:.0e} {UNITS[row.machine]}",
        )
        tracking = f"{1e3 * row.tracking:.4f} mm" if row.tracking is not None else ""
        table.add_row(row.machine, row.contender, row.method, *numbers, tracking)
    show(table, left_out, average)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
