"""Tables at 80 columns cut no name and no number; what does not fit side by side is a list."""

from __future__ import annotations

import re

import pytest
from command_line import run
from hypothesis import given, settings, strategies as st
from rich.console import Console
from rich.segment import Segment

from tauloop.display.tables import table
from tauloop.mechanism import shipped_machines

WIDTH = 80
#: Commands that print tables, of what every machine has.
EVERY = (
    "show {} --table",
    "show {} --blocks",
    "check {}",
    "jacobian {}",
    "dynamics {}",
    "ik {}",
    "fk {}",
)
SLOW = (
    "model cost {}",
    "model reduce {} --states 3",
    "verify {} --states 3",
    "modes {}",
    "workspace {}",
    "simulate {} --duration 0.01",
)
#: The longest names, the most rows, and the most columns.
LONG = ("show excavator --table", "show spidermill_spatial --blocks", "jacobian hexapod")

words = st.text("abcdefgh_.0123456789", min_size=1, max_size=24)
prose = st.lists(words, min_size=0, max_size=12).map(" ".join)
numbers = st.one_of(st.floats(-1e12, 1e12), st.integers(-9, 9))


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(words, numbers, prose, numbers, words), min_size=1, max_size=4),
    st.integers(1, 2),
)
def test_every_word_and_number_stands_whole_in_a_line_that_fits(rows, repeat):
    heads = ("name", ("value", ".10g"), "what it is", ("other\nvalue", ".3e"), "unit")
    shown = table("", *heads * repeat, rows=[row * repeat for row in rows])
    screen = Console(width=WIDTH, markup=False, highlight=False)
    text = "".join(part.text for part in Segment.filter_control(screen.render(shown)))
    assert max(map(len, lines(text))) <= WIDTH
    printed = text.split()
    for name, value, meaning, other, unit in rows:
        for word in (name, f"{value:.10g}", *meaning.split(), f"{other:.3e}", unit):
            assert printed.count(word) >= repeat


def test_what_is_too_wide_is_a_list():
    shown = table("Wide", *(f"{'x' * 30}{i}" for i in range(4)), rows=[["a", None, "c", "d"]])
    screen = Console(width=WIDTH)
    text = "".join(part.text for part in screen.render(shown))
    assert lines(text)[:3] == ["Wide", f"{'x' * 30}0  a", f"{'x' * 30}2  c"]


def test_rows_of_what_is_too_wide_stand_beside_each_other():
    heads = [f"{'x' * 20}{i}" for i in range(4)]
    shown = table("", *heads, rows=[[f"row {row}"] * 4 for row in range(9)])
    text = "".join(part.text for part in Console(width=WIDTH).render(shown))
    blocks = [
        [line.split()[0] for line in block.split("\n")] for block in text.strip().split("\n\n")
    ]
    assert blocks == [heads, heads]


def test_a_heading_has_the_width_of_the_screen():
    shown = table(
        "A heading that is wider than its table", "name", ("value", ".3g"), rows=[("a", 1.0)]
    )
    text = "".join(part.text for part in Console(width=WIDTH).render(shown))
    assert lines(text)[0] == "A heading that is wider than its table"


def fits(words: str) -> None:
    text = run(*words.split(), code=None, columns=WIDTH).stdout
    assert "…" not in text
    assert [line for line in lines(text) if len(line) > WIDTH] == []
    assert not re.search(r"\[[^\]\s]+, (rad|N m)\]|, rad\b(?!/)|m or rad|N or N m", text)


@pytest.mark.parametrize("words", LONG)
def test_tables_of_machines_fit(words: str):
    fits(words)


@pytest.mark.nightly
@pytest.mark.parametrize("words", [*EVERY, *SLOW])
@pytest.mark.parametrize("machine", shipped_machines())
def test_tables_of_all_machines_and_commands_fit(machine: str, words: str):
    fits(words.format(machine))
