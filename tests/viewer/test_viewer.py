"""Looking at machines: lines and poses, the drawing, handles, and the viewer's scene without a browser."""

from __future__ import annotations

import functools
import html
import importlib
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from extras import extra
from machine_texts import shipped_text
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop import Model, StrokeOptions, ViewOptions, load, plan_stroke
from tauloop.common.errors import EngineError, InputError, PoseError
from tauloop.display import save_figure
from tauloop.display.renderers.machine_drawing import machine_figure
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.formats import loads
from tauloop.geometry.clearance import rod_clearance
from tauloop.geometry.machine_geometry import body_lines, machine_geometry
from tauloop.logs import write_log
from tauloop.viewer import Playback, Viewer, read_playback
from tauloop.viewer.panel.handles import RANGE_MARGIN, Handles

#: Rounding of coordinates of a few metres, m.
ROUNDING = 1e-12
#: Sliders show lengths to 0.1 mm and angles to 0.01 deg; half of that, and with both angles the
#: tool within this, m.
SHOWN_ANGLE, SHOWN_TOOL = 0.005 + 1e-9, 2e-4
#: Loops that Newton's method has closed, m.
CLOSED = 1e-9
PNG = b"\x89PNG\r\n"


@functools.cache
def model(name: str) -> Model:
    return Model(load(name))


# Geometry


@pytest.mark.parametrize("name", ["delta", "rcid", "gantry_tau_6link"])
def test_rods_are_where_the_clearance_has_them_and_as_long_as_the_file_says(name: str) -> None:
    machine = model(name)
    q = machine.assembly.states
    rods = machine_geometry(machine, q).of_kind("rod")
    assert np.abs(rods - rod_clearance(machine).segments(q)).max() < ROUNDING
    lengths = [
        machine.mechanism.value(rod.length)
        for rod in machine.mechanism.rods
        if rod.length is not None
    ]
    assert np.abs(np.linalg.norm(rods[:, :, 1] - rods[:, :, 0], axis=-1) - lengths).max() < CLOSED


def test_telescopic_rods_are_as_long_as_their_coordinates() -> None:
    machine = model("hexapod")
    q = machine.assembly.states
    geometry = machine_geometry(machine, q)
    rods = geometry.of_kind("rod")
    columns = [
        machine.topology.coordinate_names.index(s.name)
        for s in geometry.shape.segments
        if s.kind == "rod"
    ]
    assert len(columns) == 6
    assert (
        np.abs(np.linalg.norm(rods[:, :, 1] - rods[:, :, 0], axis=-1) - q[:, columns]).max()
        < CLOSED
    )
    ways = (rods[:, :, 1] - rods[:, :, 0]) / np.linalg.norm(
        rods[:, :, 1] - rods[:, :, 0], axis=-1, keepdims=True
    )
    assert np.abs(geometry.drives[1] - ways).max() < ROUNDING  # a strut drives along itself


def test_the_axis_of_a_slide_goes_with_its_cart() -> None:
    machine = model("gantry_tau_6link")
    q = machine.assembly.states
    origins = machine_geometry(machine, q).drives[0]
    carts = q[
        :,
        [
            machine.topology.coordinate_names.index(a.drives[0][0])
            for a in machine.mechanism.actuators
        ],
    ]
    assert np.ptp(carts, axis=0).min() > 0.05
    # tracks along x, whose coordinates begin at x = 0
    assert origins[:, :, 0] == pytest.approx(carts, abs=ROUNDING)
    assert np.ptp(origins[:, :, 1:], axis=0).max() < ROUNDING


def test_five_bar_has_its_own_lengths_in_its_plane() -> None:
    machine = model("five_bar")
    q = machine.assembly.states
    geometry = machine_geometry(machine, q)
    assert geometry.plane == (0, 1)
    for name, length in (("crank_1", 0.25), ("crank_2", 0.25), ("link_1", 0.35), ("link_2", 0.35)):
        points = geometry.points(name)
        assert np.linalg.norm(points[:, 1] - points[:, 0], axis=1) == pytest.approx(length)
    assert geometry.tool[:, :2] == pytest.approx(q[:, :2])
    assert geometry.drives[1] == pytest.approx(
        np.broadcast_to([0.0, 0.0, 1.0], geometry.drives[1].shape)
    )


def test_pieces_of_different_bodies_meet_in_the_joints() -> None:
    machine = model("delta")
    geometry = machine_geometry(machine, machine.assembly.states)
    arms = np.stack([geometry.points(f"leg{i}.arm") for i in (1, 2, 3)], axis=1)
    rods = geometry.of_kind("rod")
    meet = np.linalg.norm(arms[:, :, :, None] - rods[:, :, None], axis=-1).min(axis=(2, 3))
    assert meet.max() < CLOSED  # an elbow is on the arm and on the forearm
    assert np.linalg.norm(arms[:, :, 1] - arms[:, :, 0], axis=-1) == pytest.approx(0.26)
    assert geometry.plane == (0, 1, 2)


def test_rails_end_at_the_limits_and_slides_at_the_cart() -> None:
    machine = model("gantry_tau_6link")
    geometry = machine_geometry(machine, machine.assembly.q)
    for i in (1, 2, 3):
        rail = next(
            k
            for k, s in enumerate(geometry.shape.segments)
            if (s.name, s.kind) == (f"track{i}.slide", "rail")
        )
        slide = next(
            k
            for k, s in enumerate(geometry.shape.segments)
            if (s.name, s.kind) == (f"track{i}.slide", "slide")
        )
        assert geometry.segments[0, rail, :, 0] == pytest.approx([-1.5, 1.5])
        x = machine.assembly.q[machine.topology.coordinate_names.index(f"track{i}.slide")]
        assert geometry.segments[0, slide, 1, 0] - geometry.segments[
            0, slide, 0, 0
        ] == pytest.approx(x)


def test_a_square_has_an_outline_and_fills_its_area() -> None:
    corners = np.array([[0, 0, 2], [1, 1, 2], [1, 0, 2], [0, 1, 2], [0.4, 0.6, 2]], dtype=float)
    edges, faces = body_lines(corners)
    assert np.linalg.norm(corners[edges[:, 1]] - corners[edges[:, 0]], axis=1) == pytest.approx(1.0)
    # none through the point within
    assert np.bincount(edges.ravel(), minlength=5).tolist() == [2, 2, 2, 2, 0]
    a, b, c = (corners[faces[:, i]] for i in range(3))
    assert 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() == pytest.approx(1.0)


def test_a_cube_has_twelve_edges_and_a_line_is_a_chain() -> None:
    cube = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], [0.0, 1.0]), axis=-1).reshape(-1, 3)
    edges, faces = body_lines(cube)
    assert len(edges) == 12
    # no diagonals
    assert np.linalg.norm(cube[edges[:, 1]] - cube[edges[:, 0]], axis=1) == pytest.approx(1.0)
    assert len(faces) == 12
    edges, faces = body_lines(np.array([[0.0, 0, 0], [3.0, 0, 3], [1.0, 0, 1]]))
    assert sorted(map(sorted, edges.tolist())) == [[0, 2], [1, 2]]
    assert len(faces) == 0


# The drawing


@pytest.mark.parametrize(("name", "panels"), [("five_bar", 1), ("delta", 4)])
def test_a_planar_machine_is_drawn_in_its_plane_and_others_in_four_views(
    name: str, panels: int, tmp_path: Path
) -> None:
    machine = model(name)
    figure = machine_figure(machine_geometry(machine, machine.assembly.states), title=name)
    assert len(figure.axes) == panels
    assert all(axes.get_aspect() == 1.0 for axes in figure.axes[:3])
    widths = {round(float(np.ptp(axes.get_xlim())), 12) for axes in figure.axes[:3]}
    assert len(widths) == 1  # one scale
    shown = {text.get_text().strip() for text in figure.axes[-1].texts}
    assert {actuator.name for actuator in machine.mechanism.actuators} <= shown
    tool = machine_geometry(machine, machine.assembly.q).tool[0]
    crosses = [line for line in figure.axes[0].lines if line.get_label() == "tool"]
    assert crosses[0].get_xdata() == pytest.approx([tool[0]])
    assert save_figure(figure, tmp_path / "m.png", dpi=40).read_bytes().startswith(PNG)


def test_a_picture_and_where_the_tool_is(tmp_path: Path) -> None:
    shown = tl.view(model("delta"), ViewOptions(pose={"x": 0.1}))
    assert shown.as_dict()["tool_m"] == pytest.approx([0.1, 0.0, -0.5])
    assert save_figure(shown.picture(), tmp_path / "delta.png").read_bytes().startswith(PNG)


def test_what_cannot_be_reached_is_refused() -> None:
    with pytest.raises(PoseError, match="out of reach by"):
        tl.view(model("delta"), ViewOptions(pose={"z": -0.9}))
    with pytest.raises(InputError, match="cannot be combined with pose"):
        tl.view(model("delta"), ViewOptions(pose={"z": -0.4}, motion=Path("a.csv")))


def test_an_imported_model_is_drawn(shared: Path, tmp_path: Path) -> None:
    folder = shared / "models" / "example_parallel_robots" / "robot_delta"
    shown = tl.view(load(folder / "robot.urdf", folder / "robot.yaml"))
    assert save_figure(shown.picture(), tmp_path / "imported.png").read_bytes().startswith(PNG)


# Handles


def test_handles_of_a_free_platform_turn_about_the_axes_of_the_base() -> None:
    machine = model("hexapod")
    handles = Handles(machine, machine.platform, machine.assembly.q)
    assert handles.names[3:] == ("platform.rx", "platform.ry", "platform.rz")
    q = handles.moved(machine.assembly.q, handles.names.index("platform.ry"), 10.0)
    assert np.abs(machine.assembly.loops.residuals(q[None])[0]).max() < CLOSED
    geometry = machine_geometry(machine, q)
    turn = geometry.rotations[0, geometry.shape.index["plate"]]
    assert turn == pytest.approx(Rotation.from_euler("y", 10.0, degrees=True).as_matrix())
    assert handles.values(q) == pytest.approx([0.0, 0.0, 0.35, 0.0, 10.0, 0.0])


@pytest.mark.parametrize("name", ["delta", "five_bar", "gantry_tau_6link"])
def test_handles_of_actuators_move_them_alone_within_their_limits(name: str) -> None:
    machine = model(name)
    handles = Handles(machine, machine.actuators, machine.assembly.q)
    before = handles.values(machine.assembly.q)
    target = before[0] + 0.1 * (handles.handles[0].upper - before[0])
    q = handles.moved(machine.assembly.q, 0, float(target))
    assert np.abs(machine.assembly.loops.residuals(q[None])[0]).max() < CLOSED
    assert handles.values(q) == pytest.approx([target, *before[1:]])
    assert machine.actuator_position(q[None])[0] == pytest.approx(machine.actuators.ports.at(q))
    assert all(
        handle.lower <= value <= handle.upper
        for handle, value in zip(handles.handles, before, strict=True)
    )


def test_ranges_end_at_the_limits_of_the_file_or_where_the_machine_ends() -> None:
    machine = model("delta")
    handles = Handles(machine, machine.platform, machine.assembly.q)
    ranges = {handle.name: (handle.lower, handle.upper) for handle in handles.handles}
    assert ranges["platform.z"] == pytest.approx((-0.65, -0.36))
    free = Model(
        loads(
            shipped_text("delta").replace(
                "  limits: {x: {drawing: [-0.2 m, 0.2 m]}, y: {drawing: [-0.2 m, 0.2 m]},",
                "  limits: {",
            )
        )
    )
    handles = Handles(free, free.platform, free.assembly.q)
    upper = handles.handles[0].upper
    with pytest.raises(PoseError, match="out of reach"):
        handles.moved(free.assembly.q, 0, 1.1 * upper)
    assert handles.moved(free.assembly.q, 0, 0.8 * upper)[0] == pytest.approx(0.8 * upper)
    # by a walk of 1 mm a step
    border = upper - RANGE_MARGIN * (upper - handles.handles[0].lower) / (1 + 2 * RANGE_MARGIN)
    places = np.tile(free.platform_position(free.assembly.q), (400, 1))
    places[:, 0] += 1e-3 * np.arange(400)
    states = free.platform.evaluate(places, start=np.tile(free.assembly.q, (400, 1)))
    within = (
        states.health.is_reached
        & states.health.is_regular
        & (free.limits.room(states.q) >= 0.0).all(axis=1)
    )
    assert border == pytest.approx(1e-3 * (int(np.argmin(within)) - 0.5), abs=1e-3)
    wide = model("cable_camera")  # 72 m
    handles = Handles(wide, wide.platform, wide.assembly.q)
    assert [(handle.lower, handle.upper) for handle in handles.handles] == [
        (-40, 40),
        (-26, 26),
        (3, 20),
    ]


# Motions from files


def test_a_motion_is_read_by_either_entry_and_the_clock_finds_its_samples(tmp_path: Path) -> None:
    machine = model("delta")
    path = write_log(
        tmp_path / "stroke.csv",
        plan_stroke(machine, StrokeOptions(end={"x": 0.1}, duration=0.5)).log(),
    )
    played = read_playback(machine, path)
    assert played.duration == pytest.approx(0.5)
    assert machine_geometry(machine, played.q).tool[-1] == pytest.approx([0.1, 0.0, -0.5])
    motors = machine.actuators.ports.at(played.q)
    names = machine.actuators.ports.position.columns
    by_motors = tmp_path / "motors.csv"
    header = ",".join(["time [s]", *(f"position.{name} [rad]" for name in names)])
    np.savetxt(
        by_motors,
        np.column_stack([played.time, motors]),
        delimiter=",",
        header=header,
        comments="",
        fmt="%.17g",
    )
    assert np.abs(read_playback(machine, by_motors).q - played.q).max() < CLOSED
    assert [played.sample(t) for t in (-1.0, 0.0, 0.00149, 0.00151, 0.25, 9.0)] == [
        0,
        0,
        1,
        2,
        250,
        500,
    ]


def test_a_table_without_the_positions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "time [s],position.platform.x [m],position.platform.z [m]\n0,0,-0.5\n0.1,0,-0.5\n"
    )
    with pytest.raises(InputError, match=r"position\.platform\.y: not in the log"):
        read_playback(model("delta"), path)
    path.write_text("time [s],force.motor [N m]\n0,0\n0.1,0\n")
    with pytest.raises(InputError, match="the log has no positions"):
        read_playback(model("delta"), path)


# The viewer


@pytest.fixture
def delta_viewer() -> Iterator[Viewer]:
    extra("viser")
    machine = model("delta")
    position = np.linspace([0.0, 0.0, -0.5], [0.1, 0.0, -0.5], 11)
    played = Playback(time=np.linspace(0.0, 1.0, 11), q=machine.platform.kinematics(position).q)
    viewer = Viewer(machine, playback=played, port=0)
    yield viewer
    viewer.stop()


def node(viewer: Viewer, name: str) -> Any:
    return viewer.server.scene.get_handle_by_name(name)


def test_the_scene_has_the_machine_s_nodes_and_is_served(delta_viewer: Viewer) -> None:
    for name in ("plate", "leg1.arm", "leg2.arm", "leg3.arm", "base"):
        assert node(delta_viewer, f"/machine/{name}") is not None
    for i in (1, 2, 3):
        assert node(delta_viewer, f"/machine/leg{i}.forearm") is not None
        assert node(delta_viewer, f"/drives/leg{i}.motor") is not None
    assert node(delta_viewer, "/tool").position == pytest.approx([0.0, 0.0, -0.5])
    assert node(delta_viewer, "/path") is not None
    with urllib.request.urlopen(delta_viewer.url, timeout=10) as answer:
        assert answer.status == 200


def test_a_slider_moves_the_machine_and_the_other_sliders(delta_viewer: Viewer) -> None:
    before = [slider.value for slider in delta_viewer.sliders[ACTUATORS].values()]
    delta_viewer.sliders[PLATFORM][0].value = 0.08
    assert node(delta_viewer, "/tool").position == pytest.approx([0.08, 0.0, -0.5])
    assert node(delta_viewer, "/machine/plate").position == pytest.approx([0.08, 0.0, -0.5])
    motors = model("delta").actuators.ports.at(
        model("delta").platform.kinematics([0.08, 0.0, -0.5]).q
    )
    assert [slider.value for slider in delta_viewer.sliders[ACTUATORS].values()] == pytest.approx(
        np.degrees(motors), abs=SHOWN_ANGLE
    )
    rods = machine_geometry(model("delta"), delta_viewer.q).of_kind("rod")[0]
    for i, ends in enumerate(rods):
        assert node(delta_viewer, f"/machine/leg{i + 1}.forearm").position == pytest.approx(ends[0])
    for slider, value in zip(delta_viewer.sliders[ACTUATORS].values(), before, strict=True):
        slider.value = value
    assert node(delta_viewer, "/tool").position == pytest.approx([0.0, 0.0, -0.5], abs=SHOWN_TOOL)
    assert delta_viewer.message.content == "Within reach."


def test_out_of_reach_the_machine_stays_and_says_why(delta_viewer: Viewer) -> None:
    machine = model("delta")
    with pytest.raises(PoseError) as refused:
        machine.platform.follow([0.9, 0.0, -0.5])
    delta_viewer.sliders[PLATFORM][0].value = 0.9
    assert node(delta_viewer, "/tool").position == pytest.approx([0.0, 0.0, -0.5])
    assert all(problem.what in delta_viewer.message.content for problem in refused.value.problems)
    delta_viewer.sliders[PLATFORM][1].value = 0.02
    assert node(delta_viewer, "/tool").position == pytest.approx([0.0, 0.02, -0.5])
    assert delta_viewer.sliders[PLATFORM][0].value == pytest.approx(0.0, abs=ROUNDING)
    assert delta_viewer.message.content == "Within reach."
    delta_viewer.move(PLATFORM, 0, 0.25)  # in reach, but the file allows 0.2 m
    assert "Outside its limits" in delta_viewer.message.content
    assert "platform.x" in delta_viewer.message.content


def test_the_clock_plays_the_motion_and_starts_again(delta_viewer: Viewer) -> None:
    delta_viewer.clock.slider.value = 0.5
    assert node(delta_viewer, "/tool").position == pytest.approx([0.05, 0.0, -0.5])
    delta_viewer.advance(0.2)
    assert delta_viewer.clock.slider.value == 0.5  # it stands until it is told to play
    delta_viewer.clock.play.value = True
    delta_viewer.advance(0.2)
    assert node(delta_viewer, "/tool").position == pytest.approx([0.07, 0.0, -0.5])
    delta_viewer.advance(0.4)
    assert delta_viewer.clock.slider.value == pytest.approx(0.1)
    delta_viewer.clock.speed.value = "1/10"
    delta_viewer.advance(1.0)
    assert delta_viewer.clock.slider.value == pytest.approx(0.2)


def test_a_locked_machine_can_be_looked_at_but_not_moved() -> None:
    extra("viser")
    place = "at: [side * base_outer, 0, 0]"
    locked = Model(
        loads(
            shipped_text("spidermill").replace(place, place.replace(",", " + (i - 1) * 0.1 mm,", 1))
        )
    )
    assert locked.assembly.findings
    viewer = Viewer(locked, port=0)
    try:
        assert viewer.sliders == {}
        assert node(viewer, "/tool").position == pytest.approx(
            machine_geometry(locked, locked.assembly.q).tool[0]
        )
    finally:
        viewer.stop()


def test_passive_freedoms_have_sliders_like_motors() -> None:
    whole = load("five_bar")
    lame = Model(replace(whole, actuators=whole.actuators[:1]))
    handles = Handles(lame, lame.actuators, lame.assembly.q)
    assert handles.names == ("motor_1", *lame.assembly.passive_names)
    before = handles.values(lame.assembly.q)
    moved = handles.moved(lame.assembly.q, 1, float(before[1] + 5.0))
    assert handles.values(moved) == pytest.approx([before[0], before[1] + 5.0])
    assert np.abs(lame.assembly.loops.residuals(moved[None])[0]).max() < CLOSED


def test_without_viser_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> SimpleNamespace:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install 'tauloop\[view\]'"):
        Viewer(model("delta"), port=0)


def test_a_view_is_inline_in_a_notebook_and_keeps_its_server() -> None:
    extra("viser")
    view = tl.view(tl.load("five_bar"))
    frame = view._repr_html_()
    try:
        assert frame == view._repr_html_()
        (address,) = re.findall('<iframe src="([^"]+)"', frame)
        with urllib.request.urlopen(address, timeout=10) as answer:
            page = answer.read()
        assert answer.headers["Content-Length"] == str(len(page))
        assert b"<canvas" in page or b"<script" in page
        assert page.count(b"event.stopPropagation()") >= 1
    finally:
        view.inline.stop()


def test_a_notebook_without_viser_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    view = tl.view(tl.load("five_bar"))
    monkeypatch.setattr("tauloop.viewer.guard.importlib.import_module", functools.partial(_missing))
    assert "pip install 'tauloop[view]'" in html.unescape(view._repr_html_())


def _missing(name: str) -> SimpleNamespace:
    raise ImportError(f"No module named '{name}'")
