"""A plant in a process of its own, until its time is over or somebody interrupts it, and what it counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import TIME, Variable, time_axis
from tauloop.common.errors import EngineError, InputError
from tauloop.common.keywords import keywords
from tauloop.common.plain import OMITTED, json_keys, stated
from tauloop.common.processes import available_memory, lifeline
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.hil.options import PlantOptions
from tauloop.hil.plant import PlantCode
from tauloop.mechanism.omissions import omission_diagnostics
from tauloop.model.model import MachineSource

#: Share of a period that the computation of a step may take, 999 times out of 1000.
COMPUTING = 0.1
#: Steps below which nothing can be said of 999 in 1000.
JUDGED = 1000
#: Copies of what is recorded that memory holds at a time: while the plant hands it over, and while
#: it is written.
COPIES = 2
#: Exit code of a plant whose place is refused, as in `plant.c`.
PLACE_REFUSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRun(Result):
    """A plant's run: counts, times, and what it measured.

    Attributes:
        machine: its name.
        options: how it ran.
        counts: steps; commands that came in time, were missing, late, lost, repeated, refused or
            from strangers; brakings; stalls, and periods that were skipped or caught up.
        times: by kind (lateness of waking, and that of an empty loop beside it; computing of a step
            in time of the processor, and by the clock, which goes on while others have it; exchange
            of packets): count, median, 99th and 99.9th percentile, largest, s.
        allowed: whether memory could be locked and SCHED_FIFO had: "yes", or why not.
        digest: of all forces and outputs, 16 hexadecimal digits.
        failure: why there was no way on; empty where there was.
        names, units: of the columns of `log`.
        log: time, forces and what was measured at each step (N, n); None where no duration was set.
    """

    machine: str
    options: PlantOptions
    counts: Mapping[str, int]
    times: Mapping[str, Mapping[str, float]]
    allowed: Mapping[str, str]
    digest: str
    failure: str = field(metadata=json_keys(summary=stated))
    names: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    log: np.ndarray | None = field(repr=False, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Forces and what was measured, over time."""
        rows = np.empty((0, 1 + len(self.names))) if self.log is None else self.log
        yield time_axis(rows[:, 0])
        for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True), start=1):
            yield Variable(name=name, values=rows[:, k], over=TIME, unit=unit)


@keywords(PlantOptions)
def run_plant(
    machine: MachineSource, options: PlantOptions | None = None, *, cache: Path | None = None
) -> PlantRun:
    """Run a machine, with its drive lines where it has them, as a plant that a controller in another process drives.

    The loop is machine code in a process of its own. It begins at rest at the reference pose with
    the hello of a controller, and ends after the duration, where the motion has no way on, or when
    this process is interrupted; then it returns what there is by then. The plant ends with this
    process, however that ends.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: clock, link, and what is done when commands stay away.
        cache: of compiled code; the user's own without it.

    Raises:
        InputError: an address that is taken or not one of this computer, shared memory of another
            plant that runs, or a duration whose samples do not fit into memory.
        EngineError: there is no compiler, or it fails; the plant was killed.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.hil.PlantOptions(udp="127.0.0.1:47811", alone=True, duration=0.02)
        >>> run = tl.run_plant(tl.load("five_bar"), options)
        >>> run.counts["steps"]
        20
    """
    options = options or PlantOptions()
    code = PlantCode(machine, options)
    columns = 1 + len(code.inputs) + len(code.outputs)
    if options.steps:
        _require_room(options, columns)
    binary = code.program(cache)
    if not options.steps:
        with _started(binary, options, None) as process:
            return _result(code, json.loads(_printed(process, options)), None)
    # a file without a name, which does not stay either
    with tempfile.TemporaryFile() as record:
        with _started(binary, options, record.fileno()) as process:
            printed = _printed(process, options)
        record.seek(0)
        return _result(code, json.loads(printed), np.fromfile(record).reshape(-1, columns))


def _require_room(options: PlantOptions, columns: int) -> None:
    """Refuse a recording that does not fit into memory, or into the folder of temporary files.

    Raises:
        InputError: the number of samples, the memory that they need, and how many fit.
    """
    size, samples = 8 * columns, options.steps
    room = min(available_memory() / COPIES, shutil.disk_usage(tempfile.gettempdir()).free)
    if samples * size <= room:
        return
    most = int(room // size)
    what = (
        f"{_approximate(samples)} samples of {columns} numbers need {_approximate(COPIES * samples * size)} bytes of "
        f"memory and {_approximate(samples * size)} bytes of temporary files; {most} samples fit"
    )
    longest = f"{most * options.period:.3g} s"
    remedy = f"give at most {longest} at this rate, or a lower rate; a run without a duration records nothing"
    raise InputError.of("duration", what, remedy)


def _approximate(number: int) -> str:
    """Return a whole number of any size in three digits."""
    return f"{float(min(number, int(sys.float_info.max))):.3g}"


@contextmanager
def _started(
    binary: bytes, options: PlantOptions, record: int | None
) -> Iterator[subprocess.Popen[str]]:
    """Within it a plant's process runs; it ends with this process, however that ends.

    Args:
        binary: the program.
        options: clock, link, and what is done when commands stay away.
        record: number of an open file for what is recorded.
    """
    host, port = options.place
    mode = "lock" if options.lockstep else {"hold": "hold", "catch-up": "catch"}[options.stall]
    numbers = (
        port,
        repr(options.period),
        repr(float(options.steps)),
        mode,
        options.watchdog,
        repr(options.timeout),
    )
    ends = (-1 if record is None else record, int(options.alone), os.getpid())
    # a program that runs needs no name: nothing of it stays, however the processes end
    with tempfile.TemporaryDirectory(prefix="tauloop-plant-") as folder:
        program = Path(folder) / "plant"
        program.write_bytes(binary)
        program.chmod(0o700)
        process = subprocess.Popen(
            [str(program), host, *map(str, (*numbers, *ends))],
            stdin=lifeline(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=() if record is None else (record,),
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def _interrupts_end(process: subprocess.Popen[str]) -> Iterator[None]:
    """Within it the first Ctrl-C asks a process to end, and the next one kills it; only where this thread hears it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_asked = False

    def end(*_: object) -> None:
        nonlocal was_asked
        process.send_signal(signal.SIGKILL if was_asked else signal.SIGTERM)
        was_asked = True

    former = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _printed(process: subprocess.Popen[str], options: PlantOptions) -> str:
    """Return what a plant prints at its end.

    Raises:
        InputError: its place is taken, or no place of this computer.
        EngineError: it cannot run, or was killed.
    """
    with _interrupts_end(process):
        printed, complaint = process.communicate()
    if process.returncode == 0 and printed:
        return printed
    reason = complaint.replace("listening", "").strip() or _reason(process.returncode)
    place = options.shm or options.udp
    if process.returncode == PLACE_REFUSED:
        other = "name" if options.shm else "port"
        remedy = f"end what holds it, or give another {other}"
        raise InputError.of(place, f"the plant cannot run: {reason}", remedy)
    raise EngineError.of(
        place, f"the plant ended: {reason}", "see that memory and disk have room, and try again"
    )


def _reason(code: int) -> str:
    """Return why a process without words ended."""
    if code == -signal.SIGALRM:
        return "a step took longer than the time that it had to end"
    return f"by signal {-code}" if code < 0 else f"with status {code}"


def _result(code: PlantCode, figures: Mapping[str, Any], log: np.ndarray | None) -> PlantRun:
    options = code.options
    columns = (*code.inputs, *code.outputs)
    kinds = ("lateness", "empty_loop", "computing", "computing_by_the_clock", "exchange")
    others = (*kinds, "locked", "fifo", "digest", "failure")
    computing, is_judged = (
        figures["computing"],
        not options.lockstep and figures["computing"]["count"] >= JUDGED,
    )
    return PlantRun(
        diagnostics=(
            *omission_diagnostics(code.model.mechanism),
            diagnostic(
                "computation of a step over the period, 999 times of 1000",
                computing["p999_s"] * options.frequency if is_judged else None,
                at_most=COMPUTING,
                advice="a lower rate, a larger tolerance, or a computer with more room",
            ),
            diagnostic(
                "steps that have no solution",
                bool(figures["failure"]),
                at_most=0.0,
                advice=f"{figures['failure']}: see what the controller asked for",
            ),
        ),
        provenance=provenance(options={}, inputs={"machine": code.model.mechanism.name}),
        machine=code.model.mechanism.name,
        options=options,
        counts={key: int(value) for key, value in figures.items() if key not in others},
        times={kind: figures[kind] for kind in kinds},
        allowed={"memory locked": figures["locked"], "SCHED_FIFO": figures["fifo"]},
        digest=figures["digest"],
        failure=figures["failure"],
        names=tuple(variable.name for variable in columns),
        units=tuple(variable.unit for variable in columns),
        log=log,
    )
