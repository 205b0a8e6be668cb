"""Levenberg-Marquardt solver for the whitened residuals, with priors and bounds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation, Linearized
from tauloop.calibration.solving.losses import Loss, Squares
from tauloop.common.counts import counted
from tauloop.common.errors import IdentificationError, PoseError
from tauloop.common.names.deprecated import with_old_keywords
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

SQUARES = Squares()
#: The search ends if the sum of squares changes by less than this fraction.
COST_TOLERANCE = 1e-10
#: The search ends if the norm of the corrections changes by less than this fraction.
CORRECTION_TOLERANCE = 1e-9
#: Maximum number of evaluations of the residuals, because the search does not converge if the data
#: hardly depend on the unknowns.
MAX_EVALUATIONS = 200
#: A correction is at a bound if its distance from the bound is below this, in tolerances.
SOLVER_BOUND_TOLERANCE = 1e-3
#: Residuals of a trial geometry that does not close all loops, as a multiple of the residuals at
#: the start.
UNREACHED_PENALTY = 1e3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution(ReprMixin):
    """An optimum of the calibration problem.

    Attributes:
        correction: corrections of the free unknowns (n,), SI.
        evaluation: residuals at the optimum.
        jacobian: Jacobian of the whitened residuals (R, n), SI.
        prior: weights (n,) of the priors, 1/tolerance or zero.
        weights: weights (R,) of the residuals from a robust loss; ones for least squares.
        evaluations: number of evaluations of the residuals.
    """

    correction: np.ndarray
    evaluation: Evaluation
    jacobian: np.ndarray
    prior: np.ndarray
    weights: np.ndarray
    evaluations: int

    @property
    def residual(self) -> np.ndarray:
        """Whitened residuals (R,)."""
        return self.evaluation.residual

    @property
    def cost(self) -> float:
        """Sum of squares r^T r + c^T P c of whitened residuals and of corrections with priors."""
        return float((self.residual**2).sum() + ((self.prior * self.correction) ** 2).sum())

    @property
    def information(self) -> np.ndarray:
        """Information matrix J^T W J + P (n, n), SI: inverse covariance for the given noise."""
        return np.asarray(
            self.jacobian.T @ (self.weights[:, None] * self.jacobian) + np.diag(self.prior**2)
        )

    @property
    def gradient(self) -> np.ndarray:
        """Gradient J^T W r + P c (n,), SI: zero at an optimum within all bounds."""
        return np.asarray(
            self.jacobian.T @ (self.weights * self.residual) + self.prior**2 * self.correction
        )

    def inverse(self, scale: np.ndarray) -> np.ndarray:
        """Return the inverse (n, n) of the information in units of `scale` (n,)."""
        return np.linalg.pinv(
            self.information * np.outer(scale, scale), rcond=1e-15, hermitian=True
        )


class _ScaledResiduals:
    """Residuals and Jacobian for SciPy, in unknowns s scaled by their tolerances.

    The coordinates of each pose start from those of the last evaluation.
    """

    def __init__(self, problem: CalibrationProblem, near: Evaluation | Linearized | None) -> None:
        self.problem = problem
        self.scale = problem.tolerances
        self.prior = prior_weights(problem)
        self._prior_rows = np.flatnonzero(self.prior)
        self._linear = near if isinstance(near, Linearized) else None
        self.last = near.evaluation if isinstance(near, Linearized) else near
        self.count = 0
        self._penalty: np.ndarray | None = None

    def evaluate(self, s: np.ndarray) -> Evaluation:
        """Return the evaluation at scaled unknowns (n,)."""
        x = s * self.scale
        if self.last is None or not np.array_equal(self.last.correction, x):
            evaluation = self.problem.evaluate(x, self._linear or self.last)
            self.count += 1
            if not evaluation.is_reached or not np.isfinite(evaluation.residual).all():
                return evaluation
            self.last = evaluation
        return self.last

    def residual(self, s: np.ndarray) -> np.ndarray:
        """Return residuals and priors at scaled unknowns (n,); large values if out of reach."""
        evaluation = self.evaluate(s)
        r = np.concatenate([evaluation.residual, (self.prior * self.scale * s)[self._prior_rows]])
        if evaluation is not self.last:
            return np.full(len(r), UNREACHED_PENALTY) if self._penalty is None else self._penalty
        if self._penalty is None:
            largest = float(np.abs(r).max(initial=0.0))
            self._penalty = np.full(len(r), UNREACHED_PENALTY * (1.0 + largest))
        return r

    def jacobian_at(self, evaluation: Evaluation) -> np.ndarray:
        """Return the Jacobian (R, n) of the residuals, SI."""
        if self._linear is None or self._linear.evaluation is not evaluation:
            self._linear = self.problem.linearized(evaluation)
        return self._linear.jacobian

    def jacobian(self, s: np.ndarray) -> np.ndarray:
        """Return the Jacobian of residuals and priors with respect to the scaled unknowns."""
        J = self.jacobian_at(self.evaluate(s)) * self.scale
        return np.concatenate([J, np.diag(self.prior * self.scale)[self._prior_rows]])


def limits(problem: CalibrationProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds (n,) of the corrections of the free unknowns, SI."""
    lower = np.array([unknown.lower for unknown in problem.estimated])
    upper = np.array([unknown.upper for unknown in problem.estimated])
    return lower, upper


def bounds_met(problem: CalibrationProblem, solution: Solution) -> list[float | None]:
    """Return the active bound (SI) of each free unknown; None if no bound prevents a better fit."""
    lower, upper = limits(problem)
    x = solution.correction
    gradient = solution.gradient
    tolerance = SOLVER_BOUND_TOLERANCE * problem.tolerances
    start = np.array([unknown.value for unknown in problem.estimated])
    active = np.where((upper - x < tolerance) & (gradient < 0), start + upper, np.nan)
    active = np.where((x - lower < tolerance) & (gradient > 0), start + lower, active)
    return [None if np.isnan(bound) else bound for bound in active.tolist()]


def prior_weights(problem: CalibrationProblem) -> np.ndarray:
    """Return 1/tolerance of the free unknowns with a prior, zero for the others (n,)."""
    return np.array([1.0 / u.tolerance if u.has_prior else 0.0 for u in problem.estimated])


@with_old_keywords
def solve_calibration(
    problem: CalibrationProblem,
    start: np.ndarray | None = None,
    *,
    loss: Loss = SQUARES,
    near: Evaluation | Linearized | None = None,
    max_evaluations: int = MAX_EVALUATIONS,
) -> Solution:
    """Solve the (robust) least-squares problem from start values of the corrections.

    The measurements are not checked; `fit_geometry` does that.

    Args:
        problem: the calibration.
        start: corrections to start from (n,), SI; zeros by default.
        loss: loss function of the residuals.
        near: an evaluation of the same poses whose coordinates start the iterations, with
            derivatives if available.
        max_evaluations: maximum number of evaluations of the residuals.

    Returns:
        Correction with its evaluation and Jacobian, and the number of evaluations.

    Raises:
        IdentificationError: there are fewer residuals than unknowns.
        PoseError: poses are out of reach at the start.
    """
    residuals = _ScaledResiduals(problem, near)
    n = len(problem.free)
    s = np.zeros(n) if start is None else np.asarray(start, dtype=float) / residuals.scale
    first = residuals.residual(s)
    if len(first) < n:
        what = (
            f"{counted(len(first), 'residual')} of {counted(problem.n_poses, 'pose')} cannot determine "
            f"{counted(n, 'unknown')}"
        )
        remedy = "measure more poses, estimate fewer parameters, or give priors from tolerances"
        raise IdentificationError.of("measurements", what, remedy)
    if residuals.last is None or not residuals.last.is_reached:
        raise PoseError.of(
            "start",
            "some poses are out of reach",
            "choose start values closer to the nominal geometry",
        )
    lower, upper = limits(problem)
    lower = lower / residuals.scale
    upper = upper / residuals.scale
    settings = {
        "ftol": COST_TOLERANCE,
        "xtol": CORRECTION_TOLERANCE,
        "gtol": 1e-14,
        "jac": residuals.jacobian,
        # Unknowns are scaled by their tolerances, so SciPy must not scale them again.
        "x_scale": 1.0,
        "max_nfev": max_evaluations,
    }
    bounded_settings = settings | {"method": "trf", "bounds": (lower, upper)}
    s_inside = np.clip(s, lower + 1e-9, upper - 1e-9)
    if isinstance(loss, Squares) and problem.deflection is not None:
        # The deflection is undefined for negative stiffnesses, so all trials are within the bounds.
        solution = least_squares(residuals.residual, s_inside, **bounded_settings).x
    elif isinstance(loss, Squares):
        solution = least_squares(residuals.residual, s, method="lm", **settings).x
        if ((solution < lower) | (solution > upper)).any():
            solution = least_squares(residuals.residual, s_inside, **bounded_settings).x
    else:
        n_measured = len(first) - int((residuals.prior > 0).sum())

        def rho(z: np.ndarray) -> np.ndarray:
            """Apply the loss to measurements, and squares to priors."""
            measurement_rho = loss.rho(z[:n_measured])
            return np.concatenate([measurement_rho, SQUARES.rho(z[n_measured:])], axis=1)

        solution = least_squares(residuals.residual, s_inside, loss=rho, **bounded_settings).x
    evaluation = residuals.evaluate(solution)
    return Solution(
        correction=solution * residuals.scale,
        evaluation=evaluation,
        jacobian=residuals.jacobian_at(evaluation),
        prior=residuals.prior,
        weights=loss.rho(evaluation.residual**2)[1],
        evaluations=residuals.count,
    )
