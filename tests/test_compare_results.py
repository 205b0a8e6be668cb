"""The comparison of two checkouts: names of the older one, and what counts as a difference."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from compare_results import (
    LINES,
    Comparison,
    by_key,
    differences_of_code,
    older_words,
)

from tauloop.cli.app import renew_command_line
from tauloop.cli.commands import PAPER, TOP_LEVEL, CommandEntry, CommandGroup
from tauloop.common.names import deprecated

#: Commands without a result that could be compared: they serve, or describe this computer.
WITHOUT_RESULT = {"env cache", "env doctor", "run plant", "study show"}
#: Commands that version 0.1 did not have.
NEW = {
    "accuracy compliance",
    "accuracy thermal",
    "accuracy tolerances",
    "design certify",
    "design motors",
    "design synthesize",
    "design tolerances",
    "export transmission",
    "log describe",
    "log drive-stiffness",
    "run stream",
    "stiffness",
    "vibration",
}
NEW |= {"accuracy compensate", "accuracy compensation-table", "export compensation"}
DIAGNOSTIC = {"name": "gap", "value": 1e-12, "unit": "m", "lower": None, "upper": 1e-9}


def places(old: object, new: object, tolerance: float = 1e-9) -> list[str]:
    comparison = Comparison(tolerance, deprecated.JSON_KEYS)
    return [difference.place for difference in comparison.differences(old, new)]


def test_each_command_has_a_line() -> None:
    commands = {name for name, entry in TOP_LEVEL.items() if isinstance(entry, CommandEntry)}
    for name, entry in {**TOP_LEVEL, "paper": PAPER}.items():
        if isinstance(entry, CommandGroup):
            commands |= {f"{name} {command}" for command in entry.commands}
    starts = {" ".join(line.words.split()[:count]) for line in LINES for count in (1, 2)}
    assert commands - starts == WITHOUT_RESULT | NEW


@pytest.mark.parametrize("line", [line.words for line in LINES if not line.older])
def test_the_older_words_of_a_line_are_renewed_to_the_line(line: str) -> None:
    words = line.split()
    older = older_words(words, deprecated)
    assert renew_command_line(older)[0] == words


def test_numbers_count_by_the_largest_of_their_list() -> None:
    assert places([1e-17, 1.0], [2e-17, 1.0]) == []
    assert places([1.0, 2.0], [1.0, 2.0 + 1e-8]) == ["[1]"]
    assert places({"x": 1e-14, "y": 1.0}, {"x": 5e-14, "y": 1.0}) == []
    assert places({"mass": 1e-3, "count": 1e3}, {"mass": 1.01e-3, "count": 1e3}) == ["mass"]
    assert places([1e-15], [2e-15]) == []
    assert places([1e-13], [2e-13]) == ["[0]"]
    assert places({"force": 1.0}, {"force": 1.0 + 1e-8}, tolerance=1e-6) == []
    assert places({"a": {"b": [math.nan]}}, {"a": {"b": [1.0]}}) == ["a.b[0]"]
    assert places({"status": "ok"}, {"status": "doubtful"}) == ["status"]
    assert places([1.0], [1.0, 2.0]) == [".length"]
    assert places({"flag": True}, {"flag": 1}) == ["flag"]


def test_keys_that_are_missing_or_new_count_and_renamed_ones_do_not() -> None:
    assert places({"a": 1, "b": 2}, {"b": 2, "c": 3}) == ["a", "c"]
    assert places({"evidence": [DIAGNOSTIC]}, {"diagnostics": [DIAGNOSTIC]}) == []
    assert places({"advice": ["Check it."]}, {"advice": []}) == []


def test_passed_diagnostics_differ_by_rounding_and_failed_ones_do_not() -> None:
    assert places(DIAGNOSTIC, DIAGNOSTIC | {"value": 3e-12}) == []
    assert places(DIAGNOSTIC, DIAGNOSTIC | {"value": 3e-9}) == ["value"]
    assert places(DIAGNOSTIC, DIAGNOSTIC | {"value": 3e-12, "upper": 1e-8}) == ["value", "upper"]


def test_objects_with_names_belong_together_in_any_order() -> None:
    first, second = {"name": "x", "value": 1.0}, {"name": "y", "value": 2.0}
    assert places([first, second], [second, first]) == []
    assert places([first, second], [second, {"name": "z", "value": 1.0}]) == ["[x].name"]
    assert places([first, second], [first]) == ["[y]"]
    groups = by_key(Comparison(1e-9).differences({"a": [1.0, 2.0]}, {"a": [3.0, 4.0]}))
    assert [(key, len(items)) for key, items in groups.items()] == [("a[]", 2)]


def test_c_code_is_compared_without_comments_and_its_numbers_as_numbers(tmp_path: Path) -> None:
    texts = {
        "same": ("x = 1.0; /* version 1 */", "x = 1.0000000000001; /* version 2 */"),
        "other": ("x = 1.0;", "x = 1.001;"),
        "longer": ("x = 1.0;", "x = 1.0 + y;"),
    }
    for name, pair in texts.items():
        for folder, text in zip(("old", "new"), pair, strict=True):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{name}.c").write_text(text)
    differences = differences_of_code(tmp_path / "old", tmp_path / "new", Comparison(1e-9))
    assert [item.place for item in differences] == ["longer.c: words", "other.c: word 2"]
