"""Commands in the documents, those that are not run too, exist with their options; so do names of code and tests."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import pytest

import tauloop
from conftest import ROOT
from tauloop.cli.app import command_words, find_command
from tauloop.cli.commands import TOP_LEVEL
from tauloop.common.extensions import GROUPS

PAGES = tuple(
    page
    for page in sorted(
        [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    )
    if page.name != "migration.md"  # its names are those of the version before
)
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.M | re.S)
#: Text between backticks that is a command line.
INLINE = re.compile(r"(?<!`)`(tauloop [a-z][^`]*)`(?!`)")
#: Dotted words that are no names of the library: groups of entry points, and what MJCF keeps in
#: `<custom>`.
ELSEWHERE = {
    *GROUPS,
    "tauloop.platform",
    "tauloop.independent",
    "tauloop.joint.NAME.friction.offset",
}


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
    names = {
        name
        for parameter in find_command(command).params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    return frozenset({*names, "--help"})


def unknown(line: str) -> Iterator[str]:
    """What of a command line is none of Tauloop's commands and options."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError:  # a sentence with an apostrophe, and no command
        words = line.split()[1:]
    name = next(iter(words), "")
    if name == "paper" or not re.fullmatch(r"[a-z-]+", name):
        return
    path = command_words(words)
    if not path:
        is_alone = len(words) == 1 or words[1].startswith("-")
        if name not in TOP_LEVEL or not is_alone:
            yield name
        return
    for word in words:
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option[0] not in options_of(path):
            yield f"{path} {option[0]}"


#: Names of the library between backticks, and names of tests: `tauloop.model.Motion.embedding`,
#: `test_x.py::test_y`.
DOTTED, TESTS = (
    re.compile(r"`(tauloop(?:\.\w+)+)`"),
    re.compile(r"`(?:[\w/]+/)?(test_\w+\.py)(?:::(\w+))?`"),
)


def resolves(name: str) -> bool:
    """Whether a dotted name is a module of Tauloop, or something in one; fields of records count."""
    words = name.split(".")
    value: object = tauloop
    for count in range(len(words), 0, -1):
        with suppress(ModuleNotFoundError):
            value = importlib.import_module(".".join(words[:count]))
            break
    for word in words[count:]:
        if word not in getattr(value, "__annotations__", {}) and not hasattr(value, word):
            return False
        value = getattr(value, word, None)
    return True


@cache
def files_of_tests() -> dict[str, str]:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "papers" / "tests").rglob("test_*.py")]
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def missing_tests(text: str) -> Iterator[str]:
    """Tests that a page names and that are not there."""
    for file, name in TESTS.findall(text):
        if (
            f"def {name}(" not in files_of_tests().get(file, "")
            if name
            else file not in files_of_tests()
        ):
            yield f"{file}::{name}"
    # alone, where the page says the file elsewhere
    for name in re.findall(r"`(test_\w+)(?:\.\.\.)?`", text):
        if not any(f"def {name}" in body for body in files_of_tests().values()):
            yield name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_tests_commands_and_options_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    assert [
        name for name in DOTTED.findall(text) if name not in ELSEWHERE and not resolves(name)
    ] == []
    assert list(missing_tests(text)) == []
    assert [part for line in lines_of_commands(text) for part in unknown(line)] == []


def test_the_look_at_pages_sees_what_is_wrong():
    page = "```text\n$ tauloop simulat delta\n```\nand `tauloop check delta --outt x`, `tauloop check delta --json`"
    assert [part for line in lines_of_commands(page) for part in unknown(line)] == [
        "simulat",
        "check --outt",
    ]


def test_the_pages_have_code_to_look_at():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(len(list(lines_of_commands(text))) for text in texts) > 100


def test_every_page_has_a_place_in_the_documentation() -> None:
    """`make docs` refuses a page that the order of the site leaves out; this says so at once."""
    order = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert set(pages) == order
