"""Sums of expressions with collected like terms, so that canceling terms disappear."""

from __future__ import annotations

from tauloop.mechanism.expression import (
    ZERO,
    Call,
    Constant,
    Expression,
    add,
    evaluate,
    leaves,
    multiply,
    negate,
    subtract,
)


def collected(*terms: Expression) -> Expression:
    """Return the sum of expressions with collected like terms.

    For example, ``a + b - (a - 2 * b)`` becomes ``3 * b``.
    """
    factors: dict[Expression, float] = {}
    constant = sum(_gather(term, 1.0, factors) for term in terms)
    total: Expression = ZERO
    for term, factor in factors.items():
        if factor == 1.0:
            total = add(total, term)
        elif factor == -1.0:
            total = negate(term) if total == ZERO else subtract(total, term)
        elif factor != 0.0:
            total = add(total, multiply(Constant(factor), term))
    return add(total, Constant(constant)) if constant else total


def _gather(expression: Expression, factor: float, factors: dict[Expression, float]) -> float:
    """Add the terms of an expression, times a factor, to `factors`; return its constant part."""
    if not leaves(expression):
        return factor * float(evaluate(expression, {}))
    if isinstance(expression, Call):
        arguments = expression.arguments
        if expression.operation in "+-" and len(arguments) == 2:
            second = factor if expression.operation == "+" else -factor
            return _gather(arguments[0], factor, factors) + _gather(arguments[1], second, factors)
        if expression.operation == "neg":
            return _gather(arguments[0], -factor, factors)
        if expression.operation == "*":
            for number, rest in (arguments, arguments[::-1]):
                if not leaves(number):
                    return _gather(rest, factor * float(evaluate(number, {})), factors)
        if expression.operation == "/" and not leaves(arguments[1]):
            return _gather(arguments[0], factor / float(evaluate(arguments[1], {})), factors)
    factors[expression] = factors.get(expression, 0.0) + factor
    return 0.0
