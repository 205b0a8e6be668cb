"""Opening of log files by their extensions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from tauloop.common.errors import LogError
from tauloop.common.files import unreadable
from tauloop.logs.files.bags import BagTable, is_bag
from tauloop.logs.files.hdf5 import hdf5_columns
from tauloop.logs.tables import (
    ArrayTable,
    CsvTable,
    FrameTable,
    LogTable,
    MatTable,
    ParquetTable,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas as pd

    #: A table in memory.
    TableFrame: TypeAlias = pd.DataFrame
else:

    class _FrameType(type):
        """A type that recognizes a `pandas.DataFrame`, because importing pandas is slow."""

        def __instancecheck__(cls, value: object) -> bool:
            """Return whether a value is a `pandas.DataFrame`."""
            return is_frame(value)

    class TableFrame(metaclass=_FrameType):
        """A `pandas.DataFrame` at run time, with which arguments of functions are checked."""

        in_words = "a pandas.DataFrame"


#: Extensions of log files, for messages; ROS bags may also be folders.
ENDINGS = ".csv, .csv.gz, .parquet, .mat, .h5, .hdf5, .mcap, .db3 or .bag"


def is_frame(source: Any) -> TypeGuard[pd.DataFrame]:
    """Return whether a log is a `pandas.DataFrame`; importing pandas is slow."""
    return hasattr(source, "iloc") and hasattr(source, "columns")


def open_table(path: str | Path | pd.DataFrame, between: str | None = None) -> LogTable:
    """Open a file by its extension, one of `ENDINGS`, or a rosbag2 folder.

    Args:
        path: the file or folder; or a table in memory.
        between: for a bag, the interpolation between messages of a topic, a name in
            `time_base.INTERPOLATIONS`.

    Returns:
        The open table.

    Raises:
        LogError: the file is missing, empty, damaged, or not a log file.
    """
    if is_frame(path):
        return FrameTable(path)
    path = Path(path)
    if is_bag(path) and (path.is_dir() or unreadable(path) is None):
        return BagTable(path, between or "linear")
    if wrong := unreadable(path):
        raise LogError.of("", *wrong, file=str(path))
    if between is not None:
        what = "all columns of the file have the same times, so there is no interpolation"
        raise LogError.of(
            "between", what, "omit `between`; it only applies to ROS bags", file=str(path)
        )
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return CsvTable(path)
    if name.endswith(".parquet"):
        return ParquetTable(path)
    if name.endswith(".mat"):
        return MatTable(path)
    if name.endswith((".h5", ".hdf5")):
        return ArrayTable(str(path), *hdf5_columns(path))
    what = f"the file extension {path.suffix!r} is not supported for logs"
    raise LogError.of("", what, f"use {ENDINGS}", file=str(path))
