"""Lines of code by package: without docstrings, comments, blank lines and imports; C files included.

``python tests/code_lines.py`` prints them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tauloop"
#: What of Python's tokens is no code.
_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def python_lines(text: str) -> int:
    """Lines of code of a Python file."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        alone = (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        if alone or isinstance(node, ast.Import | ast.ImportFrom):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    numbers: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            numbers |= set(range(token.start[0], token.end[0] + 1))
    return len(numbers - skipped)


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
