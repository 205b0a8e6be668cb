"""Conversion of objects to plain data (dict, list, str, int, float, bool, None) for JSON.

By default the keys of a dataclass are the names of its fields. The metadata of a field can change
them (`json_keys`). Properties that are also in JSON are marked by `in_json`.
"""

from __future__ import annotations

import enum
import functools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from tauloop.common.records import dataclass

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Key in the metadata of a field, and attribute of a property's function, with the JSON keys.
_METADATA = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonKey:
    """A JSON key and the path to its value.

    Attributes:
        key: name of the key in JSON.
        path: path of attributes from the object to the value.
        optional: whether the key is omitted if the value is None.
        nullable: whether numbers that are not finite become null; otherwise they are an error.
        flat: whether the keys of the value become keys of the object itself. Keys that the object
            already has take precedence. None adds no keys.
        summary: function whose result replaces the value in JSON; None to use the value itself.
    """

    key: str
    path: tuple[str, ...]
    optional: bool = False
    nullable: bool = False
    flat: bool = False
    summary: Callable[[Any], Any] | None = None

    def value(self, owner: object) -> Any:
        """Return the value; None if an attribute on the path is None."""
        value: Any = owner
        for name in self.path:
            if value is None:
                break
            value = getattr(value, name)
        if self.summary is not None and value is not None:
            return self.summary(value)
        return value


def json_keys(
    key: str = "",
    *,
    optional: bool = False,
    nullable: bool = False,
    flat: bool = False,
    summary: Callable[[Any], Any] | None = None,
    **paths: str,
) -> MappingProxyType[str, Any]:
    """Return metadata of a field that define the keys of its value, or of its attributes, in JSON.

    Args:
        key: key of the value itself; by default the name of the field.
        optional, nullable, flat, summary: see `JsonKey`.
        **paths: paths of attributes of the value, separated by dots, by key. The value itself then
            has no key unless `key` is also given.

    Examples:
        >>> from dataclasses import field
        >>> from tauloop.common.records import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Run(PlainData):
        ...     time: float = field(metadata=json_keys("time_s"))
        ...     start: complex = field(metadata=json_keys(position="real", height="imag"))
        ...     buffer: object = field(default=None, metadata=OMITTED)
        >>> Run(time=2.0, start=1.0 + 3.0j).as_dict()
        {'time_s': 2.0, 'position': 1.0, 'height': 3.0}
    """
    own_path = {key: ""} if key or not paths else {}
    keys = tuple(
        JsonKey(
            key=name,
            path=tuple(filter(None, path.split("."))),
            optional=optional,
            nullable=nullable,
            flat=flat,
            summary=summary,
        )
        for name, path in (own_path | paths).items()
    )
    return MappingProxyType({_METADATA: keys})


#: Metadata of a field that is not in JSON.
OMITTED: MappingProxyType[str, Any] = MappingProxyType({_METADATA: ()})


def in_json(
    key: str = "", *, optional: bool = False, nullable: bool = False, flat: bool = False
) -> Callable[[_Function], _Function]:
    """Return a decorator that adds a property to the JSON of an object.

    Write it below `@property`.

    Args:
        key: key in JSON; by default the name of the property.
        optional, nullable, flat: see `JsonKey`.
    """

    def decorate(function: _Function) -> _Function:
        json_key = JsonKey(key=key, path=(), optional=optional, nullable=nullable, flat=flat)
        setattr(function, _METADATA, json_key)
        return function

    return decorate


class PlainData:
    """Base class of dataclasses that are written as JSON.

    Attributes:
        json_format: name and version of the format, the value of the key ``format``; empty to omit
            this key.
    """

    __slots__ = ()
    json_format: ClassVar[str] = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: the fields, and the properties marked by `in_json`."""
        return _plain_fields(self)


def plain(value: Any, nullable: bool = False) -> Any:
    """Return plain data from results, dataclasses, enumerations and arrays.

    Args:
        value: an object that can be converted.
        nullable: whether numbers that are not finite become None.

    Raises:
        ValueError: a number is not finite, or a type cannot be converted. For a result this is a
            bug in Tauloop, because undefined values of results are None.
    """
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):  # Also float64 of NumPy.
        if math.isfinite(value):
            return float(value)
        if nullable:
            return None
        raise ValueError(f"a result contains {value}")
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item, nullable) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, tuple | list):
        return [plain(item, nullable) for item in value]
    # If NumPy is not imported, the value is not an array.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic | numpy.ndarray):
        return plain(value.tolist(), nullable)
    raise ValueError(f"no plain form of {type(value).__name__}")


def _plain_fields(owner: Any) -> dict[str, Any]:
    """Return the fields and the properties with `in_json` of a dataclass as plain data."""
    json_format = getattr(type(owner), "json_format", "")
    data: dict[str, Any] = {"format": json_format} if json_format else {}
    cls: type = type(owner)
    for json_key in _json_keys_of(cls):
        value = json_key.value(owner)
        if json_key.optional and value is None:
            continue
        if json_key.flat:
            data = ({} if value is None else plain(value)) | data
        else:
            data[json_key.key] = plain(value, json_key.nullable)
    return data


@functools.cache
def _json_keys_of(cls: type) -> tuple[JsonKey, ...]:
    """Return the JSON keys of a class: keys of base classes first, properties before fields."""
    field_by_name = {item.name: item for item in fields(cls)}
    # Sorted by attribute, not by key: a key may be the name of another attribute.
    keys_by_attribute: dict[str, tuple[JsonKey, ...]] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            function = getattr(member, "fget", None)
            json_key = getattr(function, _METADATA, None)
            if json_key:
                keys_by_attribute[name] = (_completed_key(json_key, name),)
        for name in vars(base).get("__annotations__", {}):
            if name not in field_by_name:
                continue
            keys_by_attribute.pop(name, None)
            metadata = field_by_name[name].metadata.get(_METADATA, json_keys()[_METADATA])
            keys_by_attribute[name] = tuple(_completed_key(item, name) for item in metadata)
    # A later key replaces an earlier key of the same name.
    keys = {item.key: item for group in keys_by_attribute.values() for item in group}
    return tuple(keys.values())


def _completed_key(json_key: JsonKey, name: str) -> JsonKey:
    """Return a JSON key whose path begins with a field or property, the default of the key."""
    return replace(json_key, key=json_key.key or name, path=(name, *json_key.path))


def none_if_empty(value: Any) -> Any:
    """Return a text or collection, or None if it is empty. Use it as a `summary` for JSON."""
    return value or None


def records(**columns: Iterable[Any]) -> list[dict[str, Any]]:
    """Return a dictionary for each row of columns of equal length.

    Examples:
        >>> records(name=("x", "y"), value=(1.0, 2.0))
        [{'name': 'x', 'value': 1.0}, {'name': 'y', 'value': 2.0}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
