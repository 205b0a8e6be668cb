"""Reading of measured logs: file columns become named channels in SI units on one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import LogError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.logs.checks.findings import Findings
from tauloop.logs.checks.gaps import FillGaps, filled, with_missing_rows
from tauloop.logs.checks.repairs import resampled
from tauloop.logs.checks.scales import Scale, find_scale
from tauloop.logs.checks.time_base import INTERPOLATIONS
from tauloop.logs.checks.timing import check_same_time, check_time
from tauloop.logs.files.opening import open_table
from tauloop.logs.log import TIME, Channel, Signals
from tauloop.logs.tables import MISSING_KINDS, CsvTable, LogTable
from tauloop.mechanism.suggestions import listing, suggestion, unknown_names

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

#: Usual names of time columns.
TIME_NAMES = ("t", "time", "timestamp", "time_stamp", "stamp", "zeit", "seconds")
_SAMPLE_RATE = "give `sample_rate` in Hz, or name a time column: LogFile(time='t')"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile(ReprMixin):
    """One file of a recording, and the meaning of its columns.

    Attributes:
        path: ``.csv``, ``.csv.gz``, ``.parquet``, ``.mat``, ``.h5`` or ``.hdf5``; or a ROS bag (a
            rosbag2 folder, ``.mcap``, ``.db3``, or ``.bag`` of ROS 1), whose columns are
            ``/topic.field`` (`tauloop.logs.files.bags`). Also a `pandas.DataFrame` whose columns
            have the names of a CSV file's header.
        columns: quantity -> channel -> column, such as ``{"position": {"motor_1": "Joint_1"}}``;
            columns of a text without a header are called "1", "2", ... The units of the quantities
            position, velocity, acceleration and force are checked; other quantities may have any
            name. None: column names have the form ``quantity.channel``, as in `write_log`, or are
            the joint states of a bag.
        units: unit by column or by quantity (the column has priority); it overrides a unit in the
            header, ``q1 [deg]``. It may contain a factor: with ``"0.0523 N m"``, the number 1 in the
            file means 0.0523 N m; ``"-1 rad"`` changes the sign.
        time: name of the column of time stamps. For a bag, the default is the stamps of the first
            column's topic.
        between: for a bag, the interpolation of other topics at these stamps, one of
            `time_base.INTERPOLATIONS`: "linear" (default), "hold" or "cubic".
    """

    path: str | Path | pd.DataFrame
    columns: Mapping[str, Mapping[str, str]] | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    time: str | None = None
    between: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A column to read: its quantity and channel, its index in the file, and its unit."""

    quantity: str
    channel: str
    column: int
    scale: Scale


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The signals of one file."""

    table: LogTable
    count: int
    signals: tuple[Channel, ...]
    time_column: str = ""
    time: np.ndarray | None = None
    interpolated: Mapping[str, int] = field(default_factory=dict)


def read_log(
    *files: LogFile | str | Path | pd.DataFrame,
    sample_rate: float | None = None,
    gaps: FillGaps | None = None,
    resample: bool = False,
    uneven: bool = False,
) -> xr.Dataset:
    """Return one recording from one or several files, merged row by row.

    Args:
        files: the files with their columns; a plain path or table has names ``quantity.channel``.
        sample_rate: samples per second, Hz, if no file has a time column; time then starts at zero.
        gaps: permitted gaps, which are interpolated; by default missing samples are rejected.
        resample: whether to resample at uniform times (`resampled`), which permits uneven, late
            and repeated time stamps.
        uneven: whether time steps may differ, as in a simulation with variable steps.

    Returns:
        The log: one variable per channel in SI units (see `tauloop.logs.log`).

    Raises:
        LogError: all problems (see `read_signals`).
    """
    signals = read_signals(
        *files, sample_rate=sample_rate, gaps=gaps, resample=resample, uneven=uneven
    )
    return signals.dataset()


def read_signals(
    *files: LogFile | str | Path | pd.DataFrame,
    sample_rate: float | None = None,
    gaps: FillGaps | None = None,
    resample: bool = False,
    uneven: bool = False,
) -> Signals:
    """Return the log of `read_log` as plain arrays, with the numbers of interpolated samples.

    Raises:
        LogError: all problems, each with file, line (or row) and column: missing columns, NaN,
            text, rows of the wrong length, time stamps that repeat or decrease or leave gaps,
            different numbers of samples in the files, missing or unknown units.
    """
    findings = Findings()
    sources = [file if isinstance(file, LogFile) else LogFile(path=file) for file in files]
    repairs = _Repairs(gaps=gaps, resample=resample, uneven=uneven)
    results = [_read_part(source, sample_rate, repairs, findings) for source in sources]
    parts = [part for part in results if part is not None]
    if not sources:
        findings.add("arguments", "files", "no file was given", "give at least one")
    _check_channels(parts, findings)
    _check_counts(parts, findings)
    time = _time_axis(parts, sample_rate, complete=len(parts) == len(sources), findings=findings)
    findings.raise_if_any()
    signals = Signals(
        time=time,
        channels=tuple(signal for part in parts for signal in part.signals),
        interpolated={name: count for part in parts for name, count in part.interpolated.items()},
        notes=tuple(note for part in parts for note in part.table.notes),
    )
    return resampled(signals, gaps) if resample else signals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repairs:
    """Arguments of `read_log` that permit faults of a log."""

    gaps: FillGaps | None
    resample: bool
    uneven: bool


def _read_part(
    source: LogFile, sample_rate: float | None, repairs: _Repairs, findings: Findings
) -> _Part | None:
    """Return the signals of a file; None if there is a problem."""
    try:
        if source.between is not None:
            LogError.raise_if_any(
                unknown_names([source.between], INTERPOLATIONS, "{!r} is unknown", "between")
            )
        table = open_table(source.path, source.between)
    except LogError as error:
        findings.include(error.problems)
        return None
    before = findings.total
    mapped = {name for group in (source.columns or {}).values() for name in group.values()}
    if isinstance(table, CsvTable) and not table.has_names and not mapped.intersection(table.names):
        what = (
            f"the first row contains numbers ({', '.join(table.first_row[:3])}), not column names"
        )
        remedy = (
            "add a row of names above the samples, such as `t [s], q1 [deg]`, or refer to columns by number: "
            "LogFile(columns={'position': {'motor': '2'}}, time='1')"
        )
        findings.add("headers that are missing", "header", what, remedy, table.file, table.line(0))
        return None
    choices = _choices(source, table, findings, is_timed=sample_rate is not None)
    if not choices:
        return None
    values, filled_in = _numbers(table, choices, repairs, findings)
    if findings.total > before:
        return None
    signals, time, time_column = [], None, ""
    for choice, column in zip(choices, np.ascontiguousarray(values.T), strict=True):
        label = table.names[choice.column]
        if choice.quantity == TIME:
            time, time_column = choice.scale.of(column), label
            check_time(
                table,
                label,
                time,
                findings,
                resample=repairs.resample,
                gaps=repairs.gaps,
                uneven=repairs.uneven,
            )
        else:
            signals.append(
                Channel(
                    quantity=choice.quantity,
                    channel=choice.channel,
                    values=choice.scale.of(column),
                    unit=choice.scale.unit,
                    source=f"{Path(table.file).name}: {label}",
                )
            )
    return _Part(
        table=table,
        count=len(values),
        signals=tuple(signals),
        time_column=time_column,
        time=time,
        interpolated=filled_in,
    )


def _numbers(
    table: LogTable, choices: Sequence[_Choice], repairs: _Repairs, findings: Findings
) -> tuple[np.ndarray, dict[str, int]]:
    """Return the columns (N, n), and the number of interpolated samples of each channel."""
    columns = [choice.column for choice in choices]
    gaps = repairs.gaps
    if gaps is None:
        return table.numbers(columns, findings), {}
    before = findings.total
    table_findings = Findings()
    values = table.numbers(columns, table_findings)
    findings.absorb(table_findings, but=MISSING_KINDS)
    stamps = next((k for k, choice in enumerate(choices) if choice.quantity == TIME), None)
    if findings.total > before:
        return values, {}
    # with uneven stamps, `resampled` determines the missing rows
    if stamps is not None and not repairs.resample and np.isfinite(values[:, stamps]).all():
        signals = np.delete(values, stamps, axis=1)
        time, signals = with_missing_rows(values[:, stamps], signals, gaps)
        values = np.insert(signals, stamps, time, axis=1)
    counts = {}
    for k, choice in enumerate(choices):
        where = f"column {table.names[choice.column]!r}"
        if k == stamps and not np.isfinite(values[:, k]).all():
            missing = np.count_nonzero(~np.isfinite(values[:, k]))
            what = f"{missing} of {len(values)} time stamps are missing"
            remedy = "give `sample_rate` instead of the time column, or cut the log"
            findings.add("missing time stamps", where, what, remedy, table.file)
            continue
        values[:, k], count = filled(values[:, k], gaps, findings, where=where, file=table.file)
        if count:
            counts[f"{choice.quantity}.{choice.channel}"] = count
    return values, counts


def _choices(
    source: LogFile, table: LogTable, findings: Findings, *, is_timed: bool
) -> list[_Choice]:
    wanted = _wanted(source, table, findings, is_timed=is_timed)
    choices = []
    for quantity, channel, name in dict.fromkeys(wanted):  # report equal names only once
        column = _column(name, table, findings)
        if column is None:
            continue
        unit = source.units.get(
            name, source.units.get(table.names[column], source.units.get(quantity))
        )
        if column in table.times and unit not in (None, "s"):
            what = f"is {unit!r}, but the file's type of this column states the unit of its times"
            findings.add(
                "units for nothing", f"units[{name!r}]", what, "omit this unit", table.file
            )
        scale = find_scale(
            quantity, table.units[column] if unit is None else unit, table, column, findings
        )
        if scale is not None:
            choices.append(_Choice(quantity=quantity, channel=channel, column=column, scale=scale))
    known = {*table.names, *(f"{n} [{u}]" for n, u in zip(table.names, table.units, strict=True))}
    known |= {quantity for quantity, _, _ in wanted}
    for key in source.units:
        if key not in known:
            what = "neither a column of the file nor a quantity to read from it"
            remedy = suggestion(key, known) or "remove it"
            findings.add("units for nothing", f"units[{key!r}]", what, remedy, table.file)
    return choices


def _wanted(
    source: LogFile, table: LogTable, findings: Findings, *, is_timed: bool
) -> list[tuple[str, str, str]]:
    """Return quantity, channel and column name of everything to read, including time."""
    if source.columns is not None:
        wanted = [
            (q, channel, name)
            for q, group in source.columns.items()
            for channel, name in group.items()
        ]
        standard_time = None
    else:
        wanted = table.channels()
        standard_time = TIME if TIME in table.names else None
    if not wanted:
        what = f"there are no columns to read; the file has {listing(table.names)}"
        remedy = (
            "describe the file with `tauloop log describe MACHINE FILE`, or map its columns in Python: "
            "LogFile(columns={'position': {'motor': 'its column'}})"
        )
        findings.add("columns that are missing", "columns", what, remedy, table.file)
    time = source.time or standard_time
    if not time:
        time = None if is_timed else table.clock([name for _, _, name in wanted])
    if time is not None:
        wanted = [*wanted, (TIME, "", time)]
    return wanted


def _column(name: str, table: LogTable, findings: Findings) -> int | None:
    headers = [f"{n} [{u}]" for n, u in zip(table.names, table.units, strict=True)]
    names_and_headers = zip(table.names, headers, strict=True)
    matches = [k for k, texts in enumerate(names_and_headers) if name in texts]
    if len(matches) == 1:
        return matches[0]
    where = f"column {name!r}"
    if matches:
        numbers = ", ".join(str(k + 1) for k in matches)
        what = f"{len(matches)} columns have this name (columns {numbers})"
        findings.add("columns of one name", where, what, "rename them in the file", table.file)
    else:
        what = f"not in the file, which has {listing(table.names)}"
        remedy = suggestion(name, table.names) or "correct the name in `columns`"
        findings.add("columns that are missing", where, what, remedy, table.file)
    return None


def _check_channels(parts: list[_Part], findings: Findings) -> None:
    first: dict[str, str] = {}
    for part in parts:
        for signal in part.signals:
            if signal.name in first:
                what = f"it is read from {first[signal.name]} and from {signal.source}"
                findings.add(
                    "channels given twice", signal.name, what, "map it once", part.table.file
                )
            first.setdefault(signal.name, signal.source)


def _check_counts(parts: list[_Part], findings: Findings) -> None:
    for part in parts[1:]:
        if part.count != parts[0].count:
            samples = counted(part.count, "sample")
            what = f"the file has {samples}, but {parts[0].table.file} has {parts[0].count}"
            remedy = "the files belong to different recordings, or one was cut: cut both to the same samples"
            findings.add("counts that differ", "rows", what, remedy, part.table.file)


def _is_time(name: str) -> bool:
    """Return whether a column name is a usual name of a time column, in any case."""
    return name.partition("(")[0].strip().lower() in TIME_NAMES


def _time_axis(
    parts: list[_Part], sample_rate: float | None, *, complete: bool, findings: Findings
) -> np.ndarray:
    """Return the time stamps (N,) of the first file that has them, or those of the sample rate."""
    timed = [(part, part.time) for part in parts if part.time is not None]
    if sample_rate is not None and not (np.isfinite(sample_rate) and sample_rate > 0.0):
        what = f"{sample_rate} Hz is not a positive, finite rate"
        findings.add("arguments", "sample_rate", what, "give samples per second, above zero")
    elif sample_rate is not None and timed:
        what = f"given in addition to the time column {timed[0][0].time_column!r} of {timed[0][0].table.file}"
        findings.add("arguments", "sample_rate", what, "give only one of them")
    elif sample_rate is not None and parts:
        return np.arange(parts[0].count) / sample_rate
    elif sample_rate is None and not timed and complete:
        similar = [name for part in parts for name in part.table.names if _is_time(name)]
        remedy = _SAMPLE_RATE
        if similar:
            remedy = f"rename column {similar[0]!r} to 'time', or name it: time={similar[0]!r}"
        findings.add("arguments", "time", "neither a time column nor a sample rate", remedy)
    for part, time in timed[1:]:
        first, first_time = timed[0]
        if part.count == first.count:
            check_same_time(part.table, part.time_column, time, first.table, first_time, findings)
    return timed[0][1] if timed else np.empty(0)
