"""The operation counts of docs/formulations.md are those of the command."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import tauloop as tl

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "formulations.md").read_text(
    encoding="utf-8"
)
FORMULATIONS = ("newton-euler", "generalized-momentum", "lagrange", "hamilton")
pytestmark = pytest.mark.nightly


@cache
def counts(name: str) -> dict[tuple[str, str, str, str], int]:
    """Return total operations by quantity, formulation, frame and part."""
    return {
        (cost.quantity, cost.formulation, cost.frame, cost.part): cost.total
        for cost in tl.count_operations(tl.load(name)).costs
    }


@pytest.mark.parametrize("name", ["delta", "nuwar", "rcid"])
def test_whole_inverse_dynamics(name: str) -> None:
    cells = [
        counts(name)["inverse dynamics", formulation, "", "all"] for formulation in FORMULATIONS
    ]
    assert f"| {name} | {' | '.join(map(str, cells))} |" in TEXT
    assert (
        f"{counts(name)['inverse dynamics', 'hamilton, sampled', '', 'all']} on {name}"
        in " ".join(TEXT.replace("operations on", "on").split())
    )
