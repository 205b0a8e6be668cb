"""Docstrings of public functions and classes: results, arguments and attributes are described."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tauloop as tl

SOURCE = Path(tl.__file__).parent
#: Decorators whose functions have a docstring of their own kind: a property is a noun phrase.
NOUN_PHRASES = {"property", "cached_property", "setter", "overload"}
#: Return types without a value: contexts yield nothing, other functions do not return.
NO_VALUE = {"None", "NoReturn", "Never", "Iterator[None]"}
#: A docstring that refers to the overridden method: "See `Law`."
REFERENCE = re.compile(r"See `[\w.]+`")
DESCRIBES_RESULT = re.compile(r"\b(returns?|returned|yields?)\b", re.IGNORECASE)


@pytest.fixture(autouse=True, scope="module")
def no_search_for_garbage() -> Iterator[None]:
    """Parse without it: syntax trees have no cycles, and a search visits every node again."""
    gc.disable()
    yield
    gc.enable()


def section(docstring: str, title: str) -> str:
    """Return the text of a section of a docstring; empty without the section."""
    match = re.search(rf"^{title}:\n(.*?)(?=^\S|\Z)", docstring, re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def entries(text: str) -> dict[str, str]:
    """Return the descriptions of a section by name; `a, b: text` describes two names."""
    rows = re.findall(r"^    ([\w*, ]+?):(.*(?:\n {8,}.*)*)", text, re.MULTILINE)
    return {
        name.strip(" *"): " ".join(description.split())
        for names, description in rows
        for name in names.split(",")
    }


def undescribed(text: str) -> list[str]:
    """Return the names of a section whose description is empty or repeats the name."""
    names = []
    for name, description in entries(text).items():
        words = re.sub(r"^(the|a|an|its) ", "", description.rstrip(".").lower())
        if words in ("", name.lower().replace("_", " ")):
            names.append(name)
    return names


def repeated(text: str) -> list[str]:
    """Return the names that a section describes more than once."""
    rows = re.findall(r"^    ([\w*, ]+?):", text, re.MULTILINE)
    names = [name.strip(" *") for row in rows for name in row.split(",")]
    return sorted({name for name in names if names.count(name) > 1})


def faults_of_function(function: ast.FunctionDef) -> Iterator[str]:
    """Yield what the docstring of a function lacks."""
    decorators = {
        ast.unparse(item).split("(")[0].split(".")[-1] for item in function.decorator_list
    }
    docstring = ast.get_docstring(function)
    if docstring is None or decorators & NOUN_PHRASES:
        return
    returned = ast.unparse(function.returns) if function.returns else "None"
    is_described = DESCRIBES_RESULT.search(docstring) or REFERENCE.match(docstring)
    if returned not in NO_VALUE and not is_described:
        yield "does not describe its result"
    arguments = section(docstring, "Args")
    yield from (f"does not describe {name}" for name in undescribed(arguments))
    yield from (f"describes {name} twice" for name in repeated(arguments))
    if arguments:
        taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        names = {argument.arg for argument in taken} - {"self", "cls"}
        for name in sorted(names - entries(arguments).keys()):
            yield f"does not list {name}"


def faults(tree: ast.Module) -> Iterator[str]:
    """Yield the faults of all docstrings of a module's public functions and classes."""
    for node in tree.body:
        if getattr(node, "name", "_").startswith("_"):
            continue
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                for fault in faults_of_function(member):
                    yield f"{member.lineno}: {member.name} {fault}"
        if isinstance(node, ast.ClassDef):
            attributes = section(ast.get_docstring(node) or "", "Attributes")
            for name in undescribed(attributes):
                yield f"{node.lineno}: {node.name} does not describe {name}"
            for name in repeated(attributes):
                yield f"{node.lineno}: {node.name} describes {name} twice"


@pytest.mark.parametrize(
    "folder", sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
)
def test_docstrings_describe_results_arguments_and_attributes(folder: str) -> None:
    problems = [
        f"{path.relative_to(SOURCE)}:{fault}"
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for fault in faults(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("Solve the equations.", "does not describe its result"),
        ("Return x.\n\n    Args:\n        rows: the rows.\n", "does not describe rows"),
        ("Return x.\n\n    Args:\n        rows:\n", "does not describe rows"),
        ("Return x.\n\n    Args:\n        sides: right-hand sides (n,).\n", "does not list rows"),
        (
            "Return x.\n\n    Args:\n        rows: rows (n,).\n        rows: all rows.\n",
            "describes rows twice",
        ),
    ],
)
def test_missing_descriptions_are_found(docstring: str, fault: str) -> None:
    code = f'def solve(rows: int) -> int:\n    """{docstring}    """\n'
    assert f"1: solve {fault}" in list(faults(ast.parse(code)))
