"""``python kills.py KILLS NAME...``: kill commands while they write; prints a JSON list of damaged files.

A command runs once, in a forked child of a process that has imported the slow modules. Whenever it
opens, renames or removes something in the folder of its outputs, it forks: the new process goes on,
and when that has ended, in whatever way, the content of the folder is restored and the old process
kills itself with SIGKILL, at once or a little later. So one run gives as many kills as there are
such moments. A file that was in the folder before must then be unchanged, or be the complete new
file.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import pickle
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import matplotlib.pyplot  # noqa: F401 (imported once for all children)
import numpy as np
import xarray  # noqa: F401

import tauloop
import tauloop_papers
from tauloop import Model, count_operations, load
from tauloop.cli import main
from tauloop.common.result import write_json
from tauloop.display.page_records import KEY, page_record

#: Folder of the commands' inputs, filled by `prepare`.
GIVEN = Path(tempfile.gettempdir()) / f"kills-given-{os.getpid()}"
#: A machine with drive lines.
QUICK_TASK = Path(__file__).parents[1] / "tests" / "design" / "quick_task.yaml"
TUBES = Path(__file__).parents[1] / "examples" / "elastic" / "gantry_tau.yaml"
RACKS = Path(__file__).parents[1] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
#: Commands by name: their words, with {out} for the folder that they write to and {given} for that
#: of their inputs.
COMMANDS = {
    "yaml": (
        "convert",
        "five_bar",
        "--format",
        "yaml",
        "--out",
        "{out}/five.png",
        "{out}/five.yaml",
    ),
    "new": (
        *("new", "five", "--template", "five-bar", "--out", "{out}/mine.yaml", "--replace"),
        *("--out", "{out}/mine.png"),
    ),
    "demo": ("demo", "five_bar", "--no-open", "--out", "{out}/demo.html"),
    "mjcf": ("convert", "five_bar", "--format", "mjcf", "{out}/five.xml"),
    "urdf": ("convert", "five_bar", "--format", "urdf", "{out}/five.urdf"),
    "sdf": ("convert", "five_bar", "--format", "sdf", "{out}/five.sdf"),
    "c": ("export", "c", "five_bar", "--out", "{out}"),
    "controller": ("export", "controller", "five_bar", "--out", "{out}"),
    "run": (
        *(
            "run",
            "plant",
            "five_bar",
            "--without-controller",
            "--duration",
            "0.02",
            "--udp",
            "127.0.0.1:47812",
        ),
        *("--out", "{out}/plant.csv"),
    ),
    "linuxcnc": ("export", "linuxcnc", "five_bar", "--out", "{out}"),
    "ros2": ("export", "ros2", "five_bar", "--out", "{out}"),
    "transmission": (
        *("export", "transmission", "four_bar", "--joints", "rocker_pin", "--out", "{out}"),
    ),
    "fmu": ("export", "fmu", "five_bar", "--no-binary", "--out", "{out}"),
    "motion": (
        "plan",
        "stroke",
        "five_bar",
        "--end",
        "x=0.02",
        "--out",
        "{out}/motion.csv",
        "--out",
        "{out}/motion.png",
    ),
    "fastest": (
        *(
            "plan",
            "path",
            "five_bar",
            "--end",
            "x=0.02",
            "--intervals",
            "40",
            "--out",
            "{out}/fastest.csv",
        ),
        *(
            "--out",
            "{out}/fastest.png",
            "--out",
            "{out}/fastest.c",
            "--out",
            "{out}/fastest.json",
        ),
    ),
    "transfer": (
        *(
            "plan",
            "transfer",
            "five_bar",
            "--end",
            "x=0.02",
            "--intervals",
            "8",
            "--out",
            "{out}/transfer.csv",
        ),
        *(
            "--out",
            "{out}/transfer.png",
            "--out",
            "{out}/transfer.c",
            "--out",
            "{out}/transfer.json",
        ),
    ),
    "cycle": (
        *(
            "plan",
            "cycle",
            "five_bar",
            "{given}/cycle.yaml",
            "--intervals",
            "24",
            "--out",
            "{out}/cycle.csv",
        ),
        *(
            "--out",
            "{out}/cycle.png",
            "--out",
            "{out}/cycle.c",
            "--out",
            "{out}/cycle.json",
        ),
    ),
    "show": ("show", "five_bar", "--out", "{out}/show.png"),
    "check": ("check", "five_bar", "--out", "{out}/check.png"),
    "parquet": ("plan", "stroke", "five_bar", "--end", "x=0.02", "--out", "{out}/motion.parquet"),
    "bag": ("plan", "stroke", "five_bar", "--end", "x=0.02", "--out", "{out}/motion.mcap"),
    "bag-folder": (
        "plan",
        "stroke",
        "five_bar",
        "--end",
        "x=0.02",
        "--out",
        "{out}/motion.rosbag2",
    ),
    "dynamics": (
        "dynamics",
        "five_bar",
        "--out",
        "{out}/forces.csv",
        "--out",
        "{out}/forces.png",
        "--out",
        "{out}/forces.json",
    ),
    "load cases": (
        "dynamics",
        "five_bar",
        "--motion",
        "{given}/motion.csv",
        "--joint-forces",
        "--out",
        "{out}/loads.cases.csv",
    ),
    "stiffness": (
        *("stiffness", str(TUBES), "--out", "{out}/stiffness.csv"),
        *("--out", "{out}/stiffness.png", "--out", "{out}/stiffness.json"),
    ),
    "accuracy compensate": (
        *("accuracy", "compensate", str(TUBES), "--wrench", "fx=100"),
        *("--out", "{out}/motors.csv", "--out", "{out}/motors.json"),
    ),
    "accuracy compensation-table": (
        *("accuracy", "compensation-table", str(TUBES), "--ranges", "x=-0.1:0.1"),
        *("--out", "{out}/table.csv", "--out", "{out}/table.json"),
    ),
    "export compensation": ("export", "compensation", str(TUBES), "--out", "{out}"),
    "vibration": (
        *("vibration", str(TUBES), "--count", "3", "--damping", "0.02"),
        *("--out", "{out}/modes.csv", "--out", "{out}/modes.png", "--out", "{out}/modes.json"),
        *("--out", "{out}/modes.html"),
    ),
    "motors": (
        "design",
        "motors",
        "five_bar",
        "{given}/motion.csv",
        "--out",
        "{out}/motors.png",
        "--out",
        "{out}/motors.json",
    ),
    "simulate": (
        "simulate",
        "five_bar",
        "--duration",
        "0.05",
        "--out",
        "{out}/sim.csv",
        "--out",
        "{out}/sim.png",
        "--out",
        "{out}/sim.json",
    ),
    "control": (
        "control",
        "follow",
        "five_bar",
        "--end",
        "x=0.02",
        "--out",
        "{out}/run.csv",
        "--out",
        "{out}/run.png",
        "--out",
        "{out}/run.json",
    ),
    "detect-hit": (
        *(
            "control",
            "collision",
            "five_bar",
            "--end",
            "x=0.02",
            "--duration",
            "0.1",
            "--wrench",
            "fx=40",
            "--error-samples",
            "4",
        ),
        *("--out", "{out}/hit.png", "--out", "{out}/hit.json"),
    ),
    "workspace": (
        "workspace",
        "five_bar",
        "--out",
        "{out}/map.nc",
        "--out",
        "{out}/map.png",
        "--out",
        "{out}/map.json",
    ),
    "modes": (
        "modes",
        "five_bar",
        "--out",
        "{out}/modes.png",
        "--out",
        "{out}/modes.json",
    ),
    "view": ("view", "five_bar", "--out", "{out}/view.png"),
    "film": ("view", "five_bar", "--motion", "{given}/log.csv", "--out", "{out}/film.html"),
    "equations": (
        *("model", "equations", "five_bar", "--out", "{out}/five.txt"),
        *("--out", "{out}/five.tex", "--out", "{out}/five.py"),
    ),
    "reduce": ("model", "reduce", "delta", "--out", "{out}/reduced.yaml"),
    "drive": (
        "drive",
        "step",
        "single_motor_axis",
        "--duration",
        "0.2",
        "--out",
        "{out}/drive.png",
        "--out",
        "{out}/drive.json",
        "--out",
        "{out}/drive.csv",
    ),
    "tune": (
        *(
            "drive",
            "tune",
            "dual_motor_axis",
            "--bounds",
            "kp=100:300,ti=0.5:2",
            "--scales",
            "rise_time=1.7",
        ),
        *("--budget", "4", "--duration", "6", "--out", "{out}/tune.png"),
    ),
    "fit-plant": (
        *(
            "drive",
            "fit",
            "dual_motor_axis",
            "{given}/steps.yaml",
            "--bounds",
            "cart_viscous=10:100",
        ),
        *("--generations", "0", "--out", "{out}/plant.png"),
    ),
    "link-parameters": (
        *(
            "model",
            "link-parameters",
            "{given}/pendulum.yaml",
            "{given}/identified.json",
            "--out",
            "{out}/links.png",
        ),
    ),
    "compliance": (
        *("accuracy", "compliance", str(TUBES), "500 N", "--out", "{out}/compliance.csv"),
        *("--out", "{out}/compliance.png", "--out", "{out}/compliance.json"),
    ),
    "thermal": (
        *("accuracy", "thermal", str(TUBES), "--out", "{out}/heat.csv"),
        *("--out", "{out}/heat.png", "--out", "{out}/heat.json"),
    ),
    "proof": (
        *("design", "certify", "delta", "--ranges", "x=-0.05:0.05,y=-0.05:0.05"),
        *("--proof", "{out}/proof.json"),
    ),
    "synthesis": (
        *("design", "synthesize", str(QUICK_TASK), "--resume", "--out", "{out}/designs"),
        *("--out", "{out}/designs.png", "--out", "{out}/designs.json"),
    ),
    "control-c": ("drive", "step", "single_motor_axis", "--duration", "0.2", "--out", "{out}"),
    "tolerances": (
        *("accuracy", "tolerances", "five_bar", "--tolerances", "*=0.1mm", "--samples", "5"),
        *("--out", "{out}/tolerances.json"),
    ),
    "grades": (
        *("design", "tolerances", "delta", "--tolerances", "*_length=0.1mm", "--samples", "5"),
        *("--limits", "z=0.3mm", "--out", "{out}/grades.json"),
    ),
    "play": (
        "accuracy",
        "backlash",
        "gantry_tau_3dof",
        "--out",
        "{out}/play.png",
        "--out",
        "{out}/play.nc",
    ),
    "poses": (
        *(
            "plan",
            "poses",
            "linear_delta",
            "--count",
            "6",
            "--candidates",
            "40",
            "--parameters",
            "tower*.end_stop",
        ),
        *(
            "--out",
            "{out}/poses.csv",
            "--out",
            "{out}/poses.png",
            "--out",
            "{out}/poses.json",
        ),
    ),
    "excite": (
        *("plan", "excitation", "five_bar", "--random", "4", "--starts", "0", "--harmonics", "2"),
        *(
            "--out",
            "{out}/excitation.csv",
            "--out",
            "{out}/excitation.png",
            "--out",
            "{out}/excitation.json",
        ),
    ),
    "identify": (
        *("identify", "five_bar", "{given}/log.csv"),
        *(
            "--out",
            "{out}/fit.json",
            "--out",
            "{out}/fit.png",
            "--consistent",
            "--out",
            "{out}/fit.yaml",
        ),
    ),
    "describe": (*("log", "describe", "five_bar", "{given}/log.csv", "--out", "{out}/log.yaml"),),
    "stream": (
        *("run", "stream", "five_bar", "--motion", "{given}/motion.csv"),
        *("--out", "{out}/motion.mcap"),
    ),
    "recording": (
        *("run", "stream", "five_bar", "--motion", "{given}/motion.csv"),
        *("--out", "{out}/motion.rrd"),
    ),
    "drive_stiffness": (
        *("log", "drive-stiffness", "{given}/geared_arm.yaml", "{given}/geared_arm.csv"),
        *("--out", "{out}/drives.json"),
    ),
    "forces": (
        *("log", "forces", "five_bar", "{given}/log.csv", "--out", "{out}/forces.csv"),
        *("--out", "{out}/forces.png", "--out", "{out}/forces.json"),
    ),
    "track": (
        *(
            "log",
            "track",
            "five_bar",
            "{given}/log.csv",
            "--out",
            "{out}/track.csv",
            "{given}/five_bar.json",
        ),
        *("--out", "{out}/track.png", "--out", "{out}/track.json"),
    ),
    "track-c": (
        "log",
        "track",
        "five_bar",
        "{given}/log.csv",
        "--out",
        "{out}",
        "{given}/five_bar.json",
    ),
    "calibrate": (
        *(
            "calibrate",
            "five_bar",
            "{given}/poses.csv",
            "--parameters",
            "*length*",
            "--noise",
            "0.01 mm",
        ),
        *("--out", "{out}/fit.json", "--out", "{out}/fit.png", "--out", "{out}/fit.yaml"),
        *("--out", "{out}/geometry.hal", "--out", "{out}/joints.ini"),
    ),
    "ballbar": (
        *(
            "accuracy",
            "ballbar",
            str(RACKS),
            "--radius",
            "0.05",
            "--speed",
            "0.6",
            "--only",
            "rigid",
        ),
        *("--out", "{out}/circle.png", "--out", "{out}/circle.json"),
    ),
    "study": (
        *("study", "run", "{given}/study.yaml", "--resume", "--out", "{given}/parts"),
        *("--out", "{out}/study.json"),
    ),
    "fold": (
        *("identify", "five_bar", "{given}/log.csv", "--resume", "--folded", "{given}/folded"),
        *("--errors", "independent", "--out", "{out}/all.npz", "--out", "{out}/fold.json"),
    ),
    "reproduce": (
        "paper",
        "reproduce",
        "gantry-tau-calibration",
        "--out",
        "{out}",
        "--out",
        "{out}/report.json",
    ),
    "verify": ("verify", "five_bar", "--states", "2", "--out", "{out}/verified.json"),
    "cost": ("model", "cost", "five_bar", "--out", "{out}/counts.json"),
    "report": ("report", "{given}/counts.json", "--out", "{out}/report.html"),
    "subtract": (
        *("log", "subtract", "{given}/log.csv", "{given}/log.csv"),
        *("--out", "{out}/structure.csv", "--out", "{out}/structure.png"),
    ),
}
#: Measured steps of a drive line, a machine, and what was identified from it: m c and I + m c^2.
STEPS = """
format: tauloop-steps/1
steps: {slow: {step: 100 mm, set: {kp: 150, ti: 1.8}, measured: {rise_time: 660 ms}}}
"""
STATIONS = """
format: tauloop-cycle/1
stations: [{name: left, at: {x: -20 mm}, dwell: 10 ms, payload: 0.1 kg}, {name: right, at: {x: 20 mm}}]
"""
STUDY = """
format: tauloop-study/1
machine: five_bar
samples: 3
vary: {tip_mass: {normal: 1 g}}
compute: {result: dynamics, options: {position: y=0.42}}
keep: {force: force/0/0}
"""
#: An arm whose motor turns it through a gear and an elastic drive.
GEARED_ARM = """
format: tauloop-machine/1
name: geared_arm
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm: {mass: 3 kg, center: [0.2 m, 0, 0], inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
joints: {hinge: {type: revolute, axis: z, parent: base, child: arm}}
actuators: {motor: {on: hinge, ratio: 4, force: 50 N m, stiffness: 90 N m/rad}}
platform: {body: arm, independent: [hinge]}
"""
PENDULUM = """
format: tauloop-machine/1
name: pendulum
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {m: 2 kg, c: 0.3 m, I: 0.05 kg m^2}
bodies: {bar: {mass: m, center: [c, 0, 0], inertia: {xx: 1e-3 kg m^2, yy: I, zz: I}}}
joints: {pin: {type: revolute, axis: y, parent: base, child: bar}}
actuators: {motor: {on: pin}}
platform: {body: bar, independent: [pin]}
"""
IDENTIFIED = {
    "base_parameters": [
        {"representative": "bar.mcx", "value": 0.6, "terms": []},
        {"representative": "bar.Iyy", "value": 0.23, "terms": []},
    ],
    "covariance": [[1e-6, 0.0], [0.0, 1e-6]],
}
#: Events of the interpreter that touch files.
WATCHED = ("open", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate")
#: Folder with the state of a search, which `--resume` continues only with the same task.
SEARCH_FOLDER = "/search/"
#: A kill comes at most this long after the chosen event, s: the time of writing a figure.
AFTER = 0.01
#: Maximum number of nested processes, and minimum number of kills asked of one run.
MAX_PROCESSES, MIN_KILLS = 40, 5


def import_all() -> None:
    """Import all of Tauloop and its papers, once for all children."""
    for package in (tauloop, tauloop_papers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def prepare(folder: Path) -> None:
    """Write a log of a stroke, and measured poses: the inputs of some commands."""
    for name, content in _inputs().items():
        (folder / name).write_bytes(content)


@functools.cache
def _inputs() -> dict[str, bytes]:
    """Return the inputs of some commands by the names of their files; they are computed once."""
    with tempfile.TemporaryDirectory(prefix="inputs-") as folder:
        _write_inputs(Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _write_inputs(folder: Path) -> None:
    model = Model(load("five_bar"))
    t = np.linspace(0.0, 1.0, 201)[:, None]
    q0 = model.platform.ports.at(model.assembly.q)
    rates, way = 2 * np.pi * np.array([[1.0, 2.0]]), np.array([[0.05, 0.03]])
    position, speed = q0 + way * np.sin(rates * t), rates * way * np.cos(rates * t)
    acceleration = -(rates**2) * way * np.sin(rates * t)
    forces = model.platform.inverse_dynamics(position, speed, acceleration)
    motors = [actuator.name for actuator in model.mechanism.actuators]
    angles = model.actuator_position(forces.state.q)
    _write(
        folder / "log.csv",
        [
            "time [s]",
            *(f"position.{m} [rad]" for m in motors),
            *(f"force.{m} [N m]" for m in motors),
        ],
        np.hstack([t, angles, forces.force]),
    )
    columns = [
        f"{quantity}.{name} [{unit}]"
        for quantity, port in model.platform.ports.motion.items()
        for name, unit in zip(port.columns, port.units, strict=True)
    ]
    _write(
        folder / "motion.csv",
        ["time [s]", *columns],
        np.hstack([t, position, speed, acceleration]),
    )
    _write(
        folder / "poses.csv",
        [*(f"encoder.{m} [rad]" for m in motors), *(f"measured.{axis} [m]" for axis in "xyz")],
        np.hstack([angles, position, 0 * t])[::9],
    )
    _prepare_geared_arm(folder)
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    (folder / "cycle.yaml").write_text(STATIONS, encoding="utf-8")
    (folder / "steps.yaml").write_text(STEPS, encoding="utf-8")
    (folder / "pendulum.yaml").write_text(PENDULUM, encoding="utf-8")
    write_json(folder / "identified.json", IDENTIFIED)
    write_json(folder / "five_bar.json", _saved_fit(model))
    counts = page_record(count_operations(model))
    write_json(folder / "counts.json", {KEY: counts.as_dict()})


def _prepare_geared_arm(folder: Path) -> None:
    """Write an arm with an elastic drive, and its log in closed form: motor, joint and torque."""
    (folder / "geared_arm.yaml").write_text(GEARED_ARM, encoding="utf-8")
    ratio, stiffness, rotor, inertia, weight = 4.0, 80.0, 0.01, 0.22, 3.0 * 9.81 * 0.2
    t = np.arange(0.0, 3.0, 1e-3)
    rates, amplitudes = 2.0 * np.pi * np.array([0.7, 1.9, 3.3]), np.array([0.1, 0.05, 0.02])
    q = np.sin(np.outer(t, rates)) @ amplitudes
    acceleration = -np.sin(np.outer(t, rates)) @ (amplitudes * rates**2)
    drive = (inertia * acceleration + weight * np.cos(q)) / ratio
    motor = ratio * q + drive / stiffness
    torque = drive + rotor * np.gradient(np.gradient(motor, t), t)
    heads = ["time [s]", "position.motor [rad]", "position.hinge [rad]", "force.motor [N m]"]
    _write(folder / "geared_arm.csv", heads, np.column_stack([t, motor, q, torque]))


def _saved_fit(model: Model) -> dict[str, Any]:
    """Return what `identify` would have written had it estimated dry friction only."""
    names = ("shoulder_1.coulomb", "shoulder_2.coulomb")
    values = {p.name: model.mechanism.value(p.expression) for p in model.parameters}
    rows = [{"representative": name, "value": values[name], "terms": []} for name in names]
    return {
        "base_parameters": rows,
        "covariance": [[1e-4, 0.0], [0.0, 1e-4]],
        "regressor_parameters": values,
        "outputs": [
            {"name": actuator.name, "noise": 0.1} for actuator in model.mechanism.actuators
        ],
    }


def _write(path: Path, header: list[str], rows: np.ndarray) -> None:
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")


def run(words: Sequence[str], out: Path, *, errors: Path | None = None) -> tuple[int, int]:
    """Run a command in a child that writes to `out`; return its wait status and the number of events.

    Its standard error goes to the file `errors`.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_in_child(
            [word.format(out=out, given=GIVEN) for word in words],
            out,
            lambda: os.write(writer, b"."),
            errors,
        )
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        events = len(stream.read())
    return os.waitpid(child, 0)[1], events


def _run_in_child(
    words: list[str], out: Path, happened: Callable[[], object], errors: Path | None
) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if errors is not None:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    busy = False

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal busy
        if event not in WATCHED or busy:
            return
        if any(
            str(out) in os.fsdecode(part) for part in arguments if isinstance(part, str | bytes)
        ):
            busy = True  # files that this function itself opens do not count
            happened()
            busy = False

    sys.addaudithook(watch)
    sys.argv = ["tauloop", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        busy = True
        os._exit(code)


class _Killer:
    """Forks and kills the processes of one run at each event."""

    def __init__(self, out: Path, notes: Path, most: int, rng: np.random.Generator) -> None:
        self._out, self._notes, self._left, self._rng = out, notes, most, rng

    def __call__(self) -> None:
        """Fork, and let the new process go on; then kill this one, at once or a little later."""
        if not self._left:
            return
        self._left -= 1
        after = 0.0 if self._left % 2 else float(self._rng.uniform(0, AFTER))
        before = content_of(self._out)
        child = os.fork()
        if child == 0:
            return
        self.judge(os.waitpid(child, 0)[1])
        _lay(self._out, before)
        self._left = 0
        if after == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Thread(
            target=lambda: (time.sleep(after), os.kill(os.getpid(), signal.SIGKILL))
        ).start()

    def judge(self, status: int) -> None:
        """Record what an ended process left in the folder; the first one to end was not killed."""
        with self._notes.open("ab") as stream:
            pickle.dump((status, content_of(self._out)), stream)


def is_whole(file: str, content: bytes, size: int) -> bool:
    """Return whether a file is complete: of the size in another run, or a whole JSON document.

    Documents with times that were measured have another size in each run.
    """
    if len(content) == size:
        return True
    with suppress(ValueError):
        return Path(file).suffix == ".json" and bool(json.loads(content))
    return False


def content_of(out: Path) -> dict[str, bytes]:
    """Return the files in a folder and in those below it, by their names from there."""
    return {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }


def old_content(file: str) -> bytes:
    """Return the content of a file before a command replaces it.

    As a CMakeLists.txt it names the package of its folder, so that it may be replaced.
    """
    package = Path(file).parent.name or "five_bar_description"
    return f"what stood here before\nproject({package})\n".encode()


def _lay(out: Path, content: dict[str, bytes]) -> None:
    """Make a folder contain exactly these files."""
    for path in sorted(out.rglob("*"), reverse=True):  # content before its folder
        if path.is_dir():
            with suppress(OSError):  # it is not empty
                path.rmdir()
        elif str(path.relative_to(out)) not in content:
            path.unlink()
    for name, data in content.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)


def harmed(name: str, kills: int, seed: int) -> list[str]:
    """Kill a command at least `kills` times; return one line for each file that was neither old nor new."""
    rng, words, lines, dead = np.random.default_rng(seed), COMMANDS[name], [], 0
    old = _names(words)
    while dead < kills and not lines:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            out, notes, errors = (Path(folder) / part for part in ("out", "notes", "said"))
            out.mkdir()
            _lay(out, {file: old_content(file) for file in old})
            killer = _Killer(out, notes, min(MAX_PROCESSES, max(kills - dead, MIN_KILLS)), rng)
            child = os.fork()
            if child == 0:
                _run_in_child(
                    [word.format(out=out, given=GIVEN) for word in words], out, killer, errors
                )
            killer.judge(os.waitpid(child, 0)[1])
            message = errors.read_text(errors="replace")[-1000:]
            (status, new), *ends = list(_notes(notes))
            written = {
                file: content for file, content in new.items() if content != old_content(file)
            }
        if (
            os.waitstatus_to_exitcode(status) not in (0, 1)
            or written.keys() < set(old)
            or not written
        ):
            code = os.waitstatus_to_exitcode(status)
            return [f"{name}: ended with {code} and wrote {sorted(written)}: {message}"]
        killed = [content for end, content in ends if os.WIFSIGNALED(end)]
        if not killed:
            return [f"{name}: no run was killed"]
        dead += len(killed)
        lines = [
            f"{name}: {file} has {len(left.get(file, b''))} bytes, neither the old nor the new file"
            for left in killed
            for file in old
            if left.get(file) != old_content(file)
            and not is_whole(file, left.get(file, b""), len(written[file]))
        ]
        for folder in folders_of(words):
            complete = _sizes_in(folder, written)
            lines += [
                f"{name}: {folder} is incomplete"
                for left in killed
                if _sizes_in(folder, left) not in ([], complete)
            ]
    return lines


def _sizes_in(folder: str, content: dict[str, bytes]) -> list[int]:
    return sorted(len(data) for file, data in content.items() if file.startswith(folder))


def _names(words: Sequence[str]) -> list[str]:
    """Return the files that a command writes: those that its options name, or else those that a run writes."""
    outputs = [word for word in words if word.startswith("{out}")]
    if all(Path(word).suffix for word in outputs):
        files = [word.removeprefix("{out}/") for word in outputs]
        return [file for file in files if f"{file}/" not in folders_of(words)]
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        run(words, Path(folder))
        return [file for file in content_of(Path(folder)) if SEARCH_FOLDER not in file]


def folders_of(words: Sequence[str]) -> list[str]:
    """Return the folders that a command must write completely or not at all."""
    return [f"{word.removeprefix('{out}/')}/" for word in words if word.endswith(".rosbag2")]


def _notes(path: Path) -> Iterator[tuple[int, dict[str, bytes]]]:
    with path.open("rb") as stream:
        while stream.peek(1):
            yield pickle.load(stream)


if __name__ == "__main__":
    kills, names = int(sys.argv[1]), sys.argv[2:] or list(COMMANDS)
    import_all()
    GIVEN.mkdir()
    try:
        prepare(GIVEN)
        print(
            json.dumps(
                [line for i, name in enumerate(names) for line in harmed(name, kills, i)], indent=1
            )
        )
    finally:
        shutil.rmtree(GIVEN)
