"""Borders of workspaces between the points of a grid, against shapes whose contents can be written down."""

from __future__ import annotations

import numpy as np
import pytest
from planar_machines import five_bar_text

from tauloop import Model, load, loads
from tauloop.display.plots.building import MAX_SCENE_STATES
from tauloop.display.plots.motion.workspace_plots import sampled_measure
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.kinematics.workspaces.border import BISECTIONS, Border, bordered
from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, workspace_grid

EVERYTHING = WorkspaceLimits(singularity=0.0, ranges=False, connected=False)
#: A border lies inside, within this share of a step.
CUT = 2.0**-BISECTIONS
#: Halving the step divides an error of second order by four, one of first order by two.
SECOND_ORDER = 3.0
RADIUS = 0.83
#: Two motors that slide across each other, within stops.
GANTRY = """
format: tauloop-machine/1
name: gantry
provenance: {status: chosen, source: a test}
gravity: [0, 0, 0]
bodies: {bridge: {mass: 1 kg}, trolley: {mass: 1 kg}, hook: {mass: 1 kg}}
joints:
  x: {type: prismatic, axis: x, parent: base, child: bridge, limits: [-0.31 m, 0.52 m]}
  y: {type: prismatic, axis: y, parent: bridge, child: trolley, limits: [-0.123 m, 0.2 m]}
  z: {type: prismatic, axis: z, parent: trolley, child: hook, limits: [-0.07 m, 0.44 m]}
actuators: {a: {on: x}, b: {on: y}, c: {on: z}}
platform: {body: hook, independent: [x, y, z]}
"""


def ball(dimension: int, points: int) -> Border:
    """The border of a ball about the origin over a grid that knows nothing of it."""
    axes = [np.linspace(-1.03, 1.11, points)] * dimension

    def kinds(values: np.ndarray, _: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return (np.linalg.norm(values, axis=1) > RADIUS).astype(int), values

    labels = kinds(
        np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension), None
    )[0]
    return bordered(axes, labels, kinds)


@pytest.mark.parametrize(
    ("dimension", "content"), [(2, np.pi * RADIUS**2), (3, 4 / 3 * np.pi * RADIUS**3)]
)
def test_contents_of_balls_are_met_with_the_square_of_the_step(
    dimension: int, content: float
) -> None:
    errors = [abs(ball(dimension, points).size / content - 1.0) for points in (17, 33)]
    assert errors[1] < 0.01
    assert errors[0] / errors[1] > SECOND_ORDER


def test_cuts_are_the_same_however_many_edges_are_asked_for() -> None:
    """More than NumPy looks at in one go, in a column: its `unravel_index` mixes those up (its issue 31980)."""
    whole = ball(3, 65)
    start, end = whole.ends.T
    assert len(start) > 2**14
    np.testing.assert_array_equal(whole.share(start[:, None], end[:, None])[:, 0], whole.shares)


def test_the_content_of_a_line_is_met_as_far_as_its_ends_are_halved() -> None:
    assert ball(1, 12).size == pytest.approx(2 * RADIUS, abs=2 * CUT * 2.14 / 11)


def test_the_border_of_a_disc_is_its_circle() -> None:
    disc = ball(2, 40)
    ((line, beyond),) = disc.lines
    step = 2.14 / 39
    distance = np.linalg.norm(line, axis=1)
    assert distance.max() <= RADIUS
    assert distance.min() > RADIUS - 2 * CUT * step
    assert np.linalg.norm(np.diff(line, axis=0), axis=1).sum() == pytest.approx(
        2 * np.pi * RADIUS, rel=1e-2
    )
    np.testing.assert_array_equal(line[0], line[-1])
    assert set(beyond) == {1}
    x = np.linspace(-1.03, 1.11, 300)
    labels, corners, weights = disc.sampled(x, x)
    away = np.hypot(*np.meshgrid(x, x, indexing="ij")) - RADIUS
    assert (labels == (away > 0))[np.abs(away) > step**2].all()
    at = (disc.places(corners) * weights[..., None]).sum(axis=-2)
    own = np.abs(away) > 2 * step
    np.testing.assert_allclose(
        at[own], np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)[own], atol=1e-9
    )


def test_a_section_of_a_ball_is_a_disc() -> None:
    section = ball(3, 25).section([12])
    height = np.linspace(-1.03, 1.11, 25)[12]
    assert section.size == pytest.approx(np.pi * (RADIUS**2 - height**2), rel=0.01)


def test_a_grid_that_is_inside_all_over_has_its_edge_for_a_border() -> None:
    axes = (np.array([0.0, 0.4, 1.0]), np.array([0.0, 2.0]))
    whole = bordered(axes, np.zeros((3, 2), dtype=int))
    ((line, beyond),) = whole.lines
    assert whole.size == pytest.approx(2.0)
    assert set(beyond) == {-1}
    np.testing.assert_array_equal(np.ptp(line, axis=0), [1.0, 2.0])


def test_three_labels_meet_in_a_cell() -> None:
    labels = np.array([[0, 1], [2, 3]])
    x = np.linspace(0.0, 1.0, 5)
    sampled, _, weights = bordered((np.array([0.0, 1.0]),) * 2, labels).sampled(x, x)
    assert [sampled[i, j] for i, j in ((0, 0), (0, -1), (-1, 0), (-1, -1))] == [0, 1, 2, 3]
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)


def test_the_lens_of_a_five_bar_has_its_area() -> None:
    """Both cranks reach a disc of radius 1.2 m about motors 1 m apart: twice a segment of a circle."""
    model, reach, half = Model(loads(five_bar_text(base=1.0, link=0.6))), 1.2, 0.5
    lens = 2 * (reach**2 * np.arccos(half / reach) - half * np.sqrt(reach**2 - half**2))
    errors = []
    for points in (19, 73):
        axes = {"tip_x": np.linspace(-0.37, 1.33, points), "tip_y": np.linspace(-1.3, 1.3, points)}
        size, unit = workspace_grid(model, axes, limits=EVERYTHING).size
        assert unit == "m^2"
        errors.append(abs(size / lens - 1.0))
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] > SECOND_ORDER**2


def test_the_box_of_a_gantry_has_its_volume() -> None:
    model, box = Model(loads(GANTRY)), np.array([0.83, 0.323, 0.51])
    axes = {name: np.linspace(-0.5, 0.6, 12) for name in "xyz"}
    volume = workspace_grid(model, axes)
    # corners and edges are cut off, not faces
    assert volume.size == (pytest.approx(box.prod(), rel=0.02), "m^3")
    section = volume.section()
    assert section is not None
    assert section.size == (pytest.approx(box[:2].prod(), rel=0.01), "m^2")
    line, beyond = section.border.lines[0]
    assert set(beyond) == {Reason.JOINT_LIMIT}
    np.testing.assert_allclose(np.ptp(line, axis=0), box[:2], atol=2 * CUT * 0.1)
    flat = workspace_grid(model, {"x": axes["x"]} | {"y": np.array([0.0])})
    assert flat.size == (pytest.approx(box[0], abs=2 * CUT * 0.1), "m")


def test_what_is_usable_is_on_the_reference_poses_side_of_all_singularities() -> None:
    """A five-bar loses hold where its upper links are in line: the turn from the first to the second has one sense."""
    model = Model(load("five_bar"))
    axes = {"platform.x": np.linspace(-0.3, 0.3, 61), "platform.y": np.linspace(-0.6, 0.6, 61)}
    grid = workspace_grid(model, axes, limits=WorkspaceLimits(singularity=0.0))
    assert (grid.reason == Reason.CUT_OFF).any()
    x, y = np.meshgrid(*axes.values(), indexing="ij")

    def turn(mask: np.ndarray) -> np.ndarray:
        tip = np.column_stack([x[mask], y[mask]])
        geometry = machine_geometry(model, model.platform.follow(tip).q)
        first, second = (tip - geometry.points(crank)[:, 1, :2] for crank in ("crank_1", "crank_2"))
        return np.asarray(np.sign(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]))

    assert set(turn(grid.usable)) == {1.0} or set(turn(grid.usable)) == {-1.0}
    assert grid.size[0] < workspace_grid(model, axes, limits=EVERYTHING).size[0]
    _, _, reasons, values = sampled_measure(grid, "parallel", 200)
    assert np.isfinite(values[reasons == 0]).all()
    assert np.isnan(values[reasons != 0]).all()


@pytest.mark.parametrize("name", ["delta", "five_bar"])
def test_a_machine_walks_round_its_border_and_keeps_its_loops(name: str) -> None:
    model = Model(load(name))
    axes = {"platform.x": np.linspace(-0.3, 0.3, 13)}
    axes |= {"platform.y": np.linspace(-0.3, 0.3, 13) + (0.3 if name == "five_bar" else 0.0)}
    grid = workspace_grid(model, axes)
    q = grid.walk(MAX_SCENE_STATES)
    assert 20 < len(q) <= MAX_SCENE_STATES
    phi, _ = model.assembly.loops.residuals(q)
    assert np.abs(phi).max() < 1e-9
    places = model.platform_position(q)[:, :2]
    assert np.linalg.norm(places[0] - places[-1]) < 0.1
    assert np.abs(places - grid.border.lines[0][0][:, None]).sum(axis=-1).min(axis=0).max() < 1e-9
    line = workspace_grid(model, {"platform.x": axes["platform.x"]}).walk(9)
    assert (np.diff(model.platform_position(line)[:, 0]) > 0).all()
