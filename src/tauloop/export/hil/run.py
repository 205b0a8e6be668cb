"""Run a plant in its own process, and report counts of steps and timing."""

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
from contextlib import ExitStack, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.datasets import TIME_DIMENSIONS, Variable, time_axis
from tauloop.common.errors import EngineError, InputError
from tauloop.common.execution.processes import available_memory, lifeline
from tauloop.common.files import temporary_files_reported, temporary_folder
from tauloop.common.keywords import keywords
from tauloop.common.plain import OMITTED, json_keys, none_if_empty
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.export.hil.options import PlantOptions
from tauloop.export.hil.plant import PlantCode
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model.model import MachineSource

#: Limit of the 99.9th percentile of a step's computing time, as a fraction of the period.
MAX_COMPUTING_FRACTION = 0.1
#: Minimum number of steps for which this percentile is assessed.
MIN_ASSESSED_STEPS = 1000
#: Number of copies of the recording in memory: one when it is read back, one when it is written.
COPIES = 2
#: Exit code of a plant whose address is rejected, as in `plant.c`.
ADDRESS_REFUSED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRun(Result):
    """The run of a plant: counts, times and measurements.

    Attributes:
        machine: name of the machine.
        options: options of the run.
        counts: numbers of steps; of commands that were in time, missing, late, lost, repeated,
            rejected or from unknown senders; of brake applications; of stalls; and of periods that
            were skipped or caught up.
        times: count, median, 99th and 99.9th percentile, and largest value, s, by kind. Kinds are
            the wake-up latency, the latency of an empty loop, the computation of a step in processor
            time and in elapsed (wall-clock) time, and the exchange of packets.
        allowed: whether memory could be locked and SCHED_FIFO could be used: "yes", or the reason
            why not.
        digest: hash of all forces and outputs, 16 hexadecimal digits.
        failure: why the motion could not continue; empty without a failure.
        names, units: names and units of the columns of `log`.
        log: time, forces and measurements at each step (N, n); None without a duration.
    """

    machine: str
    options: PlantOptions
    counts: Mapping[str, int]
    times: Mapping[str, Mapping[str, float]]
    allowed: Mapping[str, str]
    digest: str
    failure: str = field(metadata=json_keys(summary=none_if_empty))
    names: tuple[str, ...] = field(metadata=OMITTED)
    units: tuple[str, ...] = field(metadata=OMITTED)
    log: np.ndarray | None = field(repr=False, metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield forces and measurements over time."""
        rows = np.empty((0, 1 + len(self.names))) if self.log is None else self.log
        yield time_axis(rows[:, 0])
        for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True), start=1):
            yield Variable(name=name, values=rows[:, k], over=TIME_DIMENSIONS, unit=unit)


@keywords(PlantOptions)
def run_plant(
    machine: MachineSource, options: PlantOptions | None = None, *, cache: Path | None = None
) -> PlantRun:
    """Run a machine with its drive lines as a plant for a controller in another process.

    The loop is machine code in its own process. It begins at rest at the reference pose with the
    first message of a controller. It ends after the duration, if the motion cannot continue, or
    when this process is interrupted; the results up to then are returned. The plant always ends
    with this process.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: clock, communication channel, and behavior without commands.
        cache: cache of compiled code; the user's cache by default.

    Returns:
        The run: counts of steps and commands, times, and the forces and measurements (`log`).

    Raises:
        InputError: the address is in use or does not belong to this computer, the shared memory
            belongs to another running plant, or the samples do not fit into memory.
        EngineError: no C compiler was found, compilation fails, or the plant was killed.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.export.hil.PlantOptions(udp="127.0.0.1:47811", without_controller=True, duration=0.02)
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
        with _plant_process(binary, options, None) as process:
            return _result(code, json.loads(_output(process, options)), None)
    # a file without a name, which is also removed if this process is killed
    with ExitStack() as stack:
        with temporary_files_reported():
            record = stack.enter_context(tempfile.TemporaryFile())
        with _plant_process(binary, options, record.fileno()) as process:
            output = _output(process, options)
        record.seek(0)
        return _result(code, json.loads(output), np.fromfile(record).reshape(-1, columns))


def _require_room(options: PlantOptions, columns: int) -> None:
    """Reject a recording that does not fit into memory or into the folder for temporary files.

    Raises:
        InputError: the recording does not fit. The message states how many samples fit.
    """
    size, samples = 8 * columns, options.steps
    with temporary_files_reported():
        free = shutil.disk_usage(tempfile.gettempdir()).free
    available = min(available_memory() / COPIES, free)
    if samples * size <= available:
        return
    max_samples = int(available // size)
    memory, files = _approximate(COPIES * samples * size), _approximate(samples * size)
    what = (
        f"{_approximate(samples)} samples of {columns} numbers need {memory} bytes of memory and "
        f"{files} bytes of temporary files; {max_samples} samples fit"
    )
    longest = f"{max_samples * options.period:.3g} s"
    remedy = (
        f"use at most {longest} at this rate, or a lower rate; a run without a duration records "
        "nothing"
    )
    raise InputError.of("duration", what, remedy)


def _approximate(number: int) -> str:
    """Return an integer of any size as text, rounded to three significant digits."""
    return f"{float(min(number, int(sys.float_info.max))):.3g}"


@contextmanager
def _plant_process(
    binary: bytes, options: PlantOptions, record: int | None
) -> Iterator[subprocess.Popen[str]]:
    """Run the plant's process in a context. The plant always ends when this process ends.

    Args:
        binary: the program.
        options: clock, communication channel, and behavior without commands.
        record: descriptor of an open file for the recording.
    """
    host, port = options.address
    mode = "lock" if options.lockstep else {"hold": "hold", "catch-up": "catch"}[options.stall]
    numbers = (
        port,
        repr(options.period),
        repr(float(options.steps)),
        mode,
        options.watchdog,
        repr(options.timeout),
    )
    record_descriptor = -1 if record is None else record
    further = (record_descriptor, int(options.without_controller), os.getpid())
    # a running program does not need its file, so the folder is removed at once
    with temporary_folder() as folder:
        program = folder / "plant"
        program.write_bytes(binary)
        program.chmod(0o700)
        process = subprocess.Popen(
            [str(program), host, *map(str, (*numbers, *further))],
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
def _ended_by_interrupt(process: subprocess.Popen[str]) -> Iterator[None]:
    """Within a context, end a process at the first Ctrl-C and kill it at the second.

    Outside the main thread, the context does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    is_second = False

    def end(*_: object) -> None:
        nonlocal is_second
        process.send_signal(signal.SIGKILL if is_second else signal.SIGTERM)
        is_second = True

    previous_handler = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _output(process: subprocess.Popen[str], options: PlantOptions) -> str:
    """Return the text that a plant prints at its end.

    Raises:
        InputError: its address is in use or does not belong to this computer.
        EngineError: the plant cannot run, or was killed.
    """
    with _ended_by_interrupt(process):
        output, error_text = process.communicate()
    if process.returncode == 0 and output:
        return output
    reason = error_text.replace("listening", "").strip() or _reason(process.returncode)
    address = options.shm or options.udp
    if process.returncode == ADDRESS_REFUSED:
        other = "name" if options.shm else "port"
        remedy = f"end the program that uses this {other}, or give another {other}"
        raise InputError.of(address, f"the plant cannot run: {reason}", remedy)
    remedy = "check the available memory and disk space, and try again"
    raise EngineError.of(address, f"the plant ended: {reason}", remedy)


def _reason(code: int) -> str:
    """Return the reason why a process ended without a message, from its exit code."""
    if code == -signal.SIGALRM:
        return "a step exceeded the time allowed for ending the process"
    return f"by signal {-code}" if code < 0 else f"with status {code}"


def _result(code: PlantCode, report: Mapping[str, Any], log: np.ndarray | None) -> PlantRun:
    options = code.options
    columns = (*code.inputs, *code.outputs)
    time_kinds = ("lateness", "empty_loop", "computing", "computing_by_the_clock", "exchange")
    others = (*time_kinds, "locked", "fifo", "digest", "failure")
    computing = report["computing"]
    is_assessed = not options.lockstep and computing["count"] >= MIN_ASSESSED_STEPS
    return PlantRun(
        diagnostics=(
            *omission_diagnostics(code.model.mechanism),
            diagnostic(
                "99.9th percentile of the computing time of a step, relative to the period",
                computing["p999_s"] * options.rate if is_assessed else None,
                at_most=MAX_COMPUTING_FRACTION,
                advice="use a lower rate, a larger tolerance, or a faster computer",
            ),
            diagnostic(
                "steps without a solution",
                bool(report["failure"]),
                at_most=0.0,
                advice=f"{report['failure']}: check the controller's force commands",
            ),
        ),
        provenance=provenance(options={}, inputs={"machine": code.model.mechanism.name}),
        machine=code.model.mechanism.name,
        options=options,
        counts={key: int(value) for key, value in report.items() if key not in others},
        times={kind: report[kind] for kind in time_kinds},
        allowed={"memory locked": report["locked"], "SCHED_FIFO": report["fifo"]},
        digest=report["digest"],
        failure=report["failure"],
        names=tuple(variable.name for variable in columns),
        units=tuple(variable.unit for variable in columns),
        log=log,
    )
