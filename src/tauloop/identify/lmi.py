"""Least squares inside physical cones with a log-determinant prior: the convex problem, and a check of its solution."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import null_space

from tauloop.errors import IdentificationError, Problem
from tauloop.identify.cones import Cone

#: A coefficient this far above zero, as a share of its scale, is at its bound.
AT_BOUND = 1e-6
#: Directions of unit-norm columns with a smaller singular value, as a share of the largest, are not seen by the data.
UNSEEN = 1e-8
#: Newton steps after the solver, which stops at 1e-8 of the objective and sometimes earlier.
POLISHING = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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

    def maps(self, cone: Cone) -> tuple[np.ndarray, np.ndarray]:
        """L^-1 P(r) L^-T = constant + sum over j of linear[j] y_j, with P_0 = L L^T and r = scale y.

        Returns:
            constant (k, k) and linear (n, k, k). A number has L = 1.
        """
        size = cone.basis.shape[1]
        half = np.linalg.inv(np.linalg.cholesky(cone.matrix(self.prior))) if cone.is_inertial else np.eye(size)
        basis = np.einsum("ab,jbc,dc->jad", half, cone.basis, half)
        rows = self.ties_matrix[cone.columns] * self.scale
        constant = np.tensordot(self.ties_offset[cone.columns], basis, axes=1)
        return constant, np.asarray(np.einsum("ji,jab->iab", rows, basis))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConicSolution:
    """Minimum of a `ConicProblem`.

    Attributes:
        unknowns: r (n,).
        status: what the solver said.
        decrement: by how much the objective could still fall, as a share of it, by a Newton step taken from the
            solution apart from the solver; zero at the minimum.
        at_bound: elements whose coefficient is zero because it would be negative otherwise.
        multiplier: least slope of the objective into the allowed side of those bounds, as a share of the largest;
            not negative at the minimum.
        data_share: (n,) share of each unknown that the data determine, the prior the rest: by how much the data
            lessen the variance that the prior leaves, 1 - [(H_data + H_prior)^-1]_jj / [H_prior^-1]_jj; 1 without
            prior.
        reachable_share: (n,) the same as the weight of the prior goes to zero: what these data could tell at best.
    """

    unknowns: np.ndarray
    status: str
    decrement: float
    at_bound: tuple[str, ...]
    multiplier: float
    data_share: np.ndarray
    reachable_share: np.ndarray


def solve_conic(problem: ConicProblem, weights: Sequence[float]) -> tuple[ConicSolution, ...]:
    """Solve for each weight of the prior, with CVXPY and Clarabel, and polish by Newton's method.

    The problem is compiled once: the weight is a parameter of it.

    Raises:
        IdentificationError: CVXPY is not installed, or the solver finds no solution.
    """
    cvxpy = _cvxpy()
    y = cvxpy.Variable(len(problem.scale))
    weight = cvxpy.Parameter(nonneg=True)
    prior_terms, constraints = [], []
    for cone in problem.cones:
        constant, linear = problem.maps(cone)
        if cone.is_inertial:
            size = len(constant)
            entries = constant.ravel() + linear.reshape(len(linear), -1).T @ y
            relative = cvxpy.reshape(entries, (size, size), order="C")
            prior_terms.append(cvxpy.trace(relative) - cvxpy.log_det(relative))
        elif np.any(linear):
            constraints.append(constant[0, 0] + linear[:, 0, 0] @ y >= 0)
    misfit = cvxpy.sum_squares((problem.matrix * problem.scale) @ y - problem.right)
    program = cvxpy.Problem(cvxpy.Minimize(0.5 * misfit + weight * sum(prior_terms)), constraints)
    solutions = []
    for value in weights:
        weight.value = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the solution is polished and judged below
            try:
                program.solve(solver=cvxpy.CLARABEL)
                status = str(program.status)
            except cvxpy.error.SolverError as error:
                status = f"failed ({error})"
        if y.value is None:
            raise IdentificationError(
                Problem(
                    where="physically consistent estimation",
                    what=f"the solver found no solution at prior weight {value:.3g}: {status}",
                    remedy="raise the weight of the prior, or check the known values for signs; the prior itself is "
                    "the best consistent set of parameters so far",
                )
            )
        solutions.append(_polished(problem, np.asarray(y.value), value, status))
    return tuple(solutions)


def _polished(problem: ConicProblem, y: np.ndarray, weight: float, status: str) -> ConicSolution:
    """Newton's method from the solver's answer on the cones' interior, with coefficients at their bound held there."""
    inertial = [problem.maps(cone) for cone in problem.cones if cone.is_inertial]
    numbers = [(cone, *problem.maps(cone)) for cone in problem.cones if not cone.is_inertial]
    held = [
        (cone.element, linear[:, 0, 0], constant[0, 0])
        for cone, constant, linear in numbers
        if np.any(linear) and constant[0, 0] + linear[:, 0, 0] @ y <= AT_BOUND
    ]
    A = problem.matrix * problem.scale
    bounds = np.array([row for _, row, _ in held]).reshape(-1, len(y))
    if held:
        y = y - np.linalg.pinv(bounds) @ (bounds @ y + [constant for *_, constant in held])
    free = null_space(bounds) if held else np.eye(len(y))
    H_data = A.T @ A
    for _ in range(POLISHING):
        gradient, H_prior = _slopes(A, problem.right, inertial, y, weight)
        step = -free @ np.linalg.lstsq(free.T @ (H_data + H_prior) @ free, free.T @ gradient)[0]
        length = _inside(inertial, numbers, y, step)
        if length * np.abs(step).max() <= 1e-13 * max(1.0, np.abs(y).max()):
            break
        y = y + length * step
    gradient, H_prior = _slopes(A, problem.right, inertial, y, weight)
    reduced = free.T @ (H_data + H_prior) @ free
    slope = free.T @ gradient
    fall = 0.5 * slope @ np.linalg.lstsq(reduced, slope)[0]
    objective = 0.5 * np.sum((A @ y - problem.right) ** 2) + weight * sum(
        _divergence(constant + np.tensordot(y, linear, axes=1)) for constant, linear in inertial
    )
    slopes = np.linalg.lstsq(bounds.T, gradient)[0] if held else np.zeros(1)
    variance = np.diag(free @ np.linalg.pinv(reduced) @ free.T)
    return ConicSolution(
        unknowns=problem.scale * y,
        status=status,
        decrement=float(fall / objective) if objective > 0.0 else 0.0,
        at_bound=tuple(element for element, *_ in held),
        multiplier=float(slopes.min() / max(np.abs(slopes).max(), np.finfo(float).tiny)),
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
    return np.where(has_prior, np.clip(1.0 - variance / np.where(has_prior, alone, 1.0), 0.0, 1.0), 1.0)


def _slopes(
    A: np.ndarray, right: np.ndarray, inertial: list[tuple[np.ndarray, np.ndarray]], y: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the objective and Hessian of its prior part: dD = tr(E - P^-1 E), d2D = tr(P^-1 E_j P^-1 E_k)."""
    gradient, hessian = A.T @ (A @ y - right), np.zeros((len(y), len(y)))
    for constant, linear in inertial:
        inverse = np.linalg.inv(constant + np.tensordot(y, linear, axes=1))
        gradient += weight * np.einsum("jab,ab->j", linear, np.eye(len(inverse)) - inverse)
        turned = np.einsum("ab,jbc->jac", inverse, linear)
        hessian += weight * np.einsum("jab,kba->jk", turned, turned, optimize=True)
    return gradient, hessian


def _divergence(relative: np.ndarray) -> float:
    sizes = np.linalg.eigvalsh(relative)
    return float(np.sum(sizes - np.log(sizes)) - len(sizes))


def _inside(
    inertial: list[tuple[np.ndarray, np.ndarray]],
    numbers: list[tuple[Cone, np.ndarray, np.ndarray]],
    y: np.ndarray,
    step: np.ndarray,
) -> float:
    """Length of a step, at most 1, that goes at most nine tenths of the way to the boundary of every cone."""
    length = 1.0
    for constant, linear in inertial:
        here = constant + np.tensordot(y, linear, axes=1)
        half = np.linalg.inv(np.linalg.cholesky(here))
        fall = np.linalg.eigvalsh(half @ np.tensordot(step, linear, axes=1) @ half.T)[0]
        if fall < 0.0:
            length = min(length, -0.9 / fall)
    for _, constant, linear in numbers:
        value, fall = constant[0, 0] + linear[:, 0, 0] @ y, linear[:, 0, 0] @ step
        if value > AT_BOUND and fall < 0.0:
            length = min(length, -0.9 * value / fall)
    return float(length)


def _cvxpy() -> Any:
    try:
        importlib.import_module("clarabel")
        return importlib.import_module("cvxpy")
    except ImportError as error:
        raise IdentificationError(
            Problem(
                where="physically consistent estimation",
                what=f"cannot be solved ({error})",
                remedy="pip install tauloop[consistency]",
            )
        ) from error
