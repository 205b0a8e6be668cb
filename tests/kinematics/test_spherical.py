"""Machines that only turn: their arcs in pictures, and maps of their orientation in angles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tauloop import InputError, Model, load
from tauloop.display.renderers.machine_drawing import machine_figure
from tauloop.display.renderers.result_figures import workspace_figure
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.geometry.spherical_arcs import great_arcs
from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, section_axes, workspace_grid
from tauloop.kinematics.workspaces.pose_axes import pose_axes

EYE = Path(__file__).parents[1] / "cases" / "agile_eye.yaml"
#: Directions by another order of operations.
SAME = 1e-9
TURN = Rotation.from_rotvec([0.4, -0.3, 0.35])


@pytest.fixture(scope="module")
def eye() -> Model:
    return Model(load(EYE))


def axes_of(turn: Rotation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes of base, elbows and platform of the Agile Eye: all arcs are right angles, so e_i is across u_i and v_i."""
    u, home = np.eye(3), np.roll(np.eye(3), 1, axis=1)  # at home e = y, z, x and v = z, x, y
    v = turn.apply(np.roll(np.eye(3), 2, axis=1))
    e = np.cross(v, u)
    e *= np.where(np.sum(e * home, axis=1) < 0, -1.0, 1.0)[:, None]
    return u, e / np.linalg.norm(e, axis=1, keepdims=True), v


def directions(points: np.ndarray) -> np.ndarray:
    return np.asarray(points / np.linalg.norm(points, axis=-1, keepdims=True))


def test_a_spherical_linkage_is_drawn_by_arcs_between_its_axes(eye: Model) -> None:
    """Ends of the arcs are the axes of Gosselin's machine, which follow from right angles alone."""
    q = eye.platform.follow(TURN.as_quat(scalar_first=True)).q
    geometry = machine_geometry(eye, q)
    u, e, v = axes_of(TURN)
    assert np.abs(np.sum(e * u, axis=1)).max() < SAME
    for i in range(3):
        for body, ends in ((f"p{i + 1}", (u[i], e[i])), (f"d{i + 1}", (e[i], v[i]))):
            result = directions(geometry.points(body)[0])
            lines = np.abs(result @ np.array(ends).T).max(axis=0)  # either side of an axis
            assert lines == pytest.approx(1.0, abs=SAME), body
            pieces = geometry.arcs(body)[0]
            assert len(pieces) > 20
    platform = directions(geometry.points("eye")[0])
    assert np.abs(platform @ v.T).max(axis=0) == pytest.approx(1.0, abs=SAME)
    radii = {
        body: np.linalg.norm(geometry.points(body)[0], axis=1)
        for body in ("base", "p1", "d1", "eye")
    }
    assert all(np.ptp(radius) < SAME for radius in radii.values())
    outside = [radius[0] for radius in radii.values()]
    assert outside == sorted(outside, reverse=True)
    assert geometry.size > 0.5
    machine_figure(geometry, title="eye")  # no view is without width: warnings are errors


def test_an_arc_is_on_its_sphere_and_in_its_plane() -> None:
    a, b = np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.0, np.sqrt(0.75)])
    center = np.array([0.2, 0.3, 0.4])
    pieces = great_arcs(center + 2.0 * np.array([a, b]), center)
    assert np.linalg.norm(pieces - center, axis=-1) == pytest.approx(2.0)
    assert np.abs((pieces - center)[..., 1]).max() < SAME
    assert np.linalg.norm(pieces[:, 1] - pieces[:, 0], axis=-1).sum() == pytest.approx(
        2.0 * np.pi / 3, rel=1e-3
    )
    assert len(great_arcs(np.array([a, -a]), np.zeros(3))) == 0  # which way round is open


def test_other_machines_have_no_arcs() -> None:
    for name in ("delta", "five_bar", "pendulum_arm"):
        model = Model(load(name))
        geometry = machine_geometry(model, model.assembly.q)
        assert all(len(body.arcs) == 0 for body in geometry.shape.bodies)


def test_orientation_is_mapped_in_angles(eye: Model) -> None:
    """SciPy's rotation vectors; and where the rows e_i x v_i are dependent the machine is singular (Gosselin 1994)."""
    pose = pose_axes(eye)
    assert pose.columns == ("platform.rx", "platform.ry", "platform.rz")
    assert set(pose.units) == {"rad"}
    values = np.random.default_rng(0).uniform(-1.5, 1.5, (20, 3))
    turned = Rotation.from_quat(pose.positions(values), scalar_first=True)
    assert (turned * Rotation.from_rotvec(values).inv()).magnitude().max() < SAME
    angles = np.radians([-90.0, -60.0, -30.0, 0.0, 30.0, 60.0, 90.0])
    grid = workspace_grid(
        eye,
        {"platform.rx": angles, "platform.ry": angles},
        limits=WorkspaceLimits(singularity=1e-6),
    ).data
    for i, x in enumerate(angles):
        for j, y in enumerate(angles):
            _, e, v = axes_of(Rotation.from_rotvec([x, y, 0.0]))
            determinant = np.linalg.det(np.cross(e, v))
            is_singular = not np.isfinite(determinant) or abs(determinant) < 1e-9
            assert (grid["reason"].to_numpy()[i, j] == Reason.SINGULAR) == is_singular, (x, y)
    assert grid["reason"].to_numpy()[0, 3] == grid["reason"].to_numpy()[3, 6] == Reason.SINGULAR
    assert grid["parallel"].to_numpy()[3, 3] > 0.5


def test_axes_without_ranges_hold_every_orientation_once(eye: Model) -> None:
    """No two points of a grid of rotation vectors of at most half a turn are one orientation."""
    axes = section_axes(eye, ("platform.rx", "platform.ry"), 0.2)
    corner = np.array([axes["platform.rx"].max(), axes["platform.ry"].max()])
    assert np.linalg.norm(corner) < np.pi + 2 * 0.2
    assert corner.min() > 2.0
    with pytest.raises(
        InputError,
        match=r"platform\.qx: is not a platform position\s+remedy: did you mean platform\.rx",
    ):
        workspace_grid(eye, {"platform.qx": np.zeros(1)})


def test_a_platform_that_moves_and_turns_has_both() -> None:
    model = Model(load("hexapod"))
    names = tuple(name.removeprefix("platform.") for name in pose_axes(model).columns)
    assert names == ("x", "y", "z", "rx", "ry", "rz")
    tilted = workspace_grid(model, {"platform.rx": np.linspace(-0.2, 0.2, 5)})
    assert tilted.usable.all()
    turned = model.platform.follow([0.0, 0.0, 0.35, np.cos(0.1), np.sin(0.1), 0.0, 0.0])
    assert turned.health.is_reached.all()


def test_a_map_of_directions_is_drawn_in_degrees(eye: Model) -> None:
    axes = {"platform.rx": np.linspace(-1, 1, 5), "platform.ry": np.linspace(-1, 1, 5)}
    grid = workspace_grid(eye, axes)
    assert grid.size[1] == "rad^2"
    assert grid.held == "platform.rz = 0 deg"
    figure = workspace_figure(grid)
    assert figure.axes[0].get_xlabel() == "platform.rx [deg]"
    assert figure.axes[0].get_xlim()[1] > 57.0
