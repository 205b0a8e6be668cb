"""Orders of straight-line code by plain searches, which evaluate every candidate again."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import casadi as ca

from tauloop.compiler.c.printing import few_values
from tauloop.compiler.c.printing.dependences import Dependences
from tauloop.compiler.c.printing.scheduling import (
    DEFAULT_LATENCY,
    ISSUE_WIDTH,
    LATENCIES,
    REGISTERS,
)
from tauloop.compiler.c.printing.straight import Instruction
from tauloop.compiler.c.printing.sums import with_sums_in_order


def plain_few_live_values(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The code of `with_few_live_values`, by a search that determines every ending at each step."""
    candidates = [tuple(code)]
    order = plain_depth_first(code)
    for _ in range(few_values.SEARCHES):
        order = _early_ends(order)
        candidates.append(order)
        order = with_sums_in_order(order)
    return min(candidates, key=plain_most_live)


def plain_most_live(code: Sequence[Instruction]) -> int:
    """The maximum number of live values, from the first and the last place of each."""
    computed = {item.number: i for i, item in enumerate(code) if item.operation not in _NOT_VALUES}
    last = {number: i for i, item in enumerate(code) for number in item.operands}
    alive = [0] * len(code)
    for number, first in computed.items():
        for i in range(first, last.get(number, first)):
            alive[i] += 1
    return max(alive, default=0)


_NOT_VALUES = (ca.OP_INPUT, ca.OP_CONST, ca.OP_OUTPUT)


def plain_depth_first(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The code in depth-first order, by recursion."""
    graph = Dependences.of(code)
    needs: list[int] = []
    for operands in graph.operands:
        sizes = sorted((needs[j] for j in operands), reverse=True)
        needs.append(max([1, *(size + before for before, size in enumerate(sizes))]))
    order: list[int] = []

    def visit(i: int) -> None:
        for j in sorted(graph.operands[i], key=lambda j: -needs[j]):
            if j not in order:
                visit(j)
        order.append(i)

    for i, users in enumerate(graph.users):
        if graph.is_computed[i] and not users:
            visit(i)
    return graph.with_readings(order)


def _early_ends(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The code in the order in which the value with the best ending is used up first."""
    graph = Dependences.of(code)
    missing = {i for i, is_computed in enumerate(graph.is_computed) if is_computed}
    order: list[int] = []
    while missing:
        live = {j for j in order if not missing.isdisjoint(graph.users[j])}
        best = None
        for value in live:
            ending = _ending(graph, value, missing)
            if len(ending) > few_values.MAX_ENDING_LENGTH:
                continue
            left = missing - ending
            after = [j for j in live | ending if not left.isdisjoint(graph.users[j])]
            rank = (len(after) - len(live), len(ending), -value)
            if best is None or rank < best[0]:
                best = rank, ending
        ending = {min(missing)} if best is None else best[1]
        order += sorted(ending)
        missing -= ending
    return graph.with_readings(order)


def _ending(graph: Dependences, value: int, missing: set[int]) -> set[int]:
    """The missing instructions that use a value, and those on which they depend."""
    ending: set[int] = set()
    waiting = list(graph.users[value])
    while waiting:
        i = waiting.pop()
        if i in missing and i not in ending:
            ending.add(i)
            waiting += graph.operands[i]
    return ending


def plain_schedule(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The code of `scheduled`, by a search through all instructions that may come next."""
    graph = Dependences.of(code)
    places = range(len(code))
    latency = [LATENCIES.get(item.operation, DEFAULT_LATENCY) for item in code]
    chain = [0] * len(code)
    for i in reversed(places):
        chain[i] = latency[i] + max((chain[j] for j in graph.users[i]), default=0)
    ends: dict[int, int] = {}  # cycles in which results are available
    ready = [i for i in places if graph.is_computed[i] and not graph.operands[i]]
    later: list[tuple[int, int]] = []  # a heap: its order decides between equal instructions
    order: list[int] = []
    cycle = started = held = 0

    def takes(i: int) -> int:
        """Registers that an instruction takes in addition to those that it frees."""
        freed = [j for j in graph.operands[i] if set(graph.users[j]) - ends.keys() == {i}]
        return bool(graph.users[i]) - len(freed)

    def available(i: int) -> int:
        """The cycle in which all operands are available."""
        return max((ends[j] for j in graph.operands[i]), default=0)

    while ready or later:
        if started == ISSUE_WIDTH or not ready:
            cycle = cycle + 1 if ready else max(cycle + 1, later[0][0])
            started = 0
        while later and later[0][0] <= cycle:
            ready.append(heapq.heappop(later)[1])
        if held < REGISTERS:
            chosen = min(ready, key=lambda i: takes(i) - chain[i])
        else:
            chosen = min(ready, key=lambda i: (takes(i), -chain[i]))
            if takes(chosen) > 0:
                candidates = [*ready, *(i for _, i in later)]
                chosen = min(candidates, key=lambda i: (takes(i), available(i), -chain[i]))
        held += takes(chosen)
        if chosen in ready:
            ready.remove(chosen)
        else:
            later.remove((available(chosen), chosen))
            heapq.heapify(later)
        ends[chosen] = cycle + latency[chosen]
        order.append(chosen)
        started += 1
        for k in graph.users[chosen]:
            if all(j in ends for j in graph.operands[k]):
                heapq.heappush(later, (available(k), k))
    return graph.with_readings(order)
