"""The README's example runs, and prints what the README says it prints."""

from __future__ import annotations

import contextlib
import io
import re

from conftest import ROOT


def between(text: str, begin: str, end: str) -> str:
    """The fenced block between two marks."""
    part = text.split(f"<!-- {begin} -->")[1].split(f"<!-- {end} -->")[0]
    match = re.search(r"```\w*\n(.*?)```", part, flags=re.DOTALL)
    assert match is not None
    return match.group(1)


def test_readme_example_prints_what_it_says() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(between(text, "example: begin", "example: end"), "README.md", "exec"), {})  # our own file
    assert printed.getvalue() == between(text, "output: begin", "output: end")
    assert len(between(text, "example: begin", "example: end").strip().splitlines()) <= 22
