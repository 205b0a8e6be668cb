"""Identification: a measured arm, the Gantry-Tau, a million samples, and physically consistent parameters.

    python benchmarks/bench_identification.py [--data FOLDER] [--samples 1000000] [--json]

Times are processor times, which other programs on a busy computer hardly affect. The rows of the
arm need its data: FOLDER, by default ../shared/data/tx40. The peer is FIGAROH, where it is installed
(``pip install figaroh``): from joint positions, velocities and accelerations to base parameters by
ordinary least squares, with the same 87 columns. Machine code is in the cache (every row runs once
before); the row of the whole command is a separate process, with its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import closed_form
import numpy as np
from peers import figaroh_peer
from peers.computer import load as busy, processor
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from tauloop import Model, load, loads
from tauloop.compiler.c import Compiled
from tauloop.formats.urdf.reader import load_urdf
from tauloop.identification import (
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    RegressionData,
    WeightedLeastSquares,
    condense_parts,
    consistency_cones,
    estimate_condensed,
    fit_consistent,
    fit_regression,
    parameter_ties,
    regression_data,
    split_data,
)
from tauloop.kinematics import random_states
from tauloop.logs import (
    Preparation,
    Sensors,
    load_recording,
    measure,
    prepare,
    read_log,
    samples,
    write_log,
)
from tauloop.logs.log import build_log
from tauloop.motion import Multisine, SampledMotion, random_multisine

ROOT = Path(__file__).resolve().parents[1]
ARM = ROOT / "examples" / "tx40"
URDF = "tx40_nomesh.urdf"
#: The URDF's angles minus the measured ones, as in side.yaml.
OFFSETS = np.deg2rad([0.0, -90.0, 90.0, 0.0, 0.0, 0.0])
GANTRY = "gantry_tau_5dof"
PAPER = (
    *("m_p", "mc_px", "mc_pz", "I_pyy"),
    *(
        f"{name}_{link}{axes}"
        for link in "slt"
        for name, axes in (("m", ""), ("I", "xx"), ("I", "yy"), ("I", "zz"))
    ),
)
FRICTION = ("cart_viscous", "cart_coulomb", "telescope_viscous", "telescope_coulomb")
#: Least squares written by hand, and the preparation for both.
NUMPY_PEER = Path(__file__).with_name("peers") / "numpy_least_squares.py"
LONG_LOG = {"cutoff": 20, "trim": 200, "decimation": 10}
#: Samples of the stream that are in memory at a time.
CHUNK = 10_000
STREAM_RATE = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    Attributes:
        work: what was done.
        seconds: processor time of Tauloop.
        asked: limit of the project, s; None without.
        megabytes: peak memory of the process; None where the process did other work too.
        peer: processor time of FIGAROH, or of least squares in NumPy, for the same, s; None where
            neither is compared.
        note: what else was found.
    """

    work: str
    seconds: float
    asked: float | None = None
    megabytes: float | None = None
    peer: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return how much faster than the peer."""
        return None if self.peer is None else self.peer / self.seconds


def seconds_of(work: Callable[[], object], runs: int = 3) -> float:
    """Return the least processor time of several runs, after one that is not counted."""
    times = []
    for _ in range(runs + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:])


#: Starts a command and prints its exit code, its processor time (s) and its peak memory (KB). The
#: peak of a process includes the memory of the process that starts it, which must be small.
METER = """
import os, subprocess, sys
process = subprocess.Popen([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
#: Exit code of a command whose result is doubtful.
DOUBTFUL = 1
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: Runs of a process that are measured.
PROCESS_RUNS = 3


def in_process(*command: str, accepted: Sequence[int] = (0,)) -> tuple[float, float]:
    """Return the least processor time (s) and the peak memory (MB) of several runs of a process, after a first run.

    The first run fills the cache of machine code and writes the byte code of the modules, as an
    installation does.

    Args:
        command: arguments of the Python interpreter.
        accepted: exit codes.
    """
    environment = {**os.environ, **ONE_THREAD}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds, megabytes = [], []
    for _ in range(PROCESS_RUNS + 1):
        meter = [sys.executable, "-c", METER, *command]
        code, time_used, memory = subprocess.run(
            meter, check=True, stdout=subprocess.PIPE, text=True, env=environment
        ).stdout.split()
        if int(code) not in accepted:
            raise subprocess.CalledProcessError(int(code), command)
        seconds.append(float(time_used))
        megabytes.append(float(memory) / 1024)
    return min(seconds[1:]), max(megabytes[1:])


def arm_rows(data: Path) -> Iterator[Row]:
    """Yield the rows of the measured arm: the whole command, its parts, and FIGAROH."""
    machine = load_urdf(data / URDF, ARM / "side.yaml")
    recording = load_recording(ARM / "recording.yaml", data)
    arguments = [
        str(data / URDF),
        str(ARM / "recording.yaml"),
        "--side",
        str(ARM / "side.yaml"),
        "--data",
        str(data),
    ]
    start = "from tauloop.cli import main; main()"
    seconds, megabytes = in_process(
        "-c", start, "identify", *arguments, "--output", "joints", accepted=(0, DOUBTFUL)
    )
    yield Row(
        work="TX40: the whole command",
        seconds=seconds,
        asked=3.0,
        megabytes=megabytes,
        note="45 000 x 6 samples, 87 columns; reads, fits twice, prints",
    )
    model = Model(machine, evaluator=Compiled(at_least=0))
    preparation = recording.preparation
    log = read_log(*recording.files, sample_rate=recording.sample_rate)
    yield Row(
        work="TX40: reading the log",
        seconds=seconds_of(lambda: read_log(*recording.files, sample_rate=recording.sample_rate)),
    )

    def regression() -> RegressionData:
        return regression_data(model, log, preparation, output="joints")

    found = regression()
    yield Row(work="TX40: log to regressor, decimated", seconds=seconds_of(regression))
    result = fit_regression(found, None, OrdinaryLeastSquares())
    ours = seconds_of(lambda: fit_regression(regression(), None, OrdinaryLeastSquares()))
    joint = model.actuators.kinematics(
        *(
            samples(prepare(log, preparation), kind)
            for kind in ("position", "velocity", "acceleration")
        )
    )
    note = f"{result.base.rank} base parameters, RMS residuals {_list(fitted.rmse for fitted in result.training)} N m"
    try:
        urdf = (data / URDF).read_text(encoding="utf-8")
        peer = figaroh_peer.identify(
            urdf, (joint.q + OFFSETS, joint.v, joint.a), found.forces, preparation.decimation
        )
    except figaroh_peer.NotInstalled as error:
        yield Row(
            work="TX40: log to ordinary least squares",
            seconds=ours,
            note=f"{note}; no FIGAROH here: {error}",
        )
        return
    note += (
        f"; FIGAROH {peer.base_parameters}, {_list(peer.residuals)}: {peer.regressor:.2f} s regressor, "
        f"{peer.decimation:.2f} s decimation, {peer.estimation:.2f} s QR; it is given filtered derivatives"
    )
    yield Row(work="TX40: log to ordinary least squares", seconds=ours, peer=peer.whole, note=note)
    physical = split_data(found, 0.7)
    one = PhysicallyConsistent(weights=(0.1,))
    yield Row(
        work="TX40: physically consistent, one weight, two solutions",
        seconds=seconds_of(
            lambda: fit_consistent(*physical, consistency_cones(model.parameters), model.pi, one)
        ),
        note="six bodies",
    )


def _list(numbers: object) -> str:
    return " ".join(f"{number:.3f}" for number in numbers)


def gantry_motion(model: Model, rng: np.random.Generator) -> Multisine:
    """Return a multisine of all actuators around the reference pose."""
    center = model.actuator_position(model.assembly.q)
    return random_multisine(
        center, np.array([0.09] * 3 + [0.055] * 2), rng, terms=5, lowest=0.15, highest=1.2
    )


def gantry_rows() -> Iterator[Row]:
    """Yield the rows of the Gantry-Tau: 21 unknowns from 40 s at 200 Hz."""
    model = Model(load(GANTRY), evaluator=Compiled(at_least=0))
    rng = np.random.default_rng(0)
    moved = gantry_motion(model, rng).sample(np.arange(0.0, 40.0, 1.0 / STREAM_RATE))
    start = model.actuators.track(moved.position).q
    forces = model.actuators.inverse_dynamics(
        moved.position, moved.velocity, moved.acceleration, start=start
    )
    sensors = Sensors(resolution=np.full(5, 1e-6), force_noise=np.array([4.0, 4.0, 4.0, 2.0, 2.0]))
    units = model.actuators.ports.position.units
    names, force_units = model.output_ports("actuators")
    log = measure(moved.time, moved.position, forces.force, names, units, force_units, sensors, rng)
    preparation = Preparation(cutoff=10.0, trim=60, decimation=5)

    def work(of: Model) -> None:
        data = regression_data(
            of, log, preparation, ties=parameter_ties(of, (*PAPER, "cart_mass", *FRICTION))
        )
        fit_regression(*split_data(data, 0.7), WeightedLeastSquares())

    note = "8 000 samples, 21 unknowns"
    yield Row(
        work="Gantry-Tau: log to base parameters",
        seconds=seconds_of(lambda: work(model)),
        asked=2.0,
        note=note,
    )
    fresh = seconds_of(lambda: work(Model(load(GANTRY), evaluator=Compiled(at_least=0))))
    yield Row(
        work="Gantry-Tau: machine file and log to base parameters",
        seconds=fresh,
        asked=2.0,
        note=note,
    )


def stream(count: int) -> dict[str, float | None]:
    """Measure a million samples of the Gantry-Tau: forward kinematics, regressor, incremental QR, weighted fit.

    Computing the motion and its forces, which a log would hold, is not counted.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        start = time.process_time()
        model = Model(load(GANTRY), evaluator=Compiled(at_least=0))
        unknowns = (*PAPER, "cart_mass", *FRICTION)
        ties = parameter_ties(model, unknowns)
        motion = gantry_motion(model, np.random.default_rng(0))
        simulated: list[float] = []
        parts = _parts(model, motion, count, ties, simulated)
        base, estimate = estimate_condensed(condense_parts(parts), WeightedLeastSquares())
        seconds = time.process_time() - start - sum(simulated)
    true = np.array([model.mechanism.parameters[name].value for name in unknowns])
    off = np.abs(estimate.values - base.regroup(true)) / estimate.standard_deviations
    return {
        "seconds": seconds,
        "megabytes": peak_megabytes(),
        "unknowns": base.rank,
        "largest_deviation": float(off.max()),
    }


def peak_megabytes() -> float | None:
    """Return the peak memory of this process alone, unlike getrusage; None where the system does not state it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def _parts(
    model: Model, motion: Multisine, count: int, ties: object, simulated: list[float]
) -> Iterator[RegressionData]:
    names, units = model.output_ports("actuators")
    rng, last = np.random.default_rng(1), None
    for first, after in pairwise((*range(0, count, CHUNK), count)):
        begun = time.process_time()
        moved: SampledMotion = motion.sample(np.arange(first, after) / STREAM_RATE)
        simulated.append(time.process_time() - begun)
        start = model.actuators.track(moved.position, last).q
        last = start[-1]
        regressor = model.actuators.regressor(
            moved.position, moved.velocity, moved.acceleration, start=start
        )
        begun = time.process_time()
        forces = regressor @ model.pi + rng.standard_normal(regressor.shape[:2])
        simulated.append(time.process_time() - begun)
        yield RegressionData(
            regressor=regressor,
            forces=forces,
            parameters=tuple(p.name for p in model.parameters),
            parameter_units=tuple(p.unit for p in model.parameters),
            outputs=names,
            output_units=units,
            ties=ties,
        )


def stream_rows(count: int) -> Iterator[Row]:
    """Yield the row of the stream, measured in a separate process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--stream", str(count)]
    for _ in range(2):  # the first fills the cache of machine code
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}
        )
    found = json.loads(done.stdout)
    yield Row(
        work=f"Gantry-Tau: {count:,} samples in parts of {CHUNK:,}",
        seconds=found["seconds"],
        asked=8.0,
        megabytes=found["megabytes"],
        note=f"{found['unknowns']} unknowns, at most {found['largest_deviation']:.1f} standard deviations off",
    )


def long_log_rows(count: int) -> Iterator[Row]:
    """Yield the row of the whole command on a five-bar's log, 1 kHz, Parquet, with least squares written by hand."""
    signals = closed_form.log_of(
        closed_form.five_bar(), np.random.default_rng(0), rate=1000.0, seconds=count / 1000.0
    )
    with tempfile.TemporaryDirectory() as folder:
        path = str(
            write_log(Path(folder) / "five_bar.parquet", build_log(signals.time, signals.channels))
        )
        peer, peer_megabytes = in_process(str(NUMPY_PEER), path, *map(str, LONG_LOG.values()))
        options = [text for name, value in LONG_LOG.items() for text in (f"--{name}", str(value))]
        start_command = "from tauloop.cli import main; main()"
        arguments = ("identify", str(closed_form.FIVE_BAR), path, *options)
        seconds, megabytes = in_process("-c", start_command, *arguments)
    note = f"reads, fits twice, prints; by hand {peer_megabytes:.0f} MB"
    work = f"five-bar: the whole command, {count:,} samples; peer: NumPy least squares"
    yield Row(work=work, seconds=seconds, asked=peer, megabytes=megabytes, peer=peer, note=note)


def seven_rows() -> Iterator[Row]:
    """Yield the rows of all standard parameters of a serial arm of seven bodies, near its file's."""
    model = Model(loads(seven_bodies()), evaluator=Compiled(at_least=0))
    states = random_states(model, 1000, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    position = model.actuator_position(states.q)
    velocity, acceleration = rng.normal(size=position.shape), 5.0 * rng.normal(size=position.shape)
    regressor = model.actuators.regressor(position, velocity, acceleration)
    names, units = model.output_ports("actuators")
    data = RegressionData(
        regressor=regressor,
        forces=regressor @ (model.pi * rng.uniform(0.8, 1.2))
        + 0.5 * rng.standard_normal(regressor.shape[:2]),
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=names,
        output_units=units,
    )
    for weights, asked, text in (
        ((0.01,), 1.0, "one weight"),
        (PhysicallyConsistent().weights, None, "nine weights"),
    ):
        options = PhysicallyConsistent(weights=weights)

        def work(options: PhysicallyConsistent = options) -> None:
            fit_consistent(
                *split_data(data, 0.7), consistency_cones(model.parameters), model.pi, options
            )

        note = f"{len(data.unknowns)} unknowns; fits and {len(weights)} + 1 convex problems"
        yield Row(
            work=f"seven bodies, matrix inequalities, {text}",
            seconds=seconds_of(work),
            asked=asked,
            note=note,
        )


def seven_bodies() -> str:
    """Return the machine file of an arm of seven revolute joints, alternately about z and y."""
    lines = ["format: tauloop-machine/1", "name: seven", "gravity: [0, 0, -9.81 m/s^2]", "bodies:"]
    for k in range(7):
        mass = 6.0 - 0.7 * k
        inertia = (
            f"{{xx: {0.02 * mass} kg m^2, yy: {0.025 * mass} kg m^2, zz: {0.01 * mass} kg m^2}}"
        )
        lines += [
            f"  link_{k}:",
            f"    mass: {mass} kg",
            f"    center: [{0.01 * k} m, 0.02 m, 0.1 m]",
        ]
        lines.append(f"    inertia: {inertia}")
    lines.append("joints:")
    for k in range(7):
        parent = "base" if k == 0 else f"{{on: link_{k - 1}, at: [0.03 m, 0, 0.25 m]}}"
        lines += [
            f"  joint_{k}:",
            "    type: revolute",
            f"    axis: {'zy'[k % 2]}",
            f"    parent: {parent}",
        ]
        lines += [f"    child: link_{k}", f"    reference: {10 + 5 * k} deg"]
        lines.append("    friction: {viscous: 0.5 N m s/rad, coulomb: 1 N m}")
    lines.append("actuators:")
    lines += [f"  motor_{k}: {{on: joint_{k}}}" for k in range(7)]
    independent = ", ".join(f"joint_{k}" for k in range(7))
    lines += [
        f"platform: {{body: link_6, independent: [{independent}]}}",
        "provenance: {status: chosen, source: benchmark}",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "tx40")
    parser.add_argument(
        "--samples", type=int, default=1_000_000, help="of the stream (default 1 000 000)"
    )
    parser.add_argument("--stream", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.stream is not None:
        print(json.dumps(stream(options.stream)))
        return 0
    say = Console(stderr=True)
    rows: list[Row] = []
    with threadpool_limits(limits=1, user_api="blas"):
        if options.data.is_dir():
            say.print("TX40")
            rows += arm_rows(options.data)
        else:
            say.print(f"no data at {options.data}: the rows of the arm are left out")
        for title, part in (
            ("Gantry-Tau", gantry_rows()),
            ("seven bodies", seven_rows()),
            ("stream", stream_rows(options.samples)),
            ("long log", long_log_rows(options.samples)),
        ):
            say.print(title)
            rows += part
    computer = {**asdict(processor()), "busy_processes": busy()}
    if options.json:
        print(
            json.dumps(
                {
                    "computer": computer,
                    "rows": [asdict(row) | {"ratio": row.ratio} for row in rows],
                },
                indent=2,
            )
        )
        return 0
    table = Table(
        title=f"Identification, processor seconds; {computer['name']}, load {computer['busy_processes']}"
    )
    for heading in ("work", "s", "asked", "MB", "peer s", "ratio", "note"):
        table.add_column(
            heading, justify="left" if heading in ("work", "note") else "right", overflow="fold"
        )
    for row in rows:
        numbers = (row.seconds, row.asked, row.megabytes, row.peer, row.ratio)
        table.add_row(
            row.work, *("" if number is None else f"{number:.3g}" for number in numbers), row.note
        )
    Console(width=160).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
