"""Enclosures of solutions of equations over boxes by Krawczyk's test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, PROOF_FACTOR
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.intervals.matrices import Matrix, matrix, matrix_from_entries, numeric_product
from tauloop.design.intervals.program import InstructionList

#: The half width of the enclosure of an unknown is the unknown's bound of |C psi| multiplied by
#: this factor, plus a multiple of the largest bound (`LARGEST_BOUND_FACTOR`).
BOUND_FACTOR = 2.0
#: Factor of the largest bound of |C psi| of all unknowns in each half width.
LARGEST_BOUND_FACTOR = 0.25
#: Smallest half width of the enclosure of an unknown (rad, or characteristic lengths).
MIN_HALF_WIDTH = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionBounds:
    """Bounds of solutions around affine forms in N boxes.

    Attributes:
        uniqueness_radius: half widths (N, n) around the forms within which the solution is unique.
        remainder: half widths (N, n) of an interval around the forms that contains the solution.
        has_unique_solution: whether the solution exists and is unique in the whole box (N,).
    """

    uniqueness_radius: np.ndarray
    remainder: np.ndarray
    has_unique_solution: np.ndarray


def solution_bounds(
    equations: InstructionList,
    jacobian: InstructionList,
    leading_inputs: Sequence[Form],
    unknowns: Sequence[Form],
    trailing_inputs: Sequence[Form],
    C: np.ndarray,
    scale: np.ndarray,
) -> SolutionBounds:
    """Return bounds of the difference e between solutions y of psi(a, y, p) = 0 and affine forms.

    The inputs a and p are affine forms too. With C near the inverse of the Jacobian psi_y,
    e = -C psi + (I - C psi_y) e has exactly one solution in |e| < E if
    |C psi| + |I - C psi_y| E < E.

    Args:
        equations: program (a, y, p) -> psi (n).
        jacobian: program (a, y, p) -> psi_y (n, n), one column after the other.
        leading_inputs, trailing_inputs: forms of the inputs a and p, which precede and follow y.
        unknowns: forms of y.
        C: approximate inverses (N, n, n) of psi_y.
        scale: characteristic magnitudes (n,) of y, with which unknowns are made comparable.

    Source: Krawczyk 1969; Neumaier 1990, Interval methods for systems of equations, section 5.1.
    """
    n = len(unknowns)
    N = len(C)
    k = leading_inputs[0].n_symbols
    psi = matrix_from_entries(
        equations.run([*leading_inputs, *unknowns, *trailing_inputs], ARITHMETIC), n, 1, k, N
    )
    z = numeric_product(C, psi).magnitude_bounds()[:, :, 0] / scale
    largest = z.max(axis=1, keepdims=True, initial=0.0)
    width = np.maximum(BOUND_FACTOR * z + LARGEST_BOUND_FACTOR * largest, MIN_HALF_WIDTH)
    widened_unknowns = [widened(y, width[:, j] * scale[j]) for j, y in enumerate(unknowns)]
    J = matrix_from_entries(
        jacobian.run([*leading_inputs, *widened_unknowns, *trailing_inputs], ARITHMETIC), n, n, k, N
    )
    D = _minus_one(numeric_product(C, J)).magnitude_bounds() * (scale / scale[:, None])
    within = (z + (D @ width[:, :, None])[:, :, 0]) * INFLATION
    tight = (z + (D @ within[:, :, None])[:, :, 0]) * INFLATION
    has_unique_solution = np.ones(N, dtype=bool)
    if n:
        has_unique_solution = (within < PROOF_FACTOR * width).all(axis=1)
    return SolutionBounds(
        uniqueness_radius=width * scale,
        remainder=np.minimum(within, tight) * scale,
        has_unique_solution=has_unique_solution,
    )


def linear_form(center: np.ndarray, generators: np.ndarray) -> Form:
    """Return forms from centers (N,) and generators (k, N), with a remainder for rounding errors."""
    rows = np.concatenate([center[None], generators, np.zeros((1, len(center)))])
    rows[-1] = 4.0 * ROUNDING * np.abs(rows).sum(axis=0)
    return form(rows)


def widened(x: Form, increase: np.ndarray) -> Form:
    """Return forms whose remainders are increased by `increase` (N,)."""
    rows = x.rows.copy()
    rows[-1] = (rows[-1] + increase) * INFLATION
    return form(rows)


def _minus_one(A: Matrix) -> Matrix:
    """Return A - I."""
    rows = A.rows.copy()
    rows[0] -= np.eye(rows.shape[-1])
    rows[-1] += ROUNDING * (1.0 + A.magnitude_bounds())
    return matrix(rows)
