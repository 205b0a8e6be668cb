"""Bags that end early, and stamps that publishers left empty: read as far as they go with a note, or refused."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from bags import (
    CHUNK,
    DATA_END,
    HEADER,
    MAGIC,
    MESSAGE,
    NS,
    START,
    Messages,
    Record,
    mcap_record,
    mcap_records,
    repacked,
    rosbag1,
    rosbag2,
    unpacked,
)
from extras import extra

import tauloop as tl
from tauloop import LogError
from tauloop.logs import LogFile, read_log, read_signals
from tauloop.logs.log import Signals
from tauloop.motion import random_multisine

extra("rosbags")

COUNT, MS = 300, NS // 1000
PACKINGS = ("", "zstd", "lz4", None)
#: More messages than a chunk of `repacked` has.
PER_CHUNK = 60


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="tauloop")


def records(count: int = COUNT, version: int = 2) -> list[Record]:
    make = Messages(version)
    return [
        ("/q", START + k * MS, make.joints(START + k * MS, ["a"], [float(k)])) for k in range(count)
    ]


def bag_file(folder: Path, storage: str = "MCAP", compression: str = "NONE") -> Path:
    rosbag2(folder, records(), storage, compression)
    return next(path for path in folder.iterdir() if path.name != "metadata.yaml")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return bag_file(tmp_path_factory.mktemp("bag") / "run").read_bytes()


def read(path: Path) -> Signals:
    return read_signals(LogFile(path=path, units={"position": "rad"}))


def read_cut(path: Path, data: bytes) -> Signals:
    path.write_bytes(data)
    return read(path)


def places(data: bytes) -> dict[str, int]:
    """Bytes at which a file may be cut: within and between records of each kind."""
    at, places_by_name = len(MAGIC), dict[str, int]()
    chunks = 0
    for kind, record in mcap_records(data[len(MAGIC) : -len(MAGIC)]):
        if kind == HEADER:
            at += len(record)
            continue
        if kind == CHUNK:
            chunks += 1
        if chunks in (0, 3, 9):
            name = f"chunk {chunks}" if kind == CHUNK else f"record {kind}"
            places_by_name |= {
                f"at {name}": at,
                f"in the length of {name}": at + 4,
                f"in the head of {name}": at + 20,
            }
            places_by_name |= {
                f"in {name}": at + len(record) // 2,
                f"at the end of {name}": at + len(record) - 1,
            }
        if kind == DATA_END:
            places_by_name |= {
                "at the end of the data": at,
                "in the end of the data": at + 5,
                "in the footer": at + 20,
            }
        at += len(record)
    return places_by_name | {
        "in the magic bytes at the end": len(data) - 3,
        "two thirds": 2 * len(data) // 3,
    }


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_cut_bag_is_read_up_to_the_cut(packing: str | None, whole: bytes, tmp_path: Path) -> None:
    """Oracle: the beginning of the whole one; no message of a whole chunk is missing, and the note has all of it."""
    data = repacked(whole, packing)
    uncut = read_cut(tmp_path / "uncut.mcap", data)
    assert uncut.notes == ()
    assert uncut.channels[0].values == pytest.approx(np.arange(COUNT), abs=0)
    counts = []
    for name, at in places(data).items():
        before = messages_before(data, at)
        if before < 2:
            with pytest.raises(LogError, match=f"cut.mcap is truncated at byte {at}"):
                read_cut(tmp_path / "cut.mcap", data[:at])
            continue
        log = read_cut(tmp_path / "cut.mcap", data[:at])
        values = log.channels[0].values
        assert np.array_equal(values, np.arange(len(values)))
        assert before <= len(values) <= before + PER_CHUNK
        last = np.datetime64(START + (len(values) - 1) * MS, "ns")
        (note,) = log.notes
        assert f"cut.mcap is truncated at byte {at}" in note, name
        assert (
            f"the last of the {len(values)} messages before it was received at {last} UTC" in note
        )
        counts.append(len(values))
    assert max(counts) == COUNT
    assert min(counts) < COUNT


def messages_before(data: bytes, cut: int) -> int:
    """Messages in whole chunks, and outside of chunks, before a cut."""
    at, count = len(MAGIC), 0
    for kind, record in mcap_records(data[len(MAGIC) : -len(MAGIC)]):
        at += len(record)
        if at > cut:
            break
        inner = mcap_records(unpacked(record)) if kind == CHUNK else [(kind, record)]
        count += sum(part == MESSAGE for part, _ in inner)
    return count


def test_a_cut_within_an_unpacked_chunk_loses_one_message_alone(
    whole: bytes, tmp_path: Path
) -> None:
    """rosbags writes one chunk of a short recording: all of it would be lost with it."""
    (chunk,) = (
        record for kind, record in mcap_records(whole[len(MAGIC) : -len(MAGIC)]) if kind == CHUNK
    )
    length = len(chunk) // COUNT
    values = read_cut(tmp_path / "cut.mcap", whole[: int(0.7 * len(chunk))]).channels[0].values
    assert len(values) == pytest.approx(0.7 * COUNT, abs=0.02 * COUNT + 4000 / length)
    assert np.array_equal(values, np.arange(len(values)))


@pytest.mark.parametrize("cut", [1, 7, 8, 12, 20])
def test_what_is_cut_within_its_head_is_refused_with_a_true_remedy(
    cut: int, whole: bytes, tmp_path: Path
) -> None:
    with pytest.raises(LogError) as caught:
        read_cut(tmp_path / "cut.mcap", whole[:cut])
    (problem,) = caught.value.problems
    assert "not a readable ROS bag" in problem.what
    assert "mcap recover" in problem.remedy
    if cut > len(MAGIC):
        assert "it is truncated within its first record" in problem.what


@pytest.mark.parametrize("ends", [True, False])
def test_a_bag_without_messages_says_so(ends: bool, whole: bytes, tmp_path: Path) -> None:
    header = next(record for _, record in mcap_records(whole[len(MAGIC) :]))
    end = mcap_record(DATA_END, bytes(4)) + mcap_record(2, bytes(20)) + MAGIC
    with pytest.raises(LogError, match="no messages with supported numbers") as caught:
        read_cut(tmp_path / "empty.mcap", MAGIC + header + (end if ends else b""))
    assert ("before its first message" in str(caught.value)) is not ends


def test_zeros_that_a_recorder_reserved_are_no_records(whole: bytes, tmp_path: Path) -> None:
    data = repacked(whole, "zstd")
    end = places(data)["at the end of the data"]
    log = read_cut(tmp_path / "zeros.mcap", data[:end] + bytes(100_000))
    assert len(log.time) == COUNT
    assert f"is truncated at byte {end}" in log.notes[0]


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_lengths_beyond_all_measure_end_the_reading_there(
    kept: float, whole: bytes, tmp_path: Path
) -> None:
    """A cut that is filled with noise: its next record seems to be larger than the file."""
    data = repacked(whole, "lz4")
    noise = np.random.default_rng(3).integers(128, 256, 4000, dtype=np.uint8).tobytes()
    log = read_cut(tmp_path / "noise.mcap", data[: int(kept * len(data))] + noise)
    values = log.channels[0].values
    assert 0 < len(values) < COUNT
    assert np.array_equal(values, np.arange(len(values)))
    assert log.notes


@pytest.mark.parametrize("compression", ["NONE", "MESSAGE"])
def test_a_cut_file_of_a_folder_is_read_beside_a_whole_one(
    compression: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    file = bag_file(folder, compression=compression)
    file.write_bytes(file.read_bytes()[: int(0.7 * file.stat().st_size)])
    log = read(folder)
    assert 0.5 * COUNT < len(log.time) < 0.9 * COUNT
    assert file.name in log.notes[0]
    assert sorted(path.name for path in folder.iterdir()) == sorted([file.name, "metadata.yaml"])


def test_the_data_set_has_the_notes_too_and_a_warning_is_given(
    whole: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cut.mcap"
    path.write_bytes(repacked(whole, "zstd")[:-20])
    log = read_log(LogFile(path=path, units={"position": "rad"}))
    assert "is truncated at byte" in log.attrs["notes"][0]
    assert caplog.text.count("is truncated at byte") == 1


def test_an_identification_from_a_cut_bag_states_the_cut(tmp_path: Path) -> None:
    model = tl.Model(tl.load("five_bar"))
    center = model.actuator_position(model.assembly.q)
    motion = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(0), terms=3, lowest=0.5, highest=2
    )
    run = motion.sample(np.arange(800) / 200)
    force = model.actuators.inverse_dynamics(run.position, run.velocity, run.acceleration).force
    force = force + np.random.default_rng(1).normal(0, 0.01, force.shape)
    make, names = Messages(), ["motor_1", "motor_2"]
    stamps = [START + round(t * NS) for t in run.time.tolist()]
    rows = zip(stamps, run.position, force, strict=True)
    states = [
        ("/joint_states", t, make.joints(t, names, position, (), effort))
        for t, position, effort in rows
    ]
    folder = rosbag2(tmp_path / "run", states)
    (file,) = folder.glob("*.mcap")
    (tmp_path / "cut.mcap").write_bytes(file.read_bytes()[: int(0.7 * file.stat().st_size)])
    text = "format: tauloop-log/1\nfiles:\n  - path: cut.mcap\n    units: {position: rad, force: N m}\n"
    (tmp_path / "log.yaml").write_text(text)
    result = tl.identify(tl.load("five_bar"), tmp_path / "log.yaml")
    assert result.status.value == "ok"
    assert any("cut.mcap is truncated at byte" in line for line in result.repairs)


# Other storages


def test_a_database_that_is_cut_is_refused_with_a_true_remedy(tmp_path: Path) -> None:
    file = bag_file(tmp_path / "run", "SQLITE3")
    data = file.read_bytes()
    for share in (0.02, 0.3, 0.7, 0.97):
        file.write_bytes(data[: int(share * len(data))])
        with pytest.raises(LogError) as caught:
            read(file)
        (problem,) = caught.value.problems
        assert "not a readable ROS bag" in problem.what
        assert "sqlite3 FILE .recover | sqlite3 NEW.db3" in problem.remedy
    file.write_bytes(data)
    with sqlite3.connect(file) as connection:
        assert connection.execute("select count(*) from messages").fetchone() == (COUNT,)
    connection.close()


def test_a_bag_of_ros_1_that_is_cut_is_refused_with_a_true_remedy(tmp_path: Path) -> None:
    path = rosbag1(tmp_path / "log.bag", records(version=1))
    data = path.read_bytes()
    for share in (0.001, 0.3, 0.7, 0.99):
        path.write_bytes(data[: int(share * len(data))])
        with pytest.raises(LogError) as caught:
            read(path)
        (problem,) = caught.value.problems
        assert "not a readable ROS bag" in problem.what
        assert "rosbag reindex FILE" in problem.remedy


def test_a_damaged_folder_of_a_bag_names_what_repairs_it(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / "run", records())
    (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: {version: 5}\n")
    with pytest.raises(LogError, match="ros2 bag reindex FOLDER"):
        read(folder)
    shutil.rmtree(folder)


# Stamps that publishers left empty


def stamped(folder: Path, stamps: list[int]) -> Path:
    """Joint states with these stamps, ms (0 is none), that are received every millisecond."""
    make = Messages()
    states = [
        ("/q", START + k * MS, make.joints(stamp, ["a"], [float(k)]))
        for k, stamp in enumerate(stamps)
    ]
    return rosbag2(folder, states)


SOME = [START + k * MS for k in range(50)]


@pytest.mark.parametrize(
    ("stamps", "which"),
    [
        ([0] * 50, "all 50 stamps"),
        ([0, *SOME[1:]], "1 of 50 stamps"),
        ([*SOME[:20], 0, 0, *SOME[22:]], "2 of 50 stamps"),
        ([*SOME[:-1], 0], "1 of 50 stamps"),
        ([0] * 250 + [START + k * MS for k in range(250, 300)], "250 of 300 stamps"),
    ],
    ids=["all", "first", "within", "last", "before those that are checked"],
)
def test_stamps_of_zero_are_stated_and_times_of_receipt_are_used(
    stamps: list[int], which: str, tmp_path: Path
) -> None:
    log = read(stamped(tmp_path / "run", stamps))
    assert log.time == pytest.approx(np.arange(len(stamps)) / 1000, abs=1e-9)
    assert np.array_equal(log.channels[0].values, np.arange(len(stamps)))
    (note,) = log.notes
    assert f"{which} in the headers of /q are zero, so times of receipt are used" in note


def test_simulated_time_begins_at_zero(tmp_path: Path) -> None:
    log = read(stamped(tmp_path / "run", [k * 2 * MS for k in range(50)]))
    assert log.time == pytest.approx(np.arange(50) * 2e-3, abs=1e-9)
    assert log.notes == ()


def test_zero_stamps_of_another_topic_count_as_none(tmp_path: Path) -> None:
    """One clock for both where they agree; else the difference is named."""
    make = Messages()
    joints = [
        ("/q", START + k * MS, make.joints(START + k * MS, ["a"], [float(k)])) for k in range(40)
    ]
    wrenches = [("/f", START + k * MS, make.wrench(0, (k, 0, 0), (0, 0, 0))) for k in range(40)]
    columns = {"position": {"a": "/q.position[a]"}, "force": {"a": "/f.wrench.force.x"}}
    file = LogFile(
        path=rosbag2(tmp_path / "run", [*joints, *wrenches]),
        columns=columns,
        units={"position": "rad"},
    )
    log = read_signals(file)
    assert log.channels[1].values == pytest.approx(np.arange(40.0), abs=1e-9)
    assert "all 40 stamps in the headers of /f are zero" in log.notes[0]
