"""Words of other programs in machine files: each is rejected with the word that is meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tauloop as tl
from tauloop.mechanism.description.cursor import Choice, Either, Kind, ListOf, MapOf, Shape
from tauloop.mechanism.description.grammar import MACHINE
from tauloop.mechanism.description.peer_words import PEER_WORDS

CRANK = """format: tauloop-machine/1
name: crank
provenance: {status: chosen, source: a test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  bar: {mass: 2 kg, center: [0.3 m, 0, 0]}
joints:
  pin: {type: revolute, axis: z, parent: {on: base, at: [1 m, 0, 0]}, child: bar, reference: 60 deg}
actuators:
  motor: {on: pin, ratio: 50}
platform: {body: bar, independent: [pin]}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "remedy"),
    [
        ("type: revolute", "type: hinge", "did you mean revolute?"),
        ("type: revolute", "type: slider", "did you mean prismatic?"),
        ("on: base", "on: world", "did you mean base?"),
        ("on: base", "on: Base", "did you mean base?"),
        ("at: [1 m", "origin: [1 m", "did you mean at?"),
        ("at: [1 m, 0, 0]", "rpy: [0, 0, 0]", "did you mean turn: [{z: ...}, {y: ...}, {x: ...}]?"),
        ("reference: 60 deg", "damping: 1 N m s/rad", "did you mean friction: {viscous: ...}?"),
        ("on: pin", "joint: pin", "did you mean on?"),
        ("ratio: 50", "gear: 50", "did you mean ratio?"),
        ("ratio: 50", "ratio: '1:50'", "write a ratio as a quotient, such as 1 / 50"),
        ("60 deg", "60°", "write deg, as in 60 deg"),
        ("axis: z", "axis: 0 0 1", "; a vector is a list, [0, 0, 1]"),
        ("[pin]", "pin", "write a list, such as [pin]"),
        ("[0, -9.81 m/s^2, 0]", "9.81", "such as `gravity: [0, 0, -9.81 m/s^2]`"),
        ("gravity: [0, -9.81 m/s^2, 0]\n", "", "such as `gravity: [0, 0, -9.81 m/s^2]`"),
        ("{status: chosen, source: a test}", "chosen", "such as `provenance: {status: chosen, "),
        ("format: tauloop-machine/1\n", "", "add format: tauloop-machine/1"),
    ],
)
def test_a_word_of_another_program_is_rejected_with_the_word_that_is_meant(
    right: str, wrong: str, remedy: str
) -> None:
    assert CRANK.count(right) == 1
    with pytest.raises(tl.DescriptionError) as caught:
        tl.loads(CRANK.replace(right, wrong))
    assert any(remedy in problem.remedy for problem in caught.value.problems)


def words(kind: Kind) -> Iterator[str]:
    """Yield the keys and choices of a grammar."""
    if isinstance(kind, Choice):
        yield from kind.options
    for alternative in kind.kinds if isinstance(kind, Either) else ():
        yield from words(alternative)
    if isinstance(kind, ListOf | MapOf):
        yield from words(kind.item)
    for field in kind.fields if isinstance(kind, Shape) else ():
        yield field.name
        yield from words(field.kind)


def test_the_words_that_are_meant_exist() -> None:
    known = {*words(MACHINE), "base"}
    for word, names in PEER_WORDS.items():
        assert word == word.lower()
        assert {name.partition(":")[0] for name in names} <= known


def test_the_machine_without_a_mistake_is_right() -> None:
    assert tl.check(tl.loads(CRANK)).status == "ok"
