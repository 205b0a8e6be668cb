"""The tables of papers/notes hold what the papers' command finds, every row of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tauloop_papers.notes import NOTES, claims

FOLDER = Path(__file__).resolve().parents[1] / "notes"
#: A local optimum may be a neighbour of it in another version; all other figures are to the digits
#: that are printed.
OPTIMA, NEAR = ("condition number", "deviations"), 0.15
#: What takes over four seconds waits for the night.
BY_DAY = ("dual-motor", "gantry-tau")


def rows(name: str) -> dict[str, str]:
    """The table of a note."""
    lines = (FOLDER / f"{name}.md").read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in lines
        if line.startswith("| ")
    ]
    assert cells[0] == ["figure", "value"]
    return dict(cells[1:])


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in BY_DAY else pytest.mark.nightly) for name in NOTES],
)
def test_a_notes_table_is_what_the_command_finds(name: str) -> None:
    written, claimed = rows(name), {claim.what: claim.figure for claim in claims(name)}
    assert set(written) == set(claimed)
    for what, figure in claimed.items():
        if what.startswith(OPTIMA):
            assert numbers(written[what]) == pytest.approx(numbers(figure), rel=NEAR)
        else:
            assert written[what] == figure


def test_every_note_is_two_pages_at_most() -> None:
    """Five hundred words a page."""
    assert {path.stem for path in FOLDER.glob("*.md")} == set(NOTES)
    assert all(len(path.read_text(encoding="utf-8").split()) < 1000 for path in FOLDER.glob("*.md"))
