"""``tauloop show --blocks``: linear blocks with their sizes and how each is solved."""

from __future__ import annotations

import pytest

import tauloop as tl

#: Blocks of the inverse dynamics' forces by size: the design's, a hexapod's rod forces together and
#: six divisions, a Delta's three and three. The Delta's motors are read off last, with constant
#: factors.
FORCES = {"hexapod": {6: 1, 1: 6}, "delta": {3: 1, 1: 3}}


def linear_blocks(name: str) -> list[dict[str, object]]:
    return list(
        tl.describe(tl.load(name), tl.DescribeOptions(blocks=True)).as_dict()["linear_blocks"]
    )


@pytest.mark.parametrize("name", FORCES)
def test_forces_fall_apart_as_designed(name: str) -> None:
    rows = [
        b
        for b in linear_blocks(name)
        if (b["function"], b["for"]) == ("inverse dynamics", "actuator forces")
    ]
    sizes: dict[object, object] = {}
    for block in rows:
        sizes[block["size"]] = int(str(sizes.get(block["size"], 0))) + int(str(block["count"]))
        assert block["method"] in (
            ("elimination",) if block["size"] != 1 else ("division", "constant")
        )
    assert sizes == FORCES[name]
