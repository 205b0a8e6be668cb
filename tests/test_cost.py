"""Operation counts: what the formulations cost, and bounds that must not be lost again."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tauloop.cli.app import app
from tauloop.equations.formulations import FORMULATIONS

#: Operations of the whole inverse dynamics (kinematics included, numbers baked in); from the project's issue 3.
INVERSE = {"rcid": 820, "nuwar": 420, "delta": 365}
FORWARD = {"rcid": 1550}


def counted(name: str) -> dict[tuple[str, str], dict[str, dict[str, int]]]:
    result = CliRunner().invoke(app, ["cost", name, "--json"])
    assert result.exit_code == 0, result.output
    return {(row["quantity"], row["formulation"]): row for row in json.loads(result.stdout)["costs"]}


@pytest.mark.parametrize("name", INVERSE)
def test_whole_dynamics_take_few_operations(name: str) -> None:
    rows = counted(name)
    assert {formulation for _, formulation in rows} == {formulation.name for formulation in FORMULATIONS}
    inverse = rows["inverse dynamics", "newton-euler"]
    assert 0 < sum(inverse["once"].values()) <= INVERSE[name]
    assert sum(inverse["once"].values()) == min(
        sum(row["once"].values()) for (quantity, _), row in rows.items() if quantity == "inverse dynamics"
    )
    if name in FORWARD:
        assert sum(rows["forward dynamics", "newton-euler"]["once"].values()) <= FORWARD[name]


def test_newton_blocks_are_counted_apart() -> None:
    row = counted("five_bar")["positions", "newton-euler"]
    assert sum(row["each_iteration"].values()) > 0
