"""Streams to Rerun: a file (.rrd), or a running viewer."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from tauloop.common.optional import optional_module
from tauloop.viewer.streams.content import FrameStates, StreamedMachine, StreamSink

#: Name of the timeline, whose values are times of the motion, s.
TIMELINE = "motion"


class RerunSink(StreamSink):
    """A recording of Rerun: shapes under ``machine``, quantities under ``plots``."""

    def __init__(self, name: str, *, path: Path | None = None, url: str = "") -> None:
        """Open a recording.

        Args:
            name: name of the recording.
            path: file to write; without it, the stream goes to a viewer.
            url: address of a running viewer, such as rerun+http://127.0.0.1:9876/proxy; "" for the
                default address.

        Raises:
            EngineError: rerun is not installed.
        """
        self._rerun = optional_module("rerun", "rerun", "rerun")
        self._stream = self._rerun.RecordingStream(f"tauloop {name}")
        if path is not None:
            self._stream.save(str(path))
        else:
            self._stream.connect_grpc(url or None)

    def describe(self, machine: StreamedMachine, units: Mapping[str, str]) -> None:
        """Send shapes, and the names of quantities with their units."""
        rerun, stream = self._rerun, self._stream
        stream.log("machine", rerun.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        for number, shape in enumerate(machine.shapes):
            mesh = rerun.Mesh3D(
                vertex_positions=shape.mesh.vertices.astype(np.float32),
                triangle_indices=shape.mesh.faces.astype(np.uint32),
                albedo_factor=(*shape.color, 1.0),
            )
            stream.log(f"{_frame_path(shape.frame)}/shape_{number}", mesh, static=True)
        for name, unit in units.items():
            title = f"{name} [{unit}]" if unit else name
            stream.log(_plot_path(name), rerun.SeriesLines(names=title), static=True)
        self._send_layout(units)

    def _send_layout(self, names: Iterable[str]) -> None:
        """Send a layout: the machine at the left, and a plot for each quantity at the right.

        By default, Rerun would create a plot for each channel, and omit some of them.
        """
        views = importlib.import_module("rerun.blueprint")
        machine = views.Spatial3DView(origin="machine", name="machine")
        groups = dict.fromkeys(_plot_path(name).rpartition("/")[0] for name in names)
        plots = [
            views.TimeSeriesView(origin=group, name=group.rpartition("/")[2]) for group in groups
        ]
        layout = views.Horizontal(machine, views.Vertical(*plots)) if plots else machine
        self._stream.send_blueprint(
            views.Blueprint(layout, views.SelectionPanel(state="collapsed"))
        )

    def show(
        self,
        time: float,
        frames: Mapping[str, FrameStates],
        state: int,
        quantities: Mapping[str, float],
    ) -> None:
        """Send one state."""
        rerun, stream = self._rerun, self._stream
        stream.set_time(TIMELINE, duration=time)
        for name, states in frames.items():
            w, x, y, z = states.quaternion[state]
            transform = rerun.Transform3D(
                translation=states.position[state], quaternion=rerun.Quaternion(xyzw=(x, y, z, w))
            )
            stream.log(_frame_path(name), transform)
        for name, value in quantities.items():
            stream.log(_plot_path(name), rerun.Scalars(value))

    def close(self) -> None:
        """Write buffered data, and close the stream."""
        self._stream.flush()
        self._stream.disconnect()


def _frame_path(name: str) -> str:
    return f"machine/{name.replace('/', '_')}"


def _plot_path(name: str) -> str:
    """Return the path of a channel; channels of the same quantity are in one group."""
    return f"plots/{name.replace('/', '_').replace('.', '/', 1)}"
