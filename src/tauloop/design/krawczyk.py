"""Enclosures of solutions of equations over boxes by Krawczyk's test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, SURE
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.intervals.matrices import Matrix, gathered, matrix, multiplied
from tauloop.design.intervals.program import InstructionList

#: Half width of the enclosure in which the solution is unique: multiples of the unknown's bound of
#: |C psi| and of the largest such bound, and the smallest width (rad, or characteristic lengths).
BOUND_FACTOR, LARGEST_BOUND_FACTOR, MIN_WIDTH = 2.0, 0.25, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionBounds:
    """Bounds of solutions around first-order forms in N boxes.

    Attributes:
        unique: half widths (N, n) within which the solution is unique.
        remainder: half widths (N, n) that contain the solution.
        closed: whether the solution exists and is unique in the whole box (N,).
    """

    unique: np.ndarray
    remainder: np.ndarray
    closed: np.ndarray


def solution_bounds(
    equations: InstructionList,
    jacobian: InstructionList,
    before: Sequence[Form],
    unknowns: Sequence[Form],
    after: Sequence[Form],
    C: np.ndarray,
    scale: np.ndarray,
) -> SolutionBounds:
    """Return bounds of the distance between solutions y of psi(a, y, p) = 0 and first-order forms.

    With C near the inverse of psi_y, e = -C psi + (I - C psi_y) e has exactly one solution in |e| <
    E if |C psi| + |I - C psi_y| E < E.

    Args:
        equations: program (a, y, p) -> psi (n).
        jacobian: program (a, y, p) -> psi_y (n, n), one column after the other.
        before, after: forms of the inputs a and p.
        unknowns: forms of y.
        C: approximate inverses (N, n, n) of psi_y.
        scale: units of y (n,).

    Source: Krawczyk 1969; Neumaier 1990, Interval methods for systems of equations, section 5.1.
    """
    n, N = len(unknowns), len(C)
    k = before[0].rows.shape[0] - 2
    psi = gathered(equations.run([*before, *unknowns, *after], ARITHMETIC), n, 1, k, N)
    z = multiplied(C, psi).largest()[:, :, 0] / scale
    largest = z.max(axis=1, keepdims=True, initial=0.0)
    width = np.maximum(BOUND_FACTOR * z + LARGEST_BOUND_FACTOR * largest, MIN_WIDTH)
    wide = [widened(y, width[:, j] * scale[j]) for j, y in enumerate(unknowns)]
    J = gathered(jacobian.run([*before, *wide, *after], ARITHMETIC), n, n, k, N)
    D = _minus_one(multiplied(C, J)).largest() * (scale / scale[:, None])
    within = (z + (D @ width[:, :, None])[:, :, 0]) * INFLATION
    tight = (z + (D @ within[:, :, None])[:, :, 0]) * INFLATION
    closed = (within < SURE * width).all(axis=1) if n else np.ones(N, dtype=bool)
    return SolutionBounds(
        unique=width * scale, remainder=np.minimum(within, tight) * scale, closed=closed
    )


def linear_form(middle: np.ndarray, slopes: np.ndarray) -> Form:
    """Return forms of a coordinate from middle (N,) and slopes (k, N), with rounding errors."""
    rows = np.concatenate([middle[None], slopes, np.zeros((1, len(middle)))])
    rows[-1] = 4.0 * ROUNDING * np.abs(rows).sum(axis=0)
    return form(rows)


def widened(x: Form, by: np.ndarray) -> Form:
    """Return forms whose remainders are increased by (N,)."""
    rows = x.rows.copy()
    rows[-1] = (rows[-1] + by) * INFLATION
    return form(rows)


def _minus_one(A: Matrix) -> Matrix:
    """Return A - I."""
    rows = A.rows.copy()
    rows[0] -= np.eye(rows.shape[-1])
    rows[-1] += ROUNDING * (1.0 + A.largest())
    return matrix(rows)
