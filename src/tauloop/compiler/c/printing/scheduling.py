"""Order of straight-line code with short waits for operands and few live values.

Compilers mostly keep the order of the source. In the order in which equations are written, a
processor waits for chains of operations, or needs more values at once than it has registers.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import casadi as ca

from tauloop.compiler.c.printing.dependences import Dependences
from tauloop.compiler.c.printing.straight import Instruction

#: Latencies of slow operations, cycles.
LATENCIES = {
    ca.OP_DIV: 13,
    ca.OP_INV: 13,
    ca.OP_SQRT: 20,
    ca.OP_SIN: 60,
    ca.OP_COS: 60,
    ca.OP_ATAN2: 80,
    ca.OP_EXP: 60,
}
#: Latency of all other operations, such as sums and products, cycles.
DEFAULT_LATENCY = 4
#: Number of values that fit into registers (x86 without AVX-512).
REGISTERS = 16
#: Number of instructions that start in one cycle.
ISSUE_WIDTH = 2


def scheduled(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return the instructions in another order, by list scheduling.

    While registers are free, the next instruction is the one with the longest chain of dependent
    operations (critical path). If no register is free, the next instruction is the one that frees
    the most registers. If every instruction needs a further register, the next instruction is the
    one that has waited longest; it continues the current part of the machine. Arguments and
    constants come before the first instruction that reads them.

    Args:
        code: instructions; every value is computed before its first use.
    """
    return _Schedule(code).run()


class _Schedule:
    """State of a list scheduling; instructions are indices in the code.

    Ready instructions are in three heaps, one for each criterion. An entry contains the key of the
    criterion, the number of instructions that became ready before, the number of registers that the
    instruction takes, and the instruction. The entry is ignored if the instruction has started, or
    if the number of registers that it takes has changed.
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        indices = range(len(code))
        self._graph = graph = Dependences.of(code)
        self._operands, self._users = graph.operands, graph.users
        self._latency = [
            LATENCIES.get(instruction.operation, DEFAULT_LATENCY) for instruction in code
        ]
        self._chain = [0] * len(code)
        for i in reversed(indices):
            longest = max([self._chain[j] for j in self._users[i]], default=0)
            self._chain[i] = self._latency[i] + longest
        self._done = [False] * len(code)
        self._available = [0] * len(code)
        #: Number of operands of each instruction that are not computed yet.
        self._missing_operands = [len(self._operands[i]) for i in indices]
        #: Number of instructions that use each value and have not started.
        self._remaining_uses = [len(users) for users in self._users]
        # Number of registers that an instruction takes: one for its result, minus one for each
        # operand that no other instruction needs.
        self._register_change = [int(bool(users)) for users in self._users]
        for i in indices:
            for j in self._operands[i]:
                if self._remaining_uses[j] == 1:
                    self._register_change[i] -= 1
        #: Ready instructions, each with the number of instructions that became ready before it.
        self._ready: dict[int, int] = {}
        self._ready_before = 0
        self._urgent: list[tuple[int, ...]] = []
        self._frugal: list[tuple[int, ...]] = []
        self._oldest: list[tuple[int, ...]] = []
        #: Times at which instructions become ready, with the instructions.
        self._waiting: list[tuple[int, int]] = []
        for i in indices:
            if not self._missing_operands[i] and graph.is_computed[i]:
                self._make_ready(i)

    def run(self) -> tuple[Instruction, ...]:
        """Return all instructions in their new order."""
        order: list[int] = []
        cycle = 0
        started = 0  # number of instructions that started in this cycle
        live = 0  # number of live values
        while self._ready or self._waiting:
            if started == ISSUE_WIDTH or not self._ready:
                cycle += 1
                if not self._ready:
                    cycle = max(cycle, self._waiting[0][0])
                started = 0
            while self._waiting and self._waiting[0][0] <= cycle:
                self._make_ready(heapq.heappop(self._waiting)[1])
            i = self._next(has_free_register=live < REGISTERS)
            live += self._register_change[i]
            started += 1
            order.append(i)
            self._finish(i, cycle)
        return self._graph.with_readings(order)

    def _next(self, has_free_register: bool) -> int:
        """Choose the next instruction, remove it from the ready instructions, and return it."""
        i = self._first(self._urgent if has_free_register else self._frugal)
        if not has_free_register and self._register_change[i] > 0:
            i = self._first(self._oldest)
            # An instruction that waits for its operands may have a higher priority.
            age = self._age(i)
            waiting_entry = None
            for entry in self._waiting:
                if self._age(entry[1]) < age:
                    waiting_entry = entry
                    age = self._age(entry[1])
            if waiting_entry is not None:
                self._waiting.remove(waiting_entry)
                heapq.heapify(self._waiting)
                return waiting_entry[1]
        del self._ready[i]
        return i

    def _first(self, heap: list[tuple[int, ...]]) -> int:
        """Return the first ready instruction of a heap, after removing ignored entries."""
        while True:
            i = heap[0][-1]
            if i in self._ready and heap[0][-2] == self._register_change[i]:
                return i
            heapq.heappop(heap)

    def _age(self, i: int) -> tuple[int, int, int]:
        """Return the key of an instruction if every instruction needs a further register."""
        return self._register_change[i], self._available[i], -self._chain[i]

    def _finish(self, i: int, cycle: int) -> None:
        """Start an instruction: update its operands and the users of its result."""
        self._done[i] = True
        for j in self._operands[i]:
            self._remaining_uses[j] -= 1
            if self._remaining_uses[j] == 1:
                last_user = next(k for k in self._users[j] if not self._done[k])
                self._register_change[last_user] -= 1
                if last_user in self._ready:
                    self._push(last_user)
        for k in self._users[i]:
            self._missing_operands[k] -= 1
            self._available[k] = max(self._available[k], cycle + self._latency[i])
            if not self._missing_operands[k]:
                heapq.heappush(self._waiting, (self._available[k], k))

    def _make_ready(self, i: int) -> None:
        """Add an instruction, whose operands are available, to the ready instructions."""
        self._ready[i] = self._ready_before
        self._ready_before += 1
        self._push(i)

    def _push(self, i: int) -> None:
        """Add a ready instruction to the heaps of the three criteria, smallest key first."""
        registers = self._register_change[i]
        chain = self._chain[i]
        entry = (self._ready[i], registers, i)
        heapq.heappush(self._urgent, (registers - chain, *entry))
        heapq.heappush(self._frugal, (registers, -chain, *entry))
        heapq.heappush(self._oldest, (registers, self._available[i], -chain, *entry))
