"""Reader of MAT and Parquet files and ROS bags for another process, started by `reading_apart`.

A damaged file can crash SciPy's reader and the process with it, and Arrow retains unused memory.
Therefore files are read in this separate process. A request is a line of JSON with its number, the
operation, the path and further arguments. The answer consists of lines of JSON with the number of
the request; the values of a column follow the line that names it, and the last line has the key
`end`. Tauloop is not imported, so that the process starts quickly.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

#: Number of rows of a Parquet file to unpack at a time.
ROWS_AT_ONCE = 65_536
#: Size of the read buffer of a Parquet file, bytes.
BUFFER = 65_536
#: Memory in addition to the unpacked size of the file, bytes.
READER_MEMORY = 1_000_000_000
#: Number of Arrow's units of time in a second.
UNITS_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

Answer = Iterator[tuple[dict[str, Any], np.ndarray | None]]


def mat(path: str, most: float) -> Answer:
    """Yield the numeric columns of a MAT file, unless they need more bytes than allowed."""
    import scipy.io

    with warnings.catch_warnings():
        warnings.simplefilter("error", scipy.io.matlab.MatReadWarning)
        holds = sum(8 * math.prod(shape) for _, shape, _ in scipy.io.whosmat(path))
        if holds > most:
            yield {"holds": holds}, None
            return
        with bounded(most):  # the listed sizes do not include fields of structures
            content = scipy.io.loadmat(path, simplify_cells=True)
    for name, array in _columns("", content):
        yield {"column": name}, array


def _columns(prefix: str, content: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield vectors by name, matrix columns by number, and fields of structures with dots."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _columns(f"{name}.", value)
        elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iuf":
            if value.ndim == 1:
                yield name, value
            elif value.ndim == 2:
                yield from ((f"{name}[{k}]", value[:, k]) for k in range(value.shape[1]))


def parquet_schema(path: str) -> Answer:
    """Yield names and types of a Parquet file's columns, and its number of rows."""
    file = _parquet(path)
    schema = file.schema_arrow
    yield (
        {
            "names": list(schema.names),
            "kinds": [str(kind) for kind in schema.types],
            "rows": file.metadata.num_rows,
        },
        None,
    )


def parquet(path: str, names: list[str]) -> Answer:
    """Yield columns of a Parquet file as numbers, read in parts because Arrow keeps copies."""
    file = _parquet(path)
    for name in names:
        values, first = np.full(file.metadata.num_rows, np.nan), 0
        for part in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=[name], use_threads=False):
            values[first : first + part.num_rows] = _numbers(part.column(name))
            first += part.num_rows
        if first != len(values):
            raise ValueError(f"{name!r} has {first} rows, but the header states {len(values)}")
        yield {"column": name}, values


def _numbers(column: Any) -> np.ndarray:
    """Return a column of Arrow as numbers, times in s; nulls are NaN.

    Arrow imports pandas for its own conversion, which takes longer than reading a long log. Columns
    of plain numbers do not need it.
    """
    import pyarrow

    if pyarrow.types.is_temporal(column.type):
        return _numbers(column.cast(pyarrow.int64())) / UNITS_PER_SECOND[column.type.unit]
    is_plain = pyarrow.types.is_floating(column.type) or pyarrow.types.is_integer(column.type)
    if is_plain and not column.null_count:
        return np.from_dlpack(column)
    return np.asarray(column.to_numpy(zero_copy_only=False).astype(float))


def _parquet(path: str) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)


def bag_topics(path: str, most: float) -> Answer:
    """Yield the topics of a bag (`bag_process`), and its truncated files (`cut_mcap`)."""
    with bounded(most), _sibling_module("cut_mcap").readable(path) as (readable_path, cuts):
        for head, _ in _sibling_module("bag_process").topics(readable_path):
            yield head | {"cuts": cuts}, None


def bag(path: str, most: float, wanted: dict[str, list[str]]) -> Answer:
    """Yield the columns of a bag (`bag_process`); truncated files are repaired (`cut_mcap`)."""
    with bounded(most), _sibling_module("cut_mcap").readable(path) as (readable_path, _):
        yield from _sibling_module("bag_process").columns(readable_path, wanted)


@functools.cache
def _sibling_module(name: str) -> Any:
    """Return a module of this script's folder, which is not on the import path."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def bounded(most: float) -> Iterator[None]:
    """Limit memory and file size of the process to what a log of `most` bytes needs."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        yield
        return
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    limits: dict[int, int] = {
        resource.RLIMIT_AS: pages * resource.getpagesize() + int(most) + READER_MEMORY,
        resource.RLIMIT_FSIZE: int(most) + READER_MEMORY,
    }
    before = {kind: resource.getrlimit(kind) for kind in limits}
    for kind, limit in limits.items():
        with suppress(ValueError, OSError):  # a lower limit is already set
            resource.setrlimit(kind, (limit, before[kind][1]))
    try:
        yield
    finally:
        for kind, both in before.items():
            resource.setrlimit(kind, both)


READERS: dict[str, Callable[..., Answer]] = {
    "mat": mat,
    "parquet schema": parquet_schema,
    "parquet": parquet,
    "bag topics": bag_topics,
    "bag": bag,
}


def main() -> None:
    """Answer requests until the parent process ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # output of libraries would mix with the answer
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin.buffer:
        number, reader, *request = json.loads(line)
        last: dict[str, object] = {"request": number, "end": True}
        try:
            for head, array in READERS[reader](*request):
                if array is not None:
                    head |= {"kind": array.dtype.str, "size": len(array)}
                out.write(json.dumps(head | {"request": number}).encode() + b"\n")
                if array is not None:
                    out.write(np.ascontiguousarray(array).data)
        except MemoryError:
            last["error"] = "it unpacks to more memory than any log of its size needs"
        except Exception as error:  # a damaged binary file can fail in any way inside the libraries
            last["error"] = (str(error) or type(error).__name__).splitlines()[0]
        out.write(json.dumps(last).encode() + b"\n")
        out.flush()


if __name__ == "__main__":
    main()
