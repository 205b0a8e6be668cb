"""``tauloop show --blocks``: linear blocks with their sizes and how each is solved."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tauloop.cli.app import app

#: Blocks of the inverse dynamics' forces by size: the design's, a hexapod's rod forces together and six divisions, a
#: Delta's three and three. The Delta's motors are read off last, with constant factors.
FORCES = {"hexapod": {6: 1, 1: 6}, "delta": {3: 1, 1: 3}}


def linear_blocks(name: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["show", name, "--blocks", "--json"])
    assert result.exit_code == 0, result.output
    return list(json.loads(result.stdout)["linear_blocks"])


@pytest.mark.parametrize("name", FORCES)
def test_forces_fall_apart_as_designed(name: str) -> None:
    rows = [b for b in linear_blocks(name) if (b["function"], b["for"]) == ("inverse dynamics", "actuator forces")]
    sizes: dict[object, object] = {}
    for block in rows:
        sizes[block["size"]] = int(str(sizes.get(block["size"], 0))) + int(str(block["count"]))
        assert block["method"] in (("elimination",) if block["size"] != 1 else ("division", "constant"))
    assert sizes == FORCES[name]


def test_the_text_lists_them() -> None:
    result = CliRunner().invoke(app, ["show", "delta", "--blocks"], env={"COLUMNS": "120"})
    for word in ("Linear blocks", "actuator forces", "L D L^T", "division", "accelerations"):
        assert word in result.output


def test_without_the_option_nothing_is_built_for_them() -> None:
    result = CliRunner().invoke(app, ["show", "delta", "--json"])
    assert "linear_blocks" not in json.loads(result.stdout)
