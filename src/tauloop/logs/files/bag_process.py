"""Reading of ROS 1 and 2 bags by rosbags, in the separate reader process (see `reading_process`).

Only message types that are built into rosbags are read, so no definition in a file becomes code.
The process has limits of memory and file size, which bound the unpacked size of a damaged or
hostile bag.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: Number of messages of a topic that are searched for fields. Several drivers may publish different
#: joints on the same topic.
INSPECTED_MESSAGES = 200
#: Maximum number of values in a message; larger messages are images, point clouds and maps.
MAX_FIELDS = 1000
#: Topic in which Tauloop describes the columns of its own logs.
CONTENTS_TOPIC = "/tauloop/log"
#: Units of fields by their message type (ROS's REP 103); joint positions may be rad or m.
_MESSAGE_UNITS = {
    ("geometry_msgs/msg/Wrench", "force"): "N",
    ("geometry_msgs/msg/Wrench", "torque"): "N m",
    ("geometry_msgs/msg/Pose", "position"): "m",
    ("geometry_msgs/msg/Pose", "orientation"): "1",
    ("geometry_msgs/msg/PointStamped", "point"): "m",
    ("geometry_msgs/msg/Twist", "linear"): "m/s",
    ("geometry_msgs/msg/Twist", "angular"): "rad/s",
    ("geometry_msgs/msg/Accel", "linear"): "m/s^2",
    ("geometry_msgs/msg/Accel", "angular"): "rad/s^2",
}

Answer = Iterator[tuple[dict[str, Any], np.ndarray | None]]


def topics(path: str) -> Answer:
    """Yield fields, units, stamps and type of each topic, and the contents of a Tauloop log."""
    with _opened(path) as bag:
        listed = {}
        for topic, kind, messages in bag.topics():
            fields: dict[str, str] = {}
            stamped = headed = False
            for _, message in itertools.islice(messages, INSPECTED_MESSAGES):
                fields |= {name: unit for name, _, unit in _fields(message, "", "")}
                stamped = stamped or _stamp(message) != 0
                headed = headed or hasattr(message, "header")
            known = kind in bag.store.types
            listed[topic] = {
                "kind": kind,
                "fields": fields,
                "headed": headed,
                "stamped": stamped,
                "known": known,
            }
        yield {"topics": listed, "contents": bag.contents()}, None


def columns(path: str, wanted: dict[str, list[str]]) -> Answer:
    """Yield stamps and times of receipt (ns) by topic, and values and message numbers by field."""
    with _opened(path) as bag:
        for topic, _, messages in bag.topics(wanted):
            times: list[tuple[int, int]] = []
            values: dict[str, list[float]] = {field: [] for field in wanted[topic]}
            rows: dict[str, list[int]] = {field: [] for field in wanted[topic]}
            for row, (received, message) in enumerate(messages):
                times.append((_stamp(message), received))
                for field, value, _ in _fields(message, "", "") if values else ():
                    if field in values:
                        values[field].append(value)
                        rows[field].append(row)
            both = np.array(times, dtype=np.int64).reshape(-1, 2)
            yield {"column": f"{topic} stamped"}, both[:, 0]
            yield {"column": f"{topic} received"}, both[:, 1]
            for field in values:
                yield {"column": f"{topic}.{field}"}, np.array(values[field], dtype=float)
                yield {"column": f"{topic}.{field} rows"}, np.array(rows[field], dtype=np.int64)


class _Bag:
    """An open ROS 1 or ROS 2 bag, with the supported message types."""

    def __init__(self, reader: Any, store: Any, is_ros1: bool) -> None:
        self._reader = reader
        self.store = store
        self._parse = store.deserialize_ros1 if is_ros1 else store.deserialize_cdr

    def topics(
        self, wanted: Sequence[str] | dict[str, list[str]] | None = None
    ) -> Iterator[tuple[str, str, Any]]:
        """Yield name, type and messages of each topic; unknown types have no messages.

        Messages come with their times of receipt.
        """
        for topic, info in self._reader.topics.items():
            if wanted is None or topic in wanted:
                kind = info.msgtype or "several types"
                is_known = kind in self.store.types
                yield topic, kind, self._messages(info, kind) if is_known else iter(())

    def _messages(self, info: Any, kind: str) -> Iterator[tuple[int, Any]]:
        for _, received, raw in self._reader.messages(connections=info.connections):
            yield received, self._parse(raw, kind)

    def contents(self) -> Any:
        """Return the description that a log written by Tauloop contains."""
        info = self._reader.topics.get(CONTENTS_TOPIC)
        if info is None or info.msgtype != "std_msgs/msg/String":
            return None
        return json.loads(next(self._messages(info, info.msgtype))[1].data)


@contextmanager
def _opened(path: str) -> Iterator[_Bag]:
    from rosbags.typesys import Stores, get_typestore

    is_ros1 = path.endswith(".bag")
    if is_ros1:
        from rosbags.rosbag1 import Reader
    else:
        from rosbags.rosbag2 import Reader  # type: ignore[assignment]
    with Reader(Path(path)) as reader:
        yield _Bag(reader, get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.LATEST), is_ros1)


def _stamp(message: Any) -> int:
    """Return the stamp of a message's header, ns; zero if absent or empty."""
    stamp = getattr(getattr(message, "header", None), "stamp", None)
    return 0 if stamp is None else stamp.sec * 1_000_000_000 + stamp.nanosec


def _fields(message: Any, prefix: str, unit: str) -> Iterator[tuple[str, float, str]]:
    """Yield name, value and unit of each number in a message; joint fields contain joint names."""
    kind = message.__msgtype__
    if kind == "sensor_msgs/msg/JointState":
        for quantity in ("position", "velocity", "effort"):
            for joint, value in zip(message.name, getattr(message, quantity), strict=False):
                yield f"{quantity}[{joint}]", float(value), ""
        return
    for name in message.__dataclass_fields__:
        if name not in ("header", "layout", "__msgtype__"):
            yield from _values(
                getattr(message, name), f"{prefix}{name}", _MESSAGE_UNITS.get((kind, name), unit)
            )


def _values(value: Any, name: str, unit: str) -> Iterator[tuple[str, float, str]]:
    if isinstance(value, int | float):
        yield name, float(value), unit
    elif isinstance(value, np.ndarray | list):
        if len(value) > MAX_FIELDS:
            return
        for k, item in enumerate(value):
            yield from _values(
                item.item() if isinstance(item, np.generic) else item, f"{name}[{k}]", unit
            )
    elif (
        getattr(value, "__msgtype__", "builtin_interfaces/").partition("/")[0]
        != "builtin_interfaces"
    ):
        yield from _fields(value, f"{name}.", unit)
