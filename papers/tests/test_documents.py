"""The tables of docs/reproductions hold what the commands find: whole experiments, so by night."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from page_tables import DOCS, agree, lacking, numbers, page_tables

from tauloop_papers import EXPERIMENTS
from tauloop_papers.gantry_tau.other_machines import DESIGNED, costs

PAGES = DOCS / "reproductions"
#: Page of every experiment.
PAGE = {
    "gantry-tau-calibration": "calibration",
    "gantry-tau": "two-runs",
    "nuwar": "nuwar",
    "rcid": "rcid",
    "spidermill": "spidermill",
}
#: Row of the page (beginning of its first cell), column or columns, and beginnings of the
#: comparisons that it quotes.
QUOTED: dict[str, list[tuple[str, int | slice, str | tuple[str, ...]]]] = {
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
        (
            "Table 1: difference between 3-DOF and 5-DOF I",
            2,
            "Table 1: difference of 3-DOF and 5-DOF I",
        ),
        ("Table 1, identified", 2, "Table 1, identified"),
        ("inertias negative by more", 2, "moments of inertia below zero"),
        ("the same, optimized motions", 2, ("the same, fixed", "the same, moving")),
        ("physically consistent fit: negative", 2, "physically consistent fit, small motions"),
        ("hold-out error with two runs", 2, "hold-out error with two runs"),
        ("small (eq. 2", 1, "determined to 30% of the value by noise alone, small"),
        (
            "optimized, two fixed sets",
            1,
            (
                "determined to 30% of the value by noise alone, fixed",
                "fixed lengths, optimized: standard",
            ),
        ),
        ("optimized, moving", 1, "determined to 30% of the value by noise alone, moving"),
    ],
    "nuwar": [
        ("nuwar: the printed ellipse fits", 2, "nuwar: the printed ellipse"),
        ("delta: the same", 2, "delta: the printed ellipse"),
        ("nuwar: largest torque", 2, "nuwar: largest torque (Figure 2)"),
        ("delta: largest torque", 2, "delta: largest torque (Figure 2)"),
        ("largest torque, nuwar over delta", 2, "largest torque, nuwar over delta"),
        ("one way at the motors", 2, "one way at the motors"),
        ("operations that Hamilton saves", 2, "operations of inverse dynamics that Hamilton"),
    ],
    "rcid": [
        (
            "stroke: position in the sphere",
            2,
            "stroke of the actuators: position in the sphere, turned",
        ),
        ("stroke: each coordinate", 2, "stroke of the actuators: each coordinate"),
        (
            "stroke: the sphere, all three",
            2,
            "stroke of the actuators: position in the sphere, each",
        ),
        ("operations of generalized momentum", 2, "operations of generalized momentum"),
        ("impedance control: force on", 2, "impedance control: force on"),
        ("force control: force on", 2, "force control: force on"),
    ],
    "spidermill": [
        ("identification, left spindle", 2, "identification trajectory, left"),
        ("identification, right spindle", 2, "identification trajectory, right"),
        ("verification, left spindle", 2, "verification trajectory, left"),
        ("verification, right spindle", 2, "verification trajectory, right"),
        *(
            (f"{trajectory}, {side} spindle", 3, f"{trajectory} trajectory, {side} spindle (")
            for trajectory in ("identification", "verification")
            for side in ("left", "right")
        ),
        ("m1 d_c1 + d1", 4, "m1 d_c1 + d1"),
        ("m1 d_c1² + I_c1", 4, "m1 d_c1^2 + d1^2"),
        ("m3 d_c3 + d3", 4, "m3 d_c3 + 1/2"),
        ("m3 d_c3² + I_c3", 4, "m3 d_c3^2 + 1/2"),
        ("m2, kg", slice(3, 5), "m2, with"),
        ("d_c3, m", slice(3, 5), "d_c3, with"),
        ("I_c1, kg m²", 3, "I_c1, with"),
        ("I_c3, kg m²", slice(3, 5), "I_c3, with"),
        ("m4, kg", 4, "m4 without"),
    ],
}
#: A solver of matrix inequalities stops where it may, and another version elsewhere: ratios with
#: two decimals.
SOLVED = 0.016
#: What counts things of the paper, or of this project, and is no figure.
_NAMED = re.compile(
    r"3-4-5|"
    r"(?:Tables?|Figures?|Figs?\.|eqs?\.|[Ss]ections?|seeds?|ISO) \(?\d+(?:\.\d+)*(?:(?:, | and | to )\d+(?:\.\d+)*)*"
)


def quoted_in(cells: tuple[str, ...], columns: int | slice) -> str:
    return cells[columns] if isinstance(columns, int) else ", ".join(cells[columns])


def prose(text: str) -> str:
    """A page's sentences and tables: no code, no addresses, no numbers that are names."""
    text = re.sub(r"^```.*?^```|^#.*?$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`", "", re.sub(r"\]\([^)]*\)", "]", text))
    return _NAMED.sub("", " ".join(text.split()))


def texts(result: Any) -> str:
    """All that the command writes of a result."""
    parts = [
        part
        for item in result.comparisons
        for part in (item.quantity, item.stated, item.ours, item.why)
    ]
    parts += result.choices
    for table in result.printed:
        parts += [table.title, table.why, *table.columns]
        parts += [cell for row in table.rows for cell in (row.name, *row.stated, *row.ours)]
    return "\n".join(parts)


def rows(name: str) -> list[tuple[str, ...]]:
    """Cells of every row of an experiment's page."""
    return [row for table in page_tables(f"reproductions/{PAGE[name]}.md") for row in table.rows]


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


@pytest.fixture(scope="module", params=[*QUOTED])
def done(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """An experiment's name and result."""
    return request.param, EXPERIMENTS[request.param].run()


@pytest.mark.nightly
def test_figures_of_the_document_are_those_of_the_command(done: tuple[str, Any]) -> None:
    name, result = done
    wrong = []
    for beginning, column, quantity in QUOTED.get(name, ()):
        (cells,) = [row for row in rows(name) if f"{row[0]} ".startswith(beginning)]
        beginnings = (quantity,) if isinstance(quantity, str) else quantity
        ours = "; ".join(
            next(item.ours for item in result.comparisons if item.quantity.startswith(q))
            for q in beginnings
        )
        quoted = quoted_in(cells, column)
        if not agree(quoted, ours):
            wrong.append((beginning, quoted, ours))
    assert json.dumps(wrong) == "[]"


@pytest.mark.nightly
def test_every_figure_on_the_page_is_written_by_the_command(done: tuple[str, Any]) -> None:
    """Sentences and remarks too: each number, in its own digits, is among those of the result's words."""
    name, result = done
    page = (PAGES / f"{PAGE[name]}.md").read_text(encoding="utf-8")
    assert lacking(prose(page), texts(result)) == []


@pytest.mark.nightly
def test_the_cost_of_physical_limits_on_other_machines() -> None:
    """The ranges of each fit are those of earlier versions; `gantry_tau/other_machines.py` prints the same."""
    measured = dict(costs())
    assert all(measured[seed].negative for seed in range(1, 13))
    forty = [measured[seed].forty for seed in range(1, 25)]
    sixteen = [measured[seed].sixteen for seed in range(1, 25)]
    ranges = [min(forty), max(forty), min(sixteen), max(sixteen)]
    assert ranges == pytest.approx([0.96, 1.03, 0.99, 1.14], abs=SOLVED)
    designs = np.array([measured[seed].designs for seed in DESIGNED])
    ends = [float(end) for column in designs.T for end in (column.min(), column.max())]
    assert ends == pytest.approx([1.00, 1.01, 1.00, 1.09], abs=SOLVED)
