"""Programs: lists of steps (straight-line code, linear solve, Newton loop) that turn motions into forces.

A program is what remains of the equations after sorting into blocks. Here its steps are interpreted on batches, the
straight-line ones by CasADi's virtual machine and the solves by LAPACK; every step leaves evidence of its own health.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tauloop.functions.batch import BatchFunction

#: Newton stops when no unknown moves by more than this (m, rad or pure numbers) in a step; since it converges
#: quadratically, what is left then is rounding.
NEWTON_STEP = 1e-9
#: It gives up after this many steps; none is longer than the next figure.
NEWTON_ITERATIONS = 60
NEWTON_LONGEST_STEP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """Straight-line code: outputs = function(inputs)."""

    function: BatchFunction
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def run(self, values: dict[str, np.ndarray], n: int, evidence: Evidence) -> None:
        """Compute the outputs for n samples."""
        results = self.function([values[name] for name in self.inputs], n)
        values.update(zip(self.outputs, results, strict=True))

    @property
    def operations(self) -> int:
        """Number of instructions of the straight-line code."""
        return self.function.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSolve:
    """A x = b for one block; matrices are stored column by column.

    Attributes:
        matrix, right_side, solution: names of the values.
        size: order of the block.
        columns: number of right sides.
        what: what the block is for, in messages.
    """

    matrix: str
    right_side: str
    solution: str
    size: int
    columns: int
    what: str

    def run(self, values: dict[str, np.ndarray], n: int, evidence: Evidence) -> None:
        """Solve for n samples; the condition number is that of the equilibrated matrix in the 1-norm."""
        A = values[self.matrix].reshape(n, self.size, self.size).transpose(0, 2, 1)
        b = values[self.right_side].reshape(n, self.columns, self.size).transpose(0, 2, 1)
        with np.errstate(all="ignore"):
            row = _reciprocal(np.abs(A).max(axis=2, keepdims=True))
            scaled = row * A
            column = _reciprocal(np.abs(scaled).max(axis=1, keepdims=True))
            scaled = scaled * column
            identity = np.broadcast_to(np.eye(self.size), scaled.shape)
            solution = _solve(scaled, np.concatenate([row * b, identity], axis=2))
            inverse = solution[:, :, self.columns :]
            condition = np.abs(scaled).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
            x = column.transpose(0, 2, 1) * solution[:, :, : self.columns]
        evidence.condition = np.fmax(evidence.condition, np.where(np.isnan(condition), np.inf, condition))
        values[self.solution] = np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(n, -1)


def _reciprocal(x: np.ndarray) -> np.ndarray:
    """1/x, with one for a row or column of zeros (the matrix is singular then, and will be found so)."""
    return 1.0 / np.where(x == 0.0, 1.0, x)


def _solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Batched solution; samples whose matrix is exactly singular or not finite give infinity."""
    try:
        return np.asarray(np.linalg.solve(A, b))
    except np.linalg.LinAlgError:
        good = np.isfinite(A).all(axis=(1, 2))
        good[good] = np.linalg.matrix_rank(A[good]) == A.shape[1]
        x = np.full(b.shape, np.inf)
        x[good] = np.linalg.solve(A[good], b[good])
        return x


@dataclass(frozen=True, slots=True, kw_only=True)
class Newton:
    """Newton's method on one block of position equations, all samples at once.

    Attributes:
        function: (x, known ...) -> (residual, Jacobian by columns).
        inputs: names of the known values.
        start: name of the start values of x.
        solution: name of x.
        size: number of unknowns.
        what: the loops that the block closes.
        unknowns: names of the coordinates it finds.
    """

    function: BatchFunction
    inputs: tuple[str, ...]
    start: str
    solution: str
    size: int
    what: tuple[str, ...]
    unknowns: tuple[str, ...]

    def run(self, values: dict[str, np.ndarray], n: int, evidence: Evidence) -> None:
        """Iterate for n samples; samples that have converged are left alone."""
        known = [values[name] for name in self.inputs]
        x = values[self.start].copy()
        active = np.arange(n)
        counts = np.zeros(n, dtype=int)
        residual = np.full((n, self.size), np.inf)
        for _ in range(NEWTON_ITERATIONS):
            phi, jacobian = self.function([x[active], *(k[active] for k in known)], len(active))
            residual[active] = phi
            J = jacobian.reshape(-1, self.size, self.size).transpose(0, 2, 1)
            with np.errstate(all="ignore"):
                step = -_solve(J, phi[:, :, None])[:, :, 0]
                length = np.abs(step).max(axis=1)
                step *= np.minimum(1.0, NEWTON_LONGEST_STEP / np.maximum(length, 1e-300))[:, None]
            usable = np.isfinite(step).all(axis=1)
            x[active[usable]] += step[usable]
            counts[active] += 1
            active = active[usable & (length > evidence.tolerance)]
            if not len(active):
                break
        final, _ = self.function([x, *known], n)
        evidence.newton.append((self, np.where(np.isfinite(final), final, np.inf), counts))
        values[self.solution] = x


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedForm:
    """Record of a block that is one equation in one unknown, solved inside the straight-line code.

    The loop closes where the least value of its numerator is not positive and the greatest not negative.

    Attributes:
        what: the loop equation.
        element: its rod or joint.
        unknown: the coordinate found.
        extremes: name of the value (least, greatest, length) of the numerator over the unknown; length is the rod's,
            zero for other closures.
    """

    what: str
    element: str
    unknown: str
    extremes: str

    def run(self, values: dict[str, np.ndarray], n: int, evidence: Evidence) -> None:
        """Keep how far the loop is from closing: the gap in metres for a rod."""
        least, greatest, length = values[self.extremes].T
        with np.errstate(all="ignore"):
            far = np.where(length > 0, np.sqrt(np.maximum(length**2 + least, 0)) - length, least)
            near = np.where(length > 0, length - np.sqrt(np.maximum(length**2 + greatest, 0)), -greatest)
        gap = np.where(least > 0, far, np.where(greatest < 0, -near, 0.0))
        evidence.gaps[self.element] = np.where(np.isfinite(gap), gap, np.inf)


Step = Evaluate | LinearSolve | Newton | ClosedForm


@dataclass(slots=True)
class Evidence:
    """What the steps of one run have shown about its health.

    Attributes:
        condition: worst condition number of the linear blocks per sample (N,).
        tolerance: Newton's method stops when no unknown moves by more than this in a step.
        gaps: per element, by how much a loop solved in closed form misses (m): positive too far, negative too near.
        newton: (step, residuals (N, size), iterations (N,)) of every Newton block.
    """

    condition: np.ndarray
    tolerance: float = NEWTON_STEP
    gaps: dict[str, np.ndarray] = field(default_factory=dict)
    newton: list[tuple[Newton, np.ndarray, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Steps from inputs to outputs, all values by name as arrays (N, n)."""

    name: str
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]

    def run(
        self, inputs: Mapping[str, np.ndarray], n: int, tolerance: float = NEWTON_STEP
    ) -> tuple[dict[str, np.ndarray], Evidence]:
        """Outputs by name and the evidence of the run; inputs are contiguous arrays (N, n), already checked."""
        values = dict(inputs)
        evidence = Evidence(condition=np.ones(n), tolerance=tolerance)
        for step in self.steps:
            step.run(values, n, evidence)
        return {name: values[name] for name in self.outputs}, evidence

    @property
    def operations(self) -> int:
        """Instructions of all straight-line steps together."""
        return sum(step.operations for step in self.steps if isinstance(step, Evaluate))
