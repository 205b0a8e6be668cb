"""The command ``tauloop control``: its figures beside the library's, what it writes, what it refuses."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import tauloop as tl
from tauloop import Model, load
from tauloop.cli.app import app
from tauloop.logs import read_log, samples
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.report.control_table import control_tables
from tauloop.simulation.controllers.laws import CONTROLLERS, FeedForward, Sampling
from tauloop.simulation.controllers.run import follow

STROKE = ("nuwar", "--to", "z=-0.55", "--time", "0.05")
DOWN = tl.StrokeOptions(end={"z": -0.55}, time=0.05)


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["control", *arguments])
    return result.exit_code, result.output


def test_figures_are_those_of_the_library_and_the_motion_is_written(tmp_path):
    out, figure = tmp_path / "motion.csv", tmp_path / "control.png"
    real = ("--rate", "2kHz", "--delay", "0.25 ms", "--quantisation", "0.1mrad", "--differences", "--no-saturation")
    options = ("--controller", "feed-forward", "--bandwidth", "20 Hz", "--out", str(out), "--figure", str(figure))
    code, text = call(*STROKE, *real, *options, "--json")
    assert code == 0, text
    document = json.loads(text)
    model = Model(load("nuwar"))
    here = model.platform_position(model.assembly.q)[2:]
    made = plan(stroke(model, Line(here, [-0.55]), ["platform.z"]), POLYNOMIAL_345, Seconds(0.05))
    sampling = Sampling(frequency=2000.0, delay=0.25e-3, resolution=1e-4, differences=True, saturates=False)
    motion = follow(made, FeedForward(bandwidth=40 * np.pi), sampling)
    run = document["runs"]["feed-forward"]
    assert list(document["runs"]) == ["feed-forward"]
    assert run["peak_error_m"] == pytest.approx(motion.peak_error)
    assert run["rms_error_m"] == pytest.approx(motion.rms_error)
    assert run["peak_force"] == pytest.approx(np.abs(motion.force).max(axis=0))
    assert samples(read_log(out), "position") == pytest.approx(motion.position, abs=1e-9)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_all_controllers_stand_in_one_table_and_the_model_is_worth_its_while():
    motion = tl.control(load("nuwar"), tl.ControlOptions(stroke=DOWN, space="platform"))
    assert list(motion.runs) == list(CONTROLLERS)
    assert motion.runs["pd"].peak_error > 5 * motion.runs["computed-torque"].peak_error
    screen = Console(file=io.StringIO(), width=120)
    screen.print(*control_tables(motion))
    text = screen.file.getvalue()
    assert all(name in text for name in CONTROLLERS)
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
    assert run["actuator_error"] > 0


def test_a_run_that_ends_early_says_so():
    """A tenth of the bandwidth's samples: the loop is unstable and leaves the workspace."""
    code, text = call(*STROKE, "--rate", "60 Hz", "--no-saturation", "--controller", "pd", "--settling", "1")
    assert code == 1
    assert "ended early" in text.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--controller", "pid"), "did you mean pd"),
        (("--controller", "pd", "--space", "tool"), "choose among joint, platform"),
        (("--rate", "3 m"), "is a length"),
        (("--rate", "fast"), "is not a number with a unit"),
        (("--delay", "1 parsec"), "unknown unit"),
        (("--quantisation", "1mm"), "where an angle (rad) is needed"),
        (("--quantisation", "1mrad,1mrad"), "2 steps for 3 actuators"),
        (("--plant", "plate=1,plate_mass"), "is not NAME=VALUE"),
        (("--method", "euler"), "rk4, heun3"),
        (("--rate", "0"), "above 0"),
    ],
)
def test_what_makes_no_control_is_refused(arguments, says):
    code, text = call(*STROKE, *arguments)
    assert code == 2
    assert says in text.replace("\n", " ")
