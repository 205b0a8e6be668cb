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
        operands: instructions whose values an instruction uses, without arguments and constants.
        users: instructions that use the value of an instruction.
    """

    code: tuple[Instruction, ...]
    is_computed: list[bool]
    readings: list[list[int]]
    operands: list[list[int]]
    users: list[list[int]]

    @classmethod
    def of(cls, code: Sequence[Instruction]) -> Dependences:
        """Return the dependences of code in which every value is computed before its first use."""
        index_of_value: dict[int, int] = {}
        is_computed: list[bool] = []
        readings: list[list[int]] = []
        operands: list[list[int]] = []
        users: list[list[int]] = [[] for _ in code]
        for i, (number, operation, numbers, _, _) in enumerate(code):
            is_computed.append(operation not in READING)
            read: list[int] = []
            values: list[int] = []
            for k in numbers if len(numbers) < 2 else dict.fromkeys(numbers):
                j = index_of_value[k]
                if is_computed[j]:
                    values.append(j)
                    users[j].append(i)
                else:
                    read.append(j)
            readings.append(read)
            operands.append(values)
            if operation != ca.OP_OUTPUT:
                index_of_value[number] = i
        return cls(tuple(code), is_computed, readings, operands, users)

    def with_readings(self, order: Iterable[int]) -> tuple[Instruction, ...]:
        """Return instructions in an order, with each reading before its first use."""
        indices: dict[int, None] = {}
        for i in order:
            for j in self.readings[i]:
                indices[j] = None
            indices[i] = None
        return tuple([self.code[i] for i in indices])
