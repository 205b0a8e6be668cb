"""Keywords of functions that have a class of options: what they make, what they refuse, what `help` shows."""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import pytest

import tauloop as tl
from tauloop.common.keywords import keywords, widened
from tauloop.common.options import Option, Options, listed, option
from tauloop.mechanism.description.units import LENGTH, TIME

Progress = Callable[[int, int], None]
#: The public functions of `tauloop`.
FUNCTIONS = {
    name: getattr(tl, name) for name in tl.__all__ if isinstance(getattr(tl, name), FunctionType)
}


@dataclass(frozen=True, kw_only=True)
class InnerOptions(Options):
    """Options in others.

    Attributes:
        depth: of a hole.
        seed: of its own.
    """

    depth: float = option(1.0, least=0.0, unit=LENGTH)
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class OuterOptions(Options):
    """Options with others in them.

    Attributes:
        duration: of the work.
        names: of workers.
        seed: of random numbers.
        inner: of the hole.
    """

    duration: float | None = option(None, above=0.0, unit=TIME)
    names: tuple[str, ...] = option((), read=listed)
    seed: int = 0
    inner: InnerOptions = field(default_factory=InnerOptions)


@keywords(OuterOptions)
def work(
    machine: object,
    place: str | None = None,
    options: OuterOptions | None = None,
    *,
    progress: Progress | None = None,
) -> tuple[object, str | None, OuterOptions | None]:
    """Return what it was called with."""
    return machine, place, options


def test_keywords_make_options() -> None:
    expected = OuterOptions(duration=0.3, names=("a", "b"), inner=InnerOptions(depth=0.01))
    assert work(1, "here", duration="300 ms", names="a, b", depth="1 cm") == (1, "here", expected)
    assert work(machine=1, names=["a"])[2] == OuterOptions(names=["a"])  # type: ignore[call-arg]
    assert work(1)[2] is None


def test_keywords_replace_fields_of_options() -> None:
    options = OuterOptions(duration=2.0, seed=3, inner=InnerOptions(depth=2.0, seed=4))
    changed = work(1, None, options, duration=1, depth="10 mm")[2]  # type: ignore[call-arg]
    assert changed == OuterOptions(duration=1, seed=3, inner=InnerOptions(depth=0.01, seed=4))
    assert work(1, options=options)[2] is options
    nested = work(1, inner=InnerOptions(seed=7), depth=3.0)[2]  # type: ignore[call-arg]
    assert nested == OuterOptions(inner=InnerOptions(depth=3.0, seed=7))
    # at the place of another argument, as export functions had them
    assert work(1, options, place="there") == (1, "there", options)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("call", "messages"),
    [
        (lambda: work(1, duratoin=2), ["duratoin: is not an argument of work", "did you mean duration"]),
        (lambda: work(1, xyz=2, seed="a"), ["xyz: is not", "see help(work)", "seed: is 'a'"]),
        (lambda: work(), ["machine: is missing from the call of work"]),
        (lambda: work(1, "a", None, 4, 5), ["work: takes 3 positional arguments, but 5 are given"]),
        (lambda: work(1, machine=2), ["machine: is given twice"]),
        (lambda: work(1, 2), ["place: is 2, of type int", "give text"]),
        (lambda: work(1, progress=3), ["progress: is 3, of type int", "give a function"]),
        (lambda: work(1, options=3), ["options: 3 is of type int", "give tl.OuterOptions(...)"]),
        (lambda: work(1, duration="2 m", depth=-1), ["duration: '2 m' is a length", "depth: is -1"]),
        (lambda: work(1, inner=3), ["inner: is 3, of type int"]),
        (lambda: work(1, inner=3, depth=2), ["inner: is 3, of type int"]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_all_at_once(call: Callable[[], object], messages: list[str]):
    with pytest.raises(tl.InputError) as caught:
        call()
    text = str(caught.value)
    assert [message for message in messages if message not in text] == []


def test_the_signature_shows_every_keyword_with_its_default() -> None:
    parameters = inspect.signature(work).parameters
    assert list(parameters) == [
        *("machine", "place", "options", "duration", "names", "seed", "inner", "depth", "progress")
    ]
    assert parameters["depth"].default == 1.0
    assert parameters["depth"].annotation == "float | str"
    assert parameters["duration"].annotation == "float | str | None"
    assert parameters["names"].annotation == "Sequence[str] | str"


@pytest.mark.parametrize(
    ("annotation", "spec", "expected"),
    [
        ("float", Option(), "float"),
        ("float | None", Option(unit=(TIME,)), "float | str | None"),
        ("tuple[float, ...]", Option(unit=(TIME,)), "Sequence[float | str] | str"),
        ("tuple[str, ...]", Option(), "Sequence[str] | str"),
        ("Path | None", Option(), "Path | str | None"),
        ("Mapping[str, float]", Option(unit=(LENGTH,)), "Mapping[str, float | str] | str"),
    ],
)
def test_a_keyword_takes_what_is_read_as_its_field(annotation: str, spec: Option, expected: str):
    spec = option(None, unit=spec.unit).metadata["option"] if spec.unit else spec
    assert widened(annotation, spec) == expected


def test_help_of_every_public_function_shows_its_arguments_and_no_internals() -> None:
    assert len(FUNCTIONS) > 50
    for name, function in FUNCTIONS.items():
        text = pydoc.render_doc(function, renderer=pydoc.plaintext)
        assert not re.search(r"_MISSING_TYPE|<function|<object object| at 0x", text), name
        for kind in getattr(function, "options_classes", ())[:1]:
            shown = inspect.signature(function).parameters
            missing = set(kind.__dataclass_fields__) - set(shown)
            assert missing == set(), name


def test_every_public_function_checks_its_arguments() -> None:
    """`keywords` is on all of them; it alone refuses arguments that do not exist."""
    for name, function in FUNCTIONS.items():
        assert hasattr(function, "options_classes"), name


def calls_of(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("options",)]


def test_nested_options_are_keywords_where_their_names_are_unambiguous() -> None:
    assert {"known", "cutoff", "estimator", "progress"} <= set(calls_of(tl.identify))
    assert {"tolerance", "fixed_step", "duration"} <= set(calls_of(tl.simulate))
    fit = tl.simulate("four_bar", duration="1 ms", tolerance=1e-6)
    assert fit.status is not None


@dataclass(frozen=True)
class _Pair(Options):
    """Options that may be given by their place."""

    first: float
    second: float = 1.0


def test_fields_that_may_be_given_by_their_place_are() -> None:
    assert _Pair(2.0) == _Pair(first=2.0, second=1.0)
    with pytest.raises(tl.InputError, match="_Pair: is given 3 positional values"):
        _Pair(1.0, 2.0, 3.0)  # type: ignore[call-arg]


class Counter:
    """A class with a checked method, as `tauloop.Model` has them."""

    @keywords()
    def add(self, amount: object, *, step: str | int = 1, note: str | None = None) -> object:
        """Return what it was called with."""
        return amount, step, note


def test_calls_like_earlier_ones_are_not_checked_again_and_wrong_ones_still_are():
    counter = Counter()
    for _ in range(2):  # the second call takes the short way
        assert counter.add(3, step="2") == (3, "2", None)
        assert counter.add(amount=3, step=2, note=None) == (3, 2, None)
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: counter.add(3, step=[2]), "step: is [2], of type list"),
        (lambda: counter.add(3, 2), "takes 1 positional arguments"),
        (lambda: counter.add(), "amount: is missing"),  # type: ignore[call-arg]
        (lambda: counter.add(3, amount=4), "amount: is given twice"),  # type: ignore[misc]
        (lambda: counter.add(3, steps=4), "did you mean step"),  # type: ignore[call-arg]
        (lambda: counter.add(3, note=5), "note: is 5, of type int"),  # type: ignore[arg-type]
    ]
    for call, message in wrong:
        for _ in range(2):
            with pytest.raises(tl.InputError, match=re.escape(message)):
                call()


def test_defaults_of_options_are_checked_once_and_other_values_always():
    for _ in range(2):
        assert OuterOptions().inner.depth == 1.0
        assert InnerOptions(depth="20 mm").depth == 0.02
        with pytest.raises(tl.InputError, match="depth"):
            InnerOptions(depth=-1.0)
