"""Logs of other kinds: decimal commas, no header, HDF5 and MATLAB 7.3; the same numbers by another way of writing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from extras import extra

from tauloop.common.errors import LogError
from tauloop.logs import LogFile, load_recording, read_log, read_signals, write_log
from tauloop.logs.log import Signals, samples as of_log

TIME = np.arange(40) / 100.0
MOTION = np.stack([np.sin(3.0 * TIME), np.cos(2.0 * TIME) - 2.0], axis=1)
FORCE = 1e3 * MOTION**3
COLUMNS = {"position": {"a": "q1", "b": "q2"}, "force": {"a": "f1"}}
UNITS = {"position": "rad", "force": "N m", "time": "s"}


def table(delimiter: str, decimal: str, header: bool = True, digits: str = ".9g") -> str:
    rows = [["t", "q1", "q2", "f1"]] if header else []
    for k, t in enumerate(TIME):
        rows.append(
            [format(value, digits).replace(".", decimal) for value in (t, *MOTION[k], FORCE[k, 0])]
        )
    return "".join(delimiter.join(row) + "\r\n" for row in rows)


def same(log: Signals, digits: float = 1e-8) -> None:
    assert log.time == pytest.approx(TIME, abs=digits)
    assert of_log(log, "position", ("a", "b")) == pytest.approx(MOTION, rel=digits, abs=digits)
    assert of_log(log, "force", ("a",))[:, 0] == pytest.approx(FORCE[:, 0], rel=digits, abs=digits)


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("digits", [".9g", ".3f", ".9e"])
def test_decimal_commas_between_semicolons_or_tabs(
    tmp_path: Path, delimiter: str, header: bool, digits: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(table(delimiter, ",", header, digits), encoding="utf-8")
    names = ("t", "q1", "q2", "f1") if header else ("1", "2", "3", "4")
    columns = {"position": {"a": names[1], "b": names[2]}, "force": {"a": names[3]}}
    log = read_signals(LogFile(path=path, columns=columns, units=UNITS, time=names[0]))
    same(log, 6e-4 if digits == ".3f" else 1e-8)


def test_columns_of_a_text_without_a_header_go_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("# made by a recorder\n" + table(",", ".", header=False), encoding="utf-8")
    (tmp_path / "log.yaml").write_text(
        "format: tauloop-log/1\nfiles:\n  - path: log.csv\n    time: 1\n"
        "    units: {position: rad, force: N m, time: s}\n"
        "    columns: {position: {a: 2, b: 3}, force: {a: 4}}\n",
        encoding="utf-8",
    )
    same(read_signals(*load_recording(tmp_path / "log.yaml").files))
    with pytest.raises(LogError, match="refer to columns by number") as caught:
        read_signals(LogFile(path=path, columns=COLUMNS, units=UNITS), sample_rate=100.0)
    assert caught.value.problems[0].line == 2
    units = {"position": "rad"}
    with pytest.raises(LogError, match="column '5'"):
        read_signals(
            LogFile(path=path, columns={"position": {"a": "2", "b": "5"}}, units=units),
            sample_rate=100.0,
        )
    path.write_text(table(",", ".", header=False) + "1,2,x,4\r\n", encoding="utf-8")
    with pytest.raises(LogError, match="'x' is not a number") as caught:
        read_signals(
            LogFile(path=path, columns={"position": {"a": "2", "b": "3"}}, units=units),
            sample_rate=100.0,
        )
    assert caught.value.problems[0].line == len(TIME) + 1


@pytest.fixture
def h5py() -> object:
    return extra("h5py")


def test_data_sets_of_hdf5_go_by_their_paths(tmp_path: Path, h5py) -> None:
    with h5py.File(tmp_path / "log.h5", "w") as file:
        file["time"] = TIME
        file["time"].attrs["unit"] = "s"
        for k, name in enumerate("ab"):
            file[f"position/{name}"] = MOTION[:, k : k + 1]
            file[f"position/{name}"].attrs["units"] = np.bytes_("rad")
        file["force/a"] = FORCE[:, 0].astype(np.float64)
        file["force/a"].attrs["unit"] = "N m"
        file["note"] = "hello"
        file["elsewhere"] = h5py.ExternalLink("/nowhere/at/all.h5", "/x")
    same(read_signals(tmp_path / "log.h5"), 0.0)
    with h5py.File(tmp_path / "table.hdf5", "w") as file:
        rows = np.zeros(
            len(TIME), dtype=[("t", "f8"), ("q1", "f8"), ("q2", "f8"), ("f1", "f4"), ("name", "S4")]
        )
        rows["t"], rows["q1"], rows["q2"], rows["f1"] = TIME, *MOTION.T, FORCE[:, 0]
        file["log"] = rows
    columns = {
        quantity: {k: f"log.{v}" for k, v in group.items()} for quantity, group in COLUMNS.items()
    }
    same(
        read_signals(
            LogFile(path=tmp_path / "table.hdf5", columns=columns, units=UNITS, time="log.t")
        ),
        1e-6,
    )


def test_matlab_7_3_is_hdf5_with_its_matrices_turned(tmp_path: Path, h5py) -> None:
    """As MATLAB writes it: a user block of 512 bytes, every array by columns, its class beside it."""
    path = tmp_path / "log.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in (("t", TIME[:, None]), ("q", MOTION), ("f1", FORCE[:, :1].T)):
            file[name] = values.T
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
        file["text"] = np.array([[104, 105]], dtype="u2")
        file["text"].attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = np.zeros(3)
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128))
    columns = {"position": {"a": "q[0]", "b": "q[1]"}, "force": {"a": "f1"}}
    same(read_signals(LogFile(path=path, columns=columns, units=UNITS, time="t")), 0.0)
    with pytest.raises(LogError, match=r"which has f1, q\[0\], q\[1\], t"):
        read_signals(
            LogFile(path=path, columns={"position": {"a": "text"}}, units=UNITS), sample_rate=1.0
        )


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 200)
    with pytest.raises(LogError, match="HDF5"):
        read_signals(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(LogError, match=r"pip install 'tauloop\[hdf5\]'"):
        read_signals(path)


def test_a_csv_of_ours_is_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(table(",", "."), encoding="utf-8")
    log = read_signals(LogFile(path=path, columns=COLUMNS, units=UNITS, time="t"))
    again = read_signals(write_log(tmp_path / "again.csv", log.dataset()))
    assert all(
        np.array_equal(x.values, y.values)
        for x, y in zip(log.channels, again.channels, strict=True)
    )


def test_a_header_that_numpy_writes_as_a_comment_names_the_columns(tmp_path: Path) -> None:
    """As `numpy.savetxt` writes it, against the table and the same file with a plain header."""
    table = np.array([[0.0, 0.1, -2.0], [0.01, 0.2, 3.0], [0.02, 0.4, 1.0]])
    header = "a rig\ntime [s],position.a [rad],force.a [N m]"
    path = tmp_path / "log.csv"
    read = []
    for comments in ("# ", ""):
        text = header if comments else header.partition("\n")[2]
        np.savetxt(path, table, delimiter=",", header=text, comments=comments)
        log = read_log(path)
        assert log["time"].values.tolist() == table[:, 0].tolist()
        read.append([log[name].values.tolist() for name in ("position.a", "force.a")])
    assert read[0] == read[1] == [table[:, 1].tolist(), table[:, 2].tolist()]


def test_a_comment_that_does_not_name_every_column_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for comment in ("# time, position", "# 1, 2, 3", "# a rig"):
        path.write_text(f"{comment}\n0,0.1,2\n0.1,0.2,3\n")
        with pytest.raises(LogError, match="the first row contains numbers"):
            read_log(path)


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "\ufeffsep=;"])
def test_the_line_of_a_spreadsheet_that_states_the_delimiter_is_no_header(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"{line}\ntime [ms];position.a [deg]\n0;90\n10;45,5\n", encoding="utf-8")
    log = read_log(path)
    assert log["time"].values == pytest.approx([0.0, 0.01])
    assert log["position.a"].values == pytest.approx(np.radians([90.0, 45.5]))


@pytest.mark.parametrize("kind", ["float64", "Float64", "float64[pyarrow]"])
@pytest.mark.parametrize("time", ["number", "timedelta", "datetime", "index"])
def test_a_data_frame_is_read_as_its_csv_file(tmp_path: Path, kind: str, time: str) -> None:
    """Against the table in a file, and the numbers of which it is made."""
    frame = pd.DataFrame(
        {
            "time [s]": TIME,
            "position.a [deg]": np.degrees(MOTION[:, 0]),
            "force.a [kN]": FORCE[:, 0],
        }
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    from_file = read_signals(tmp_path / "log.csv")
    frame = frame.astype(dict.fromkeys(frame.columns[1:], kind))
    frame.index = pd.RangeIndex(100, 100 + len(frame))
    if time == "index":
        frame = frame.set_index("time [s]")
    elif time != "number":
        steps = pd.to_timedelta(TIME, "s")
        start = pd.Timestamp("2026-11-30T22:00:00", tz="Europe/Berlin")
        frame["time [s]"] = steps if time == "timedelta" else start + steps
    log = read_signals(frame)
    assert log.time - log.time[0] == pytest.approx(TIME, abs=1e-6)
    for name, values in (("position", MOTION), ("force", 1e3 * FORCE)):
        values_read = of_log(log, name, ("a",))[:, 0]
        assert values_read == pytest.approx(values[:, 0], rel=1e-12, abs=1e-15)
        assert values_read == pytest.approx(
            of_log(from_file, name, ("a",))[:, 0], rel=1e-12, abs=1e-15
        )


def test_faults_of_a_data_frame_are_reported(tmp_path: Path) -> None:
    sound = pd.DataFrame({"time [s]": [0.0, 0.1, 0.2], "position.a [rad]": [1.0, 2.0, 3.0]})
    for change, message in (
        ({"position.a [rad]": [1.0, None, 3.0]}, "nan in row 2 is not a finite number"),
        ({"position.a [rad]": ["1", "2", "3"]}, "not numbers"),
        ({"position.a [rad]": [True, False, True]}, "contains bool, not numbers"),
        ({"time [s]": [0.0, 0.2, 0.1]}, "time decreases"),
        ({"time [s]": pd.to_datetime(["2026-01-01", None, "2026-01-02"])}, "row 2 is not a finite"),
    ):
        with pytest.raises(LogError, match=message):
            read_signals(sound.assign(**change))
    with pytest.raises(LogError, match="has no unit"):
        read_signals(sound.rename(columns={"position.a [rad]": "position.a"}))
    with pytest.raises(LogError, match="has no samples"):
        read_signals(sound.iloc[:0])
