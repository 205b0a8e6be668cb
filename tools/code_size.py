"""Print the size of each package in lines of code and in tokens: ``python tools/code_size.py``.

The size is a trend to watch, not a limit. Tokens do not change when lines are packed or split.
Docstrings, comments, blank lines and imports do not count, and an f-string is one token.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "tauloop"
LAYOUT_TOKENS = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)
#: Python 3.12 splits an f-string into tokens; earlier versions return one token.
FSTRING_START = getattr(tokenize, "FSTRING_START", None)
FSTRING_END = getattr(tokenize, "FSTRING_END", None)


class CodeSize(NamedTuple):
    """Lines of code and tokens of Python code."""

    lines: int
    tokens: int


def python_size(text: str) -> CodeSize:
    """Return the lines of code and the tokens of a Python file."""
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            skipped |= _line_numbers(node)
    lines: set[int] = set()
    tokens = 0
    fstring_depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in LAYOUT_TOKENS or token.start[0] in skipped:
            continue
        lines |= set(range(token.start[0], token.end[0] + 1))
        if token.type == FSTRING_START:
            fstring_depth += 1
        if fstring_depth == 0 or (token.type == FSTRING_START and fstring_depth == 1):
            tokens += 1
        if token.type == FSTRING_END:
            fstring_depth -= 1
    return CodeSize(lines=len(lines), tokens=tokens)


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _line_numbers(node: ast.stmt | ast.expr) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def c_lines(text: str) -> int:
    """Return the lines of code of a C file."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#include")
        for line in text.splitlines()
    )


def package_sizes(folder: Path = PACKAGE) -> dict[str, CodeSize]:
    """Return the size of the Python code of each package; modules outside packages are "tauloop"."""
    lines: defaultdict[str, int] = defaultdict(int)
    tokens: defaultdict[str, int] = defaultdict(int)
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        package = parts[0] if len(parts) > 1 else "tauloop"
        size = python_size(path.read_text(encoding="utf-8"))
        lines[package] += size.lines
        tokens[package] += size.tokens
    return {package: CodeSize(lines[package], tokens[package]) for package in lines}


def main() -> None:
    """Print a table of packages, the largest first, and the lines of C."""
    sizes = package_sizes()
    rows = sorted(sizes.items(), key=lambda item: -item[1].tokens)
    total = CodeSize(
        sum(size.lines for size in sizes.values()), sum(size.tokens for size in sizes.values())
    )
    sys.stdout.write(f"{'package':<16}{'lines':>8}{'tokens':>9}{'tokens/line':>13}\n")
    for name, size in [*rows, ("all", total)]:
        sys.stdout.write(
            f"{name:<16}{size.lines:>8}{size.tokens:>9}{size.tokens / size.lines:>13.1f}\n"
        )
    c_total = sum(c_lines(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.c"))
    sys.stdout.write(f"C files: {c_total} lines\n")


if __name__ == "__main__":
    main()
