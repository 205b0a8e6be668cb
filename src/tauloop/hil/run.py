"""A plant in a process of its own, until its time is over or somebody interrupts it, and what it counts."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.datasets import TIME, Variable, time_axis
from tauloop.errors import EngineError, InputError
from tauloop.hil.options import PlantOptions
from tauloop.hil.plant import PlantCode
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model
from tauloop.records import dataclass
from tauloop.result import Evidence, Result, provenance

#: Share of a period that the computation of a step may take, 999 times out of 1000.
COMPUTING = 0.1
#: Steps below which nothing can be said of 999 in 1000.
JUDGED = 1000
#: How long a plant that is interrupted may take to end, s.
PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRun(Result):
    """A plant's run: counts, times, and what it measured.

    Attributes:
        machine: its name.
        options: how it ran.
        counts: steps; commands that came in time, were missing, late, lost, repeated, refused or from strangers;
            brakings; stalls, and periods that were skipped or caught up.
        times: by kind (lateness of waking, and that of an empty loop beside it; computing of a step in time of the
            processor, and by the clock, which goes on while others have it; exchange of packets): count, median, 99th
            and 99.9th percentile, largest, s.
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
    failure: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    log: np.ndarray | None = field(repr=False)

    def variables(self) -> Iterator[Variable]:
        """Forces and what was measured, over time."""
        rows = np.empty((0, 1 + len(self.names))) if self.log is None else self.log
        yield time_axis(rows[:, 0])
        for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True), start=1):
            yield Variable(name=name, values=rows[:, k], over=TIME, unit=unit)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``: figures, not the samples."""
        parts = ("machine", "options", "counts", "times", "allowed", "digest")
        return self.plain_data(*parts, failure=self.failure or None)


def run_plant(
    machine: Mechanism | Model, options: PlantOptions | None = None, *, cache: Path | None = None
) -> PlantRun:
    """Run a machine, with its drive lines where it has them, as a plant that a controller in another process drives.

    The loop is machine code in a process of its own. It begins at rest at the reference pose when a controller says
    that it is there, and ends after the duration, where the motion has no way on, or when this process is interrupted.

    Args:
        machine: the machine.
        options: clock, link, and what is done when commands stay away.
        cache: of compiled code; the user's own without it.

    Raises:
        InputError: an address that is taken or no address of this computer.
        EngineError: there is no compiler, or it fails.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.hil.PlantOptions(udp="127.0.0.1:47811", alone=True, duration=0.02)
        >>> run = tl.run_plant(tl.load("five_bar"), options)
        >>> run.counts["steps"]
        20
    """
    options = options or PlantOptions()
    code = PlantCode(machine, options)
    binary = code.program(cache)
    host, port = options.place
    mode = "lock" if options.lockstep else {"hold": "hold", "catch-up": "catch"}[options.stall]
    with tempfile.TemporaryDirectory(prefix="tauloop-plant-") as folder:
        program, log = Path(folder) / "plant", Path(folder) / "log"
        program.write_bytes(binary)
        program.chmod(0o700)
        numbers = (port, repr(options.frequency), options.steps, mode, options.watchdog, repr(options.timeout))
        words = [str(program), host, *map(str, numbers), str(log) if options.steps else "", str(int(options.alone))]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            printed, complaint = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            printed, complaint = process.communicate(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode or not printed:
            reason = complaint.replace("listening", "").strip() or f"ended with status {process.returncode}"
            error = InputError if process.returncode == 3 else EngineError
            raise error.of(options.shm or options.udp, f"the plant cannot run: {reason}", "name another place")
        kept = np.fromfile(log) if options.steps else None
    return _result(code, json.loads(printed), kept)


def _result(code: PlantCode, figures: Mapping[str, Any], kept: np.ndarray | None) -> PlantRun:
    options = code.options
    columns = (*code.inputs, *code.outputs)
    kinds = ("lateness", "empty_loop", "computing", "computing_by_the_clock", "exchange")
    others = (*kinds, "locked", "fifo", "digest", "failure")
    computing, is_judged = figures["computing"], not options.lockstep and figures["computing"]["count"] >= JUDGED
    return PlantRun(
        evidence=(
            Evidence(
                name="computation of a step over the period, 999 times of 1000",
                value=computing["p999_s"] * options.frequency if is_judged else None,
                upper=COMPUTING,
                advice="a lower rate, a larger tolerance, or a computer with more room",
            ),
            Evidence(
                name="steps that have no solution",
                value=float(bool(figures["failure"])),
                upper=0.0,
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
        log=None if kept is None else kept.reshape(-1, 1 + len(columns)),
    )
