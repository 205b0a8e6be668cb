"""Writing of logs: CSV and Parquet with units in the headers, and ROS bags."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, LogError, Problem, Problems
from tauloop.common.files import write_file, write_folder
from tauloop.logs.files.bag_writing import (
    BAG_FOLDER_EXTENSION,
    STORAGE_OF_EXTENSION,
    write_bag,
    write_bag_folder,
)
from tauloop.logs.log import TIME, units_of
from tauloop.logs.tables import require_parquet

if TYPE_CHECKING:
    import xarray as xr


def write_log(path: str | Path, log: xr.Dataset) -> Path:
    """Write a log so that ``read_log(path)`` returns exactly the same numbers.

    Stamps in bags are rounded to 1 ns. The file is written next to its final path and then renamed,
    so an interrupted run leaves no partial file.

    Args:
        path: file to write. Its extension determines the format: ``.csv``, ``.csv.gz`` or
            ``.parquet``; ``.mcap`` or ``.db3`` for a ROS 2 bag; ``.rosbag2`` (``.db3.rosbag2`` for
            SQLite) for a new bag folder.
        log: a log as from `read_log`.

    Returns:
        The path.

    Raises:
        LogError: the file extension is not supported, the log has no samples or channels, a
            variable has no unit, numbers are not finite, or pyarrow or rosbags is not installed.
        InputError: an argument has another type, the folder is missing or cannot be written, or the
            bag already exists.
    """
    _check_types(path, log)
    path = Path(path)
    _check(path, log)
    headers = [f"{name} [{units_of(log[name])}]" for name in (TIME, *log.data_vars)]
    values = np.stack([log[name].to_numpy() for name in (TIME, *log.data_vars)], axis=1)
    if path.name.lower().endswith(".parquet"):
        write_file(path, _parquet_writer(str(path), headers, values))
    elif path.suffix.lower() == BAG_FOLDER_EXTENSION:
        write_folder(path, lambda temporary: write_bag_folder(path, temporary, log))
    elif path.suffix.lower() in STORAGE_OF_EXTENSION:
        write_file(path, lambda temporary: write_bag(path, temporary, log))
    else:
        rows = [",".join(headers), *(",".join(map(repr, row)) for row in values.tolist())]
        text = ("\n".join(rows) + "\n").encode()
        # with mtime=0, equal logs give equal bytes
        is_compressed = path.name.lower().endswith(".gz")
        data = gzip.compress(text, compresslevel=6, mtime=0) if is_compressed else text
        write_file(path, lambda temporary: temporary.write_bytes(data))
    return path


def unknown_extension(path: str | Path) -> Problem | None:
    """Return the problem of a log file's extension, if it is not supported."""
    if (
        Path(path)
        .name.lower()
        .endswith((".csv", ".csv.gz", ".parquet", *STORAGE_OF_EXTENSION, BAG_FOLDER_EXTENSION))
    ):
        return None
    return Problem(
        where="path",
        what=f"the file extension {Path(path).suffix!r} is not supported for logs",
        remedy="use .csv, .csv.gz or .parquet, or .mcap, .db3 or .rosbag2 (a folder) for a ROS 2 bag",
        file=str(path),
    )


def _check_types(path: object, log: object) -> None:
    """Raise an error if arguments have the wrong types, for example because they are swapped."""
    problems = Problems()
    if not isinstance(path, str | Path):
        remedy = "give the path of the file to write, then the log"
        problems.add("path", f"is of type {type(path).__name__}", remedy)
    if not hasattr(log, "data_vars"):
        remedy = "give an xarray.Dataset, as from `read_log`"
        problems.add("log", f"is of type {type(log).__name__}", remedy)
    InputError.raise_if_any(problems)


def _check(path: Path, log: xr.Dataset) -> None:
    problems = [problem] if (problem := unknown_extension(path)) else []
    if not log.data_vars or log.sizes.get(TIME, 0) == 0:
        problems.append(
            Problem(
                where="log", what="has no channels or no samples", remedy="give a log with samples"
            )
        )
    for name, variable in log.variables.items():
        if units_of(variable) is None:
            problems.append(
                Problem(
                    where=str(name), what="has no unit", remedy="set attrs['units'] to its SI unit"
                )
            )
        bad = int(np.sum(~np.isfinite(variable.to_numpy())))
        if bad:
            what = f"{bad} of {counted(variable.size, 'sample')} {'is' if bad == 1 else 'are'} not finite"
            problems.append(Problem(where=str(name), what=what, remedy="remove these samples"))
    LogError.raise_if_any(problems)


def _parquet_writer(file: str, headers: list[str], values: np.ndarray) -> Callable[[Path], object]:
    require_parquet(file)
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({header: values[:, k] for k, header in enumerate(headers)})
    return lambda temporary: pyarrow.parquet.write_table(table, temporary)
