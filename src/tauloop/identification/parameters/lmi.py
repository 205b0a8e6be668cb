"""Least squares inside physical cones with a log-determinant prior, and a check of the solution."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh, null_space

from tauloop.common.errors import IdentificationError, Problem
from tauloop.common.records import dataclass
from tauloop.identification.parameters.cones import Cone, divergence

#: A coefficient is at its bound zero if it is at most this fraction of its scale.
LMI_BOUND_TOLERANCE = 1e-6
#: Smallest value of coefficients, as a fraction of their scale, when Newton's method starts from
#: the prior.
START_MARGIN = 1e-2
#: Directions of unit-norm columns with a singular value below this fraction of the largest are not
#: determined by the data.
DATA_RANK_TOLERANCE = 1e-8
#: Maximum number of Newton steps after the solver. The solver stops at 1e-8 of the objective, and
#: sometimes earlier.
MAX_POLISHING_STEPS = 12
#: An error names the inertias whose negative margin is at least this fraction of the worst one.
WORST_MARGIN_FRACTION = 0.5
#: Rounding error of a margin; the margins of the prior are 1.
MARGIN_ROUNDING = 1e-9
#: Maximum number of Newton steps from the prior if the solver failed.
MAX_STEPS_FROM_PRIOR = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConeMap:
    """A cone's matrix as a function of scaled unknowns y: constant + sum over j of linear[j] y_j.

    Attributes:
        cone: cone of one body or rod.
        constant, linear: constant part (k, k) and derivatives (n, k, k) of the matrix.
    """

    cone: Cone
    constant: np.ndarray
    linear: np.ndarray

    @property
    def is_free(self) -> bool:
        """Whether the matrix depends on the unknowns."""
        return bool(np.any(self.linear))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Return the matrix (k, k) at y."""
        return np.asarray(self.constant + self.change(y))

    def change(self, y: np.ndarray) -> np.ndarray:
        """Return the change (k, k) of the matrix along y."""
        return np.tensordot(y, self.linear, axes=1)

    def least(self, y: np.ndarray) -> float:
        """Return the smallest eigenvalue at y."""
        return float(np.linalg.eigvalsh(self(y))[0])

    def is_at_bound(self, y: np.ndarray) -> bool:
        """Return whether a scalar coefficient is at its bound zero; only for matrices (1, 1)."""
        return self.is_free and self(y)[0, 0] <= LMI_BOUND_TOLERANCE

    def expression(self, cvxpy: Any, y: Any) -> Any:
        """Return the matrix for a CVXPY variable y."""
        flat = self.constant.ravel() + self.linear.reshape(len(self.linear), -1).T @ y
        return cvxpy.reshape(flat, self.constant.shape, order="C")


@dataclass(frozen=True, kw_only=True, eq=False)
class ConicProblem:
    """The minimization of |A r - b|^2 / 2 + weight sum of D(P_b | P_b0) over r.

    All P_b(T r + o) must be positive semidefinite.

    Attributes:
        matrix, right: A (m, n) and b (m,), weighted and reduced to the triangular factor of a QR
            factorization (see `Condensed`).
        ties_matrix, ties_offset: T (n_p, n) and o (n_p,) of the parameters p = T r + o.
        cones: cones of the parameters p.
        prior: prior parameters p_0 (n_p,) with strictly positive inertias.
        scale: (n,) positive factors: unknowns are divided by them to improve the conditioning.
    """

    matrix: np.ndarray
    right: np.ndarray
    ties_matrix: np.ndarray
    ties_offset: np.ndarray
    cones: tuple[Cone, ...]
    prior: np.ndarray
    scale: np.ndarray

    @cached_property
    def inertial(self) -> list[ConeMap]:
        """The matrices L^-1 P L^-T of the inertias, with P_0 = L L^T and r = scale y."""
        return [self._mapped(cone) for cone in self.cones if cone.is_inertial]

    @cached_property
    def numbers(self) -> list[ConeMap]:
        """The scalar coefficients as functions of y, each divided by its largest derivative.

        A scaled coefficient is about 1 if its unknown is as large as its scale.
        """
        return [self._mapped(cone) for cone in self.cones if not cone.is_inertial]

    def _mapped(self, cone: Cone) -> ConeMap:
        """Return a cone's matrix as a function of the scaled unknowns."""
        rows = self.ties_matrix[cone.columns] * self.scale
        if cone.is_inertial:
            half = np.linalg.inv(np.linalg.cholesky(cone.matrix(self.prior)))
            basis = np.einsum("ab,jbc,dc->jad", half, cone.basis, half)
        else:
            basis = cone.basis / (np.abs(rows).max() or 1.0)
        constant = np.tensordot(self.ties_offset[cone.columns], basis, axes=1)
        return ConeMap(
            cone=cone, constant=constant, linear=np.asarray(np.einsum("ji,jab->iab", rows, basis))
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConicSolution:
    """The minimum of a `ConicProblem`.

    Attributes:
        unknowns: unknowns r (n,) at the minimum.
        status: status that the solver returned.
        from_solver: whether this is the solver's solution. If False, the solver failed, and this is
            the best feasible solution that Newton's method found from the prior.
        decrement: decrease of the objective by a further Newton step, as a fraction of the
            objective; zero at the minimum. It is computed without the solver.
        at_bound: elements whose coefficient is zero because it would be negative otherwise.
        multiplier: smallest Lagrange multiplier of the bounds `at_bound`: the derivative of the
            objective towards the feasible side, as a fraction of the largest derivative of all
            unknowns at zero; not negative at the minimum.
        data_share: (n,) fraction of each unknown that the data determine; the prior determines the
            remainder. It is the relative reduction of the prior's variance by the data, 1 -
            [(H_data + H_prior)^-1]_jj / [H_prior^-1]_jj; 1 without prior.
        reachable_share: (n,) limit of `data_share` as the weight of the prior goes to zero. It is
            the largest fraction that these data can determine.
    """

    unknowns: np.ndarray
    status: str
    from_solver: bool
    decrement: float
    at_bound: tuple[str, ...]
    multiplier: float
    data_share: np.ndarray
    reachable_share: np.ndarray


def solve_conic(problem: ConicProblem, weights: Sequence[float]) -> tuple[ConicSolution, ...]:
    """Solve the problem for each weight of the prior, and refine the solution by Newton's method.

    The solver is Clarabel, called by CVXPY. The problem is compiled once, with the weight as a
    parameter. If the solver fails, Newton's method starts from the prior instead. The
    log-determinants keep its iterates inside the cones, and `decrement` shows how far the result is
    from the minimum.

    Returns:
        One solution for each weight.

    Raises:
        IdentificationError: CVXPY is not installed, or known values exclude all points of a cone;
            lists the elements.
    """
    cvxpy = convex_solver()
    start = prior_unknowns(problem)
    if start is None:
        _require_possible(problem, cvxpy)
    y = cvxpy.Variable(len(problem.scale))
    weight = cvxpy.Parameter(nonneg=True)
    inertias = [inertia.expression(cvxpy, y) for inertia in problem.inertial]
    prior_terms = [cvxpy.trace(relative) - cvxpy.log_det(relative) for relative in inertias]
    constraints = [number.expression(cvxpy, y) >= 0 for number in problem.numbers if number.is_free]
    misfit = cvxpy.sum_squares((problem.matrix * problem.scale) @ y - problem.right)
    program = cvxpy.Problem(cvxpy.Minimize(0.5 * misfit + weight * sum(prior_terms)), constraints)
    solutions = []
    for value in weights:
        weight.value = value
        status = solve_and_status(cvxpy, program)
        solution = None if y.value is None else np.asarray(y.value)
        if solution is not None and _is_inside(problem, solution):
            solutions.append(_polished(problem, solution, value, status))
        elif start is not None:
            inner = _off_bounds(problem, start)
            solutions.append(_polished(problem, inner, value, status, from_solver=False))
        else:
            raise IdentificationError.of(
                "physically consistent estimation",
                f"the solver found no solution at prior weight {value:.3g} ({status}), and the prior cannot be "
                "used as a start because it does not agree with the known values",
                "raise the weight of the prior, or use known values that agree with it",
            )
    return tuple(solutions)


def solve_and_status(cvxpy: Any, program: Any) -> str:
    """Solve a convex program and return its status, with the reason if the solver failed."""
    with warnings.catch_warnings():
        # Suppress "Solution may be inaccurate", because Newton's method checks the accuracy.
        warnings.simplefilter("ignore")
        try:
            program.solve(solver=cvxpy.CLARABEL)
        except cvxpy.error.SolverError as error:
            return f"failed ({error})"
    return str(program.status)


def prior_unknowns(problem: ConicProblem) -> np.ndarray | None:
    """Return the prior as scaled unknowns y (n,); None if known values exclude it."""
    rows = problem.ties_matrix * problem.scale
    y = np.linalg.lstsq(rows, problem.prior - problem.ties_offset)[0]
    return y if _is_inside(problem, y) else None


def _off_bounds(problem: ConicProblem, y: np.ndarray) -> np.ndarray:
    """Return unknowns moved away from the coefficients' bounds, unless they leave the cones."""
    free = [number for number in problem.numbers if number.is_free]
    rows = np.array([number.linear[:, 0, 0] for number in free]).reshape(-1, len(y))
    values = rows @ y + [number.constant[0, 0] for number in free]
    inner = y + np.linalg.pinv(rows) @ np.maximum(START_MARGIN - values, 0.0)
    return inner if _is_inside(problem, inner) else y


def _is_inside(problem: ConicProblem, y: np.ndarray) -> bool:
    """Return whether all inertias are strictly positive and all coefficients satisfy their bounds.

    Bounds have the tolerance `LMI_BOUND_TOLERANCE`.
    """
    is_physical = all(inertia.least(y) > 0.0 for inertia in problem.inertial)
    return is_physical and all(number.least(y) > -LMI_BOUND_TOLERANCE for number in problem.numbers)


def _require_possible(problem: ConicProblem, cvxpy: Any) -> None:
    """Raise an error if known values exclude all points of the cones.

    The check maximizes the margin t with P_0^-1/2 P_b P_0^-1/2 >= t I for all bodies, under the
    condition that no coefficient is negative.

    Raises:
        IdentificationError: for each impossible element, its largest possible eigenvalue.
    """
    y = cvxpy.Variable(len(problem.scale))
    margin = cvxpy.Variable()
    constraints = [margin <= 1.0]
    impossible = []
    for cone_map in (*problem.inertial, *problem.numbers):
        if not cone_map.is_free:
            smallest = float(np.linalg.eigvalsh(cone_map.constant)[0])
            if smallest < 0.0 or (cone_map.cone.is_inertial and smallest == 0.0):
                impossible.append((cone_map.cone.element, smallest))
            continue
        relative = cone_map.expression(cvxpy, y)
        if cone_map.cone.is_inertial:
            constraints.append(
                0.5 * (relative + relative.T) >> margin * np.eye(len(cone_map.constant))
            )
        else:
            constraints.append(relative >= 0)
    if not impossible:
        cvxpy.Problem(cvxpy.Maximize(margin), constraints).solve(solver=cvxpy.CLARABEL)
        if y.value is None or margin.value is None:
            impossible = [("the coefficients that cannot be negative", float("nan"))]
        elif margin.value <= 0.0:
            for inertia in problem.inertial:
                smallest = inertia.least(y.value)
                if smallest <= WORST_MARGIN_FRACTION * margin.value + MARGIN_ROUNDING:
                    impossible.append((inertia.cone.element, smallest))
    if impossible:
        raise IdentificationError(
            Problem(
                name,
                f"the known values exclude all physically possible parameters: the smallest eigenvalue "
                f"(for a body, of its pseudo-inertia relative to the prior's) is at most {smallest:.3g}; "
                "it must be above zero",
                "correct or omit one of its known values",
            )
            for name, smallest in impossible
        )


def _polished(
    problem: ConicProblem, y: np.ndarray, weight: float, status: str, *, from_solver: bool = True
) -> ConicSolution:
    """Return the solution of Newton's method from y. Coefficients at their bounds remain there.

    The steps stay in the interior of the inertias' cones.
    """
    held = [number for number in problem.numbers if number.is_at_bound(y)]
    A = problem.matrix * problem.scale
    bounds = np.array([number.linear[:, 0, 0] for number in held]).reshape(-1, len(y))
    constants = np.array([number.constant[0, 0] for number in held])
    y = y - np.linalg.pinv(bounds) @ (bounds @ y + constants)
    free = null_space(bounds) if held else np.eye(len(y))
    H_data = A.T @ A
    for _ in range(MAX_POLISHING_STEPS if from_solver else MAX_STEPS_FROM_PRIOR):
        gradient, H_prior = _gradient_and_hessian(A, problem, y, weight)
        step = -free @ np.linalg.lstsq(free.T @ (H_data + H_prior) @ free, free.T @ gradient)[0]
        length = _step_length(problem, y, step)
        if length * np.abs(step).max() <= 1e-13 * max(1.0, np.abs(y).max()):
            break
        y = y + length * step
        if sum(number.is_at_bound(y) for number in problem.numbers) > len(held):
            # Another coefficient has reached its bound: start again with this coefficient at zero.
            return _polished(problem, y, weight, status, from_solver=from_solver)
    # Remove the rounding errors of the steps.
    y = y - np.linalg.pinv(bounds) @ (bounds @ y + constants)
    gradient, H_prior = _gradient_and_hessian(A, problem, y, weight)
    reduced = free.T @ (H_data + H_prior) @ free
    slope = free.T @ gradient
    decrease = 0.5 * slope @ np.linalg.lstsq(reduced, slope)[0]
    divergences = [
        divergence(inertia(y), np.eye(len(inertia.constant))) for inertia in problem.inertial
    ]
    objective = 0.5 * np.sum((A @ y - problem.right) ** 2) + weight * sum(divergences)
    multipliers = np.linalg.lstsq(bounds.T, gradient)[0] if held else np.zeros(1)
    largest_slope = max(np.abs(A.T @ problem.right).max(), np.finfo(float).tiny)
    variance = np.diag(free @ np.linalg.pinv(reduced) @ free.T)
    return ConicSolution(
        unknowns=problem.scale * y,
        status=status,
        from_solver=from_solver,
        decrement=float(decrease / objective) if objective > 0.0 else 0.0,
        at_bound=tuple(number.cone.element for number in held),
        multiplier=float(multipliers.min() / largest_slope),
        data_share=_reduction(variance, H_prior),
        reachable_share=_reachable_share(A, H_prior),
    )


def _reachable_share(A: np.ndarray, H_prior: np.ndarray) -> np.ndarray:
    """Return the fraction (n,) of each unknown that the data determine as the weight goes to zero.

    In this limit, only directions that the data do not determine have a variance.
    """
    norms = np.linalg.norm(A, axis=0)
    norms = np.where(norms > DATA_RANK_TOLERANCE * norms.max(), norms, np.inf)
    directions = null_space(A / norms, rcond=DATA_RANK_TOLERANCE)
    directions = directions / np.where(np.isfinite(norms), norms, 1.0)[:, None]
    covariance = np.linalg.pinv(directions.T @ H_prior @ directions)
    return _reduction(np.diag(directions @ covariance @ directions.T), H_prior)


def _reduction(variance: np.ndarray, H_prior: np.ndarray) -> np.ndarray:
    """Return the relative reduction (n,) of the prior's variances; 1 for unknowns without prior."""
    has_prior = np.diag(H_prior) > 0.0
    prior_variance = np.where(has_prior, np.diag(np.linalg.pinv(H_prior)), 1.0)
    return np.where(has_prior, np.clip(1.0 - variance / prior_variance, 0.0, 1.0), 1.0)


def _gradient_and_hessian(
    A: np.ndarray, problem: ConicProblem, y: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of the objective and the Hessian of its prior part.

    The derivatives of D are tr(E_j - P^-1 E_j) and tr(P^-1 E_j P^-1 E_k).
    """
    gradient = A.T @ (A @ y - problem.right)
    hessian = np.zeros((len(y), len(y)))
    for inertia in problem.inertial:
        inverse = np.linalg.inv(inertia(y))
        linear = inertia.linear
        gradient += weight * np.einsum("jab,ab->j", linear, np.eye(len(inverse)) - inverse)
        relative = np.einsum("ab,jbc->jac", inverse, linear)
        hessian += weight * np.einsum("jab,kba->jk", relative, relative, optimize=True)
    return gradient, hessian


def _step_length(problem: ConicProblem, y: np.ndarray, step: np.ndarray) -> float:
    """Return the step length: at most 1, and at most 90 % of the distance to every boundary."""
    length = 1.0
    for inertia in problem.inertial:
        change = eigh(inertia.change(step), inertia(y), eigvals_only=True)[0]
        if change < 0.0:
            length = min(length, -0.9 / change)
    for number in problem.numbers:
        value = number(y)[0, 0]
        change = number.change(step)[0, 0]
        if value > LMI_BOUND_TOLERANCE and change < 0.0:
            length = min(length, -0.9 * value / change)
    return float(length)


def convex_solver() -> Any:
    """Return the module CVXPY, after a check that Clarabel is installed.

    Raises:
        IdentificationError: one of them is not installed.
    """
    try:
        importlib.import_module("clarabel")
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise IdentificationError.of(
            "physically consistent estimation",
            f"cannot be solved ({error})",
            "install the packages with pip install 'tauloop[consistency]'",
        ) from error
