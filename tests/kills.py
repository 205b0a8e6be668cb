"""``python kills.py KILLS NAME...``: kill commands while they write; prints a JSON list of the files that were harmed.

A command runs in a forked child of a process that has imported what is slow. The child kills itself with SIGKILL at
one of the moments at which it opens, renames or removes something in the folder of its outputs, or a little after.
Whatever stood there before must then still stand there, or the whole new file.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot  # noqa: F401 (imported once for all children)
import numpy as np
import xarray  # noqa: F401

import tauloop
from tauloop import Model, load
from tauloop.cli.app import main

#: Folder of the commands' inputs, filled by `prepare`.
GIVEN = Path(tempfile.gettempdir()) / f"kills-given-{os.getpid()}"
#: Commands by name: their words, with {out} for the folder that they write to and {given} for that of their inputs.
COMMANDS = {
    "yaml": ("convert", "five_bar", "--to", "yaml", "--out", "{out}/five.yaml"),
    "mjcf": ("convert", "five_bar", "--to", "mjcf", "--out", "{out}/five.xml"),
    "urdf": ("convert", "five_bar", "--to", "urdf", "--out", "{out}/five.urdf"),
    "c": ("export", "c", "five_bar", "--out", "{out}"),
    "motion": ("motion", "five_bar", "--to", "x=0.02", "--out", "{out}/motion.csv"),
    "parquet": ("motion", "five_bar", "--to", "x=0.02", "--out", "{out}/motion.parquet"),
    "dynamics": ("dynamics", "five_bar", "--out", "{out}/forces.csv"),
    "simulate": ("simulate", "five_bar", "--duration", "0.05", "--out", "{out}/sim.csv", "--figure", "{out}/sim.png"),
    "control": ("control", "delta", "--to", "x=0.05,z=-0.45", "--out", "{out}/run.csv", "--figure", "{out}/run.png"),
    "workspace": ("workspace", "five_bar", "--out", "{out}/map.nc", "--figure", "{out}/map.png"),
    "modes": ("modes", "five_bar", "--figure", "{out}/modes.png"),
    "view": ("view", "five_bar", "--png", "{out}/view.png"),
    "reduce": ("reduce", "spidermill", "--out", "{out}/reduced.yaml"),
    "drive": ("drive", "single_motor_axis", "--duration", "0.2", "--figure", "{out}/drive.png"),
    "play": ("play", "gantry_tau_3dof", "--figure", "{out}/play.png", "--out", "{out}/play.nc"),
    "poses": (
        *("poses", "linear_delta", "--count", "6", "--candidates", "40", "--parameters", "tower*.end_stop"),
        *("--out", "{out}/poses.csv", "--figure", "{out}/poses.png"),
    ),
    "excite": (
        *("excite", "five_bar", "--random", "4", "--starts", "0", "--harmonics", "2"),
        *("--out", "{out}/excitation.csv", "--figure", "{out}/excitation.png"),
    ),
    "identify": (
        *("identify", "five_bar", "{given}/log.csv"),
        *("--json-file", "{out}/fit.json", "--figure", "{out}/fit.png"),
    ),
    "calibrate": (
        *("calibrate", "five_bar", "{given}/poses.csv", "--parameters", "*length*", "--noise", "0.01 mm"),
        *("--json-file", "{out}/fit.json", "--figure", "{out}/fit.png", "--out", "{out}/fit.yaml"),
    ),
    "subtract": ("subtract", "{given}/log.csv", "{given}/log.csv", "--out", "{out}/structure.csv"),
}
#: Events of the interpreter that touch files.
WATCHED = ("open", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate")
OLD = b"what stood here before\n"
#: A kill comes up to so long after the chosen event, s: the time of writing a figure.
AFTER = 0.01


def prepare(given: Path) -> None:
    """A log of a stroke, and measured poses: what some commands start from."""
    model = Model(load("five_bar"))
    t = np.linspace(0.0, 1.0, 201)[:, None]
    q0 = model.platform.entry.at(model.assembly.q)
    rates, way = 2 * np.pi * np.array([[1.0, 2.0]]), np.array([[0.05, 0.03]])
    position, speed = q0 + way * np.sin(rates * t), rates * way * np.cos(rates * t)
    forces = model.platform.inverse_dynamics(position, speed, -(rates**2) * way * np.sin(rates * t))
    motors = [actuator.name for actuator in model.mechanism.actuators]
    angles = model.actuator_position(forces.state.q)
    _write(
        given / "log.csv",
        ["time [s]", *(f"position.{m} [rad]" for m in motors), *(f"force.{m} [N m]" for m in motors)],
        np.hstack([t, angles, forces.force]),
    )
    _write(
        given / "poses.csv",
        [*(f"encoder.{m} [rad]" for m in motors), *(f"measured.{axis} [m]" for axis in "xyz")],
        np.hstack([angles, position, 0 * t])[::9],
    )


def _write(path: Path, header: list[str], rows: np.ndarray) -> None:
    np.savetxt(path, rows, delimiter=",", header=",".join(header), comments="")


def run(
    words: Sequence[str], out: Path, *, kill_at: int | None = None, after: float = 0.0, said: Path | None = None
) -> tuple[int, int]:
    """Run a command in a child that writes to `out`: its wait status, and how many events it counted.

    What it says as an error goes to the file `said`.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_in_child([word.format(out=out, given=GIVEN) for word in words], out, writer, kill_at, after, said)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        events = len(stream.read())
    return os.waitpid(child, 0)[1], events


def _run_in_child(
    words: list[str], out: Path, writer: int, kill_at: int | None, after: float, said: Path | None
) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    if said is not None:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    count = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event not in WATCHED or not any(str(out) in os.fsdecode(a) for a in arguments if isinstance(a, str | bytes)):
            return
        count += 1
        os.write(writer, b".")
        if count == kill_at and after == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        elif count == kill_at:
            threading.Thread(target=lambda: (time.sleep(after), os.kill(os.getpid(), signal.SIGKILL))).start()

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
        os._exit(code)


def harmed(name: str, kills: int, seed: int) -> list[str]:
    """Kill a command so many times; one line for each file that was neither the old nor the new one."""
    rng = np.random.default_rng(seed)
    words = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        status, events, new = _undisturbed(words, Path(folder))
        if os.waitstatus_to_exitcode(status) not in (0, 1) or not new or not events:
            return [f"{name}: ended with {os.waitstatus_to_exitcode(status)}, {len(new)} files, {events} events"]
    lines, dead = [], 0
    for kill in range(kills):
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            out = Path(folder)
            for file in new:
                (out / file).write_bytes(OLD)
            after = 0.0 if kill % 2 else float(rng.uniform(0, AFTER))
            status, _ = run(words, out, kill_at=int(rng.integers(1, events + 1)), after=after)
            dead += os.WIFSIGNALED(status)
            for file, content in new.items():
                found = (out / file).read_bytes() if (out / file).exists() else b""
                if found not in (OLD, content) and not _is_as_whole(words, file, found):
                    lines.append(f"{name}: {file} has {len(found)} bytes, neither the old nor the new file")
    return lines if dead else [*lines, f"{name}: no run was killed"]


def _is_as_whole(words: Sequence[str], file: str, found: bytes) -> bool:
    """Whether a file that differs from one run is as long as another's: some hold what changes from run to run."""
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        return len(_undisturbed(words, Path(folder))[2][file]) == len(found)


def _undisturbed(words: Sequence[str], folder: Path) -> tuple[int, int, dict[str, bytes]]:
    out = folder / "out"
    out.mkdir()
    status, events = run(words, out)
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    for path in out.iterdir():
        path.unlink()
    out.rmdir()
    return status, events, written


if __name__ == "__main__":
    kills, names = int(sys.argv[1]), sys.argv[2:] or list(COMMANDS)
    for module in pkgutil.walk_packages(tauloop.__path__, "tauloop."):
        if module.name != "tauloop.__main__":
            importlib.import_module(module.name)  # once for all children
    GIVEN.mkdir()
    try:
        prepare(GIVEN)
        print(json.dumps([line for i, name in enumerate(names) for line in harmed(name, kills, i)], indent=1))
    finally:
        shutil.rmtree(GIVEN)
