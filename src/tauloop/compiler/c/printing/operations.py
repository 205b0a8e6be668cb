"""Operation counts of generated functions, without shared expressions and unused values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Any, final

import casadi as ca

from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.source import CFunction, wanted_values
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.compiler.solving.bounded import Bounded
from tauloop.equations.operators import read_instructions

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
#: Values without arguments that are operations.
_LEAVES = (ca.OP_INPUT, ca.OP_CONST)
#: Operations that are not counted; a change of sign is part of the addition that follows.
_FREE = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_NEG)

#: Numbers of operations by kind, `once` and for `each_iteration` of Newton's loops.
Counts = dict[str, dict[str, int]]


@final
class OperationGraph:
    """Distinct operations of straight-line code.

    CasADi's `cse` finds the same operations, but rebuilds the expressions, which takes several
    times as long as counting.
    """

    def __init__(self, function: ca.Function) -> None:
        """Number the values of a function; equal operations on equal arguments share a number."""
        self._results: dict[tuple[int, int], int] = {}
        numbers: dict[tuple[Any, ...], int] = {}
        places = [0] * function.sz_w()
        input_, output, constant = ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST
        # Large functions have hundreds of thousands of instructions, most of them with two operands.
        for k, (code, arguments, targets) in enumerate(read_instructions(function)):
            key: tuple[Any, ...]
            if len(arguments) == 2 and code != input_:
                first, second = arguments
                key = (code, places[first], places[second])
            elif code == output:
                self._results[targets[0], targets[1]] = places[arguments[0]]
                continue
            elif code == input_:
                key = (code, *arguments)
            elif code == constant:
                key = (code, function.instruction_constant(k))
            else:
                key = (code, *[places[argument] for argument in arguments])
            places[targets[0]] = numbers.setdefault(key, len(numbers))
        self._operations = list(numbers)

    def count(self, outputs: Container[int], entries: Container[int] | None = None) -> Counter[str]:
        """Return the operations by kind that some outputs need.

        Args:
            outputs: indices of the outputs.
            entries: indices of their entries; by default all.
        """
        operations = self._operations
        is_needed = bytearray(len(operations))
        waiting: list[int] = []
        for (output, entry), number in self._results.items():
            wanted = output in outputs and (entries is None or entry in entries)
            if wanted and not is_needed[number]:
                is_needed[number] = True
                waiting.append(number)
        codes: list[int] = []
        while waiting:
            operation = operations[waiting.pop()]
            code = operation[0]
            codes.append(code)
            if code in _LEAVES:
                continue
            for argument in operation[1:]:
                if not is_needed[argument]:
                    is_needed[argument] = True
                    waiting.append(argument)
        counts: Counter[str] = Counter()
        for code, number in Counter(codes).items():
            if code not in _FREE:
                counts[_KIND.get(code, "others")] += number
        return counts


@final
class ProgramOperations:
    """Operations of a program by output, counted without building a program for each output."""

    def __init__(self, program: Program) -> None:
        """Number the values of all steps."""
        self._program = program
        self._steps = [
            (step, OperationGraph(step.function.function))
            for step in program.steps
            if not isinstance(step, Bounded)
        ]

    def of_values(self, wanted: Container[str]) -> Counts:
        """Return operations of one sample by kind, `once` and for `each_iteration` of Newton.

        `each_iteration` is the sum over all Newton loops. The operations of projections depend on
        the values and are not counted.

        Args:
            wanted: names of the values that are computed (see `wanted_values`).
        """
        return _of_steps(self._steps, wanted)

    def of_outputs(self, *outputs: str) -> Counts:
        """Return the operations that some outputs and the diagnostics need, as `of_values` does."""
        return self.of_values(wanted_values(_function_of(self._program, outputs)))

    def of_entries(self, output: str, entries: Collection[int]) -> Counts:
        """Return the operations of some entries of an output of the last step, as `of_values` does.

        The diagnostics of the last step are not counted.

        Raises:
            ValueError: the last step does not compute the output.
        """
        *before, (last, graph) = self._steps
        if not isinstance(last, Evaluate) or output not in last.outputs:
            raise ValueError(f"{output} is not an output of the last step of {self._program.name}")
        wanted = wanted_values(_function_of(self._program, (output,)))
        counts = _of_steps(before, wanted)
        of_entries = graph.count({last.outputs.index(output)}, frozenset(entries))
        for kind, number in of_entries.items():
            counts["once"][kind] += number
        return counts


def _of_steps(
    steps: Iterable[tuple[Evaluate | Newton, OperationGraph]], wanted: Container[str]
) -> Counts:
    once: Counter[str] = Counter()
    iterated: Counter[str] = Counter()
    for step, graph in steps:
        if isinstance(step, Newton):
            iterated += graph.count((1, 2))
            once += graph.count((0,))
        else:
            once += graph.count([i for i, name in enumerate(step.outputs) if name in wanted])
    return {"once": _by_kind(once), "each_iteration": _by_kind(iterated)}


def _by_kind(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in OPERATION_KINDS}


def _function_of(program: Program, outputs: Sequence[str]) -> CFunction:
    ports = tuple(CPort(name=output, size=0) for output in outputs)
    return CFunction(name="counted", program=program, inputs=(), outputs=ports)


def operations(function: CFunction) -> Counts:
    """Return the operations of one sample of a function by kind, as `ProgramOperations` does."""
    return ProgramOperations(function.program).of_values(wanted_values(function))


def output_operations(program: Program, *outputs: str) -> Counts:
    """Return the operations that some outputs of a program need, counted as in `operations`."""
    return ProgramOperations(program).of_outputs(*outputs)


def function_operations(function: ca.Function) -> Counts:
    """Return the operations of all outputs of straight-line code, counted as in `operations`."""
    return {
        "once": _by_kind(OperationGraph(function).count(range(function.n_out()))),
        "each_iteration": dict.fromkeys(OPERATION_KINDS, 0),
    }
