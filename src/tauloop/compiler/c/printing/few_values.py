"""Order of straight-line code with few live values.

A value is live from its computation to its last use. Values beyond the number of registers are
stored to memory and loaded again. In the order in which equations are written, the forward dynamics
of a hexapod has 353 live values at once; in the order of this search, it has 110.

The method has three steps, of which the last two are repeated:

1. `depth_first` computes each output completely before the next one.
2. `_EndingSearch` repeatedly chooses the live value whose last use requires the fewest new live
   values, and computes all instructions up to this use.
3. `with_sums_in_order` adds the terms of every sum in the order in which they become available, so
   that a sum in progress is one live value instead of one for each term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tauloop.compiler.c.printing.dependences import Dependences
from tauloop.compiler.c.printing.straight import Instruction
from tauloop.compiler.c.printing.sums import with_sums_in_order

#: Maximum number of instructions that are computed to end the live range of a value. Larger numbers
#: take longer and find no better order (hexapod, Gantry-Tau, RCID).
MAX_ENDING_LENGTH = 20
#: Number of searches; between them, sums are reordered. A fourth search finds no better order
#: (hexapod, Gantry-Tau, RCID).
SEARCHES = 3


def with_few_live_values(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return equivalent code with few live values.

    The order of additions changes, so results differ by rounding errors.

    Args:
        code: instructions; every value is computed before its first use.
    """
    best = tuple(code)
    graph = Dependences.of(best)
    best_count = _max_live_values(graph, range(len(best)))
    new_code = graph.with_readings(_depth_first(graph))
    for search in range(SEARCHES):
        if search > 0:
            new_code = with_sums_in_order(new_code)
        graph = Dependences.of(new_code)
        order = _EndingSearch(graph).run()
        new_code = graph.with_readings(order)
        count = _max_live_values(graph, order)
        if count < best_count:
            best = new_code
            best_count = count
    return best


def max_live_values(code: Sequence[Instruction]) -> int:
    """Return the maximum number of live values; arguments and constants are not counted."""
    return _max_live_values(Dependences.of(code), range(len(code)))


def _max_live_values(graph: Dependences, order: Iterable[int]) -> int:
    """Return the maximum number of live values in an order of the instructions."""
    operands, is_computed = graph.operands, graph.is_computed
    remaining_uses = [len(users) for users in graph.users]
    live = 0
    max_live = 0
    for i in order:
        if is_computed[i] and remaining_uses[i]:
            live += 1
        for j in operands[i]:
            remaining_uses[j] -= 1
            if not remaining_uses[j]:
                live -= 1
        if live > max_live:
            max_live = live
    return max_live


def depth_first(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the code in the order of a depth-first search from the outputs.

    Of the operands of an instruction, the one whose computation needs the most live values is
    computed first (Sethi and Ullman, 1970).
    """
    graph = Dependences.of(code)
    return graph.with_readings(_depth_first(graph))


def _depth_first(graph: Dependences) -> list[int]:
    """Return the order of a depth-first search, without arguments and constants."""
    needs = _needed_live_values(graph)
    is_done = [not is_computed for is_computed in graph.is_computed]
    order: list[int] = []
    for root, users in enumerate(graph.users):
        # The search starts at instructions without users, which store outputs.
        path = [] if users or is_done[root] else [root]
        while path:
            pending = [j for j in graph.operands[path[-1]] if not is_done[j]]
            if pending:
                path.append(max(pending, key=needs.__getitem__))
                continue
            i = path.pop()
            is_done[i] = True
            order.append(i)
    return order


def _needed_live_values(graph: Dependences) -> list[int]:
    """Return the number of live values that computing each value needs, if values are used once.

    The operand with the largest need is computed first. While operand k is computed, the k operands
    before it are live.
    """
    needs = [1] * len(graph.operands)
    for i, operands in enumerate(graph.operands):
        if len(operands) == 1:
            needs[i] = needs[operands[0]]
        elif operands:
            operand_needs = sorted([needs[j] for j in operands], reverse=True)
            needs[i] = max([need + k for k, need in enumerate(operand_needs)])
    return needs


class _EndingSearch:
    """Search for an order in which the live ranges of values end early.

    A pending instruction has not been computed yet. The ending of a live value consists of all
    pending instructions that use the value, and of the pending instructions on which these depend.
    Computing the ending ends the value's live range. Sets of instructions are integers with one bit
    for each instruction, which take n^2 / 16 bytes for n instructions.

    The best ending adds the fewest live values. Among equal endings, the shortest is best, and then
    the ending of the most recent value. While an ending has at most `MAX_ENDING_LENGTH`
    instructions, its rank is updated with each computed instruction:

    - An instruction of the ending shortens it. The change of the number of live values by this
      instruction then no longer belongs to the ending.
    - If all pending instructions that use another live value belong to the ending, then the ending
      also ends the live range of that value.
    """

    def __init__(self, graph: Dependences) -> None:
        n = len(graph.code)
        self._graph = graph
        self._is_done = [not is_computed for is_computed in graph.is_computed]
        self._remaining_uses = [len(users) for users in graph.users]
        self._pending = sum(1 << i for i in range(n) if graph.is_computed[i])
        self._endings = _endings(graph)
        #: Ranks of short endings by value; the smallest is the best. A rank is an integer that
        #: encodes the number of added live values, the length, and minus the value, in this order.
        self._ranks: dict[int, int] = {}
        self._per_instruction = n
        self._per_live_value = n * (MAX_ENDING_LENGTH + 1)
        #: For each instruction, the values whose short endings contain it. Values that are no
        #: longer live remain in the set.
        self._values: list[set[int]] = [set() for _ in range(n)]
        #: Values with long endings, by the number of computed instructions at which their endings
        #: may have become short.
        self._postponed: list[list[int]] = [[] for _ in range(n + 1)]

    def run(self) -> list[int]:
        """Return the computed instructions in their new order."""
        order: list[int] = []
        first = 0
        while True:
            if self._ranks:
                value = -min(self._ranks.values()) % self._per_instruction
                ending = _members(self._endings[value] & self._pending)
            else:
                while first < len(self._is_done) and self._is_done[first]:
                    first += 1
                if first == len(self._is_done):
                    return order
                ending = [first]
            for i in ending:
                self._compute(i)
            new_values = [i for i in ending if self._remaining_uses[i]]
            for count in range(len(order) + 1, len(order) + len(ending) + 1):
                new_values += self._postponed[count]
            order += ending
            for value in new_values:
                self._determine_ending(value, len(order))

    def _compute(self, i: int) -> None:
        """Compute an instruction, and update the ranks of the endings that change."""
        uses, ranks, values = self._remaining_uses, self._ranks, self._values[i]
        self._is_done[i] = True
        self._pending ^= 1 << i
        change = -self._per_instruction
        if uses[i]:
            change -= self._per_live_value
        for j in self._graph.operands[i]:
            uses[j] -= 1
            if not uses[j]:
                change += self._per_live_value
                ranks.pop(j, None)
            elif ranks and uses[j] <= MAX_ENDING_LENGTH:
                for value in self._values_that_end(j) - values:
                    if value in ranks:
                        ranks[value] -= self._per_live_value
        for value in values:
            if value in ranks:
                ranks[value] += change
        values.clear()

    def _values_that_end(self, j: int) -> set[int]:
        """Return the values whose short endings contain all pending instructions that use j."""
        common: set[int] | None = None
        for i in self._graph.users[j]:
            if not self._is_done[i]:
                common = self._values[i] if common is None else common & self._values[i]
                if not common:
                    break
        return common or set()

    def _determine_ending(self, value: int, computed: int) -> None:
        """Determine the rank of a live value's ending if it is short; postpone it otherwise.

        Args:
            value: the value.
            computed: number of instructions that have been computed.
        """
        ending = self._endings[value] & self._pending
        length = ending.bit_count()
        if not length:
            return
        if length > MAX_ENDING_LENGTH:
            self._postponed[computed + length - MAX_ENDING_LENGTH].append(value)
            return
        operands, remaining_uses = self._graph.operands, self._remaining_uses
        uses_in_ending: dict[int, int] = {}
        instructions = _members(ending)
        for i in instructions:
            self._values[i].add(value)
            for j in operands[i]:
                uses_in_ending[j] = uses_in_ending.get(j, 0) + 1
        added = 0
        for i in instructions:
            if remaining_uses[i] > uses_in_ending.pop(i, 0):
                added += 1
        for j, count in uses_in_ending.items():
            if remaining_uses[j] == count:
                added -= 1
        self._ranks[value] = added * self._per_live_value + length * self._per_instruction - value


def _endings(graph: Dependences) -> list[int]:
    """Return for each value the instructions that use it and their dependences, as sets of bits."""
    dependences: list[int] = []
    for i, operands in enumerate(graph.operands):
        bits = 1 << i if graph.is_computed[i] else 0
        for j in operands:
            bits |= dependences[j]
        dependences.append(bits)
    endings = []
    for users in graph.users:
        bits = 0
        for i in users:
            bits |= dependences[i]
        endings.append(bits)
    return endings


def _members(bits: int) -> list[int]:
    """Return the indices of the bits that are set, in ascending order."""
    numbers = []
    number = -1
    while bits:
        distance = (bits & -bits).bit_length()
        bits >>= distance
        number += distance
        numbers.append(number)
    return numbers
