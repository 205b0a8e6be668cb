"""The JSON of commands that say what a machine is and can do is that of the functions behind them."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

import tauloop as tl
from tauloop.assembly.entry import ACTUATORS
from tauloop.cli.app import app
from tauloop.result import plain


def run_json(*arguments: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_workspace_by_command_is_that_by_function() -> None:
    """With units on the command line, which are SI in Python."""
    said = ("--plane", "x,y", "--section", "z=-400mm", "--range", "x=-100mm:100mm,y=0:0.1", "--resolution", 0.05)
    options = tl.WorkspaceOptions(
        plane=("x", "y"), section={"z": -0.4}, ranges={"x": (-0.1, 0.1), "y": (0.0, 0.1)}, resolution=0.05
    )
    wanted = tl.workspace(tl.load("delta"), options)
    assert run_json("workspace", "delta", *said) == plain(wanted.as_dict())
    assert wanted.fixed == {"platform.z": -0.4}


def test_a_verification_by_command_is_that_by_function() -> None:
    options = tl.VerifyOptions(states=3, seed=2, wrench=(0.0, 0.0, 5.0, 0.0, 0.0, 0.0))
    wanted = plain(tl.verify(tl.load("delta"), options).as_dict())
    assert run_json("verify", "delta", "--states", 3, "--seed", 2, "--wrench", "fz=5") == wanted


def test_operations_by_command_are_those_by_function() -> None:
    wanted = tl.count_operations(tl.load("five_bar"), tl.CountOptions(entry=ACTUATORS))
    assert run_json("cost", "five_bar", "--entry", "actuators") == plain(wanted.as_dict())
