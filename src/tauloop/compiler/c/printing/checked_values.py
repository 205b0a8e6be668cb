"""Selection of the values that generated code must check.

Sums, differences, products, square roots, sines and cosines of a number that is not finite are not
finite, and neither is a quotient with such a numerator. If an input leads to a checked output, or
to a residual of Newton's method, through such operations, it needs no check, because the output or
residual is not finite either. Pivots with the same expression need only one comparison.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from types import MappingProxyType

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.straight import Instruction, instructions
from tauloop.compiler.program import Evaluate, Newton, Pivot, Program

#: An element of an array: name and index.
Element = tuple[str, int]
#: Operations whose result is not finite if any operand is not.
_PROPAGATE_NOT_FINITE = frozenset(
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
#: Further operations whose result is NaN if any operand is.
_PROPAGATE_NAN = _PROPAGATE_NOT_FINITE | {ca.OP_DIV, ca.OP_INV}
#: Operations that preserve the magnitude of a number.
_KEEP_MAGNITUDE = frozenset({ca.OP_ASSIGN, ca.OP_NEG, ca.OP_FABS})
#: Arrays of checks that straight-line code writes.
_CHECKS = ("discriminants", "pivots")
#: Input with the default starts of Newton's method.
START = "start"
#: Number of functions whose checks are cached, because a function is printed for single samples and
#: for lanes.
_CACHED_FUNCTIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedValues:
    """Values that generated code checks.

    Attributes:
        inputs: checked elements of inputs, in order.
        outputs: checked elements of outputs, in order; the other elements are not finite only if a
            checked value is not finite.
        pivot_factors: for each array of pivots, the reciprocal typical size of each compared pivot,
            by index.
        implied: arrays of discriminants and pivots that need no check for NaN, because a checked
            output implies it.
    """

    inputs: tuple[Element, ...]
    outputs: tuple[Element, ...]
    pivot_factors: Mapping[str, Mapping[int, float]]
    implied: frozenset[str]


@functools.lru_cache(maxsize=_CACHED_FUNCTIONS)
def checked_values(
    program: Program, inputs: tuple[CPort, ...], outputs: tuple[CPort, ...], most: int
) -> CheckedValues:
    """Return the values that the code of a program checks.

    Args:
        program: program whose code performs the checks.
        inputs, outputs: ports of the function.
        most: largest size per sample of an output that is checked. If an output is larger, all
            inputs are checked.
    """
    codes = _codes(program, {port.name for port in outputs})
    factors = {
        name: _smallest_factors(program, codes, name, records)
        for name, records in _eliminations(program)
    }
    all_outputs_checked = all(port.size <= most for port in outputs)
    implied: frozenset[Element] = frozenset()
    implied_checks: frozenset[str] = frozenset()
    if all_outputs_checked:
        implied = _implied(program, codes, outputs)
        implied_checks = _implied_checks(program, codes, outputs)
    read = _read(program, codes)
    checked_inputs = []
    for port in inputs:
        for element in ((port.name, i) for i in range(port.size)):
            # Starts of Newton's method that no step reads need no check.
            may_matter = element in read or port.name != START or not all_outputs_checked
            if may_matter and element not in implied:
                checked_inputs.append(element)
    small_outputs = [
        (port.name, i) for port in outputs if port.size <= most for i in range(port.size)
    ]
    redundant = _redundant(program, codes, set(small_outputs))
    return CheckedValues(
        inputs=tuple(checked_inputs),
        outputs=tuple(element for element in small_outputs if element not in redundant),
        pivot_factors=MappingProxyType(factors),
        implied=implied_checks,
    )


def _codes(program: Program, outputs: Set[str]) -> list[tuple[Instruction, ...]]:
    """Return the instructions of each step on which outputs, checks or later steps depend.

    Steps of other kinds have no instructions.
    """
    inputs_of_steps = [name for step in program.steps for name in step.inputs]
    inputs_of_steps += [step.start for step in program.steps if isinstance(step, Newton)]
    wanted = {*outputs, "discriminants", "pivots", *inputs_of_steps}
    codes: list[tuple[Instruction, ...]] = []
    for step in program.steps:
        if isinstance(step, Evaluate):
            codes.append(
                instructions(step.function.function, [name in wanted for name in step.outputs])
            )
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
    """Return the reciprocal typical size of each distinct pivot, by the index of its first record.

    Of pivots with the same expression, the smallest reciprocal is returned.
    """
    expressions: dict[int, int] = {}
    for step, code in zip(program.steps, codes, strict=True):
        if isinstance(step, Evaluate) and name in step.outputs:
            port = step.outputs.index(name)
            expressions = {}
            for instruction in code:
                target = instruction.port
                is_output = instruction.operation == ca.OP_OUTPUT
                if is_output and target is not None and target[0] == port:
                    expressions[target[1]] = instruction.operands[0]
    smallest: dict[int, tuple[int, float]] = {}
    for i, record in enumerate(records):
        factor = 1.0 / max(record.typical, 1e-300)
        expression = expressions.get(i, -1 - i)  # without code, each pivot has its own expression
        first, smallest_factor = smallest.get(expression, (i, factor))
        smallest[expression] = first, min(smallest_factor, factor)
    return dict(smallest.values())


def _ports(step: Evaluate | Newton) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of the arrays that a step's code reads and writes."""
    if isinstance(step, Evaluate):
        return step.inputs, step.outputs
    return (step.solution, *step.inputs), (step.residual_values, "", "")


def _read(program: Program, codes: Sequence[Sequence[Instruction]]) -> set[Element]:
    """Return the elements that any step reads."""
    read: set[Element] = set()
    for step, code in zip(program.steps, codes, strict=True):
        if isinstance(step, Newton):
            read |= {(step.start, i) for i in range(step.size)}
        if isinstance(step, Evaluate | Newton):
            names, _ = _ports(step)
            read |= {
                (names[x.port[0]], x.port[1])
                for x in code
                if x.operation == ca.OP_INPUT and x.port is not None
            }
    return read


def _implied(
    program: Program, codes: Sequence[Sequence[Instruction]], outputs: Sequence[CPort]
) -> frozenset[Element]:
    """Return elements that, if not finite, make a checked output or a residual not finite."""
    implied: set[Element] = {(port.name, i) for port in outputs for i in range(port.size)}
    for step, code in zip(reversed(program.steps), reversed(codes), strict=True):
        if isinstance(step, Newton):
            implied |= {(step.residual_values, i) for i in range(step.size)}
        if isinstance(step, Evaluate | Newton):
            implied |= set(
                _read_elements(step, code, _propagating(step, code, implied, _PROPAGATE_NOT_FINITE))
            )
        if isinstance(step, Newton):
            implied |= {(step.start, i) for i in range(step.size) if (step.solution, i) in implied}
    return frozenset(implied - set(_wrapped(program, codes)))


def _wrapped(program: Program, codes: Sequence[Sequence[Instruction]]) -> Iterator[Element]:
    """Yield elements reduced by full revolutions, because rounding may make a huge angle small."""
    for step, code in zip(program.steps, codes, strict=True):
        if not isinstance(step, Evaluate | Newton):
            continue
        sources: set[int] = set()
        for instruction in reversed(code):
            if instruction.operation == ca.OP_FLOOR or instruction.number in sources:
                sources |= set(instruction.operands)
        yield from _read_elements(step, code, sources)


def _redundant(
    program: Program, codes: Sequence[Sequence[Instruction]], checked: Set[Element]
) -> set[Element]:
    """Return checked elements that, if not finite, make another checked element not finite.

    For example, back substitution computes each unknown from those before it.
    """
    redundant: set[Element] = set()
    for step, code in zip(program.steps, codes, strict=True):
        if not isinstance(step, Evaluate):
            continue
        propagating = _propagating(step, code, checked, _PROPAGATE_NOT_FINITE)
        sources: set[int] = set()
        for instruction in code:
            if instruction.number in propagating and instruction.operation in _PROPAGATE_NOT_FINITE:
                sources |= set(instruction.operands)
            elif instruction.number in propagating and instruction.operation == ca.OP_DIV:
                sources.add(instruction.operands[0])
        for instruction in code:
            if instruction.operation == ca.OP_OUTPUT and instruction.port is not None:
                element = step.outputs[instruction.port[0]], instruction.port[1]
                if element in checked and instruction.operands[0] in sources:
                    redundant.add(element)
    return redundant


def _implied_checks(
    program: Program, codes: Sequence[Sequence[Instruction]], outputs: Sequence[CPort]
) -> frozenset[str]:
    """Return the arrays of checks that contain NaN only if a checked output does."""
    implied_elements: set[Element] = {(port.name, i) for port in outputs for i in range(port.size)}
    implied: set[str] = set()
    for step, code in zip(reversed(program.steps), reversed(codes), strict=True):
        if isinstance(step, Newton):
            implied_elements |= {(step.residual_values, i) for i in range(step.size)}
        if not isinstance(step, Evaluate | Newton):
            continue
        propagating = _propagating(step, code, implied_elements, _PROPAGATE_NAN)
        _, results = _ports(step)
        for name in set(_CHECKS) & set(results):
            if all(origin in propagating for origin in _origins(code, results.index(name))):
                implied.add(name)
        implied_elements |= set(_read_elements(step, code, propagating))
        if isinstance(step, Newton):
            implied_elements |= {
                (step.start, i) for i in range(step.size) if (step.solution, i) in implied_elements
            }
    return frozenset(implied)


def _origins(code: Sequence[Instruction], port: int) -> Iterator[int]:
    """Yield the index of the instruction that determines the magnitude of each output element."""
    by_number = {instruction.number: instruction for instruction in code}
    for instruction in code:
        if (
            instruction.operation == ca.OP_OUTPUT
            and instruction.port is not None
            and instruction.port[0] == port
        ):
            origin = by_number[instruction.operands[0]]
            while origin.operation in _KEEP_MAGNITUDE:
                origin = by_number[origin.operands[0]]
            yield origin.number


def _propagating(
    step: Evaluate | Newton,
    code: Sequence[Instruction],
    implied: Set[Element],
    operations: Set[int],
) -> set[int]:
    """Return the instructions whose value, if not finite, makes an implied element not finite.

    Args:
        step: step of the program.
        code: instructions of the step.
        implied: elements that are checked, or that make checked elements not finite.
        operations: operations that propagate a value that is not finite from any operand.
    """
    _, results = _ports(step)
    propagating: set[int] = set()
    for instruction in reversed(code):
        if instruction.operation == ca.OP_OUTPUT and instruction.port is not None:
            if (results[instruction.port[0]], instruction.port[1]) in implied:
                propagating.add(instruction.operands[0])
        elif instruction.number in propagating and instruction.operation in operations:
            propagating |= set(instruction.operands)
        elif instruction.number in propagating and instruction.operation == ca.OP_DIV:
            propagating.add(instruction.operands[0])
    return propagating


def _read_elements(
    step: Evaluate | Newton, code: Sequence[Instruction], numbers: Set[int]
) -> Iterator[Element]:
    """Yield the elements that some instructions read."""
    names, _ = _ports(step)
    for instruction in code:
        if (
            instruction.operation == ca.OP_INPUT
            and instruction.port is not None
            and instruction.number in numbers
        ):
            yield names[instruction.port[0]], instruction.port[1]
