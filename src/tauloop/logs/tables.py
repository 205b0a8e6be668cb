"""Tables of numbers in CSV, Parquet and MAT files with a common interface, and their faults."""

from __future__ import annotations

import csv
import io
import math
import re
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import LogError
from tauloop.logs.checks.findings import LISTED_PER_KIND, Findings
from tauloop.logs.files.csv_text import (
    DELIMITERS,
    as_utf8,
    delimiter_of,
    has_decimal_comma,
    is_number,
    with_decimal_points,
)
from tauloop.logs.files.hdf5 import hdf5_columns
from tauloop.logs.files.reading_apart import mat_columns, parquet_columns, parquet_schema
from tauloop.logs.files.unpacking import require_ratio, unpacked
from tauloop.mechanism.description.units import si_unit

if TYPE_CHECKING:
    import pandas as pd

_HDF5_SIGNATURE = b"\x89HDF"
#: Arrow types of numbers, or of dictionaries of numbers.
_NUMERIC = re.compile(
    r"(dictionary<values=)?(u?int\d+|halffloat|float|double|decimal\d*\(.*\))(, indices=.*>)?"
)
#: Arrow types of times: the number of units of a time.
_TIME_KIND = re.compile(r"(timestamp|duration)\[(s|ms|us|ns)(, tz=.+)?\]")
#: First line by which Excel's CSV files state their delimiter.
_DELIMITER_LINE = re.compile(r'"?sep=.?"?', re.ASCII)
#: Maximum number of lines at the start of a text in which the column names are searched.
MAX_PREAMBLE_LINES = 50
_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:.*)?", re.ASCII)
_KIND_NOT_FINITE = "numbers that are not finite"
_KIND_EMPTY = "empty cells"
_KIND_BEYOND = "numbers that are too large"
#: Kind of findings for dropped messages; they are interpolated only if gaps are filled.
KIND_DROPPED = "dropped messages"
#: Largest plausible measured number; squares and products of larger numbers overflow.
MAX_MEASURED_NUMBER = 1e100
#: Kinds of findings for cells without a number; `LogTable.numbers` returns them as not finite.
MISSING_KINDS = (_KIND_NOT_FINITE, _KIND_EMPTY, KIND_DROPPED)
_BEYOND = (
    f"exceeds {MAX_MEASURED_NUMBER:.0e}, more than any sensor measures",
    "check the column, its unit and exponents",
)
_NOT_FINITE_REMEDY = (
    "the sensor or recorder gave no value there; repair the log or remove these rows"
)


class LogTable(ABC):
    """A file with named columns of numbers.

    Attributes:
        file: file name for messages.
        names: column names without units.
        units: unit text of each column, empty if the file specifies none.
        has_names: whether the file has column names; otherwise they are 1, 2, ...
        may_be_late: whether time stamps are times of receipt, which may be late and uneven.
        arrival: times of receipt (N,), s, by the recorder's clock; None if unknown.
        times: indices of columns with times whose unit the file's type states; their numbers are s.
        notes: texts on findings that do not prevent the use of the log.
    """

    has_names = True
    may_be_late = False
    arrival: np.ndarray | None = None
    times: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def __init__(self, file: str, headers: Sequence[str], *, brackets_are_units: bool) -> None:
        """Parse the headers.

        Args:
            file: file name for messages.
            headers: text of the header of each column.
            brackets_are_units: whether ``q1 [deg]`` is the column q1 in degrees, as in CSV and
                Parquet.
        """
        self.file = file
        parts = [
            _name_and_unit(header) if brackets_are_units else (header.strip(), "")
            for header in headers
        ]
        self.names = tuple(name for name, _ in parts)
        self.units = tuple(unit for _, unit in parts)

    @abstractmethod
    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns (N, len(columns)); report numbers that are not finite."""

    def channels(self) -> list[tuple[str, str, str]]:
        """Return (quantity, channel, column) for column names of the form ``quantity.channel``."""
        parts = [(name.partition("."), name) for name in self.names]
        return [
            (quantity, channel, name)
            for (quantity, _, channel), name in parts
            if quantity and channel
        ]

    def clock(self, columns: Sequence[str]) -> str | None:
        """Return the default time column for these columns."""
        return None

    def line(self, row: int) -> int | None:
        """Return the line number of a row (from zero) in the file; None if the file has no lines."""
        return None

    def _report_not_finite(
        self, values: np.ndarray, columns: Sequence[int], findings: Findings
    ) -> None:
        if _are_sound(values):
            return
        is_finite = np.isfinite(values)
        is_beyond = is_finite & ~(np.abs(values) <= MAX_MEASURED_NUMBER)
        for kind, what, remedy, is_bad in (
            (_KIND_NOT_FINITE, "is not a finite number", _NOT_FINITE_REMEDY, ~is_finite),
            (_KIND_BEYOND, *_BEYOND, is_beyond),
        ):
            bad = np.argwhere(is_bad)
            for row, column in bad[:LISTED_PER_KIND]:
                where = f"column {self.names[columns[column]]!r}"
                text = f"{values[row, column]} in row {row + 1} {what}"
                findings.add(kind, where, text, remedy, self.file)
            findings.count(kind, self.file, more=len(bad[LISTED_PER_KIND:]))


def _are_sound(values: np.ndarray) -> bool:
    """Return whether all numbers are finite and not too large, column by column to save memory."""
    return all(bool((np.abs(column) <= MAX_MEASURED_NUMBER).all()) for column in values.T)


def _name_and_unit(header: str) -> tuple[str, str]:
    """Return a column's name, and the text in brackets after it."""
    name, bracket, unit = header.strip().removesuffix("]").rpartition("[")
    if not bracket or not header.strip().endswith("]") or "]" in unit:
        return header.strip(), ""
    return name.rstrip(), unit.strip()


def _refused(
    file: str, what: str, remedy: str, *, where: str = "", line: int | None = None
) -> LogError:
    return LogError.of(where, what, remedy, file=file, line=line)


class CsvTable(LogTable):
    """A text file with comma, semicolon or tab as delimiter; # may start lines before the header.

    The header may be the last of these lines, as `numpy.savetxt` writes it. Without a header,
    columns are numbered from 1. Unambiguous decimal commas and Excel's ``sep=;`` are accepted.
    """

    def __init__(self, path: Path, names: Sequence[str] = ()) -> None:
        """Read the bytes and the header.

        Args:
            path: the file.
            names: column names of a text without a header.

        Raises:
            LogError: the file is not a UTF-8 text with column names and at least one sample, or the
                numbers of names and columns differ.
        """
        self._data = _text_bytes(path)
        self._delimiter = ","
        self._skipped = 0
        self._comment = ""
        with self._stream() as stream:
            header = next((line for line in iter(stream.readline, "") if self._is_header(line)), "")
        if not header:
            raise _refused(str(path), "the file has no header row", "export the log again")
        self._delimiter = delimiter_of(header)
        cells = next(csv.reader([header], delimiter=self._delimiter))
        self.first_row = tuple(cells)
        self.has_names = not all(is_number(cell) or has_decimal_comma(cell) for cell in cells)
        if names and len(cells) != len(names):
            columns = counted(len(cells), "column")
            what = f"the file has {columns} for {counted(len(names), 'name')}"
            raise _refused(str(path), what, "name every column", where="header")
        if names or not self.has_names:
            self._skipped -= 1
            names = names or self._commented_names(len(cells))
            self.has_names = bool(names)
            cells = list(names) or [str(k + 1) for k in range(len(cells))]
        self._data = with_decimal_points(self._data, self._skipped, self._delimiter)
        super().__init__(str(path), cells, brackets_are_units=True)
        first_row = next(self._rows(), None)
        if first_row is None:
            raise _refused(
                str(path), "the file has a header but no samples", "record or export the log again"
            )
        if self.has_names and not names:
            self._check_header(header, *first_row)
            if len(first_row[1]) == len(cells) + 1 and not first_row[1][-1].strip():
                # every row ends with a delimiter, but not the header
                super().__init__(str(path), [*cells, ""], brackets_are_units=True)

    def _check_header(self, header: str, line: int, first_row: Sequence[str]) -> None:
        """Reject a header row that does not name the columns.

        Args:
            header: text of the header row.
            line: line number of the row below it.
            first_row: cells of that row.

        Raises:
            LogError: there is other text above the header, there is a row of units below it, or
                columns are separated by spaces.
        """
        words = first_row[0].split() if len(first_row) == 1 else []
        is_spaced = len(words) > 1 and all(is_number(word) for word in words)
        if len(self.names) == 1 and is_spaced:
            what = f"columns are separated by spaces: {counted(len(words), 'number')} in one cell"
            remedy = "separate columns by commas, semicolons or tabs"
            raise _refused(self.file, what, remedy, line=line)
        if len(self.names) == 1 and self._delimiter not in header and self._has_wide_row():
            what = f"{header.strip()[:40]!r} is the first row, but it does not name the columns"
            remedy = "put # in front of every line above the column names, or remove these lines"
            raise _refused(self.file, what, remedy, where="header", line=line - 1)
        filled_cells = [cell.strip() for cell in first_row if cell.strip()]
        is_text = not any(is_number(cell) or has_decimal_comma(cell) for cell in filled_cells)
        if len(self.names) == len(first_row) > 1 and len(filled_cells) > 1 and is_text:
            what = f"the first row below the header has no numbers: {', '.join(filled_cells[:3])}"
            remedy = "remove the row; write units after the names, such as `position.motor [rad]`"
            raise _refused(self.file, what, remedy, line=line)

    def _has_wide_row(self) -> bool:
        """Return whether one of the first rows has several cells."""
        with self._stream() as stream:
            rows = [line for line in islice(stream, MAX_PREAMBLE_LINES) if line.strip()]
        return any(delimiter in row for row in rows for delimiter in DELIMITERS)

    def _stream(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self._data), encoding="utf-8-sig", newline="")

    def _is_header(self, line: str) -> bool:
        self._skipped += 1
        if self._skipped == 1 and _DELIMITER_LINE.fullmatch(line.strip()):
            return False
        if line.startswith("#"):
            self._comment = line
        return bool(line.strip()) and not line.startswith("#")

    def _commented_names(self, count: int) -> Sequence[str]:
        """Return the column names in the last comment above the samples; empty if there are none.

        Args:
            count: number of columns.
        """
        text = self._comment.lstrip("#").strip()
        names = next(csv.reader([text], delimiter=self._delimiter), [])
        is_header = len(names) == count > 1 and not any(map(is_number, names))
        return [name.strip() for name in names] if is_header else ()

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and cells of every row that is not blank."""
        with self._stream() as stream:
            for _ in range(self._skipped):
                stream.readline()
            reader = csv.reader(stream, delimiter=self._delimiter)
            for cells in reader:
                if cells:
                    yield self._skipped + reader.line_num, cells

    def line(self, row: int) -> int | None:
        """Return the line of a row. It is searched on each call, because only messages need it."""
        return next((line for index, (line, _) in enumerate(self._rows()) if index == row), None)

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns; a table with faults is read cell by cell to report the faults."""
        try:
            with self._stream() as stream:
                table = np.loadtxt(
                    stream,
                    delimiter=self._delimiter,
                    skiprows=self._skipped,
                    comments=None,
                    quotechar='"',
                    ndmin=2,
                )
        except ValueError:
            return self._cell_by_cell(columns, findings)
        chosen = table[:, columns] if table.shape[1] == len(self.names) else None
        if chosen is None or not _are_sound(chosen):
            return self._cell_by_cell(columns, findings)
        return chosen

    def _cell_by_cell(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        values = array("d")
        try:
            for line, cells in self._rows():
                if len(cells) != len(self.names):
                    count = counted(len(cells), "cell")
                    what = f"the row has {count}, but the header has {len(self.names)}"
                    remedy = (
                        "the recorder stopped or a delimiter is missing; repair or remove the row"
                    )
                    findings.add("rows of the wrong length", "row", what, remedy, self.file, line)
                    continue
                values.extend(
                    self._number(cells[column], column, line, findings) for column in columns
                )
        except csv.Error as error:
            findings.add("damaged text", "", str(error), "export the log again", self.file)
        return np.array(values).reshape(-1, len(columns))

    def _number(self, cell: str, column: int, line: int, findings: Findings) -> float:
        if is_number(cell) and abs(value := float(cell)) <= MAX_MEASURED_NUMBER:
            return value
        text, remedy = cell.strip(), _NOT_FINITE_REMEDY
        if not text:
            kind, what = _KIND_EMPTY, "the cell is empty"
        elif is_number(text) and math.isfinite(float(text)):
            kind, what, remedy = _KIND_BEYOND, f"{text} {_BEYOND[0]}", _BEYOND[1]
        elif is_number(text):
            kind, what = _KIND_NOT_FINITE, f"{text} is not a finite number"
        else:
            kind, what = "cells that are not numbers", f"{text[:40]!r} is not a number"
            remedy = "remove the text or do not map this column"
            if _DATE.fullmatch(text):
                remedy = "write times as seconds since the start of the recording"
            if has_decimal_comma(text):
                remedy = (
                    "export with a decimal point instead of a comma: here a comma may also "
                    "separate cells or thousands"
                )
        findings.add(kind, f"column {self.names[column]!r}", what, remedy, self.file, line)
        return math.nan


def _text_bytes(path: Path) -> bytes:
    try:
        data = unpacked(path) if path.name.lower().endswith(".gz") else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise _refused(
            str(path), f"cannot be read: {error}", "copy or export the file again"
        ) from None
    data = as_utf8(data)
    if b"\0" in data:
        raise _refused(
            str(path),
            f"it is not text: there is a null byte at offset {data.index(0)}",
            "export as CSV, or correct the file extension",
        )
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"it is not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise _refused(str(path), what, "save the file with UTF-8 encoding", line=line) from None
    return data


class ParquetTable(LogTable):
    """A Parquet file; needs pyarrow (``pip install 'tauloop[parquet]'``)."""

    def __init__(self, path: Path) -> None:
        """Read the schema.

        Raises:
            LogError: pyarrow is missing, or the file is damaged or has no samples.
        """
        require_parquet(str(path))
        schema = parquet_schema(path)
        self._headers, self._kinds, self._rows = schema["names"], schema["kinds"], schema["rows"]
        if self._rows == 0:
            what = (
                "the file has columns but no samples"
                if self._headers
                else "the file has no columns"
            )
            raise _refused(str(path), what, "record or export the log again")
        super().__init__(str(path), self._headers, brackets_are_units=True)
        times = (k for k, kind in enumerate(self._kinds) if _TIME_KIND.fullmatch(kind))
        self.times = frozenset(k for k in times if si_unit(self.units[k] or "s") == "s")
        self.units = tuple("s" if k in self.times else unit for k, unit in enumerate(self.units))

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns, times in s; nulls are reported and become NaN."""
        path = Path(self.file)
        require_ratio(path, 8 * self._rows * max(len(columns), 1))
        numeric = [
            column
            for column in dict.fromkeys(columns)
            if column in self.times or _NUMERIC.fullmatch(self._kinds[column])
        ]
        for column in dict.fromkeys(columns):
            if column not in numeric:
                where = f"column {self.names[column]!r}"
                what = f"contains {self._kinds[column]}, not numbers"
                remedy = "use another column or convert this one"
                findings.add("columns that are not numbers", where, what, remedy, self.file)
        loaded = parquet_columns(path, [self._headers[column] for column in numeric])
        values = np.full((len(columns), self._rows), np.nan)
        for column in numeric:
            values[np.equal(columns, column)] = loaded.pop(self._headers[column])
        rows = [row for row, column in enumerate(columns) if column in numeric]
        numeric_values = values if len(rows) == len(columns) else values[rows]
        self._report_not_finite(numeric_values.T, [columns[row] for row in rows], findings)
        return values.T


def require_parquet(file: str) -> None:
    """Raise an error if the package that reads and writes Parquet is missing.

    Raises:
        LogError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise _refused(
            file,
            "Parquet files need pyarrow, which is not installed",
            "pip install 'tauloop[parquet]'",
        )


class ArrayTable(LogTable):
    """Columns in memory, by name."""

    def __init__(
        self, file: str, columns: Mapping[str, np.ndarray], units: Mapping[str, str]
    ) -> None:
        """Store the columns.

        Raises:
            LogError: there are no columns.
        """
        if not columns:
            raise _refused(
                file, "there are no numeric vectors or matrices", "save the signals as arrays"
            )
        self._columns = columns
        super().__init__(file, list(columns), brackets_are_units=False)
        self.units = tuple(units.get(name, "") for name in columns)

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns, which must have the same length."""
        chosen = [self._columns[self.names[column]] for column in columns]
        lengths = {len(values) for values in chosen}
        if len(lengths) > 1:
            counts = ", ".join(
                f"{self.names[c]}: {len(v)}" for c, v in zip(columns, chosen, strict=True)
            )
            what = f"the variables have different numbers of samples ({counts})"
            findings.add(
                "counts that differ",
                "rows",
                what,
                "save only signals of one recording, with equal numbers of samples",
                self.file,
            )
            return np.empty((0, len(columns)))
        values = np.stack(chosen, axis=1).astype(float)
        self._report_not_finite(values, columns, findings)
        return values


class FrameTable(LogTable):
    """A `pandas.DataFrame` whose columns have the names and units of a CSV file's header.

    A named index is a column too. Columns of dates and times are times in s.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        """Store the columns.

        Raises:
            LogError: there are no columns, or no samples.
        """
        name = type(frame).__name__
        if frame.index.name is not None:
            frame = frame.reset_index()
        if not frame.size:
            raise _refused(name, "has no samples", "give a table with a row for each sample")
        super().__init__(name, [str(column) for column in frame.columns], brackets_are_units=True)
        self._frame = frame
        kinds = [str(getattr(kind, "kind", "O")) for kind in frame.dtypes]
        self.times = frozenset(
            k
            for k, kind in enumerate(kinds)
            if kind in "mM" and si_unit(self.units[k] or "s") == "s"
        )
        self.units = tuple("s" if k in self.times else unit for k, unit in enumerate(self.units))
        self._numeric = self.times.union(k for k, kind in enumerate(kinds) if kind in "iuf")

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns, times in s; missing values are reported and become NaN."""
        values = np.full((len(self._frame), len(columns)), np.nan)
        for k, column in enumerate(columns):
            if column in self._numeric:
                values[:, k] = self._column(column)
                self._report_not_finite(values[:, k : k + 1], [column], findings)
                continue
            where = f"column {self.names[column]!r}"
            what = f"contains {self._frame.dtypes.iloc[column]}, not numbers"
            remedy = "use another column or convert this one"
            findings.add("columns that are not numbers", where, what, remedy, self.file)
        return values

    def _column(self, column: int) -> np.ndarray:
        series = self._frame.iloc[:, column]
        if column not in self.times:
            return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
        ticks = series.dt.as_unit("ns").astype("int64").to_numpy() / 1e9
        return np.where(series.isna(), np.nan, ticks)


class MatTable(ArrayTable):
    """A MATLAB file: vectors by name, matrix columns as ``q[0]``, structures with dots."""

    def __init__(self, path: Path) -> None:
        """Read all numeric variables; version 7.3 is HDF5.

        Raises:
            LogError: the file is damaged, or has no numeric arrays.
        """
        with path.open("rb") as stream:
            start = stream.read(128)
        if b"MATLAB 7.3" in start or start.startswith(_HDF5_SIGNATURE):
            super().__init__(str(path), *hdf5_columns(path))
            return
        super().__init__(str(path), mat_columns(path), {})
