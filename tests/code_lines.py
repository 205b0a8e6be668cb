"""Lines of code by package: without docstrings, comments, blank lines and imports; C files included.

``python tests/code_lines.py`` prints them.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tauloop"


def python_lines(text: str) -> int:
    """Lines of code of a Python file."""
    numbers = {k for k, line in enumerate(text.split("\n"), 1) if line.strip() and not line.lstrip().startswith("#")}
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _stands_alone(node):
            skipped |= _lines(node)
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
        ):
            numbers |= _lines(node)
    return len(numbers - skipped)


def _stands_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _lines(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def c_lines(text: str) -> int:
    """Lines of code of a C file."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#include") for line in text.splitlines())


def code_lines(folder: Path = PACKAGE) -> dict[str, int]:
    """Lines of code by package; files beside the packages are "tauloop"."""
    counts: Counter[str] = Counter()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.c")]):
        parts = path.relative_to(folder).parts
        count = python_lines if path.suffix == ".py" else c_lines
        counts[parts[0] if len(parts) > 1 else "tauloop"] += count(path.read_text(encoding="utf-8"))
    return dict(counts)


if __name__ == "__main__":
    lines = code_lines()
    rows = [*sorted(lines.items(), key=lambda item: -item[1]), ("all", sum(lines.values()))]
    sys.stdout.writelines(f"{name:<12}{size:>7}\n" for name, size in rows)
