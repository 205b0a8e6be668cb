"""The command ``tauloop control``: its figures beside the library's, what it writes, what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tauloop import Model, load
from tauloop.cli.app import app
from tauloop.logs import read_log, samples
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation.controllers.laws import CONTROLLERS, FeedForward, Sampling
from tauloop.simulation.controllers.run import follow

STROKE = ("nuwar", "--to", "z=-0.55", "--time", "0.05")


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
    found = follow(made, FeedForward(bandwidth=40 * np.pi), sampling)
    run = document["runs"]["feed-forward"]
    assert list(document["runs"]) == ["feed-forward"]
    assert run["peak_error_m"] == pytest.approx(found.peak_error)
    assert run["rms_error_m"] == pytest.approx(found.rms_error)
    assert run["peak_force"] == pytest.approx(np.abs(found.force).max(axis=0))
    assert samples(read_log(out), "position") == pytest.approx(found.position, abs=1e-9)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_all_controllers_stand_in_one_table_and_the_model_is_worth_its_while():
    code, text = call(*STROKE, "--space", "platform", "--json")
    assert code == 0
    runs = json.loads(text)["runs"]
    assert list(runs) == list(CONTROLLERS)
    assert runs["pd"]["peak_error_m"] > 5 * runs["computed-torque"]["peak_error_m"]
    code, text = call(*STROKE, "--space", "platform")
    assert code == 0
    assert all(name in text for name in CONTROLLERS)
    assert "[N m]" in text


def test_what_the_controller_does_not_know_costs():
    mass = load("nuwar").parameters["plate_mass"].value
    options = (*STROKE, "--controller", "computed-torque", "--json")
    known, unknown = (
        json.loads(call(*options, *more)[1])["runs"]["computed-torque"]["peak_error_m"]
        for more in ((), ("--plant", f"plate_mass={mass + 0.1}"))
    )
    assert unknown > 2 * known


def test_an_implicit_integrator_can_be_asked_for():
    options = (*STROKE, "--controller", "computed-torque", "--json")
    explicit, implicit = (
        json.loads(call(*options, "--method", name)[1])["runs"]["computed-torque"] for name in ("rk4", "implicit")
    )
    assert implicit["peak_error_m"] == pytest.approx(explicit["peak_error_m"], rel=1e-3)


def test_an_angle_has_no_distance():
    code, text = call("pendulum_arm", "--to", "waist=0.2", "--time", "0.1", "--controller", "pd", "--json")
    assert code == 0
    run = json.loads(text)["runs"]["pd"]
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
        (("--rate", "0"), "must be positive"),
    ],
)
def test_what_makes_no_control_is_refused(arguments, says):
    code, text = call(*STROKE, *arguments)
    assert code == 2
    assert says in text.replace("\n", " ")
