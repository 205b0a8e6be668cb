"""Least squares inside physical cones with a log-determinant prior: the convex problem, and a check of its solution."""

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

#: A coefficient this far above zero, as a share of its scale, is at its bound.
AT_BOUND = 1e-6
#: Where Newton's method starts without a solver, coefficients are so far above zero, as a share of
#: their scale.
OFF_BOUND = 1e-2
#: Directions of unit-norm columns with a smaller singular value, as a share of the largest, are not
#: seen by the data.
UNSEEN = 1e-8
#: Newton steps after the solver, which stops at 1e-8 of the objective and sometimes earlier.
POLISHING = 12
#: And from the prior, where the solver failed.
FROM_PRIOR = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConeMap:
    """A cone's matrix as a function of scaled unknowns y: constant + sum over j of linear[j] y_j.

    Attributes:
        cone: whose.
        constant, linear: (k, k) and (n, k, k).
    """

    cone: Cone
    constant: np.ndarray
    linear: np.ndarray

    @property
    def is_free(self) -> bool:
        """Whether it depends on the unknowns."""
        return bool(np.any(self.linear))

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """The matrix (k, k) at y."""
        return np.asarray(self.constant + self.change(y))

    def change(self, y: np.ndarray) -> np.ndarray:
        """Change (k, k) of the matrix along y."""
        return np.tensordot(y, self.linear, axes=1)

    def least(self, y: np.ndarray) -> float:
        """Its least eigenvalue."""
        return float(np.linalg.eigvalsh(self(y))[0])

    def is_at_bound(self, y: np.ndarray) -> bool:
        """Whether a number is at its bound."""
        return self.is_free and self(y)[0, 0] <= AT_BOUND

    def expression(self, cvxpy: Any, y: Any) -> Any:
        """The matrix of a variable y of CVXPY."""
        flat = self.constant.ravel() + self.linear.reshape(len(self.linear), -1).T @ y
        return cvxpy.reshape(flat, self.constant.shape, order="C")


@dataclass(frozen=True, kw_only=True, eq=False)
class ConicProblem:
    """Minimise |A r - b|^2 / 2 + weight sum of D(P_b | P_b0) over r, with all P_b(T r + o) positive semidefinite.

    Attributes:
        matrix, right: A (m, n) and b (m,), condensed.
        ties_matrix, ties_offset: T (n_p, n) and o (n_p,).
        cones: of the parameters p = T r + o.
        prior: p_0 (n_p,), inertias strictly positive.
        scale: (n,) sizes of the unknowns, for the solver's sake.
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
        """L^-1 P L^-T of the inertias, with P_0 = L L^T and r = scale y."""
        return [self._mapped(cone) for cone in self.cones if cone.is_inertial]

    @cached_property
    def numbers(self) -> list[ConeMap]:
        """The coefficients, each over its largest factor: 1 where its unknown is as large as its scale."""
        return [self._mapped(cone) for cone in self.cones if not cone.is_inertial]

    def _mapped(self, cone: Cone) -> ConeMap:
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
    """Minimum of a `ConicProblem`.

    Attributes:
        unknowns: r (n,).
        status: what the solver said.
        from_solver: whether it is the solver's; else the solver failed, and this is the best
            feasible set that Newton's method reached from the prior.
        decrement: by how much the objective could still fall, as a share of it, by a Newton step
            taken from the solution apart from the solver; zero at the minimum.
        at_bound: elements whose coefficient is zero because it would be negative otherwise.
        multiplier: least slope of the objective into the allowed side of those bounds, as a share
            of the largest of all unknowns at zero; not negative at the minimum.
        data_share: (n,) share of each unknown that the data determine, the prior the rest: by how
            much the data lessen the variance that the prior leaves, 1 - [(H_data + H_prior)^-1]_jj
            / [H_prior^-1]_jj; 1 without prior.
        reachable_share: (n,) the same as the weight of the prior goes to zero: what these data
            could tell at best.
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
    """Solve for each weight of the prior, with CVXPY and Clarabel, and polish by Newton's method.

    The problem is compiled once: the weight is a parameter of it. Where the solver fails, Newton's
    method starts from the prior instead: the log-determinants keep it inside the cones, and
    `decrement` tells how far it came.

    Raises:
        IdentificationError: CVXPY is not installed; or known values leave nothing inside a cone,
            and of which.
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
        status = solved(cvxpy, program)
        solution = None if y.value is None else np.asarray(y.value)
        if solution is not None and _is_inside(problem, solution):
            solutions.append(_polished(problem, solution, value, status))
        elif start is not None:
            solutions.append(
                _polished(problem, _lifted(problem, start), value, status, from_solver=False)
            )
        else:
            raise IdentificationError.of(
                "physically consistent estimation",
                f"the solver found no solution at prior weight {value:.3g}: {status}; and the prior does not "
                "meet the known values, so that there is nothing to start from",
                "raise the weight of the prior, or take known values that agree with it",
            )
    return tuple(solutions)


def solved(cvxpy: Any, program: Any) -> str:
    """Solve a convex program; its status, which has the reason where the solver failed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the solution is judged by others
        try:
            program.solve(solver=cvxpy.CLARABEL)
        except cvxpy.error.SolverError as error:
            return f"failed ({error})"
    return str(program.status)


def prior_unknowns(problem: ConicProblem) -> np.ndarray | None:
    """The prior as scaled unknowns y (n,); None where known values do not leave it inside the cones."""
    rows = problem.ties_matrix * problem.scale
    y = np.linalg.lstsq(rows, problem.prior - problem.ties_offset)[0]
    return y if _is_inside(problem, y) else None


def _lifted(problem: ConicProblem, y: np.ndarray) -> np.ndarray:
    """Unknowns with coefficients off their bounds, as far as that leaves them inside the cones."""
    free = [number for number in problem.numbers if number.is_free]
    rows = np.array([number.linear[:, 0, 0] for number in free]).reshape(-1, len(y))
    values = rows @ y + [number.constant[0, 0] for number in free]
    lifted = y + np.linalg.pinv(rows) @ np.maximum(OFF_BOUND - values, 0.0)
    return lifted if _is_inside(problem, lifted) else y


def _is_inside(problem: ConicProblem, y: np.ndarray) -> bool:
    """Whether every inertia is strictly positive, and no coefficient below its bound by more than rounding."""
    is_real = all(inertia.least(y) > 0.0 for inertia in problem.inertial)
    return is_real and all(number.least(y) > -AT_BOUND for number in problem.numbers)


def _require_possible(problem: ConicProblem, cvxpy: Any) -> None:
    """Refuse known values that leave nothing inside the cones: which elements, and how far outside at best.

    Maximises the margin t with P_0^-1/2 P_b P_0^-1/2 >= t I for all bodies, and coefficients not
    negative.
    """
    y, margin = cvxpy.Variable(len(problem.scale)), cvxpy.Variable()
    constraints, fixed = [margin <= 1.0], []
    for cone_map in (*problem.inertial, *problem.numbers):
        if not cone_map.is_free:
            least = float(np.linalg.eigvalsh(cone_map.constant)[0])
            if least < 0.0 or (cone_map.cone.is_inertial and least == 0.0):
                fixed.append((cone_map.cone.element, least))
            continue
        relative = cone_map.expression(cvxpy, y)
        if cone_map.cone.is_inertial:
            constraints.append(
                0.5 * (relative + relative.T) >> margin * np.eye(len(cone_map.constant))
            )
        else:
            constraints.append(relative >= 0)
    if not fixed:
        cvxpy.Problem(cvxpy.Maximize(margin), constraints).solve(solver=cvxpy.CLARABEL)
        if y.value is None or margin.value is None:
            fixed = [("the coefficients that cannot be negative", float("nan"))]
        elif margin.value <= 0.0:
            at_best = [
                (inertia.cone.element, inertia.least(y.value)) for inertia in problem.inertial
            ]
            fixed = [(name, least) for name, least in at_best if least <= 0.5 * margin.value + 1e-9]
    if fixed:
        raise IdentificationError(
            Problem(
                name,
                f"known values leave no set of parameters that it can have: at best the least eigenvalue is "
                f"{least:.3g} (of a body: of its pseudo-inertia beside the prior's), and it must be above zero",
                "free one of its known values, or correct it",
            )
            for name, least in fixed
        )


def _polished(
    problem: ConicProblem, y: np.ndarray, weight: float, status: str, *, from_solver: bool = True
) -> ConicSolution:
    """Newton's method from the solver's answer on the cones' interior, with coefficients at their bound held there."""
    held = [number for number in problem.numbers if number.is_at_bound(y)]
    A = problem.matrix * problem.scale
    bounds = np.array([number.linear[:, 0, 0] for number in held]).reshape(-1, len(y))
    constants = np.array([number.constant[0, 0] for number in held])
    y = y - np.linalg.pinv(bounds) @ (bounds @ y + constants)
    free = null_space(bounds) if held else np.eye(len(y))
    H_data = A.T @ A
    for _ in range(POLISHING if from_solver else FROM_PRIOR):
        gradient, H_prior = _slopes(A, problem, y, weight)
        step = -free @ np.linalg.lstsq(free.T @ (H_data + H_prior) @ free, free.T @ gradient)[0]
        length = _inside(problem, y, step)
        if length * np.abs(step).max() <= 1e-13 * max(1.0, np.abs(y).max()):
            break
        y = y + length * step
        if sum(number.is_at_bound(y) for number in problem.numbers) > len(held):
            # with one more held at its bound
            return _polished(problem, y, weight, status, from_solver=from_solver)
    y = y - np.linalg.pinv(bounds) @ (bounds @ y + constants)  # rounding of the steps
    gradient, H_prior = _slopes(A, problem, y, weight)
    reduced = free.T @ (H_data + H_prior) @ free
    slope = free.T @ gradient
    fall = 0.5 * slope @ np.linalg.lstsq(reduced, slope)[0]
    divergences = [
        divergence(inertia(y), np.eye(len(inertia.constant))) for inertia in problem.inertial
    ]
    objective = 0.5 * np.sum((A @ y - problem.right) ** 2) + weight * sum(divergences)
    slopes = np.linalg.lstsq(bounds.T, gradient)[0] if held else np.zeros(1)
    variance = np.diag(free @ np.linalg.pinv(reduced) @ free.T)
    return ConicSolution(
        unknowns=problem.scale * y,
        status=status,
        from_solver=from_solver,
        decrement=float(fall / objective) if objective > 0.0 else 0.0,
        at_bound=tuple(number.cone.element for number in held),
        multiplier=float(
            slopes.min() / max(np.abs(A.T @ problem.right).max(), np.finfo(float).tiny)
        ),
        data_share=_share(variance, H_prior),
        reachable_share=_reachable(A, H_prior),
    )


def _reachable(A: np.ndarray, H_prior: np.ndarray) -> np.ndarray:
    """Shares (n,) where the data outweigh the prior: a variance is left in the directions N that they do not see."""
    norms = np.linalg.norm(A, axis=0)
    norms = np.where(norms > UNSEEN * norms.max(), norms, np.inf)
    unseen = null_space(A / norms, rcond=UNSEEN) / np.where(np.isfinite(norms), norms, 1.0)[:, None]
    return _share(np.diag(unseen @ np.linalg.pinv(unseen.T @ H_prior @ unseen) @ unseen.T), H_prior)


def _share(variance: np.ndarray, H_prior: np.ndarray) -> np.ndarray:
    """Share (n,) by which variances lie below those of the prior alone; 1 where it has none."""
    has_prior = np.diag(H_prior) > 0.0
    alone = np.diag(np.linalg.pinv(H_prior))
    return np.where(
        has_prior, np.clip(1.0 - variance / np.where(has_prior, alone, 1.0), 0.0, 1.0), 1.0
    )


def _slopes(
    A: np.ndarray, problem: ConicProblem, y: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the objective and Hessian of its prior part: dD = tr(E - P^-1 E), d2D = tr(P^-1 E_j P^-1 E_k)."""
    gradient, hessian = A.T @ (A @ y - problem.right), np.zeros((len(y), len(y)))
    for inertia in problem.inertial:
        inverse, linear = np.linalg.inv(inertia(y)), inertia.linear
        gradient += weight * np.einsum("jab,ab->j", linear, np.eye(len(inverse)) - inverse)
        turned = np.einsum("ab,jbc->jac", inverse, linear)
        hessian += weight * np.einsum("jab,kba->jk", turned, turned, optimize=True)
    return gradient, hessian


def _inside(problem: ConicProblem, y: np.ndarray, step: np.ndarray) -> float:
    """Length of a step, at most 1, that goes at most nine tenths of the way to the boundary of every cone."""
    length = 1.0
    for inertia in problem.inertial:
        fall = eigh(inertia.change(step), inertia(y), eigvals_only=True)[0]
        if fall < 0.0:
            length = min(length, -0.9 / fall)
    for number in problem.numbers:
        value, fall = number(y)[0, 0], number.change(step)[0, 0]
        if value > AT_BOUND and fall < 0.0:
            length = min(length, -0.9 * value / fall)
    return float(length)


def convex_solver() -> Any:
    """CVXPY, with Clarabel installed.

    Raises:
        IdentificationError: one of them is not there.
    """
    try:
        importlib.import_module("clarabel")
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise IdentificationError.of(
            "physically consistent estimation",
            f"cannot be solved ({error})",
            "pip install tauloop[consistency]",
        ) from error
