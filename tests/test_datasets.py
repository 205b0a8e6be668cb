"""What notebooks get of trajectories, simulations and results: datasets with units, tables, and axes to restyle."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from simulation_machines import simulated

import tauloop as tl
from tauloop.common.datasets import (
    Tabular,
    Variable,
    columns,
    item_rows,
    rows,
    tabulated,
)
from tauloop.common.plain import json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, provenance
from tauloop.display import PARTS
from tauloop.display.renderers.figure_style import save_figure
from tauloop.drives import load_drive
from tauloop.identification import OrdinaryLeastSquares, RegressionData, fit_regression
from tauloop.kinematics import random_states

#: Numbers that two routes compute from the same formulas, in another order.
ROUNDING = 1e-12
#: Results that have nothing but their diagnostics to tabulate: texts and checks.
EVIDENCE_ALONE = {"CertificateCheck", "Checkup", "LogDescription", "WrittenEquations"}


@pytest.fixture(autouse=True)
def no_figure_left_open() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def delta() -> tl.Model:
    return tl.Model(tl.load("delta"))


@pytest.fixture(scope="module")
def planned(delta: tl.Model) -> Any:
    return tl.plan_stroke(delta, tl.StrokeOptions(end={"x": 0.05}, duration=0.2))


@pytest.fixture(scope="module")
def simulation(delta: tl.Model) -> Any:
    return simulated(delta, 0.02)


class Mixed(Tabular):
    """A quantity of every shape."""

    def variables(self) -> Iterator[Variable]:
        yield from rows(
            "parameter", ("mass", "length", "width"), ("kg", "m", "m"), value=[1.0, 2.0, None]
        )
        yield Variable(name="time", values=[0.0, 0.5], over=("time",), unit="s")
        yield Variable(name="run", values=["first", "second"], over=("run",))
        yield from columns("speed", ("x", "turn"), ("m/s", "rad/s"), np.ones((2, 2)))
        yield Variable(name="force", values=[[1, 2], [3, 4]], over=("run", "time"), unit="N")
        yield Variable(name="word", values=["good", "bad"], over=("run",))
        yield Variable(name="cost", values=[7.0, 8.0], over=("search",), unit=None)
        yield Variable(name="map", values=np.ones((2, 2, 2)), over=("time", "other", "third"))


def result_with(*diagnostics: Diagnostic) -> Result:
    return Result(diagnostics=diagnostics, provenance=provenance(options={}))


# Datasets.


def test_a_trajectory_is_sampled_as_by_hand(planned: Any, delta: tl.Model):
    data = planned.to_xarray()
    assert {
        name: data[name].attrs["units"]
        for name in ("time", "position.platform.x", "force.leg1.motor")
    } == {
        "time": "s",
        "position.platform.x": "m",
        "force.leg1.motor": "N m",
    }
    x = data["position.platform.x"].to_numpy()
    velocity = np.gradient(x, data["time"].to_numpy(), edge_order=2)
    assert velocity == pytest.approx(
        data["velocity.platform.x"].to_numpy(), abs=1e-3 * np.abs(velocity).max()
    )
    k = 200
    at = [
        [data[f"{kind}.platform.{axis}"][k] for axis in "xyz"]
        for kind in ("position", "velocity", "acceleration")
    ]
    force = delta.platform.inverse_dynamics(*map(np.array, at)).force
    assert [float(data[f"force.leg{i}.motor"][k]) for i in (1, 2, 3)] == pytest.approx(
        force, rel=1e-9
    )
    assert data.equals(planned.trajectory.to_xarray())


def test_a_simulation_ends_where_its_record_says(simulation: Any):
    data, stated = simulation.to_xarray(), simulation.as_dict()
    assert {name: float(data[f"coordinate.{name}"][-1]) for name in stated["final"]} == stated[
        "final"
    ]
    energy = sum(
        sign * data[f"energy.{name}"]
        for name, sign in (("kinetic", 1), ("potential", 1), ("work", -1))
    )
    assert float(np.abs(energy + data["energy.loss"] - energy[0]).max()) == float(
        np.abs(simulation.energy_error).max()
    )
    assert float(data["residual"].max()) == stated["largest_loop_residual_m"]
    log = simulation.log()
    assert len(log.data_vars) == 9
    for name in log.data_vars:
        assert (data[name].to_numpy() == log[name].to_numpy()).all()
        assert data[name].attrs["units"] == log[name].attrs["units"]


def test_parameters_have_a_unit_each_and_the_values_of_the_json(delta: tl.Model):
    states = random_states(delta, 60, np.random.default_rng(1))
    motion = states.position, states.velocity, states.acceleration
    names, units = delta.output_ports("actuators")
    data = RegressionData(
        regressor=delta.platform.regressor(*motion),
        forces=delta.platform.inverse_dynamics(*motion).force
        + 1e-3 * np.sin(np.arange(180.0)).reshape(60, 3),
        parameters=tuple(parameter.name for parameter in delta.parameters),
        parameter_units=tuple(parameter.unit for parameter in delta.parameters),
        outputs=names,
        output_units=units,
    )
    result = fit_regression(data, None, OrdinaryLeastSquares())
    table = result.to_pandas()
    stated = result.as_dict()["base_parameters"]
    assert list(table.index) == [row["name"] for row in stated]
    assert list(table["value"]) == [row["value"] for row in stated]
    assert list(table["deviation"]) == [row["standard_deviation"] for row in stated]
    assert list(table["parameter_unit"]) == [row["unit"] for row in stated]
    assert list(result.to_pandas("output").index) == list(names)


def test_machine_file_and_reference_pose_are_tables(delta: tl.Model):
    description = tl.describe(delta)
    stated = {row["name"]: row for row in description.as_dict()["parameters"]}
    table = description.to_pandas()
    assert dict(table["value"]) == {name: row["value"] for name, row in stated.items()}
    assert {*table["parameter_unit"]} == {"m", "kg", "kg m^2", "rad", "m/s^2"}
    assert table["parameter_unit"]["leg2.phi"] == "rad"  # the file says it in degrees
    assert tl.check(delta).to_pandas().loc["platform.z", "reference"] == delta.assembly.q[2]


def test_poses_and_modes_are_those_of_the_json():
    five_bar = tl.load("five_bar")
    poses = tl.forward_kinematics(five_bar, {"motor_1": "100deg"})
    row, stated = poses.to_pandas().loc[1], poses.as_dict()["poses"][0]
    assert [row[f"position.{name}"] for name in ("platform.x", "platform.y")] == stated["platform"]
    assert [row["position.motor_1"], row["position.motor_2"]] == stated["actuators"]
    matrix = tl.jacobian(five_bar, pose={"x": 0.05}).to_xarray()
    # the tool moves as the platform does: x by x
    assert float(matrix["jacobian"].sel(row="tool.vx", column="platform.x")) == pytest.approx(
        1.0, abs=ROUNDING
    )
    assert matrix["row_unit"].sel(row="tool.vx").item() == "m/s"
    assert matrix["column_unit"].sel(column="platform.x").item() == "m/s"


def test_signals_of_a_drive_line_are_channels():
    step = tl.simulate_drive_line(
        load_drive("dual_motor_axis"), tl.DriveOptions(step=0.05, duration=0.5)
    )
    data = step.to_xarray()
    assert data["position.cart"].attrs["units"] == "m"
    assert (data["position.cart"].to_numpy() == step.record.signal("cart.position")).all()


def test_a_map_has_its_axes(delta: tl.Model):
    grid = {"x": (-0.1, 0.1), "y": (0.0, 0.1)}
    options = tl.WorkspaceOptions(plane=("x", "y"), pose={"z": -0.4}, ranges=grid, resolution=0.05)
    result = tl.workspace(delta, options)
    data = result.to_xarray()
    assert dict(data.sizes) == {"platform.x": 5, "platform.y": 3}
    assert (data["parallel"].to_numpy() == result.arrays["parallel"]).all()
    assert data.equals(result.data)
    assert len(result.to_pandas()) == 15


def test_units_of_rows_stand_beside_them_and_unknown_ones_nowhere():
    data = Mixed().to_xarray()
    assert list(data["parameter_unit"].to_numpy()) == ["kg", "m", "m"]
    assert "units" not in data["value"].attrs
    assert "units" not in data["cost"].attrs
    assert np.isnan(data["value"][2])
    assert data["speed.turn"].attrs["units"] == "rad/s"
    assert data.attrs["made_from"] == "Mixed"


def test_a_table_has_the_quantities_over_one_dimension():
    table = Mixed().to_pandas("time")
    assert table.index.name == "time"
    assert list(table.columns) == ["speed.x", "speed.turn"]
    assert table.attrs["units"] == {"speed.x": "m/s", "speed.turn": "rad/s"}
    assert list(Mixed().to_pandas("search").columns) == ["cost"]
    with pytest.raises(
        tl.InputError,
        match=r"(?s)no quantity has the dimension .speed..*parameter, time, run, search",
    ):
        Mixed().to_pandas("speed")


def test_whatever_has_no_quantities_has_its_diagnostics():
    result = result_with(
        Diagnostic(name="energy", value=1e-9, upper=1e-6),
        Diagnostic(name="gap", value=None, unit="m"),
    )
    data = result.to_xarray()
    assert float(data["value"].sel(diagnostic="energy")) == 1e-9
    assert list(data["diagnostic_unit"].to_numpy()) == ["1", "m"]
    for _, name, is_package in pkgutil.walk_packages(tl.__path__, "tauloop."):
        if is_package:
            package = importlib.import_module(name)
            [getattr(package, public) for public in getattr(package, "__all__", ())]
    kinds = [Result]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    ours = {kind for kind in kinds[1:] if kind.__module__.startswith("tauloop.")}
    without = {kind.__name__ for kind in ours if kind.variables is Result.variables}
    stated = {
        kind.__name__ for kind in ours if any("quantities" in f.metadata for f in fields(kind))
    }
    assert without - stated == EVIDENCE_ALONE
    assert stated <= without


def test_quantities_follow_from_the_metadata_of_fields():
    @dataclass(frozen=True, kw_only=True)
    class Fitted(Result):
        gaps: tuple[Diagnostic, ...] = field(
            metadata=item_rows("gap", "value", "upper", unit="unit")
        )
        inner: Any = field(metadata=json_keys(size="real") | tabulated("table"))

    gaps = (Diagnostic(name="x", value=1.0, unit="m"), Diagnostic(name="turn", value=2.0))
    inner = SimpleNamespace(table=Mixed())
    result = Fitted(diagnostics=(), provenance=provenance(options={}), gaps=gaps, inner=inner)
    stated = [*result.variables()]
    assert [variable.name for variable in stated[:3]] == ["gap", "value", "upper"]
    assert stated[0].values == ["x", "turn"]
    assert stated[1].values == [1.0, 2.0]
    assert stated[1].unit == ("m", "")
    assert [variable.name for variable in stated[3:]] == [v.name for v in Mixed().variables()]


# Axes.


def test_a_panel_for_each_unit_and_all_of_it_can_be_restyled(planned: Any, tmp_path: Path):
    axes = planned.plot("position", "velocity", "force")
    assert [each.get_ylabel() for each in axes] == ["position [m]", "velocity [m/s]", "force [N m]"]
    assert [line.get_label() for line in axes[2].lines] == [
        "leg1.motor",
        "leg2.motor",
        "leg3.motor",
    ]
    assert axes[2].lines[0].get_ydata() == pytest.approx(
        planned.to_xarray()["force.leg1.motor"].to_numpy()
    )
    axes[0].set_title("Mine")
    axes[0].lines[0].set_color("black")
    assert "Mine" in save_figure(axes[0].figure, tmp_path / "mine.svg").read_text(encoding="utf-8")
    assert pyplot.get_fignums() == [axes[0].figure.number]


def test_several_results_share_axes_of_the_users(planned: Any, simulation: Any):
    figure, (left, right) = pyplot.subplots(1, 2)
    assert planned.plot("position.platform.x", axes=left) == (left,)
    simulation.plot("position.platform.x", axes=left)
    simulation.plot("energy", axes=[right])
    assert (len(left.lines), len(right.lines)) == (2, 4)
    assert right.get_ylabel() == "energy [J]"
    assert pyplot.get_fignums() == [figure.number]


def test_a_kind_with_a_picture_shows_it(simulation: Any):
    picture = PARTS["Simulation"].figure(simulation)
    assert picture is not None
    axes = simulation.plot()
    assert [each.get_ylabel() for each in axes] == [each.get_ylabel() for each in picture.axes]


def test_rows_runs_and_matrices_have_panels_of_their_own():
    meters, kilograms = Mixed().plot("value")[::-1]
    assert [tick.get_text() for tick in meters.get_yticklabels()] == ["length", "width"]
    assert kilograms.get_xlabel() == "value [kg]"
    (runs,) = Mixed().plot("force")
    assert [line.get_label() for line in runs.lines] == ["first", "second"]
    assert [float(line.get_ydata()[1]) for line in runs.lines] == [2.0, 4.0]
    matrix, *_ = tl.jacobian(tl.load("five_bar")).plot()
    assert [tick.get_text() for tick in matrix.get_xticklabels()] == ["platform.x", "platform.y"]


def test_one_sample_is_drawn_by_name(delta: tl.Model):
    (axes,) = tl.inverse_dynamics(delta, tl.DynamicsOptions()).plot("force")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "leg1.motor",
        "leg2.motor",
        "leg3.motor",
    ]
    (axes,) = tl.inverse_dynamics(delta, tl.DynamicsOptions()).plot("condition")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["condition"]


def test_lines_of_several_quantities_are_told_apart(delta: tl.Model):
    axes, angles = tl.forward_kinematics(delta).plot("position.platform.x", "tool")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "position.platform.x",
        "tool.x",
        "tool.y",
        "tool.z",
    ]
    assert [tick.get_text() for tick in angles.get_yticklabels()] == ["rx", "ry", "rz"]


def test_a_volume_is_drawn_by_its_section_through_the_reference(delta: tl.Model):
    ranges = {"x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (-0.6, -0.4)}
    volume = tl.workspace(
        delta, tl.WorkspaceOptions(plane=("x", "y", "z"), ranges=ranges, resolution=0.05)
    )
    axes, *_ = volume.plot()
    assert axes.get_xlabel() == "platform.x [m]"
    assert any("platform.z = -0.5" in text.get_text() for text in axes.texts)


@pytest.mark.parametrize(
    ("draw", "what"),
    [
        (lambda: Mixed().plot("sped"), "speed"),
        (lambda: Mixed().plot("word"), "not a quantity that can be drawn"),
        (lambda: Mixed().plot("speed", axes=pyplot.subplots()[1]), "are 1 for 2 panels"),
        (lambda: Mixed().plot("map"), "is over time, other, third"),
        (lambda: result_with().plot(), "contains no numbers"),
    ],
)
def test_what_cannot_be_drawn_is_said_and_leaves_no_figure(draw: Callable[[], object], what: str):
    with pytest.raises(tl.InputError, match=what):
        draw()
    assert len(pyplot.get_fignums()) <= 1


# What is imported.


def test_neither_library_is_imported_before_it_is_asked_for():
    code = """
import sys, tauloop as tl
motion = tl.plan_stroke(tl.load('five_bar'), tl.StrokeOptions(end={'x': 0.05}, duration=1.0))
assert not {'xarray', 'pandas', 'matplotlib'} & set(sys.modules)
motion.to_xarray()
assert 'matplotlib' not in sys.modules
motion.plot('force')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
