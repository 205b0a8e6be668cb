"""The operation counts of docs/formulations.md are those of the command."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from page_tables import page_table

import tauloop as tl

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "formulations.md").read_text(
    encoding="utf-8"
)
FORMULATIONS = ("newton-euler", "generalized-momentum", "lagrange", "hamilton")
#: Rows of the table of velocity matrices: the document's word for a part, and the count's.
PARTS = {
    "mobile platform": "platform",
    "six actuators": "bodies",
    "one translating link": "one rod's translation",
    "one rotating link": "one rod's rotation",
    "all, rows added up (six links)": "all, added up",
    "all, shared parts once": "all",
}
METHODS = {
    "Lagrange, on the tree": "lagrange",
    "Lagrange, on the platform": "lagrange on the platform",
    "generalized momentum": "generalized-momentum",
}
pytestmark = pytest.mark.nightly


@cache
def counts(name: str) -> dict[tuple[str, str, str, str], tuple[int, str]]:
    """Total, and additions, multiplications and divisions, by quantity, formulation, frame and part."""
    return {
        (cost.quantity, cost.formulation, cost.frame, cost.part): (
            cost.total,
            " / ".join(
                str(cost.once[kind]) for kind in ("additions", "multiplications", "divisions")
            ),
        )
        for cost in tl.count_operations(tl.load(name)).costs
    }


@pytest.mark.parametrize("name", ["delta", "nuwar", "rcid"])
def test_whole_inverse_dynamics(name: str) -> None:
    cells = [
        counts(name)["inverse dynamics", formulation, "", "all"][0] for formulation in FORMULATIONS
    ]
    assert f"| {name} | {' | '.join(map(str, cells))} |" in TEXT
    assert (
        f"{counts(name)['inverse dynamics', 'hamilton, sampled', '', 'all'][0]} on {name}"
        in " ".join(TEXT.replace("operations on", "on").split())
    )


def test_velocity_matrices_of_rcid() -> None:
    word, checked = "", 0
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or cells[1] not in METHODS:
            continue
        word = cells[0] or word
        for cell, frame in zip(cells[2:4], ("base frame", "Euler angles"), strict=True):
            if cell:
                assert (word, frame, cell) == (
                    word,
                    frame,
                    counts("rcid")["velocity matrix", METHODS[cells[1]], frame, PARTS[word]][1],
                )
                checked += 1
    assert checked == 6 * 5


def test_shares_of_momentum() -> None:
    """Totals of generalized momentum over those of Lagrange's way, from the counts of the table before."""
    table = page_table("formulations.md", "| momentum by Lagrange, totals |")
    for name, *cells, _ in table.rows:
        way, part = name.split(", ", 1)
        part = (
            "all, rows added up (six links)"
            if part.startswith("rows added up")
            else "all, shared parts once"
        )
        for cell, frame in zip(cells, ("base frame", "Euler angles"), strict=True):
            if cell:
                momentum, lagrange = (
                    counts("rcid")["velocity matrix", METHODS[method], frame, PARTS[part]][0]
                    for method in ("generalized momentum", f"Lagrange, {way}")
                )
                assert cell == f"{momentum / lagrange:.2f}"
