"""`tauloop run plant` and signals: its plant ends with it, and what it recorded is written."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from plants import free_port, is_bound, wait_until

from tauloop.export.hil import PlantClient

pytestmark = [
    pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here"),
    pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="needs Linux's list of sockets"),
]
MACHINE = "delta"

#: What the command waits for: a controller, or a command in lock-step with a long timeout, or the
#: next period.
WAITS = {
    "hello": [],
    "lock-step": ["--lockstep", "--timeout", "100000"],
    "real time": ["--rate", "0.01"],
}


ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT)
#: Each signal and each wait once by day: commands take seconds to start.
BY_DAY = {
    (signal.SIGTERM, "lock-step"),
    (signal.SIGKILL, "lock-step"),
    (signal.SIGHUP, "hello"),
    (signal.SIGINT, "real time"),
}


@pytest.mark.parametrize(
    ("ending", "wait"),
    [
        pytest.param(ending, wait, marks=() if (ending, wait) in BY_DAY else pytest.mark.nightly)
        for ending, wait in itertools.product(ENDINGS, WAITS)
    ],
)
def test_a_plant_ends_with_its_command(ending: signal.Signals, wait: str, tmp_path: Path) -> None:
    """It went on for ever, and kept its port; temporary files of it stayed."""
    port, temporary, out = free_port(), tmp_path / "temporary", tmp_path / "run.csv"
    temporary.mkdir()
    words = [
        sys.executable,
        "-m",
        "tauloop",
        "run",
        "plant",
        MACHINE,
        *WAITS[wait],
        "--udp",
        f"127.0.0.1:{port}",
    ]
    with subprocess.Popen(
        [*words, "--duration", "1000", "--out", str(out)],
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        try:
            wait_until(lambda: is_bound(port) or command.poll() is not None)
            recorded = 0
            if wait != "hello":
                with PlantClient(port=port) as link:
                    if wait == "lock-step":
                        recorded = answer(link, 5)
                    command.send_signal(ending)
            else:
                command.send_signal(ending)
            _, complaint = command.communicate(timeout=60)
        finally:
            command.kill()
    wait_until(lambda: not is_bound(port))
    assert list(temporary.iterdir()) == []
    if ending is signal.SIGKILL:
        assert command.returncode == -signal.SIGKILL
        return
    if wait == "lock-step":
        assert command.returncode == 0, complaint
        assert len(out.read_text().splitlines()) == 1 + recorded
    # the signal came before the command was ready to wait for its plant
    elif command.returncode != 128 + ending:
        assert command.returncode == 2, complaint
        assert "before its first step, so there is nothing to write" in complaint


def answer(link: PlantClient, count: int) -> int:
    """Answer some measurements; the number of steps that the plant has made by then."""
    while (measured := link.receive(60.0)) is not None and measured.sequence < count:
        link.send(measured.sequence, measured.time, np.zeros(3))
    assert measured is not None
    return count


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_shared_memory_goes_with_the_command(ending: signal.Signals) -> None:
    name = f"tauloop-test-{os.getpid()}-{ending}"
    place = Path(f"/dev/shm/{name}")
    words = [sys.executable, "-m", "tauloop", "run", "plant", MACHINE, "--shm", name, "--lockstep"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as command:
        try:
            with PlantClient(shm=name, wait=60.0):
                command.send_signal(ending)
                command.wait(60)
        finally:
            command.kill()
    wait_until(lambda: not place.exists())


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    """As `nohup` starts a command."""
    port = free_port()
    words = [
        "nohup",
        sys.executable,
        "-m",
        "tauloop",
        "run",
        "plant",
        MACHINE,
        "--udp",
        f"127.0.0.1:{port}",
        "--lockstep",
    ]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing) as command:
        try:
            with PlantClient(port=port, wait=60.0) as link:
                command.send_signal(signal.SIGHUP)
                assert answer(link, 3) == 3
                command.send_signal(signal.SIGTERM)
                assert command.wait(60) == 0
        finally:
            command.kill()
