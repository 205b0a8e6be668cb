"""A table between two marks of a page of the documentation."""

from __future__ import annotations

import datetime
import subprocess
from collections.abc import Iterable
from pathlib import Path

from peers.computer import family, processor

from tauloop.common.files import write_file


def marks(script: str, verb: str = "measured") -> tuple[str, str]:
    """Return the two lines between which a script writes."""
    return f"<!-- {verb} by {script}: begin -->", f"<!-- {verb} by {script}: end -->"


def is_marked(page: Path, between: tuple[str, str]) -> bool:
    """Return whether a page has both marks, once each."""
    return page.is_file() and all(
        page.read_text(encoding="utf-8").count(mark) == 1 for mark in between
    )


def write_or_print(
    page: Path | None, between: tuple[str, str], table: Iterable[str], note: str
) -> None:
    """Put a table and a note below it between the marks of a page; print them without one."""
    if page is None:
        print("\n".join([*table, note, stamp()]))
    else:
        write(page, between, [*table, "", note])


def stamp() -> str:
    """Return the line that states what was measured: the commit, the processor and the date.

    A test reads it (`tests/test_measured_tables.py`) and fails where the measured code has changed
    much since.
    """
    vectors = ", AVX-512" if "avx512f" in processor().features else ", AVX2"
    return f"Measured at {_commit()} on {family()}{vectors}, {_today()}."


def computed_stamp(method: str) -> str:
    """Return the line below a table that was computed by a method, not measured."""
    return f"Computed at {_commit()} by {method}, not measured, {_today()}."


def _commit() -> str:
    commit = _git("rev-parse", "--short=8", "HEAD") or "unknown"
    changed = " with uncommitted changes" if _git("status", "--porcelain", "--", "src") else ""
    return f"commit {commit}{changed}"


def _today() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"


def _git(*arguments: str) -> str:
    """Return what git prints; nothing where there is no repository."""
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def write(
    page: Path, between: tuple[str, str], lines: Iterable[str], stamped: str | None = None
) -> None:
    """Put lines between the marks of a page, and below them a stamp (by default `stamp`)."""
    begin, end = between
    if begin.startswith("<!-- measured"):
        lines = [*lines, "", stamped or stamp()]
    head, rest = page.read_text(encoding="utf-8").split(begin)
    text = "\n".join([head + begin, "", *lines]).rstrip() + f"\n\n{end}{rest.split(end)[1]}"
    write_file(page, lambda temporary: temporary.write_text(text, encoding="utf-8"))
