"""Quick dataclasses behave as Python's: every case is done with both, and compared."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tauloop
from tauloop.common.records import DEFERRED, MAX_FILLED, dataclass as quick, deferred

FROZEN = {"frozen": True, "slots": True, "kw_only": True}


def both(**options: Any):
    """The same classes by Python's decorator and by ours: a point, one derived from it, and one with methods."""
    return [_classes(decorator, options) for decorator in (dataclasses.dataclass, quick)]


def _classes(decorator: Any, options: dict[str, Any]) -> tuple[type, type, type]:
    @decorator(**options)
    class Point:
        """A point."""

        x: float
        y: float = 2.0
        count: ClassVar[int] = 0

    @decorator(**options)
    class Named(Point):
        """A point with a name."""

        name: str = "origin"
        notes: list[str] = field(default_factory=list, repr=False, compare=False)
        length: float = field(init=False, default=0.0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", (self.x**2 + self.y**2) ** 0.5)

    @decorator(**options)
    class Own:
        """A class that has methods of its own."""

        x: int = 0

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

    return Point, Named, Own


def same(tell: Any, **options: Any) -> Any:
    """What both tell, which must be the same."""
    expected, result = (tell(*classes) for classes in both(**options))
    assert result == expected
    return result


OPTIONS = [
    FROZEN,
    {},
    {"frozen": True},
    {"slots": True},
    {**FROZEN, "eq": False},
    {"frozen": True, "repr": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_hold_and_show_what_pythons_do(options):
    def tell(point, named, own):
        made = named(x=3.0, y=4.0, name="a")
        shown = repr(made) if options.get("repr", True) else type(made).__repr__ is object.__repr__
        return (
            shown,
            dataclasses.asdict(made),
            repr(own()),
            made.notes,
            dataclasses.replace(made, x=0.0).length,
        )

    assert same(tell, **options)[4] == 4.0


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_comparisons_and_hashes_are_pythons(options):
    def tell(point, named, own):
        single, other, third = named(x=1.0, notes=["a"]), named(x=1.0), named(x=2.0)
        hashes = (
            point.__hash__ is None
            or (point.__hash__ is object.__hash__)
            or hash(single) == hash(other)
        )
        return (
            single == other,
            single == third,
            single != point(x=1.0),
            own() == 7,
            hashes,
            own.__hash__ is None,
        )

    same(tell, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_arguments_and_their_faults_are_pythons(options):
    def tell(point, named, own):
        faults = []
        for arguments in ({}, {"x": 1, "length": 2}, {"z": 1}):
            with pytest.raises(TypeError) as fault:
                named(**arguments)
            faults.append(str(fault.value).rpartition(".")[2])
        shown = [
            [(p.name, p.kind, p.default) for p in inspect.signature(made).parameters.values()]
            for made in (named, own)
        ]
        return (
            faults,
            [[item[:2] for item in row] for row in shown],
            shown[0][1],
            own.__init__.__annotations__["x"],
        )

    same(tell, **options)


@pytest.mark.parametrize(
    ("positional", "arguments"),
    [
        ((), {"x": 1.0, "z": 1}),
        ((), {"y": 1.0}),
        ((1.0,), {"x": 1.0}),
        ((1.0, 2.0, "a", [], 5), {}),
        ((1.0,), {"y": 2.0, "length": 3.0}),
    ],
    ids=str,
)
def test_a_class_without_objects_refuses_wrong_arguments_as_pythons(positional, arguments):
    def tell(point, named, own):
        with pytest.raises(TypeError) as fault:
            named(*positional, **arguments)
        return str(fault.value).rpartition(".")[2]

    same(tell)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_first_and_later_objects_are_filled_as_pythons(options):
    def tell(point, named, own):
        filled = []
        for i in range(2 * MAX_FILLED):
            made = named(x=i, y=4.0) if "kw_only" in options else named(i, 4.0)
            filled.append((dataclasses.astuple(made), dataclasses.astuple(point(x=i))))
        return filled

    same(tell, **options)


def test_objects_are_filled_before_the_class_is_compiled():
    @quick(**FROZEN)
    class Point:
        """A point."""

        x: float
        names: list[str] = field(default_factory=list)
        instance: int = 0

    made = [Point(x=i, instance=i) for i in range(MAX_FILLED)]
    placeholder = vars(Point)["__init__"]
    assert not inspect.isfunction(placeholder)
    made += [Point(x=i, instance=i) for i in range(3)]
    assert inspect.isfunction(vars(Point)["__init__"])
    assert len({id(point.names) for point in made}) == len(made)
    assert made[:3] == made[-3:]


def test_fields_of_a_frozen_object_are_kept():
    def tell(point, named, own):
        made = named(x=1.0)
        for change in (
            lambda: setattr(made, "x", 2),
            lambda: delattr(made, "y"),
            lambda: setattr(made, "z", 2),
        ):
            with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
                change()
        return made.x, made.y

    same(tell, **FROZEN)


def test_a_class_of_fields_and_slots_has_no_room_for_more():
    def tell(point, named, own):
        return hasattr(named(x=1.0), "__dict__"), named.__slots__, named.__match_args__

    same(tell, **FROZEN)
    same(tell, slots=True)


@quick(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is copied and sent to another process."""

    x: int
    y: tuple[int, ...] = ()


@pytest.mark.parametrize("fields", [("inner",), ("inner", "second")])
def test_an_object_inside_others_is_asked_once_for_its_hash_and_its_equal(fields):
    asked = []

    class Counted:
        def __hash__(self) -> int:
            asked.append("hash")
            return 1

        def __eq__(self, other: object) -> bool:
            asked.append("equal")
            return True

    kind = quick(frozen=True)(
        type("Nested", (), {"__annotations__": dict.fromkeys(fields, object)})
    )
    single, other = Counted(), Counted()
    for _ in range(12):
        single, other = (kind(*[part, 0][: len(fields)]) for part in (single, other))
    assert hash(single) == hash(other)
    assert single == other
    assert asked == ["hash", "hash", "equal"]


def test_objects_are_copied_and_sent():
    made = Kept(x=1, y=(2, 3))
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)


def test_pythons_dataclasses_derive_from_quick_ones_and_are_frozen_alike():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Derived(Kept):
        z: int

    assert Derived(x=1, z=2) == Derived(x=1, z=2)
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        dataclasses.dataclass(type("Open", (Kept,), {}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived(x=1, z=2).x = 3  # type: ignore[misc]


def test_a_plain_class_derives_from_a_quick_one():
    class Named(Kept):
        def __init__(self, name):
            super().__init__(x=1)
            self.name = name

    assert (Named("a").name, Named("a").x) == ("a", 1)


@quick(frozen=True, slots=True, kw_only=True)
class Measured:
    """A record with a value that is computed when it is read."""

    length: float
    square: float = field(metadata=DEFERRED)


@quick(frozen=True, slots=True, kw_only=True)
class MeasuredTwice(Measured):
    """A record that inherits a deferred field and adds one."""

    cube: float = field(metadata=DEFERRED)


class Counter:
    """A computation that counts its calls."""

    def __init__(self, value: float) -> None:
        self.value, self.calls = value, 0

    def __call__(self) -> float:
        self.calls += 1
        return self.value


def test_a_deferred_value_is_computed_once_when_it_is_read():
    square, cube = Counter(4.0), Counter(8.0)
    made = MeasuredTwice(length=2.0, square=deferred(square), cube=deferred(cube))
    assert made.length == 2.0
    assert (square.calls, cube.calls) == (0, 0)
    assert (made.square, made.square) == (4.0, 4.0)
    assert (square.calls, cube.calls) == (1, 0)
    assert made.cube == 8.0
    assert Measured(length=2.0, square=4.0).square == 4.0


READINGS = {
    "pickle": lambda record: pickle.loads(pickle.dumps(record)),
    "deep copy": copy.deepcopy,
    "copy": copy.copy,
    "replace": dataclasses.replace,
    "dictionary": lambda record: Measured(**dataclasses.asdict(record)),
    "hash": lambda record: {record: record}[Measured(length=2.0, square=4.0)],
    "itself": lambda record: record,
}


@pytest.mark.parametrize("reading", READINGS)
def test_a_deferred_value_is_never_seen_as_a_placeholder(reading):
    square = Counter(4.0)
    eager = Measured(length=2.0, square=4.0)
    made = READINGS[reading](Measured(length=2.0, square=deferred(square)))
    assert made == eager
    assert repr(made) == repr(eager)
    assert square.calls == 1


def test_a_deferred_value_that_fails_is_computed_again_at_the_next_reading():
    values = iter([0.0, 2.0])
    made = Measured(length=2.0, square=deferred(lambda: 1.0 / next(values)))
    with pytest.raises(ZeroDivisionError):
        _ = made.square
    assert made.square == 0.5


def test_a_deferred_field_is_frozen_and_needs_slots():
    made = Measured(length=2.0, square=deferred(Counter(4.0)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.square = 5.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.square
    with pytest.raises(TypeError, match=r"Open\.square: a deferred field needs a class with slots"):
        quick(frozen=True)(
            type(
                "Open",
                (),
                {"__annotations__": {"square": float}, "square": field(metadata=DEFERRED)},
            )
        )


def test_all_classes_of_the_package_are_quick():
    slow = [
        path.name
        for path in Path(tauloop.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if "dataclass" in [alias.name for alias in node.names]
    ]
    assert slow == ["records.py", "records.py"]
