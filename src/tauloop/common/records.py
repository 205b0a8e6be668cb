"""A replacement for `dataclasses.dataclass` that is faster to import.

Python's decorator generates and compiles six methods of each class when the module is imported.
This takes 0.7 ms per class, and a command imports two hundred classes. Here methods inspect the
fields when they are called. Only ``__init__`` is compiled, and only for classes with several
objects.

A field may be `DEFERRED`: a `deferred` value is computed when the field is first read, and the
result is stored in the field.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass as standard, fields
from functools import partial
from operator import attrgetter
from threading import Lock
from types import MappingProxyType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar, cast

_Value = TypeVar("_Value")

#: Metadata of a field that accepts `deferred` values: ``x: float = field(metadata=DEFERRED)``. The
#: class must have slots.
DEFERRED = MappingProxyType({"deferred": True})


def deferred(compute: Callable[[], _Value]) -> _Value:
    """Return a placeholder for the value of a `DEFERRED` field, which is computed on first use.

    All code that reads the field gets the value and never the placeholder, including comparisons,
    `repr`, `pickle`, `copy` and `dataclasses.replace`. The data that `compute` reads must not
    change until then; copy arrays that a caller can change. If `compute` raises
    an exception, the field stays deferred.
    """
    return cast(_Value, _Placeholder(compute))


class _Placeholder:
    """The placeholder of a field's value, which is computed when the field is read."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[], object]) -> None:
        self.compute = compute


class _DeferredField:
    """A descriptor of a field with a slot; reading it replaces a placeholder by its value."""

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
        """Return a decorator like `dataclasses.dataclass`, with the options that Tauloop uses.

        Python treats the decorated class as a dataclass.
        """

        def decorate(cls: type) -> type:
            cls = _with_fields(cls, kw_only, slots)
            _defer(cls)
            methods = {}
            if init:
                methods["__init__"] = _Init(cls)
            if repr:
                methods["__repr__"] = _repr
            if eq:
                methods |= _comparison(cls, frozen)
            if frozen and slots:
                methods |= {"__getstate__": _state, "__setstate__": _restore}
            for name, method in methods.items():
                # Python sets the hash of a class that defines a comparison to None.
                if vars(cls).get(name) is None:
                    setattr(cls, name, method)
            if frozen:
                _freeze(cls)
            return cls

        return decorate


_FLAGS_LOCK = Lock()
#: Types with a meaning for `dataclasses`.
_SPECIAL = re.compile("ClassVar|InitVar|KW_ONLY")


def _with_fields(cls: type, kw_only: bool, slots: bool) -> type:
    """Return a dataclass without the methods that this module adds.

    Python rejects a class that is derived from a frozen class unless it is frozen itself. Here
    `_freeze` freezes the class later, so the flags of its bases are temporarily cleared.

    Python searches every annotation that is a text for special types, such as `ClassVar`. This
    search takes a third of the time. Therefore annotations without such a type are temporarily
    replaced.
    """
    annotations = vars(cls).get("__annotations__", {})
    texts = {name: text for name, text in annotations.items() if _is_ordinary(text)}
    if texts:
        cls.__annotations__ = annotations | dict.fromkeys(texts, object)
    flags = [
        vars(base)["__dataclass_params__"]
        for base in cls.__mro__[1:]
        if "__dataclass_params__" in vars(base)
    ]
    with _FLAGS_LOCK:
        frozen = [flag for flag in flags if flag.frozen]
        for flag in frozen:
            flag.frozen = False
        try:
            decorator = standard(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)
            result: Any = decorator(cls)
        finally:
            for flag in frozen:
                flag.frozen = True
    if texts:
        result.__annotations__ = annotations
        for name, text in texts.items():
            result.__dataclass_fields__[name].type = text
    return result


def _is_ordinary(annotation: object) -> bool:
    """Return whether an annotation is a text without special types of `dataclasses`."""
    return isinstance(annotation, str) and not _SPECIAL.search(annotation)


def _defer(cls: Any) -> None:
    """Replace the slots of deferred fields; those of base classes are already replaced.

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


#: Number of objects of a class that are initialized by a loop over the fields. Compiling an
#: ``__init__`` takes as long as tens of such loops.
MAX_FILLED = 16


class _Init:
    """A descriptor in place of ``__init__`` that compiles it for classes with several objects."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.remaining = MAX_FILLED
        self.filler: _Filler | None = None

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None or self.remaining <= 0:
            return self.compiled().__get__(instance, owner)
        self.remaining -= 1
        if self.filler is None:
            self.filler = _Filler(self.cls, self.compiled)
        return partial(self.filler, instance)

    def compiled(self) -> Any:
        """Compile ``__init__``, which replaces this object in the class."""
        self.cls.__init__ = _compiled(self.cls)  # type: ignore[misc]
        return self.cls.__init__  # type: ignore[misc]


class _Filler:
    """A callable that does the same as the compiled ``__init__`` of a class."""

    def __init__(self, cls: Any, compiled: Callable[[], Any]) -> None:
        self.compiled = compiled
        self.fields = fields(cls)
        arguments = [item for item in self.fields if item.init]
        self.positional = [item.name for item in arguments if not item.kw_only]
        self.accepted = {item.name for item in arguments}
        self.required = {item.name for item in arguments if not _has_default(item)}
        self.has_post_init = hasattr(cls, "__post_init__")

    def __call__(self, instance: Any, /, *positional: object, **named: object) -> None:
        values = dict(zip(self.positional, positional, strict=False))
        has_extra = len(values) < len(positional) or not values.keys().isdisjoint(named)
        values |= named
        if has_extra or not self.required <= values.keys() <= self.accepted:
            # Call the compiled function, which raises Python's errors about arguments.
            self.compiled()(instance, *positional, **named)
            return
        for item in self.fields:
            if item.name in values:
                value = values[item.name]
            elif item.default_factory is not MISSING:
                value = item.default_factory()
            elif item.default is not MISSING:
                value = item.default
            else:
                continue
            object.__setattr__(instance, item.name, value)
        if self.has_post_init:
            instance.__post_init__()


def _has_default(item: Field[Any]) -> bool:
    """Return whether a field has a default or a factory."""
    return item.default is not MISSING or item.default_factory is not MISSING


def _compiled(cls: Any) -> Any:
    """Return ``__init__``, compiled with arguments and defaults of the fields.

    As in Python's decorator, the only variable parts of the compiled text are names of fields.
    """
    namespace: dict[str, Any] = {"put": object.__setattr__, "MISSING": MISSING}
    positional = ["self"]
    keyword_only: list[str] = []
    body: list[str] = []
    for item in fields(cls):
        name = item.name
        value = name
        default = f"default_{name}"
        has_factory = item.default_factory is not MISSING
        namespace[default] = item.default_factory if has_factory else item.default
        has_default = namespace[default] is not MISSING
        if item.init:
            argument = name
            if has_factory:
                argument = f"{name}=MISSING"
                value = f"{default}() if {name} is MISSING else {name}"
            elif has_default:
                argument = f"{name}={default}"
            if item.kw_only:
                keyword_only.append(argument)
            else:
                positional.append(argument)
        elif has_default:
            value = f"{default}()" if has_factory else default
        else:
            continue
        body.append(f"put(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = positional
    if keyword_only:
        arguments = [*positional, "*", *keyword_only]
    head = f"def __init__({', '.join(arguments)}):\n  "
    exec(head + "\n  ".join(body or ["pass"]), namespace)
    init = namespace["__init__"]
    # Errors about arguments then contain the name of the class.
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {item.name: item.type for item in fields(cls) if item.init}
    return init


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    """Return the repr of a dataclass."""
    values = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self) if item.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    """Return the methods for comparison and hash."""
    compared = [item.name for item in fields(cls) if item.compare]
    if len(compared) > 1:
        values: Any = attrgetter(*compared)
    else:  # `attrgetter` of one name does not return a tuple.

        def values(self: Any) -> tuple[Any, ...]:
            return tuple(getattr(self, name) for name in compared)

    def __eq__(self: Any, other: Any) -> Any:
        if self is other:  # tuples of the same values are equal, also if a value is NaN
            return True
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _freeze(cls: Any) -> None:
    """Reject assignments to the fields of a class."""
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
    """Return the values of the fields, for pickle and copy."""
    return [getattr(self, item.name) for item in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    """Set the fields of a copy or of an object from pickle."""
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
