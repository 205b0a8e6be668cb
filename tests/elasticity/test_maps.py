"""Maps of stiffness, first frequency and heat, and their worst poses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import tauloop as tl

TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: Relative difference of the worst value and that of an optimizer: the pose is resolved to 1/1024 of
#: the grid's step, and the value is flat there.
WORST_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def model() -> tl.Model:
    return tl.Model(TUBES)


@pytest.fixture(scope="module")
def grid(model: tl.Model) -> tl.kinematics.Workspace:
    ranges = {"y": (-0.2, 0.3), "z": (-0.2, 0.3)}
    return tl.workspace(model, plane=("y", "z"), ranges=ranges, resolution=0.1)


@pytest.mark.parametrize(
    "names",
    [
        ("stiffness", "heat"),
        pytest.param(("stiffness.rz", "frequency"), marks=pytest.mark.nightly),
    ],
)
def test_a_map_has_the_values_of_single_poses(
    model: tl.Model, grid: tl.kinematics.Workspace, names: tuple[str, ...]
) -> None:
    mapped = tl.elastic_map(grid, quantities=names, temperatures={"triple1": 2.0})
    pose = {"y": 0.2, "z": -0.1}
    index = tuple(
        int(np.argmin(np.abs(axis - value)))
        for axis, value in zip(mapped.axes.values(), pose.values(), strict=True)
    )
    stiffness = tl.stiffness(model, pose)
    expected = {
        "stiffness": stiffness.worst_translational[0],
        "stiffness.rz": stiffness.directional[0, 5],
        "frequency": tl.vibration(model, pose, count=1).frequency[0, 0],
        "heat": tl.thermal_expansion(model, pose, temperatures={"triple1": 2.0}).distance[0],
    }
    units = {"stiffness": "N/m", "stiffness.rz": "N m/rad", "frequency": "Hz", "heat": "m"}
    table = mapped.to_xarray()
    for name in names:
        assert mapped.arrays[name][index] == pytest.approx(expected[name], rel=1e-9), name
        assert np.isnan(mapped.arrays[name][~mapped.usable]).all()
        assert table[name].attrs["units"] == units[name]


def test_the_worst_pose_is_that_of_an_optimizer(
    model: tl.Model, grid: tl.kinematics.Workspace
) -> None:
    mapped = tl.elastic_map(grid, quantities=("stiffness.z", "heat"))
    functions = {
        "stiffness.z": lambda pose: 1e-7 * tl.stiffness(model, pose).directional[0, 2],
        "heat": lambda pose: -1e4 * tl.thermal_expansion(model, pose).distance[0],
    }
    scales = {"stiffness.z": 1e7, "heat": -1e-4}
    low, high = (np.array([axis[end] for axis in mapped.axes.values()]) for end in (0, -1))
    for quantity in mapped.quantities:
        function, scale = functions[quantity.name], scales[quantity.name]
        y, z = quantity.worst_pose.values()
        assert quantity.worst == pytest.approx(scale * function({"y": y, "z": z}), rel=1e-9)
        lowest = minimize(
            lambda x, function=function: function({"y": x[0], "z": x[1]}),
            np.clip([y + 0.03, z - 0.03], low, high),
            bounds=list(zip(low, high, strict=True)),
            method="Nelder-Mead",
        )
        assert quantity.worst == pytest.approx(scale * lowest.fun, rel=WORST_TOLERANCE)


def test_a_picture_and_a_table_show_the_worst_pose(grid: tl.kinematics.Workspace) -> None:
    from tauloop.display.plots.motion.workspace_plots import workspace_plots
    from tauloop.display.tables.motion.workspace_tables import workspace_tables

    mapped = tl.elastic_map(grid)
    titles = [piece.title for piece in workspace_plots(mapped)]
    assert "Usable poses: stiffness in the softest direction" in titles
    tables = [piece for piece in workspace_tables(mapped) if not isinstance(piece, str)]
    (worst,) = [piece for piece in tables if piece.title == "Worst pose"]
    assert worst.cells[0][1] == f"{1e-6 * mapped.quantities[0].worst:.4g}"


def test_unknown_and_repeated_quantities_are_refused(grid: tl.kinematics.Workspace) -> None:
    with pytest.raises(tl.InputError, match="did you mean stiffness"):
        tl.elastic_map(grid, quantities=("stifness",))
    with pytest.raises(tl.InputError, match="already in the map"):
        tl.elastic_map(tl.elastic_map(grid))
    rigid = tl.workspace("five_bar", resolution=0.1)
    with pytest.raises(tl.InputError, match="rigid"):
        tl.elastic_map(rigid)
