"""MAT files up to version 7, Parquet files and bags of ROS, by SciPy, Arrow and rosbags in a process of its own.

A damaged file may end that process; and what Arrow keeps of a long log goes with it.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.errors import LogError
from tauloop.logs.unpacking import most_unpacked, require_ratio

_SCRIPT = Path(__file__).with_name("reading_process.py")
#: A process that has handed over so many bytes is ended: it keeps memory of what it read.
LARGE = 4_000_000
#: Threads whose processes are kept.
MOST = 4
_AGAIN = {
    "MAT": "save the log again in MATLAB with `save(name, '-v7')`",
    "Parquet": "export the log again",
    "bag of ROS": "copy the bag again, or repair it: `ros2 bag reindex`",
}


def mat_columns(path: Path) -> dict[str, np.ndarray]:
    """Numeric columns of a MAT file by name.

    Raises:
        LogError: it is damaged, or would fill the memory.
    """
    head, columns = _answer("MAT", path, "mat", most_unpacked(path))
    if "holds" in head:
        require_ratio(path, head["holds"])
    return columns


def parquet_schema(path: Path) -> dict[str, Any]:
    """Of a Parquet file: `names` and `kinds` of its columns, and its number of `rows`.

    Raises:
        LogError: it is damaged.
    """
    return _answer("Parquet", path, "parquet schema")[0]


def parquet_columns(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Numbers of columns of a Parquet file by name; nulls are NaN.

    Raises:
        LogError: it is damaged.
    """
    return _answer("Parquet", path, "parquet", list(names))[1]


def bag_topics(path: Path) -> dict[str, Any]:
    """Of a bag: `topics` with their fields, and the `contents` of a log that Tauloop wrote.

    Raises:
        LogError: it is damaged, or would fill the memory.
    """
    return _answer("bag of ROS", path, "bag topics", most_unpacked(path))[0]


def bag_columns(path: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, np.ndarray]:
    """Of fields by topic: values and the rows of their messages; of the topics stamps and times of receipt, ns.

    Raises:
        LogError: it is damaged, or would fill the memory.
    """
    return _answer("bag of ROS", path, "bag", most_unpacked(path), wanted)[1]


def _answer(kind: str, path: Path, reader: str, *request: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is said of a file, and its columns by name."""
    ended = 0
    for _ in range(2):  # once more with a new process: the first may have been ended by something else
        # a fork has none of its parent's, and threads would take each other's answers
        process = _reader(os.getpid(), threading.get_ident())
        try:
            head, columns = process.answer(reader, str(path.resolve()), *request)
        except (OSError, ValueError, EOFError):
            ended = process.end()
            _reader.cache_clear()
        except KeyboardInterrupt:
            _reader.cache_clear()  # it may be in the middle of an answer
            raise
        else:
            if sum(column.nbytes for column in columns.values()) > LARGE:
                process.end()
                _reader.cache_clear()
            if "error" in head:
                raise _refused(kind, path, head["error"])
            return head, columns
    raise _refused(kind, path, f"it ends the process that reads it (exit status {ended})")


class _ReadingProcess:
    """The process that reads, kept for the next file."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(_SCRIPT)]
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def answer(self, *request: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What is said, and columns by name; OSError, ValueError or EOFError where the process is gone."""
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(json.dumps(request).encode() + b"\n")
        into.flush()
        content: dict[str, Any] = {}
        columns: dict[str, np.ndarray] = {}
        while not content.get("end"):
            head = json.loads(out.readline())
            if "column" not in head:
                content |= head
                continue
            column = np.empty(head["size"], head["kind"])
            if out.readinto(memoryview(column).cast("B")) != column.nbytes:  # type: ignore[attr-defined]
                raise EOFError(head["column"])
            columns[head["column"]] = column
        return content, columns

    def end(self) -> int:
        """End the process; its exit status."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was written and never read
                    stream.close()
        return self._process.wait()

    def __del__(self) -> None:
        """End the process, unless it is that of the process that this one is a fork of."""
        if os.getpid() == self._owner:
            self.end()


@functools.lru_cache(maxsize=MOST)
def _reader(process: int, thread: int) -> _ReadingProcess:
    return _ReadingProcess()


def _refused(kind: str, path: Path, what: str) -> LogError:
    return LogError.of("", f"not a readable {kind} file: {what}", _AGAIN[kind], file=str(path))
