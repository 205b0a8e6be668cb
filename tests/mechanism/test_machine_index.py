"""The index of shipped machines, and what machines say of themselves by command and by function."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.app import app
from tauloop.mechanism.index import INDEX, MachineIndex, machine_index, summarised
from tauloop.result import write_json


def run_json(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_index_is_what_the_machine_files_say(request: pytest.FixtureRequest) -> None:
    rows = MachineIndex(machines=tuple(summarised(name, tl.load(name)) for name in tl.shipped_machines()))
    if request.config.getoption("--update-golden"):
        write_json(INDEX, rows.as_dict())
    assert machine_index() == rows
