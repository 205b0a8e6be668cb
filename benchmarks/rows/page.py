"""A table between two marks of a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tauloop.files import write_file


def marks(script: str, verb: str = "measured") -> tuple[str, str]:
    """The two lines between which a script writes."""
    return f"<!-- {verb} by {script}: begin -->", f"<!-- {verb} by {script}: end -->"


def is_marked(page: Path, between: tuple[str, str]) -> bool:
    """Whether a page has both marks, once each."""
    return page.is_file() and all(page.read_text(encoding="utf-8").count(mark) == 1 for mark in between)


def write(page: Path, between: tuple[str, str], lines: Iterable[str]) -> None:
    """Put lines between the marks of a page."""
    begin, end = between
    head, rest = page.read_text(encoding="utf-8").split(begin)
    text = "\n".join([head + begin, "", *lines]).rstrip() + f"\n\n{end}{rest.split(end)[1]}"
    write_file(page, lambda temporary: temporary.write_text(text, encoding="utf-8"))
