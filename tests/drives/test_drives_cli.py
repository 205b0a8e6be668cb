"""``tauloop drive``: text, JSON, figure, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.app import app
from tauloop.drives import load_drive
from tauloop.report.drive_figure import drive_figure


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["drive", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_text_cycle_and_figure(tmp_path: Path) -> None:
    picture = tmp_path / "step.png"
    text = run("single_motor_axis", "--duration", 30, "--cycle", "--beside", "dual_motor_axis", "--figure", picture)
    for word in ("rise time", "energy", "simulated", "describing function", "events"):
        assert word in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_figure_has_the_units_of_its_line() -> None:
    step = tl.drive(load_drive("dual_motor_axis"), tl.DriveOptions(duration=0.2))
    labels = [axes.get_ylabel().replace("\n", " ") for axes in drive_figure(step).axes]
    assert labels == ["position [mm]", "error, magnified [mm]", "torque [N m]", "deflection [mm]"]


def test_divergence_is_said_and_fails() -> None:
    assert "diverged at" in run("dual_motor_axis", "--set", "ti=0.001", code=1)
    answer = json.loads(run("dual_motor_axis", "--set", "ti=0.001", "--json", code=1))
    assert answer["criteria"]["outcome"] == "diverged"


def test_a_second_line_needs_a_figure() -> None:
    answer = json.loads(run("single_motor_axis", "--beside", "dual_motor_axis", "--json", code=2))
    assert answer["problems"][0]["where"] == "--beside"


@pytest.mark.parametrize("text", ["gapp=1", "gap", "gap=wide", "gap=-1", "gap=0"])
def test_bad_input(text: str) -> None:
    answer = json.loads(run("dual_motor_axis", "--set", text, "--json", code=2))
    assert answer["status"] == "error"
    assert all(problem["remedy"] for problem in answer["problems"])
