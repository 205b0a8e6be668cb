"""MAT files up to version 7, by SciPy in a process of its own, which a damaged file may end."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from tauloop.errors import LogError, Problem
from tauloop.logs.unpacking import most_unpacked, require_ratio

_SCRIPT = Path(__file__).with_name("mat_process.py")


def mat_columns(path: Path) -> dict[str, np.ndarray]:
    """Numeric columns of a MAT file by name.

    Raises:
        LogError: it is damaged, or would fill the memory.
    """
    ended = 0
    for _ in range(2):  # once more with a new process: the first may have been ended by something else
        reader = _reader(os.getpid())  # a fork has none of its parent's
        try:
            return reader.columns(path)
        except (OSError, ValueError, EOFError):
            ended = reader.end()
            _reader.cache_clear()
        except KeyboardInterrupt:
            _reader.cache_clear()  # it may be in the middle of an answer
            raise
    raise _refused(path, f"not a readable MAT file: it ends the process that reads it (exit status {ended})")


class _Reader:
    """The process that reads, kept for the next file."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(_SCRIPT)]
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def columns(self, path: Path) -> dict[str, np.ndarray]:
        """As `mat_columns`; OSError, ValueError or EOFError where the process is gone."""
        into, out = self._process.stdin, self._process.stdout
        assert into is not None
        assert out is not None
        into.write(json.dumps([str(path.resolve()), most_unpacked(path)]).encode() + b"\n")
        into.flush()
        head = json.loads(out.readline())
        if "holds" in head:
            require_ratio(path, head["holds"])
        if "error" in head:
            raise _refused(path, f"not a readable MAT file: {head['error']}")
        found = {}
        for name, kind, size in head["columns"]:
            found[name] = np.frombuffer(out.read(size * np.dtype(kind).itemsize), kind)
            if len(found[name]) != size:
                raise EOFError(name)
        return found

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


@functools.lru_cache(maxsize=1)
def _reader(process: int) -> _Reader:
    return _Reader()


def _refused(path: Path, what: str) -> LogError:
    remedy = "save the log again in MATLAB with `save(name, '-v7')`"
    return LogError(Problem(where="", what=what, remedy=remedy, file=str(path)))
