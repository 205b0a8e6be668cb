"""A plant's program: it starts only with room for what it records, and ends when its parent does."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled_machines import compilers
from controlled import model
from plants import free_port

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.export.hil import PlantOptions
from tauloop.export.hil.plant import PlantCode

pytestmark = [
    pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here"),
    pytest.mark.skipif(not Path("/proc/net/udp").exists(), reason="needs Linux's list of sockets"),
]
MACHINE = "delta"

# Room for what is recorded


@pytest.mark.parametrize(
    ("duration", "frequency"),
    [(1e300, 1000.0), (1e6, 1e6), (1e308, 1e6), (2.0**61, 1.0), (2.0**64 / 8, 1.0), (1e9, 1000.0)],
)
def test_more_samples_than_memory_are_refused_before_the_plant_starts(
    duration: float, frequency: float
) -> None:
    """The product of samples and their size overflowed, and rows were written outside the heap."""
    options = PlantOptions(
        duration=duration, rate=frequency, without_controller=True, udp=f"127.0.0.1:{free_port()}"
    )
    with pytest.raises(InputError) as refused:
        tl.run_plant(model(MACHINE), options)
    (problem,) = refused.value.problems
    samples = min(duration * frequency, sys.float_info.max)
    assert problem.where == "duration"
    assert problem.what.startswith(f"{samples:.3g} samples of ")
    assert "bytes of memory" in problem.what
    assert "a run without a duration records nothing" in problem.remedy


@pytest.mark.parametrize("steps", ["1e300", "1.8e308", "9e18", "4e17", "inf", "nan"])
def test_the_program_itself_refuses_sizes_that_overflow(steps: str, tmp_path: Path) -> None:
    with start_program(tmp_path, steps=steps, record=1) as process:
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 4
    assert "no memory" in complaint


@pytest.mark.parametrize("field", ["duration", "rate", "timeout"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, 0.0])
def test_numbers_that_are_not_finite_and_positive_are_refused(field: str, number: float) -> None:
    with pytest.raises(InputError, match=f"{field}: is "):
        PlantOptions(**{field: number})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words", [{"rate": 1e-320}, {"rate": 1e-4}, {"substeps": 10**9}, {"watchdog": -1}]
)
def test_periods_and_steps_that_no_controller_has_are_refused(words: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(words))):
        PlantOptions(**words)  # type: ignore[arg-type]


def test_the_shortest_duration_is_one_step() -> None:
    assert PlantOptions(duration=5e-324).steps == 1


# Ends


@contextlib.contextmanager
def start_program(
    folder: Path, *, steps: str = "0", record: int = -1, parent: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A plant's program without the command: in lock-step, with a pipe on its standard input."""
    program = folder / "plant"
    program.write_bytes(PlantCode(model(MACHINE), PlantOptions(lockstep=True)).program())
    program.chmod(0o700)
    numbers = (
        "0.001",
        steps,
        "lock",
        "20",
        "1000.0",
        record,
        0,
        os.getpid() if parent is None else parent,
    )
    words = [str(program), "127.0.0.1", str(free_port()), *map(str, numbers)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def test_a_plant_ends_when_its_pipe_closes(tmp_path: Path) -> None:
    """The path of systems without a signal at the parent's end."""
    with start_program(tmp_path) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        assert process.stderr.readline() == "listening\n"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_plant_whose_parent_has_ended_before_it_could_ask_for_a_signal_does_not_start(
    tmp_path: Path,
) -> None:
    with start_program(tmp_path, parent=2**22 + 1) as process:
        assert process.wait(60) == 4
