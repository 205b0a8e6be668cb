"""Bags written by rosbags itself, not by Tauloop: what robots record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from extras import extra

#: Nanoseconds of an ordinary day.
START = 1_700_000_000_123_456_789
NS = 1_000_000_000
JOINTS, ARRAY, WRENCH = (
    "sensor_msgs/msg/JointState",
    "std_msgs/msg/Float64MultiArray",
    "geometry_msgs/msg/WrenchStamped",
)
POINT, TEXT = "geometry_msgs/msg/PointStamped", "std_msgs/msg/String"


class Messages:
    """Makes messages of one version of ROS."""

    def __init__(self, version: int = 2) -> None:
        stores = extra("rosbags.typesys")
        self.version = version
        self.store = stores.get_typestore(stores.Stores.LATEST if version == 2 else stores.Stores.ROS1_NOETIC)

    def header(self, stamp: int) -> Any:
        types = self.store.types
        time = types["builtin_interfaces/msg/Time"](sec=stamp // NS, nanosec=stamp % NS)
        more = {} if self.version == 2 else {"seq": 0}
        return types["std_msgs/msg/Header"](stamp=time, frame_id="", **more)

    def joints(
        self,
        stamp: int,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float] = (),
        effort: Sequence[float] = (),
    ) -> Any:
        values = {"position": position, "velocity": velocity, "effort": effort}
        arrays = {key: np.array(value, dtype=float) for key, value in values.items()}
        return self.store.types[JOINTS](header=self.header(stamp), name=list(names), **arrays)

    def array(self, values: Sequence[float]) -> Any:
        layout = self.store.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
        return self.store.types[ARRAY](layout=layout, data=np.array(values, dtype=float))

    def wrench(self, stamp: int, force: Sequence[float], torque: Sequence[float]) -> Any:
        vector = self.store.types["geometry_msgs/msg/Vector3"]
        both = self.store.types["geometry_msgs/msg/Wrench"](force=vector(*force), torque=vector(*torque))
        return self.store.types[WRENCH](header=self.header(stamp), wrench=both)

    def point(self, stamp: int, x: float, y: float, z: float) -> Any:
        point = self.store.types["geometry_msgs/msg/Point"](x=x, y=y, z=z)
        return self.store.types[POINT](header=self.header(stamp), point=point)

    def text(self, data: str) -> Any:
        return self.store.types[TEXT](data=data)


#: Topic, time of receipt (ns) and message.
Record = tuple[str, int, Any]


def rosbag2(folder: Path, records: Iterable[Record], storage: str = "MCAP", compression: str = "NONE") -> Path:
    """A folder as `ros2 bag record` leaves it."""
    bags: ModuleType = extra("rosbags.rosbag2")
    store = Messages().store
    writer = bags.Writer(folder, version=9, storage_plugin=bags.StoragePlugin[storage])
    writer.set_compression(bags.CompressionMode[compression], bags.CompressionFormat.ZSTD)
    with writer:
        topics: dict[str, Any] = {}
        for topic, received, message in sorted(records, key=lambda record: record[1]):
            kind = message.__msgtype__
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(topics[topic], received, store.serialize_cdr(message, kind))
    return folder


def rosbag1(path: Path, records: Iterable[Record], compression: str | None = None) -> Path:
    """A bag of ROS 1."""
    bags: ModuleType = extra("rosbags.rosbag1")
    store = Messages(1).store
    writer = bags.Writer(path)
    if compression is not None:
        writer.set_compression(bags.Writer.CompressionFormat[compression])
    with writer:
        topics: dict[str, Any] = {}
        for topic, received, message in records:
            kind = message.__msgtype__
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=store)
            writer.write(topics[topic], received, store.serialize_ros1(message, kind))
    return path
