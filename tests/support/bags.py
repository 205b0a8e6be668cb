"""Bags written by rosbags itself, not by Tauloop: what robots record."""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
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
        self.store = stores.get_typestore(
            stores.Stores.LATEST if version == 2 else stores.Stores.ROS1_NOETIC
        )

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
        both = self.store.types["geometry_msgs/msg/Wrench"](
            force=vector(*force), torque=vector(*torque)
        )
        return self.store.types[WRENCH](header=self.header(stamp), wrench=both)

    def point(self, stamp: int, x: float, y: float, z: float) -> Any:
        point = self.store.types["geometry_msgs/msg/Point"](x=x, y=y, z=z)
        return self.store.types[POINT](header=self.header(stamp), point=point)

    def text(self, data: str) -> Any:
        return self.store.types[TEXT](data=data)


#: Topic, time of receipt (ns) and message.
Record = tuple[str, int, Any]


def rosbag2(
    folder: Path, records: Iterable[Record], storage: str = "MCAP", compression: str = "NONE"
) -> Path:
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


#: Kinds of MCAP's records: header, schema, channel, message, chunk, end of the data, footer.
HEADER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END, FOOTER = 1, 3, 4, 5, 6, 15, 2
MAGIC = b"\x89MCAP0\r\n"
#: The module that rosbags packs with; it brings it, and lz4.
ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def mcap_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Kind and whole bytes of each record; without the magic bytes at either end."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("<BQ", data, at)
        yield kind, data[at : at + 9 + size]
        at += 9 + size


def mcap_record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def repacked(data: bytes, packing: str | None, size: int = 4000) -> bytes:
    """A MCAP of rosbags in chunks of other sizes and packings, without an index; in no chunks where that is None."""
    records = list(mcap_records(data[len(MAGIC) : -len(MAGIC)]))
    header = next(record for kind, record in records if kind == HEADER)
    inner: list[bytes] = []
    for kind, record in records:
        if kind == CHUNK:
            inner += [part for _, part in mcap_records(unpacked(record))]
    chunks = [b""]
    for part in inner:
        if len(chunks[-1]) + len(part) > size:
            chunks.append(b"")
        chunks[-1] += part
    whole = [part if packing is None else _chunk(part, packing) for part in chunks if part]
    end = mcap_record(DATA_END, bytes(4)) + mcap_record(FOOTER, bytes(20))
    return MAGIC + header + b"".join(whole) + end + MAGIC


def _chunk(records: bytes, packing: str) -> bytes:
    packed = records
    if packing == "zstd":
        packed = importlib.import_module(ZSTD).compress(records)
    elif packing == "lz4":
        packed = importlib.import_module("lz4.frame").compress(records)  # rosbags brings it
    name = packing.encode()
    head = struct.pack("<QQQI", 0, 2**62, len(records), 0) + struct.pack("<I", len(name)) + name
    return mcap_record(CHUNK, head + struct.pack("<Q", len(packed)) + packed)


def unpacked(chunk: bytes) -> bytes:
    """The records in a chunk."""
    (length,) = struct.unpack_from("<I", chunk, 9 + 28)
    name, packed = chunk[9 + 28 + 4 : 9 + 28 + 4 + length], chunk[9 + 28 + 4 + length + 8 :]
    if name == b"zstd":
        return bytes(importlib.import_module(ZSTD).decompress(packed))
    return (
        bytes(importlib.import_module("lz4.frame").decompress(packed)) if name == b"lz4" else packed
    )
