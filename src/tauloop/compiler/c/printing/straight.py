"""Straight-line code as a list of single-assignment instructions, and its division into pieces.

Compile times grow faster than the length of straight-line code. Long code is therefore divided into
pieces. Values that later pieces need are stored in an array, whose elements are reused when they
are no longer needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.operators import read_instructions

#: Operation of a hidden copy (see `recomputed`), which CasADi does not have.
HIDDEN = -1


class Instruction(NamedTuple):
    """One instruction; its number identifies the value that it computes.

    It is a tuple, because a program has thousands of instructions and a dataclass takes longer to
    create.

    Attributes:
        number: index of the instruction in CasADi's function.
        operation: CasADi's code of the operation, or `HIDDEN`.
        operands: numbers of the instructions that compute the operands.
        port: index of the input that is read or of the output that is written, and index of its
            element; None for other instructions.
        constant: value of a constant.
    """

    number: int
    operation: int
    operands: tuple[int, ...]
    port: tuple[int, int] | None = None
    constant: float = 0.0


def instructions(function: ca.Function, wanted: Sequence[bool]) -> tuple[Instruction, ...]:
    """Return the instructions on which the wanted outputs depend, in order.

    Args:
        function: function of SX symbols.
        wanted: whether each output is wanted.
    """
    all_instructions: list[Instruction] = []
    producer: dict[int, int] = {}
    for k, (op, ins, outs) in enumerate(read_instructions(function)):
        if op == ca.OP_CONST:
            all_instructions.append(
                Instruction(k, op, (), None, float(function.instruction_constant(k)))
            )
            producer[outs[0]] = k
            continue
        if op == ca.OP_OUTPUT:
            all_instructions.append(Instruction(k, op, (producer[ins[0]],), (outs[0], outs[1])))
            continue
        if op == ca.OP_INPUT:
            all_instructions.append(Instruction(k, op, (), (ins[0], ins[1])))
        else:
            all_instructions.append(Instruction(k, op, tuple([producer[i] for i in ins])))
        producer[outs[0]] = k
    needed_numbers: set[int] = set()
    for instruction in reversed(all_instructions):
        if instruction.operation == ca.OP_OUTPUT:
            assert instruction.port is not None
            if wanted[instruction.port[0]]:
                needed_numbers.add(instruction.number)
        if instruction.number in needed_numbers:
            needed_numbers.update(instruction.operands)
    return tuple(
        instruction for instruction in all_instructions if instruction.number in needed_numbers
    )


def with_reciprocals(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return code in which several divisions by the same value are products with its reciprocal.

    Divisions by constants are also replaced. A division takes as long as four to sixteen products.
    The results differ by rounding.
    """
    constants = {
        instruction.number: instruction.constant
        for instruction in code
        if instruction.operation == ca.OP_CONST and instruction.constant
    }
    quotients = Counter(
        instruction.operands[1] for instruction in code if instruction.operation == ca.OP_DIV
    )
    reciprocals = {
        instruction.operands[0]: instruction.number
        for instruction in code
        if instruction.operation == ca.OP_INV
    }
    next_number = max((instruction.number for instruction in code), default=0) + 1
    inverses: dict[int, int] = {}
    rewritten: list[Instruction] = []
    for instruction in code:
        if instruction.operation == ca.OP_INV:
            if instruction.operands[0] in inverses:
                rewritten.append(
                    instruction._replace(
                        operation=ca.OP_ASSIGN, operands=(inverses[instruction.operands[0]],)
                    )
                )
                continue
            inverses[instruction.operands[0]] = instruction.number
        elif instruction.operation == ca.OP_DIV:
            numerator, denominator = instruction.operands
            has_reciprocal = (
                denominator in inverses or denominator in constants or denominator in reciprocals
            )
            if has_reciprocal or quotients[denominator] > 1:
                if denominator not in inverses:
                    inverses[denominator] = next_number
                    next_number += 1
                    if denominator in constants:
                        inverse = Instruction(
                            number=inverses[denominator],
                            operation=ca.OP_CONST,
                            operands=(),
                            constant=1 / constants[denominator],
                        )
                    else:
                        inverse = Instruction(
                            number=inverses[denominator],
                            operation=ca.OP_INV,
                            operands=(denominator,),
                        )
                    rewritten.append(inverse)
                rewritten.append(
                    instruction._replace(
                        operation=ca.OP_MUL, operands=(numerator, inverses[denominator])
                    )
                )
                continue
        rewritten.append(instruction)
    return tuple(rewritten)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of straight-line code.

    Attributes:
        instructions: instructions of the piece; arguments and constants are read again if needed.
        fetched: values of earlier pieces that the piece needs, with their indices in the array of
            stored values.
        stored: values that later pieces need, with their indices in the same array.
    """

    instructions: tuple[Instruction, ...]
    fetched: dict[int, int]
    stored: dict[int, int]


def pieces(code: Sequence[Instruction], longest: int, whole: int = 0) -> tuple[Piece, ...]:
    """Return pieces of code with a limited number of instructions.

    Arguments and constants are not counted.

    Args:
        code: the instructions.
        longest: maximum number of instructions of a piece.
        whole: maximum number of instructions of code that is not divided.
    """
    sources = {
        instruction.number: instruction
        for instruction in code
        if instruction.operation in (ca.OP_INPUT, ca.OP_CONST)
    }
    computing = [instruction for instruction in code if instruction.number not in sources]
    if len(computing) <= max(longest, whole):
        return (Piece(instructions=tuple(code), fetched={}, stored={}),)
    size = -(-len(computing) // -(-len(computing) // longest))  # pieces of similar sizes
    parts = [computing[first : first + size] for first in range(0, len(computing), size)]
    piece_of = {instruction.number: p for p, part in enumerate(parts) for instruction in part}
    last_use = {
        operand: p
        for p, part in enumerate(parts)
        for instruction in part
        for operand in instruction.operands
    }
    array_index: dict[int, int] = {}
    free_indices: list[int] = []
    size_of_array = 0
    result = []
    for p, part in enumerate(parts):
        operands = dict.fromkeys(
            operand for instruction in part for operand in instruction.operands
        )
        fetched = {k: array_index[k] for k in operands if k in piece_of and piece_of[k] < p}
        stored: dict[int, int] = {}
        for instruction in part:
            if last_use.get(instruction.number, p) > p:
                if not free_indices:
                    free_indices.append(size_of_array)
                    size_of_array += 1
                array_index[instruction.number] = stored[instruction.number] = free_indices.pop()
        # elements are freed only now, so that a piece does not read and write the same element
        for number in [k for k in array_index if last_use[k] <= p]:
            free_indices.append(array_index.pop(number))
        read = tuple(sources[k] for k in operands if k in sources)
        result.append(Piece(instructions=(*read, *part), fetched=fetched, stored=stored))
    return tuple(result)
