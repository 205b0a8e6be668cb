"""Values of straight-line code that are computed again instead of being kept (rematerialization).

A thread of a graphics processor has 255 registers of 32 bits. Values that do not fit are stored to
memory. Many values have two distant uses, and a few instructions compute them again from values
that are live anyway.

A compiler would merge both computations and keep the value. One operand of the second computation
is therefore a hidden copy (`TL_HIDDEN` in kernels.h), of which the compiler does not know that it
is equal to its origin.

Source: Briggs, Cooper and Torczon 1992, Rematerialization.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.few_values import with_few_live_values
from tauloop.compiler.c.printing.straight import HIDDEN, Instruction

#: Number of live values above which values are computed again. The compiler also needs registers
#: for addresses, constants and products in progress: with a limit of 92, the forward dynamics of a
#: hexapod still stores 292 bytes to memory, with 84 it stores 8, and with 80 none.
MAX_LIVE_VALUES = 80
#: Minimum number of instructions between two uses of a value that is computed again.
MIN_GAP = 150
#: Maximum number of instructions that compute a value again.
MAX_REPEATED = 3
#: Maximum number of rounds. In a round, no value is both computed again and an operand of another
#: value that is computed again.
MAX_ROUNDS = 12
#: Operations that are fast enough to be repeated.
_REPEATED = frozenset(
    (ca.OP_ADD, ca.OP_SUB, ca.OP_MUL, ca.OP_NEG, ca.OP_SQ, ca.OP_TWICE, ca.OP_ASSIGN)
)


def with_few_registers(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return equivalent code with few live values, some of which are computed several times."""
    return with_recomputed_values(with_few_live_values(code))


def with_recomputed_values(code: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Return code in which distant uses of a value have their own computations of it.

    Only code with more than `MAX_LIVE_VALUES` live values changes. All instructions compute the
    same values as before. Compilers that fuse products and sums may round them differently.

    Args:
        code: instructions; every value is computed before its first use.
    """
    listed = tuple(code)
    for _ in range(MAX_ROUNDS):
        gaps = _LiveRanges(listed).chosen_gaps()
        if not gaps:
            break
        listed = _recomputed(listed, gaps)
    return listed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """Two successive uses of a value, between which it is not kept.

    Attributes:
        value: number of the value.
        before, after: indices of the uses; the first is its computation if it has no earlier use.
        repeated: instructions that compute the value again before the second use.
    """

    value: int
    before: int
    after: int
    repeated: tuple[Instruction, ...]


class _LiveRanges:
    """Live ranges of the values of straight-line code, from their computations to their last uses.

    Constants are part of the instructions that read them. Arguments are values.
    """

    def __init__(self, code: Sequence[Instruction]) -> None:
        self._producers: dict[int, Instruction] = {}
        self._computed_at: dict[int, int] = {}
        self._uses: dict[int, list[int]] = {}
        #: Origins of hidden copies.
        self._origins: dict[int, int] = {}
        self._constants: set[int] = set()
        self._outputs: set[int] = set()
        for i, instruction in enumerate(code):
            if instruction.operation == ca.OP_CONST:
                self._constants.add(instruction.number)
                continue
            for k in dict.fromkeys(instruction.operands):
                if k not in self._constants:
                    self._uses[k].append(i)
            if instruction.operation == ca.OP_OUTPUT:
                self._outputs.add(i)
            else:
                if instruction.operation == HIDDEN:
                    self._origins[instruction.number] = instruction.operands[0]
                self._producers[instruction.number] = instruction
                self._computed_at[instruction.number] = i
                self._uses[instruction.number] = []
        changes = np.zeros(len(code) + 1, dtype=int)
        for number, uses in self._uses.items():
            if uses:
                changes[self._computed_at[number]] += 1
                changes[uses[-1]] -= 1
        #: Number of live values after each instruction.
        self._live = np.cumsum(changes)
        #: Number of earlier instructions after which too many values are live.
        self._crowded_before = np.concatenate([[0], np.cumsum(self._live > MAX_LIVE_VALUES)])

    def chosen_gaps(self) -> list[_Gap]:
        """Return gaps whose removal reduces the number of live values where it is too large."""
        gaps = []
        for number in self._uses:
            gap = self._most_crowded_gap(number)
            if gap is not None:
                gaps.append(gap)
        gaps.sort(
            key=lambda gap: self._crowded(gap.before, gap.after) / len(gap.repeated), reverse=True
        )
        chosen: list[_Gap] = []
        shortened: set[int] = set()
        needed: set[int] = set()
        for gap in gaps:
            operands = {k for item in gap.repeated for k in item.operands}
            is_free = gap.value not in needed and shortened.isdisjoint(operands)
            between = self._live[gap.before : gap.after]
            if is_free and between.max() > MAX_LIVE_VALUES:
                between -= 1
                chosen.append(gap)
                shortened.add(gap.value)
                needed |= operands
        return chosen

    def _crowded(self, before: int, after: int) -> int:
        """Return the number of instructions between two after which too many values are live."""
        return int(self._crowded_before[after] - self._crowded_before[before])

    def _most_crowded_gap(self, number: int) -> _Gap | None:
        """Return the gap of a value with most crowded instructions; None if none can be removed."""
        best: _Gap | None = None
        most = 0
        before = self._computed_at[number]
        uses = self._uses[number]
        for k, after in enumerate(uses):
            crowded = self._crowded(before, after)
            if after - before >= MIN_GAP and crowded > most:
                repeated = self._computation(number, after, MAX_REPEATED)
                if repeated is not None and self._outputs.isdisjoint(uses[k:]):
                    most = crowded
                    best = _Gap(value=number, before=before, after=after, repeated=tuple(repeated))
            before = after
        return best

    def _computation(self, number: int, place: int, most: int) -> list[Instruction] | None:
        """Return instructions that compute a value again; None if these are more than `most`.

        Their operands are constants, arguments, values that are live until `place`, and each other.
        """
        instruction = self._producers[number]
        if most < 1 or instruction.operation not in _REPEATED:
            return None
        origins = [self._origins.get(k, k) for k in instruction.operands]
        instruction = instruction._replace(operands=tuple(origins))
        if self._constants.issuperset(origins):
            return None
        repeated: list[Instruction] = []
        for k in dict.fromkeys(origins):
            is_argument = k not in self._constants and self._producers[k].operation == ca.OP_INPUT
            if is_argument or k in self._constants or self._uses[k][-1] >= place:
                continue
            before = self._computation(k, place, most - 1 - len(repeated))
            if before is None:
                return None
            repeated += [item for item in before if item not in repeated]
        return [*repeated, instruction] if len(repeated) < most else None


def _recomputed(code: Sequence[Instruction], gaps: Sequence[_Gap]) -> tuple[Instruction, ...]:
    """Return code in which values are computed again after gaps."""
    constants = {item.number for item in code if item.operation == ca.OP_CONST}
    gaps_by_end: dict[int, list[_Gap]] = {}
    for gap in gaps:
        gaps_by_end.setdefault(gap.after, []).append(gap)
    numbers = itertools.count(1 + max(item.number for item in code))
    new_numbers: dict[int, int] = {}
    listed: list[Instruction] = []
    for i, instruction in enumerate(code):
        for gap in gaps_by_end.get(i, []):
            listed += _second_computation(gap, constants, numbers)
            new_numbers[gap.value] = listed[-1].number
        operands = tuple(new_numbers.get(k, k) for k in instruction.operands)
        if operands != instruction.operands:
            instruction = instruction._replace(operands=operands)
        listed.append(instruction)
    return tuple(listed)


def _second_computation(
    gap: _Gap, constants: Set[int], numbers: Iterator[int]
) -> list[Instruction]:
    """Return instructions with new numbers that compute the value of a gap again.

    An instruction that reads no value of the second computation reads a hidden copy of an operand.
    """
    computed: list[Instruction] = []
    new_numbers: dict[int, int] = {}
    for instruction in gap.repeated:
        operands = [new_numbers.get(k, k) for k in instruction.operands]
        if new_numbers.keys().isdisjoint(instruction.operands):
            origin = next(k for k in operands if k not in constants)
            copy = Instruction(next(numbers), HIDDEN, (origin,))
            computed.append(copy)
            operands = [copy.number if k == origin else k for k in operands]
        new_numbers[instruction.number] = next(numbers)
        computed.append(
            Instruction(new_numbers[instruction.number], instruction.operation, tuple(operands))
        )
    return computed
