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

from collections.abc import Sequence
from typing import NamedTuple

from tauloop.compiler.c.printing.dependences import Dependences
from tauloop.compiler.c.printing.straight import Instruction
from tauloop.compiler.c.printing.sums import with_sums_in_order

#: Maximum number of instructions that are computed to use up one value. Larger numbers take longer
#: and find no better order (hexapod, Gantry-Tau, RCID).
MOST_AHEAD = 20
#: Number of searches; between them, sums are reordered. A fourth search finds no better order
#: (hexapod, Gantry-Tau, RCID).
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
    """Return the maximum number of live values; arguments and constants are not counted."""
    graph = Dependences.of(code)
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
    graph = Dependences.of(code)
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
        self._graph = graph = Dependences.of(code)
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
