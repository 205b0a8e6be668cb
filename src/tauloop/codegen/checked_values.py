"""Which numbers generated code must check itself, and which follow from others that are checked anyway.

A number that is not finite (infinite or not-a-number) stays so through sums, differences, products, square roots, sines
and cosines, and as the numerator of a quotient. An input from which such a path leads to a checked output, or to a
residual of Newton's method, needs no check of its own: the output or the residual is not finite either. Pivots that are
the same expression need only one comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType

import casadi as ca

from tauloop.codegen.signature import CPort
from tauloop.codegen.straight import Instruction, instructions
from tauloop.programs.program import Evaluate, Newton, Pivot, Program
from tauloop.records import dataclass

#: An element of an array: its name and the place in it.
Element = tuple[str, int]
#: Operations whose result is not finite where any operand is not.
_KEEP_ALL = frozenset(
    {
        ca.OP_ASSIGN,
        ca.OP_ADD,
        ca.OP_SUB,
        ca.OP_MUL,
        ca.OP_NEG,
        ca.OP_SQ,
        ca.OP_TWICE,
        ca.OP_SQRT,
        ca.OP_SIN,
        ca.OP_COS,
        ca.OP_FABS,
    }
)
#: The values that starts of Newton's method have where nothing else is known.
START = "start"
#: Functions whose checks are kept: one is printed for single samples and for lanes.
_KEPT_FUNCTIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedValues:
    """Numbers that generated code checks.

    Attributes:
        inputs: elements of inputs, in order.
        pivot_factors: for each array of pivots, one over the typical size of those that are compared, by place.
    """

    inputs: tuple[Element, ...]
    pivot_factors: Mapping[str, Mapping[int, float]]


@functools.lru_cache(maxsize=_KEPT_FUNCTIONS)
def checked_values(program: Program, inputs: tuple[CPort, ...], outputs: tuple[CPort, ...], most: int) -> CheckedValues:
    """Return what the code of a program checks besides its outputs.

    Args:
        program: the steps.
        inputs, outputs: ports of the function.
        most: numbers per sample of the largest output that is checked. Where an output is not, all inputs are checked.
    """
    codes = _codes(program, {port.name for port in outputs})
    factors = {name: _smallest_factors(program, codes, name, records) for name, records in _eliminations(program)}
    is_whole = all(port.size <= most for port in outputs)
    implied = _implied(program, codes, outputs) if is_whole else frozenset()
    read = _read(program, codes)
    elements = [(port.name, i) for port in inputs for i in range(port.size)]
    needed = (x for x in elements if x not in implied and (x in read or x[0] != START or not is_whole))
    return CheckedValues(inputs=tuple(needed), pivot_factors=MappingProxyType(factors))


def _codes(program: Program, outputs: Set[str]) -> list[tuple[Instruction, ...]]:
    """Return the instructions of each step on which outputs, checks or later steps depend; none of other solvers."""
    later = [name for step in program.steps for name in step.inputs]
    later += [step.start for step in program.steps if isinstance(step, Newton)]
    wanted = {*outputs, "discriminants", "pivots", *later}
    codes: list[tuple[Instruction, ...]] = []
    for step in program.steps:
        if isinstance(step, Evaluate):
            codes.append(instructions(step.function.function, [name in wanted for name in step.outputs]))
        elif isinstance(step, Newton):
            codes.append(instructions(step.function.function, [True, False, False]))
        else:
            codes.append(())
    return codes


def _eliminations(program: Program) -> Iterator[tuple[str, Sequence[Pivot]]]:
    """Yield the arrays of pivots with their records."""
    for step in program.steps:
        if isinstance(step, Newton):
            yield step.pivot_values, step.pivots
    yield "pivots", program.pivots


def _smallest_factors(
    program: Program, codes: Sequence[Sequence[Instruction]], name: str, records: Sequence[Pivot]
) -> dict[int, float]:
    """Return one over the typical size of each pivot by its place, once for pivots that are the same expression."""
    expressions: dict[int, int] = {}
    for step, code in zip(program.steps, codes, strict=True):
        if isinstance(step, Evaluate) and name in step.outputs:
            port = step.outputs.index(name)
            written = (x for x in code if x.operation == ca.OP_OUTPUT and x.port is not None and x.port[0] == port)
            expressions = {x.port[1]: x.operands[0] for x in written if x.port is not None}
    smallest: dict[int, tuple[int, float]] = {}
    for i, record in enumerate(records):
        factor = 1.0 / max(record.typical, 1e-300)
        expression = expressions.get(i, -1 - i)
        first, least = smallest.get(expression, (i, factor))
        smallest[expression] = first, min(least, factor)
    return dict(smallest.values())


def _ports(step: Evaluate | Newton) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the arrays that a step's code reads and writes."""
    if isinstance(step, Evaluate):
        return step.inputs, step.outputs
    return (step.solution, *step.inputs), (step.residual_values, "", "")


def _read(program: Program, codes: Sequence[Sequence[Instruction]]) -> set[Element]:
    """Return the elements that are read by any step."""
    read: set[Element] = set()
    for step, code in zip(program.steps, codes, strict=True):
        if isinstance(step, Newton):
            read |= {(step.start, i) for i in range(step.size)}
        if isinstance(step, Evaluate | Newton):
            names, _ = _ports(step)
            read |= {(names[x.port[0]], x.port[1]) for x in code if x.operation == ca.OP_INPUT and x.port is not None}
    return read


def _implied(program: Program, codes: Sequence[Sequence[Instruction]], outputs: Sequence[CPort]) -> frozenset[Element]:
    """Return the elements that make a checked output or a residual not finite where they are not finite."""
    implied: set[Element] = {(port.name, i) for port in outputs for i in range(port.size)}
    for step, code in zip(reversed(program.steps), reversed(codes), strict=True):
        if isinstance(step, Newton):
            implied |= {(step.residual_values, i) for i in range(step.size)}
        if isinstance(step, Evaluate | Newton):
            implied |= set(_spread(step, code, implied))
        if isinstance(step, Newton):
            implied |= {(step.start, i) for i in range(step.size) if (step.solution, i) in implied}
    return frozenset(implied)


def _spread(step: Evaluate | Newton, code: Sequence[Instruction], implied: Set[Element]) -> Iterator[Element]:
    """Yield the elements that a step reads and that make one of the elements it writes not finite."""
    names, results = _ports(step)
    spoiling: set[int] = set()
    for instruction in reversed(code):
        is_output = instruction.operation == ca.OP_OUTPUT and instruction.port is not None
        if is_output and (results[instruction.port[0]], instruction.port[1]) in implied:  # type: ignore[index]
            spoiling.add(instruction.operands[0])
        elif instruction.number not in spoiling:
            continue
        elif instruction.operation == ca.OP_INPUT and instruction.port is not None:
            yield names[instruction.port[0]], instruction.port[1]
        elif instruction.operation in _KEEP_ALL:
            spoiling |= set(instruction.operands)
        elif instruction.operation == ca.OP_DIV:
            spoiling.add(instruction.operands[0])
