"""Plants in processes of their own, controllers in others, and the same in this process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

import tauloop as tl
from tauloop.compiler.c.calling.compiler import compiler_path
from tauloop.export.controller import CompiledController, ControllerOptions
from tauloop.export.controller.export import indices_in_measurement
from tauloop.export.hil import CompiledPlant, PlantOptions, PlantRun, run_plant


def run_beside(
    model: tl.Model, options: PlantOptions, controller: Callable[[], object]
) -> PlantRun:
    """A plant's run, with a controller beside it."""
    results: list[PlantRun] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            results.append(run_plant(model, options))
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        controller()
    finally:
        thread.join()
    if failures:
        raise failures[0]
    return results[0]


def interrupt_plants(seconds: float) -> None:
    """Stop the plant that this process has started, as a system does that runs others, and let it go on."""
    children = Path(f"/proc/{os.getpid()}/task")
    plants: list[int] = []
    until = time.monotonic() + 60.0
    while not plants and time.monotonic() < until:
        time.sleep(0.02)
        with suppress(OSError):  # threads and compilers come and go
            ids = [
                int(word)
                for task in children.iterdir()
                for word in (task / "children").read_text().split()
            ]
            plants = [k for k in ids if Path(f"/proc/{k}/comm").read_text().strip() == "plant"]
    time.sleep(0.1)
    for action, pause in ((signal.SIGSTOP, seconds), (signal.SIGCONT, 0.0)):
        for plant in plants:
            os.kill(plant, action)
        time.sleep(pause)


def reference_table(
    model: tl.Model, path: Path, frequency: float, size: float = 0.01
) -> np.ndarray:
    """A swing of the platform along its first length in two seconds, as `tauloop plan stroke` writes it (N, n)."""
    ports, n = model.platform.ports, len(model.platform.ports.velocity.columns)
    free = next(i for i, unit in enumerate(ports.velocity.units) if unit == "m/s")
    time = np.arange(round(2 * frequency)) / frequency
    rows, w = np.zeros((len(time), len(ports.position.columns) + 2 * n)), np.pi
    rows[:, : len(ports.position.columns)] = ports.at(model.assembly.q)
    rows[:, free] += size * np.sin(w * time) ** 2
    rows[:, len(ports.position.columns) + free] = size * w * np.sin(2 * w * time)
    rows[:, len(ports.position.columns) + n + free] = 2 * size * w**2 * np.cos(2 * w * time)
    lines = [
        ",".join(map(repr, [t, *row])) for t, row in zip(time.tolist(), rows.tolist(), strict=True)
    ]
    path.write_text("time [s],...\n" + "\n".join(lines) + "\n")
    return rows


def compiled_loop(model: tl.Model, options: ControllerOptions, folder: Path) -> Path:
    """The exported controller as a program that drives a plant."""
    export = tl.export_controller(model, options, folder=folder)
    compiler = compiler_path()
    assert compiler is not None
    sources = [str(folder / f"{export.name}{end}") for end in (".c", "_loop.c")]
    words = [compiler, "-std=c99", "-O1", "-Wall", "-Wextra", "-ffp-contract=off", *sources]
    subprocess.run([*words, "-o", str(folder / "loop"), "-lm", "-lrt"], check=True)
    return folder / "loop"


def simulated(
    model: tl.Model,
    plant: PlantOptions,
    options: ControllerOptions,
    rows: np.ndarray,
    faults: dict[str, set[int]],
) -> tuple[str, np.ndarray]:
    """The digest of plant and controller in this process, with packets lost and late as scripted; and the end."""
    machine, controller = CompiledPlant(model, plant), CompiledController(model, options)
    hold, n_u = machine.code.hold()[3], len(model.mechanism.actuators)
    positions, speeds = indices_in_measurement(controller.equations)
    before = machine.output[speeds]
    row = np.zeros(2 + 2 * n_u + rows.shape[1])
    output = machine.output.copy()
    for k in range(plant.steps):
        if k not in faults.get("skip", ()):
            read, elapsed = output[speeds], k * plant.period - row[0]
            row[0], row[1] = k * plant.period, k + 1.0
            row[2 : 2 + n_u] = output[positions]
            row[2 + n_u : 2 + 2 * n_u] = read
            if options.controller == "drive":
                row[2 + n_u : 2 + 2 * n_u] = (read - before) / elapsed if k else 0.0
            before = read
            row[2 + 2 * n_u :] = rows[k % len(rows)]
            force = controller.step(row).force
            if k not in faults.get("lose", ()) and k not in faults.get("late", ()):
                hold = force
        output = machine.step(hold)
    return machine.digest, output


def free_port() -> int:
    """A port on this computer that nothing listens on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds; it fails after some time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition does not come true"
        time.sleep(0.01)


def is_bound(port: int) -> bool:
    """Whether some process listens on a UDP port, by Linux's list of sockets."""
    rows = Path("/proc/net/udp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") for row in rows)


def holding_forces(model: tl.Model, options: PlantOptions) -> np.ndarray:
    """Forces that hold a plant at its start (n,)."""
    return CompiledPlant(model, options).code.hold()[3]
