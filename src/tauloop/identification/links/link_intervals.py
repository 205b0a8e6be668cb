"""Intervals of link parameters over all physically consistent links that agree with estimates.

Every body has a pseudo-inertia that is positive semidefinite (Wensing, Kim and Slotine 2018, Linear
matrix inequalities for physically consistent inertial parameter identification). The smallest and
largest values therefore follow from convex programs, with mass m, first moment h and moment of
inertia J of a link:

- Sums of inertial parameters: a semidefinite program for each end.
- Centers of mass h/m: also semidefinite programs, after the transformation of Charnes and Cooper
  1962, Programming with linear fractional functionals, in which the mass is 1.
- Moments of inertia about the center of mass, J - h.h/m, are concave. The largest value follows
  from a semidefinite program with a Schur complement. The smallest value follows from the method of
  Frank and Wolfe 1956, An algorithm for quadratic programming, started at both ends of the center's
  interval. It may be a local minimum if the center moves in a plane.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tauloop.common.errors import IdentificationError
from tauloop.identification.links.link_quantities import LinkQuantities, LinkQuantity, arrow
from tauloop.identification.parameters.lmi import convex_solver, solve_and_status

#: Maximum number of steps of the search for the smallest central inertia.
MAX_FRANK_WOLFE_STEPS = 20
#: The search ends when the value decreases by less than this fraction.
FRANK_WOLFE_TOLERANCE = 1e-9
#: A row is exact if its standard deviation is below this fraction of its size.
EXACT_ROW_TOLERANCE = 1e-12


class LinkSet:
    """The set of physically possible inertial parameters that agree with a machine's estimates."""

    def __init__(self, quantities: LinkQuantities) -> None:
        """Set up the convex program once; for each interval only its objective changes.

        Raises:
            IdentificationError: CVXPY is not installed.
        """
        self._cvxpy = cvxpy = convex_solver()
        self._y = y = cvxpy.Variable(quantities.size)
        equations = quantities.equations
        linear = [k for k, row in enumerate(quantities.rows) if row is not None]
        difference = np.array([quantities.rows[k] for k in linear])
        difference[:, -1] -= equations.right[linear]
        scales = np.abs(difference).max(axis=1) + np.abs(equations.right[linear])
        covariance = equations.covariance[np.ix_(linear, linear)] / np.outer(scales, scales)
        root = _covariance_root(covariance)
        self._errors = errors = cvxpy.Variable(max(root.shape[1], 1))
        self._distance = cvxpy.Parameter(nonneg=True)
        row_errors = root @ errors if root.shape[1] else 0.0
        self._constraints = [(difference / scales[:, None]) @ y == row_errors, y[-1] >= 0.0]
        for matrix in quantities.matrices:
            flat = matrix.reshape(-1, matrix.shape[-1]) @ y
            square = cvxpy.reshape(flat, matrix.shape[:2], order="C")
            self._constraints.append(
                0.5 * (square + square.T) >> 0.0 if len(matrix) > 1 else flat >= 0.0
            )
        self._objective = cvxpy.Parameter(quantities.size)
        self._unit = cvxpy.Parameter(quantities.size)
        self._error_bounds = [
            cvxpy.norm(errors) <= self._distance * y[-1],
            *self._center_bounds(quantities),
        ]
        goal = cvxpy.Minimize(self._objective @ y)
        self._search = cvxpy.Problem(
            goal, [*self._constraints, *self._error_bounds, self._unit @ y == 1.0]
        )
        self._constant = np.eye(quantities.size)[-1]

    def _center_bounds(self, quantities: LinkQuantities) -> list[Any]:
        """Return the bounds |h - c m| <= deviation m of measured centers of mass c.

        A center of mass is not linear in the coordinates, so it has no row in the linear
        constraints.
        """
        equations = quantities.equations
        bounds = []
        names = [parameter.name for parameter in equations.unknown]
        for k, row in enumerate(quantities.rows):
            if row is not None or equations.rows[k] not in names:
                continue
            quantity = quantities.unknown[names.index(equations.rows[k])]
            if quantity is not None and quantity.kind == "center":
                center = (equations.right[k] - quantity.offset) / quantity.factor
                width = np.sqrt(equations.covariance[k, k]) / abs(quantity.factor)
                difference = (quantity.moments[0] - center * quantity.mass) @ self._y
                limit = width * self._distance * (quantity.mass @ self._y)
                bounds.append(self._cvxpy.abs(difference) <= limit)
        return bounds

    def nearest(self) -> float:
        """Return the distance of the estimates from physically consistent links.

        Returns:
            Distance in standard deviations of all rows together.

        Raises:
            IdentificationError: exact values contradict physically consistent links.
        """
        goal = self._cvxpy.Minimize(self._cvxpy.norm(self._errors))
        program = self._cvxpy.Problem(goal, [*self._constraints, self._y[-1] == 1.0])
        if self._solve(program) is None:
            raise IdentificationError.of(
                "links",
                f"no physically possible links have these values ({program.status})",
                "check the known values and the units of the estimates; give known values with standard "
                "deviations, such as 'm4=12.5 kg +- 0.1 kg'",
            )
        return float(program.value)

    def within(self, distance: float) -> None:
        """Set the largest error of the estimates, in standard deviations of all rows together."""
        self._distance.value = distance

    def interval(self, quantity: LinkQuantity) -> tuple[float | None, float | None]:
        """Return the smallest and the largest value of a quantity; None for an unbounded end."""
        if quantity.kind == "central inertia":
            least, largest = self._least_inertia(quantity), self._largest_inertia(quantity)
        else:
            unit = self._constant if quantity.kind == "sum" else quantity.mass
            least, largest = self._extremes(quantity.moments[0], unit)
        values = [
            None if end is None else quantity.offset + quantity.factor * end
            for end in (least, largest)
        ]
        return (values[0], values[1]) if quantity.factor > 0.0 else (values[1], values[0])

    def _extremes(
        self, objective: np.ndarray, unit: np.ndarray
    ) -> tuple[float | None, float | None]:
        """Return the smallest and the largest objective.y with unit.y = 1; None if unbounded."""
        least = self._least(objective, unit)
        negative = self._least(-objective, unit)
        return least, None if negative is None else -negative

    def _least(self, objective: np.ndarray, unit: np.ndarray) -> float | None:
        """Return the smallest objective.y with unit.y = 1; None if unbounded."""
        size = float(np.abs(objective).max())
        self._objective.value, self._unit.value = objective / (size or 1.0), unit
        return None if self._solve(self._search) is None else float(self._search.value) * size

    def _largest_inertia(self, quantity: LinkQuantity) -> float | None:
        """Return the largest s with [[J - s, h^T], [h, m 1]] positive semidefinite."""
        cvxpy, matrix = self._cvxpy, arrow(quantity.moments, quantity.mass)
        size = float(np.abs(matrix).max())
        s = cvxpy.Variable()
        flat = matrix.reshape(-1, matrix.shape[-1]) @ self._y / size
        square = cvxpy.reshape(flat, matrix.shape[:2], order="C")
        corner = np.zeros(matrix.shape[:2])
        corner[0, 0] = 1.0
        constraints = [
            0.5 * (square + square.T) - s * corner >> 0.0,
            *self._constraints,
            *self._error_bounds,
            self._y[-1] == 1.0,
        ]
        program = cvxpy.Problem(cvxpy.Maximize(s), constraints)
        return None if self._solve(program) is None else float(program.value) * size

    def _least_inertia(self, quantity: LinkQuantity) -> float | None:
        """Return the smallest J - h.h/m.

        The inertia about a point c is J - 2 c.h + c.c m. Over c, it is smallest at the center of
        mass c = h/m. Each step minimizes this inertia over the links, about the center of mass of
        the previous step.
        """
        moments = quantity.moments
        mass = quantity.mass
        ends = []
        for h in moments[1:]:
            ends.append([end for end in self._extremes(h, mass) if end is not None])
        values = []
        for corner in itertools.product(*ends):
            center = np.array(corner)
            best = np.inf
            for _ in range(MAX_FRANK_WOLFE_STEPS):
                inertia = moments[0] - 2.0 * center @ moments[1:] + center @ center * mass
                value = self._least(inertia, self._constant)
                if value is None or value > best - FRANK_WOLFE_TOLERANCE * abs(best):
                    break
                best = value
                center = (moments[1:] @ self._y.value) / (mass @ self._y.value)
            values.append(best)
        return min((value for value in values if np.isfinite(value)), default=None)

    def _solve(self, program: Any) -> float | None:
        """Solve a program and return its optimal value; None if the value is not finite."""
        is_solved = solve_and_status(self._cvxpy, program) in ("optimal", "optimal_inaccurate")
        return float(program.value) if is_solved else None


def _covariance_root(C: np.ndarray) -> np.ndarray:
    """Return L (m, k) with L L^T = C, without columns for exact rows."""
    variances, directions = np.linalg.eigh(0.5 * (C + C.T))
    is_uncertain = variances > EXACT_ROW_TOLERANCE**2
    return np.asarray(directions[:, is_uncertain] * np.sqrt(variances[is_uncertain]))
