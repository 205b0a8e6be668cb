"""Writing of logs as ROS 2 bags (a file or folder) by rosbags."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.files import temporary_files_reported
from tauloop.logs.files.bag_process import CONTENTS_TOPIC
from tauloop.logs.files.bags import JOINT_FIELDS, require_rosbags
from tauloop.logs.log import TIME, units_of

if TYPE_CHECKING:
    import xarray as xr

#: Storage of rosbag2 by file extension.
STORAGE_OF_EXTENSION = {".mcap": "MCAP", ".db3": "SQLITE3"}
#: Extension of a bag folder as created by `ros2 bag record`. The extension of its files may precede
#: it.
BAG_FOLDER_EXTENSION = ".rosbag2"
#: Topic of joint states.
JOINT_STATES = "/joint_states"
_ARRAY = "std_msgs/msg/Float64MultiArray"
_JOINTS = "sensor_msgs/msg/JointState"
_WRENCH = "geometry_msgs/msg/WrenchStamped"
#: Channels of a force and a moment, with their fields in ROS.
WRENCH_FIELDS = {
    f"{letter}{axis}": f"wrench.{part}.{axis}"
    for letter, part in (("f", "force"), ("m", "torque"))
    for axis in "xyz"
}
#: Stamp of the first sample, ns; not zero, which means "no stamp" in ROS.
_FIRST_STAMP = 1_000_000_000


def write_bag(path: Path, target: Path, log: xr.Dataset) -> None:
    """Write a log as a rosbag2 file.

    Positions are joint states, with the velocities and forces (efforts) of the same channels; fx,
    fy, fz, mx, my, mz of one quantity are a stamped wrench; other quantities are arrays on
    ``/tauloop/QUANTITY``. The topic ``/tauloop/log`` contains meaning and unit of each column, so
    that the file reads back without a description.

    Args:
        path: final path of the file; its extension, one of `STORAGE_OF_EXTENSION`, determines the
            storage.
        target: the file to write.
        log: a log as from `read_log`.

    Raises:
        LogError: rosbags is not installed.
    """
    require_rosbags(str(path))
    extension = path.suffix.lower()
    with ExitStack() as stack:
        with temporary_files_reported():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tauloop-"))
            filled = _fill(Path(folder) / "log", log, STORAGE_OF_EXTENSION[extension])
        shutil.copyfile(filled / f"log{extension}", target)


def write_bag_folder(path: Path, folder: Path, log: xr.Dataset) -> Path:
    """Write a log as a bag folder as recorded by ROS: a message file and `metadata.yaml`.

    Args:
        path: final path of the folder, which ends in `BAG_FOLDER_EXTENSION`. A file extension in
            front of that determines the storage; the default is MCAP.
        folder: folder in which the bag folder is created.
        log: a log as from `read_log`.

    Returns:
        The created folder.

    Raises:
        LogError: rosbags is not installed.
    """
    require_rosbags(str(path))
    name = Path(path.stem)
    extension = name.suffix.lower() if name.suffix.lower() in STORAGE_OF_EXTENSION else ""
    return _fill(
        folder / (name.stem if extension else name.name),
        log,
        STORAGE_OF_EXTENSION[extension or ".mcap"],
    )


def _fill(folder: Path, log: xr.Dataset, storage: str) -> Path:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    time = log[TIME].to_numpy()
    store = get_typestore(Stores.LATEST)
    stamps = [_FIRST_STAMP + round(1e9 * float(t)) for t in time - time[0]]
    parts = {topic: dict(group) for topic, group in _topics(log).items()}
    with Writer(folder, version=9, storage_plugin=StoragePlugin[storage]) as writer:
        kinds = {CONTENTS_TOPIC: "std_msgs/msg/String"}
        kinds |= {topic: _kind(topic, group) for topic, group in parts.items()}
        connections = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in kinds.items()
        }
        contents = store.types[kinds[CONTENTS_TOPIC]](
            data=json.dumps(_contents(log, parts, float(time[0])))
        )
        writer.write(
            connections[CONTENTS_TOPIC],
            _FIRST_STAMP,
            store.serialize_cdr(contents, kinds[CONTENTS_TOPIC]),
        )
        streams = {
            topic: _messages(store.types, topic, parts[topic], log, stamps) for topic in parts
        }
        for stamp in stamps:
            for topic, messages in streams.items():
                writer.write(
                    connections[topic], stamp, store.serialize_cdr(next(messages), kinds[topic])
                )
    return folder


def _topics(log: xr.Dataset) -> dict[str, list[tuple[str, list[str]]]]:
    """Return the quantities with their channels by topic."""
    groups: dict[str, list[str]] = {}
    for variable in log.data_vars.values():
        groups.setdefault(variable.attrs["quantity"], []).append(variable.attrs["channel"])
    joints = [(name, group) for name, group in groups.items() if name in JOINT_FIELDS.values()]
    joints = [(name, group) for name, group in joints if group == groups.get("position")]
    topics = {JOINT_STATES: joints} if joints else {}
    for number, (name, group) in enumerate(groups.items()):
        if (name, group) not in joints:
            is_valid = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name)
            topic_name = name if is_valid else f"quantity_{number}"
            topics[f"/tauloop/{topic_name}"] = [(name, group)]
    return topics


def _kind(topic: str, parts: Mapping[str, list[str]]) -> str:
    """Return the type of a topic's messages."""
    if topic == JOINT_STATES:
        return _JOINTS
    return _WRENCH if set(WRENCH_FIELDS) == set(next(iter(parts.values()))) else _ARRAY


def _columns(topic: str, parts: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield the column in the file, and the name in the log, of each value of a topic."""
    fields = {quantity: field for field, quantity in JOINT_FIELDS.items()}
    kind = _kind(topic, parts)
    for quantity, channels in parts.items():
        for k, channel in enumerate(channels):
            if kind == _WRENCH:
                name = WRENCH_FIELDS[channel]
            elif kind == _JOINTS:
                name = f"{fields[quantity]}[{channel}]"
            else:
                name = f"data[{k}]"
            yield f"{topic}.{name}", f"{quantity}.{channel}"


def _contents(
    log: xr.Dataset, topics: Mapping[str, Mapping[str, list[str]]], start: float
) -> dict[str, Any]:
    names = {
        column: name
        for topic, parts in topics.items()
        for column, name in _columns(topic, dict(parts))
    }
    units = {column: units_of(log[name]) for column, name in names.items()}
    return {"start": start, "channels": names, "units": units}


def _messages(
    types: Any, topic: str, parts: Mapping[str, list[str]], log: xr.Dataset, stamps: list[int]
) -> Iterator[Any]:
    """Yield the messages of a topic, one per sample."""
    values: dict[str, np.ndarray] = {}
    for quantity, channels in parts.items():
        columns = [log[f"{quantity}.{channel}"].to_numpy() for channel in channels]
        values[quantity] = np.stack(columns, axis=1)
    header, moment = types["std_msgs/msg/Header"], types["builtin_interfaces/msg/Time"]
    layout = types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
    empty = np.zeros(0)
    kind = _kind(topic, parts)
    for row, stamp in enumerate(stamps):
        if kind == _ARRAY:
            yield types[_ARRAY](layout=layout, data=next(iter(values.values()))[row])
            continue
        second, nanosecond = divmod(stamp, 1_000_000_000)
        head = header(stamp=moment(sec=second, nanosec=nanosecond), frame_id="")
        if kind == _WRENCH:
            ((quantity, channels),) = parts.items()
            numbers = dict(zip(channels, values[quantity][row].tolist(), strict=True))
            vector = types["geometry_msgs/msg/Vector3"]
            force = vector(x=numbers["fx"], y=numbers["fy"], z=numbers["fz"])
            torque = vector(x=numbers["mx"], y=numbers["my"], z=numbers["mz"])
            wrench = types["geometry_msgs/msg/Wrench"](force=force, torque=torque)
            yield types[_WRENCH](header=head, wrench=wrench)
            continue
        fields = {
            field: values[name][row] if name in values else empty
            for field, name in JOINT_FIELDS.items()
        }
        yield types[_JOINTS](header=head, name=parts["position"], **fields)
