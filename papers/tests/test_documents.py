"""The tables of docs/reproductions hold what the commands find: whole experiments, so by night."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tauloop_papers import EXPERIMENTS

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reproductions"
#: Page of every experiment.
PAGE = {
    "gantry-tau-calibration": "calibration",
    "gantry-tau": "two-runs",
    "nuwar": "nuwar",
    "rcid": "rcid",
    "spidermill": "spidermill",
}
#: Row of the page (beginning of its first cell), column or columns, and the beginning of the comparison that it quotes.
QUOTED: dict[str, list[tuple[str, int | slice, str]]] = {
    "gantry-tau-calibration": [
        ("mean absolute position error, nominal geometry", 2, "mean absolute position error"),
        ("the same, 21 parameters of eq. 1", 2, "the same after calibration of 21 parameters"),
        ("part errors at which that is", 2, "size of part errors"),
        ("the same error, other draws", 2, "the same error with the part errors"),
        ("the same, 51 parameters", 2, "51 parameters, all links"),
        ("hold-out RMS over noise", 2, "the same, RMS per component"),
        ("error against the true positions", 2, "the same against the true positions"),
        ("rank with positions and 1 mm errors", 2, "rank with positions, errors of 1 mm"),
        ("directions with a standard deviation", 2, "directions seen, but"),
    ],
    "gantry-tau": [
        ("Table 1, 3-DOF", 2, "Table 1, 3-DOF"),
        ("Table 1, 5-DOF I ", 2, "Table 1, 5-DOF I:"),
        ("Table 1, 5-DOF II", 2, "Table 1, 5-DOF II"),
        ("Table 1: 3-DOF and 5-DOF I apart", 2, "Table 1: 3-DOF and 5-DOF I apart"),
        ("Table 1, nearest plant, rigid, 3 rows", 2, "Table 1, nearest plant, rigid, by its first 3"),
        (
            "the same with friction and frame, 3 rows",
            2,
            "Table 1, nearest plant, with friction and frame, by its first 3",
        ),
        ("Table 1, identified", 2, "Table 1, identified"),
        ("inertias negative by more", 2, "moments of inertia below zero"),
        ("physically consistent fit: negative", 2, "physically consistent fit, small motions"),
        ("hold-out error with two runs", 2, "hold-out error with two runs"),
    ],
    "nuwar": [
        ("nuwar: the printed ellipse fits", 2, "nuwar: the printed ellipse"),
        ("delta: the same", 2, "delta: the printed ellipse"),
        ("nuwar: largest torque", 2, "nuwar: largest torque (Figure 2)"),
        ("delta: largest torque", 2, "delta: largest torque (Figure 2)"),
        ("largest torque, nuwar over delta", 2, "largest torque, nuwar over delta"),
        ("one way at the motors", 2, "one way at the motors"),
        ("operations that Hamilton saves", 2, "operations of inverse dynamics that Hamilton"),
        *(
            (
                f"{machine}, {reading}",
                slice(1, 5),
                f"{machine}: largest torque by direction of the stroke, forearm mass {reading}",
            )
            for machine in ("nuwar", "delta")
            for reading in ("per pair", "per rod")
        ),
    ],
    "rcid": [
        ("stroke: position in the sphere", 2, "stroke of the actuators: position in the sphere, turned"),
        ("stroke: each coordinate", 2, "stroke of the actuators: each coordinate"),
        ("stroke: the sphere, all three", 2, "stroke of the actuators: position in the sphere, each"),
        ("operations of generalized momentum", 2, "operations of generalized momentum"),
        ("impedance control: force on", 2, "impedance control: force on"),
        ("force control: force on", 2, "force control: force on"),
    ],
    "spidermill": [
        ("identification, left spindle", 2, "identification trajectory, left"),
        ("identification, right spindle", 2, "identification trajectory, right"),
        ("verification, left spindle", 2, "verification trajectory, left"),
        ("verification, right spindle", 2, "verification trajectory, right"),
        ("m1 d_c1 + d1", 4, "m1 d_c1 + d1"),
        ("m1 d_c1² + I_c1", 4, "m1 d_c1^2 + d1^2"),
        ("m3 d_c3 + d3", 4, "m3 d_c3 + 1/2"),
        ("m3 d_c3² + I_c3", 4, "m3 d_c3^2 + 1/2"),
        ("m2, kg", 3, "m2, with"),
        ("d_c3, m", 3, "d_c3, with"),
        ("I_c1, kg m²", 3, "I_c1, with"),
        ("I_c3, kg m²", 3, "I_c3, with"),
        ("m4, kg", 4, "m4 without"),
    ],
}
#: An optimised motion may end elsewhere on another computer or version, by this share of what follows from it.
DRIFT = {"spidermill": 0.05}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def quoted_in(cells: list[str], columns: int | slice) -> str:
    return cells[columns] if isinstance(columns, int) else ", ".join(cells[columns])


def numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def agree(quoted: str, text: str, drift: float = 0.0) -> bool:
    """Whether the document's first numbers are those that were found, in its own digits, but for a share of them."""
    pairs = list(zip(numbers(quoted), numbers(text), strict=False))
    return bool(pairs) and all(
        abs(float(ours) - float(theirs)) <= 0.501 * 10.0 ** -len(theirs.partition(".")[2]) + drift * float(theirs)
        for theirs, ours in pairs
    )


def rows(name: str) -> list[list[str]]:
    """Cells of every row of an experiment's page."""
    lines = (PAGES / f"{PAGE[name]}.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("|")]


def test_every_page_has_the_rows_that_are_compared_once() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(PAGE.values())
    for name, quoted in QUOTED.items():
        for beginning, column, _ in quoted:
            (cells,) = [row for row in rows(name) if f"{row[0]} ".startswith(beginning)]
            assert numbers(quoted_in(cells, column)), beginning


def test_rounded_figures_agree_and_others_do_not() -> None:
    assert agree("2.7, 1.8 N", "2.72, 1.80; 19.84")
    assert agree("79.4 µm", "79.4")
    assert not agree("79.4 µm", "79.6")
    assert agree("3.80 to 0.522 %", "3.82 -> 0.512", 0.05)
    assert not agree("3.80 to 0.522 %", "3.82 -> 0.48", 0.05)
    assert not agree("none", "1")


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUOTED)
def test_figures_of_the_document_are_those_of_the_command(name: str) -> None:
    motion: Any = EXPERIMENTS[name].run()
    wrong = []
    for beginning, column, quantity in QUOTED[name]:
        (cells,) = [row for row in rows(name) if f"{row[0]} ".startswith(beginning)]
        ours = next(comparison.ours for comparison in motion.comparisons if comparison.quantity.startswith(quantity))
        quoted = quoted_in(cells, column)
        if not agree(quoted, ours, DRIFT.get(name, 0.0)):
            wrong.append((beginning, quoted, ours))
    assert json.dumps(wrong) == "[]"
