"""Bags of ROS that rosbags wrote, with topics, rates and clocks as robots have them: read as a table would be."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bags import NS, START, Messages, Record, rosbag1, rosbag2
from extras import extra
from scipy.interpolate import CubicSpline

import tauloop as tl
from tauloop import LogError
from tauloop.calibration.measurements.reading import read_measurements
from tauloop.logs import (
    FillGaps,
    LogFile,
    load_recording,
    read_log,
    read_signals,
    samples,
    units,
    write_log,
)
from tauloop.logs.files import unpacking
from tauloop.logs.recording import read_recorded
from tauloop.motion import random_multisine
from tauloop.viewer.playback import read_playback

extra("rosbags")

#: Stamps in whole nanoseconds against seconds in a table: half a nanosecond.
NANOSECOND = 1e-9
#: The same numbers by way of a bag and of a table.
SAME = 1e-12
RATE = 200
UNITS = {"position": "rad", "force": "N m"}
MAPPED = {
    "position": {
        "motor_1": "/arm/joint_states.position[q_l]",
        "motor_2": "/arm/joint_states.position[q_r]",
    },
    "force": {"motor_1": "/torques.data[1]", "motor_2": "/torques.data[0]"},
}


@pytest.fixture(scope="module")
def log():
    """Positions and torques of a five-bar on a multisine."""
    model = tl.Model(tl.load("five_bar"))
    center = model.actuator_position(model.assembly.q)
    excitation = random_multisine(
        center, np.full(2, 0.3), np.random.default_rng(1), terms=3, lowest=0.5, highest=2
    )
    motion = excitation.sample(np.arange(2 * RATE) / RATE)
    force = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration
    ).force
    sensors = tl.logs.Sensors(resolution=np.zeros(2), force_noise=np.full(2, 0.01))
    rng = np.random.default_rng(2)
    names = ("motor_1", "motor_2")
    return tl.logs.measure(
        motion.time, motion.position, force, names, ("rad",) * 2, ("N m",) * 2, sensors, rng
    )


def stamps(log) -> list[int]:
    return [START + round(t * NS) for t in log["time"].to_numpy().tolist()]


def records(log, version: int = 2, delay: int = 200_000) -> list[Record]:
    """Joints of other names and in another order, and torques without stamps that are received at once."""
    make = Messages(version)
    position, force = (
        samples(log, "position", ("motor_2", "motor_1")),
        samples(log, "force", ("motor_2", "motor_1")),
    )
    joints = [
        ("/arm/joint_states", stamp + delay, make.joints(stamp, ["q_r", "q_l"], row))
        for stamp, row in zip(stamps(log), position, strict=True)
    ]
    torques = [
        ("/torques", stamp, make.array(row)) for stamp, row in zip(stamps(log), force, strict=True)
    ]
    return [*joints, *torques, ("/rosout", START, make.text("hello"))]


def file_of(path: Path, **more) -> LogFile:
    return LogFile(path=path, columns=MAPPED, units=UNITS, **more)


def problems_of(*files: LogFile | Path) -> list[str]:
    with pytest.raises(LogError) as caught:
        read_log(*files)
    return [f"{p.where}: {p.what} ({p.remedy})" for p in caught.value.problems]


# Reading


@pytest.mark.parametrize(
    ("storage", "compression"),
    [
        ("SQLITE3", "NONE"),
        ("SQLITE3", "MESSAGE"),
        ("SQLITE3", "FILE"),
        ("MCAP", "NONE"),
        ("MCAP", "STORAGE"),
    ],
)
def test_a_rosbag2_folder_is_read_as_the_table_of_the_same_numbers(
    tmp_path, log, storage, compression
):
    path = rosbag2(tmp_path / "bag", records(log), storage, compression)
    back = read_log(file_of(path))
    assert back["time"].to_numpy() == pytest.approx(log["time"].to_numpy(), abs=NANOSECOND, rel=0)
    for quantity in ("position", "force"):
        assert np.array_equal(
            samples(back, quantity, ("motor_1", "motor_2")), samples(log, quantity)
        )
        assert units(back, quantity) == units(log, quantity)


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_the_file_of_a_bag_alone_is_read_too(tmp_path, log, storage):
    folder = rosbag2(tmp_path / "bag", records(log), storage)
    (file,) = (path for path in folder.iterdir() if path.name != "metadata.yaml")
    assert read_log(file_of(file)).equals(read_log(file_of(folder)))


@pytest.mark.parametrize("compression", [None, "BZ2", "LZ4"])
def test_a_bag_of_ros_1_is_read(tmp_path, log, compression):
    back = read_log(file_of(rosbag1(tmp_path / "log.bag", records(log, version=1), compression)))
    assert np.array_equal(
        samples(back, "position", ("motor_1", "motor_2")), samples(log, "position")
    )


def test_identification_from_a_bag_is_that_from_the_table(tmp_path, log):
    """The whole of it through a description in YAML; base parameters, their deviations and the residual alike."""
    rosbag2(tmp_path / "bag", records(log))
    write_log(tmp_path / "log.csv", log)
    columns = "".join(
        f"      {quantity}: {{{', '.join(f'{name}: {column!r}' for name, column in group.items())}}}\n"
        for quantity, group in MAPPED.items()
    )
    text = "format: tauloop-log/1\nfiles:\n  - path: {}\n    units: {{position: rad, force: N m}}\n    columns:\n{}"
    (tmp_path / "bag.yaml").write_text(text.format("bag", columns) + "    between: cubic\n")
    options = tl.IdentificationOptions()
    model = tl.identification.identification_model(tl.load("five_bar"), options)
    bag, table = (tl.identify(model, tmp_path / name, options) for name in ("bag.yaml", "log.csv"))
    estimates = [result.identification.estimate.values for result in (bag, table)]
    assert len(estimates[0]) > 5
    assert estimates[0] == pytest.approx(estimates[1], rel=SAME, abs=SAME)
    assert load_recording(tmp_path / "bag.yaml").files[0].between == "cubic"


def test_joints_by_their_own_names_need_units_only(tmp_path):
    make = Messages()
    states = [
        (
            "/joint_states",
            START + k,
            make.joints(START + k * NS, ["a", "b"], [k, -k], [1, 1], [0.5 * k, 2]),
        )
        for k in range(5)
    ]
    path = rosbag2(tmp_path / "bag", states)
    stated = {"position": "rad", "velocity": "rad/s", "force": "N m"}
    back = read_log(LogFile(path=path, units=stated))
    assert list(back.data_vars) == [f"{quantity}.{joint}" for quantity in stated for joint in "ab"]
    assert back["force.a"].to_numpy() == pytest.approx(0.5 * np.arange(5.0), abs=0)
    unknown = problems_of(path)
    assert len(unknown) == 6
    assert all("has no unit" in problem for problem in unknown)


def test_units_of_wrenches_are_those_of_ros(tmp_path):
    make = Messages()
    values = [
        ("/tool", START + k, make.wrench(START + k * NS, (k, 2, 3), (4, 5, -k))) for k in range(4)
    ]
    path = rosbag2(tmp_path / "bag", values)
    columns = {"wrench": {"f_x": "/tool.wrench.force.x", "m_z": "/tool.wrench.torque.z"}}
    back = read_log(LogFile(path=path, columns=columns, units={"/tool.wrench.force.x": "kN"}))
    assert back["wrench.f_x"].to_numpy() == pytest.approx(1e3 * np.arange(4.0), abs=0)
    assert back["wrench.m_z"].to_numpy() == pytest.approx(-np.arange(4.0), abs=0)
    assert units(back, "wrench") == {"f_x": "N", "m_z": "m N"} or units(back, "wrench") == {
        "f_x": "N",
        "m_z": "N m",
    }


def test_two_drivers_on_one_topic_of_joints(tmp_path):
    """Each message has the joints of one driver; the second's are brought to the stamps of the first's."""
    make, ms = Messages(), NS // 1000
    first = [
        ("/joint_states", START + k * ms, make.joints(START + k * ms, ["a"], [float(k)]))
        for k in range(20)
    ]
    second = [
        ("/joint_states", t := START + k * ms + ms // 2, make.joints(t, ["b"], [2.0 * k + 1.0]))
        for k in range(20)
    ]
    back = read_log(
        LogFile(path=rosbag2(tmp_path / "bag", [*first, *second]), units={"position": "rad"})
    )
    assert back["position.a"].to_numpy() == pytest.approx(np.arange(1.0, 20.0), abs=0)
    assert back["position.b"].to_numpy() == pytest.approx(2.0 * np.arange(1.0, 20.0), abs=SAME)


# One base of time


def at_two_rates(folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """Positions at 1 kHz from 0 to 99 ms, torques every 3 ms from 1 ms on."""
    make, ms = Messages(), NS // 1000
    fast, slow = np.arange(100), np.arange(1, 97, 3)
    joints = [
        ("/q", START + k * ms, make.joints(START + k * ms, ["a"], [k * k])) for k in fast.tolist()
    ]
    torques = [("/f", START + k * ms, make.array([np.sin(0.1 * k)])) for k in slow.tolist()]
    return rosbag2(folder, [*joints, *torques]), fast, slow


@pytest.mark.parametrize("between", [None, "linear", "hold", "cubic"])
def test_other_rates_are_brought_to_the_first_topics_stamps(tmp_path, between):
    path, fast, slow = at_two_rates(tmp_path / "bag")
    columns = {"position": {"a": "/q.position[a]"}, "force": {"a": "/f.data[0]"}}
    back = read_log(LogFile(path=path, columns=columns, units=UNITS, between=between))
    shared = (fast >= slow[0]) & (fast <= slow[-1])
    assert back["time"].to_numpy() == pytest.approx(fast[shared] / 1000, abs=NANOSECOND, rel=0)
    assert np.array_equal(back["position.a"].to_numpy(), (fast[shared] ** 2).astype(float))
    expected = {
        "linear": np.interp(fast[shared], slow, np.sin(0.1 * slow)),
        "hold": np.array([np.sin(0.1 * slow[slow <= k][-1]) for k in fast[shared]]),
        "cubic": CubicSpline(slow / 1000, np.sin(0.1 * slow))(fast[shared] / 1000),
    }[between or "linear"]
    assert back["force.a"].to_numpy() == pytest.approx(expected, abs=SAME)


def test_the_base_of_time_may_be_chosen(tmp_path):
    path, _, slow = at_two_rates(tmp_path / "bag")
    columns = {"position": {"a": "/q.position[a]"}, "force": {"a": "/f.data[0]"}}
    back = read_log(LogFile(path=path, columns=columns, units=UNITS, time="/f.received"))
    assert back["position.a"].to_numpy() == pytest.approx((slow**2).astype(float), abs=SAME)
    assert back["force.a"].to_numpy() == pytest.approx(np.sin(0.1 * slow), abs=0)


def test_between_means_nothing_for_a_table(tmp_path, log):
    write_log(tmp_path / "log.csv", log)
    assert "omit `between`" in problems_of(LogFile(path=tmp_path / "log.csv", between="hold"))[0]
    assert (
        "'spline' is unknown"
        in problems_of(LogFile(path=tmp_path / "log.csv", between="spline"))[0]
    )


# Clocks and lost messages


def of_stamps(folder: Path, pairs: list[tuple[int, int]]) -> LogFile:
    """Joint states by stamp and time of receipt, ms."""
    make, ms = Messages(), NS // 1000
    states = [
        ("/q", START + received * ms, make.joints(START + stamp * ms, ["a"], [float(stamp)]))
        for stamp, received in pairs
    ]
    return LogFile(path=rosbag2(folder, states), units={"position": "rad"})


def test_lost_messages_are_counted_and_filled_on_request(tmp_path):
    file = of_stamps(tmp_path / "bag", [(k, k) for k in range(50) if k not in (20, 21)])
    (problem,) = problems_of(file)
    assert "a gap of 0.003 s after t = 0.019 s: 3 periods" in problem
    assert "samples are missing" in problem
    filled = read_signals(file, gaps=FillGaps(longest=2))
    assert filled.channels[0].values == pytest.approx(np.arange(50.0), abs=1e-9)


def test_lost_messages_of_another_topic_are_not_made_up(tmp_path):
    make, ms = Messages(), NS // 1000
    joints = [("/q", START + k * ms, make.joints(START + k * ms, ["a"], [k])) for k in range(40)]
    torques = [
        ("/f", START + k * ms, make.array([2.0 * k])) for k in range(40) if k not in (10, 11)
    ]
    columns = {"position": {"a": "/q.position[a]"}, "force": {"a": "/f.data[0]"}}
    file = LogFile(
        path=rosbag2(tmp_path / "bag", [*joints, *torques]), columns=columns, units=UNITS
    )
    (problem,) = problems_of(file)
    assert problem.startswith(
        "column '/f.data[0]': 2 messages are missing between t = 0.009 s and 0.012 s"
    )
    filled = read_signals(file, gaps=FillGaps(longest=2))
    assert filled.interpolated == {"force.a": 2}
    assert filled.channels[1].values == pytest.approx(2.0 * np.arange(40.0), abs=1e-9)


def test_a_clock_that_was_set_is_told_from_lost_messages(tmp_path):
    ahead = of_stamps(tmp_path / "ahead", [(k + (700 if k > 30 else 0), k) for k in range(60)])
    (problem,) = problems_of(ahead)
    assert (
        "time jumps by 0.701 s after t = 0.03 s, but the recorder's clock by at most one period"
        in problem
    )
    back = of_stamps(tmp_path / "back", [(k - (25 if k > 30 else 0), k) for k in range(60)])
    (problem,) = problems_of(back)
    assert "time decreases from 0.03 s to 0.006 s" in problem


def test_messages_that_are_late_are_not_lost(tmp_path):
    """Times of receipt: three come together; one is truly missing later on, and only that is named."""
    make, ms = Messages(), NS // 1000
    late = {10: 12.2, 11: 12.3, 12: 12.4}
    received = [late.get(k, float(k)) for k in range(40) if k != 25]
    path = rosbag2(
        tmp_path / "bag", [("/f", START + round(t * ms), make.array([t])) for t in received]
    )
    (problem,) = problems_of(
        LogFile(path=path, columns={"force": {"a": "/f.data[0]"}}, units={"force": "N"})
    )
    assert "a gap of 0.002 s after t = 0.024 s" in problem


def test_stamps_of_simulated_time_beside_times_of_receipt(tmp_path):
    make, ms = Messages(), NS // 1000
    joints = [("/q", START + k * ms, make.joints((k + 1) * ms, ["a"], [k])) for k in range(20)]
    torques = [("/f", START + k * ms, make.array([k])) for k in range(20)]
    columns = {"position": {"a": "/q.position[a]"}, "force": {"a": "/f.data[0]"}}
    path = rosbag2(tmp_path / "bag", [*joints, *torques])
    problems = problems_of(LogFile(path=path, columns=columns, units=UNITS))
    assert (
        "topic /f: has no stamps, and its times of receipt differ by 1.7e+09 s from the stamps of /q"
        in problems[0]
    )
    back = read_log(LogFile(path=path, columns=columns, units=UNITS, time="/q.received"))
    assert np.array_equal(back["force.a"].to_numpy(), np.arange(20.0))


def test_efforts_that_are_not_numbers_are_named(tmp_path):
    make = Messages()
    states = [
        ("/q", START + k, make.joints(START + k * NS, ["a"], [k], [], [np.nan if k == 3 else 1.0]))
        for k in range(6)
    ]
    path = rosbag2(tmp_path / "bag", states)
    (problem,) = problems_of(LogFile(path=path, units=UNITS))
    assert "'/q.effort[a]': nan in row 4 is not a finite number" in problem


def test_what_is_not_in_the_bag_is_named(tmp_path, log):
    path = rosbag2(tmp_path / "bag", records(log))
    columns = {"position": {"motor_1": "/arm/joint_states.position[q_left]"}}
    problems = problems_of(LogFile(path=path, columns=columns, units={"position": "rad"}))
    assert len(problems) == 1
    assert "column '/arm/joint_states.position[q_left]': not in the file" in problems[0]
    assert "/arm/joint_states.position[q_l]" in problems[0]
    make = Messages()
    text = rosbag2(tmp_path / "text", [("/rosout", START, make.text("hello"))])
    assert (
        "no messages with supported numbers; the bag has /rosout (std_msgs/msg/String)"
        in problems_of(text)[0]
    )


# Calibration and playback


def test_measurements_of_a_calibration_come_from_a_bag(tmp_path):
    make, rng = Messages(), np.random.default_rng(0)
    towers = [f"tower{i}.motor" for i in (1, 2, 3)]
    encoders, places = rng.uniform(0.2, 0.3, (12, 3)), rng.uniform(-0.1, 0.1, (12, 3))
    both = []
    for k in range(12):
        stamp = START + k * NS
        both.append(("/joint_states", stamp, make.joints(stamp, ["m1", "m2", "m3"], encoders[k])))
        both.append(("/tracker", stamp, make.point(stamp, *places[k].tolist())))
    rosbag2(tmp_path / "bag", both)
    head = [
        *(f"encoder.{name} [m]" for name in towers),
        *(f"measured.{axis} [m]" for axis in "xyz"),
    ]
    rows = [",".join(map(repr, [*encoders[k].tolist(), *places[k].tolist()])) for k in range(12)]
    (tmp_path / "table.csv").write_text("\n".join([",".join(head), *rows]))
    joints = ", ".join(
        f"{name}: '/joint_states.position[m{i}]'" for i, name in enumerate(towers, start=1)
    )
    (tmp_path / "bag.yaml").write_text(
        f"""
format: tauloop-measurements/1
series:
  - path: bag
    kind: position
    name: tracker
    encoders: {{{joints}}}
    readings: {{x: /tracker.point.x, y: /tracker.point.y, z: /tracker.point.z}}
    units: {{encoders: m}}
    noise: 0.02 mm
"""
    )
    machine = tl.load("linear_delta")
    table = read_measurements(tmp_path / "table.csv", machine, noise="0.02 mm").series[0]
    bag = read_measurements(tmp_path / "bag.yaml", machine).series[0]
    assert np.array_equal(bag.encoders, table.encoders)
    assert np.array_equal(bag.readings, table.readings)


def test_a_machine_is_played_back_from_a_bag(tmp_path, log):
    rosbag2(tmp_path / "bag", records(log))
    columns = ", ".join(f"{name}: '{column}'" for name, column in MAPPED["position"].items())
    (tmp_path / "bag.yaml").write_text(
        "format: tauloop-log/1\nfiles:\n"
        f"  - {{path: bag, columns: {{position: {{{columns}}}}}, units: {{position: rad}}}}\n"
    )
    model = tl.Model(tl.load("five_bar"))
    played = read_playback(model, tmp_path / "bag.yaml")
    assert np.array_equal(model.actuator_position(played.q), samples(log, "position")) or (
        model.actuator_position(played.q) == pytest.approx(samples(log, "position"), abs=1e-9)
    )
    assert read_recorded(tmp_path / "bag.yaml").sizes["time"] == 2 * RATE


# Writing


@pytest.mark.parametrize("ending", [".mcap", ".db3"])
def test_a_written_bag_reads_back_and_is_what_others_read(tmp_path, log, ending):
    """To the last bit and the nanosecond by Tauloop; by rosbags as joint states with efforts."""
    later = log.assign_coords(time=log["time"] + 0.25)
    later["temperature.motor_1"] = later["force.motor_1"] * 2.0
    later["temperature.motor_1"].attrs |= {
        "units": "s",
        "quantity": "temperature",
        "channel": "motor_1",
    }
    path = write_log(tmp_path / f"log{ending}", later)
    back = read_log(path)
    assert sorted(back.data_vars) == sorted(later.data_vars)
    for name in later.data_vars:
        assert np.array_equal(back[name].to_numpy(), later[name].to_numpy())
        assert back[name].attrs["units"] == later[name].attrs["units"]
    assert back["time"].to_numpy() == pytest.approx(later["time"].to_numpy(), abs=NANOSECOND, rel=0)
    reader, store = extra("rosbags.rosbag2").Reader, Messages().store
    with reader(path) as bag:
        assert {topic: info.msgtype for topic, info in bag.topics.items()} == {
            "/joint_states": "sensor_msgs/msg/JointState",
            "/tauloop/log": "std_msgs/msg/String",
            "/tauloop/temperature": "std_msgs/msg/Float64MultiArray",
        }
        states = [
            store.deserialize_cdr(raw, c.msgtype)
            for c, _, raw in bag.messages()
            if c.topic == "/joint_states"
        ]
    assert states[7].name == ["motor_1", "motor_2"]
    assert np.array_equal([state.effort for state in states], samples(log, "force"))


@pytest.mark.parametrize(
    ("name", "file"), [("run.rosbag2", "run.mcap"), ("run.db3.rosbag2", "run.db3")]
)
def test_a_written_folder_is_what_ros_records(tmp_path, log, name, file):
    """metadata.yaml and a file of messages, as rosbags reads ROS's own; what is there is not replaced."""
    path = write_log(tmp_path / name, log)
    assert sorted(part.name for part in path.iterdir()) == ["metadata.yaml", file]
    assert list(tmp_path.iterdir()) == [path]
    back = read_log(path)
    assert all(
        np.array_equal(back[column].to_numpy(), log[column].to_numpy()) for column in log.data_vars
    )
    with extra("rosbags.highlevel").AnyReader([path]) as bag:
        assert bag.topics["/joint_states"].msgcount == log.sizes["time"]
    with pytest.raises(tl.InputError, match="a file or folder of that name exists"):
        write_log(path, log)
    assert read_log(path).equals(back)


def test_a_force_and_a_moment_are_a_stamped_wrench(tmp_path, log):
    """Read back to the last bit, and by rosbags as ROS's own message with its stamps."""
    letters = {"fx": "N", "fy": "N", "fz": "N", "mx": "N m", "my": "N m", "mz": "N m"}
    for k, (channel, unit) in enumerate(letters.items()):
        log = log.assign({f"tool.{channel}": log["force.motor_1"] * (k + 1.0)})
        log[f"tool.{channel}"].attrs.update(units=unit, quantity="tool", channel=channel)
    path = write_log(tmp_path / "log.mcap", log)
    back, store = read_log(path), Messages().store
    for channel in letters:
        assert np.array_equal(back[f"tool.{channel}"].to_numpy(), log[f"tool.{channel}"].to_numpy())
    with extra("rosbags.rosbag2").Reader(path) as bag:
        assert bag.topics["/tauloop/tool"].msgtype == "geometry_msgs/msg/WrenchStamped"
        raw = [(c.msgtype, r) for c, _, r in bag.messages() if c.topic == "/tauloop/tool"]
    message = store.deserialize_cdr(raw[5][1], raw[5][0])
    assert message.wrench.torque.y == 5.0 * float(log["force.motor_1"][5])
    assert message.header.stamp.sec * NS + message.header.stamp.nanosec > 0


def test_the_same_log_gives_the_same_bag(tmp_path, log):
    assert len({write_log(tmp_path / name, log).read_bytes() for name in ("a.mcap", "b.mcap")}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mcap", "b.mcap"]


# Files that are no bags


def test_damaged_bags_are_refused_or_read(tmp_path, log):
    """Cut and turned bytes: a value or a named refusal, for both storages."""
    refused = 0
    for storage in ("MCAP", "SQLITE3"):
        folder = rosbag2(tmp_path / storage, records(log.isel(time=slice(30))), storage, "NONE")
        (file,) = (path for path in folder.iterdir() if path.name != "metadata.yaml")
        good = file.read_bytes()
        damaged = [good[: len(good) // 2], good[:100], b"\x89MCAP0\r\n"]
        damaged += [
            good[:k] + bytes(b ^ 0xFF for b in good[k : k + 8]) + good[k + 8 :]
            for k in range(8, 4000, 1000)
        ]
        for data in damaged:
            path = tmp_path / f"damaged{file.suffix}"
            path.write_bytes(data)
            try:
                read_log(file_of(path))
            except LogError:
                refused += 1
    assert refused > 6


def test_a_bag_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    """A message of 1.2 GB of zeros that zstd packs to 0.1 MB."""
    bags, zstd = extra("rosbags.rosbag2"), sys.modules["rosbags.rosbag2.writer"].zstd
    store = Messages().store
    with bags.Writer(tmp_path / "bag", version=9) as writer:
        writer.set_custom_data("a", "b")
        topic = writer.add_connection("/f", "std_msgs/msg/Float64MultiArray", typestore=store)
        packed = zstd.ZstdCompressor()
        block = bytes(100_000_000)
        writer.write(
            topic, START, b"".join(packed.compress(block) for _ in range(12)) + packed.flush()
        )
    metadata = tmp_path / "bag" / "metadata.yaml"
    text = metadata.read_text().replace("compression_format: ''", "compression_format: zstd")
    metadata.write_text(text.replace("compression_mode: ''", "compression_mode: message"))
    assert sum(path.stat().st_size for path in (tmp_path / "bag").iterdir()) < 2_000_000
    monkeypatch.setattr(unpacking, "UNCHECKED_BYTES", 1_000_000)
    assert "not a readable ROS bag" in problems_of(tmp_path / "bag")[0]


def test_without_rosbags_the_extra_is_named(tmp_path, log):
    """In a Python that finds Tauloop and what it always needs, and no rosbags."""
    path = write_log(tmp_path / "log.mcap", log)
    code = f"import sys\nsys.modules['rosbags'] = None\nfrom tauloop.logs import read_log\nread_log({str(path)!r})\n"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "pip install 'tauloop[ros]'" in ended.stderr


def test_a_folder_without_metadata_is_no_bag(tmp_path, log):
    folder = rosbag2(tmp_path / "bag", records(log))
    (folder / "metadata.yaml").unlink()
    assert "this is a folder" in problems_of(folder)[0]
    shutil.rmtree(folder)
    assert "there is no such file" in problems_of(folder)[0]
