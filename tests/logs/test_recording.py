"""Recordings described in YAML, and what sensors make of signals: good ones, and every problem of bad ones at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tauloop.common.errors import DescriptionError, InputError, LogError
from tauloop.logs import (
    LogFile,
    Preparation,
    Sensors,
    load_recording,
    measure,
    read_log,
    samples,
    units,
)

GOOD = """
format: tauloop-log/1
description: two motors
sample_rate: 2 kHz
files:
  - path: positions.csv
    columns:
      position: {motor_1: A, motor_2: B}
    units: {position: deg}
  - path: forces.csv
    columns: {force: {motor_1: F}}
    units: {force: 0.5 N m}
preparation: {cutoff: 0.1 kHz, order: 3, standstill: 1e-5, trim: 20, decimation: 5}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "recording.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> dict[str, str]:
    """What is wrong by key path; every problem names the file and says what to do."""
    path = write(folder, text)
    with pytest.raises(LogError) as caught:
        load_recording(path)
    assert all(problem.file == str(path) and problem.remedy for problem in caught.value.problems)
    return {problem.where: problem.what for problem in caught.value.problems}


def test_a_good_recording_says_all_that_reading_needs(tmp_path):
    recording = load_recording(write(tmp_path, GOOD))
    assert recording.sample_rate == 2000.0
    assert recording.preparation == Preparation(
        cutoff=100.0, order=3, standstill=1e-5, trim=20, decimation=5
    )
    assert recording.files == (
        LogFile(
            path=tmp_path / "positions.csv",
            columns={"position": {"motor_1": "A", "motor_2": "B"}},
            units={"position": "deg"},
        ),
        LogFile(
            path=tmp_path / "forces.csv",
            columns={"force": {"motor_1": "F"}},
            units={"force": "0.5 N m"},
        ),
    )


def test_the_files_of_a_recording_are_read_in_si_units(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "positions.csv").write_text("A,B\n0,180\n90,0\n", encoding="utf-8")
    (data / "forces.csv").write_text("F\n4\n-2\n", encoding="utf-8")
    recording = load_recording(write(tmp_path, GOOD), data)
    log = read_log(*recording.files, sample_rate=recording.sample_rate)
    assert samples(log, "position") == pytest.approx(np.array([[0, np.pi], [np.pi / 2, 0]]))
    assert samples(log, "force") == pytest.approx(np.array([[2.0], [-1.0]]))
    assert log["time"].to_numpy() == pytest.approx([0.0, 0.0005])


def test_what_may_be_left_out(tmp_path):
    recording = load_recording(
        write(tmp_path, "format: tauloop-log/1\nfiles:\n  - {path: a.csv, time: t}\n")
    )
    assert recording.sample_rate is None
    assert recording.preparation is None
    assert recording.files == (LogFile(path=tmp_path / "a.csv", time="t"),)
    without_filter = load_recording(write(tmp_path, GOOD.replace("cutoff: 0.1 kHz, ", "")))
    assert without_filter.preparation is not None
    assert without_filter.preparation.cutoff is None


def test_every_problem_is_told_at_once_with_its_line(tmp_path):
    text = """format: tauloop-log/2
sample_rat: 5000 Hz
sample_rate: 5 kg
files:
  - columns: {position: [A, B]}
    path: {a: b}
  - path: forces.csv
    unit: {force: N m}
    time: []
  - forces.csv
preparation: {cutof: 10 Hz, cutoff: 0 Hz, order: 2.5, trim: -1, decimation: many, standstill: little}
"""
    path = write(tmp_path, text)
    with pytest.raises(LogError) as caught:
        load_recording(path)
    problems = {problem.where: problem for problem in caught.value.problems}
    assert {where: problem.line for where, problem in problems.items()} == {
        "format": 1,
        "sample_rat": 2,
        "sample_rate": 3,
        "files[0].columns.position": 5,
        "files[0].path": 6,
        "files[1].unit": 8,
        "files[1].time": 9,
        "files[2]": 10,
        "preparation.cutof": 11,
        "preparation.cutoff": 11,
        "preparation.order": 11,
        "preparation.trim": 11,
        "preparation.decimation": 11,
        "preparation.standstill": 11,
    } | ({"files[2].path": 10} if "files[2].path" in problems else {})
    assert "sample_rate" in problems["sample_rat"].remedy
    assert "cutoff" in problems["preparation.cutof"].remedy
    assert "tauloop-log/1" in problems["format"].remedy
    assert all(problem.remedy and problem.file == str(path) for problem in problems.values())


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("format: tauloop-log/1\n", "", "format", "is missing"),
        (
            "sample_rate: 2 kHz",
            "sample_rate: 2000",
            "sample_rate",
            "'2000' has no unit where a frequency",
        ),
        (
            "sample_rate: 2 kHz",
            "sample_rate: -2 kHz",
            "sample_rate",
            "must be positive, got -2000 1/s",
        ),
        (
            "sample_rate: 2 kHz",
            "sample_rate: nan Hz",
            "sample_rate",
            "nan Hz is not a finite number",
        ),
        ("sample_rate: 2 kHz", "sample_rate: [2 kHz]", "sample_rate", "this is a list"),
        ("decimation: 5", "decimation: 0", "preparation.decimation", "is 0"),
        ("order: 3", "order: 0", "preparation.order", "is 0"),
        ("standstill: 1e-5", "standstill: 2", "preparation.standstill", "is 2"),
        ("trim: 20", "trim: 99999999999999999999", "preparation.trim", "is out of range"),
        ("preparation: {", "preparation: 3 # {", "preparation", "this is the text '3'"),
        ("units: {position: deg}", "units: deg", "files[0].units", "this is the text 'deg'"),
        ("path: positions.csv", "path: ''", "files[0].path", "the text is empty"),
    ],
)
def test_single_faults(tmp_path, old, new, where, what):
    assert old in GOOD
    refusals = problems(tmp_path, GOOD.replace(old, new))
    assert list(refusals) == [where]
    assert what in refusals[where]


@pytest.mark.parametrize(
    "text", ["format: tauloop-log/1\n", "format: tauloop-log/1\nfiles: []\n", "[]", "just text"]
)
def test_recordings_without_files(tmp_path, text):
    assert any(where in ("files", "") for where in problems(tmp_path, text))


@pytest.mark.parametrize(
    "content", [b"", bytes(range(256)), b"a: &a [*a]\n", b"a: b: c\n", b"files: [" * 200]
)
def test_files_that_are_no_plain_yaml(tmp_path, content):
    path = tmp_path / "recording.yaml"
    path.write_bytes(content)
    with pytest.raises(DescriptionError) as caught:
        load_recording(path)
    assert all(problem.file == str(path) and problem.remedy for problem in caught.value.problems)


def test_a_recording_that_is_not_there(tmp_path):
    with pytest.raises(DescriptionError, match="no such file"):
        load_recording(tmp_path / "none.yaml")


def test_wrong_units_missing_columns_and_missing_files_are_told_at_once(tmp_path):
    """What only the data can show: found when the files are read."""
    (tmp_path / "positions.csv").write_text("A,C\n0,1\n", encoding="utf-8")
    text = GOOD.replace("position: deg", "position: kg")
    recording = load_recording(write(tmp_path, text))
    with pytest.raises(LogError) as caught:
        read_log(*recording.files, sample_rate=recording.sample_rate)
    output = str(caught.value)
    assert "'B'" in output
    assert "'kg' is not a unit of a position" in output
    assert "forces.csv" in output
    assert len(caught.value.problems) == 3


# Sensors


def simulated(**changes: object) -> object:
    time = np.arange(5000) / 1000
    position = np.column_stack([np.sin(time), 0.3 * np.cos(2 * time)])
    arguments = {
        "time": time,
        "position": position,
        "force": 10.0 * position,
        "names": ("a", "b"),
        "position_units": ("rad", "m"),
        "force_units": ("N m", "N"),
        "sensors": Sensors(resolution=np.array([1e-2, 0.0]), force_noise=np.array([0.0, 0.5])),
        "rng": np.random.default_rng(3),
    } | changes
    return measure(**arguments)  # type: ignore[arg-type]


def test_encoders_step_and_forces_are_noisy():
    log = simulated()
    time = log["time"].to_numpy()
    position, force = samples(log, "position"), samples(log, "force")
    steps = position[:, 0] / 1e-2
    assert np.abs(steps - np.round(steps)).max() < 1e-9
    assert np.abs(position[:, 0] - np.sin(time)).max() <= 0.5e-2 + 1e-12
    assert np.array_equal(position[:, 1], 0.3 * np.cos(2 * time))  # a perfect encoder
    assert np.array_equal(force[:, 0], 10.0 * np.sin(time))
    noise = force[:, 1] - 3.0 * np.cos(2 * time)
    assert noise.std() == pytest.approx(
        0.5, rel=4 / np.sqrt(2 * len(noise))
    )  # four standard deviations of the estimate
    assert abs(noise.mean()) < 4 * 0.5 / np.sqrt(len(noise))
    assert units(log, "position") == {"a": "rad", "b": "m"}
    assert units(log, "force") == {"a": "N m", "b": "N"}
    assert simulated().identical(log)


@pytest.mark.parametrize(
    ("changes", "wheres"),
    [
        (
            {"sensors": Sensors(resolution=np.array([1e-3, -1.0]), force_noise=np.zeros(2))},
            ["resolution"],
        ),
        (
            {"sensors": Sensors(resolution=np.zeros(2), force_noise=np.array([np.nan, 0.0]))},
            ["force_noise"],
        ),
        (
            {"sensors": Sensors(resolution=np.zeros(3), force_noise=np.zeros(1))},
            ["resolution", "force_noise"],
        ),
        ({"force": np.zeros((5000, 3)), "position": np.zeros((4, 2))}, ["position", "force"]),
        (
            {"names": ("a",)},
            ["position", "force", "position_units", "force_units", "resolution", "force_noise"],
        ),
    ],
)
def test_signals_and_sensors_that_do_not_belong_together(changes, wheres):
    with pytest.raises(InputError) as caught:
        simulated(**changes)
    assert [problem.where for problem in caught.value.problems] == wheres
    assert all(problem.remedy for problem in caught.value.problems)
