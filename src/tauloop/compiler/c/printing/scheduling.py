"""Order of straight-line code with short waits for operands and few live values.

Compilers mostly keep the given order. In the order in which equations are written, a processor
waits for chains of operations, or needs more values at once than it has registers.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import casadi as ca

from tauloop.compiler.c.printing.dependences import Dependences
from tauloop.compiler.c.printing.straight import Instruction

#: Latencies in cycles of slow operations, and of sums and products.
LATENCIES = {
    ca.OP_DIV: 13,
    ca.OP_INV: 13,
    ca.OP_SQRT: 20,
    ca.OP_SIN: 60,
    ca.OP_COS: 60,
    ca.OP_ATAN2: 80,
    ca.OP_EXP: 60,
}
LATENCY = 4
#: Number of values that fit into registers (x86 without AVX-512), and number of instructions that
#: start in one cycle.
REGISTERS = 16
WIDTH = 2


def scheduled(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the instructions in another order, by list scheduling.

    While registers are free, the next instruction is the one with the longest chain of operations
    to the end. If no register is free, it is the one that frees most registers. If all instructions
    need a further register, it is the one that has waited longest, which continues the current part
    of the machine. Arguments and constants come before the first instruction that reads them.

    Args:
        code: instructions, every value before its use.
    """
    return _Schedule(code).run()


class _Schedule:
    """State of a list scheduling; instructions are indices in the code."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        every = range(len(code))
        self._graph = graph = Dependences.of(code)
        self._operands, self._users = graph.operands, graph.users
        self._latency = [LATENCIES.get(instruction.operation, LATENCY) for instruction in code]
        self._chain = [0] * len(code)
        for i in reversed(every):
            self._chain[i] = self._latency[i] + max(
                (self._chain[j] for j in self._users[i]), default=0
            )
        self._done = [False] * len(code)
        self._available = [0] * len(code)
        self._missing = [len(self._operands[i]) for i in every]
        self._uses = [len(users) for users in self._users]
        # number of registers that an instruction takes: one for its result, minus those of operands
        # that no other instruction needs
        self._takes = [int(bool(users)) for users in self._users]
        for i in every:
            self._takes[i] -= sum(self._uses[j] == 1 for j in self._operands[i])
        self._urgent = [0] * len(code)
        self._frugal = [(0, 0)] * len(code)
        self._oldest = [(0, 0, 0)] * len(code)
        for i in every:
            self._rank(i)
        self._now = [i for i in every if not self._missing[i] and graph.is_computed[i]]
        self._waiting: list[tuple[int, int]] = []

    def run(self) -> tuple[Instruction, ...]:
        """Return all instructions in their new order."""
        order: list[int] = []
        cycle = started = held = 0
        while self._now or self._waiting:
            if started == WIDTH or not self._now:
                cycle, started = cycle + 1 if self._now else max(cycle + 1, self._waiting[0][0]), 0
            while self._waiting and self._waiting[0][0] <= cycle:
                self._now.append(heapq.heappop(self._waiting)[1])
            i = self._next(is_short=held >= REGISTERS)
            held += self._takes[i]
            started += 1
            order.append(i)
            self._finish(i, cycle)
        return self._graph.with_readings(order)

    def _next(self, is_short: bool) -> int:
        """Choose the next instruction, remove it from the ready instructions, and return it."""
        i = min(self._now, key=(self._frugal if is_short else self._urgent).__getitem__)
        if is_short and self._takes[i] > 0:
            i = min((*self._now, *(k for _, k in self._waiting)), key=self._oldest.__getitem__)
        if self._available[i] and (self._available[i], i) in self._waiting:
            self._waiting.remove((self._available[i], i))
            heapq.heapify(self._waiting)
        else:
            self._now.remove(i)
        return i

    def _finish(self, i: int, cycle: int) -> None:
        """Record that an instruction has started, for its operands and its users."""
        self._done[i] = True
        for j in self._operands[i]:
            self._uses[j] -= 1
            if self._uses[j] == 1:
                last = next(k for k in self._users[j] if not self._done[k])
                self._takes[last] -= 1
                self._rank(last)
        for k in self._users[i]:
            self._missing[k] -= 1
            self._available[k] = max(self._available[k], cycle + self._latency[i])
            if not self._missing[k]:
                self._rank(k)
                heapq.heappush(self._waiting, (self._available[k], k))

    def _rank(self, i: int) -> None:
        """Store the sort keys of an instruction for the three criteria; the smallest is chosen."""
        takes, chain = self._takes[i], self._chain[i]
        self._urgent[i] = takes - chain
        self._frugal[i] = (takes, -chain)
        self._oldest[i] = (takes, self._available[i], -chain)
