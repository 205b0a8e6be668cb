"""Measured logs: what is read is what was written, damaged files are explained, and signals keep their phase."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.signal
import xarray as xr
from extras import extra
from hypothesis import given, strategies as st

from tauloop.common.errors import InputError, LogError
from tauloop.logs import (
    LogFile,
    Preparation,
    butterworth,
    central_differences,
    channels,
    decimate,
    prepare,
    read_log,
    sample_period,
    samples,
    units,
    write_log,
)
from tauloop.logs.checks.findings import LISTED_PER_KIND
from tauloop.logs.log import Channel, as_signals, build_log
from tauloop.logs.tables import MAX_MEASURED_NUMBER, MatTable

#: Two orders of the same few hundred products and sums: some hundred roundings.
ROUNDING = 1e-13
#: Numbers through a unit's scale and back: a few roundings.
SCALING = 1e-14
#: A sine through the filter against its gain: what is left of the start-up transient in the middle
#: of the record.
TRANSIENT = 1e-6


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(
    *files: LogFile | str | Path, sample_rate: float | None = None
) -> list[tuple[str, str, int | None]]:
    with pytest.raises(LogError) as caught:
        read_log(*files, sample_rate=sample_rate)
    return [(p.where, p.what, p.line) for p in caught.value.problems]


def log_of(time: np.ndarray, **position: np.ndarray) -> xr.Dataset:
    return build_log(
        time,
        [
            Channel(quantity="position", channel=name, values=x, unit="rad", source="made")
            for name, x in position.items()
        ],
    )


# Reading


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_log_comes_in_si_units_over_seconds(tmp_path, delimiter, ending):
    rows = [
        ["t [ms]", "q1 [deg]", "note", "F [kN]"],
        ["0", "90", "start", "1.5"],
        ["2", "-45", "", "-2"],
    ]
    text = "# recorded by hand\n" + "\n".join(delimiter.join(row) for row in rows) + "\n"
    path = tmp_path / f"log{ending}"
    path.write_bytes(
        gzip.compress(text.encode()) if ending.endswith("gz") else text.encode("utf-8-sig")
    )
    log = read_log(
        LogFile(path=path, columns={"position": {"a": "q1"}, "force": {"b": "F [kN]"}}, time="t")
    )
    assert log["time"].to_numpy() == pytest.approx([0.0, 0.002], rel=SCALING)
    assert samples(log, "position") == pytest.approx(
        np.array([[np.pi / 2], [-np.pi / 4]]), rel=SCALING
    )
    assert samples(log, "force", ["b"]) == pytest.approx(
        np.array([[1500.0], [-2000.0]]), rel=SCALING
    )
    assert units(log, "position") == {"a": "rad"}
    assert units(log, "force") == {"b": "N"}
    assert log["force.b"].attrs["source"] == f"log{ending}: F"


@pytest.mark.parametrize(
    ("turn", "torque"), [("-0.9 deg", "0.5 N m"), ("-.9deg", "+5e-1N m"), ("- 0.9 deg", "500mN m")]
)
def test_units_may_carry_a_factor_and_win_over_the_header(tmp_path, turn, torque):
    path = write(tmp_path / "log.csv", "encoder,current [A]\n100,2\n-100,3\n")
    log = read_log(
        LogFile(
            path=path,
            columns={"position": {"m": "encoder"}, "force": {"m": "current"}},
            units={"position": turn, "current": torque},
        ),
        sample_rate=100.0,
    )
    assert samples(log, "position")[:, 0] == pytest.approx([-np.pi / 2, np.pi / 2], rel=SCALING)
    assert samples(log, "force")[:, 0] == pytest.approx([1.0, 1.5], rel=SCALING)
    assert log["time"].to_numpy() == pytest.approx([0.0, 0.01], rel=SCALING)


def test_files_of_one_recording_are_merged_row_by_row(tmp_path):
    first = write(tmp_path / "a.csv", "t [s],q [rad]\n0,1\n0.1,2\n0.2,3\n")
    second = write(tmp_path / "b.csv", "clock [s],q [N m]\n0,4\n0.1,5\n0.2,6\n")
    log = read_log(
        LogFile(path=first, columns={"position": {"m": "q"}}, time="t"),
        LogFile(path=second, columns={"force": {"m": "q"}}, time="clock"),
    )
    assert samples(log, "position")[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert samples(log, "force")[:, 0].tolist() == [4.0, 5.0, 6.0]


def test_text_and_gaps_in_columns_that_are_not_mapped_do_no_harm(tmp_path):
    path = write(
        tmp_path / "log.csv", '"q, measured [rad]","state"\n1.25,"moving, fast"\n\n-7e-3,\n'
    )
    log = read_log(LogFile(path=path, columns={"position": {"m": "q, measured"}}), sample_rate=1.0)
    assert samples(log, "position")[:, 0].tolist() == [1.25, -7e-3]


def test_channels_keep_their_order_and_a_choice_may_change_it(tmp_path):
    path = write(tmp_path / "log.csv", "a [m],b [rad]\n1,2\n3,4\n")
    log = read_log(LogFile(path=path, columns={"position": {"b": "b", "a": "a"}}), sample_rate=1.0)
    assert channels(log, "position") == ("b", "a")
    assert samples(log, "position", ("a", "b")).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(LogError) as caught:
        samples(log, "position", ("a", "bb", "c"))
    assert [p.where for p in caught.value.problems] == ["position.bb", "position.c"]
    with pytest.raises(LogError, match="did you mean position"):
        samples(log, "positions")


def test_matlab_files_give_vectors_columns_and_fields(tmp_path):
    q = np.arange(12.0).reshape(4, 3)
    path = tmp_path / "log.mat"
    scipy.io.savemat(
        path,
        {"t": np.arange(4) * 0.5, "q": q, "drive": {"torque": np.array([1, 2, 3, 4])}, "who": "me"},
    )
    file = LogFile(
        path=path,
        columns={"position": {"m": "q[2]"}, "force": {"m": "drive.torque"}},
        units={"t": "s", "position": "mm", "force": "N"},
        time="t",
    )
    log = read_log(file)
    assert samples(log, "position")[:, 0] == pytest.approx(q[:, 2] * 1e-3, rel=SCALING)
    assert samples(log, "force")[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert sample_period(log) == pytest.approx(0.5, rel=SCALING)


# Writing

numbers = st.floats(-MAX_MEASURED_NUMBER, MAX_MEASURED_NUMBER)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@given(
    rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8),
    period=st.floats(1e-5, 10.0),
)
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, ending, rows, period):
    if ending == ".parquet":
        extra("pyarrow")
    values = np.array(rows)
    kinds = [
        ("position", "leg1.cart", "m"),
        ("force", "leg1.cart", "N"),
        ("temperature", "x", "1/s^2"),
    ]
    log = build_log(
        np.arange(len(rows)) * period,
        [
            Channel(quantity=quantity, channel=channel, values=values[:, k], unit=unit)
            for k, (quantity, channel, unit) in enumerate(kinds)
        ],
    )
    back = read_log(write_log(tmp_path_factory.mktemp("log") / f"log{ending}", log))
    assert back.equals(log)
    for name in log.data_vars:
        assert [back[name].attrs[key] for key in ("units", "quantity", "channel")] == [
            log[name].attrs[key] for key in ("units", "quantity", "channel")
        ]


def test_units_of_logs_as_they_were_called_once_are_read(tmp_path):
    log = log_of(np.arange(3.0), a=np.ones(3))
    old = log.copy()
    for variable in old.variables.values():
        variable.attrs["unit"] = variable.attrs.pop("units")
    first, second = (
        write_log(tmp_path / f"{k}.csv", each).read_bytes() for k, each in enumerate((log, old))
    )
    assert first == second
    assert as_signals(old).channels[0].unit == log["position.a"].attrs["units"] == "rad"


def test_the_same_log_gives_the_same_bytes(tmp_path):
    log = log_of(np.arange(3.0), a=np.array([1.0, 0.1, -3.0]))
    first, second = (
        write_log(tmp_path / name, log).read_bytes() for name in ("a.csv.gz", "b.csv.gz")
    )
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv.gz", "b.csv.gz"]


def test_a_log_that_cannot_be_written_is_explained_and_leaves_the_old_file(tmp_path):
    path = write_log(tmp_path / "log.csv", log_of(np.arange(2.0), a=np.ones(2)))
    old = path.read_text()
    broken = log_of(np.arange(2.0), a=np.array([1.0, np.nan]), b=np.ones(2))
    del broken["position.b"].attrs["units"]
    with pytest.raises(LogError) as caught:
        write_log(path, broken)
    assert [p.where for p in caught.value.problems] == ["position.a", "position.b"]
    assert path.read_text() == old
    with pytest.raises(LogError, match=r"\.xlsx"):
        write_log(tmp_path / "log.xlsx", log_of(np.arange(2.0), a=np.ones(2)))
    with pytest.raises(InputError, match="cannot be written"):
        write_log(tmp_path / "nowhere" / "log.csv", log_of(np.arange(2.0), a=np.ones(2)))


def test_swapped_arguments_of_the_writer_are_refused_by_name(tmp_path):
    log = log_of(np.arange(3.0), a=np.zeros(3))
    with pytest.raises(InputError) as caught:
        write_log(log, tmp_path / "log.csv")
    assert [(problem.where, problem.what) for problem in caught.value.problems] == [
        ("path", "is of type Dataset"),
        ("log", f"is of type {type(tmp_path).__name__}"),
    ]


# Damaged files

MAPPED = {"position": {"m": "q"}, "force": {"m": "F"}}


def test_every_bad_cell_is_named_by_line_and_column(tmp_path):
    text = 'q [rad],F [N m]\n1,2\nnan,3\n4,\n5,inf\n6,7,8\n\nn/a,"1,5"\n9\n1_0,10\n'
    result = problems_of(
        LogFile(path=write(tmp_path / "log.csv", text), columns=MAPPED), sample_rate=1.0
    )
    assert sorted(result, key=lambda p: (p[2], p[0])) == [
        ("column 'q'", "nan is not a finite number", 3),
        ("column 'F'", "the cell is empty", 4),
        ("column 'F'", "inf is not a finite number", 5),
        ("row", "the row has 3 cells, but the header has 2", 6),
        ("column 'F'", "'1,5' is not a number", 8),
        ("column 'q'", "'n/a' is not a number", 8),
        ("row", "the row has 1 cell, but the header has 2", 9),
        ("column 'q'", "'1_0' is not a number", 10),
    ]


@pytest.mark.parametrize(
    "rows", ["1,5;2.5", "1,234;2", "1.234,5;2"], ids=["mixed", "thousands", "both"]
)
def test_a_comma_that_may_be_something_else_gets_its_own_remedy(tmp_path, rows):
    path = write(tmp_path / "log.csv", f"q [rad];F [N m]\n{rows}\n")
    with pytest.raises(LogError, match=r"decimal point|is not a number"):
        read_log(LogFile(path=path, columns=MAPPED), sample_rate=1.0)


def test_many_problems_of_a_kind_are_counted(tmp_path):
    bad = LISTED_PER_KIND + 15
    text = "q [rad],F [N m]\n" + "1,2\n" * 5 + ",3\n" * bad + "4,x\n"
    result = problems_of(
        LogFile(path=write(tmp_path / "log.csv", text), columns=MAPPED), sample_rate=1.0
    )
    assert [line for _, what, line in result if what == "the cell is empty"] == [
        7 + k for k in range(LISTED_PER_KIND)
    ]
    assert ("empty cells", "and 15 more", None) in result
    assert result[-1] == ("column 'F'", "'x' is not a number", 7 + bad)


def test_missing_columns_and_units_are_found_at_once(tmp_path):
    text = "Joint_1,Joint_2 [kg],tau [Nm],t,tau2 [N m],tau2 [N]\n1,2,3,4,5,6\n"
    file = LogFile(
        path=write(tmp_path / "log.csv", text),
        columns={"position": {"a": "Joint1", "b": "Joint_2"}, "force": {"a": "tau", "b": "tau2"}},
        units={"Joint_9": "deg"},
        time="t",
    )
    with pytest.raises(LogError) as caught:
        read_log(file)
    problems = {p.where: (p.what, p.remedy) for p in caught.value.problems}
    assert set(problems) == {
        f"column {name!r}" for name in ("Joint1", "Joint_2", "tau", "tau2", "t")
    } | {"units['Joint_9']"}
    assert "did you mean Joint_1" in problems["column 'Joint1'"][1]
    assert problems["column 'Joint_2'"][0] == "'kg' is not a unit of a position"
    assert problems["column 'tau'"] == ("unknown unit 'Nm'", "did you mean N m?")
    assert problems["column 't'"][0] == "has no unit"
    assert "2 columns" in problems["column 'tau2'"][0]


def test_a_column_of_a_doubled_name_can_be_had_by_its_whole_header(tmp_path):
    path = write(tmp_path / "log.csv", "tau [N m],tau [N]\n5,6\n")
    log = read_log(LogFile(path=path, columns={"force": {"a": "tau [N]"}}), sample_rate=1.0)
    assert samples(log, "force")[:, 0].tolist() == [6.0]
    assert units(log, "force") == {"a": "N"}


def test_time_that_repeats_goes_back_or_leaves_gaps(tmp_path):
    times = [0.0, 0.1, 0.2, 0.2, 0.3, 0.1, 0.2, 0.3, 0.72, 0.8]
    text = "t [s],q [rad]\n" + "".join(f"{t},0\n" for t in times)
    result = problems_of(
        LogFile(path=write(tmp_path / "log.csv", text), columns={"position": {"m": "q"}}, time="t")
    )
    assert [(where, line) for where, _, line in result] == [
        ("column 't'", 5),
        ("column 't'", 7),
        ("column 't'", 10),
    ]
    repeated, back, gap = (what for _, what, _ in result)
    assert repeated == "the time 0.2 s is repeated"
    assert back == "time decreases from 0.3 s to 0.1 s"
    assert gap == "a gap of 0.42 s after t = 0.3 s: 4.2 periods of 0.1 s"


def test_a_step_of_up_to_one_and_a_half_periods_is_no_gap(tmp_path):
    text = "t [s],q [rad]\n" + "".join(f"{t},0\n" for t in [0.0, 0.1, 0.2, 0.349, 0.4, 0.5])
    log = read_log(
        LogFile(path=write(tmp_path / "log.csv", text), columns={"position": {"m": "q"}}, time="t")
    )
    assert log.sizes["time"] == 6


def test_files_that_do_not_belong_together(tmp_path):
    first = write(tmp_path / "a.csv", "t [s],q [rad]\n0,1\n0.1,2\n0.2,3\n")
    short = write(tmp_path / "b.csv", "F [N m]\n4\n5\n")
    late = write(tmp_path / "c.csv", "t [s],q [rad]\n0.1,1\n0.2,2\n0.3,3\n")
    result = problems_of(
        LogFile(path=first, columns={"position": {"m": "q"}}, time="t"),
        LogFile(path=short, columns={"force": {"m": "F"}}),
        LogFile(path=late, columns={"position": {"m": "q"}}, time="t"),
    )
    assert [(where, line) for where, _, line in result] == [
        ("position.m", None),
        ("rows", None),
        ("column 't'", 2),
    ]
    assert result[0][1] == "it is read from a.csv: q and from c.csv: q"
    assert result[1][1] == f"the file has 2 samples, but {first} has 3"
    assert result[2][1] == f"the time is 0.1 s, but 0 s in {first}"


@pytest.mark.parametrize(
    ("time", "sample_rate", "where", "what"),
    [
        (None, None, "time", "neither a time column nor a sample rate"),
        ("t", 10.0, "sample_rate", "given in addition to the time column 't'"),
        (None, 0.0, "sample_rate", "0.0 Hz is not a positive, finite rate"),
        (None, np.nan, "sample_rate", "nan Hz is not a positive, finite rate"),
    ],
)
def test_time_comes_from_a_column_or_from_a_rate(tmp_path, time, sample_rate, where, what):
    path = write(tmp_path / "log.csv", "t [s],q [rad]\n0,1\n0.1,2\n")
    result = problems_of(
        LogFile(path=path, columns={"position": {"m": "q"}}, time=time), sample_rate=sample_rate
    )
    assert [p[0] for p in result] == [where]
    assert what in result[0][1]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("log.csv", b"", "the file is empty"),
        ("log.csv", b"\n\n", "no header row"),
        ("log.csv", b"q [rad],F [N m]\n\n", "a header but no samples"),
        ("log.csv", b"1.0,2.0\n3.0,4.0\n", "the first row contains numbers (1.0, 2.0)"),
        ("log.csv", b"\x7fELF\x00\x01", "it is not text: there is a null byte at offset 4"),
        ("log.csv", b"q [\xb0],F\n1,2\n", "not UTF-8 text: byte 0xb0"),
        ("log.csv.gz", b"q [rad],F [N m]\n1,2\n", "cannot be read: Not a gzipped file"),
        ("log.csv.gz", gzip.compress(b"q [rad],F [N m]\n1,2\n", mtime=0)[:-9], "cannot be read"),
        ("log.xlsx", b"PK", "'.xlsx' is not"),
        ("log.mat", b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + b" " * 200, "HDF5"),
        ("log.mat", b"\x89HDF\r\n\x1a\n" + b"\0" * 200, "HDF5"),
        ("log.mat", b"MATLAB 5.0 MAT-file" + b"\x01" * 300, "not a readable MAT file"),
        ("log.parquet", b"PAR1 and nothing else", "not a readable Parquet file"),
    ],
)
def test_files_that_are_no_logs(tmp_path, name, content, what):
    if name.endswith("parquet"):
        extra("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    result = problems_of(
        LogFile(path=path, columns=MAPPED), tmp_path / "other.csv", sample_rate=1.0
    )
    assert len(result) == 2
    assert what in result[0][1]
    assert result[1][1] == "there is no such file"


FOREIGN_ROWS = ["0,1,2", "0.1,3,4", "0.2,5,6"]
FOREIGN_HEADER = "time [s],position.m [rad],force.m [N m]"


@pytest.mark.parametrize(
    "content",
    [
        "\n".join([FOREIGN_HEADER, *(row + "," for row in FOREIGN_ROWS)]).encode(),
        "\n".join([FOREIGN_HEADER, *FOREIGN_ROWS]).encode("utf-16"),
        "\r\n".join([FOREIGN_HEADER, *FOREIGN_ROWS])
        .replace(",", ";")
        .replace(".1", ",1")
        .replace(".2", ",2")
        .encode("utf-16"),
        "\n".join(
            ["time [ns],position.m [rad],force.m [N m]", "0,1,2", "1e8,3,4", "2e8,5,6"]
        ).encode(),
    ],
    ids=["delimiter after each row", "UTF-16", "UTF-16 with decimal commas", "nanoseconds"],
)
def test_texts_of_other_programs_are_read(tmp_path, content):
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    log = read_log(path)
    assert log.time.values == pytest.approx([0.0, 0.1, 0.2])
    assert samples(log, "position")[:, 0].tolist() == [1.0, 3.0, 5.0]
    assert samples(log, "force")[:, 0].tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("lines", "what", "remedy"),
    [
        (["Recorder 3", FOREIGN_HEADER, *FOREIGN_ROWS], "does not name the columns", "put # in"),
        (["time q", "0 1", "1 2"], "separated by spaces: 2 numbers", "commas, semicolons or tabs"),
        (["time,position.m", "s,rad", "0,1"], "has no numbers: s, rad", "`position.motor [rad]`"),
        (["time (s),position.m (rad)", "0,1"], "has no unit", "`position.m [rad]`"),
        (["time [s],position.m [counts]", "0,1"], "unknown unit 'counts'", "length of 1 count"),
        (["time [s],force.m [A]", "0,1"], "unknown unit 'A'", "torque or force at 1 A"),
        (["time [s],force.m [%]", "0,1"], "'%' is not a unit", "torque or force at 1 %"),
        (["time [s],position.m [°]", "0,1"], "'°' is not a unit", "did you mean deg?"),
        (["Timestamp [s],position.m [rad]", "0,1"], "neither a time column", "'Timestamp' to"),
        (["time [s],force.m [N]", "2026-11-30T10:00:00.1,1"], "is not a number", "as seconds"),
    ],
)
def test_headers_of_other_programs_are_named(tmp_path, lines, what, remedy):
    with pytest.raises(LogError) as caught:
        read_log(write(tmp_path / "log.csv", "\n".join(lines) + "\n"))
    assert any(what in p.what and remedy in p.remedy for p in caught.value.problems)


def test_no_file_and_nothing_to_read(tmp_path):
    assert problems_of(sample_rate=1.0) == [("files", "no file was given", None)]
    path = write(tmp_path / "log.csv", "q1,q2\n1,2\n")
    assert problems_of(path, sample_rate=1.0) == [
        ("columns", "there are no columns to read; the file has q1, q2", None)
    ]


def test_a_parquet_file_with_text_and_nulls(tmp_path):
    pyarrow = extra("pyarrow")
    parquet = extra("pyarrow.parquet")
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table({"q [rad]": ["a", "b", "c"], "F [N]": [1, None, 3]}), path)
    result = problems_of(LogFile(path=path, columns=MAPPED), sample_rate=1.0)
    assert result == [
        ("column 'q'", "contains string, not numbers", None),
        ("column 'F'", "nan in row 2 is not a finite number", None),
    ]


def test_a_matlab_file_with_signals_of_different_length(tmp_path):
    path = tmp_path / "log.mat"
    scipy.io.savemat(path, {"q": np.arange(4.0), "F": np.arange(5.0)})
    result = problems_of(
        LogFile(path=path, columns=MAPPED, units={"q": "rad", "F": "N"}), sample_rate=1.0
    )
    assert result == [
        ("rows", "the variables have different numbers of samples (q: 4, F: 5)", None)
    ]


# Signals

RATE = 1000.0


@pytest.mark.parametrize(("order", "frequency"), [(2, 3.0), (4, 30.0), (4, 50.0), (5, 80.0)])
def test_the_filter_scales_a_sine_by_its_squared_gain_and_keeps_the_phase(order, frequency):
    # |H|^2 = 1 / (1 + (tan(pi f/fs) / tan(pi fc/fs))^(2 n)): the bilinear transform of a
    # Butterworth filter
    cutoff = 50.0
    time = np.arange(4000) / RATE
    sine = np.sin(2 * np.pi * frequency * time)[:, np.newaxis] * [1.0, -3.0]
    ratio = np.tan(np.pi * frequency / RATE) / np.tan(np.pi * cutoff / RATE)
    middle = slice(1000, 3000)
    filtered = butterworth(sine, rate=RATE, cutoff=cutoff, order=order)[middle]
    assert np.abs(filtered - sine[middle] / (1.0 + ratio ** (2 * order))).max() < TRANSIENT


@pytest.mark.parametrize(("order", "cutoff"), [(1, 70.0), (4, 50.0), (6, 20.0)])
def test_inside_a_record_the_filter_is_that_of_scipy(order, cutoff):
    noise = np.cumsum(np.random.default_rng(order).normal(size=(4001, 2)), axis=0)
    sections = scipy.signal.butter(order, cutoff, fs=RATE, output="sos")
    middle = slice(1000, 3000)  # the ends are continued in other ways
    ours = butterworth(noise, rate=RATE, cutoff=cutoff, order=order)[middle]
    assert (
        np.abs(ours - scipy.signal.sosfiltfilt(sections, noise, axis=0)[middle]).max() < TRANSIENT
    )


def test_central_differences_are_exact_for_a_parabola():
    period = 0.25  # a power of two: the differences themselves have no rounding
    time = period * np.arange(9)
    x = np.stack([3.0 * time**2 - time + 5.0, np.ones(9)], axis=1)
    assert (
        np.abs(
            central_differences(x, period) - np.stack([6.0 * time - 1.0, np.zeros(9)], axis=1)
        ).max()
        < ROUNDING
    )


@given(
    factor=st.integers(2, 12),
    extra=st.integers(0, 40),
    trailing=st.sampled_from([(), (1,), (3,), (2, 4)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_decimation_is_that_of_scipy(factor, extra, trailing, seed):
    x = np.random.default_rng(seed).normal(size=(20 * factor + 1 + extra, *trailing))
    expected = scipy.signal.decimate(x, factor, ftype="fir", axis=0, zero_phase=True)
    result = decimate(x, factor)
    assert result.shape == expected.shape
    assert np.abs(result - expected).max() < ROUNDING
    assert decimate(x, 1) is x


def test_filters_keep_the_shape_of_samples_without_columns():
    """A log that lacks the force of a drive has no column on which the drive acts."""
    assert decimate(np.empty((90, 0, 2)), 3).shape == (30, 0, 2)
    assert decimate(np.empty((90, 0, 2)), 1, cutoff=0.1).shape == (90, 0, 2)


def test_preparation_gives_motion_without_delay():
    time = np.arange(3000) / RATE
    w = 2 * np.pi * 2.0
    log = log_of(time, a=np.sin(w * time), b=0.5 * np.cos(w * time))
    force = Channel(quantity="force", channel="a", values=time**2, unit="N m")
    log = log.merge(build_log(time, [force]))
    made = prepare(log, Preparation(cutoff=60.0, order=4, trim=500, decimation=10))
    t = made["time"].to_numpy()
    assert len(t) == 2000
    assert t[0] == time[500]
    # against the true motion: filter loss and differences are of order (2 Hz / 60 Hz)^8 and (w T)^2
    # / 6
    loss = (w / RATE) ** 2
    assert np.abs(samples(made, "position", ["a"])[:, 0] - np.sin(w * t)).max() < loss
    assert np.abs(samples(made, "velocity", ["a"])[:, 0] - w * np.cos(w * t)).max() < w * loss
    assert (
        np.abs(samples(made, "acceleration", ["b"])[:, 0] + 0.5 * w**2 * np.cos(w * t)).max()
        < w**2 * loss
    )
    assert samples(made, "force")[:, 0].tolist() == (t**2).tolist()
    assert units(made, "acceleration") == {"a": "rad/s^2", "b": "rad/s^2"}
    assert made.attrs["period"] == pytest.approx(1.0 / RATE, rel=SCALING)
    assert made.attrs["preparation"]["trim"] == 500


def test_standstill_has_velocity_zero_wherever_the_zero_of_the_angle_is():
    # A position that rests at a value far from zero leaves rounding in the filter; its sign must
    # not count as motion.
    time = np.arange(4000) / RATE
    ramp = np.clip(time - 1.0, 0.0, 1.0)
    turns = [0.0, 50.265, -1000.0 / 3.0]
    log = log_of(time, **{f"at{k}": 7.0 * ramp + turn for k, turn in enumerate(turns)})
    velocity = samples(prepare(log, Preparation(cutoff=50.0, trim=100)), "velocity")
    signs = np.sign(velocity)
    assert (signs == signs[:, :1]).all()
    assert (signs[:700] == 0.0).all()
    assert (signs[1000:1800] == 1.0).all()
    raw = samples(prepare(log, Preparation(cutoff=50.0, trim=100, standstill=0.0)), "velocity")
    # without the threshold the test would see the rounding
    assert (np.sign(raw[:700, 1:]) != 0.0).any()


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"cutoff": -1.0}, ["cutoff"]),
        ({"cutoff": np.inf}, ["cutoff"]),
        (
            {"cutoff": None, "order": 0, "trim": -1, "decimation": 0},
            ["order", "trim", "decimation"],
        ),
        ({"cutoff": None, "decimation": 2.5}, ["decimation"]),
        ({"cutoff": None, "standstill": 1.0}, ["standstill"]),
    ],
)
def test_a_preparation_without_meaning_is_refused(options, where):
    with pytest.raises(InputError) as caught:
        Preparation(**options)
    assert [p.where for p in caught.value.problems] == where


@pytest.mark.parametrize(
    ("count", "preparation", "what"),
    [
        (
            1000,
            Preparation(cutoff=500.0),
            "500 Hz is not between zero and half the sampling rate, 500 Hz",
        ),
        (
            15,
            Preparation(cutoff=100.0),
            "15 samples are too few for a filter of order 4, which needs 16",
        ),
        (
            400,
            Preparation(cutoff=None, trim=200),
            "400 samples are too few: trimming 200 at each end",
        ),
        (400, Preparation(cutoff=None, trim=100, decimation=10), "decimating by 10 needs 401"),
        (2, Preparation(cutoff=None), "2 samples are too few"),
    ],
)
def test_a_log_that_cannot_be_prepared_is_refused(count, preparation, what):
    with pytest.raises(InputError, match=what):
        prepare(log_of(np.arange(count) / RATE, a=np.zeros(count)), preparation)


def test_uneven_sampling_is_refused_but_a_coarse_clock_is_not():
    rounded = np.round(np.arange(1000) * 1.5e-3, 3)
    assert sample_period(log_of(rounded, a=np.zeros(1000))) == pytest.approx(1.5e-3, rel=1e-3)
    changing = np.concatenate([np.arange(500) * 1.0e-3, 0.5 + np.arange(500) * 1.4e-3])
    with pytest.raises(InputError, match="not evenly sampled"):
        sample_period(log_of(changing, a=np.zeros(1000)))
    with pytest.raises(InputError, match="1 sample does not define a sampling rate"):
        sample_period(log_of(np.zeros(1), a=np.zeros(1)))


def test_too_little_to_differentiate_or_decimate():
    with pytest.raises(InputError, match="2 samples are too few for central differences"):
        central_differences(np.zeros(2), 1.0)
    with pytest.raises(InputError, match="the filter has 201 taps"):
        decimate(np.zeros(200), 10)
    with pytest.raises(InputError, match="at least 1, got 0"):
        decimate(np.zeros(200), 0)


# Measured data


def test_the_measured_arm_is_read_as_it_was_recorded(shared):
    folder = shared / "data" / "tx40"
    columns = {f"motor_{k}": f"Joint_{k}" for k in range(1, 7)}
    log = read_log(
        LogFile(
            path=folder / "pos_read_data.csv.gz",
            columns={"position": columns},
            units={"position": "rad"},
        ),
        LogFile(
            path=folder / "curr_data.csv.gz", columns={"force": columns}, units={"force": "N m"}
        ),
        sample_rate=5000.0,
    )
    assert log.sizes["time"] == 45_000
    assert channels(log, "force") == tuple(columns)
    for quantity, name in (("position", "pos_read_data"), ("force", "curr_data")):
        with gzip.open(folder / f"{name}.csv.gz", "rt") as stream:
            direct = np.array(
                [[float(cell) for cell in line.split(",")] for line in list(stream)[1:]]
            )
        assert (samples(log, quantity) == direct).all()


def test_a_mat_file_that_ends_its_reader_is_refused_and_the_next_is_read(tmp_path):
    """Oracle: the file, found by `make nightly`, ends a process that gives it to SciPy (checked here as well)."""
    damaged = next((Path(__file__).parents[1] / "fuzz" / "found" / "mat").glob("*.mat"))
    alone = [
        sys.executable,
        "-c",
        "import sys, scipy.io; scipy.io.loadmat(sys.argv[1])",
        str(damaged),
    ]
    assert subprocess.run(alone, capture_output=True, check=False).returncode != 0
    with pytest.raises(LogError, match="not a readable MAT file"):
        MatTable(damaged)
    path = tmp_path / "sound.mat"
    scipy.io.savemat(path, {"q": np.arange(4.0)})
    assert MatTable(path).names == ("q",)
