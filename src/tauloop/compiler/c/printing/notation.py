"""Straight-line code as readable formulas in plain text, LaTeX, or Python.

A value that is used once is written where it is used. A value that is used several times, or whose
formula is long, is assigned to a name. Conditions are Iverson brackets: [a < b] is 1 if a < b,
otherwise 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.straight import instructions

#: Precedences of formulas, lowest first; an operand of lower precedence than required is written in
#: parentheses.
SUM, PRODUCT, POWER, ATOM = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A formula as text.

    Attributes:
        text: characters of the formula, in one notation.
        precedence: `SUM`, `PRODUCT`, `POWER` or `ATOM`.
        negated: the formula x if this formula is -x; None otherwise.
    """

    text: str
    precedence: int = ATOM
    negated: Formula | None = None


#: For each operation: pattern, precedence, and required precedence of its operands.
Patterns = Mapping[int, tuple[str, int, tuple[int, ...]]]
_ARITHMETIC: Patterns = {
    ca.OP_ADD: ("%s + %s", SUM, (SUM, PRODUCT)),
    ca.OP_SUB: ("%s - %s", SUM, (SUM, PRODUCT)),
    ca.OP_MUL: ("%s * %s", PRODUCT, (PRODUCT, POWER)),
    ca.OP_DIV: ("%s / %s", PRODUCT, (PRODUCT, POWER)),
    ca.OP_TWICE: ("2 * %s", PRODUCT, (POWER,)),
    ca.OP_INV: ("1 / %s", PRODUCT, (POWER,)),
    ca.OP_ASSIGN: ("%s", ATOM, (ATOM,)),
}
_COMPARED = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}
_CALLED = {
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_EXP: "exp",
    ca.OP_FLOOR: "floor",
    ca.OP_FABS: "abs",
    ca.OP_SIGN: "sign",
    ca.OP_ATAN2: "arctan2",
    ca.OP_FMIN: "minimum",
    ca.OP_FMAX: "maximum",
}


def _calls(pattern: str, names: Mapping[int, str]) -> dict[int, tuple[str, int, tuple[int, ...]]]:
    """Return the patterns of calls of functions with these names."""
    calls = {}
    for op, name in names.items():
        count = 2 if op in (ca.OP_ATAN2, ca.OP_FMIN, ca.OP_FMAX) else 1
        arguments = ", ".join(["%s"] * count)
        calls[op] = (pattern % (name, arguments), ATOM, (SUM,) * count)
    return calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """Notation of formulas.

    Attributes:
        name: name of the notation.
        patterns: patterns of the operations.
        parentheses: pattern for operands of too low precedence.
        new_name: pattern of the names of intermediate values, with a number.
        longest: maximum number of characters of a formula that is not assigned to a name.
    """

    name: str
    patterns: Patterns
    parentheses: str
    new_name: str
    longest: int

    def number(self, value: float) -> Formula:
        """Return a constant, exactly in Python and with ten digits elsewhere."""
        if value < 0:
            return self._negative(self.number(-value))
        text = repr(float(value)) if self.name == "python" else f"{value:.10g}"
        if self.name == "latex" and "e" in text:
            digits, _, power = text.partition("e")
            return Formula(text=rf"{digits} \cdot 10^{{{int(power)}}}", precedence=PRODUCT)
        return Formula(text=text)

    def _negative(self, formula: Formula) -> Formula:
        """Return the negative of a formula."""
        needs_parentheses = formula.precedence < PRODUCT
        text = self.parentheses % formula.text if needs_parentheses else formula.text
        return Formula(text=f"-{text}", precedence=SUM, negated=formula)

    def applied(self, operation: int, operands: Sequence[Formula]) -> Formula:
        """Return the formula of an operation; the signs of negative operands are simplified.

        Raises:
            ValueError: the operation is unknown.
        """
        first, last = operands[0], operands[-1]
        if operation == ca.OP_NEG:
            return first.negated or self._negative(first)
        if operation in (ca.OP_ADD, ca.OP_SUB) and last.negated:
            opposite = ca.OP_SUB if operation == ca.OP_ADD else ca.OP_ADD
            return self.applied(opposite, [first, last.negated])
        if operation in (ca.OP_MUL, ca.OP_DIV) and (first.negated or last.negated):
            magnitude = self.applied(operation, [first.negated or first, last.negated or last])
            return magnitude if first.negated and last.negated else self._negative(magnitude)
        if operation not in self.patterns:
            raise ValueError(f"CasADi's operation {operation} has no formula in this notation")
        pattern, precedence, required_precedences = self.patterns[operation]
        texts = (
            operand.text if operand.precedence >= required else self.parentheses % operand.text
            for operand, required in zip(operands, required_precedences, strict=True)
        )
        return Formula(text=pattern % tuple(texts), precedence=precedence)


_BRACKETS = {op: (f"[%s {sign} %s]", ATOM, (SUM, SUM)) for op, sign in _COMPARED.items()}
PLAIN = Notation(
    name="text",
    patterns={
        **_ARITHMETIC,
        **_calls("%s(%s)", _CALLED),
        **_BRACKETS,
        ca.OP_SQ: ("%s^2", POWER, (ATOM,)),
        ca.OP_NOT: ("[not %s]", ATOM, (SUM,)),
        ca.OP_IF_ELSE_ZERO: ("%s * %s", PRODUCT, (PRODUCT, POWER)),
    },
    parentheses="(%s)",
    new_name="t%d",
    longest=90,
)
PYTHON = Notation(
    name="python",
    patterns={
        **_ARITHMETIC,
        **_calls("np.%s(%s)", _CALLED),
        **{
            op: (f"np.where(%s {sign} %s, 1.0, 0.0)", ATOM, (SUM, SUM))
            for op, sign in _COMPARED.items()
        },
        ca.OP_SQ: ("%s**2", POWER, (ATOM,)),
        ca.OP_NOT: ("np.where(%s == 0.0, 1.0, 0.0)", ATOM, (SUM,)),
        ca.OP_IF_ELSE_ZERO: ("np.where(%s != 0.0, %s, 0.0)", ATOM, (SUM, SUM)),
    },
    parentheses="(%s)",
    new_name="t%d",
    longest=90,
)
_LATEX_WORDS = {
    ca.OP_SIN: r"\sin",
    ca.OP_COS: r"\cos",
    ca.OP_EXP: r"\exp",
    ca.OP_SIGN: r"\mathrm{sgn}",
    ca.OP_ATAN2: r"\mathrm{atan2}",
    ca.OP_FMIN: r"\min",
    ca.OP_FMAX: r"\max",
}
_LATEX_SIGNS = {ca.OP_LT: "<", ca.OP_LE: r"\leq", ca.OP_EQ: "=", ca.OP_NE: r"\neq"}
LATEX = Notation(
    name="latex",
    patterns={
        **_ARITHMETIC,
        **_calls(r"%s\left( %s \right)", _LATEX_WORDS),
        **{
            op: (rf"\left[ %s {sign} %s \right]", ATOM, (SUM, SUM))
            for op, sign in _LATEX_SIGNS.items()
        },
        ca.OP_MUL: (r"%s \, %s", PRODUCT, (PRODUCT, POWER)),
        ca.OP_DIV: (r"\frac{%s}{%s}", PRODUCT, (SUM, SUM)),
        ca.OP_INV: (r"\frac{1}{%s}", PRODUCT, (SUM,)),
        ca.OP_TWICE: (r"2 \, %s", PRODUCT, (POWER,)),
        ca.OP_SQ: (r"{%s}^{2}", POWER, (ATOM,)),
        ca.OP_SQRT: (r"\sqrt{%s}", ATOM, (SUM,)),
        ca.OP_FABS: (r"\left| %s \right|", ATOM, (SUM,)),
        ca.OP_FLOOR: (r"\lfloor %s \rfloor", ATOM, (SUM,)),
        ca.OP_NOT: (r"\left[ %s = 0 \right]", ATOM, (SUM,)),
        ca.OP_IF_ELSE_ZERO: (r"%s \, %s", PRODUCT, (PRODUCT, POWER)),
    },
    parentheses=r"\left( %s \right)",
    new_name="t_{%d}",
    longest=140,
)


class Writer:
    """Writer of straight-line code in one notation, as a sequence of assignments.

    Attributes:
        notation: notation of the printed language.
        lines: left and right sides of the assignments so far.
    """

    def __init__(self, notation: Notation) -> None:
        """Start without assignments."""
        self.notation = notation
        self.lines: list[tuple[str, str]] = []
        self._count = 0

    def count_from(self, other: Writer) -> None:
        """Continue the numbers of new names from those of another writer."""
        self._count = other._count

    def named(self, formula: Formula, name: str | None = None) -> Formula:
        """Add an assignment of a formula to a name, and return the name.

        Args:
            formula: right side of the assignment.
            name: left side of the assignment; default: the next name of an intermediate value.
        """
        if name is None:
            self._count += 1
            name = self.notation.new_name % self._count
        self.lines.append((name, formula.text))
        return Formula(text=name)

    def written(
        self, function: ca.Function, inputs: Sequence[Sequence[Formula]], wanted: Sequence[bool]
    ) -> list[list[Formula]]:
        """Add assignments for a function and return the formulas of its outputs.

        Outputs that are not wanted are empty.

        Args:
            function: function of SX symbols whose outputs are dense columns of scalars.
            inputs: formulas of the components of each input.
            wanted: whether each output is wanted.
        """
        code = instructions(function, wanted)
        use_counts = Counter(k for instruction in code for k in instruction.operands)
        results = {
            instruction.operands[0] for instruction in code if instruction.operation == ca.OP_OUTPUT
        }
        formulas: dict[int, Formula] = {}
        zero = Formula(text="0.0" if self.notation is PYTHON else "0")
        outputs = [
            [zero] * (function.numel_out(i) if wanted[i] else 0) for i in range(function.n_out())
        ]
        for step in code:
            if step.operation == ca.OP_OUTPUT:
                assert step.port is not None
                outputs[step.port[0]][step.port[1]] = formulas[step.operands[0]]
            elif step.port is not None:
                formulas[step.number] = inputs[step.port[0]][step.port[1]]
            elif step.operation == ca.OP_CONST:
                formulas[step.number] = self.notation.number(step.constant)
            else:
                operands = [formulas[k] for k in step.operands]
                formula = self.notation.applied(step.operation, operands)
                is_long = len(formula.text) > self.notation.longest and step.number not in results
                needs_name = use_counts[step.number] > 1 or is_long
                formulas[step.number] = self.named(formula) if needs_name else formula
        return outputs
