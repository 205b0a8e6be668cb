"""What a viewer shows beside the machine, by other routes: forces, modes, workspace, plots, marks, a second machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.equations.ports import ACTUATORS, PLATFORM
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.kinematics.singularities import singularities
from tauloop.viewer import Playback, Viewer
from tauloop.viewer.layers import Layers
from tauloop.viewer.panel.plots import motion_curves
from tauloop.viewer.scene.cloud import cloud, workspace_sections
from tauloop.viewer.scene.forces import (
    COMPRESSION_COLOR,
    TENSION_COLOR,
    ZERO_COLOR,
    force_color,
    motion_forces,
    rod_forces,
)
from tauloop.viewer.scene.marks import BEYOND_COLOR, SINGULAR_COLOR, WITHIN_COLOR, path_colors

CASES = Path(__file__).parents[1] / "cases"
#: Closed loops, m; forces by two routes, relative; and places of the tool, m.
CLOSED, ALIKE, PLACE = 1e-9, 1e-9, 1e-9


@contextmanager
def shown(model: tl.Model, **options: object) -> Iterator[Viewer]:
    extra("viser")
    viewer = Viewer(model, port=0, **options)
    try:
        yield viewer
    finally:
        viewer.stop()


def circle(model: tl.Model, *, lasts: float = 0.5, count: int = 101) -> Playback:
    """The tool of a five-bar on a circle of 3 cm, with exact rates."""
    start, time = model.platform_position(model.assembly.q), np.linspace(0.0, lasts, count)
    angle, speed = 2 * np.pi * time / lasts, 2 * np.pi / lasts
    place = start + 0.03 * np.stack([np.sin(angle), np.cos(angle) - 1.0], axis=1)
    velocity = 0.03 * speed * np.stack([np.cos(angle), -np.sin(angle)], axis=1)
    acceleration = -0.03 * speed**2 * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    return Playback(
        time=time, q=model.platform.track(place).q, source="circle", rates=(velocity, acceleration)
    )


@pytest.fixture(scope="module")
def five_bar() -> tl.Model:
    return tl.Model(tl.load("five_bar"))


# Forces


def test_struts_that_carry_a_plate_are_pushed_and_hold_its_weight() -> None:
    """Their pushes at the plate add up to the weight of the plate and of the massless-ended struts' upper parts."""
    model = tl.Model(tl.load("hexapod"))
    playback = Playback(time=np.zeros(1), q=model.assembly.q[None])
    rods = rod_forces(model, motion_forces(model, playback))
    assert all(values[0] > 0.0 for values in rods.values())
    geometry = machine_geometry(model, model.assembly.q)
    push = np.zeros(3)
    for segment, (foot, top) in zip(geometry.shape.segments, geometry.segments[0], strict=True):
        push += rods[segment.name][0] * (top - foot) / np.linalg.norm(top - foot)
    functions = model.platform
    (weight,) = functions.gravity(
        functions.ports.at(model.assembly.q[None]), start=model.assembly.q[None]
    )
    struts = [  # a massive strut's own weight hangs on its ends too
        sum(model.mechanism.value(part.mass) for part in (rod.lower, rod.upper) if part is not None)
        for rod in model.mechanism.rods
    ]
    assert push[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert abs(push[2] - weight[2]) < 9.81 * sum(struts) + 1e-9


def test_a_hanging_cable_is_pulled() -> None:
    model = tl.Model(tl.load("delta"))
    rods = rod_forces(
        model, motion_forces(model, Playback(time=np.zeros(1), q=model.assembly.q[None]))
    )
    assert all(values[0] < 0.0 for values in rods.values())  # the plate hangs on the forearms


def test_colours_of_rods_go_from_pulled_over_free_to_pushed() -> None:
    assert [force_color(share) for share in (-1.0, 0.0, 1.0)] == [
        TENSION_COLOR,
        ZERO_COLOR,
        COMPRESSION_COLOR,
    ]


def test_the_box_colours_rods_and_names_forces(five_bar: tl.Model) -> None:
    model = tl.Model(tl.load("hexapod"))
    with shown(model, layers=Layers(forces=True)) as viewer:
        node = viewer.server.scene.get_handle_by_name("/machine/leg1.strut.upper/a9d3f2")
        assert tuple(node.color) == (179, 88, 6)  # COMPRESSION_COLOR
        label = viewer.server.scene.get_handle_by_name("/drives/leg1.motor")
        assert label.text == "leg1.motor: 48.7 N"
        viewer.forces.box.value = False
        viewer.show(viewer.q)
        assert tuple(node.color) == (169, 211, 242)
        assert label.text == "leg1.motor"
        assert not viewer.server.scene.get_handle_by_name("/forces").visible


def test_a_box_adds_arrows_of_forces_in_joints(five_bar: tl.Model) -> None:
    with shown(five_bar, layers=Layers(forces=True)) as viewer:
        arrows = viewer.server.scene.get_handle_by_name("/forces")
        motors_only = len(arrows.points)
        viewer.forces.joints_box.value = True
        viewer.show(viewer.q)
        forces = tl.inverse_dynamics(five_bar).joint_forces
        assert len(arrows.points) == motors_only + len(forces.names)
        tails = arrows.points[motors_only:, 0]
        np.testing.assert_allclose(tails, forces.position[0], atol=1e-6)
        assert "joints up to" in viewer.forces._legend.content


#: A turning and a pushing motor on one arm.
POLAR = """
format: tauloop-machine/1
name: polar
provenance: {status: chosen, source: own example}
gravity: [0, -10 m/s^2, 0]
bodies:
  arm: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {zz: 0.01 kg m^2}, unchecked: yes}
  slide: {mass: 2 kg, inertia: {zz: 0.01 kg m^2}, unchecked: yes}
  plate: {mass: 1 kg, inertia: {zz: 0.01 kg m^2}, unchecked: yes}
joints:
  shoulder: {type: revolute, axis: z, parent: base, child: arm}
  stroke: {type: prismatic, axis: x, parent: arm, child: slide, reference: 0.4 m, limits: [0.3 m, 0.5 m]}
  wrist: {type: revolute, axis: z, parent: slide, child: plate}
actuators:
  turn: {on: shoulder}
  push: {on: stroke}
  tilt: {on: wrist}
platform: {body: plate, motion: planar, independent: [x, y, angle]}
"""


def test_legends_say_the_largest_force_of_motors_of_each_unit() -> None:
    """Level, 3 kg at 0.4 m and 1 kg at 0.1 m hang on the shoulder, and nothing pushes; elsewhere it does."""
    polar = tl.Model(tl.loads(POLAR))
    with shown(polar, layers=Layers(forces=True)) as viewer:
        assert viewer.forces._legend.content.endswith("motors, at rest, up to 13 N m and 0 N")
    points = cloud(polar, ("platform.x", "platform.y"), "force")
    reach = np.linalg.norm(points.tool_positions, axis=1)
    turn, push = (np.abs(points.tool_positions[:, i]) / reach for i in (0, 1))
    assert points.values == pytest.approx(turn * (30 * reach + 1), rel=1e-6, abs=1e-9)
    largest = float(points.legend.rpartition("other motors up to ")[2].removesuffix(" N"))
    assert "largest motor force at rest, N m; other motors" in points.legend
    assert largest == pytest.approx((30 * push).max(), rel=5e-3)


# Plots


def test_plots_are_the_dynamics_of_the_motion_and_their_cursor_is_at_the_time_shown(
    five_bar: tl.Model,
) -> None:
    playback = circle(five_bar)
    position, force, power = motion_curves(five_bar, playback)
    assert (position.title, force.title, power.title) == (
        "position [deg]",
        "force [N m]",
        "power [W]",
    )
    assert np.radians(position.values) == pytest.approx(five_bar.actuator_position(playback.q))
    speed = np.gradient(five_bar.actuator_position(playback.q), playback.time, axis=0, edge_order=2)
    assert power.values[1:-1] == pytest.approx(
        (force.values * speed)[1:-1], abs=2e-3 * np.abs(power.values).max()
    )
    # all lost in the shoulders: the circle is closed
    energy = np.trapezoid(power.values.sum(axis=1), playback.time)
    lost = np.trapezoid((0.01 * speed**2 + 0.05 * np.abs(speed)).sum(axis=1), playback.time)
    assert energy == pytest.approx(lost, rel=0.02)
    with shown(five_bar, playback=playback) as viewer:
        viewer.clock.seek(0.3)
        for node in viewer.plots.nodes:
            assert node.data[0][np.argmax(node.data[-1])] == pytest.approx(0.3, abs=0.005)


def test_plots_of_long_motions_keep_their_extremes(five_bar: tl.Model) -> None:
    """One sample of 20 001 is a peak, in the table's forces; the plot has it, at its time."""
    playback = circle(five_bar, count=20_001)
    force = np.zeros((20_001, 2))
    force[12_345, 1], force[4_321, 0] = 7.0, -6.0
    with shown(five_bar, playback=replace(playback, force=force)) as viewer:
        time, first, second, *_ = viewer.plots.nodes[1].data
        assert len(time) < 2_000
        assert (second.max(), first.min()) == (7.0, -6.0)
        assert time[second.argmax()] == playback.time[12_345]
        viewer.clock.seek(0.3)
        for node in viewer.plots.nodes:
            assert node.data[0][np.argmax(node.data[-1])] == pytest.approx(0.3, abs=0.002)


def test_limits_of_motors_stand_in_the_plot_of_their_forces(five_bar: tl.Model) -> None:
    playback = circle(five_bar)
    with shown(five_bar, playback=playback) as viewer:
        drawn = [
            values
            for values, series in zip(
                viewer.plots.nodes[1].data, viewer.plots.nodes[1].series, strict=True
            )
            if series.get("dash") == [2, 3]
        ]
        assert [float(values[0]) for values in drawn] == [-8.0, 8.0]


def test_a_motion_that_does_not_loop_stops_at_its_end(five_bar: tl.Model) -> None:
    with shown(five_bar, playback=circle(five_bar)) as viewer:
        viewer.clock.play.value, viewer.clock.loop.value = True, False
        viewer.advance(0.4)
        viewer.advance(0.4)
        assert viewer.clock.slider.value == 0.5
        assert not viewer.clock.play.value
        assert viewer.sample == 100


# Modes


@pytest.mark.parametrize("entry", [ACTUATORS, PLATFORM])
def test_each_mode_is_shown_at_a_click_and_keeps_what_is_held(five_bar: tl.Model, entry) -> None:
    with shown(five_bar) as viewer:
        viewer.modes.select(entry)
        held = five_bar.functions(entry).ports.at(five_bar.assembly.q)
        seen = []
        for number in range(len(viewer.modes.modes.modes)):
            viewer.modes.show(number)
            assert np.abs(five_bar.assembly.loops.residuals(viewer.q[None])[0]).max() < CLOSED
            assert five_bar.functions(entry).ports.at(viewer.q) == pytest.approx(held)
            seen.append(viewer.q)
        assert len(seen) == {ACTUATORS: 2, PLATFORM: 4}[entry]
        assert len(np.unique(np.round(seen, 6), axis=0)) == len(seen)
        viewer.move(PLATFORM, 0, 0.01)  # from the last of them on, in its own mode
        assert np.abs(five_bar.assembly.loops.residuals(viewer.q[None])[0]).max() < CLOSED


# Workspace


def test_slices_and_clouds_are_pairs_and_triples_of_lengths(five_bar: tl.Model) -> None:
    assert workspace_sections(five_bar) == (("platform.x", "platform.y"),)
    assert len(workspace_sections(tl.Model(tl.load("delta")))) == 4
    assert workspace_sections(tl.Model(tl.load(CASES / "agile_eye.yaml"))) == ()


@pytest.mark.parametrize("coloring", ["reach", "conditioning", "force"])
def test_points_of_a_slice_are_tools_and_their_colours_what_is_measured_there(
    five_bar: tl.Model, coloring: str
) -> None:
    points = cloud(five_bar, ("platform.x", "platform.y"), coloring)
    for i in range(0, len(points.tool_positions), len(points.tool_positions) // 7):
        q = five_bar.platform.evaluate(points.tool_positions[i, :2]).q
        assert machine_geometry(five_bar, q).tool[0] == pytest.approx(
            points.tool_positions[i], abs=PLACE
        )
        if coloring == "conditioning":
            at = singularities(five_bar, q[None])
            assert points.values[i] == pytest.approx(
                min(at.serial[0], at.parallel[0], at.constraint[0])
            )
        if coloring == "force":
            rest = np.zeros(2)
            needed = five_bar.platform.inverse_dynamics(
                points.tool_positions[i, :2], rest, rest, start=q
            )
            assert points.values[i] == pytest.approx(np.abs(needed.force).max(), rel=ALIKE)
    assert len(points.colors) == len(points.tool_positions) > 500


def test_a_slice_goes_through_the_pose_shown() -> None:
    model = tl.Model(tl.load("delta"))
    q = model.platform.follow([0.0, 0.0, -0.45]).q
    points = cloud(model, ("platform.x", "platform.y"), "reach", q)
    assert points.tool_positions[:, 2] == pytest.approx(-0.45)


def test_what_is_no_slice_is_refused_with_those_that_are() -> None:
    with pytest.raises(tl.InputError, match="does not name two or three translations"):
        tl.view(tl.load(CASES / "agile_eye.yaml"), tl.ViewOptions(workspace=("rx", "ry")))
    with pytest.raises(tl.InputError, match="'rainbow' is unknown"):
        tl.ViewOptions(color="rainbow")


# Marks


def test_limits_and_singular_poses_are_marked_where_they_are(five_bar: tl.Model) -> None:
    with shown(five_bar) as viewer:
        q = five_bar.platform.follow([0.15, 0.42]).q  # beyond the drawing range of 0.12 m
        viewer.show(q)
        label = viewer.server.scene.get_handle_by_name("/marks/limit/platform.x")
        assert label.visible
        assert label.text.endswith("too far")
        point = viewer.scene.labels.labels["/marks/limit/platform.x"].point
        assert point == pytest.approx(viewer.geometry.tool[0])
        reach = [
            x
            for x in np.linspace(0.3, 0.35, 5001)
            if five_bar.platform.evaluate([x, 0.42]).health.is_reached
        ]
        viewer.show(five_bar.platform.evaluate([reach[-1], 0.42]).q)
        assert "Near a singularity" in viewer.message.content
        assert viewer.server.scene.get_handle_by_name("/marks/singular").text.startswith(
            "near singular (serial: platform blocked"
        )
        viewer.show(five_bar.assembly.q)
        assert viewer.server.scene.get_handle_by_name("/marks/limit/platform.x") is None
        assert viewer.message.content == "Within reach."
    x = np.array([0.0, 0.15, reach[-1]])
    q = np.array([five_bar.platform.evaluate([value, 0.42]).q for value in x])
    assert path_colors(five_bar, q) == [WITHIN_COLOR, BEYOND_COLOR, SINGULAR_COLOR]


# A second machine


def test_another_machine_stands_beside_at_the_same_motors(five_bar: tl.Model) -> None:
    longer = tl.Model(
        tl.loads(
            tl.dumps(five_bar.mechanism).replace("link_length: 0.35 m", "link_length: 0.352 m")
        )
    )
    with shown(five_bar, layers=Layers(comparison=longer)) as viewer:
        viewer.move(PLATFORM, 0, 0.05)
        (ghost,) = viewer.ghosts
        motors = longer.actuators.ports.at(ghost.q)
        assert motors == pytest.approx(five_bar.actuators.ports.at(viewer.q))
        apart = machine_geometry(longer, ghost.q).tool[0] - viewer.geometry.tool[0]
        assert 1e-3 < np.linalg.norm(apart) < 1e-2
        assert f"tool {1e3 * np.linalg.norm(apart):.3g} mm" in ghost.caption.content
        assert viewer.server.scene.get_handle_by_name("/compared/link_1").position == pytest.approx(
            machine_geometry(longer, ghost.q).origins[
                0, machine_geometry(longer, ghost.q).shape.index["link_1"]
            ]
        )


def test_a_measured_log_goes_in_step_with_the_motion(five_bar: tl.Model) -> None:
    playback = circle(five_bar)
    # 50 ms behind
    late = Playback(time=playback.time, q=np.roll(playback.q, 10, axis=0), source="log")
    with shown(five_bar, playback=playback, layers=Layers(measured=late)) as viewer:
        viewer.clock.slider.value = 0.3
        assert viewer.q == pytest.approx(playback.q[60])
        assert viewer.ghosts[0].q == pytest.approx(playback.q[50])


def test_a_log_without_a_motion_is_refused() -> None:
    with pytest.raises(tl.InputError, match="requires a motion, but none is given"):
        tl.ViewOptions(measured=Path("log.csv"))
