"""Operation counts of generated functions.

Expressions that several outputs share count once. Values that no output needs are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar, final

import casadi as ca

from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.source import CFunction, wanted_values
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.compiler.solving.bounded import Bounded
from tauloop.equations.operators import (
    has_sequential_results,
    instruction_codes,
    instruction_operands,
)

#: Kinds of operations, in the order of tables.
OPERATION_KINDS = ("additions", "multiplications", "divisions", "roots", "trigonometric", "others")
_KIND = {
    ca.OP_ADD: "additions",
    ca.OP_SUB: "additions",
    ca.OP_TWICE: "additions",
    ca.OP_MUL: "multiplications",
    ca.OP_SQ: "multiplications",
    ca.OP_DIV: "divisions",
    ca.OP_INV: "divisions",
    ca.OP_SQRT: "roots",
    ca.OP_SIN: "trigonometric",
    ca.OP_COS: "trigonometric",
    ca.OP_ATAN2: "trigonometric",
}
#: Operations whose operands are not results of other operations.
_LEAVES = frozenset((ca.OP_INPUT, ca.OP_CONST))
#: Operations that are not counted. A change of sign counts as part of the addition that follows.
_FREE = frozenset((ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_NEG))

#: Numbers of operations by kind. The outer keys are "once", for operations that run once for each
#: sample, and "each_iteration", for operations that run in each iteration of a Newton loop.
Counts = dict[str, dict[str, int]]
#: Indices of the outputs of a Newton step: the residual, which is computed once after convergence,
#: and the step and the pivots, which are computed in each iteration.
_ONCE_OUTPUTS = (0,)
_ITERATED_OUTPUTS = (1, 2)

Value = TypeVar("Value")
#: Outputs whose operations are counted: indices of outputs, and of their entries (None for all).
Request = tuple[Container[int], Container[int] | None]


@final
class OperationGraph:
    """Distinct operations of straight-line code.

    CasADi's `cse` finds the same operations, but rebuilds the expressions, which takes several
    times as long as counting.
    """

    def __init__(self, function: ca.Function) -> None:
        """Apply value numbering: equal operations on equal arguments get the same number."""
        self._results: dict[tuple[int, int], int] = {}
        numbers: dict[tuple[Any, ...], int] = {}
        codes = instruction_codes(function)
        is_sequential = has_sequential_results(function)
        input_, output, constant = ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST
        constants = _of_instructions(
            function.instruction_constant, (code == constant for code in codes)
        )
        # The target of an instruction is the element of an output that it writes, or the element of
        # the work vector for its result. The latter are only read where they are not consecutive,
        # because reading all of them would take as long as the value numbering. Each branch of the
        # loop below takes one target for each instruction that this filter selects.
        targets = _of_instructions(
            function.instruction_output, (code == output or not is_sequential for code in codes)
        )
        work_vector: list[int] = [0] * function.sz_w()  # numbers of the values
        work_index = -1
        # Large functions have hundreds of thousands of instructions, most with two operands.
        for code, operands in zip(codes, instruction_operands(function), strict=True):
            key: tuple[Any, ...]
            if len(operands) == 2 and code != input_:
                first, second = operands
                key = (code, work_vector[first], work_vector[second])
            elif code == output:
                index, entry = next(targets)
                self._results[index, entry] = work_vector[operands[0]]
                continue
            elif code == input_:
                key = (code, *operands)
            elif code == constant:
                key = (code, next(constants))
            else:
                key = (code, *[work_vector[operand] for operand in operands])
            work_index = work_index + 1 if is_sequential else next(targets)[0]
            work_vector[work_index] = numbers.setdefault(key, len(numbers))
        self._operations = list(numbers)

    def count(self, outputs: Container[int], entries: Container[int] | None = None) -> Counter[str]:
        """Return the numbers of operations, by kind, that some outputs need.

        Args:
            outputs: indices of the outputs.
            entries: indices of their entries; by default all.
        """
        (counts,) = self.counts([(outputs, entries)])
        return counts

    def counts(self, requests: Sequence[Request]) -> list[Counter[str]]:
        """Return the numbers of operations of each request by kind, in one sweep of the graph.

        Args:
            requests: indices of outputs, and of entries of these outputs or None for all.
        """
        needs = self._needs(requests)
        codes = map(itemgetter(0), self._operations)
        counts_by_need = Counter(zip(codes, needs, strict=True))
        return [_by_request(counts_by_need, i) for i in range(len(requests))]

    def _needs(self, requests: Sequence[Request]) -> list[int]:
        """Return an integer for each operation, whose bit i is set if request i needs it."""
        needs = [0] * len(self._operations)
        everything = (1 << len(requests)) - 1
        for (output, entry), number in self._results.items():
            for i, (outputs, entries) in enumerate(requests):
                if output in outputs and (entries is None or entry in entries):
                    needs[number] |= 1 << i
        if all(needs[number] == everything for number in self._results.values()):
            # CasADi functions have no dead code: some output needs every operation.
            return [everything] * len(needs)
        # Arguments have smaller numbers than their operation.
        numbers = range(len(needs) - 1, -1, -1)
        for number, operation in zip(numbers, reversed(self._operations), strict=True):
            bits = needs[number]
            if bits and operation[0] not in _LEAVES:
                for argument in operation[1:]:
                    needs[argument] |= bits
        return needs


def _of_instructions(read: Callable[[int], Value], selected: Iterable[bool]) -> Iterator[Value]:
    """Yield read(k) for the index k of each selected instruction."""
    return (read(k) for k, is_selected in enumerate(selected) if is_selected)


def _by_request(counts_by_need: Mapping[tuple[int, int], int], i: int) -> Counter[str]:
    """Return the numbers of operations of request i, by kind.

    Args:
        counts_by_need: numbers of operations, by operation code and bit mask of the requests that
            need the operation.
        i: index of the request.
    """
    counts: Counter[str] = Counter()
    for (code, bits), number in counts_by_need.items():
        if bits >> i & 1 and code not in _FREE:
            counts[_KIND.get(code, "others")] += number
    return counts


@final
class ProgramOperations:
    """Operation counts of a program by output, without building a program for each output."""

    def __init__(self, program: Program) -> None:
        """Apply value numbering to all steps of the program."""
        self._program = program
        self._steps = [
            (step, OperationGraph(step.function.function))
            for step in program.steps
            if not isinstance(step, Bounded)
        ]

    def of_values(self, wanted: Container[str]) -> Counts:
        """Return the operation counts of one sample, by kind.

        The counts "each_iteration" are summed over all Newton loops. The operations of projections
        depend on the values and are not counted.

        Args:
            wanted: names of the values that are computed (see `wanted_values`).
        """
        return _of_steps(self._steps, wanted)

    def of_outputs(self, *outputs: str) -> Counts:
        """Return the operation counts of some outputs and the diagnostics, as `of_values` does."""
        return self.of_values(wanted_values(_function_of(self._program, outputs)))

    def of_entries(self, requests: Sequence[tuple[str, Collection[int]]]) -> list[Counts]:
        """Return the operation counts of some entries of the last step's outputs, as `of_values`.

        The diagnostics of the last step are not counted.

        Args:
            requests: name of an output, and indices of its entries; each request is counted alone.

        Raises:
            ValueError: the last step does not compute an output.
        """
        *previous_steps, (last, graph) = self._steps
        outputs = last.outputs if isinstance(last, Evaluate) else ()
        for output, _ in requests:
            if output not in outputs:
                raise ValueError(
                    f"{output} is not an output of the last step of {self._program.name}"
                )
        last_counts = graph.counts(
            [({outputs.index(output)}, frozenset(entries)) for output, entries in requests]
        )
        totals = []
        for (output, _), last_count in zip(requests, last_counts, strict=True):
            wanted = wanted_values(_function_of(self._program, (output,)))
            counts = _of_steps(previous_steps, wanted)
            for kind, number in last_count.items():
                counts["once"][kind] += number
            totals.append(counts)
        return totals


def _of_steps(
    steps: Iterable[tuple[Evaluate | Newton, OperationGraph]], wanted: Container[str]
) -> Counts:
    """Return the operation counts of steps, for the values with these names."""
    once: Counter[str] = Counter()
    iterated: Counter[str] = Counter()
    for step, graph in steps:
        if isinstance(step, Newton):
            iterated += graph.count(_ITERATED_OUTPUTS)
            once += graph.count(_ONCE_OUTPUTS)
        else:
            once += graph.count([i for i, name in enumerate(step.outputs) if name in wanted])
    return {"once": _by_kind(once), "each_iteration": _by_kind(iterated)}


def _by_kind(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in OPERATION_KINDS}


def _function_of(program: Program, outputs: Sequence[str]) -> CFunction:
    ports = tuple(CPort(name=output, size=0) for output in outputs)
    return CFunction(name="counted", program=program, inputs=(), outputs=ports)


def operations(function: CFunction) -> Counts:
    """Return the operation counts of one sample of a function (see `ProgramOperations`)."""
    return ProgramOperations(function.program).of_values(wanted_values(function))


def output_operations(program: Program, *outputs: str) -> Counts:
    """Return the operation counts of some outputs of a program, as in `operations`."""
    return ProgramOperations(program).of_outputs(*outputs)


def function_operations(function: ca.Function) -> Counts:
    """Return the operation counts of all outputs of straight-line code, as in `operations`."""
    return {
        "once": _by_kind(OperationGraph(function).count(range(function.n_out()))),
        "each_iteration": dict.fromkeys(OPERATION_KINDS, 0),
    }
