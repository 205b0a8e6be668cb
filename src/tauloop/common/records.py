"""`dataclass`, as Python's own but quick to import.

Python's writes six methods for every class as text and compiles each when the module is imported:
0.7 ms a class, and a command imports two hundred of them, which took longer than its work. Here the
methods ask the fields when they are called; only ``__init__`` is compiled, and only of a class that
is used.

A field may be `DEFERRED`: given a `deferred` value, it is computed when it is first read, and kept.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass as standard, fields
from operator import attrgetter
from threading import Lock
from types import MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

_Value = TypeVar("_Value")

#: Metadata of a field that takes `deferred` values: ``x: float = field(metadata=DEFERRED)``. Its
#: class needs slots.
DEFERRED = MappingProxyType({"deferred": True})


def deferred(compute: Callable[[], _Value]) -> _Value:
    """Return a placeholder for the value of a `DEFERRED` field, which calls `compute` when the field is first read.

    Everything that reads the field gets the value and never the placeholder: comparisons, `repr`,
    `pickle`, `copy` and `dataclasses.replace` too. What `compute` reads must stay as it is until
    then: copy arrays that a caller can change. If it raises, the field stays deferred.
    """
    return cast(_Value, _Placeholder(compute))


class _Placeholder:
    """The value of a field that is computed when it is read."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[], object]) -> None:
        self.compute = compute


class _DeferredField:
    """A field in a slot that replaces a placeholder by its value when it is read."""

    def __init__(self, slot: MemberDescriptorType) -> None:
        self._slot = slot

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        value = self._slot.__get__(instance, owner)
        if type(value) is _Placeholder:
            value = value.compute()
            self._slot.__set__(instance, value)
        return value

    def __set__(self, instance: object, value: object) -> None:
        self._slot.__set__(instance, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, init=True, repr=True, eq=True, frozen=False, kw_only=False, slots=False):
        """`dataclasses.dataclass` with those of its options that are used here; to Python, it makes one of its own."""

        def made(cls: type) -> type:
            cls = _with_fields(cls, kw_only, slots)
            _defer(cls)
            methods = {"__init__": _Init(cls)} if init else {}
            methods |= {"__repr__": _repr} if repr else {}
            methods |= _comparison(cls, frozen) if eq else {}
            methods |= (
                {"__getstate__": _state, "__setstate__": _restore} if frozen and slots else {}
            )
            for name, method in methods.items():
                # Python puts None for a hash that goes with a class's own comparison
                if vars(cls).get(name) is None:
                    setattr(cls, name, method)
            if frozen:
                _freeze(cls)
            return cls

        return made


_FLAGS = Lock()


def _with_fields(cls: type, kw_only: bool, slots: bool) -> type:
    """A dataclass without methods. Python refuses one of a frozen class, for it does not know yet that this one is."""
    flags = [
        vars(base)["__dataclass_params__"]
        for base in cls.__mro__[1:]
        if "__dataclass_params__" in vars(base)
    ]
    with _FLAGS:
        frozen = [flag for flag in flags if flag.frozen]
        for flag in frozen:
            flag.frozen = False
        try:
            return standard(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(cls)
        finally:
            for flag in frozen:
                flag.frozen = True


def _defer(cls: Any) -> None:
    """Make deferred fields compute their values when they are read; those of a base class do so already.

    Raises:
        TypeError: the class has no slots.
    """
    for item in fields(cls):
        if "deferred" not in item.metadata:
            continue
        slot = getattr(cls, item.name, None)
        if isinstance(slot, MemberDescriptorType):
            setattr(cls, item.name, _DeferredField(slot))
        elif not isinstance(slot, _DeferredField):
            raise TypeError(
                f"{cls.__qualname__}.{item.name}: a deferred field needs a class with slots"
            )


class _Init:
    """What a class has for ``__init__`` until somebody asks for it."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        self.cls.__init__ = _compiled(self.cls)  # type: ignore[misc]
        return self.cls.__init__.__get__(instance, owner)  # type: ignore[misc]


def _compiled(cls: Any) -> Any:
    """``__init__``, with arguments and defaults of the fields: text of their names alone, as Python's own is."""
    names: dict[str, Any] = {"put": object.__setattr__, "MISSING": MISSING}
    ordinary, keyword, body = ["self"], list[str](), list[str]()
    for item in fields(cls):
        name, default = item.name, f"default_{item.name}"
        made, value = item.default_factory is not MISSING, name
        names[default] = item.default_factory if made else item.default
        optional = names[default] is not MISSING
        if item.init:
            text = f"{name}={'MISSING' if made else default}" if optional else name
            (keyword if item.kw_only else ordinary).append(text)
            value = f"{default}() if {name} is MISSING else {name}" if made else name
        elif optional:
            value = f"{default}()" if made else default
        else:
            continue
        body.append(f"put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    text = f"def __init__({', '.join([*ordinary, *(['*', *keyword] if keyword else [])])}):\n  "
    exec(text + "\n  ".join(body or ["pass"]), names)
    names["__init__"].__annotations__ = {item.name: item.type for item in fields(cls) if item.init}
    return names["__init__"]


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    compared = [item.name for item in fields(cls) if item.compare]
    if len(compared) > 1:
        values: Any = attrgetter(*compared)
    else:  # `attrgetter` makes no tuple of one

        def values(self: Any) -> tuple[Any, ...]:
            return tuple(getattr(self, name) for name in compared)

    def __eq__(self: Any, other: Any) -> Any:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _freeze(cls: Any) -> None:
    names = frozenset(cls.__dataclass_fields__)

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__
    cls.__dataclass_params__.frozen = True


def _state(self: Any) -> list[Any]:
    return [getattr(self, item.name) for item in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
