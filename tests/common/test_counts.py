"""Numbers with their nouns and verbs in messages."""

import numpy as np
import pytest

from tauloop.common.counts import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "pose", "1 pose"),
        (0, "pose", "0 poses"),
        (3, "real solution", "3 real solutions"),
        (1, "library", "1 library"),
        (2, "library", "2 libraries"),
        (2, "delay", "2 delays"),
        (2, "box", "2 boxes"),
        (2, "branch", "2 branches"),
        (2, "loss", "2 losses"),
        (1, "degree of freedom", "1 degree of freedom"),
        (2, "degree of freedom", "2 degrees of freedom"),
        (np.int64(1), "row", "1 row"),
        (np.int64(4), "row", "4 rows"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


@pytest.mark.parametrize(
    ("verb", "singular"),
    [("are", "is"), ("have", "has"), ("do", "does"), ("were", "was"), ("drive", "drives")],
)
def test_a_verb_agrees_with_its_number(verb: str, singular: str) -> None:
    assert counted(1, "motor", verb) == f"1 motor {singular}"
    assert counted(2, "motor", verb) == f"2 motors {verb}"
