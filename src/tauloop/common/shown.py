"""How objects show themselves: a repr that fits on a screen, and a table for notebooks."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

#: Most characters of a repr, and of one row of a table: a screen and a line of it.
SCREEN, ROW = 1600, 200


class Shown:
    """Base of public objects that hold much: `repr` and notebooks show what is in them, never all of it."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Put the short repr into the class itself: `dataclass` would write its own over an inherited one."""
        super().__init_subclass__(**options)
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Shown.__repr__  # type: ignore[method-assign]

    def _contents(self) -> Mapping[str, object]:
        """What is shown, by name: the fields of a dataclass; other classes say it themselves."""
        return {item.name: getattr(self, item.name) for item in fields(self) if item.repr}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return _Short().repr(self)[:SCREEN]

    def _repr_html_(self) -> str:
        """A table of the contents for a notebook; everything in it is escaped, since names come from files."""
        import html  # slow to import, and only notebooks ask

        rows = (
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(_cut(_Short().repr(value)))}</td></tr>"
            for name, value in self._contents().items()
        )
        return (
            f"<table><caption>{html.escape(type(self).__name__)}</caption>{''.join(rows)}</table>"
        )


class _Short(reprlib.Repr):
    """Python's abridging repr, which also knows dataclasses, arrays, and rows of equal things."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxother, self.maxstring, self.maxdict, self.maxtuple, self.maxlist = (
            3,
            80,
            80,
            6,
            4,
            4,
        )

    def repr_instance(self, x: Any, level: int) -> str:
        """One of our objects by its contents, named alone when it lies deep; others as Python abridges them."""
        if not isinstance(x, Shown) and not (is_dataclass(x) and not isinstance(x, type)):
            return super().repr_instance(x, level)
        name = type(x).__name__
        if level <= 1:
            return f"{name}(...)"
        contents = x._contents() if isinstance(x, Shown) else Shown._contents(x)  # type: ignore[arg-type]
        return f"{name}({', '.join(f'{key}={_cut(self.repr1(value, level - 1))}' for key, value in contents.items())})"

    def repr_ndarray(self, x: Any, level: int) -> str:
        """A small array by its numbers, a large one by its shape."""
        return repr(x.tolist()) if x.size <= 6 else f"array{x.shape}"

    def repr_tuple(self, x: tuple[Any, ...], level: int) -> str:
        """A row of many equal things by its length."""
        kinds = {type(item) for item in x}
        if len(x) > 1 and len(kinds) == 1 and is_dataclass(next(iter(kinds))):
            return f"({len(x)} {next(iter(kinds)).__name__})"
        return super().repr_tuple(x, level)


def _cut(text: str) -> str:
    return text if len(text) <= ROW else f"{text[: ROW - 4]} ..."
