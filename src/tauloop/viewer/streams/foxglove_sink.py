"""Streams to Foxglove: a file (.mcap), or a server that Foxglove connects to."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from tauloop.common.errors import InputError
from tauloop.common.optional import optional_module
from tauloop.viewer.streams.content import (
    FIXED_FRAME,
    FrameStates,
    StreamedMachine,
    StreamSink,
)

#: Topics of shapes, frames, quantities (a field for each name) and their units.
SHAPES_TOPIC, FRAMES_TOPIC, QUANTITIES_TOPIC, UNITS_TOPIC = (
    "/machine",
    "/tf",
    "/quantities",
    "/units",
)
#: Interval after which a server sends the shapes again, for viewers that connect later, s.
RESEND_INTERVAL = 1.0
#: Maximum number of ports that are tried.
MAX_TRIED_PORTS = 20
#: Largest port number.
MAX_PORT = 65535
#: Nanoseconds in a second.
NANOSECONDS = 1_000_000_000


class FoxgloveSink(StreamSink):
    """Messages of Foxglove: shapes, transforms of frames, and quantities."""

    def __init__(
        self, name: str, *, path: Path | None = None, host: str = "127.0.0.1", port: int = 8765
    ) -> None:
        """Open a file or a server.

        Args:
            name: name of the server.
            path: file to write; without it, a server is started.
            host, port: address of the server; the next free port if it is in use.

        Raises:
            EngineError: foxglove is not installed.
            InputError: no port is free.
        """
        foxglove = optional_module("foxglove", "foxglove", "foxglove")
        self._messages = importlib.import_module("foxglove.messages")
        channels = importlib.import_module("foxglove.channels")
        self._context = foxglove.Context()
        self._writer: Any = None
        self._server: Any = None
        self.address = ""
        if path is not None:
            self._writer = foxglove.open_mcap(path, allow_overwrite=True, context=self._context)
        else:
            self._server = _start_server(foxglove, name, host, port, self._context)
            self.address = f"ws://{host}:{self._server.port}"
        self._shapes = channels.SceneUpdateChannel(SHAPES_TOPIC, context=self._context)
        self._frames = channels.FrameTransformsChannel(FRAMES_TOPIC, context=self._context)
        self._new_channel = partial(_json_channel, foxglove, self._context)
        self._quantities: Any = None
        self._units: Any = None
        self._scene: Any = None
        self._quantity_units: dict[str, str] = {}
        self._last_resend = -math.inf

    def describe(self, machine: StreamedMachine, units: Mapping[str, str]) -> None:
        """Store shapes and units, which are sent together with the first state."""
        messages = self._messages
        entities = []
        for number, shape in enumerate(machine.shapes):
            triangles = messages.TriangleListPrimitive(
                points=[messages.Point3(x=x, y=y, z=z) for x, y, z in shape.mesh.vertices.tolist()],
                indices=[int(vertex) for vertex in shape.mesh.faces.reshape(-1)],
                color=messages.Color(r=shape.color[0], g=shape.color[1], b=shape.color[2], a=1.0),
            )
            entities.append(
                messages.SceneEntity(
                    id=f"{shape.frame} {number}",
                    frame_id=shape.frame,
                    frame_locked=True,
                    triangles=[triangles],
                    metadata=[messages.KeyValuePair(key="machine", value=machine.name)],
                )
            )
        self._scene = messages.SceneUpdate(entities=entities)
        self._quantity_units = {name: unit or "1" for name, unit in units.items()}
        self._units = self._new_channel(
            UNITS_TOPIC, "tauloop.Units", dict.fromkeys(units, "string")
        )
        self._quantities = self._new_channel(
            QUANTITIES_TOPIC, "tauloop.Quantities", dict.fromkeys(units, "number")
        )

    def show(
        self,
        time: float,
        frames: Mapping[str, FrameStates],
        state: int,
        quantities: Mapping[str, float],
    ) -> None:
        """Send one state."""
        messages = self._messages
        nanoseconds = round(time * NANOSECONDS)
        now = monotonic()
        if self._last_resend == -math.inf or (
            self._server and now - self._last_resend > RESEND_INTERVAL
        ):
            self._last_resend = now
            self._shapes.log(self._scene, log_time=nanoseconds)
            self._units.log(self._quantity_units, log_time=nanoseconds)
        timestamp = messages.Timestamp(
            sec=nanoseconds // NANOSECONDS, nsec=nanoseconds % NANOSECONDS
        )
        transforms = []
        for name, states in frames.items():
            px, py, pz = states.position[state].tolist()
            w, x, y, z = states.quaternion[state].tolist()
            transforms.append(
                messages.FrameTransform(
                    timestamp=timestamp,
                    parent_frame_id=FIXED_FRAME,
                    child_frame_id=name,
                    translation=messages.Vector3(x=px, y=py, z=pz),
                    rotation=messages.Quaternion(x=x, y=y, z=z, w=w),
                )
            )
        self._frames.log(messages.FrameTransforms(transforms=transforms), log_time=nanoseconds)
        if quantities:
            self._quantities.log(dict(quantities), log_time=nanoseconds)

    def close(self) -> None:
        """Close the file or the server."""
        if self._writer is not None:
            self._writer.close()
        if self._server is not None:
            self._server.stop()


def _json_channel(
    foxglove: Any, context: Any, topic: str, name: str, field_types: Mapping[str, str]
) -> Any:
    """Return a channel of JSON messages with a schema, from which Foxglove lists their fields.

    Args:
        foxglove: the package.
        context: the file or server.
        topic: topic of the channel.
        name: name of the schema.
        field_types: JSON type of each field, such as "number".
    """
    properties = {field: {"type": json_type} for field, json_type in field_types.items()}
    text = json.dumps({"type": "object", "title": name, "properties": properties})
    schema = foxglove.Schema(name=name, encoding="jsonschema", data=text.encode())
    return foxglove.Channel(topic, schema=schema, message_encoding="json", context=context)


def _start_server(foxglove: Any, name: str, host: str, port: int, context: Any) -> Any:
    """Start a server on a port, or on the next free port.

    Raises:
        InputError: no port is free.
    """
    problem = ""
    for candidate in range(port, min(port + MAX_TRIED_PORTS, MAX_PORT + 1)):
        try:
            return foxglove.start_server(name=name, host=host, port=candidate, context=context)
        except (OSError, RuntimeError) as error:
            problem = str(error)
    raise InputError.of("port", f"{host}:{port} cannot be used: {problem}", "give another port")
