"""Plants for hardware in the loop: over a real link those of a simulation, with packets lost, late and repeated."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from controlled import model
from plants import (
    compiled_loop,
    free_port,
    interrupt_plants,
    reference_table,
    run_beside,
    simulated,
)

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.export.controller import FLAGS, ControllerOptions
from tauloop.export.hil import PlantClient, PlantOptions
from tauloop.export.hil.client import MAX_PACKET_DOUBLES, MEMORY_VERSION

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
night = pytest.mark.nightly
#: So long the plant waits for a command: longer than any stall of a shared machine.
TIMEOUT = 3.0
#: What brakes let an actuator creep, rad or m.
CREEP = 1e-4
#: So long the system does not run a plant, s.
STALL = 0.15


@pytest.mark.parametrize(
    ("name", "frequency", "seconds", "shm", "law"),
    [
        ("delta", 4000.0, 0.1, False, "computed-torque"),
        pytest.param("delta", 4000.0, 1.0, True, "computed-torque", marks=night),
        pytest.param("racks", 1000.0, 2.0, False, "drive", marks=night),
        pytest.param("rcid", 1000.0, 600.0, False, "computed-torque", marks=night),
        pytest.param("delta", 4000.0, 600.0, False, "computed-torque", marks=night),
    ],
)
def test_lock_step_is_the_simulation_to_the_last_bit(
    name: str, frequency: float, seconds: float, shm: bool, law: str, tmp_path: Path
) -> None:
    """The exported controller in another process; commands and measurements that are lost, late and repeated.

    The control of drive lines has its motors' torques for commands, and reads their encoders.
    """
    machine, port = model(name), free_port()
    where = {"shm": f"tauloop-test-{port}"} if shm else {"udp": f"127.0.0.1:{port}"}
    plant = PlantOptions(rate=frequency, duration=seconds, lockstep=True, timeout=TIMEOUT, **where)  # type: ignore[arg-type]
    options = ControllerOptions(rate=frequency, bandwidth=60.0, controller=law)
    loop, rows = (
        compiled_loop(machine, options, tmp_path),
        reference_table(machine, tmp_path / "motion.csv", frequency),
    )
    faults = {"skip": {50}, "lose": {90}, "late": {130}, "twice": {170, 171}}
    script = ",".join(f"{kind}:{k}" for kind, samples in faults.items() for k in sorted(samples))
    host, number = plant.address
    printed: list[str] = []

    def control() -> None:
        words = [str(loop), host, str(number), str(tmp_path / "motion.csv"), script]
        printed.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    run = run_beside(machine, plant, control)
    counts = {
        key: run.counts[key] for key in ("steps", "missing", "late", "lost", "repeated", "refused")
    }
    expected = {
        "steps": plant.steps,
        "missing": 3,
        "late": 1,
        "lost": 2,
        "repeated": 2,
        "refused": 0,
    }
    # a mailbox keeps the newest command alone: the late one is seen only if it is fetched at once
    if shm:
        assert counts["late"] + counts["lost"] == 3
        counts |= {key: expected[key] for key in ("late", "lost", "repeated")}
    assert counts == expected
    answer = json.loads(printed[0])
    assert answer["samples"] == plant.steps - 1
    assert answer["flags"] == FLAGS["LATE"], "it has seen that a measurement is missing"
    digest, end = simulated(machine, plant, options, rows, faults)
    assert run.digest == digest
    assert run.log is not None
    assert np.isfinite(run.log).all()
    state = machine.forward_kinematics(
        end[: len(machine.mechanism.actuators)], start=machine.assembly.q
    )
    wanted = rows[plant.steps % len(rows)][: len(machine.platform.ports.position.columns)]
    assert np.abs(machine.platform.ports.at(state.q) - wanted).max() < 1e-3, (
        "it follows its reference"
    )


def test_the_plant_is_the_simulation_of_the_command() -> None:
    """Oracle: `tauloop control` with the same generated code, whose loop round the plant is another."""
    machine, frequency = model("delta"), 1000.0
    stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
    run = tl.follow_path_with_exported_code(
        machine, tl.ControlOptions(stroke=stroke, controller=("pd",))
    ).runs["pd"]
    plant = tl.export.hil.CompiledPlant(machine, PlantOptions(rate=frequency))
    for k, force in enumerate(run.force[:-1]):
        plant.step(force)
        state = machine.platform.kinematics(run.position[k + 1], start=machine.assembly.q)
        assert np.abs(plant.output[:3] - machine.actuator_position(state.q[None])[0]).max() < 1e-12


@pytest.mark.parametrize("name", ["delta", pytest.param("racks", marks=night)])
def test_brakes_hold_a_machine_that_nobody_controls(name: str) -> None:
    options = PlantOptions(
        udp=f"127.0.0.1:{free_port()}", duration=0.3, without_controller=True, watchdog=5
    )
    run = tl.run_plant(model(name), options)
    assert run.counts["missing"] == run.counts["lost"] == run.counts["steps"]
    assert run.counts["brakings"] == 1
    assert run.log is not None
    at = next(k for k, column in enumerate(run.names, start=1) if column.endswith(".position"))
    positions = run.log[:, at : at + 3]
    assert np.abs(positions - positions[0]).max() < CREEP
    assert run.times["computing"]["count"] > 0
    assert run.times["empty_loop"]["count"] > 0
    assert set(run.allowed) == {"memory locked", "SCHED_FIFO"}
    assert run.to_xarray()[run.names[0]].attrs["units"] == "N m"


@pytest.mark.parametrize(("stall", "counted"), [("hold", "skipped"), ("catch-up", "caught_up")])
def test_after_a_stall_time_stood_still_or_is_made_up_for_and_both_are_counted(
    stall: str, counted: str
) -> None:
    """A process that the system does not run for a while."""
    port = free_port()
    options = PlantOptions(
        udp=f"127.0.0.1:{port}", duration=1.5, without_controller=True, stall=stall
    )

    def interrupt() -> None:
        with PlantClient(port=port) as link:
            assert link.receive() is not None  # the loop runs
            interrupt_plants(STALL)

    began = time.monotonic()
    run = run_beside(model("delta"), options, interrupt)
    counts, period = run.counts, options.period
    assert counts["steps"] == options.steps
    assert counts["stalls"] >= 1
    assert counts[counted] * period > STALL - 0.01
    assert counts["skipped" if counted == "caught_up" else "caught_up"] == 0
    assert time.monotonic() - began > options.steps * period + (counts["skipped"] - 1) * period
    assert run.times["lateness"]["largest_s"] > STALL - 0.01
    if stall == "catch-up":
        assert run.times["lateness"]["count"] <= options.steps - counts["caught_up"]


def test_what_is_no_command_is_refused_and_strangers_are_not_heard() -> None:
    machine, port = model("delta"), free_port()
    plant = PlantOptions(udp=f"127.0.0.1:{port}", duration=0.01, lockstep=True, timeout=TIMEOUT)

    def control() -> None:
        with (
            PlantClient(port=port) as link,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
        ):
            while (measured := link.receive()) is not None and not measured.is_last:
                if measured.sequence == 3:
                    stranger.sendto(bytes(56), ("127.0.0.1", port))
                    link.send(3, 0.0, np.full(3, np.nan))
                    link.send(3, 0.0, np.zeros(2))
                    link.send(9, 0.0, np.zeros(3))
                link.send(measured.sequence, measured.time, np.zeros(3))

    run = run_beside(machine, plant, control)
    counts = {key: run.counts[key] for key in ("missing", "refused", "strangers")}
    assert counts == {"missing": 0, "refused": 3, "strangers": 1}


def test_a_command_that_an_exception_cut_short_does_not_damage_the_next() -> None:
    """In shared memory a count is odd while a row changes: a plant would take a half of it, or none any more."""
    box = 16 + 8 * MAX_PACKET_DOUBLES
    path = Path(f"/dev/shm/tauloop-test-{os.getpid()}")
    measured = struct.pack("<QQ5d", 2, 5, 1.0, 0.0, 0.0, 0.0, 0.5)
    path.write_bytes(
        measured.ljust(2 * box, b"\0") + struct.pack("<Qq", MEMORY_VERSION, os.getpid())
    )
    try:
        with (
            PlantClient(shm=path.name) as link,
            path.open("r+b") as file,
            mmap.mmap(file.fileno(), 2 * box) as memory,
        ):
            for count, after in ((4, 6), (7, 10)):
                struct.pack_into("<Q", memory, box, count)
                link.send(1, 0.25, np.array([3.0]))
                assert struct.unpack_from("<QQ5d", memory, box) == (
                    after,
                    5,
                    1.0,
                    1.0,
                    0.25,
                    0.0,
                    3.0,
                )
    finally:
        path.unlink()


def test_a_motion_without_a_way_on_ends_the_run_and_is_said() -> None:
    machine, port = model("delta"), free_port()
    plant = PlantOptions(udp=f"127.0.0.1:{port}", duration=2.0, lockstep=True, timeout=TIMEOUT)

    def control() -> None:
        with PlantClient(port=port) as link:
            while (measured := link.receive()) is not None and not measured.is_last:
                link.send(measured.sequence, measured.time, np.array([300.0, -300.0, 0.0]))

    run = run_beside(machine, plant, control)
    assert run.counts["steps"] < plant.steps
    assert run.failure
    assert run.status.value == "doubtful"
    assert run.log is not None
    assert np.isfinite(run.log).all()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"udp": "0.0.0.0:9000"}, "can be reached from other computers"),
        ({"udp": "localhost"}, "is not an address with a port"),
        ({"udp": "127.0.0.1:0"}, "is not an address with a port"),
        ({"shm": "a/b"}, "is not a valid name"),
        ({"without_controller": True}, "needs a duration"),
        ({"rate": 1e9}, "rate: is 1e"),
    ],
)
def test_places_that_are_none_are_refused(words: dict[str, object], what: str) -> None:
    with pytest.raises(InputError, match=what):
        PlantOptions(**words)  # type: ignore[arg-type]


def test_a_place_that_is_taken_is_refused() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(InputError, match="cannot run"):
            tl.run_plant(model("delta"), PlantOptions(udp=place, duration=0.01))
