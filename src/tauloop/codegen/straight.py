"""Straight-line code as a list of instructions with single assignment, and its division into pieces.

Compilers take longer than in proportion to the length of a stretch of code. A long one is therefore cut in pieces;
what outlives its piece is kept in an array, whose places are used again when their values are no longer needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction; its number names the value that it makes.

    Attributes:
        number: place in CasADi's function.
        operation: CasADi's code of the operation.
        operands: numbers of the instructions whose values it takes.
        port: number of the argument that it reads or writes, and the place in it; None for all others.
        constant: its value where it is a constant.
    """

    number: int
    operation: int
    operands: tuple[int, ...]
    port: tuple[int, int] | None = None
    constant: float = 0.0


def instructions(function: ca.Function, wanted: Sequence[bool]) -> tuple[Instruction, ...]:
    """Instructions on which the wanted outputs depend, in order."""
    found: list[Instruction] = []
    maker: dict[int, int] = {}
    for k in range(function.n_instructions()):
        op = function.instruction_id(k)
        ins, outs = function.instruction_input(k), function.instruction_output(k)
        if op == ca.OP_OUTPUT:
            found.append(Instruction(number=k, operation=op, operands=(maker[ins[0]],), port=(outs[0], outs[1])))
            continue
        if op == ca.OP_INPUT:
            found.append(Instruction(number=k, operation=op, operands=(), port=(ins[0], ins[1])))
        elif op == ca.OP_CONST:
            constant = float(function.instruction_constant(k))
            found.append(Instruction(number=k, operation=op, operands=(), constant=constant))
        else:
            found.append(Instruction(number=k, operation=op, operands=tuple(maker[i] for i in ins)))
        maker[outs[0]] = k
    needed: set[int] = set()
    for one in reversed(found):
        if one.operation == ca.OP_OUTPUT:
            assert one.port is not None
            if wanted[one.port[0]]:
                needed.add(one.number)
        if one.number in needed:
            needed.update(one.operands)
    return tuple(one for one in found if one.number in needed)


def with_reciprocals(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The same code, with one reciprocal and products for several quotients by the same value, or one by a constant.

    A division takes as long as four to sixteen products; the results differ by rounding.
    """
    constants = {one.number: one.constant for one in code if one.operation == ca.OP_CONST and one.constant}
    quotients = Counter(one.operands[1] for one in code if one.operation == ca.OP_DIV)
    reciprocals = {one.operands[0]: one.number for one in code if one.operation == ca.OP_INV}
    following = max((one.number for one in code), default=0) + 1
    made: dict[int, int] = {}
    found: list[Instruction] = []
    for one in code:
        if one.operation == ca.OP_INV:
            if one.operands[0] in made:
                found.append(replace(one, operation=ca.OP_ASSIGN, operands=(made[one.operands[0]],)))
                continue
            made[one.operands[0]] = one.number
        elif one.operation == ca.OP_DIV:
            above, below = one.operands
            if below in made or below in constants or below in reciprocals or quotients[below] > 1:
                if below not in made:
                    made[below], following = following, following + 1
                    if below in constants:
                        inverse = Instruction(
                            number=made[below], operation=ca.OP_CONST, operands=(), constant=1 / constants[below]
                        )
                    else:
                        inverse = Instruction(number=made[below], operation=ca.OP_INV, operands=(below,))
                    found.append(inverse)
                found.append(replace(one, operation=ca.OP_MUL, operands=(above, made[below])))
                continue
        found.append(one)
    return tuple(found)


def needed_instructions(function: ca.Function, wanted: Sequence[bool]) -> set[int]:
    """Numbers of the instructions on which the wanted outputs depend."""
    return {one.number for one in instructions(function, wanted)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of straight-line code.

    Attributes:
        instructions: what it does; arguments and constants are read again wherever they are needed.
        fetched: values of earlier pieces that it needs, with their places.
        stored: values that later pieces need, with their places.
    """

    instructions: tuple[Instruction, ...]
    fetched: dict[int, int]
    stored: dict[int, int]


def pieces(code: Sequence[Instruction], longest: int, whole: int = 0) -> tuple[Piece, ...]:
    """Pieces of at most so many instructions, arguments and constants not counted.

    Args:
        code: the instructions.
        longest: instructions of a piece.
        whole: up to so many instructions stay in one piece.
    """
    sources = {one.number: one for one in code if one.operation in (ca.OP_INPUT, ca.OP_CONST)}
    working = [one for one in code if one.number not in sources]
    if len(working) <= max(longest, whole):
        return (Piece(instructions=tuple(code), fetched={}, stored={}),)
    size = -(-len(working) // -(-len(working) // longest))  # about equal ones
    parts = [working[first : first + size] for first in range(0, len(working), size)]
    home = {one.number: p for p, part in enumerate(parts) for one in part}
    last = {operand: p for p, part in enumerate(parts) for one in part for operand in one.operands}
    alive: dict[int, int] = {}
    free: list[int] = []
    places = 0
    found = []
    for p, part in enumerate(parts):
        operands = dict.fromkeys(operand for one in part for operand in one.operands)
        fetched = {k: alive[k] for k in operands if k in home and home[k] < p}
        stored: dict[int, int] = {}
        for one in part:
            if last.get(one.number, p) > p:
                if not free:
                    free.append(places)
                    places += 1
                alive[one.number] = stored[one.number] = free.pop()
        for ended in [k for k in alive if last[k] <= p]:  # only now: no place is read and written in the same piece
            free.append(alive.pop(ended))
        read = tuple(sources[k] for k in operands if k in sources)
        found.append(Piece(instructions=(*read, *part), fetched=fetched, stored=stored))
    return tuple(found)
