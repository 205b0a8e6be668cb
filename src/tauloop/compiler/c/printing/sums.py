"""Reordering of the sums in straight-line code: terms are added as they become available."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from tauloop.compiler.c.printing.dependences import READING
from tauloop.compiler.c.printing.straight import Instruction

#: Operations that make up a sum.
SUMMING = (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG)


def with_sums_in_order(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the code with the terms of every sum added in the order in which they are computed.

    Partial sums that other instructions use also remain.
    """
    sums = _Sums(code)
    rewritten: list[Instruction] = []
    for instruction in code:
        if instruction.operation not in SUMMING:
            rewritten.append(instruction)
        elif instruction.number not in sums.replaced_numbers:
            rewritten.extend(sums.chain(instruction))
    return tuple(_each_after_operands(rewritten))


class _Sums:
    """Sums of straight-line code, and their partial sums that no other instruction uses."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._producers: dict[int, Instruction] = {}
        self._positions: dict[int, int] = {}
        users: dict[int, Instruction | None] = {}
        self._last_number = 0
        for i, instruction in enumerate(code):
            number, operation, operands, _, _ = instruction
            if operation != ca.OP_OUTPUT:
                self._producers[number] = instruction
            self._positions[number] = -1 if operation in READING else i
            self._last_number = max(self._last_number, number)
            for operand in operands:
                users[operand] = None if operand in users else instruction
        #: Numbers of partial sums that a longer sum replaces.
        self.replaced_numbers = {
            number
            for number, user in users.items()
            if user is not None
            and user.operation in SUMMING
            and self._producers[number].operation in SUMMING
        }

    def chain(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions that compute a sum term by term."""
        if self.replaced_numbers.isdisjoint(instruction.operands):
            return [instruction]
        terms = sorted(self._terms(instruction), key=lambda term: self._positions[term[0]])
        if len(terms) == 1:  # the negative of a negative
            return [instruction._replace(operation=ca.OP_ASSIGN, operands=(terms[0][0],))]
        # A sum that starts with a subtracted term needs a further operation.
        terms[:2] = sorted(terms[:2], key=lambda term: not term[1])
        (partial, is_added), *others = terms
        chain = []
        if not is_added:
            chain.append(Instruction(self._new(), ca.OP_NEG, (partial,)))
            partial = chain[0].number
        for number, is_added in others:
            operation = ca.OP_ADD if is_added else ca.OP_SUB
            chain.append(Instruction(self._new(), operation, (partial, number)))
            partial = chain[-1].number
        return [*chain[:-1], chain[-1]._replace(number=instruction.number)]

    def _terms(self, instruction: Instruction) -> list[tuple[int, bool]]:
        """Return the numbers of the terms of a sum, and for each whether it is added."""
        terms = []
        waiting = [(instruction, True)]
        while waiting:
            partial, is_added = waiting.pop()
            signs = [is_added, is_added]
            if partial.operation != ca.OP_ADD:
                signs[-1] = not is_added
            if partial.operation == ca.OP_NEG:
                signs = signs[1:]
            for number, sign in zip(partial.operands, signs, strict=True):
                if number in self.replaced_numbers:
                    waiting.append((self._producers[number], sign))
                else:
                    terms.append((number, sign))
        return terms

    def _new(self) -> int:
        """Return a number for a new instruction."""
        self._last_number += 1
        return self._last_number


def _each_after_operands(code: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions with every value before its first use, otherwise in their order."""
    producers = {
        instruction.number: instruction
        for instruction in code
        if instruction.operation != ca.OP_OUTPUT
    }
    done: set[int] = set()
    ordered = []
    for root in code:
        if root.number not in done and done.issuperset(root.operands):
            done.add(root.number)
            ordered.append(root)
            continue
        path = [root]
        while path:
            missing = [producers[number] for number in path[-1].operands if number not in done]
            if missing:
                path.extend(reversed(missing))
                continue
            instruction = path.pop()
            if instruction.number not in done:
                done.add(instruction.number)
                ordered.append(instruction)
    return ordered
