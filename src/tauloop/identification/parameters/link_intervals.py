"""What links may weigh: intervals of their parameters over all that agrees with estimates and can exist.

Every body has a pseudo-inertia that is positive semidefinite (Wensing, Kim and Slotine 2018, Linear
matrix inequalities for physically consistent inertial parameter identification), so sums of
inertial parameters are least and largest by a semidefinite program each. So are mass centres h/m:
with the transformation of Charnes and Cooper 1962, Programming with linear fractional functionals,
the mass is 1 and everything else is a multiple of it. Moments of inertia about the centre, J -
h.h/m, are concave: largest by a Schur complement, least by the method of Frank and Wolfe 1956, An
algorithm for quadratic programming, from both ends of the centre's interval.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.identification.parameters.link_quantities import LinkQuantities, LinkQuantity, arrow
from tauloop.identification.parameters.lmi import convex_solver, solved

#: Steps of the search for the least central inertia, and the progress (a share) at which it ends.
STEPS, PROGRESS = 20, 1e-9
#: Deviations below this share of a row's size are rounding: the row is exact.
EXACT = 1e-12


class LinkSet:
    """All inertial parameters that agree with a machine's rows of estimates, and that its links can have."""

    def __init__(self, quantities: LinkQuantities) -> None:
        """Put the set to the solver once; every interval is a change of its objective.

        Raises:
            IdentificationError: CVXPY is not installed.
        """
        self._cvxpy = cvxpy = convex_solver()
        self._y = y = cvxpy.Variable(quantities.size)
        equations = quantities.equations
        kept = [k for k, row in enumerate(quantities.rows) if row is not None]
        difference = np.array([quantities.rows[k] for k in kept])
        difference[:, -1] -= equations.right[kept]
        sizes = np.abs(difference).max(axis=1) + np.abs(equations.right[kept])
        half = _root(equations.covariance[np.ix_(kept, kept)] / np.outer(sizes, sizes))
        self._errors = errors = cvxpy.Variable(max(half.shape[1], 1))
        self._distance = cvxpy.Parameter(nonneg=True)
        seen = half @ errors if half.shape[1] else 0.0
        self._constraints = [(difference / sizes[:, None]) @ y == seen, y[-1] >= 0.0]
        for matrix in quantities.matrices:
            flat = matrix.reshape(-1, matrix.shape[-1]) @ y
            square = cvxpy.reshape(flat, matrix.shape[:2], order="C")
            self._constraints.append(
                0.5 * (square + square.T) >> 0.0 if len(matrix) > 1 else flat >= 0.0
            )
        measured = self._measured(quantities)
        self._objective, self._unit = (
            cvxpy.Parameter(quantities.size),
            cvxpy.Parameter(quantities.size),
        )
        self._near = [cvxpy.norm(errors) <= self._distance * y[-1], *measured]
        goal = cvxpy.Minimize(self._objective @ y)
        self._search = cvxpy.Problem(goal, [*self._constraints, *self._near, self._unit @ y == 1.0])
        self._last = np.eye(quantities.size)[-1]

    def _measured(self, quantities: LinkQuantities) -> list[Any]:
        """Mass centres that are known by measurement, which are rows of no functional: |h - c m| <= deviations m."""
        equations, bounds = quantities.equations, []
        names = [parameter.name for parameter in equations.unknown]
        for k, row in enumerate(quantities.rows):
            quantity = (
                quantities.unknown[names.index(equations.rows[k])]
                if equations.rows[k] in names
                else None
            )
            if row is None and quantity is not None and quantity.kind == "centre":
                centre = (equations.right[k] - quantity.offset) / quantity.factor
                width = np.sqrt(equations.covariance[k, k]) / abs(quantity.factor)
                off = (quantity.moments[0] - centre * quantity.mass) @ self._y
                bounds.append(
                    self._cvxpy.abs(off) <= width * self._distance * (quantity.mass @ self._y)
                )
        return bounds

    def nearest(self) -> float:
        """Least distance of the estimates from what links can have, in standard deviations.

        Raises:
            IdentificationError: exact values are none that links can have.
        """
        goal = self._cvxpy.Minimize(self._cvxpy.norm(self._errors))
        program = self._cvxpy.Problem(goal, [*self._constraints, self._y[-1] == 1.0])
        if self._solved(program) is None:
            raise IdentificationError.of(
                "links",
                f"no set of parameters has these values and links that can exist ({program.status})",
                "look at the known values and at the units of the estimates; give known values their deviations, "
                "such as 'm4=12.5 kg +- 0.1 kg'",
            )
        return float(program.value)

    def within(self, distance: float) -> None:
        """From here on estimates may be off by so many standard deviations together."""
        self._distance.value = distance

    def interval(self, quantity: LinkQuantity) -> tuple[float | None, float | None]:
        """Least and largest value; None where there is no end."""
        if quantity.kind == "central inertia":
            least, largest = self._least_inertia(quantity), self._largest_inertia(quantity)
        else:
            unit = self._last if quantity.kind == "sum" else quantity.mass
            ends = [self._extreme(sign * quantity.moments[0], unit) for sign in (1.0, -1.0)]
            least, largest = (
                None if end is None else s * end for s, end in zip((1.0, -1.0), ends, strict=True)
            )
        values = [
            None if end is None else quantity.offset + quantity.factor * end
            for end in (least, largest)
        ]
        return (values[0], values[1]) if quantity.factor > 0.0 else (values[1], values[0])

    def _extreme(self, objective: np.ndarray, unit: np.ndarray) -> float | None:
        """Least objective.y with unit.y = 1; None where there is none."""
        size = float(np.abs(objective).max())
        self._objective.value, self._unit.value = objective / (size or 1.0), unit
        return None if self._solved(self._search) is None else float(self._search.value) * size

    def _largest_inertia(self, quantity: LinkQuantity) -> float | None:
        """The largest s with [[J - s, h^T], [h, m 1]] positive semidefinite."""
        cvxpy, matrix = self._cvxpy, arrow(quantity.moments, quantity.mass)
        size = float(np.abs(matrix).max())
        s = cvxpy.Variable()
        flat = cvxpy.reshape(
            matrix.reshape(-1, matrix.shape[-1]) @ self._y / size, matrix.shape[:2], order="C"
        )
        corner = np.zeros(matrix.shape[:2])
        corner[0, 0] = 1.0
        constraints = [
            0.5 * (flat + flat.T) - s * corner >> 0.0,
            *self._constraints,
            *self._near,
            self._y[-1] == 1.0,
        ]
        program = cvxpy.Problem(cvxpy.Maximize(s), constraints)
        return None if self._solved(program) is None else float(program.value) * size

    def _least_inertia(self, quantity: LinkQuantity) -> float | None:
        """The least of J - h.h/m: about a point c that is J - 2 c.h + c.c m, least at the centre c = h/m itself."""
        moments, mass = quantity.moments, quantity.mass
        ends = [
            [s * end for s in (1.0, -1.0) if (end := self._extreme(s * h, mass)) is not None]
            for h in moments[1:]
        ]
        values = []
        for corner in itertools.product(*ends):
            centre, best = np.array(corner), np.inf
            for _ in range(STEPS):
                value = self._extreme(
                    moments[0] - 2.0 * centre @ moments[1:] + centre @ centre * mass, self._last
                )
                if value is None or value > best - PROGRESS * abs(best):
                    break
                best, centre = value, (moments[1:] @ self._y.value) / (mass @ self._y.value)
            values.append(best)
        return min((value for value in values if np.isfinite(value)), default=None)

    def _solved(self, program: Any) -> float | None:
        """The program's value; None where it has no finite one."""
        is_solved = solved(self._cvxpy, program) in ("optimal", "optimal_inaccurate")
        return float(program.value) if is_solved else None


def _root(C: np.ndarray) -> np.ndarray:
    """L (m, k) with L L^T = C, without columns for what is exact."""
    sizes, directions = np.linalg.eigh(0.5 * (C + C.T))
    kept = sizes > EXACT**2
    return np.asarray(directions[:, kept] * np.sqrt(sizes[kept]))
