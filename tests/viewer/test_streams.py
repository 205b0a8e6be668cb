"""Streams for Rerun and Foxglove, read back by the viewers' own libraries."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.geometry.machine_geometry import machine_geometry

extra("trimesh")


@pytest.fixture(scope="module")
def fall(tmp_path_factory: pytest.TempPathFactory) -> tuple[tl.Model, Path]:
    """A simulation with variable steps, as a table."""
    model = tl.Model("delta")
    path = tmp_path_factory.mktemp("motion") / "fall.csv"
    command = [sys.executable, "-m", "tauloop", "simulate", "delta", "--duration", "0.1"]
    subprocess.run([*command, "--out", str(path), "--quiet"], check=True)
    return model, path


def tool(model: tl.Model, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and positions of the tool of a table, by another route."""
    table = np.genfromtxt(path, delimiter=",", names=True, deletechars="")
    names = [name for name in table.dtype.names if name.startswith("position.platform")]
    positions = np.stack([table[name] for name in names], axis=1)
    time = table[table.dtype.names[0]]
    return time, machine_geometry(model, model.inverse_kinematics(positions).q).tool


def test_a_file_for_foxglove_has_shapes_frames_and_quantities(
    fall: tuple[tl.Model, Path], tmp_path: Path
) -> None:
    extra("foxglove")
    make_reader = extra("mcap.reader").make_reader
    decoder = extra("mcap_protobuf.decoder").DecoderFactory()
    model, path = fall
    stream = tl.run_stream(model, tmp_path / "a.mcap", motion=path)
    time, expected = tool(model, path)
    assert stream.status is Status.OK
    assert stream.states == len(time)
    shapes, poses, stamps, values, units = [], [], [], [], {}
    schemas = {}
    with (tmp_path / "a.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[decoder])
        for schema, channel, message in reader.iter_messages():
            schemas[channel.topic] = schema
            if channel.topic == "/quantities":
                values.append(json.loads(message.data))
            if channel.topic == "/units":
                units = json.loads(message.data)
        for _, channel, message, content in reader.iter_decoded_messages(
            topics=["/machine", "/tf"]
        ):
            if channel.topic == "/machine":
                shapes += list(content.entities)
            else:
                stamps.append(message.log_time)
                poses += [t for t in content.transforms if t.child_frame_id == "tool"]
    assert {entity.frame_id for entity in shapes} >= {"plate", "leg1.arm", "leg1.forearm"}
    assert all(len(entity.triangles[0].indices) % 3 == 0 for entity in shapes)
    np.testing.assert_allclose(np.array(stamps) * 1e-9, time - time[0], atol=1e-9)
    places = np.array([[p.translation.x, p.translation.y, p.translation.z] for p in poses])
    np.testing.assert_allclose(places, expected, atol=1e-12)
    assert len(values) == len(time)
    assert values[-1]["position.platform.z"] == pytest.approx(expected[-1, 2], rel=1e-9)
    assert units["force.leg1.motor"] == "N m"
    # the names that Foxglove's panels require, and the fields that its plots offer
    assert schemas["/machine"].name == "foxglove.SceneUpdate"
    assert schemas["/tf"].name == "foxglove.FrameTransforms"
    fields = json.loads(schemas["/quantities"].data)["properties"]
    assert fields == {name: {"type": "number"} for name in values[-1]}
    assert json.loads(schemas["/units"].data)["properties"].keys() == units.keys()


def test_a_file_for_rerun_is_verified_by_its_own_reader(
    fall: tuple[tl.Model, Path], tmp_path: Path
) -> None:
    extra("rerun")
    model, path = fall
    tl.run_stream(model, tmp_path / "a.rrd", motion=path)
    time, expected = tool(model, path)
    rerun = str(Path(sys.executable).parent / "rerun")
    quiet = {**os.environ, "RERUN_ANALYTICS_ENABLED": "0", "HOME": str(tmp_path)}
    verified = subprocess.run(
        [rerun, "rrd", "verify", str(tmp_path / "a.rrd")], capture_output=True, text=True, env=quiet
    )
    assert verified.returncode == 0, verified.stderr
    printed = subprocess.run(
        [rerun, "rrd", "print", "-vvv", str(tmp_path / "a.rrd")],
        capture_output=True, text=True, env=quiet, check=True,
    ).stdout  # fmt: skip
    for entity in ("/machine/plate", "/machine/leg1.forearm/shape_", "/plots/force/leg1.motor"):
        assert f"entity_path: {entity}" in printed
    # the arrangement: the machine, and one plot for each quantity
    for origin in ("machine", "plots/force", "plots/position"):
        assert re.search(rf'view/.*?"?/?{origin}"?\b', printed, flags=re.DOTALL)
    assert printed.count("ViewBlueprint:space_origin") >= 3
    chunks = re.split(r"^Chunk\(", printed, flags=re.MULTILINE)
    rows = [
        [float(number) for number in match[1].split(",")]
        for chunk in chunks
        if " - /machine/tool - " in chunk.splitlines()[0]
        for match in re.finditer(r"\[\[([^\[\],]+,[^\[\],]+,[^\[\],]+)\]\]", chunk)
    ]
    rows.sort(key=lambda row: -row[2])
    np.testing.assert_allclose(np.array(rows)[:, 2], np.sort(expected[:, 2])[::-1], atol=1e-6)
    assert len(rows) == len(time)


def test_foxglove_connects_to_a_motion_that_is_played(fall: tuple[tl.Model, Path]) -> None:
    extra("foxglove")
    websockets = extra("websockets")
    model, path = fall
    addresses: list[str] = []
    announced = threading.Event()

    def announce(address: str) -> None:
        addresses.append(address)
        announced.set()

    def play() -> None:
        tl.run_stream(
            model, motion=path, viewer="foxglove", port=0, playback_speed=0.02, announce=announce
        )

    player = threading.Thread(target=play)
    player.start()
    assert announced.wait(60)

    async def topics() -> set[str]:
        protocol = websockets.Subprotocol("foxglove.sdk.v1")
        async with websockets.connect(addresses[0], subprotocols=[protocol]) as client:
            names: set[str] = set()
            while not {"/machine", "/tf", "/quantities"} <= names:
                message = await asyncio.wait_for(client.recv(), 30)
                content = json.loads(message) if isinstance(message, str) else {}
                names |= {channel["topic"] for channel in content.get("channels", ())}
            return names

    names = asyncio.run(topics())
    player.join()
    assert {"/machine", "/tf", "/quantities", "/units"} <= names


def test_a_running_plant_is_shown_without_disturbing_it(tmp_path: Path) -> None:
    extra("foxglove")
    make_reader = extra("mcap.reader").make_reader
    name = f"tauloop-test-{os.getpid()}"
    command = [
        sys.executable,
        "-m",
        "tauloop",
        "run",
        "plant",
        "delta",
        "--rate",
        "1kHz",
        "--without-controller",
    ]
    plant = subprocess.Popen(
        [*command, "--shm", name, "--duration", "2", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        stream = tl.run_stream("delta", tmp_path / "plant.mcap", shm=name, rate="50 Hz")
        output, _ = plant.communicate(timeout=120)
    finally:
        plant.kill()
    assert stream.status is Status.OK
    assert stream.states > 10
    assert json.loads(output)["counts"]["refused"] == 0
    with (tmp_path / "plant.mcap").open("rb") as file:
        messages = [
            json.loads(message.data)
            for _, _, message in make_reader(file).iter_messages(topics=["/quantities"])
        ]
    assert len(messages) == stream.states
    assert set(messages[0]) == {
        f"{quantity}.leg{i}.motor" for quantity in ("position", "velocity") for i in (1, 2, 3)
    }


def test_what_a_stream_lacks_is_refused(fall: tuple[tl.Model, Path], tmp_path: Path) -> None:
    model, path = fall
    with pytest.raises(InputError, match="neither a motion nor a plant"):
        tl.run_stream(model, tmp_path / "a.mcap")
    with pytest.raises(InputError, match=r"use \.rrd or \.mcap|does not have the extension"):
        tl.run_stream(model, tmp_path / "a.csv", motion=path)
    with pytest.raises(InputError, match="together with a plant"):
        tl.StreamOptions(motion=path, shm="plant")


def test_the_output_of_a_simulation_with_variable_steps_is_viewed(
    fall: tuple[tl.Model, Path],
) -> None:
    model, path = fall
    view = tl.view(model, simulation=path)
    assert view.playback is not None
    assert len(np.unique(np.diff(view.playback.time).round(9))) > 2
