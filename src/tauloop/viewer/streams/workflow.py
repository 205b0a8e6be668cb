"""A machine in motion as a stream: from a log, a simulation or a running plant."""

from __future__ import annotations

import errno
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, PoseError, Problems, TauloopError
from tauloop.common.files import write_file
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.logs.log import TIME
from tauloop.logs.recording import read_recorded
from tauloop.mechanism.description import units
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled
from tauloop.viewer.playback import Playback, read_playback
from tauloop.viewer.streams.content import StreamedMachine, StreamSink

#: Names of the viewers.
VIEWERS = ("rerun", "foxglove")
#: Number of bytes of the test that finds out why a file cannot be written.
PROBE_SIZE = 65536
#: Viewer for each file extension.
VIEWER_BY_EXTENSION = {".rrd": "rerun", ".mcap": "foxglove"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(Options):
    """Options of a stream.

    Attributes:
        motion: motion from a table with time and position.NAME of the platform or the actuators,
            such as a log or the output of `tauloop simulate --out`; in Python also a `Playback`.
        shm: name of shared memory of a running plant, whose measurements are shown.
        viewer: viewer that receives the stream; for a file, its extension selects the viewer.
        playback_speed: speed of the motion in a viewer, relative to real time.
        rate: samples per second that a viewer receives, such as '30 Hz'.
        duration: duration of a stream from a plant; by default until the plant ends.
        url: address of a running Rerun viewer; default: Rerun's default address.
        host: address to listen on; 0.0.0.0 allows other computers.
        port: port; the next free port if it is in use.

    Examples:
        >>> import tauloop as tl
        >>> tl.StreamOptions(viewer="foxglove", playback_speed=0.5).port
        8765
    """

    motion: Path | Playback | None = option(None, read=Path, metavar="FILE")
    shm: str | None = None
    viewer: str = option("rerun", choices=VIEWERS)
    playback_speed: float = option(1.0, above=0.0)
    rate: float = option(30.0, metavar="FREQUENCY", above=0.0, unit=units.FREQUENCY)
    duration: float | None = option(None, above=0.0, unit=units.TIME)
    url: str = ""
    host: str = "127.0.0.1"
    port: int = option(8765, least=0, most=65535)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report a motion that is given together with a plant."""
        if self.motion is not None and self.shm is not None:
            problems.add("motion", "is given together with a plant", "give either a motion or shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedMotion(Result):
    """Summary of a completed stream.

    Attributes:
        viewer: viewer that received the stream.
        states: number of states that were sent.
        duration: duration of the motion, s.
        quantities: units of quantities by name.
        time: times of the states (N,), s.
    """

    needs_forces = False
    viewer: str
    states: int
    duration: float
    quantities: Mapping[str, str]
    time: np.ndarray = field(metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the times and the indices of the states."""
        yield Variable(name="time", values=self.time, over=("time",), unit="s")
        yield Variable(name="state", values=np.arange(len(self.time)), over=("time",))


@keywords(StreamOptions)
def run_stream(
    machine: MachineSource,
    out: str | Path | None = None,
    options: StreamOptions | None = None,
    *,
    progress: Progress | None = None,
    announce: Callable[[str], object] | None = None,
) -> StreamedMotion:
    """Stream a machine in motion to Rerun or Foxglove, or write a file for one of them.

    The stream contains the shapes of bodies and rods, their poses in the fixed frame, and the
    quantities of the log for plots. A file contains all samples. A viewer receives `rate` states
    per second, at the speed of the motion.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        out: file to write: .rrd for Rerun, .mcap for Foxglove; without it, the stream is sent to a
            viewer.
        options: the motion or plant, and the viewer.
        progress: function (completed states, all states).
        announce: function that receives the address of the server that Foxglove connects to.

    Returns:
        A summary of the stream. The summary is doubtful if states of a plant could not be shown.

    Raises:
        EngineError: the viewer's package or trimesh is not installed, or there is no plant.
        InputError: neither a motion nor a plant is given, or the file extension is unknown.
        PoseError: a sample is out of reach.
        LogError: the file of the motion is damaged.

    Examples:
        >>> import tauloop as tl
        >>> tl.run_stream("delta", "delta.mcap")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: motion: neither a motion nor a plant is given
            remedy: give motion=FILE, or shm=NAME of a running plant
    """
    options = options or StreamOptions()
    path = None if out is None else Path(out)
    if path is not None:
        options = replace(options, viewer=viewer_of(path))
    if options.motion is None and options.shm is None:
        what = "neither a motion nor a plant is given"
        remedy = "give motion=FILE, or shm=NAME of a running plant"
        raise InputError.of("motion", what, remedy)
    model = modeled(machine)
    streamed = StreamedMachine(model)
    if options.shm is None:
        playback, quantities, quantity_units = _motion(model, options)
        samples = _sample_indices(playback.time, options, is_file=path is not None)
    results: list[StreamedMotion] = []

    def send(file: Path | None) -> None:
        sink = _sink(options, streamed, file, announce)
        if options.shm is not None:
            results.append(_from_plant(model, streamed, sink, options))
            return
        try:
            sink.describe(streamed, quantity_units)
            _play(streamed, sink, playback, quantities, samples, options, file, progress)
        finally:
            sink.close()
        results.append(_result(options, playback.time[samples], quantity_units, 0))

    if path is None:
        send(None)
    else:
        write_file(path, lambda file: _write_with_reasons(send, file))
    return results[0]


def _write_with_reasons(send: Callable[[Path], object], file: Path) -> None:
    """Write a file; errors of a viewer's package, such as for a full disk, become OSError.

    Raises:
        OSError: the file cannot be written.
    """
    try:
        send(file)
    except TauloopError:
        raise
    except RuntimeError as error:
        # On a full disk, this test makes the system raise an OSError with the reason.
        with file.open("ab") as stream:
            stream.write(bytes(PROBE_SIZE))
        raise OSError(errno.EIO, str(error)) from error


def viewer_of(path: Path) -> str:
    """Return the viewer that the extension of a file selects.

    Raises:
        InputError: the extension is unknown.
    """
    viewer = VIEWER_BY_EXTENSION.get(path.suffix.lower())
    if viewer is None:
        what = f"{path.name} does not have the extension of a recording"
        raise InputError.of("out", what, f"use {' or '.join(VIEWER_BY_EXTENSION)}")
    return viewer


def _sink(
    options: StreamOptions,
    machine: StreamedMachine,
    path: Path | None,
    announce: Callable[[str], object] | None,
) -> StreamSink:
    """Return the sink that the options select; announce the address of a Foxglove server."""
    if options.viewer == "rerun":
        from tauloop.viewer.streams.rerun_sink import RerunSink

        return RerunSink(machine.name, path=path, url=options.url)
    from tauloop.viewer.streams.foxglove_sink import FoxgloveSink

    sink = FoxgloveSink(machine.name, path=path, host=options.host, port=options.port)
    if announce is not None and sink.address:
        announce(sink.address)
    return sink


def _motion(
    model: Model, options: StreamOptions
) -> tuple[Playback, dict[str, np.ndarray], dict[str, str]]:
    """Return the motion, its quantities (N,) by name, and the units of the quantities by name."""
    if isinstance(options.motion, Playback):
        force = options.motion.force
        if force is None:
            return options.motion, {}, {}
        outputs = zip(*model.output_ports("actuators"), strict=True)
        quantity_units = {f"force.{name}": unit for name, unit in outputs}
        return options.motion, dict(zip(quantity_units, force.T, strict=True)), quantity_units
    if options.motion is None:
        raise AssertionError("a stream without a plant has a motion")
    playback = read_playback(model, options.motion)
    log = read_recorded(options.motion)
    names = [str(name) for name in log.data_vars if log[name].dims == (TIME,)]
    quantities = {name: np.asarray(log[name], dtype=float) for name in names}
    quantity_units = {name: str(log[name].attrs.get("units", "")) for name in names}
    return (
        playback,
        quantities,
        {name: "" if unit == "1" else unit for name, unit in quantity_units.items()},
    )


def _sample_indices(times: np.ndarray, options: StreamOptions, *, is_file: bool) -> np.ndarray:
    """Return the indices of the samples to send: all for a file, `rate` per second for a viewer."""
    if is_file or len(times) < 2:
        return np.arange(len(times))
    interval = options.playback_speed / options.rate
    send_times = np.arange(times[0], times[-1] + interval / 2, interval)
    return np.unique(np.clip(np.searchsorted(times, send_times), 0, len(times) - 1))


def _play(
    machine: StreamedMachine,
    sink: StreamSink,
    playback: Playback,
    quantities: Mapping[str, np.ndarray],
    samples: np.ndarray,
    options: StreamOptions,
    path: Path | None,
    progress: Progress | None,
) -> None:
    """Send the samples, in real time if a viewer receives them."""
    frames = machine.frames(machine_geometry(machine.model, playback.q[samples]))
    stages = Stages(progress, len(samples))
    start = time.monotonic()
    for state, sample in stages.over(enumerate(samples)):
        sample_time = float(playback.time[sample])
        if path is None:
            time.sleep(max(start + sample_time / options.playback_speed - time.monotonic(), 0.0))
        values = {
            name: float(values[sample])
            for name, values in quantities.items()
            if np.isfinite(values[sample])
        }
        sink.show(sample_time, frames, state, values)


def _from_plant(
    model: Model, machine: StreamedMachine, sink: StreamSink, options: StreamOptions
) -> StreamedMotion:
    """Show the measurements of a running plant until it ends."""
    names = [actuator.name for actuator in model.mechanism.actuators]
    port_units = model.actuator_units
    quantity_units = {
        f"{quantity}.{name}": f"{unit}{suffix}"
        for quantity, suffix in (("position", ""), ("velocity", "/s"))
        for name, unit in zip(names, port_units, strict=True)
    }
    # Looked up when needed, to avoid an import cycle.
    observer = sys.modules["tauloop"].export.hil.PlantObserver(options.shm or "")
    times: list[float] = []
    n_unreachable = 0
    q = model.assembly.q
    end = math.inf if options.duration is None else time.monotonic() + options.duration
    try:
        sink.describe(machine, quantity_units)
        while observer.is_running and time.monotonic() < end:
            measured = observer.latest()
            if measured is None or (times and measured.time == times[-1]):
                time.sleep(1.0 / options.rate)
                continue
            values = measured.values[: 2 * len(names)]
            try:
                q = np.asarray(model.forward_kinematics(values[: len(names)], start=q).q).reshape(
                    -1
                )
            except PoseError:
                n_unreachable += 1
            else:
                frames = machine.frames(machine_geometry(model, q[None]))
                sink.show(
                    measured.time,
                    frames,
                    0,
                    dict(zip(quantity_units, values.tolist(), strict=False)),
                )
            times.append(measured.time)
            if measured.is_last:
                break
            time.sleep(1.0 / options.rate)
    finally:
        observer.close()
        sink.close()
    return _result(options, np.array(times), quantity_units, n_unreachable)


def _result(
    options: StreamOptions, times: np.ndarray, quantity_units: Mapping[str, str], n_unreachable: int
) -> StreamedMotion:
    return StreamedMotion(
        viewer=options.viewer,
        states=len(times) - n_unreachable,
        duration=float(times[-1] - times[0]) if len(times) else 0.0,
        quantities=quantity_units,
        time=times,
        diagnostics=(
            diagnostic(
                "states out of reach",
                n_unreachable,
                at_most=0.0,
                advice="the plant simulates another machine: give the machine file with which it was started",
            ),
        ),
        provenance=provenance(options={"viewer": options.viewer}, packages=("numpy",)),
    )
