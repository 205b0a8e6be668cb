"""Builds programs: collects straight-line expressions and breaks them where a solve must happen in between."""

from __future__ import annotations

import casadi as ca

from tauloop.functions.batch import BatchFunction
from tauloop.functions.program import ClosedForm, Evaluate, LinearSolve, Newton, Program, Step
from tauloop.functions.sorting import blocks

#: Largest linear block that is written out as straight-line code.
SCALAR = 1


class ProgramBuilder:
    """A program under construction. Its symbols are the inputs and whatever earlier steps have solved for."""

    def __init__(self, name: str) -> None:
        """Start an empty program."""
        self._name = name
        self._symbols: dict[str, ca.SX] = {}
        self._steps: list[Step] = []
        self._count = 0

    def input(self, name: str, size: int) -> ca.SX:
        """Declare an input: a column of symbols."""
        return self._symbol(name, size)

    def _symbol(self, name: str, size: int) -> ca.SX:
        self._symbols[name] = ca.SX.sym(name, size)
        return self._symbols[name]

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def _needed(self, *expressions: ca.SX) -> list[str]:
        """Names of the symbols that expressions depend on, in order of their declaration."""
        stack = ca.vertcat(*(ca.vec(e) for e in expressions))
        return [name for name, symbol in self._symbols.items() if symbol.numel() and ca.depends_on(stack, symbol)]

    def evaluate(self, outputs: dict[str, ca.SX]) -> None:
        """Emit straight-line code for the named outputs, columns each; common subexpressions are shared."""
        names = list(outputs)
        columns = [ca.densify(ca.vec(outputs[name])) for name in names]
        needed = self._needed(*columns)
        shared = ca.cse([ca.SX(column) for column in columns])
        function = ca.Function(
            self._fresh(self._name), [self._symbols[name] for name in needed], shared, {"allow_free": False}
        )
        self._steps.append(Evaluate(function=BatchFunction(function), inputs=tuple(needed), outputs=tuple(names)))

    def record(self, step: ClosedForm, extremes: ca.SX) -> None:
        """Keep the evidence of a block that was solved in closed form."""
        self.evaluate({step.extremes: extremes})
        self._steps.append(step)

    def newton(
        self, residual: ca.SX, unknown: ca.SX, start: ca.SX, what: tuple[str, ...], unknowns: tuple[str, ...]
    ) -> ca.SX:
        """Solve residual(unknown) = 0 by Newton's method; returns the symbols that stand for the solution.

        Args:
            residual: equations (n,), in terms of `unknown` and of this builder's symbols.
            unknown: symbols (n,) of the unknowns.
            start: start values (n,).
            what: names of the equations.
            unknowns: names of the unknowns.
        """
        start_name, solution = self._fresh("start"), self._fresh("solution")
        self.evaluate({start_name: start})
        jacobian = ca.jacobian(residual, unknown)
        needed = self._needed(residual)
        outputs = ca.cse([ca.SX(ca.densify(residual)), ca.SX(ca.densify(ca.vec(jacobian)))])
        function = ca.Function(self._fresh("newton"), [unknown, *(self._symbols[name] for name in needed)], outputs)
        self._steps.append(
            Newton(
                function=BatchFunction(function),
                inputs=tuple(needed),
                start=start_name,
                solution=solution,
                size=unknown.numel(),
                what=what,
                unknowns=unknowns,
            )
        )
        return self._symbol(solution, unknown.numel())

    def solve(self, A: ca.SX, b: ca.SX, what: str) -> ca.SX:
        """Solve A x = b block by block: single equations by a division, larger blocks by a linear solve.

        Args:
            A: square matrix (n, n), its structural zeros tell the blocks.
            b: right sides (n, k).
            what: what the equations are for, in messages.

        Returns:
            x (n, k).
        """
        A, b = ca.sparsify(A), ca.SX(b)
        n, k = b.shape
        x = ca.SX(n, k)
        for block in blocks(A.sparsity()):
            rows, columns = list(block.rows), list(block.columns)
            others = [j for j in range(n) if j not in columns]
            right = b[rows, :]
            if others:
                right = right - A[rows, others] @ x[others, :]
            if block.size <= SCALAR:
                x[columns, :] = right / A[rows, columns]
                continue
            matrix, side, solution = self._fresh("matrix"), self._fresh("side"), self._fresh("solved")
            self.evaluate({matrix: A[rows, columns], side: right})
            self._steps.append(
                LinearSolve(matrix=matrix, right_side=side, solution=solution, size=block.size, columns=k, what=what)
            )
            x[columns, :] = ca.reshape(self._symbol(solution, block.size * k), block.size, k)
        return x

    def finish(self, outputs: dict[str, ca.SX]) -> Program:
        """Emit the last straight-line code and close the program."""
        self.evaluate(outputs)
        return Program(name=self._name, steps=tuple(self._steps), outputs=tuple(outputs))
