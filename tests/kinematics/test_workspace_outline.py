"""What a map shows besides poses: the machine, its work box, and what limits each region."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from planar_machines import five_bar_text

import tauloop as tl
from tauloop.display.pieces import Plot, PlotTrace
from tauloop.display.plots.motion.machine_outline import _clipped
from tauloop.display.plots.motion.workspace_plots import section_plot
from tauloop.kinematics.workspaces.map import WorkspaceLimits, workspace_grid

MACHINE, BOX = "machine at the reference pose", "work box"
#: Plots keep six digits or so of lengths below one metre.
DRAWN = 1e-5
#: Samples along a line against its exact ends.
SAMPLES = 400


def delta_plot(**options: object) -> Plot:
    return section_plot(tl.workspace("delta", resolution=0.1, **options))  # type: ignore[arg-type]


def trace(plot: Plot, name: str) -> PlotTrace | None:
    return next((trace for trace in plot.traces if trace.name == name), None)


def corners(drawn: PlotTrace | None) -> np.ndarray:
    """Return the points (n, 2) of a trace, without gaps."""
    assert drawn is not None
    points = np.array([drawn.x, drawn.y], dtype=float).T
    return points[np.isfinite(points).all(axis=1)]


def test_the_outline_of_a_delta_is_that_of_its_dimensions() -> None:
    """Leg 1 in the x-z plane: motor, elbow by trilateration in the plane, joint of the plate, centre."""
    plot = delta_plot(plane=("x", "z"))
    machine = corners(trace(plot, MACHINE))
    plate = np.array([0.03, -0.5])
    motor = np.array([0.194, 0.0])
    d = plate - motor
    length = np.linalg.norm(d)
    along = (0.26**2 - 0.48**2 + length**2) / (2.0 * length)
    across = np.sqrt(0.26**2 - along**2)
    elbow = motor + (along * d + across * np.array([-d[1], d[0]])) / length
    for point in (motor, elbow, plate):
        assert np.abs(machine - point).max(axis=1).min() < DRAWN
    assert corners(trace(plot, BOX)).min(axis=0).tolist() == [-0.2, -0.65]
    assert corners(trace(plot, BOX)).max(axis=0).tolist() == [0.2, -0.36]


def test_the_machine_is_seen_along_the_third_direction() -> None:
    """From above; a section away from the reference pose shows the machine there."""
    above = corners(trace(delta_plot(plane=("x", "y"), pose={"z": -0.4}), MACHINE))
    for angle in np.deg2rad([0.0, 120.0, 240.0]):
        motor = 0.194 * np.array([np.cos(angle), np.sin(angle)])
        assert np.abs(above - motor).max(axis=1).min() < DRAWN
    side = corners(trace(delta_plot(plane=("x", "z"), pose={"y": 0.1}), MACHINE))
    assert np.abs(side - [0.03, -0.5]).max(axis=1).min() < DRAWN


def test_a_small_map_shows_the_machine_near_it() -> None:
    """The machine reaches as far beyond the map as the map is long."""
    ranges = {"x": (-0.02, 0.02), "z": (-0.52, -0.48)}
    result = tl.workspace("delta", plane=("x", "z"), ranges=ranges, resolution=0.01)
    machine = corners(trace(section_plot(result), MACHINE))
    assert machine[:, 0].max() <= 0.06 + DRAWN
    assert machine[:, 1].max() == pytest.approx(-0.44)


@pytest.mark.parametrize("axes", [("platform.x", "platform.rz"), ("platform.rx", "platform.ry")])
def test_the_machine_is_not_drawn_over_angles(axes: tuple[str, str]) -> None:
    model = tl.Model(tl.load("hexapod"))
    grid = {name: np.linspace(-0.01, 0.01, 3) for name in axes}
    plot = section_plot(workspace_grid(model, grid), points=10)
    assert trace(plot, MACHINE) is None


def test_the_machine_is_not_drawn_over_coordinates_that_do_not_move_the_tool_straight() -> None:
    """Of the suspension `wishbone`, z of the wheel carrier and the rack are lengths."""
    ranges = {"z": (0.30, 0.34), "rack": (-0.01, 0.01)}
    result = tl.workspace("wishbone", plane=("z", "rack"), ranges=ranges, resolution=0.01)
    assert trace(section_plot(result, points=10), MACHINE) is None


def test_a_planar_machine_has_an_outline_and_no_box() -> None:
    """Its links."""
    model = tl.Model(tl.loads(five_bar_text(base=1.0, link=0.6)))
    axes = {"tip_x": np.linspace(-0.1, 0.1, 5), "tip_y": np.linspace(0.5, 0.7, 5)}
    limits = WorkspaceLimits(singularity=0.0)
    plot = section_plot(workspace_grid(model, axes, limits=limits), points=10)
    assert trace(plot, BOX) is None
    assert len(corners(trace(plot, MACHINE)))


def test_the_legend_names_what_limits_each_region() -> None:
    """The shares of elements are those of the table; ranges in the file count as stops."""
    result = tl.workspace("hexapod", plane=("x", "z"), resolution=0.05)
    names = [item.name for item in section_plot(result).classes]
    (stops,) = [name for name in names if name.startswith("joint limit: ")]
    first, *_ = result.excluded_by()
    assert stops.startswith(f"joint limit: {first}, ")
    assert stops.endswith(" more")
    assert "cut off" in names


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(float, (2, 2), elements=st.floats(-3, 3, width=32)))
def test_lines_end_at_the_box(line: np.ndarray) -> None:
    low, high = np.array([-1.0, -0.5]), np.array([1.0, 0.5])
    share = np.linspace(0.0, 1.0, SAMPLES)[:, None]
    samples = line[0] + share * (line[1] - line[0])
    inside = samples[((samples > low) & (samples < high)).all(axis=1)]
    clipped = _clipped(line[None], low, high)
    if not len(clipped):
        assert len(inside) <= 1 or np.ptp(line, axis=0).max() == 0.0
        return
    step = np.abs(line[1] - line[0]).max() / (SAMPLES - 1)
    assert (clipped >= low - 1e-9).all()
    assert (clipped <= high + 1e-9).all()
    if len(inside):
        ends = np.stack([inside[0], inside[-1]])
        assert clipped[0] == pytest.approx(ends, abs=1.01 * step + 1e-9)
