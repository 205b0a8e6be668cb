"""Angles coupled by gears as integer multiples of free angles, so that loops stay polynomials.

A gear's equation is linear in the angles. Solved for the unknown angles, it gives u_i = o_i + sum_j
n_ij t_j with offsets o_i, free angles t_j and, if the ratios are rational, integers n_ij. The
cosine and sine of u_i are then polynomials in the cosines and sines of the t_j, and every mode is
found with t_j within one revolution.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.solving.position import PositionEquations

#: Largest denominator of the fraction that a gear's ratio must equal. Numbers of teeth are between
#: tens and hundreds.
LARGEST_DENOMINATOR = 1000
#: Largest relative difference of a ratio from such a fraction.
RATIO_TOLERANCE = 1e-9
#: Highest multiple of a free angle in a loop. It is the degree of the loop's equations and
#: determines the number of paths.
HIGHEST_MULTIPLE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Gears:
    """Relation of coupled angles to free ones.

    Attributes:
        angles: indices of the n coordinates that gears couple.
        leaders: indices of the f coordinates among them whose columns contain the free angles.
        offset: o (n,), rad.
        multiple: n_ij (n, f), integers.
    """

    angles: tuple[int, ...] = ()
    leaders: tuple[int, ...] = ()
    offset: np.ndarray
    multiple: np.ndarray

    @property
    def followers(self) -> tuple[int, ...]:
        """Coupled angles other than the leaders."""
        return tuple(i for i in self.angles if i not in self.leaders)

    def free(self, q: np.ndarray) -> np.ndarray:
        """Return the free angles (N, f) of coordinates (N, n_q) that satisfy the gear equations."""
        rows = [self.angles.index(i) for i in self.leaders]
        multiples = self.multiple[rows].diagonal()
        return np.asarray((q[:, list(self.leaders)] - self.offset[rows]) / multiples)

    def angles_at(self, t: np.ndarray) -> np.ndarray:
        """Return the coupled angles (N, n) at free angles t (N, f)."""
        return self.offset + t @ self.multiple.T

    def pairs(self, c: ca.SX, s: ca.SX) -> dict[int, tuple[ca.SX, ca.SX]]:
        """Return cosine and sine of every coupled angle from those of the free ones (f,)."""
        matched = {}
        for i, offset, multiples in zip(self.angles, self.offset, self.multiple, strict=True):
            re, im = ca.SX(math.cos(offset)), ca.SX(math.sin(offset))
            for j, count in enumerate(multiples):
                step = s[j] if count > 0 else -s[j]
                for _ in range(abs(int(count))):
                    re, im = re * c[j] - im * step, re * step + im * c[j]
            matched[i] = (re, im)
        return matched


NO_GEARS = Gears(offset=np.zeros(0), multiple=np.zeros((0, 0)))


def split_gears(
    equations: PositionEquations,
    is_angle: tuple[bool, ...],
    unknown: tuple[int, ...],
    start: np.ndarray,
    file: str,
) -> tuple[PositionEquations, Gears]:
    """Return the equations without those of gears between angles, and the gears.

    Args:
        equations: all position equations.
        is_angle: whether each coordinate is an angle.
        unknown: indices of the unknown coordinates.
        start: coordinates (n_q,); only the values of known coordinates are used.
        file: file name for messages.

    Raises:
        AssemblyError: a gear couples angles with unknown lengths, or its ratio is not a fraction of
            whole numbers or is too high.
    """
    angles = [i for i in range(len(is_angle)) if is_angle[i]]
    contains = np.array(
        ca.DM(ca.jacobian_sparsity(equations.psi, equations.q), 1).full(), dtype=bool
    )
    rows = [int(row) for row in np.flatnonzero(contains[:, angles].any(axis=1))] if angles else []
    if not rows:
        return equations, NO_GEARS
    linear = ca.Function(
        "gears", [equations.q], [equations.psi[rows], ca.jacobian(equations.psi[rows], equations.q)]
    )
    known_q = np.array(start, dtype=float)
    known_q[list(unknown)] = 0.0
    value, A = (np.array(x.full()) for x in linear(known_q))
    coupled = [i for i in unknown if is_angle[i] and A[:, i].any()]
    lengths = [i for i in unknown if not is_angle[i]]
    AssemblyError.raise_if_any(
        Problem(
            where=equations.elements[row],
            what="couples angles with an unknown length, so its equation is not a polynomial in "
            "cosines and sines",
            remedy="describe the machine without this coupling, or give the length",
            file=file,
        )
        for row, ratios in zip(rows, A, strict=True)
        if ratios[lengths].any()
    )
    gears = _solve(
        A[:, coupled], -value[:, 0], tuple(coupled), [equations.elements[row] for row in rows], file
    )
    loop_rows = [row for row in range(len(equations.names)) if row not in rows]
    loop_equations = replace(
        equations,
        psi=equations.psi[loop_rows],
        scales=equations.scales[loop_rows],
        names=tuple(equations.names[row] for row in loop_rows),
        elements=tuple(equations.elements[row] for row in loop_rows),
        differences=tuple(equations.differences[row] for row in loop_rows),
    )
    _refuse_high(loop_equations, gears, rows, equations, file)
    return loop_equations, gears


def _solve(
    A: np.ndarray, d: np.ndarray, angles: tuple[int, ...], elements: list[str], file: str
) -> Gears:
    """Return the angles u with A u = d, by elimination in exact fractions; A has full row rank."""
    rows = [_fractions(ratios) for ratios in A]
    inexact_elements = [
        element
        for element, fractions, ratios in zip(elements, rows, A, strict=True)
        if not _are_exact(fractions, ratios)
    ]
    if inexact_elements:
        raise AssemblyError(
            Problem(
                where=element,
                what=f"its ratio is not a fraction of whole numbers with a denominator up to {LARGEST_DENOMINATOR}",
                remedy="write the ratio with the numbers of teeth, such as 17/43",
                file=file,
            )
            for element in inexact_elements
        )
    # Gauss-Jordan elimination
    right_side = list(d)
    pivots: list[int] = []
    for k in range(len(rows)):
        j = next(j for j in range(len(angles)) if rows[k][j] != 0)
        pivots.append(j)
        right_side[k] /= float(rows[k][j])
        rows[k] = [x / rows[k][j] for x in rows[k]]
        for i in range(len(rows)):
            factor = rows[i][j]
            if i != k and factor != 0:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
                right_side[i] -= float(factor) * right_side[k]
    free = [j for j in range(len(angles)) if j not in pivots]
    offset = np.zeros(len(angles))
    multiple = np.zeros((len(angles), len(free)))
    for column, j in enumerate(free):
        # The free angle is angle j divided by this denominator, so that all ratios are integers.
        denominator = math.lcm(*(row[j].denominator for row in rows))
        multiple[j, column] = denominator
        for k, pivot in enumerate(pivots):
            multiple[pivot, column] = float(-rows[k][j] * denominator)
    offset[pivots] = right_side
    return Gears(
        angles=angles, leaders=tuple(angles[j] for j in free), offset=offset, multiple=multiple
    )


def _fractions(ratios: np.ndarray) -> list[Fraction]:
    """Return the nearest fractions with denominators up to `LARGEST_DENOMINATOR`."""
    return [Fraction(ratio).limit_denominator(LARGEST_DENOMINATOR) for ratio in ratios]


def _are_exact(fractions: list[Fraction], ratios: np.ndarray) -> bool:
    """Return whether fractions equal ratios up to `RATIO_TOLERANCE`."""
    differences = np.abs(np.array(fractions, dtype=float) - ratios)
    return bool((differences <= RATIO_TOLERANCE * np.maximum(1.0, np.abs(ratios))).all())


def _refuse_high(
    loop_equations: PositionEquations,
    gears: Gears,
    rows: list[int],
    equations: PositionEquations,
    file: str,
) -> None:
    """Reject multiples in loops that would lead to too many paths."""
    cosines_and_sines = ca.vertcat(loop_equations.c, loop_equations.s)
    is_used: np.ndarray = np.array(
        ca.DM(ca.jacobian_sparsity(loop_equations.psi, cosines_and_sines), 1).full(), dtype=bool
    ).reshape(-1, 2, loop_equations.c.size1())
    in_loops: np.ndarray = np.any(is_used, axis=(0, 1))
    highest = max(
        (
            int(np.abs(n).sum())
            for i, n in zip(gears.angles, gears.multiple, strict=True)
            if in_loops[i]
        ),
        default=0,
    )
    if highest > HIGHEST_MULTIPLE:
        raise AssemblyError.of(
            ", ".join(equations.elements[row] for row in rows),
            f"an angle in a loop is {highest} times the angle that it is geared to",
            "describe the machine without this coupling: modes are found for multiples up to "
            f"{HIGHEST_MULTIPLE}",
            file=file,
        )
