"""docs/check.md explains each word that `tauloop check` can print, and none that it cannot."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

import tauloop as tl
from conftest import ROOT
from tauloop.common.errors import Problem
from tauloop.display import Paragraph, Table, parts_of

SOURCES = ROOT / "src" / "tauloop"
CASES = ROOT / "tests" / "cases"
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
#: Where the messages of `check` are made: whole modules, and a function of one that has more.
MODULES = (
    "equations/assembly/assembly.py",
    "equations/assembly/closing.py",
    "equations/assembly/freedoms/coordinates.py",
    "equations/assembly/reference_pose.py",
    "equations/assembly/freedoms/motor_candidates.py",
    "kinematics/inspection.py",
)
CABLES = ("mechanism/cables.py", "unbounded_note")
#: How the page writes what differs from machine to machine.
OPEN = "…"


def texts(node: ast.expr, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """What an expression may say, with `OPEN` for each value in it."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else OPEN for part in node.values
        )
    elif isinstance(node, ast.BinOp):
        yield from (
            left + right for left in texts(node.left, names) for right in texts(node.right, names)
        )
    elif isinstance(node, ast.IfExp):
        yield from (*texts(node.body, names), *texts(node.orelse, names))
    elif isinstance(node, ast.Name) and node.id in names:
        for value in names[node.id]:
            yield from texts(value, names)
    else:
        yield OPEN


def messages(tree: ast.AST) -> Iterator[str]:
    """The texts `what` of all problems that are made in a piece of source."""
    names: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        keywords = {item.arg: item.value for item in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id == "Problem":
            yield from texts(keywords["what"], names)
        elif (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in ("add", "of")
            and len(node.args) > 2
        ):
            yield from texts(node.args[1], names)


def plain(text: str) -> str:
    """One space between words, one sign for what differs."""
    return re.sub(rf"{OPEN}(?:[, ]*{OPEN})*", OPEN, " ".join(text.split()))


def printed_by_the_source() -> set[str]:
    trees: list[ast.AST] = [
        ast.parse((SOURCES / name).read_text(encoding="utf-8")) for name in MODULES
    ]
    path, name = CABLES
    tree = ast.parse((SOURCES / path).read_text(encoding="utf-8"))
    trees += [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    functions = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    ]
    return {plain(text) for function in functions for text in messages(function)}


def explained() -> list[str]:
    """Messages on the page: lines of text blocks, without the place before the colon."""
    blocks = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    return [plain(line.split(": ", 1)[1]) for block in blocks for line in block.splitlines()]


def test_the_page_explains_all_messages_and_no_others() -> None:
    page = explained()
    assert len(page) == len(set(page))
    assert set(page) == printed_by_the_source()


def rows() -> set[str]:
    """Words in the first column of the page's table of rows."""
    return set(re.findall(r"^\| `([^`]+)` \|", PAGE.split("\n## ")[1], re.MULTILINE))


def test_the_page_explains_all_rows_and_no_others() -> None:
    source = (SOURCES / "display/tables/machines/machine_tables.py").read_text(encoding="utf-8")
    (summary,) = [
        n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == "_summary"
    ]
    calls = [
        n
        for n in ast.walk(summary)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    ]
    labels = {
        str(n.args[0].elts[0].value)
        for n in calls
        if n.func.attr == "append"
        and isinstance(n.args[0], ast.Tuple)
        and isinstance(n.args[0].elts[0], ast.Constant)
    }
    assert rows() == labels


def expected(problem: Problem) -> bool:
    """Whether a message is of the page's."""
    text = " ".join(problem.what.split())
    return any(
        re.fullmatch(re.escape(message).replace(OPEN, ".*"), text) for message in explained()
    )


@pytest.mark.parametrize("name", ["no_motor", "slider_crank_tdc"])
def test_what_is_printed_of_a_machine_stands_on_the_page(name: str) -> None:
    inspection = tl.check(tl.load(CASES / f"{name}.yaml"), tl.CheckOptions(driven=True))
    assert [
        problem.what
        for problem in (*inspection.problems, *inspection.notes)
        if not expected(problem)
    ] == []
    assert inspection.notes
    (part,) = parts_of(inspection)
    table, verdict = part.tables(inspection)
    assert isinstance(table, Table)
    assert isinstance(verdict, Paragraph)
    assert {row[0] for row in table.cells} - {""} <= rows()
    assert f"`{verdict.text}`" in PAGE
