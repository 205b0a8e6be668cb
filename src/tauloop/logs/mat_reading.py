"""MAT files up to version 7, by SciPy in a process of its own, which a damaged file may end."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
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
    reader = _reader(os.getpid())  # a fork has none of its parent's
    try:
        found = reader.columns(path)
    except (OSError, ValueError):
        _reader.cache_clear()
        what = f"not a readable MAT file: it ends the process that reads it ({reader.ended()})"
        raise _refused(path, what) from None
    except KeyboardInterrupt:
        _reader.cache_clear()  # it may be in the middle of an answer
        raise
    return found


class _Reader:
    """The process that reads, kept for the next file."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(_SCRIPT)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=quiet)

    def columns(self, path: Path) -> dict[str, np.ndarray]:
        """As `mat_columns`; OSError or ValueError where the process is gone."""
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
            dtype = np.dtype(kind)
            found[name] = np.frombuffer(out.read(size * dtype.itemsize), dtype)
        return found

    def ended(self) -> str:
        """How the process ended."""
        self._process.kill()
        return f"exit status {self._process.wait()}"

    def __del__(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@functools.lru_cache(maxsize=1)
def _reader(process: int) -> _Reader:
    return _Reader()


def _refused(path: Path, what: str) -> LogError:
    remedy = "save the log again in MATLAB with `save(name, '-v7')`"
    return LogError(Problem(where="", what=what, remedy=remedy, file=str(path)))
