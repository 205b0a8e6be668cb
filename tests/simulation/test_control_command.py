"""The workflow of a control, `control`: controllers beside each other, and what they do not know of the plant."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

import tauloop as tl
from tauloop import load
from tauloop.report.control_table import control_tables
from tauloop.simulation.controllers.library import COMPILED

DOWN = tl.StrokeOptions(end={"z": -0.55}, time=0.05)


def test_all_controllers_stand_in_one_table_and_the_model_is_worth_its_while():
    motion = tl.control(load("nuwar"), tl.ControlOptions(stroke=DOWN, space="platform"))
    assert list(motion.runs) == list(COMPILED)
    assert motion.runs["pd"].peak_error > 5 * motion.runs["computed-torque"].peak_error
    screen = Console(file=io.StringIO(), width=120)
    screen.print(*control_tables(motion))
    text = screen.file.getvalue()
    assert all(name in text for name in COMPILED)
    assert "[N m]" in text


def peak_error(**options: Any) -> float:
    """Of computed torques on the stroke, m."""
    motion = tl.control(load("nuwar"), tl.ControlOptions(stroke=DOWN, controller=("computed-torque",), **options))
    return motion.runs["computed-torque"].peak_error


def test_what_the_controller_does_not_know_costs():
    mass = load("nuwar").parameters["plate_mass"].value
    known, unknown = (peak_error(plant=plant) for plant in (None, {"plate_mass": mass + 0.1}))
    assert unknown > 2 * known


def test_an_implicit_integrator_can_be_asked_for():
    assert peak_error(method="implicit") == pytest.approx(peak_error(method="rk4"), rel=1e-3)


def test_an_angle_has_no_distance():
    turned = tl.StrokeOptions(end={"waist": 0.2}, time=0.1)
    run = tl.control(load("pendulum_arm"), tl.ControlOptions(stroke=turned, controller=("pd",))).as_dict()["runs"]["pd"]
    assert run["peak_error_m"] is None
    assert min(run["actuator_error"]) > 0
