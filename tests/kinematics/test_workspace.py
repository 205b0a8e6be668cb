"""Workspace maps against geometry that can be written down, and against the kinematics' own refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from planar_machines import five_bar_text
from scipy.optimize import minimize

import tauloop as tl
from tauloop import Model, load, loads
from tauloop.common.errors import InputError, PoseError
from tauloop.display.plots.motion.workspace_plots import section_plot
from tauloop.geometry.clearance import rod_clearance, segment_distances
from tauloop.kinematics.singularities import DEFAULT_DISTANCE, SINGULARITY_KINDS, singularities
from tauloop.kinematics.workspaces.map import Reason, WorkspaceLimits, section_axes, workspace_grid

EVERYTHING = WorkspaceLimits(singularity=0.0, ranges=False, connected=False)
#: The minimiser leaves about 1e-8 m^2 of a squared distance on long flat valleys.
MINIMIZED = 1e-3

points = hnp.arrays(float, (4, 3), elements=st.floats(-2, 2, width=32))


@settings(max_examples=25, deadline=None)
@given(points)
def test_segment_distance_is_the_minimum(p: np.ndarray) -> None:
    a, b, c, d = p

    def squared(x: np.ndarray) -> float:
        return float(((a + x[0] * (b - a) - c - x[1] * (d - c)) ** 2).sum())

    starts = [(0.5, 0.5), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)]
    solution = [
        minimize(squared, x, bounds=[(0, 1), (0, 1)], options={"ftol": 1e-15, "gtol": 1e-12}).fun
        for x in starts
    ]
    assert segment_distances(a, b, c, d) == pytest.approx(np.sqrt(min(solution)), abs=MINIMIZED)


def test_five_bar_reaches_the_lens_of_two_annuli() -> None:
    """Both cranks reach a disc of radius 1.2 m about their motors: the workspace is the lens of both discs."""
    model = Model(loads(five_bar_text(base=1.0, link=0.6)))
    axes = {"tip_x": np.linspace(-1.3, 2.3, 91), "tip_y": np.linspace(-1.3, 1.3, 66)}
    grid = workspace_grid(model, axes, limits=EVERYTHING)
    x, y = np.meshgrid(*axes.values(), indexing="ij")
    first, second = np.hypot(x, y), np.hypot(x - 1.0, y)
    inside = (first < 1.2) & (second < 1.2)
    np.testing.assert_array_equal(grid.usable, inside)
    excluded = set(grid.excluded_by())
    assert excluded <= {"rod_1", "rod_2"}
    assert grid.data["parallel"].to_numpy()[inside].min() >= 0


def test_a_leg_that_folds_back_on_its_motor_is_singular() -> None:
    """With equal links the tip can stand on a motor: that crank closes at every angle, and none is told."""
    model = Model(loads(five_bar_text(base=1.0, link=0.6)))
    grid = workspace_grid(
        model, {"tip_x": np.array([0.0, 0.3]), "tip_y": np.array([0.0, 0.4])}, limits=EVERYTHING
    )
    assert grid.reason[0, 0] == Reason.SINGULAR
    assert grid.elements[grid.data["blame"].to_numpy()[0, 0]] == "type 1 (serial) singularity"
    assert grid.data["serial"].to_numpy()[0, 0] == 0.0
    assert np.isnan(grid.data["parallel"].to_numpy()[0, 0])
    assert grid.usable[1, 1]


def test_delta_reach_and_blame() -> None:
    """Straight down the Delta reaches sqrt((L + l)^2 - (R - r)^2) = 0.7216 m; the map's refusals are kinematics'."""
    model = Model(load("delta"))
    axes = {"platform.z": np.linspace(-0.75, -0.65, 101)}
    grid = workspace_grid(model, axes, limits=EVERYTHING)
    assert axes["platform.z"][grid.usable].min() == pytest.approx(-0.7216, abs=1e-3)
    bad = axes["platform.z"][~grid.usable]
    with pytest.raises(PoseError, match=r"leg1\.forearm: out of reach"):
        model.platform.kinematics([[0.0, 0.0, bad[-1]]])


def test_limits_take_poses_away_one_after_the_other() -> None:
    model = Model(load("hexapod"))
    axes = section_axes(
        model,
        ("platform.x", "platform.y"),
        0.05,
        {n: (-0.6, 0.6) for n in ("platform.x", "platform.y")},
    )
    free = workspace_grid(model, axes, limits=EVERYTHING)
    ranged = workspace_grid(model, axes, limits=WorkspaceLimits(singularity=0.0))
    apart = workspace_grid(model, axes, limits=WorkspaceLimits(singularity=0.0, clearance=0.2))
    assert free.usable.sum() >= ranged.usable.sum() >= apart.usable.sum()
    assert (ranged.usable <= free.usable).all()
    assert (apart.usable <= ranged.usable).all()
    struts = [name for name in model.topology.coordinate_names if "strut" in name]
    lower, upper = (np.array([getattr(rod.telescope.freedom, side) for rod in model.mechanism.rods]) for side in
                    ("lower", "upper"))  # fmt: skip
    grid = np.meshgrid(*axes.values(), indexing="ij")
    pose = np.tile(model.platform_position(model.assembly.q[None]), (grid[0].size, 1))
    pose[:, 0], pose[:, 1] = grid[0].ravel(), grid[1].ravel()
    state = model.platform.kinematics(pose)
    lengths = np.stack([state.coordinate(name) for name in struts], axis=1)
    within = ((lengths >= lower) & (lengths <= upper)).all(axis=1)
    np.testing.assert_array_equal(ranged.usable.ravel(), within)


def test_clearance_leaves_out_rods_that_share_a_joint() -> None:
    # the platform joints coincide in pairs: 60, 60, 180, 180, 300, 300 degrees
    model = Model(load("rcid"))
    clearance = rod_clearance(model)
    assert len(clearance.pairs) == 15 - 3
    assert clearance.distances(model.assembly.q[None]).min() > 0


def test_machines_with_newton_blocks_are_followed() -> None:
    model = Model(load("five_bar"))
    axes = section_axes(model, ("platform.x", "platform.y"), 0.1)
    grid = workspace_grid(model, axes, limits=WorkspaceLimits(ranges=False, singularity=0.0))
    x, y = np.meshgrid(*axes.values(), indexing="ij")
    inside = (
        (np.hypot(x - 0.1, y) < 0.59)
        & (np.hypot(x + 0.1, y) < 0.59)
        & (y > 0.15)
        & (np.abs(x) < 0.2)
    )
    assert grid.usable[inside].all()
    outside = (np.hypot(x - 0.1, y) > 0.6) | (np.hypot(x + 0.1, y) > 0.6)
    assert not grid.usable[outside].any()


@pytest.mark.parametrize(
    ("name", "is_less"), [("peaucellier", True), ("jansen", True), ("four_bar", False)]
)
def test_what_is_kept_from_singularities_follows_a_reference_pose_that_is_nearer(
    name: str, is_less: bool
) -> None:
    model = Model(load(name))
    measures = singularities(model, model.assembly.q[None])
    here = min(float(measures.distance(kind)[0]) for kind in SINGULARITY_KINDS)
    assert (here < DEFAULT_DISTANCE) is is_less
    grid = tl.workspace(model)
    expected = here / 2 if is_less else DEFAULT_DISTANCE
    assert grid.limits.singularity == pytest.approx(expected, rel=1e-12)
    assert grid.usable.any()
    if is_less:
        asked_for = tl.workspace(model, tl.WorkspaceOptions(singularity=DEFAULT_DISTANCE))
        assert asked_for.limits.singularity == DEFAULT_DISTANCE
        assert asked_for.usable.sum() < grid.usable.sum()


def test_a_crank_turns_once() -> None:
    grid = tl.workspace(load("four_bar"))
    (axis,) = grid.axes.values()
    assert grid.usable.all()
    assert grid.size_text == "360 deg"
    assert np.diff(axis) == pytest.approx(2 * np.pi / (len(axis) - 1), rel=1e-9)


def test_bad_axes_are_named_together() -> None:
    model = Model(load("delta"))
    with pytest.raises(InputError) as caught:
        workspace_grid(
            model,
            {"platform.k": [0.0, 1.0], "platform.x": [1.0, 0.0]},
            fixed={"platform.x": np.nan},
        )
    text = str(caught.value)
    for part in ("platform.k", "do not increase", "both varies", "finite"):
        assert part in text


def test_a_grid_that_would_fill_the_memory_is_refused_before_it_is_made() -> None:
    """Ten million poses are the most; 1e-6 m would be 4e10 of them, 1e-300 m more than any number tells."""
    model = Model(load("five_bar"))
    for step in (1e-6, 1e-300, 5e-324):
        with pytest.raises(InputError, match="poses; at most 1e\\+07 are allowed"):
            section_axes(
                model,
                ("platform.x", "platform.y"),
                step,
                dict.fromkeys(("platform.x", "platform.y"), (-0.1, 0.1)),
            )
    many = np.linspace(-0.1, 0.1, 10_000)
    with pytest.raises(InputError, match=r"10000 x 10000 = 1e\+08 poses"):
        workspace_grid(model, {"platform.x": many, "platform.y": many})
    with pytest.raises(InputError, match="give a positive step"):
        section_axes(model, ("platform.x",), np.inf)


def test_a_section_refuses_a_volume() -> None:
    model = Model(load("delta"))
    axis = np.linspace(-0.1, 0.1, 3)
    volume = workspace_grid(
        model, {"platform.x": axis, "platform.y": axis, "platform.z": axis - 0.5}
    )
    assert volume.usable.all()
    assert volume.size == (pytest.approx(0.2**3), "m^3")
    with pytest.raises(InputError, match="varies 3"):
        section_plot(volume)
    flat = workspace_grid(model, {"platform.x": axis, "platform.y": axis})
    plot = section_plot(flat, points=30)
    assert (len(plot.grid), len(plot.grid[0])) == (30, 30)
    assert not plot.classes  # every pose is usable
    assert flat.held == f"platform.z = {flat.fixed['platform.z']:.4g} m"
    assert set(np.unique(flat.reason)) == {Reason.USABLE}
