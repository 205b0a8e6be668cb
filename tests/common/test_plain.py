"""Plain data of dataclasses: what the fields state, properties, and what has no plain form."""

from __future__ import annotations

import enum
import json
from dataclasses import field
from pathlib import Path

import numpy as np
import pytest

from tauloop.common.names.deprecated import JSON_KEYS
from tauloop.common.plain import (
    OMITTED,
    PlainData,
    in_json,
    json_keys,
    none_if_empty,
    plain,
    records,
)
from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.common.result import Diagnostic, Result, Status, diagnostic, provenance


class Color(enum.Enum):
    """An enumeration."""

    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(PlainData):
    """An object within another."""

    name: str
    size: tuple[float, float] = (1.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(PlainData):
    """Fields of all kinds."""

    json_format = "whole/1"
    time: float = field(metadata=json_keys("time_s"))
    part: Part | None = field(metadata=json_keys(part_name="name", part_size="size"))
    inner: Part | None = field(default=None, metadata=json_keys(flat=True))
    notes: tuple[str, ...] = field(
        default=(), metadata=json_keys(optional=True, summary=none_if_empty)
    )
    gap: float = field(default=np.inf, metadata=json_keys(nullable=True))
    samples: np.ndarray = field(
        default_factory=lambda: np.arange(6.0), metadata=json_keys("largest", summary=np.max)
    )
    secret: object = field(default_factory=object, metadata=OMITTED)
    later: np.ndarray = field(
        default_factory=lambda: deferred(lambda: np.array([1.0, np.nan])),
        metadata=DEFERRED | json_keys(nullable=True),
    )

    @property
    @in_json("half_s")
    def half(self) -> float:
        """Half the time."""
        return 0.5 * self.time

    @property
    def twice(self) -> float:
        """Not in JSON."""
        return 2.0 * self.time


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Whole):
    """A derived class has the keys of its base, and overrides their values."""

    colour: Color = Color.RED
    path: Path = Path("folder")

    @property
    def half(self) -> float:
        """Another half."""
        return 0.25 * self.time


def test_each_field_is_written_as_its_metadata_states():
    data = Whole(time=2.0, part=Part(name="rod"), inner=Part(name="tool", size=(3.0, 4.0)))
    assert data.as_dict() == {
        "format": "whole/1",
        "time_s": 2.0,
        "half_s": 1.0,
        "part_name": "rod",
        "part_size": [1.0, 2.0],
        "name": "tool",
        "size": [3.0, 4.0],
        "gap": None,
        "largest": 5.0,
        "later": [1.0, None],
    }
    assert json.loads(json.dumps(data.as_dict(), allow_nan=False)) == data.as_dict()


def test_parts_of_nothing_are_null_and_optional_keys_are_left_out():
    data = Whole(time=2.0, part=None).as_dict()
    assert (data["part_name"], data["part_size"]) == (None, None)
    assert "name" not in data
    assert "notes" not in data
    assert Whole(time=2.0, part=None, notes=("slow",)).as_dict()["notes"] == ["slow"]


def test_a_derived_class_adds_its_own_keys():
    data = Derived(time=2.0, part=None).as_dict()
    assert (data["half_s"], data["colour"], data["path"]) == (0.5, "red", "folder")


def test_keys_of_the_object_win_over_flat_ones():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Outer(PlainData):
        name: str
        inner: Part = field(metadata=json_keys(flat=True))

    data = Outer(name="mine", inner=Part(name="other")).as_dict()
    assert data == {"name": "mine", "size": [1.0, 2.0]}


@pytest.mark.parametrize("value", [np.nan, np.array([np.inf]), {"a": [np.nan]}, object()])
def test_what_has_no_plain_form_is_refused(value: object):
    with pytest.raises(
        ValueError, match=r"a result contains (nan|inf|-inf)|no plain form of object"
    ):
        plain(value)


def test_sets_arrays_and_records():
    assert plain({3, 1, 2}) == [1, 2, 3]
    assert plain({1: np.float32(0.5), "b": np.bool_(True)}) == {"1": 0.5, "b": True}
    assert records(name="ab", value=np.arange(2)) == [
        {"name": "a", "value": 0},
        {"name": "b", "value": 1},
    ]
    with pytest.raises(ValueError, match="shorter"):
        records(name="ab", value=[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLog(PlainData):
    """A log with its name under the key "log"."""

    name: str = field(metadata=json_keys("log"))
    log: object = field(default=None, metadata=OMITTED)


def test_a_key_may_be_the_name_of_another_field():
    assert NamedLog(name="run1.csv").as_dict() == {"log": "run1.csv"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Length(Result):
    """A result with one number."""

    length: float = field(metadata=json_keys("length_m"))


@pytest.mark.parametrize(
    ("value", "limits", "is_good"),
    [
        (1, {"at_most": 1}, True),
        (1.1, {"at_most": 1}, False),
        (np.float64(0.9), {"at_least": 1.0}, False),
        (2.0, {"at_least": 1.0, "at_most": 3.0}, True),
        (None, {"at_most": 1.0}, True),
        (5.0, {}, True),
    ],
)
def test_a_result_states_its_diagnostics_with_limits_and_advice(value, limits, is_good):
    made = diagnostic("gap", value, **limits, unit="m", advice="close it")
    assert made.is_good == is_good
    assert made == Diagnostic(
        name="gap",
        value=value,
        unit="m",
        lower=limits.get("at_least"),
        upper=limits.get("at_most"),
        advice="close it",
    )
    assert all(item is None or type(item) is float for item in (made.value, made.lower, made.upper))
    result = Length(diagnostics=(made,), provenance=provenance(options={}), length=2.0)
    assert result.status is (Status.OK if is_good else Status.DOUBTFUL)
    data = result.as_dict()
    assert set(data) == {"status", "advice", "diagnostics", "provenance", "length_m"}
    assert (data["status"], data["length_m"]) == (result.status.value, 2.0)
    assert data["advice"] == ([] if is_good else [str(made)])
    assert data["diagnostics"] == [plain(made)]
    assert not JSON_KEYS.keys() & data.keys()
