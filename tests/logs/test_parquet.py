"""Parquet files of every kind of column, and the process of its own that reads them: right, or refused by a name."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from extras import extra

from tauloop import LogError
from tauloop.logs import LogFile, channels, read_signals, samples
from tauloop.logs.files import reading_apart
from tauloop.logs.files.reading_apart import parquet_columns

pyarrow, parquet = extra("pyarrow"), extra("pyarrow.parquet")

TIME, POSITION = "time [s]", "position.a [rad]"
STAMPS = (0.0, 0.1, 0.2, 0.3)
#: Enough rows that reading them takes longer than the alarm of the test that interrupts it.
MANY, ALARM = 1_500_000, 0.02


def written(path: Path, columns: Mapping[str, Any]) -> Path:
    parquet.write_table(pyarrow.table({TIME: list(STAMPS)} | dict(columns)), path)
    return path


def positions(path: Path) -> list[float]:
    return list(samples(read_signals(path), "position", ("a",))[:, 0])


def constant(path: Path, value: float, count: int = 20_000) -> Path:
    columns = {TIME: np.arange(count) * 1e-3, POSITION: np.full(count, value)}
    parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pyarrow.array([1, 2, 1, 3]).dictionary_encode(), [1.0, 2.0, 1.0, 3.0]),
        (pyarrow.array([1.5, 2.0, 1.5, -3.0]).dictionary_encode(), [1.5, 2.0, 1.5, -3.0]),
        (
            pyarrow.array([Decimal("1.25"), Decimal("0"), Decimal("-7.5"), Decimal("2")]),
            [1.25, 0.0, -7.5, 2.0],
        ),
        (pyarrow.array([1, 2, 255, 4], pyarrow.uint8()), [1.0, 2.0, 255.0, 4.0]),
        (pyarrow.array(np.array([1, 2, 0.5, 4], np.float16)), [1.0, 2.0, 0.5, 4.0]),
        (pyarrow.array(np.array([1, 2, 0.5, 4], np.float32)), [1.0, 2.0, 0.5, 4.0]),
    ],
    ids=["dictionary of integers", "dictionary of floats", "decimal", "bytes", "half", "single"],
)
def test_every_kind_of_number_is_read(tmp_path: Path, column: Any, values: list[float]) -> None:
    assert positions(written(tmp_path / "log.parquet", {POSITION: column})) == values


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pyarrow.array([True, False, True, True]), "contains bool, not numbers"),
        (
            pyarrow.array(["1", "2", "1", "3"]).dictionary_encode(),
            "contains dictionary<values=string",
        ),
        (pyarrow.array(["1", "2", "1", "3"]), "contains string, not numbers"),
        (pyarrow.nulls(4), "contains null, not numbers"),
        (pyarrow.array([1, 2, 3, 4], pyarrow.timestamp("ms")), "contains timestamp"),
        (pyarrow.array([[1.0]] * 4), "contains list<"),
        (pyarrow.array([{"a": 1.0}] * 4), "contains struct<"),
        (pyarrow.array([1, None, 3, 4]), "nan in row 2 is not a finite number"),
        (
            pyarrow.array([1.0, 2.0, None, 4.0]).dictionary_encode(),
            "nan in row 3 is not a finite number",
        ),
        (
            pyarrow.array([Decimal("1"), Decimal("2"), Decimal("3"), None]),
            "nan in row 4 is not a finite number",
        ),
    ],
    ids=str,
)
def test_columns_without_numbers_are_refused_by_what_they_hold(
    tmp_path: Path, column: Any, reason: str
) -> None:
    path = written(tmp_path / "log.parquet", {POSITION: column, "note": ["x", "y", "x", "z"]})
    with pytest.raises(LogError) as caught:
        read_signals(path)
    (problem,) = caught.value.problems
    assert problem.where == "column 'position.a'"
    assert reason in problem.what


def test_columns_that_nobody_maps_may_hold_anything(tmp_path: Path) -> None:
    others = {
        "flag": [True] * 4,
        "note": pyarrow.array(["x"] * 4).dictionary_encode(),
        "list": [[1.0]] * 4,
    }
    assert positions(written(tmp_path / "log.parquet", {POSITION: STAMPS} | others)) == list(STAMPS)


def test_one_column_may_be_mapped_to_two_channels(tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", {"encoder [rad]": STAMPS})
    log = read_signals(
        LogFile(path=path, columns={"position": {"a": "encoder", "b": "encoder"}}, time="time")
    )
    assert np.array_equal(samples(log, "position", ("a", "b")), np.stack([STAMPS, STAMPS], axis=1))


@pytest.mark.parametrize("header", [POSITION, "position.a [deg]"])
def test_two_columns_of_one_name_are_one_problem(tmp_path: Path, header: str) -> None:
    table = pyarrow.Table.from_arrays([pyarrow.array(STAMPS)] * 3, names=[TIME, POSITION, header])
    parquet.write_table(table, tmp_path / "log.parquet")
    with pytest.raises(LogError, match="2 columns have this name") as caught:
        read_signals(tmp_path / "log.parquet")
    assert len(caught.value.problems) == 1


def test_two_columns_of_one_name_that_nobody_maps_do_no_harm(tmp_path: Path) -> None:
    names = [TIME, POSITION, "spare", "spare"]
    parquet.write_table(
        pyarrow.Table.from_arrays([pyarrow.array(STAMPS)] * 4, names=names),
        tmp_path / "log.parquet",
    )
    assert positions(tmp_path / "log.parquet") == list(STAMPS)


def test_a_file_without_columns_or_rows_says_which(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table({}), path)
    with pytest.raises(LogError, match="the file has no columns"):
        read_signals(path)
    parquet.write_table(pyarrow.table({TIME: pyarrow.array([], pyarrow.float64())}), path)
    with pytest.raises(LogError, match="columns but no samples"):
        read_signals(path)
    assert parquet_columns(written(path, {}), []) == {}


@pytest.mark.parametrize(
    "odd", ["a b", "motör", "日本", 'a"b', "a\\b", "a`b", "-1", "a.b.c", ".a", "a\nb", "x" * 3000]
)
def test_odd_names_are_names(tmp_path: Path, odd: str) -> None:
    path = written(
        tmp_path / "log.parquet", {f"position.{odd} [rad]": STAMPS, "": STAMPS, "[m]": STAMPS}
    )
    log = read_signals(path)
    assert channels(log, "position") == (odd,)
    assert list(samples(log, "position")[:, 0]) == list(STAMPS)


def test_a_field_of_a_structure_is_not_the_column_of_that_name(tmp_path: Path) -> None:
    columns = {"position.a": STAMPS, "position": pyarrow.array([{"a": 9.0}] * 4)}
    mapped = {"position": {"a": "position.a"}}
    path = written(tmp_path / "log.parquet", columns)
    log = read_signals(LogFile(path=path, columns=mapped, units={"position": "rad"}, time="time"))
    assert list(samples(log, "position")[:, 0]) == list(STAMPS)


def test_without_arrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = constant(tmp_path / "log.parquet", 1.0)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(LogError, match=r"pip install 'tauloop\[parquet\]'"):
        read_signals(path)


@pytest.mark.parametrize("keep", [4, 40, -1, -4, -9])
def test_a_file_that_ends_early_is_refused_and_the_next_is_read(tmp_path: Path, keep: int) -> None:
    good = constant(tmp_path / "good.parquet", 1.0)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(good.read_bytes()[:keep])
    with pytest.raises(LogError, match="not a readable Parquet file"):
        read_signals(bad)
    assert set(positions(good)) == {1.0}


def test_threads_do_not_take_each_others_answers(tmp_path: Path) -> None:
    paths = [constant(tmp_path / f"{i}.parquet", float(i)) for i in range(3)]
    with ThreadPoolExecutor(3) as pool:
        result = list(pool.map(positions, paths * 4))
    assert [set(values) for values in result] == [{float(i)} for i in range(3)] * 4


@pytest.mark.parametrize("way", ["fork", pytest.param("spawn", marks=pytest.mark.nightly)])
def test_processes_read_beside_the_one_that_made_them(tmp_path: Path, way: str) -> None:
    paths = [constant(tmp_path / f"{i}.parquet", float(i)) for i in range(2)]
    assert set(positions(paths[0])) == {0.0}
    with multiprocessing.get_context(way).Pool(2) as pool:
        logs = pool.map(read_signals, paths)
    assert [set(samples(log, "position")[:, 0]) for log in logs] == [{0.0}, {1.0}]
    assert set(positions(paths[1])) == {1.0}


def test_an_interrupted_reading_leaves_nothing_behind(tmp_path: Path) -> None:
    long, short = (
        constant(tmp_path / "long.parquet", 1.0, MANY),
        constant(tmp_path / "short.parquet", 2.0),
    )
    assert set(positions(short)) == {2.0}  # the process is there already
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 (the alarm goes off somewhere inside)
            signal.setitimer(signal.ITIMER_REAL, ALARM)
            read_signals(long)
            signal.pause()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert set(positions(short)) == {2.0}


class TimeLimit(Exception):
    """What a program raises in a signal handler."""


def at_line(number: int, action: Callable[[], None]) -> Callable[[FrameType, str, Any], Any]:
    """Return a trace function that acts before a line, counted over all lines of the exchange with the process."""
    lines = itertools.count()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        is_exchange = frame.f_code.co_filename == reading_apart.__file__
        if is_exchange and event == "line" and next(lines) == number:
            action()
        return trace if is_exchange else None

    return trace


@pytest.mark.parametrize(
    ("number", "raised"),
    [
        (7, TimeLimit),
        (18, TimeLimit),
        (28, TimeoutError),
        (60, ValueError),
        (70, EOFError),
        (72, KeyboardInterrupt),
    ],
)
def test_an_exchange_that_an_exception_ends_leaves_no_answer_to_the_next(
    tmp_path: Path, number: int, raised: type[BaseException]
) -> None:
    """At any line, as from a signal handler; the exception reaches the caller, also one that pipes raise too."""
    monday, tuesday = (
        constant(tmp_path / "monday.parquet", 1.0),
        constant(tmp_path / "tuesday.parquet", 2.0),
    )
    assert set(positions(tuesday)) == {2.0}  # the process is there already

    def limit() -> None:
        raise raised("at the limit")

    before = sys.gettrace()
    sys.settrace(at_line(number, limit))
    try:
        with pytest.raises(raised, match="at the limit"):
            positions(monday)
    finally:
        sys.settrace(before)
    assert set(positions(tuesday)) == {2.0}


def test_a_handler_that_reads_has_a_process_of_its_own(tmp_path: Path) -> None:
    monday, tuesday = (
        constant(tmp_path / "monday.parquet", 1.0),
        constant(tmp_path / "tuesday.parquet", 2.0),
    )
    values: list[float] = []
    before = sys.gettrace()
    sys.settrace(at_line(60, lambda: values.extend(positions(tuesday))))
    try:
        assert set(positions(monday)) == {1.0}
    finally:
        sys.settrace(before)
    assert set(values) == {2.0}


def test_an_answer_to_another_request_is_refused(tmp_path: Path) -> None:
    process, path = reading_apart._ReadingProcess(), str(constant(tmp_path / "log.parquet", 1.0))
    assert process.answer("parquet schema", path)[0]["rows"] == 20_000
    assert process._process is not None
    assert process._process.stdin is not None
    process._process.stdin.write(json.dumps([1, "parquet schema", path]).encode() + b"\n")
    with pytest.raises(reading_apart._ProcessEnded):
        process.answer("parquet schema", path)


def test_a_plain_script_reads_without_a_guard(tmp_path: Path) -> None:
    path, script = constant(tmp_path / "log.parquet", 5.0), tmp_path / "plain.py"
    lines = (
        "from tauloop.logs import read_signals",
        f"print(read_signals({str(path)!r}).channels[0].values.max())",
    )
    script.write_text("\n".join(lines))
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert ran.stdout == "5.0\n"
    assert not ran.stderr


def test_plain_numbers_are_read_without_pandas(tmp_path: Path) -> None:
    """Importing pandas takes longer than reading a million samples."""
    script = (
        "import runpy, sys\n"
        "reader = runpy.run_path(sys.argv[1])['parquet']\n"
        "((_, values),) = reader(sys.argv[2], [sys.argv[3]])\n"
        "print(values.tolist(), 'pandas' in sys.modules)\n"
    )
    for kind in (np.float64, np.float32, np.int16):
        column = np.array([3, -1, 4, 2], kind)
        path = written(tmp_path / "log.parquet", {POSITION: column})
        command = [sys.executable, "-c", script, str(reading_apart._SCRIPT), str(path), POSITION]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "[3.0, -1.0, 4.0, 2.0] False"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_of_arrow_are_seconds_of_their_own_unit(
    tmp_path: Path, unit: str, zone: str | None
) -> None:
    """Against the steps by which they were made, and pandas' seconds since 1970."""
    start, steps = pd.Timestamp("2026-11-30T22:00:00"), [0, 1, 2, 3]
    stamps = pd.Series(start + pd.to_timedelta(steps, "s")).dt.tz_localize(zone)
    columns = {
        "time": pyarrow.array(stamps, pyarrow.timestamp(unit, zone)),
        "position.a [rad]": [1.0, 2.0, 3.0, 4.0],
        "force.a [N]": [1.0, 2.0, 3.0, 4.0],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    signals = read_signals(tmp_path / "log.parquet")
    assert (signals.time - signals.time[0]).tolist() == steps
    assert signals.time[0] == stamps.iloc[0].timestamp()
    columns["time"] = pyarrow.array(pd.to_timedelta(steps, "s"), pyarrow.duration(unit))
    parquet.write_table(pyarrow.table(columns), tmp_path / "log.parquet")
    assert read_signals(tmp_path / "log.parquet").time.tolist() == steps


def test_times_of_arrow_have_no_other_unit_and_are_no_angles(tmp_path: Path) -> None:
    stamps = pyarrow.array(pd.to_timedelta([0, 1], "s"), pyarrow.duration("ns"))
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table({"time": stamps, "position.a [rad]": [1.0, 2.0]}), path)
    with pytest.raises(LogError, match="the file's type of this column states the unit"):
        read_signals(LogFile(path=path, units={"time": "ms"}))
    parquet.write_table(pyarrow.table({"time [s]": [0.0, 1.0], "position.a [rad]": stamps}), path)
    with pytest.raises(LogError, match="contains duration"):
        read_signals(path)
    missing = pyarrow.array([0, None], pyarrow.timestamp("us"))
    parquet.write_table(pyarrow.table({"time": missing, "position.a [rad]": [1.0, 2.0]}), path)
    with pytest.raises(LogError, match="nan in row 2 is not a finite number"):
        read_signals(path)
