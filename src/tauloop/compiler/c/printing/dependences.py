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
        """Return the graph of some code, with every value before its use."""
        place: dict[int, int] = {}
        is_computed: list[bool] = []
        readings: list[list[int]] = []
        operands: list[list[int]] = []
        users: list[list[int]] = [[] for _ in code]
        for i, (number, operation, needed, _, _) in enumerate(code):
            is_computed.append(operation not in READING)
            read: list[int] = []
            values: list[int] = []
            for k in needed if len(needed) < 2 else dict.fromkeys(needed):
                j = place[k]
                if is_computed[j]:
                    values.append(j)
                    users[j].append(i)
                else:
                    read.append(j)
            readings.append(read)
            operands.append(values)
            if operation != ca.OP_OUTPUT:
                place[number] = i
        return cls(tuple(code), is_computed, readings, operands, users)

    def with_readings(self, order: Iterable[int]) -> tuple[Instruction, ...]:
        """Return instructions in an order, each reading before the first instruction that needs it."""
        listed: dict[int, None] = {}
        for i in order:
            for j in self.readings[i]:
                listed[j] = None
            listed[i] = None
        return tuple([self.code[i] for i in listed])
