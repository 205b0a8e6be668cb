"""MAT files up to version 7, Parquet files and ROS bags, read in a separate process.

A damaged file can only crash that process. Memory that Arrow retains for a long log is released
when the process ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import LogError
from tauloop.logs.files.unpacking import most_unpacked, require_ratio

_SCRIPT = Path(__file__).with_name("reading_process.py")
#: A process that has transferred more bytes in one answer is ended, because it retains memory.
LARGE_ANSWER = 4_000_000
#: Maximum number of idle processes kept for the next file.
MAX_IDLE_PROCESSES = 4
_EXPORT_ADVICE = {
    "MAT": "save the log again in MATLAB with `save(name, '-v7')`",
    "Parquet": "export the log again",
    "ROS bag": "copy the bag again",
}
#: Repair of damaged bags by file extension; "" for folders.
_REPAIR_ADVICE = {
    ".mcap": "repair it: `mcap recover FILE -o NEW.mcap` (the command of the MCAP project)",
    ".db3": "repair it: `sqlite3 FILE .recover | sqlite3 NEW.db3`",
    ".bag": "repair it: `rosbag reindex FILE` (of ROS 1)",
    "": "repair its files (`mcap recover`, `sqlite3 FILE .recover`) and then its metadata: `ros2 bag reindex FOLDER`",
}


def mat_columns(path: Path) -> dict[str, np.ndarray]:
    """Return the numeric columns of a MAT file by name.

    Raises:
        LogError: the file is damaged, or its content would fill the memory.
    """
    head, columns = _answer("MAT", path, "mat", most_unpacked(path))
    if "holds" in head:
        require_ratio(path, head["holds"])
    return columns


def parquet_schema(path: Path) -> dict[str, Any]:
    """Return `names` and `kinds` of a Parquet file's columns, and its number of `rows`.

    Raises:
        LogError: the file is damaged.
    """
    return _answer("Parquet", path, "parquet schema")[0]


def parquet_columns(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return columns of a Parquet file as numbers by name; nulls are NaN.

    Raises:
        LogError: the file is damaged.
    """
    return _answer("Parquet", path, "parquet", list(names))[1]


def bag_topics(path: Path) -> dict[str, Any]:
    """Return the `topics` of a bag with their fields, and the `contents` of a Tauloop log.

    Raises:
        LogError: the file is damaged, or would fill the memory.
    """
    return _answer("ROS bag", path, "bag topics", most_unpacked(path))[0]


def bag_columns(path: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Return values and message numbers of fields, and stamps and times of receipt (ns), by column.

    Raises:
        LogError: the file is damaged, or would fill the memory.
    """
    return _answer("ROS bag", path, "bag", most_unpacked(path), wanted)[1]


def _answer(
    kind: str, path: Path, reader: str, *request: Any
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the reader process's answer for a file, and the file's columns by name.

    A process is taken from the idle ones for one exchange. It is returned to them only after a
    complete answer. Therefore an exception that interrupts an exchange (Ctrl-C or a time limit,
    raised in signal handlers) cannot mix its answer with the next request. A handler or thread that
    reads a file in the meantime uses another process.
    """
    idle = _IDLE.setdefault(os.getpid(), [])  # a fork must not use its parent's processes
    ended = 0
    for _ in range(2):  # try again with a new process: the first may have ended for another reason
        try:
            process = idle.pop()
        except IndexError:
            process = _ReadingProcess()
        try:
            head, columns = process.answer(reader, str(path.resolve()), *request)
        except _ProcessEnded:
            ended = process.end()
            continue
        except BaseException:
            process.end()
            raise
        if (
            len(idle) < MAX_IDLE_PROCESSES
            and sum(column.nbytes for column in columns.values()) <= LARGE_ANSWER
        ):
            idle.append(process)
        else:
            process.end()
        if "error" in head:
            raise _refused(kind, path, head["error"])
        return head, columns
    raise _refused(kind, path, f"it crashes the reader process (exit status {ended})")


class _ProcessEnded(Exception):
    """The reader process has ended, or its answer belongs to another request."""


class _ReadingProcess:
    """A reader process, which handles one exchange at a time."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._requests = 0
        self._process: subprocess.Popen[bytes] | None = None
        command = [sys.executable, "-P", str(_SCRIPT)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def answer(self, *request: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the answer of the process, and columns by name.

        Raises:
            _ProcessEnded: the process has ended, or answers another request. Exceptions of signal
                handlers, which may be OSError or ValueError too, are not caught.
        """
        assert self._process is not None
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        self._requests += 1
        try:
            into.write(json.dumps([self._requests, *request]).encode() + b"\n")
            into.flush()
        except BrokenPipeError as error:
            raise _ProcessEnded from error
        content: dict[str, Any] = {}
        columns: dict[str, np.ndarray] = {}
        while not content.get("end"):
            head = self._head(out.readline())
            if "column" not in head:
                content |= head
                continue
            column = np.empty(head["size"], head["kind"])
            if out.readinto(memoryview(column).cast("B")) != column.nbytes:  # type: ignore[attr-defined]
                raise _ProcessEnded
            columns[head["column"]] = column
        return content, columns

    def _head(self, line: bytes) -> dict[str, Any]:
        """Return a line of the answer as data; raise an error if it belongs to another request."""
        try:
            head = json.loads(line)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise _ProcessEnded from error
        if not isinstance(head, dict) or head.get("request") != self._requests:
            raise _ProcessEnded
        return head

    def end(self) -> int:
        """End the process and return its exit status."""
        if self._process is None:
            return 0
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # a request may not have been read
                    stream.close()
        return self._process.wait()

    def __del__(self) -> None:
        """End the process, unless this process is a fork of the one that started it."""
        if os.getpid() == self._owner:
            self.end()


#: Idle processes by the id of the process that started them.
_IDLE: dict[int, list[_ReadingProcess]] = {}


def _refused(kind: str, path: Path, what: str) -> LogError:
    remedy = _EXPORT_ADVICE[kind]
    if kind == "ROS bag":
        remedy += f", or {_REPAIR_ADVICE['' if path.is_dir() else path.suffix.lower()]}"
    return LogError.of("", f"not a readable {kind} file: {what}", remedy, file=str(path))
