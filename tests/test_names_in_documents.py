"""Commands in the documents, those within sentences and those that are not run too, exist with their options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest

from conftest import ROOT
from tauloop.cli.app import COMMANDS, LazyGroup, app

PAGES = tuple(sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]))
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)
#: Text between backticks that is a command line.
INLINE = re.compile(r"(?<!`)`(tauloop [a-z][^`]*)`(?!`)")
#: A command that another distribution brings.
BROUGHT = ("reproduce",)


def blocks(text: str, *languages: str) -> Iterator[str]:
    for _, language, body in FENCED.findall(text):
        if language in languages:
            yield body


def lines_of_commands(text: str) -> Iterator[str]:
    """Command lines that begin with `tauloop`, in blocks and between backticks, continued lines joined."""
    for body in blocks(text, "", "text", "console", "bash", "sh", "shell"):
        for line in re.sub(r"\\\n\s*", " ", body).splitlines():
            if match := re.match(r"\s*(?:\$ )?(tauloop [a-z].*)", line):
                yield match[1]
    yield from (" ".join(match.split()) for match in INLINE.findall(FENCED.sub("", text)))


@cache
def options_of(command: str) -> frozenset[str]:
    """All options of a command, such as ``--out``."""
    group = LazyGroup(name="tauloop")
    result = group.get_command(None, command)
    assert result is not None
    names = {name for parameter in result.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return frozenset({*names, "--help"})


def unknown(line: str) -> Iterator[str]:
    """What of a command line is none of Tauloop's commands and options."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError:  # a sentence with an apostrophe, and no command
        words = line.split()[1:]
    name = next(iter(words), "")
    if name in BROUGHT or not re.fullmatch(r"[a-z-]+", name):
        return
    if name not in COMMANDS:
        yield name
        return
    for word in words:
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option[0] not in options_of(name):
            yield f"{name} {option[0]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    assert [part for line in lines_of_commands(text) for part in unknown(line)] == []


def test_the_look_at_pages_sees_what_is_wrong():
    page = "```text\n$ tauloop simulat delta\n```\nand `tauloop check delta --outt x`, `tauloop check delta --json`"
    assert [part for line in lines_of_commands(page) for part in unknown(line)] == ["simulat", "check --outt"]


def test_the_pages_have_code_to_look_at():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(list(lines_of_commands(text))) for text in texts) > 100
    assert app.info.name == "tauloop"


def test_every_page_has_a_place_in_the_documentation() -> None:
    """`make docs` refuses a page that the order of the site leaves out; this says so at once."""
    order = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert set(pages) == order
