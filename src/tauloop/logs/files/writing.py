"""Writing of complete logs: CSV and Parquet with units in the headers, and ROS bags."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError, LogError, Problem, Problems
from tauloop.common.files import write_file, write_folder
from tauloop.logs.files.bag_writing import (
    BAG_FOLDER_ENDING,
    STORAGE_OF_ENDING,
    write_bag,
    write_bag_folder,
)
from tauloop.logs.log import TIME, units_of
from tauloop.logs.tables import require_parquet

if TYPE_CHECKING:
    import xarray as xr


def write_log(path: str | Path, log: xr.Dataset) -> Path:
    """Write a log so that ``read_log(path)`` returns the same numbers to the last bit.

    Stamps of bags are exact to 1 ns.

    The file is written next to its final path and then renamed: an interrupted run leaves no
    partial file.

    Args:
        path: ends in ``.csv``, ``.csv.gz`` or ``.parquet``; in ``.mcap`` or ``.db3`` for a ROS 2
            bag; or in ``.rosbag2`` (``.db3.rosbag2`` for SQLite) for a new folder with a bag.
        log: a log as from `read_log`.

    Returns:
        The path.

    Raises:
        LogError: another ending, a log without samples or channels, numbers that are not finite, or
            missing pyarrow or rosbags.
        InputError: an argument has another type, the folder is missing or cannot be written, or a
            bag exists already.
    """
    _check_types(path, log)
    path = Path(path)
    _check(path, log)
    headers = [f"{name} [{units_of(log[name])}]" for name in (TIME, *log.data_vars)]
    values = np.stack([log[name].to_numpy() for name in (TIME, *log.data_vars)], axis=1)
    if path.name.lower().endswith(".parquet"):
        write_file(path, _parquet_writer(str(path), headers, values))
    elif path.suffix.lower() == BAG_FOLDER_ENDING:
        write_folder(path, lambda temporary: write_bag_folder(path, temporary, log))
    elif path.suffix.lower() in STORAGE_OF_ENDING:
        write_file(path, lambda temporary: write_bag(path, temporary, log))
    else:
        rows = [",".join(headers), *(",".join(map(repr, row)) for row in values.tolist())]
        text = ("\n".join(rows) + "\n").encode()
        # mtime=0: the same log gives the same bytes
        data = (
            gzip.compress(text, compresslevel=6, mtime=0)
            if path.name.lower().endswith(".gz")
            else text
        )
        write_file(path, lambda temporary: temporary.write_bytes(data))
    return path


def unknown_ending(path: str | Path) -> Problem | None:
    """Return the problem of a log file's ending, if there is one."""
    if (
        Path(path)
        .name.lower()
        .endswith((".csv", ".csv.gz", ".parquet", *STORAGE_OF_ENDING, BAG_FOLDER_ENDING))
    ):
        return None
    return Problem(
        where="path",
        what=f"logs cannot be written with the ending {Path(path).suffix!r}",
        remedy="use .csv, .csv.gz or .parquet, or .mcap, .db3 or .rosbag2 (a folder) for a bag of ROS 2",
        file=str(path),
    )


def _check_types(path: object, log: object) -> None:
    """Reject arguments of other types by name, such as swapped ones."""
    problems = Problems()
    if not isinstance(path, str | Path):
        remedy = "give the path of the file to write, then the log"
        problems.add("path", f"is of type {type(path).__name__}", remedy)
    if not hasattr(log, "data_vars"):
        remedy = "give an xarray.Dataset, as from `read_log`"
        problems.add("log", f"is of type {type(log).__name__}", remedy)
    InputError.raise_if_any(problems)


def _check(path: Path, log: xr.Dataset) -> None:
    problems = [problem] if (problem := unknown_ending(path)) else []
    if not log.data_vars or log.sizes.get(TIME, 0) == 0:
        problems.append(
            Problem(
                where="log", what="no channels or no samples", remedy="write a log that has some"
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
            what = f"{bad} of {variable.size} samples are not finite"
            problems.append(Problem(where=str(name), what=what, remedy="leave those samples out"))
    LogError.raise_if_any(problems)


def _parquet_writer(file: str, headers: list[str], values: np.ndarray) -> Callable[[Path], object]:
    require_parquet(file)
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({header: values[:, k] for k, header in enumerate(headers)})
    return lambda temporary: pyarrow.parquet.write_table(table, temporary)
