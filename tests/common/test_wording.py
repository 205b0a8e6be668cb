"""Wording of messages."""

import pytest

from tauloop.common.wording import counted


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (0, ("sample",), "0 samples"),
        (1, ("sample",), "1 sample"),
        (2, ("missing sample",), "2 missing samples"),
        (1, ("entry", "entries"), "1 entry"),
        (3, ("entry", "entries"), "3 entries"),
    ],
)
def test_nouns_agree_with_their_number(number: int, nouns: tuple[str, ...], text: str) -> None:
    assert counted(number, *nouns) == text
