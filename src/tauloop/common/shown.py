"""Short representations of objects: a repr that fits on a screen, and a table for notebooks."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from tauloop.common.names.suggestions import names_elsewhere, peer_names

#: Maximum number of characters of a repr, about one screen.
MAX_REPR_LENGTH = 1600
#: Maximum number of characters of a value, about one line of a screen.
MAX_VALUE_LENGTH = 200


class ReprMixin:
    """Base class of public objects whose content is abbreviated in `repr` and notebooks."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Set the short repr in the class itself; otherwise `dataclass` would override it."""
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = ReprMixin.__repr__  # type: ignore[method-assign]

    def _contents(self) -> Mapping[str, object]:
        """Return the contents by name: the fields of a dataclass; other classes override this."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.repr}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return _ShortRepr().repr(self)[:MAX_REPR_LENGTH]

    if not TYPE_CHECKING:  # Type checkers know the attributes.

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError; for the name that another library uses, suggest Tauloop's name.

            Raises:
                AttributeError: always.
            """
            owner = type(self)
            if name.startswith("_") or hasattr(owner, name):
                # This raises Python's error, or the error of a property that failed.
                return object.__getattribute__(self, name)
            text = f"{owner.__name__!r} object has no attribute {name!r}"
            attributes = [item for item in dir(owner) if not item.startswith("_")]
            names = peer_names(name, attributes) or names_elsewhere(name)
            if names:
                text += f": did you mean {' or '.join(names)}?"
            raise AttributeError(text, name=name, obj=self)

    def _repr_html_(self) -> str:
        """Return a table of the contents for a notebook.

        All texts are escaped, because names may come from files.
        """
        import html  # Slow to import, and needed in notebooks only.

        rows = []
        for name, value in self._contents().items():
            text = html.escape(_cut(_ShortRepr().repr(value)))
            rows.append(f"<tr><th>{html.escape(name)}</th><td>{text}</td></tr>")
        caption = html.escape(type(self).__name__)
        return f"<table><caption>{caption}</caption>{''.join(rows)}</table>"


class _ShortRepr(reprlib.Repr):
    """Python's abbreviating repr, extended to dataclasses, arrays, and tuples of equal types."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxother = 80
        self.maxstring = 80
        self.maxdict = 6
        self.maxtuple = 4
        self.maxlist = 4

    def repr_instance(self, x: Any, level: int) -> str:
        """Return the contents of a dataclass, or its name if it is nested deeply."""
        if not isinstance(x, ReprMixin) and not (is_dataclass(x) and not isinstance(x, type)):
            return super().repr_instance(x, level)
        name = type(x).__name__
        if level <= 1:
            return f"{name}(...)"
        contents = x._contents() if isinstance(x, ReprMixin) else ReprMixin._contents(x)  # type: ignore[arg-type]
        values = [f"{key}={_cut(self.repr1(value, level - 1))}" for key, value in contents.items()]
        return f"{name}({', '.join(values)})"

    def repr_ndarray(self, x: Any, level: int) -> str:
        """Return the numbers of a small array, or the shape of a large one."""
        return repr(x.tolist()) if x.size <= 6 else f"array{x.shape}"

    def repr_tuple(self, x: tuple[Any, ...], level: int) -> str:
        """Return the length of a tuple of dataclasses of the same type."""
        types = {type(item) for item in x}
        if len(x) > 1 and len(types) == 1 and is_dataclass(next(iter(types))):
            return f"({len(x)} {next(iter(types)).__name__})"
        return super().repr_tuple(x, level)


def _cut(text: str) -> str:
    """Return a text of limited length."""
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 4]} ..."
