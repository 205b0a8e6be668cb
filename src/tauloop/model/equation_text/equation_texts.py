"""Texts of written equations: names, readable text, a LaTeX document, and a Python module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from keyword import iskeyword

from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.compiler.program import NEWTON_ITERATIONS, NEWTON_LONGEST_STEP, NEWTON_STEP
from tauloop.compiler.solving.position import SolvedBlock

#: Left and right side of an assignment.
Line = tuple[str, str]
TITLES = {
    "loops": "Loop equations, each zero where the loops are closed",
    "dynamics": "Dynamic equations, each zero: M a + h - S u - K^T lambda",
    "solved": "Solved, block by block",
}
#: Names of the functions in Python.
FUNCTION_NAMES = {
    "loops": "loop_equations",
    "dynamics": "dynamic_equations",
    "solved": "inverse_dynamics",
}
#: Names of intermediate values, which must not be used for other symbols.
_INTERMEDIATE = re.compile(r"t\d+")
_NEWTON = f'''
def newton(step, x, units):
    """Solve a block of loop equations by Newton's method from x; steps are relative to units."""
    x = np.asarray(x, dtype=float)
    for _ in range({NEWTON_ITERATIONS}):
        change = np.array(step(x))
        length = abs(change / units).max()
        x = x + change * min(1.0, {NEWTON_LONGEST_STEP} / max(length, 1e-300))
        if length <= {NEWTON_STEP}:
            return x
    raise ValueError("the loops do not close: use a closer initial guess; the pose may be out of reach")
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A symbol of the equations.

    Attributes:
        python: name in text and Python.
        latex: name in LaTeX.
        meaning: quantity that the symbol represents.
        unit: SI unit of the quantity.
    """

    python: str = field(metadata=json_keys("name"))
    latex: str = field(metadata=OMITTED)
    meaning: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A group of equations in one notation.

    Attributes:
        name: name of the group.
        before: groups of assignments, each followed by a block that Newton's method solves.
        lines: assignments after these groups.
        results: resulting expressions with titles, by name.
        arguments: names of the components of every argument.
        notes: statements that are true only for the current parameters.
    """

    name: str
    before: tuple[tuple[tuple[Line, ...], Part], ...] = ()
    lines: tuple[Line, ...]
    results: Mapping[str, tuple[Line, ...]]
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def every_line(self) -> Iterator[Line]:
        """Yield all assignments and results, including those of Newton blocks."""
        for lines, loop in self.before:
            yield from (*lines, *loop.every_line)
        yield from self.lines
        for results in self.results.values():
            yield from results


def written_name(role: str, name: str, index: str, taken: frozenset[str]) -> tuple[str, str]:
    """Return an unused name for Python, and a name for LaTeX of letters, digits and points.

    Args:
        role: q, u, lambda, or d with the number of dots; empty for a parameter.
        name: name of the element, from a file.
        index: text that replaces a long name.
        taken: names that are already used in Python.
    """
    dots = int(role[1:]) if role[:1] == "d" else 0
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x"
    prefix = {"u": "u_", "lambda": "lambda"}.get(role, "d" * dots + ("_" if dots else ""))
    python = prefix + (index or plain)
    python = python if re.match(r"[A-Za-z]", python) else f"x_{python}"
    while python in taken or iskeyword(python) or _INTERMEDIATE.fullmatch(python):
        python += "_"
    escaped = [re.sub(r"[^A-Za-z0-9]+", r"\\_", part) for part in name.split(".")]
    base, subscript = escaped[-1] or "x", r".".join(escaped[:-1])
    if role in ("u", "lambda"):
        base = r"\lambda" if role == "lambda" else role
        subscript = index.strip("_") or ".".join(escaped)
    letter = base if len(base) == 1 or base == r"\lambda" else rf"\mathrm{{{base}}}"
    dotted = (letter, rf"\dot{{{letter}}}", rf"\ddot{{{letter}}}")[dots]
    return python, dotted + (rf"_{{\mathrm{{{subscript}}}}}" if subscript else "")


def plain_text(
    heading: str, symbols: Sequence[Symbol], blocks: Sequence[SolvedBlock], parts: Sequence[Part]
) -> str:
    """Return the equations as readable text."""
    width = max((len(symbol.python) for symbol in symbols), default=0)
    lines = [
        heading,
        "",
        *(f"  {symbol.python:<{width}}  {symbol.meaning} [{symbol.unit}]" for symbol in symbols),
    ]
    texts = [right for part in parts for _, right in part.every_line]
    if any(mark in text for text in texts for mark in (" < ", " <= ", " == ", " != ", "[not")):
        lines.append("  [a < b]: 1 if a < b, otherwise 0")
    if any("start[" in text for text in texts):
        lines.append("  start: all coordinates of a nearby pose, such as the reference pose")
    for part in parts:
        lines += ["", TITLES[part.name], "", *([] if any(part.every_line) else ["  none"])]
        lines += [f"  {note}" for note in part.notes]
        if part.name == "solved":
            lines += [f"  {block}" for block in _blocks(blocks)]
        for before, loop in part.before:
            lines += [f"  {left} = {right}" for left, right in (*before, *loop.lines)]
            starts = ", ".join(loop.arguments["start"])
            lines += [
                f"  {', '.join(loop.arguments['unknowns'])} by Newton's method from {starts}:"
            ]
            lines += [f"    0 = {right}    ({title})" for title, right in loop.results["residual"]]
        lines += [f"  {left} = {right}" for left, right in part.lines]
        for results in part.results.values():
            if part.name == "solved":
                lines += [f"  {left} = {right}" for left, right in results if left != right]
            else:
                lines += [f"  0 = {right}    ({title})" for title, right in results]
    return "\n".join(lines) + "\n"


def _blocks(blocks: Sequence[SolvedBlock]) -> list[str]:
    return [
        f"{', '.join(block.equations)} -> {', '.join(block.unknowns)}: {block.method}"
        for block in blocks
    ]


def latex_text(
    heading: str, symbols: Sequence[Symbol], blocks: Sequence[SolvedBlock], parts: Sequence[Part]
) -> str:
    """Return the equations as a LaTeX document."""
    lines = [
        r"\documentclass{article}",
        r"\usepackage[landscape,margin=15mm]{geometry}",
        r"\begin{document}",
    ]
    lines += [rf"\section*{{{_escaped(heading)}}}", r"\begin{itemize}"]
    lines += [
        rf"\item ${symbol.latex}$: {_escaped(f'{symbol.meaning} [{symbol.unit}]')}"
        for symbol in symbols
    ]
    lines += [r"\item $\left[ a < b \right]$: 1 if $a < b$, otherwise 0", r"\end{itemize}"]
    for part in parts:
        lines += [
            rf"\subsection*{{{_escaped(TITLES[part.name])}}}",
            *([] if any(part.every_line) else ["None."]),
        ]
        lines += [rf"{_escaped(note)}\par" for note in part.notes]
        if part.name == "solved" and blocks:
            lines += [
                r"\begin{itemize}",
                *(rf"\item {_escaped(line)}" for line in _blocks(blocks)),
                r"\end{itemize}",
            ]
        for before, loop in part.before:
            lines += [_displayed(*line) for line in (*before, *loop.lines)]
            lines += [rf"${', '.join(loop.arguments['unknowns'])}$ by Newton's method, from"]
            lines += [rf"${', '.join(loop.arguments['start'])}$:"]
            lines += [_displayed("0", right) for _, right in loop.results["residual"]]
        lines += [_displayed(*line) for line in part.lines]
        for results in part.results.values():
            pairs = results if part.name == "solved" else [("0", right) for _, right in results]
            lines += [_displayed(left, right) for left, right in pairs if left != right]
    return "\n".join([*lines, r"\end{document}"]) + "\n"


def _displayed(left: str, right: str) -> str:
    return rf"\[ {left} = {right} \]"


def _escaped(text: str) -> str:
    """Return text from a file for LaTeX: printable ASCII with special characters escaped."""
    escapes = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    escapes |= {c: rf"\{c}" for c in "#$%&_{}"} | {"<": "$<$", ">": "$>$"}
    return "".join(escapes.get(c, c) for c in text if c.isascii() and c.isprintable())


def python_text(
    heading: str,
    symbols: Sequence[Symbol],
    parts: Sequence[Part],
    start: Sequence[float],
    nominal: Mapping[str, float],
    kept: Sequence[str],
) -> str:
    """Return the equations as a Python module that needs only NumPy."""
    lines = [f"# {_comment(heading)}", "#"]
    lines += [
        f"# {symbol.python}: {_comment(f'{symbol.meaning} [{symbol.unit}]')}" for symbol in symbols
    ]
    lines += ["", "import numpy as np", "", f"REFERENCE = {list(start)!r}"]
    lines += [f"PARAMETERS = {[nominal[name] for name in kept]!r}"]
    names = {symbol.meaning: symbol.python for symbol in symbols}
    letters = [names.get(f"parameter {name}", "_") for name in kept]
    if any(part.before for part in parts):
        lines += ["", *_NEWTON.splitlines()]
    for part in parts:
        lines += ["", "", *_function(part, letters)]
    return "\n".join(lines) + "\n"


def _function(part: Part, letters: Sequence[str]) -> Iterator[str]:
    arguments = {key: {"lambda": "multipliers"}.get(key, key) for key in part.arguments}
    further = (["start=REFERENCE"] if part.name == "solved" else []) + (
        ["parameters=PARAMETERS"] if letters else []
    )
    yield f"def {FUNCTION_NAMES[part.name]}({', '.join([*arguments.values(), *further])}):"
    yield f'    """{TITLES[part.name]}."""'
    yield from (f"    # {_comment(note)}" for note in part.notes)
    for key, numbers in part.arguments.items():
        if numbers:
            yield f"    [{', '.join(numbers)}] = {arguments[key]}"
    if letters:
        yield f"    [{', '.join(letters)}] = parameters"
    for before, loop in part.before:
        yield from (f"    {left} = {right}" for left, right in before)
        unknowns, units = (", ".join(loop.arguments[name]) for name in ("unknowns", "units"))
        yield "    def step(x):"
        yield f"        [{unknowns}] = x"
        yield from (f"        {left} = {right}" for left, right in loop.lines)
        yield f"        return [{', '.join(right for _, right in loop.results['step'])}]"
        yield f"    [{unknowns}] = newton(step, [{', '.join(loop.arguments['start'])}], [{units}])"
    yield from (f"    {left} = {right}" for left, right in part.lines)
    if part.name != "solved":
        yield f"    return np.array([{', '.join(right for _, right in part.results['residual'])}])"
        return
    yield "    return {"
    for key, results in part.results.items():
        yield f"        {key!r}: np.array([{', '.join(right for _, right in results)}]),"
    yield "    }"


def _comment(text: str) -> str:
    """Return text from a file for a comment: printable ASCII in one line."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
