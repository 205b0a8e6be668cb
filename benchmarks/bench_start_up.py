"""Start-up times and first answers of new processes, with the bar of each.

    python benchmarks/bench_start_up.py [--rounds 5] [--short]

All values are processor times (user and system) of whole processes, with an empty cache of compiled
code and with Tauloop's files in the memory of the operating system. Short rows are the least of
some rounds; every round starts each process once, so that all are measured under the same load.
They are compared with the import of NumPy and CasADi. Long rows (left out with `--short`) run once.
The row of the ankle needs its file in the folder of TAULOOP_SHARED, by default ../shared.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_identification import seven_bodies

from tauloop import Model, loads
from tauloop.compiler.c import Compiled
from tauloop.logs import Sensors, measure, write_log
from tauloop.motion import random_multisine

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("TAULOOP_SHARED", ROOT.parent / "shared"))
ANKLE = SHARED / "cases" / "imports" / "ankle_rods.xml"
BASE = "import numpy, casadi"
COMMAND = "import sys; from tauloop.cli import main; sys.argv[1:] = {!r}; main()"
FIRST_TORQUE = """\
import tauloop as tl
model = tl.Model(tl.load({!r}))
position = model.platform_position(model.assembly.q)
still = [0.0] * len(model.assembly.independent)
model.inverse_dynamics(position, still, still).force
"""
#: Prints the processor time of a call in a model that has been called before, s.
ONE_CALL = """\
import time
import numpy as np
import tauloop as tl
model = tl.Model(tl.load({!r}))
position = model.platform_position(model.assembly.q)
rates = np.full(len(model.assembly.independent), 0.1)
least = float("inf")
for _ in range(20):
    start = time.process_time()
    for _ in range(100):
        model.inverse_dynamics(position, rates, rates)
    least = min(least, (time.process_time() - start) / 100)
print(least)
"""
#: Machine of the single call, and the bar, s.
CALLED_MACHINE, CALL_BAR = "gantry_tau_5dof", 30e-6
#: Samples, rate (Hz) and amplitude (rad) of the log of seven motors, which has friction in all
#: joints; noise of its forces, N m.
SAMPLES, RATE, AMPLITUDE, FORCE_NOISE = 6000, 1000.0, 0.4, 0.2
#: Resolution of its encoders, rad.
ENCODER_RESOLUTION = 1e-5
#: Step that gives the map of the ankle 1 025 poses, rad.
ANKLE_STEP = 0.165


@dataclass(frozen=True, kw_only=True)
class Work:
    """A process, with the bar of its time: as a multiple of the base, in seconds, or both."""

    name: str
    code: str
    multiple: float | None = None
    seconds: float | None = None


def command(words: str, *, multiple: float | None = None, seconds: float | None = None) -> Work:
    """Return the work of a command line."""
    return Work(
        name=f"tauloop {words}",
        code=COMMAND.format(words.split()),
        multiple=multiple,
        seconds=seconds,
    )


SHORT_WORK = (
    Work(
        name="import, load delta, build its Model",
        code="import tauloop as tl; tl.Model(tl.load('delta'))",
        multiple=2.2,
    ),
    *(
        Work(name=f"first torque of {name}", code=FIRST_TORQUE.format(name), multiple=multiple)
        for name, multiple in (("delta", 2.2), ("rcid", 3.0), ("gantry_tau_5dof", 3.5))
    ),
    command("list", multiple=1.6),
    command("check delta", multiple=2.5, seconds=0.4),
    command("show delta", multiple=2.5),
    command("dynamics delta", multiple=3.6, seconds=0.5),
    command("fk delta", seconds=0.5),
    command("modes delta", multiple=4.6),
    command("workspace delta", multiple=4.6),
)


def long_work(folder: Path) -> Iterator[Work]:
    """Yield what takes seconds; its files are in a folder."""
    cycle = ROOT / "examples" / "cycles" / "adept.yaml"
    yield command(f"model cost {folder / 'six_legs.yaml'}", seconds=3.0)
    yield command(f"plan cycle delta {cycle} --rated 0.35", seconds=4.0)
    yield command(f"identify {folder / 'seven.yaml'} {folder / 'seven.csv'}", seconds=5.0)
    if ANKLE.is_file():
        yield command(f"workspace {ANKLE} --resolution {ANKLE_STEP}", seconds=10.0)
    else:
        print(f"{ANKLE} is not there: its map is left out", file=sys.stderr)


def write_files(folder: Path) -> None:
    """Write the machines and the log of the long rows."""
    template = COMMAND.format(["new", "six_legs", "--template", "hexapod", "--quiet"])
    subprocess.run([sys.executable, "-c", template], check=True, cwd=folder)
    (folder / "seven.yaml").write_text(seven_bodies(), encoding="utf-8")
    model = Model(loads(seven_bodies()), evaluator=Compiled(at_least=0))
    center, rng = model.actuator_position(model.assembly.q), np.random.default_rng(0)
    motion = random_multisine(
        center, np.full(len(center), AMPLITUDE), rng, terms=5, lowest=0.3, highest=2.4
    )
    moved = motion.sample(np.arange(SAMPLES) / RATE)
    forces = model.actuators.inverse_dynamics(moved.position, moved.velocity, moved.acceleration)
    names, units = model.output_ports("actuators")
    sensors = Sensors(
        resolution=np.full(len(center), ENCODER_RESOLUTION),
        force_noise=np.full(len(center), FORCE_NOISE),
    )
    position_units = model.actuators.ports.position.units
    log = measure(
        moved.time, moved.position, forces.force, names, position_units, units, sensors, rng
    )
    write_log(folder / "seven.csv", log)


def processor_time(code: str) -> tuple[float, str]:
    """Return the time of a new interpreter with an empty cache that runs some code, s; its output.

    A command that ends with exit code 1 has answered that a machine or a log is doubtful.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as cache:
        environment["XDG_CACHE_HOME"] = cache
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise RuntimeError(done.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout


def row(name: str, value: str, bars: list[str]) -> None:
    """Print a row."""
    print(f"{name:40s} {value:>22s}   bar: {' and '.join(bars)}")


def show(work: Work, spent: float, base: float) -> None:
    """Print the row of a process."""
    words = [word.rpartition("/")[2] for word in work.name.split()]
    bars = [f"{work.multiple:g} times"] if work.multiple is not None else []
    bars += [f"{work.seconds:g} s"] if work.seconds is not None else []
    row(" ".join(words), f"{spent:.3f} s, {spent / base:6.2f} times", bars)


def main(arguments: list[str] | None = None) -> None:
    """Print one row for each start."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="of the short rows (default 5)")
    parser.add_argument("--short", action="store_true", help="leave out the long rows")
    options = parser.parse_args(arguments)
    codes = {BASE: BASE} | {work.name: work.code for work in SHORT_WORK}
    least = dict.fromkeys(codes, float("inf"))
    for _ in range(options.rounds):
        for name, code in codes.items():
            least[name] = min(least[name], processor_time(code)[0])
    print(f"{BASE}: {least[BASE]:.3f} s")
    for work in SHORT_WORK:
        show(work, least[work.name], least[BASE])
    _, printed = processor_time(ONE_CALL.format(CALLED_MACHINE))
    call = f"{1e6 * float(printed):.0f} us"
    row(f"one inverse dynamics of {CALLED_MACHINE}", call, [f"{1e6 * CALL_BAR:.0f} us"])
    if options.short:
        return
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for work in long_work(Path(folder)):
            show(work, processor_time(work.code)[0], least[BASE])


if __name__ == "__main__":
    main()
