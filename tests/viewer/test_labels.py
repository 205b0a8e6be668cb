"""Labels and cameras of the scene: no label covers a motor or another label, and the machine fits."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from extras import extra
from viewer_labels import ROUNDING, boxes, covered_motor_points, overlaps

import tauloop as tl
from tauloop.equations.ports import PLATFORM
from tauloop.viewer import Layers, Viewer
from tauloop.viewer.scene.camera import Camera, fitted_camera

#: Pictures of a page on a screen and on a telephone, pixels.
SIZES = ((956.0, 800.0), (400.0, 440.0))


@functools.cache
def model(name: str) -> tl.Model:
    return tl.Model(tl.load(name))


@contextmanager
def shown(machine: tl.Model, **options: object) -> Iterator[Viewer]:
    extra("viser")
    viewer = Viewer(machine, port=0, **options)
    try:
        yield viewer
    finally:
        viewer.stop()


@pytest.mark.parametrize("name", ["delta", "hexapod", "gantry_tau_6link", "par4", "five_bar"])
def test_no_label_covers_a_motor_or_another_label_from_any_side(name: str) -> None:
    with shown(model(name)) as viewer:
        assert len(viewer.scene.obstacles()[0]) > 50
        sides = [None, np.array([1.0, 0.2, 0.4]), np.array([-0.6, 0.8, 0.1])]
        for q in (viewer.q, *viewer.model.assembly.states[:2]):
            viewer.show(q)
            for size in SIZES:
                for away in sides:
                    viewer.scene.labels.look_from(viewer.scene.fitted_camera(size, away))
                    covered = covered_motor_points(viewer)
                    assert covered == 0, (name, size, away)
                    assert overlaps(viewer.scene.labels) == 0, (name, size, away)


def test_a_label_is_next_to_what_it_names() -> None:
    with shown(model("delta")) as viewer:
        labels = viewer.scene.labels
        for label, box in zip(labels.labels.values(), boxes(labels), strict=True):
            anchor = labels.camera.pixels(label.point[None])[0]
            distance = np.maximum(np.abs(anchor - box[:2]) - box[2:], 0.0)
            assert np.linalg.norm(distance) < 70.0, label.text


def test_a_label_is_nearer_to_its_own_motor_than_to_another() -> None:
    """On a telephone the motors of a Delta are as near to each other as their labels are wide."""
    machine = model("delta")
    states = machine.inverse_kinematics([[0.043, 0.092, -0.479], [0.143, -0.187, -0.455]]).q
    sides = [None, np.array([1.0, 0.2, 0.4]), np.array([-0.6, 0.8, 0.1])]
    with shown(machine) as viewer:
        labels = viewer.scene.labels
        for q, size, away in itertools.product((viewer.q, *states), SIZES, sides):
            viewer.show(q)
            labels.look_from(viewer.scene.fitted_camera(size, away))
            motors = [label for label in labels.labels.values() if label.text.endswith(".motor")]
            anchors = labels.camera.pixels(np.array([label.point for label in motors]))
            for label, anchor in zip(motors, anchors, strict=True):
                outside = np.abs(anchors - anchor - label.center) - label.half_size
                distances = np.linalg.norm(np.clip(outside, 0.0, None), axis=1)
                assert motors[int(distances.argmin())] is label, (label.text, size, away)


@pytest.mark.parametrize("name", ["delta", "cable_robot", "gantry_tau_6link", "five_bar"])
@pytest.mark.parametrize("size", SIZES)
def test_the_whole_machine_is_in_the_fitted_picture_and_fills_it(
    name: str, size: tuple[float, float]
) -> None:
    with shown(model(name)) as viewer:
        camera = viewer.scene.fitted_camera(size)
        share = np.abs(camera.pixels(viewer.scene.points)).max(axis=0) / (0.5 * np.array(size))
        assert share.max() <= 1.0
        assert share.max() > 0.6


def test_a_fitted_camera_is_the_nearest_that_sees_all_points() -> None:
    points = np.random.default_rng(4).normal(size=(40, 3)) * [3.0, 0.5, 1.0]
    camera = fitted_camera(points, np.array([0.3, -1.0, 0.4]), (1000.0, 500.0))
    margins = np.array([80.0, 48.0])
    room = 0.5 * np.array([1000.0, 500.0]) - margins
    assert (np.abs(camera.pixels(points)).max(axis=0) - room).max() == pytest.approx(0.0, abs=1e-6)
    nearer = Camera(
        eye=camera.eye + 0.01 * (camera.look_at - camera.eye),
        look_at=camera.look_at,
        size=camera.size,
    )
    assert (np.abs(nearer.pixels(points)).max(axis=0) - room).max() > 0.0


def test_pixels_are_those_of_a_pinhole_and_a_shift_is_parallel_to_the_picture() -> None:
    camera = Camera(eye=np.array([0.0, -2.0, 0.0]), look_at=np.zeros(3), size=(800.0, 800.0))
    focal_length = 400.0 / np.tan(0.4)
    assert camera.pixels(np.array([[0.1, 0.0, 0.3]])) == pytest.approx(
        focal_length * np.array([[0.05, 0.15]])
    )
    moved = camera.shifted(np.array([0.1, 0.0, 0.3]), np.array([10.0, -5.0]))
    assert camera.pixels(moved[None])[0] == pytest.approx(
        focal_length * np.array([0.05, 0.15]) + [10.0, -5.0]
    )
    assert moved[1] == pytest.approx(0.0)


def test_neighbors_are_apart_on_one_floor_and_labels_keep_off_their_motors() -> None:
    with shown(model("delta"), layers=Layers(next_to=(model("hexapod"), model("delta")))) as viewer:
        first, second = viewer.neighbors
        right = np.cross(-viewer.scene.away, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        own = viewer.scene.points
        assert {label.text for label in viewer.scene.labels.labels.values()} >= {
            "delta",
            "hexapod",
        }
        spans = []
        for neighbor in (first, second):
            places = neighbor._scene.points + neighbor.offset
            spans.append((float((places @ right).min()), float((places @ right).max())))
            assert places[:, 2].min() == pytest.approx(own[:, 2].min(), abs=1e-9)
            inside = np.abs(viewer.scene.fitted_camera().pixels(places)).max(axis=0)
            assert (inside <= [480.0, 400.0]).all()
        assert spans[0][1] < spans[1][0]
        viewer.scene.labels.look_from(viewer.scene.fitted_camera())
        motors = np.concatenate([item._scene.obstacles()[0] + item.offset for item in (first,)])
        seen = viewer.scene.labels.camera.pixels(motors)
        for box in boxes(viewer.scene.labels):
            assert not (np.abs(seen - box[:2]) < box[2:] - ROUNDING).all(axis=1).any()
        before = viewer.q.copy()
        slider = next(iter(first.sliders.sliders.values()))[0]
        slider.value = slider.value + 0.02
        assert np.abs(first.q - first.model.assembly.q).max() > 0.01
        assert np.abs(first.model.assembly.loops.residuals(first.q[None])[0]).max() < 1e-9
        assert (viewer.q == before).all()
        second.sliders.move(PLATFORM, 0, 0.9)
        assert "does not move" in second.message.content
        assert second.message.visible
        second.sliders.move(PLATFORM, 0, 0.05)
        assert not second.message.visible
