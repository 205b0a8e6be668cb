"""Straight-line code as instructions: shared quotients become a reciprocal and products, and mean the same."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tauloop.compiler.c.printing.straight import Instruction, instructions, with_reciprocals

#: One rounding for the reciprocal and one for the product, over those of the sums behind them.
ROUNDING = 1e-14

OPERATIONS = {
    ca.OP_ADD: operator.add,
    ca.OP_SUB: operator.sub,
    ca.OP_MUL: operator.mul,
    ca.OP_DIV: operator.truediv,
    ca.OP_INV: lambda x: 1 / x,
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_NEG: operator.neg,
    ca.OP_SQ: lambda x: x * x,
    ca.OP_TWICE: lambda x: 2 * x,
}


def run(code: Sequence[Instruction], x: np.ndarray) -> np.ndarray:
    """What the instructions compute, read as a reader of C would: nothing is used before it is made."""
    values: dict[int, float] = {}
    results: dict[int, float] = {}
    for instruction in code:
        operands = [values[k] for k in instruction.operands]
        if instruction.operation == ca.OP_OUTPUT:
            assert instruction.port is not None
            results[instruction.port[1]] = operands[0]
        elif instruction.operation == ca.OP_INPUT:
            assert instruction.port is not None
            values[instruction.number] = x[instruction.port[1]]
        elif instruction.operation == ca.OP_CONST:
            values[instruction.number] = instruction.constant
        else:
            assert instruction.number not in values
            values[instruction.number] = OPERATIONS[instruction.operation](*operands)
    return np.array([results[i] for i in sorted(results)])


def code_of(x: ca.SX, outputs: Sequence[ca.SX]) -> tuple[Instruction, ...]:
    return instructions(ca.Function("straight", [x], [ca.vertcat(*outputs)]), [True])


def divisors(code: Sequence[Instruction]) -> Counter[int]:
    """How often a value is divided by, a reciprocal included."""
    below = {ca.OP_DIV: 1, ca.OP_INV: 0}
    return Counter(
        instruction.operands[below[instruction.operation]]
        for instruction in code
        if instruction.operation in below
    )


@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_no_value_is_divided_by_twice(seed: int, steps: int) -> None:
    """Random sums, products, quotients, reciprocals and quotients by constants, in any order."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", 4)
    known = list(ca.vertsplit(x))
    for _ in range(steps):
        a, b = (known[i] for i in rng.integers(len(known), size=2))
        known.append((a + b, a * b, a / b, 1 / b, a / 3.0, a + 2.0)[rng.integers(6)])
    code = code_of(x, known)
    changed = with_reciprocals(code)
    constants = {row.number for row in changed if row.operation == ca.OP_CONST}
    counts = divisors(changed)
    assert max(counts.values(), default=0) <= 1
    assert not constants & set(counts)
    numbers = rng.uniform(0.5, 2.0, size=4)  # positive, so that sums lose no digits
    before, after = run(code, numbers), run(changed, numbers)
    assert after == pytest.approx(before, rel=ROUNDING * len(code))


@pytest.mark.parametrize("first", ["reciprocal", "quotient"])
def test_a_reciprocal_that_is_there_serves_quotients(first: str) -> None:
    x = ca.SX.sym("x", 2)
    outputs = [1 / x[1], x[0] / x[1]]
    changed = with_reciprocals(code_of(x, outputs if first == "reciprocal" else outputs[::-1]))
    assert sum(divisors(changed).values()) == 1
    assert sorted(run(changed, np.array([3.0, 4.0]))) == [0.25, 0.75]


def test_a_single_quotient_stays_one() -> None:
    x = ca.SX.sym("x", 2)
    code = code_of(x, [x[0] / x[1]])
    assert with_reciprocals(code) == code
