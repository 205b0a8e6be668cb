"""What reaches a plant is a command or is refused and counted: strays, runts, floods, and shared memory of others."""

from __future__ import annotations

import math
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from controlled import model
from plants import free_port, holding_forces, is_bound, run_beside, wait_until

import tauloop as tl
from tauloop.common.errors import EngineError, InputError
from tauloop.export.hil import PlantClient, PlantOptions
from tauloop.export.hil.client import HEAD, MAX_PACKET_DOUBLES, store_whole

pytestmark = [
    pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here"),
    pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="needs Linux's list of sockets"),
]
#: So long the plant waits for a command: longer than any stall of a shared machine.
TIMEOUT = 30.0
MACHINE = "delta"
FORCES = 3


def packet(sequence: float, *values: float, version: float = 1.0) -> bytes:
    return struct.pack(f"<{HEAD + len(values)}d", version, sequence, 0.0, 0.0, *values)


def lock_step(port: int, duration: float = 0.01) -> PlantOptions:
    return PlantOptions(udp=f"127.0.0.1:{port}", duration=duration, lockstep=True, timeout=TIMEOUT)


def answer_all(link: PlantClient, at_third: Callable[[], None]) -> None:
    """Answer every measurement; before the answer to the third one, do something."""
    while (measured := link.receive(TIMEOUT)) is not None and not measured.is_last:
        if measured.sequence == 3:
            at_third()
        link.send(measured.sequence, measured.time, np.zeros(FORCES))


#: Datagrams that are neither a command nor a hello, whatever their address.
MALFORMED = [
    b"",
    b"a",
    b"abc",
    bytes(8),
    bytes(56),
    packet(3.0, 0.0, 0.0, 0.0)[:-1],
    packet(3.0, 0.0, 0.0, 0.0) + b"xyz",
    packet(3.0, 0.0, 0.0),
    packet(3.0, 0.0, 0.0, 0.0, 0.0),
    packet(3.0, 0.0, 0.0, 0.0, version=2.0),
    packet(3.0, math.nan, 0.0, 0.0),
    packet(3.0, 0.0, math.inf, 0.0),
    packet(math.nan, 0.0, 0.0, 0.0),
    packet(-1.0)[:-8],
    packet(-1.0, 0.0),
    packet(-1.0, version=math.nan),
    packet(-1.0, math.nan, 0.0, 0.0),
    packet(3.0, *[0.0] * (MAX_PACKET_DOUBLES - HEAD)),
    packet(3.0, *[0.0] * (MAX_PACKET_DOUBLES - HEAD + 1)),
    bytes(60_000),
]
#: Whole packets of the right size whose number is not that of a measurement so far.
OUT_OF_RANGE = [packet(number, 0.0, 0.0, 0.0) for number in (-2.0, -0.5, 2.5, 4.0, 1e300)]


def test_strays_of_any_content_are_refused_before_the_hello_and_later_and_the_controller_goes_on() -> (
    None
):
    """One stray datagram took the plant for the whole run."""
    port = free_port()
    strays = [*MALFORMED, *OUT_OF_RANGE, packet(0.0, 0.0, 0.0, 0.0)]
    place = ("127.0.0.1", port)

    def control() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stray:

            def send_strays() -> None:
                for content in strays:
                    stray.sendto(content, place)

            wait_until(lambda: is_bound(port))
            send_strays()
            with PlantClient(port=port) as link:
                send_strays()
                answer_all(link, send_strays)

    run = run_beside(model(MACHINE), lock_step(port), control)
    counts = {key: run.counts[key] for key in ("answered", "missing", "refused", "strangers")}
    assert counts == {"answered": 10, "missing": 0, "refused": 0, "strangers": 3 * len(strays)}


def test_a_second_controller_is_refused_and_gets_no_answer() -> None:
    port = free_port()

    def control() -> None:
        with (
            PlantClient(port=port) as link,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as second,
        ):
            second.settimeout(0.2)
            second.connect(("127.0.0.1", port))

            def interfere() -> None:
                second.send(packet(-1.0))
                second.send(packet(3.0, 100.0, 100.0, 100.0))
                with pytest.raises(TimeoutError):
                    second.recv(8 * MAX_PACKET_DOUBLES)

            answer_all(link, interfere)

    run = run_beside(model(MACHINE), lock_step(port), control)
    assert run.counts["strangers"] == 2
    assert run.counts["answered"] == 10
    assert run.log is not None
    assert not run.log[:, 1 : 1 + FORCES].any(), "forces of the second one did not act"


def test_what_a_controller_sends_malformed_is_refused_and_the_command_behind_it_acts() -> None:
    """A datagram of fewer than eight bytes ended the reading of the queue, and a tail of some bytes was passed over."""
    port = free_port()

    def control() -> None:
        with PlantClient(port=port) as link:

            def send_malformed() -> None:
                assert link._socket is not None
                for content in (*MALFORMED, *OUT_OF_RANGE):
                    link._socket.send(content)

            answer_all(link, send_malformed)

    run = run_beside(model(MACHINE), lock_step(port), control)
    counts = {key: run.counts[key] for key in ("answered", "missing", "refused", "strangers")}
    assert counts == {
        "answered": 10,
        "missing": 0,
        "refused": len(MALFORMED) + len(OUT_OF_RANGE),
        "strangers": 0,
    }


def test_in_real_time_commands_behind_runts_are_heard() -> None:
    port = free_port()
    machine = model(MACHINE)
    options = PlantOptions(udp=f"127.0.0.1:{port}", rate=200.0, duration=0.5, watchdog=0)
    hold, sent = holding_forces(machine, options), 0

    def control() -> None:
        nonlocal sent
        with PlantClient(port=port) as link:
            while (measured := link.receive(TIMEOUT)) is not None and not measured.is_last:
                assert link._socket is not None
                link._socket.send(b"abc")
                link.send(measured.sequence, measured.time, hold)
                sent += 1

    run = run_beside(machine, options, control)
    assert run.counts["steps"] == options.steps
    assert run.counts["answered"] + run.counts["late"] >= 1
    assert 1 <= run.counts["refused"] <= sent


def test_a_plant_keeps_its_clock_while_it_is_flooded() -> None:
    """It reads a bounded number of datagrams in a period."""
    port = free_port()
    options = PlantOptions(udp=f"127.0.0.1:{port}", duration=0.2, without_controller=True)
    is_over = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stray:
            while not is_over.is_set():
                stray.sendto(b"abc", ("127.0.0.1", port))

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        run = tl.run_plant(model(MACHINE), options)
    finally:
        is_over.set()
        thread.join()
    assert run.counts["steps"] == options.steps
    assert run.counts["strangers"] > 0


def test_a_client_passes_over_what_is_not_a_measurement() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plant:
        plant.bind(("127.0.0.1", 0))

        def answer() -> None:
            _, client = plant.recvfrom(8 * MAX_PACKET_DOUBLES)
            malformed = (
                b"",
                b"abc",
                bytes(24),
                packet(math.nan, 1.0),
                packet(0.0, version=2.0),
                bytes(8 * MAX_PACKET_DOUBLES + 8),
            )
            for content in malformed:
                plant.sendto(content, client)
            plant.sendto(packet(7.0, 0.5), client)

        thread = threading.Thread(target=answer)
        thread.start()
        with PlantClient(port=plant.getsockname()[1]) as link:
            measured = link.receive()
        thread.join()
    assert measured is not None
    assert measured.sequence == 7
    assert measured.values.tolist() == [0.5]
    assert link.refused == 6


# Shared memory


@pytest.fixture
def name() -> Iterator[str]:
    """A name of shared memory that is free, and is removed where a plant left it."""
    chosen = f"tauloop-test-{os.getpid()}-{time.monotonic_ns()}"
    yield chosen
    Path(f"/dev/shm/{chosen}").unlink(missing_ok=True)


def in_memory(name: str, duration: float = 0.01) -> PlantOptions:
    return PlantOptions(shm=name, duration=duration, lockstep=True, timeout=TIMEOUT)


def put(link: PlantClient, size: int, content: bytes) -> None:
    """Write into the mailbox of commands as any program may; wait until the plant has had time to take it."""
    memory, box = link._map, 16 + 8 * MAX_PACKET_DOUBLES
    assert memory is not None
    (count,) = struct.unpack_from("<Q", memory, box)
    store_whole(memory, box, count + 1)
    store_whole(memory, box + 8, size)
    memory[box + 16 : box + 16 + len(content)] = content
    store_whole(memory, box, count + 2)
    time.sleep(0.1)


def test_mail_of_another_size_or_version_is_refused(name: str) -> None:
    malformed = [
        (0, b""),
        (3, bytes(24)),
        (MAX_PACKET_DOUBLES + 1, bytes(8 * MAX_PACKET_DOUBLES)),
        (2**63, b""),
        (HEAD + FORCES - 1, packet(3.0, 0.0, 0.0)),
        (HEAD + FORCES, packet(3.0, 0.0, 0.0, 0.0, version=2.0)),
        (HEAD + FORCES, packet(3.0, math.nan, 0.0, 0.0)),
        (HEAD + FORCES, packet(1e300, 0.0, 0.0, 0.0)),
    ]

    def control() -> None:
        with PlantClient(shm=name) as link:

            def put_all() -> None:
                for size, content in malformed:
                    put(link, size, content)

            answer_all(link, put_all)

    run = run_beside(model(MACHINE), in_memory(name), control)
    assert run.counts["answered"] == 10
    assert 1 <= run.counts["refused"] <= len(malformed)  # a mailbox keeps the newest packet alone


def test_a_controller_that_was_killed_while_it_wrote_does_not_stop_the_next_one(name: str) -> None:
    def control() -> None:
        with PlantClient(shm=name) as link:

            def break_off() -> None:
                assert link._map is not None
                (count,) = struct.unpack_from("<Q", link._map, 16 + 8 * MAX_PACKET_DOUBLES)
                struct.pack_into("<Q", link._map, 16 + 8 * MAX_PACKET_DOUBLES, count + 1)

            answer_all(link, break_off)

    assert run_beside(model(MACHINE), in_memory(name), control).counts["answered"] == 10


def test_a_live_plant_keeps_its_memory_and_removes_it_at_its_end(name: str) -> None:
    refusals: list[str] = []

    def control() -> None:
        with PlantClient(shm=name) as link:

            def try_to_take() -> None:
                with pytest.raises(InputError) as refused:
                    tl.run_plant(model(MACHINE), in_memory(name))
                refusals.append(str(refused.value))
                refusals.append(str(owner(name)))

            answer_all(link, try_to_take)

    run = run_beside(model(MACHINE), in_memory(name), control)
    assert run.counts["answered"] == 10
    message, process = refusals
    assert f"the plant with process id {process} holds it" in message
    assert "remedy: end the program that uses this name, or give another name" in message
    assert not Path(f"/dev/shm/{name}").exists()


def owner(name: str) -> int:
    """The process id that a plant wrote behind its mailboxes."""
    memory = Path(f"/dev/shm/{name}")
    if not memory.exists() or memory.stat().st_size < 2 * (16 + 8 * MAX_PACKET_DOUBLES) + 16:
        return 0
    return int(
        struct.unpack_from("<q", memory.read_bytes(), 2 * (16 + 8 * MAX_PACKET_DOUBLES) + 8)[0]
    )


def test_memory_that_a_killed_plant_left_is_taken_over(name: str) -> None:
    def kill() -> None:
        wait_until(lambda: owner(name))
        os.kill(owner(name), signal.SIGKILL)

    with pytest.raises(EngineError, match="by signal 9"):
        run_beside(model(MACHINE), in_memory(name), kill)
    assert Path(f"/dev/shm/{name}").exists()
    with pytest.raises(EngineError, match="no answer from"):
        PlantClient(shm=name, wait=0.1)

    def control() -> None:
        with PlantClient(shm=name) as link:
            answer_all(link, lambda: None)

    assert run_beside(model(MACHINE), in_memory(name), control).counts["answered"] == 10


@pytest.mark.parametrize("content", [b"ten bytes.", bytes(5000)])
def test_memory_of_another_program_is_left_alone(content: bytes, name: str) -> None:
    place = Path(f"/dev/shm/{name}")
    place.write_bytes(content)
    with pytest.raises(InputError, match="it is shared memory of another program"):
        tl.run_plant(model(MACHINE), in_memory(name))
    assert place.read_bytes() == content


@pytest.mark.parametrize(
    "bad", ["", ".", "..", "a/b", "../x", "/a", "a b", "a\n", "ä", "x" * 61, "x" * 100_000]
)
def test_names_that_memory_cannot_have_are_refused_by_name(bad: str) -> None:
    for refuse in (lambda: PlantOptions(shm=bad), lambda: PlantClient(shm=bad, wait=0.1)):
        with pytest.raises(InputError, match="is not a valid name of shared memory") as refused:
            refuse()
        assert len(str(refused.value)) < 300
