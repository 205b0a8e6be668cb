"""Operation counts of generated functions, without shared expressions and unused values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.source import CFunction, wanted_values
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.values import BatchFunction

#: Kinds of operations, in the order of tables.
OPERATION_KINDS = ("additions", "multiplications", "divisions", "roots", "trigonometric", "others")
_KIND = {
    ca.OP_ADD: "additions",
    ca.OP_SUB: "additions",
    ca.OP_TWICE: "additions",
    ca.OP_MUL: "multiplications",
    ca.OP_SQ: "multiplications",
    ca.OP_DIV: "divisions",
    ca.OP_INV: "divisions",
    ca.OP_SQRT: "roots",
    ca.OP_SIN: "trigonometric",
    ca.OP_COS: "trigonometric",
    ca.OP_ATAN2: "trigonometric",
}
#: Not counted: a change of sign is part of the addition that follows.
_FREE = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_NEG)


def operations(function: CFunction) -> dict[str, dict[str, int]]:
    """Return operations of one sample by kind: `once`, and those of `each_iteration` of Newton.

    `each_iteration` is the sum over all Newton loops. The operations of nearest points depend on
    the numbers and are not counted.
    """
    wanted = wanted_values(function)
    once: Counter[str] = Counter()
    iterated: Counter[str] = Counter()
    for step in function.program.steps:
        if isinstance(step, Evaluate):
            once += _count(step.function.function, [name in wanted for name in step.outputs])
        elif isinstance(step, Newton):
            iterated += _count(step.function.function, [False, True, True])
            once += _count(step.function.function, [True, False, False])
    return {"once": _by_kind(once), "each_iteration": _by_kind(iterated)}


def _by_kind(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in OPERATION_KINDS}


def output_operations(program: Program, *outputs: str) -> dict[str, dict[str, int]]:
    """Return the operations that some outputs of a program need, counted as in `operations`."""
    wanted = tuple(CPort(name=output, size=0) for output in outputs)
    return operations(CFunction(name="counted", program=program, inputs=(), outputs=wanted))


def function_operations(function: ca.Function) -> dict[str, dict[str, int]]:
    """Return the operations of all outputs of straight-line code, counted as in `operations`."""
    counts = _count(function, [True] * function.n_out())
    return {
        "once": {kind: counts[kind] for kind in OPERATION_KINDS},
        "each_iteration": dict.fromkeys(OPERATION_KINDS, 0),
    }


def restricted(program: Program, output: str, entries: Sequence[int]) -> Program:
    """Return the program with only some entries of one output and without diagnostics.

    It serves to count the operations of these entries.

    Args:
        program: program whose last step computes the output.
        output: name of the output.
        entries: indices of the entries to keep, in this order.
    """
    *before, last = program.steps
    if not isinstance(last, Evaluate) or output not in last.outputs:
        raise ValueError(f"{output} is not an output of the last step of {program.name}")
    inputs = last.function.function.sx_in()
    results = last.function.function.call(inputs)
    chosen = ca.cse([results[last.outputs.index(output)][list(entries)]])
    step = replace(
        last, function=BatchFunction(ca.Function(program.name, inputs, chosen)), outputs=(output,)
    )
    return replace(program, steps=(*before, step), outputs=(output,), closed_forms=(), pivots=())


def _count(function: ca.Function, wanted: Sequence[bool]) -> Counter[str]:
    """Return the operations of some outputs by kind, from a function that has no others."""
    inputs = function.sx_in()
    results = function.call(inputs)
    outputs = [result for result, is_wanted in zip(results, wanted, strict=True) if is_wanted]
    needed = ca.Function("needed", inputs, outputs)
    codes = Counter(map(needed.instruction_id, range(needed.n_instructions())))
    counts: Counter[str] = Counter()
    for code, number in codes.items():
        if code not in _FREE:
            counts[_KIND.get(code, "others")] += number
    return counts
