"""Programs: sequences of steps, each of which is straight-line code, a Newton loop or a projection.

A program contains the equations in the order of their solution. This module interprets its steps on
batches with CasADi's virtual machine. Every run returns diagnostics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.solving.bounded import Bounded
from tauloop.equations.values import BatchFunction

#: Newton's method stops when no unknown changes by more than this in a step (characteristic
#: lengths, rad or dimensionless). Convergence is quadratic, so the error is then a rounding error.
NEWTON_STEP = 1e-9
#: Maximum number of Newton steps.
NEWTON_ITERATIONS = 60
#: Maximum length of a Newton step (characteristic lengths, rad or dimensionless); longer steps are
#: shortened to it.
NEWTON_LONGEST_STEP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """Straight-line code: outputs = function(inputs)."""

    function: BatchFunction
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(self, values: dict[str, np.ndarray], n: int, diagnostics: RunDiagnostics) -> None:
        """Compute the outputs for n samples."""
        results = self.function([values[name] for name in self.inputs], n)
        values.update(zip(self.outputs, results, strict=True))

    @property
    def operations(self) -> int:
        """Number of instructions of the straight-line code."""
        return self.function.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Newton:
    """Newton's method on one block of position equations, for all samples together.

    Attributes:
        function: (x, known ...) -> (residual, step to the next x, pivots of the elimination).
        inputs: names of the known values.
        start: name of the start values of x.
        solution: name of x.
        size: number of unknowns.
        what: names of the loops that the block closes.
        unknowns: names of the coordinates that the block determines.
        pivots: records of the pivots that are not constant.
        residual_sizes: characteristic size of each residual: the characteristic length, m, or one.
        sizes: characteristic size of each unknown: the characteristic length, m, or one.
    """

    function: BatchFunction
    inputs: tuple[str, ...]
    start: str
    solution: str
    size: int
    what: tuple[str, ...]
    unknowns: tuple[str, ...]
    pivots: tuple[Pivot, ...]
    residual_sizes: tuple[float, ...]
    sizes: tuple[float, ...]

    @property
    def pivot_values(self) -> str:
        """Name of the pivots' values."""
        return f"{self.solution}_pivots"

    @property
    def residual_values(self) -> str:
        """Name of the final residuals (dimensionless), if they are an output of generated code."""
        return f"{self.solution}_residuals"

    def run(self, values: dict[str, np.ndarray], n: int, diagnostics: RunDiagnostics) -> None:
        """Iterate for n samples; samples that have converged do not change any more."""
        known = [values[name] for name in self.inputs]
        x = values[self.start].copy()
        active = np.arange(n)
        counts = np.zeros(n, dtype=int)
        for _ in range(NEWTON_ITERATIONS):
            _, step, _ = self.function([x[active], *(k[active] for k in known)], len(active))
            length = (np.abs(step) / self.sizes).max(axis=1)
            usable = np.isfinite(length)
            step *= np.minimum(1.0, NEWTON_LONGEST_STEP / np.maximum(length, 1e-300))[:, None]
            x[active[usable]] += step[usable]
            counts[active] += 1
            with np.errstate(invalid="ignore"):
                active = active[usable & (length > NEWTON_STEP)]
            if not len(active):
                break
        final, _, pivots = self.function([x, *known], n)
        diagnostics.add_pivots(pivots, self.pivots)
        residuals = final / self.residual_sizes
        residuals = np.where(np.isfinite(residuals), residuals, np.inf)
        diagnostics.newton.append((self, residuals, counts))
        values[self.solution] = x


Step = Evaluate | Newton | Bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedForm:
    """Record of an equation with one unknown that is solved in the straight-line code.

    Attributes:
        equation: name of the loop equation.
        element: rod or joint of the equation.
        unknown: name of the unknown coordinate; empty for a redundant equation, which is only
            checked.
    """

    equation: str
    element: str
    unknown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """Record of a pivot of an elimination.

    Attributes:
        what: purpose of the equations.
        typical: median size of the pivot over the sampled states.
    """

    what: str
    typical: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearBlock:
    """Record of linear equations that are solved together in the straight-line code.

    Attributes:
        what: purpose of the equations.
        size: number of unknowns.
        method: "division", "elimination" (in an order chosen when the program is built), "L D L^T",
            or "constant" if the equations are solved when the program is built.
    """

    what: str
    size: int
    method: str


@dataclass(slots=True)
class RunDiagnostics:
    """Diagnostics of one run.

    Attributes:
        discriminants: discriminants of the closed forms (N, n); negative where a loop cannot close.
        pivots: pivots of the eliminations relative to their typical size (N, n), in the order of
            `Program.all_pivots`.
        newton: (step, residuals (N, size), iterations (N,)) of every Newton block; residuals are
            dimensionless.
        missed: largest violation of the conditions of projections (N,), relative to their largest
            right-hand side.
    """

    discriminants: np.ndarray
    pivots: np.ndarray
    missed: np.ndarray
    newton: list[tuple[Newton, np.ndarray, np.ndarray]] = field(default_factory=list)

    def add_pivots(self, values: np.ndarray, records: tuple[Pivot, ...]) -> None:
        """Add pivots (N, n) relative to their typical size."""
        typical = np.array([max(record.typical, 1e-300) for record in records])
        self.pivots = np.hstack([self.pivots, np.abs(values) / typical])


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(ReprMixin):
    """Steps that compute outputs from inputs; all values are arrays (N, n) with names.

    Attributes:
        name: name of the program.
        steps: the steps, in order.
        outputs: names of the results.
        closed_forms: records of the closed forms, in the order of the discriminants.
        pivots: records of the pivots of linear blocks.
        linear_blocks: records of linear equations, in the order of their solution.
    """

    name: str
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    closed_forms: tuple[ClosedForm, ...]
    pivots: tuple[Pivot, ...]
    linear_blocks: tuple[LinearBlock, ...] = ()

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int
    ) -> tuple[dict[str, np.ndarray], RunDiagnostics]:
        """Return outputs by name and the diagnostics, from checked contiguous arrays (N, n)."""
        values = dict(inputs)
        diagnostics = RunDiagnostics(
            discriminants=np.ones((n, 0)), pivots=np.ones((n, 0)), missed=np.zeros(n)
        )
        for step in self.steps:
            if isinstance(step, Bounded):
                diagnostics.missed = diagnostics.missed + step.solve(values, n)
            else:
                step.run(values, n, diagnostics)
        if self.closed_forms:
            diagnostics.discriminants = values["discriminants"]
        if self.pivots:
            diagnostics.add_pivots(values["pivots"], self.pivots)
        return {name: values[name] for name in self.outputs}, diagnostics

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Names of closed forms, then of loops of Newton's method, in the order of diagnostics."""
        elements = [form.element for form in self.closed_forms]
        iterated = [name for step in self.steps if isinstance(step, Newton) for name in step.what]
        return (*elements, *dict.fromkeys(iterated))

    @property
    def all_pivots(self) -> tuple[Pivot, ...]:
        """Records of the pivots in Newton's loops, then of the pivots of linear blocks."""
        loops = (step.pivots for step in self.steps if isinstance(step, Newton))
        return (*(record for records in loops for record in records), *self.pivots)

    @property
    def operations(self) -> int:
        """Number of instructions of all straight-line steps."""
        return sum(step.operations for step in self.steps if isinstance(step, Evaluate))
