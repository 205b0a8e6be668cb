"""The workflow of a control, `control`: controllers beside each other, and what they do not know of the plant."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop import load
from tauloop.display.tables.motion.control_tables import control_tables
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.simulation.controllers.library import COMPILED

DOWN = tl.StrokeOptions(end={"z": -0.55}, duration=0.05)


def test_all_controllers_stand_in_one_table_and_the_model_is_worth_its_while():
    motion = tl.follow_path(load("nuwar"), tl.ControlOptions(stroke=DOWN, space="platform"))
    assert list(motion.runs) == list(COMPILED)
    assert motion.runs["pd"].peak_error > 5 * motion.runs["computed-torque"].peak_error
    screen = Console(file=io.StringIO(), width=120)
    screen.print(*control_tables(motion))
    text = screen.file.getvalue()
    assert all(name in text for name in COMPILED)
    assert "[N m]" in text


def peak_error(**options: Any) -> float:
    """Of computed torques on the stroke, m."""
    motion = tl.follow_path(
        load("nuwar"), tl.ControlOptions(stroke=DOWN, controller=("computed-torque",), **options)
    )
    return motion.runs["computed-torque"].peak_error


def test_what_the_controller_does_not_know_costs():
    mass = load("nuwar").parameters["plate_mass"].value
    known, unknown = (peak_error(plant=plant) for plant in (None, {"plate_mass": mass + 0.1}))
    assert unknown > 2 * known


@pytest.mark.parametrize("longer", [1e-4, 1e-3, 1e-2])
def test_a_plant_of_other_lengths_starts_where_its_own_rods_put_it(longer: float):
    """Delta on its axis, motors as the controller's model has them: the plate's height by Pythagoras."""
    machine = load("delta")
    R, r, arm, rod = (
        machine.parameters[f"{name}_{of}"].value
        for name, of in (
            ("motor", "radius"),
            ("plate", "radius"),
            ("arm", "length"),
            ("forearm", "length"),
        )
    )
    angle = tl.inverse_kinematics(machine, {"z": -0.45}).actuator_position[0, 0]
    out, down = R - r + arm * np.cos(angle), arm * np.sin(angle)
    heights = [-down - np.sqrt(length**2 - out**2) for length in (rod, rod + longer)]
    stroke = tl.StrokeOptions(start={"z": -0.45}, end={"x": 0.05, "z": -0.45}, duration=0.1)
    options = tl.ControlOptions(
        stroke=stroke, controller=("computed-torque",), plant={"forearm_length": rod + longer}
    )
    run = tl.follow_path(machine, options).runs["computed-torque"]
    assert heights[0] == pytest.approx(-0.45, abs=1e-12)
    assert run.tool_error[0] == pytest.approx(heights[0] - heights[1], abs=1e-12)
    # which no sensor of the motors sees
    assert run.tool_error[-1] == pytest.approx(run.tool_error[0], rel=0.1)


def test_an_implicit_integrator_can_be_asked_for():
    assert peak_error(method="implicit") == pytest.approx(peak_error(method="rk4"), rel=1e-3)


@pytest.mark.parametrize(
    ("name", "end"), [("pendulum_arm", {"waist": 0.2}), ("tricept", {"tilt.first": 0.05})]
)
def test_how_far_the_tool_strays_where_angles_are_moved(name: str, end: dict[str, float]):
    """Beside the places of the machine's bodies as they are drawn."""
    stroke = tl.StrokeOptions(end=end, duration=0.1)
    run = tl.follow_path(load(name), tl.ControlOptions(stroke=stroke, controller=("pd",))).runs[
        "pd"
    ]
    entry = run.model.platform
    real, wanted = (
        machine_geometry(run.model, entry.track(motion).q)
        for motion in (run.position, run.reference)
    )
    assert run.tool_error == pytest.approx(
        np.linalg.norm(real.tool - wanted.tool, axis=1), abs=1e-12
    )
    assert run.turn_error == pytest.approx(
        Rotation.from_matrix(wanted.tool_rotation.swapaxes(1, 2) @ real.tool_rotation).magnitude(),
        abs=1e-7,
    )
    assert min(run.peak_error, run.peak_turn) > 1e-4
