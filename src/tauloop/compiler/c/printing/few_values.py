"""Order of straight-line code with few live values.

A value is live from its computation to its last use. Values beyond the number of registers are
stored to memory and loaded again. In the order in which equations are written, the forward dynamics
of a hexapod has 353 live values at once; in the order found here, it has 110.

The method has three steps, of which the last two are repeated:

1. `depth_first` computes each output completely before the next one.
2. `_EarlyEnds` repeatedly chooses the live value that can be used up with the fewest new live
   values, and computes what uses it.
3. `with_sums_in_order` adds the terms of every sum in the order in which they become available, so
   that a sum in progress is one live value instead of one for each term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.straight import Instruction

#: Operations that read an argument or a constant, which is not counted as a live value.
READING = (ca.OP_INPUT, ca.OP_CONST)
#: Operations that are terms of a sum.
SUMMING = (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG)
#: Maximum number of instructions that are computed to use up one value. Larger numbers take longer
#: and find no better order (hexapod, Gantry-Tau, RCID).
MOST_AHEAD = 20
#: Number of searches; between them, sums are reordered. A fourth search finds at most 5 % fewer
#: live values.
ROUNDS = 3


def with_few_live_values(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return equivalent code with few live values.

    The results differ by rounding, because sums are added in another order.

    Args:
        code: instructions, every value before its use.
    """
    best = tuple(code)
    least = most_live(best)
    order = depth_first(code)
    for _ in range(ROUNDS):
        order = _EarlyEnds(order).run()
        number = most_live(order)
        if number < least:
            best, least = order, number
        order = with_sums_in_order(order)
    return best


def most_live(code: Sequence[Instruction]) -> int:
    """Return the largest number of live values; arguments and constants are not counted."""
    graph = _Graph.of(code)
    uses = [len(users) for users in graph.users]
    alive = most = 0
    for i, operands in enumerate(graph.operands):
        alive += graph.is_computed[i] and uses[i] > 0
        for j in operands:
            uses[j] -= 1
            alive -= not uses[j]
        most = max(most, alive)
    return most


def depth_first(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the code in the order of a depth-first search from the outputs.

    Of the operands of an instruction, the one whose computation needs most live values comes first
    (Sethi and Ullman, 1970).
    """
    graph = _Graph.of(code)
    needs = [1] * len(code)
    for i, operands in enumerate(graph.operands):
        sizes = sorted((needs[j] for j in operands), reverse=True)
        needs[i] = max([1, *(size + before for before, size in enumerate(sizes))])
    is_done = [not is_computed for is_computed in graph.is_computed]
    order: list[int] = []
    for last, users in enumerate(graph.users):
        path = [] if users or is_done[last] else [last]
        while path:
            missing = [j for j in graph.operands[path[-1]] if not is_done[j]]
            if missing:
                path.append(max(missing, key=needs.__getitem__))
                continue
            i = path.pop()
            is_done[i] = True
            order.append(i)
    return graph.with_readings(order)


def with_sums_in_order(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the code with the terms of every sum added in the order in which they are computed.

    Partial sums that are used elsewhere remain.
    """
    sums = _Sums(code)
    rewritten: list[Instruction] = []
    for instruction in code:
        if instruction.number not in sums.inner:
            rewritten.extend(sums.chain(instruction))
    return tuple(_each_after_operands(rewritten))


@dataclass(frozen=True, slots=True)
class _Graph:
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
    def of(cls, code: Sequence[Instruction]) -> _Graph:
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


class _Ending(NamedTuple):
    """How a live value is used up. The smallest ending is the best one.

    Attributes:
        added: number of live values that this adds.
        length: number of instructions to compute.
        age: minus the index of the value, so that recent values come first.
        instructions: the instructions to compute, as indices in the code.
    """

    added: int
    length: int
    age: int
    instructions: list[int]


class _EarlyEnds:
    """Search for an order in which live values are used up early.

    An ending changes only with the values that it concerns. It is then determined again before the
    next choice.
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._graph = graph = _Graph.of(code)
        self._is_done = [not is_computed for is_computed in graph.is_computed]
        self._uses = [len(users) for users in graph.users]
        self._order: list[int] = []
        # how each live value is used up, without values for which this takes too many instructions
        self._endings: dict[int, _Ending] = {}
        self._changed: set[int] = set()
        # values whose endings concern a value, and how often one of these endings uses it at most
        self._concerned: list[set[int]] = [set() for _ in code]
        self._most_used = [0] * len(code)

    def run(self) -> tuple[Instruction, ...]:
        """Return all instructions in their new order."""
        for first in range(len(self._is_done)):
            while not self._is_done[first]:
                self._continue(first)
        return self._graph.with_readings(self._order)

    def _continue(self, first: int) -> None:
        """Use up the value with the best ending, or compute the first missing instruction."""
        for value in self._changed:
            if self._uses[value]:
                self._determine_ending(value)
        self._changed.clear()
        if not self._endings:
            self._compute(first)
            return
        for i in min(self._endings.values()).instructions:
            self._compute(i)

    def _determine_ending(self, value: int) -> None:
        """Determine how a live value is used up."""
        operands, is_done, uses = self._graph.operands, self._is_done, self._uses
        self._endings.pop(value, None)
        needed: set[int] = set()
        used: dict[int, int] = {}
        waiting = [i for i in self._graph.users[value] if not is_done[i]]
        while waiting and len(needed) <= MOST_AHEAD:
            i = waiting.pop()
            if i in needed:
                continue
            needed.add(i)
            for j in operands[i]:
                used[j] = used.get(j, 0) + 1
                if not is_done[j]:
                    waiting.append(j)
        for i in needed:
            self._concerned[i].add(value)
        if len(needed) > MOST_AHEAD:
            return
        added = sum(uses[i] > used.get(i, 0) for i in needed)
        for j, number in used.items():
            if j not in needed:
                added -= uses[j] == number
                self._concerned[j].add(value)
                self._most_used[j] = max(self._most_used[j], number)
        self._endings[value] = _Ending(added, len(needed), -value, sorted(needed))

    def _compute(self, i: int) -> None:
        """Append an instruction to the order."""
        self._is_done[i] = True
        self._order.append(i)
        self._note_change(i)
        for j in self._graph.operands[i]:
            self._uses[j] -= 1
            if self._uses[j] <= self._most_used[j]:
                self._note_change(j)
            if not self._uses[j]:
                self._endings.pop(j, None)
        self._changed.add(i)

    def _note_change(self, i: int) -> None:
        self._changed |= self._concerned[i]
        self._concerned[i].clear()
        self._most_used[i] = 0


class _Sums:
    """Sums with partial sums that nothing else uses."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._makers = {
            instruction.number: instruction
            for instruction in code
            if instruction.operation != ca.OP_OUTPUT
        }
        self._places = {
            instruction.number: -1 if instruction.operation in READING else i
            for i, instruction in enumerate(code)
        }
        self._last_number = max((instruction.number for instruction in code), default=0)
        self._only_user: dict[int, Instruction | None] = {}
        for instruction in code:
            for number in instruction.operands:
                self._only_user[number] = None if number in self._only_user else instruction
        #: Numbers of partial sums that a longer sum replaces.
        self.inner = {number for number in self._makers if self._is_inner(number)}

    def _is_inner(self, number: int) -> bool:
        user = self._only_user.get(number)
        is_sum = self._makers[number].operation in SUMMING
        return is_sum and user is not None and user.operation in SUMMING

    def chain(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions that compute a sum; others are returned unchanged."""
        is_long = not self.inner.isdisjoint(instruction.operands)
        if instruction.operation not in SUMMING or not is_long:
            return [instruction]
        terms = sorted(self._terms(instruction), key=lambda term: self._places[term[0]])
        if len(terms) == 1:  # the negative of a negative
            return [instruction._replace(operation=ca.OP_ASSIGN, operands=(terms[0][0],))]
        # a sum that starts with a subtracted term needs a further operation
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
        """Return the numbers of the terms of a sum, and whether each is added or subtracted."""
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
                if number in self.inner:
                    waiting.append((self._makers[number], sign))
                else:
                    terms.append((number, sign))
        return terms

    def _new(self) -> int:
        self._last_number += 1
        return self._last_number


def _each_after_operands(code: Sequence[Instruction]) -> list[Instruction]:
    """Return the instructions with every value before its use, otherwise in their order."""
    makers = {
        instruction.number: instruction
        for instruction in code
        if instruction.operation != ca.OP_OUTPUT
    }
    done: set[int] = set()
    ordered = []
    for last in code:
        path = [last]
        while path:
            missing = [makers[number] for number in path[-1].operands if number not in done]
            if missing:
                path.extend(reversed(missing))
                continue
            instruction = path.pop()
            if instruction.number not in done:
                done.add(instruction.number)
                ordered.append(instruction)
    return ordered
