"""Dependences between the instructions of straight-line code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.straight import Instruction

#: Operations that read an argument or a constant. Other instructions compute a value from values, or
#: store an output.
READING = (ca.OP_INPUT, ca.OP_CONST)


@dataclass(frozen=True, slots=True)
class Dependences:
    """Dependences of instructions, which are indices in the code.

    Attributes:
        code: the instructions.
        is_computed: whether an instruction computes a value from other values, or stores an output.
        readings: arguments and constants that an instruction reads.
        operands: values that an instruction needs, without arguments and constants.
        users: instructions that need a value.
    """

    code: tuple[Instruction, ...]
    is_computed: list[bool]
    readings: list[list[int]]
    operands: list[list[int]]
    users: list[list[int]]

    @classmethod
    def of(cls, code: Sequence[Instruction]) -> Dependences:
        """Return the graph of some code."""
        place = {
            instruction.number: i
            for i, instruction in enumerate(code)
            if instruction.operation != ca.OP_OUTPUT
        }
        is_computed = [instruction.operation not in READING for instruction in code]
        readings: list[list[int]] = []
        operands: list[list[int]] = []
        users: list[list[int]] = [[] for _ in code]
        for i, instruction in enumerate(code):
            needed = [place[number] for number in dict.fromkeys(instruction.operands)]
            readings.append([j for j in needed if not is_computed[j]])
            operands.append([j for j in needed if is_computed[j]])
            for j in operands[i]:
                users[j].append(i)
        return cls(tuple(code), is_computed, readings, operands, users)

    def with_readings(self, order: Iterable[int]) -> tuple[Instruction, ...]:
        """Return instructions in an order, each reading before the first instruction that needs it."""
        listed: dict[int, None] = {}
        for i in order:
            listed.update(dict.fromkeys(self.readings[i]))
            listed[i] = None
        return tuple(self.code[i] for i in listed)
