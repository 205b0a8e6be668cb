"""Construction of programs: straight-line code with Newton loops in between.

Linear blocks are eliminated within the straight-line code. Their pivot order is chosen from sampled
states when the program is built, so that no pivot search is needed at run time. The diagnostics are
the discriminants of closed forms and the pivots of eliminations.

As in Modelica compilers, equations are sorted into blocks, by CasADi's Dulmage-Mendelsohn
decomposition.

Source: Davis 2006, Direct Methods for Sparse Linear Systems, for the sorting into blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.program import ClosedForm, Evaluate, LinearBlock, Newton, Pivot, Program, Step
from tauloop.compiler.solving.bounded import Bounded
from tauloop.compiler.solving.orthogonal import Factors, factors
from tauloop.equations.values import BatchFunction, quantile


@dataclass(frozen=True, slots=True)
class Block:
    """Equations (rows) and an equal number of unknowns (columns) that are solved together."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of equations."""
        return len(self.rows)


def blocks(incidence: ca.Sparsity) -> tuple[Block, ...]:
    """Return the blocks of a square incidence pattern in the order of their solution.

    Args:
        incidence: pattern (n, n); an entry (i, j) means that equation i contains unknown j.

    Raises:
        ValueError: the pattern is structurally singular.
    """
    n = incidence.size1()
    if n == 0:
        return ()
    count, row_order, column_order, row_start, column_start, _, _ = incidence.btf()
    row_sizes, column_sizes = np.diff(row_start[: count + 1]), np.diff(column_start[: count + 1])
    if incidence.size2() != n or (row_sizes != column_sizes).any():
        raise ValueError("structurally singular: some equations contain too few unknowns")
    listed = [
        Block(
            tuple(sorted(row_order[row_start[b] : row_start[b + 1]])),
            tuple(sorted(column_order[column_start[b] : column_start[b + 1]])),
        )
        for b in range(count)
    ]
    return _in_order(listed, np.array(ca.DM(incidence, 1).full(), dtype=bool))


def _in_order(blocks: list[Block], incidence: np.ndarray) -> tuple[Block, ...]:
    """Return the blocks sorted so that each depends only on earlier blocks; ties by first row."""
    waiting = sorted(blocks, key=lambda block: block.rows)
    solved: set[int] = set()
    ordered: list[Block] = []
    while waiting:
        for block in waiting:
            needed = set(np.flatnonzero(incidence[list(block.rows)].any(axis=0))) - set(
                block.columns
            )
            if needed <= solved:
                break
        else:
            raise ValueError("structurally singular: the blocks depend on each other")
        waiting.remove(block)
        solved |= set(block.columns)
        ordered.append(block)
    return tuple(ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Symbols for the solution of a step and for values that were computed before this step.

    Attributes:
        point: the solution.
        held: other values by name.
    """

    point: ca.SX
    held: dict[str, ca.SX]


class ProgramBuilder:
    """A program under construction; its symbols are inputs and the solutions of earlier steps."""

    def __init__(
        self, name: str, samples: Mapping[str, np.ndarray], *, share_expressions: bool = True
    ) -> None:
        """Start an empty program.

        Args:
            name: name of the program.
            samples: values (M, n) of inputs at sampled states, for the choice of pivot orders.
            share_expressions: whether common subexpressions are computed once. False for a program
                whose operations are only counted, because sharing takes most of the building time.
        """
        self._name = name
        self._share_expressions = share_expressions
        self._samples = dict(samples)
        self._symbols: dict[str, ca.SX] = {}
        self._owner: dict[int, str] = {}
        self._steps: list[Step] = []
        self._closed_forms: list[ClosedForm] = []
        self._discriminants: list[ca.SX] = []
        self._extremes: list[ca.SX] = []
        self._pivots: list[str] = []
        self._linear_blocks: list[LinearBlock] = []
        self._pivot_values: list[ca.SX] = []
        self._count = 0
        self._emitted: tuple[str, ...] = ()
        self._diagnostics: dict[str, int] = {}

    def continued(self, name: str, *, share_expressions: bool) -> ProgramBuilder:
        """Return an independent copy of this program, to which other steps can be added.

        Args:
            name: name of the copy.
            share_expressions: whether its common subexpressions are computed once.
        """
        other = copy(self)
        for attribute, value in vars(self).items():
            if isinstance(value, dict | list):
                setattr(other, attribute, value.copy())
        other._name, other._share_expressions = name, share_expressions
        return other

    def input(self, name: str, size: int) -> ca.SX:
        """Declare an input: a column of symbols.

        Returns:
            The symbols (size, 1).
        """
        return self._symbol(name, size)

    def declares(self, name: str) -> bool:
        """Return whether an input is already declared."""
        return name in self._symbols

    def declared(self, name: str) -> ca.SX:
        """Return a declared input."""
        return self._symbols[name]

    def _symbol(self, name: str, size: int) -> ca.SX:
        symbol = ca.SX.sym(name, size)
        self._symbols[name] = symbol
        self._owner.update({symbol[i].element_hash(): name for i in range(size)})
        return symbol

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def _needed(self, *expressions: ca.SX) -> list[str]:
        """Return the names of the symbols in expressions, in order of their declaration."""
        stack = ca.vertcat(*(ca.vec(e) for e in expressions))
        used = {self._owner.get(symbol.element_hash()) for symbol in ca.symvar(stack)}
        return [name for name in self._symbols if name in used]

    def evaluate(self, outputs: dict[str, ca.SX]) -> None:
        """Add straight-line code for named outputs (columns), sharing common subexpressions."""
        names = list(outputs)
        columns = [ca.SX(ca.densify(ca.vec(outputs[name]))) for name in names]
        if self._share_expressions or self._steps:
            needed = self._needed(*columns)
        else:
            # No earlier step computes an input, so unused inputs do not change the count.
            needed = list(self._symbols)
        if self._share_expressions:
            columns = ca.cse(columns)
        # A program that is only counted is read faster if each of its values has its own place.
        function = ca.Function(
            self._fresh(self._name),
            [self._symbols[name] for name in needed],
            columns,
            {"live_variables": self._share_expressions},
        )
        self._steps.append(
            Evaluate(function=BatchFunction(function), inputs=tuple(needed), outputs=tuple(names))
        )

    def set_samples(self, name: str, values: np.ndarray) -> None:
        """Store the values (M, n) of an input at the sampled states."""
        self._samples[name] = values

    def at_samples(self, expression: ca.SX) -> np.ndarray:
        """Return values (M, numel) of an expression at the sampled states where it is finite."""
        values = self.values_at(expression, {})
        known = np.isfinite(values).all(axis=1)
        return values[known] if known.any() else values

    def values_at(self, expression: ca.SX, samples: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return values (M, numel) of an expression at the sampled states, with some new inputs."""
        column = ca.densify(ca.vec(expression))
        needed = self._needed(column)
        known = {**self._samples, **samples}
        arrays = [np.ascontiguousarray(known[name]) for name in needed]
        count = max((len(array) for array in (*arrays, *samples.values())), default=1)
        function = BatchFunction(
            ca.Function("samples", [self._symbols[name] for name in needed], [column])
        )
        (values,) = function(arrays, count)
        return values

    def closed_form(self, record: ClosedForm, discriminant: ca.SX, extremes: ca.SX) -> None:
        """Store the diagnostics of a block that was solved in closed form.

        Args:
            record: record of the block.
            discriminant: discriminant; negative where the loop cannot close.
            extremes: smallest and largest psi over the unknown, and the rod's length or zero (3,).
        """
        self._closed_forms.append(record)
        self._discriminants.append(discriminant)
        self._extremes.append(extremes)

    @property
    def extremes(self) -> ca.SX:
        """Return the extremes of all closed forms so far (3 n,), to diagnose unreachable poses."""
        return ca.vertcat(ca.SX(0, 1), *self._extremes)

    def newton(
        self,
        residual: ca.SX,
        unknown: ca.SX,
        start: ca.SX,
        what: tuple[str, ...],
        unknowns: tuple[str, ...],
        samples: np.ndarray,
        residual_sizes: np.ndarray,
        sizes: np.ndarray,
    ) -> ca.SX:
        """Solve residual(unknown) = 0 by Newton's method; return the symbols of the solution.

        Args:
            residual: equations (n,) in terms of `unknown` and of this builder's symbols.
            unknown: symbols (n,) of the unknowns.
            start: start values (n,).
            what: names of the equations.
            unknowns: names of the unknowns.
            samples: the solution (M, n) at the sampled states.
            residual_sizes: characteristic sizes (n,) of the equations; the reported residual is
                divided by them.
            sizes: characteristic sizes (n,) of the unknowns; the length of a step is measured in
                them.
        """
        start_name = self._fresh("start")
        fixed_name = self._fresh("fixed")
        solution = self._fresh("solution")
        known = ca.vertcat(ca.SX(0, 1), *(self._symbols[name] for name in self._needed(residual)))
        result = self._symbol(solution, unknown.numel())
        self._samples[solution] = samples
        jacobian = ca.jacobian(residual, unknown)
        at_solution = ca.substitute([jacobian], [unknown], [result])[0]
        order = pivot_order(_matrices(self.at_samples(at_solution), unknown.numel()))
        step, pivots = eliminate(jacobian, -residual, order)
        changing = [pivot for pivot in ca.vertsplit(pivots) if not pivot.is_constant()]
        pivots = ca.vertcat(ca.SX(0, 1), *changing)
        records = self._records(
            ca.substitute([pivots], [unknown], [result])[0], [", ".join(what)] * len(changing)
        )
        outputs = ca.cse(
            [ca.SX(ca.densify(residual)), ca.SX(ca.densify(step)), ca.SX(ca.densify(pivots))]
        )
        # compute values that are constant during the iteration before it
        outputs, constants, expressions = ca.extract_parametric(outputs, known, {})
        fixed = {fixed_name: ca.vertcat(*expressions)} if expressions else {}
        if fixed:
            symbol = self._symbol(fixed_name, len(constants))
            outputs = ca.substitute(outputs, [ca.vertcat(*constants)], [symbol])
        self.evaluate({start_name: start, **fixed})
        needed = self._needed(*outputs)
        function = ca.Function(
            self._fresh("newton"), [unknown, *(self._symbols[name] for name in needed)], outputs
        )
        self._steps.append(
            Newton(
                function=BatchFunction(function),
                inputs=tuple(needed),
                start=start_name,
                solution=solution,
                size=unknown.numel(),
                what=what,
                unknowns=unknowns,
                pivots=records,
                residual_sizes=tuple(map(float, residual_sizes)),
                sizes=tuple(map(float, sizes)),
            )
        )
        return result

    def solve(self, A: ca.SX, b: ca.SX, what: str) -> ca.SX:
        """Solve A x = b block by block.

        Args:
            A: square matrix (n, n); its structural zeros define the blocks.
            b: right-hand sides (n, k).
            what: purpose of the equations, for messages.

        Returns:
            x (n, k).
        """
        A, b = ca.sparsify(A), ca.SX(b)
        n = A.size1()
        x = ca.SX(*b.shape)
        for block in blocks(A.sparsity()):
            rows, columns = list(block.rows), list(block.columns)
            others = [j for j in range(n) if j not in columns]
            right = b[rows, :]
            if others:
                right = right - A[rows, others] @ x[others, :]
            matrix = A[rows, columns]
            self._keep_block(matrix, what, "elimination")
            order = (
                pivot_order(_matrices(self.at_samples(matrix), block.size))
                if block.size > 1
                else ((0, 0),)
            )
            solution, pivots = eliminate(matrix, right, order)
            x[columns, :] = solution
            self._keep_pivots(pivots, what)
        return x

    def solve_symmetric(self, A: ca.SX, b: ca.SX, what: str) -> ca.SX:
        """Solve A x = b for a symmetric positive definite A (n, n); only its lower half is read.

        Returns:
            Symbols x (n, k) of the solution.
        """
        self._keep_block(A, what, "L D L^T")
        x, pivots = solve_symmetric(A, b)
        self._keep_pivots(pivots, what)
        return x

    def orthogonal(self, R: ca.SX, what: str) -> Factors:
        """Return orthogonal factors of a tall matrix (n, m) of full rank."""
        self._keep_block(R.T, what, "orthogonal factors")
        factorized = factors(R)
        self._keep_pivots(factorized.pivots, what)
        return factorized

    def _keep_block(self, A: ca.SX, what: str, method: str) -> None:
        if A.is_constant():
            method = "constant"
        elif A.size1() == 1:
            method = "division"
        self._linear_blocks.append(LinearBlock(what=what, size=A.size1(), method=method))

    def _keep_pivots(self, pivots: ca.SX, what: str) -> None:
        changing = [pivot for pivot in ca.vertsplit(pivots) if not pivot.is_constant()]
        self._pivots += [what] * len(changing)
        self._pivot_values += changing

    def _records(self, pivots: ca.SX, what: Iterable[str]) -> tuple[Pivot, ...]:
        """Return records of pivots (n,) with their median absolute values over the samples."""
        records = []
        for name, magnitudes in zip(what, np.abs(self.values_at(pivots, {})).T, strict=True):
            finite = magnitudes[np.isfinite(magnitudes)]
            values = finite if len(finite) else magnitudes
            records.append(Pivot(what=name, typical=float(quantile(values, 0.5))))
        return tuple(records)

    def nearest(
        self, rows: ca.SX, sides: ca.SX, held: Mapping[str, ca.SX], outputs: Mapping[str, ca.SX]
    ) -> _Found:
        """Add a step for the point y (r,) nearest to the origin with G y >= h; return it.

        Values that later code needs are computed before this step, so that they are not computed
        twice.

        Args:
            rows: G (n, r).
            sides: h (n,).
            held: values that the code after this step needs.
            outputs: results of the program that are already known.
        """
        names = {name: self._fresh(name) for name in ("rows", "sides", *held)}
        known = {"rows": rows.T, "sides": sides, **held}
        self.evaluate(
            {
                **{names[name]: value for name, value in known.items()},
                **outputs,
                **self._new_diagnostics(),
            }
        )
        self._emitted += tuple(outputs)
        symbols = {name: self._symbol(names[name], value.numel()) for name, value in held.items()}
        count, size = rows.shape
        solution = self._fresh("nearest")
        step = Bounded(
            rows=names["rows"], sides=names["sides"], solution=solution, count=count, size=size
        )
        self._steps.append(step)
        return _Found(
            point=self._symbol(solution, size),
            held={name: ca.reshape(symbols[name], *value.shape) for name, value in held.items()},
        )

    def _new_diagnostics(self) -> dict[str, ca.SX]:
        """Return the diagnostics that no step has written yet."""
        diagnostics = {
            "discriminants": ca.vertcat(ca.SX(0, 1), *self._discriminants),
            "pivots": ca.vertcat(ca.SX(0, 1), *self._pivot_values),
        }
        new = {
            name: value
            for name, value in diagnostics.items()
            if value.numel() > self._diagnostics.get(name, 0)
        }
        self._diagnostics |= {name: value.numel() for name, value in new.items()}
        return new

    def finish(self, outputs: dict[str, ca.SX]) -> Program:
        """Add the last straight-line code and complete the program.

        Returns:
            The complete program.
        """
        self.evaluate({**outputs, **self._new_diagnostics()})
        return Program(
            name=self._name,
            steps=tuple(self._steps),
            outputs=(*self._emitted, *outputs),
            closed_forms=tuple(self._closed_forms),
            pivots=self._records(ca.vertcat(ca.SX(0, 1), *self._pivot_values), self._pivots),
            linear_blocks=tuple(self._linear_blocks),
        )


def _matrices(columns: np.ndarray, size: int) -> np.ndarray:
    """Return matrices (M, n, n) from rows that contain the matrices by columns."""
    return columns.reshape(len(columns), size, size).transpose(0, 2, 1)


#: A pivot may be chosen for sparsity if its rating is at least this fraction of the rating of the
#: best candidate (see `pivot_order`).
PREFERENCE = 0.2


def pivot_order(samples: np.ndarray) -> tuple[tuple[int, int], ...]:
    """Return an elimination order of rows and columns with large pivots in all samples.

    At every step the candidates are rated by their smallest absolute value over the samples,
    relative to the largest entry of their row. Among candidates above the threshold `PREFERENCE`,
    the candidate with the least fill-in is chosen (Markowitz).

    Args:
        samples: matrices (M, n, n) at sampled states.

    Returns:
        n pairs (row, column).
    """
    work = np.array(samples, dtype=float)
    n = work.shape[1]
    work = work / np.maximum(np.abs(work).max(axis=2, keepdims=True), 1e-300)
    work = work / np.maximum(np.abs(work).max(axis=1, keepdims=True), 1e-300)
    rows, columns = list(range(n)), list(range(n))
    order: list[tuple[int, int]] = []
    while rows:
        block = np.abs(work[:, rows][:, :, columns])
        largest = np.maximum(block.max(axis=2, keepdims=True), 1e-300)
        size = (block / largest).min(axis=0) * np.minimum(1.0, block.min(axis=0) / 1e-6)
        pattern = block.max(axis=0) > 1e-12
        fill = np.outer(pattern.sum(axis=1) - 1, pattern.sum(axis=0) - 1).astype(float)
        fill[size < PREFERENCE * size.max()] = np.inf
        best = np.argmin(fill - 1e-3 * size)
        i, j = rows[best // len(columns)], columns[best % len(columns)]
        order.append((i, j))
        rows.remove(i)
        columns.remove(j)
        pivot = work[:, i, j]
        with np.errstate(all="ignore"):
            factor = work[:, :, j] / pivot[:, None]
        factor = np.where(np.isfinite(factor), factor, 0.0)
        for r in rows:
            work[:, r] -= factor[:, r, None] * work[:, i]
    return tuple(order)


def eliminate(A: ca.SX, b: ca.SX, order: tuple[tuple[int, int], ...]) -> tuple[ca.SX, ca.SX]:
    """Solve A x = b by elimination in a given order.

    The last two equations are solved by their determinant if all four entries are present and all
    pivots before them are constant. That takes one division less than two pivots, and works even if
    an entry is zero. After a pivot p near zero, however, the determinant would lose accuracy by a
    factor 1 / p^2, whereas pivots lose only 1 / p.

    Args:
        A: matrix (n, n).
        b: right-hand sides (n, k).
        order: n pairs (row, column).

    Returns:
        x (n, k) and the pivots; a determinant replaces the last two pivots.
    """
    A, b = +A, +b  # copies; `ca.SX(A)` takes twenty times as long
    pivots: list[ca.SX] = []
    reciprocals: list[ca.SX] = []
    x = ca.SX(*b.shape)
    steps = len(order)
    for step, (i, j) in enumerate(order):
        rest = order[step + 1 :]
        is_safe = all(pivot.is_constant() for pivot in pivots)
        if len(rest) == 1 and is_safe and _is_full(A, order[step:]):
            determinant = _solve_two(A, b, x, order[step:])
            pivots.append(determinant)
            steps = step
            break
        pivots.append(A[i, j])
        reciprocal = 1 / A[i, j]
        reciprocals.append(reciprocal)
        for r, _ in rest:
            if A[r, j].is_zero():
                continue
            factor = A[r, j] * reciprocal
            for _, c in rest:
                if not A[i, c].is_zero():
                    A[r, c] = A[r, c] - factor * A[i, c]
            b[r, :] = b[r, :] - factor * b[i, :]
    for step in range(steps - 1, -1, -1):
        i, j = order[step]
        value = b[i, :]
        for _, c in order[step + 1 :]:
            if not A[i, c].is_zero():
                value = value - A[i, c] * x[c, :]
        # the last reciprocal would be used only once, so a division is shorter
        is_last = step == len(order) - 1
        x[j, :] = value / A[i, j] if is_last else value * reciprocals[step]
    return x, ca.vertcat(ca.SX(0, 1), *pivots)


def _is_full(A: ca.SX, pairs: tuple[tuple[int, int], ...]) -> bool:
    """Return whether no entry of the rows and columns of these pairs is a structural zero."""
    return not any(A[i, j].is_zero() for i, _ in pairs for _, j in pairs)


def _solve_two(A: ca.SX, b: ca.SX, x: ca.SX, pairs: tuple[tuple[int, int], ...]) -> ca.SX:
    """Solve two equations by their determinant, fill x, and return the determinant."""
    (i, j), (r, c) = pairs
    determinant = A[i, j] * A[r, c] - A[i, c] * A[r, j]
    reciprocal = 1 / determinant
    x[j, :] = (A[r, c] * reciprocal) * b[i, :] - (A[i, c] * reciprocal) * b[r, :]
    x[c, :] = (A[i, j] * reciprocal) * b[r, :] - (A[r, j] * reciprocal) * b[i, :]
    return determinant


def solve_symmetric(A: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Solve A x = b for a symmetric positive definite matrix by L D L^T without pivoting.

    Only the lower half is read. Two equations are solved by their determinant, see `eliminate`.

    Returns:
        x (n, k) and the pivots D (n,).
    """
    n = A.size1()
    A, x = ca.SX(A), ca.SX(b)
    if n == 2 and not A[1, 0].is_zero():
        A[0, 1] = A[1, 0]
        solution = ca.SX(*x.shape)
        return solution, _solve_two(A, x, solution, ((0, 0), (1, 1)))
    L = ca.SX(n, n)
    reciprocals: list[ca.SX] = []
    pivots: list[ca.SX] = []
    for j in range(n):
        pivots.append(A[j, j])
        reciprocals.append(1 / A[j, j])
        for i in range(j + 1, n):
            L[i, j] = A[i, j] * reciprocals[j]
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                A[i, k] = A[i, k] - L[i, j] * A[k, j]
    for j in range(n):
        for i in range(j + 1, n):
            x[i, :] = x[i, :] - L[i, j] * x[j, :]
    for j in range(n - 1, -1, -1):
        x[j, :] = x[j, :] * reciprocals[j]
        for i in range(j + 1, n):
            x[j, :] = x[j, :] - L[i, j] * x[i, :]
    return x, ca.vertcat(ca.SX(0, 1), *pivots)
