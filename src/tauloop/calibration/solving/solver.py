"""Levenberg-Marquardt on the whitened residuals, priors and bounds included."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation, Linearised
from tauloop.calibration.solving.losses import Loss, Squares
from tauloop.common.errors import IdentificationError, PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown

SQUARES = Squares()
#: The search ends when the sum of squares, or the corrections, change by less than these shares.
COST_CHANGE, STEP_CHANGE = 1e-10, 1e-9
#: Residuals evaluated before the search gives up: where data say next to nothing it would wander
#: on.
MOST_EVALUATIONS = 200
#: A correction so near a bound, in tolerances, is at it.
AT_BOUND = 1e-3
#: A trial geometry that does not close all loops is given residuals this many times those at the
#: start.
OUT_OF_REACH = 1e3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution(Shown):
    """An optimum.

    Attributes:
        correction: of the free unknowns (n,), SI.
        evaluation: residuals there.
        jacobian: of the whitened residuals (R, n), SI.
        prior: weights (n,) of the priors, 1/tolerance or zero.
        weights: (R,) what a robust loss leaves of each residual's weight; ones for squares.
        evaluations: of the residuals, until the end.
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
        """r^T r + c^T P c: squares of the whitened residuals and of the corrections that have priors."""
        return float((self.residual**2).sum() + ((self.prior * self.correction) ** 2).sum())

    @property
    def information(self) -> np.ndarray:
        """J^T W J + P (n, n), SI: inverse of the covariance where noise is as stated."""
        return np.asarray(
            self.jacobian.T @ (self.weights[:, None] * self.jacobian) + np.diag(self.prior**2)
        )

    @property
    def gradient(self) -> np.ndarray:
        """J^T W r + P c (n,), SI: zero at an optimum within all bounds."""
        return np.asarray(
            self.jacobian.T @ (self.weights * self.residual) + self.prior**2 * self.correction
        )

    def inverse(self, scale: np.ndarray) -> np.ndarray:
        """Inverse (n, n) of the information in units of `scale` (n,)."""
        return np.linalg.pinv(
            self.information * np.outer(scale, scale), rcond=1e-15, hermitian=True
        )


class _Walk:
    """Residuals and Jacobian for SciPy, each pose started from where it was last."""

    def __init__(self, problem: CalibrationProblem, near: Evaluation | Linearised | None) -> None:
        self.problem, self.scale = problem, problem.tolerances
        self.prior = prior_weights(problem)
        self._prior_rows = np.flatnonzero(self.prior)
        self._linear = near if isinstance(near, Linearised) else None
        self.last = near.evaluation if isinstance(near, Linearised) else near
        self.count = 0
        self._penalty: np.ndarray | None = None

    def at(self, s: np.ndarray) -> Evaluation:
        x = s * self.scale
        if self.last is None or not np.array_equal(self.last.correction, x):
            evaluation = self.problem.evaluate(x, self._linear or self.last)
            self.count += 1
            if not evaluation.is_reached or not np.isfinite(evaluation.residual).all():
                return evaluation
            self.last = evaluation
        return self.last

    def residual(self, s: np.ndarray) -> np.ndarray:
        evaluation = self.at(s)
        r = np.concatenate([evaluation.residual, (self.prior * self.scale * s)[self._prior_rows]])
        if evaluation is not self.last:
            return np.full(len(r), OUT_OF_REACH) if self._penalty is None else self._penalty
        if self._penalty is None:
            self._penalty = np.full(
                len(r), OUT_OF_REACH * (1.0 + float(np.abs(r).max(initial=0.0)))
            )
        return r

    def jacobian_at(self, evaluation: Evaluation) -> np.ndarray:
        """Jacobian (R, n) of the residuals, SI."""
        if self._linear is None or self._linear.evaluation is not evaluation:
            self._linear = self.problem.linearised(evaluation)
        return self._linear.jacobian

    def jacobian(self, s: np.ndarray) -> np.ndarray:
        J = self.jacobian_at(self.at(s)) * self.scale
        return np.concatenate([J, np.diag(self.prior * self.scale)[self._prior_rows]])


def limits(problem: CalibrationProblem) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest corrections (n,) of the free unknowns, SI."""
    return np.array([u.lower for u in problem.estimated]), np.array(
        [u.upper for u in problem.estimated]
    )


def bounds_met(problem: CalibrationProblem, solution: Solution) -> list[float | None]:
    """For each free unknown the value (SI) of the bound that keeps it from fitting better; None where none does."""
    lower, upper = limits(problem)
    x, gradient, near = solution.correction, solution.gradient, AT_BOUND * problem.tolerances
    start = np.array([unknown.value for unknown in problem.estimated])
    met = np.where((upper - x < near) & (gradient < 0), start + upper, np.nan)
    met = np.where((x - lower < near) & (gradient > 0), start + lower, met)
    return [None if np.isnan(bound) else bound for bound in met.tolist()]


def prior_weights(problem: CalibrationProblem) -> np.ndarray:
    """1/tolerance of the free unknowns with a prior, zero for the others (n,)."""
    return np.array([1.0 / u.tolerance if u.has_prior else 0.0 for u in problem.estimated])


def solve(
    problem: CalibrationProblem,
    start: np.ndarray | None = None,
    *,
    loss: Loss = SQUARES,
    near: Evaluation | Linearised | None = None,
    most: int = MOST_EVALUATIONS,
) -> Solution:
    """Least (or robust) squares from a start; nothing is checked beforehand (`fit` does).

    Args:
        problem: the calibration.
        start: corrections to start from (n,), SI; zeros without it.
        loss: how residuals count.
        near: an evaluation of the same poses whose coordinates to start from, with derivatives
            where they are at hand.
        most: evaluations of the residuals before the search gives up.

    Raises:
        IdentificationError: fewer residuals than unknowns.
        PoseError: poses are out of reach at the start.
    """
    walk = _Walk(problem, near)
    n = len(problem.free)
    s = np.zeros(n) if start is None else np.asarray(start, dtype=float) / walk.scale
    first = walk.residual(s)
    if len(first) < n:
        what = f"{len(first)} residuals of {problem.n_poses} poses cannot give {n} unknowns"
        remedy = "measure more poses, estimate fewer parameters, or give priors from tolerances"
        raise IdentificationError.of("measurements", what, remedy)
    if walk.last is None or not walk.last.is_reached:
        raise PoseError.of(
            "start", "some poses are out of reach there", "start nearer the nominal geometry"
        )
    lower, upper = (limit / walk.scale for limit in limits(problem))
    # unknowns are scaled by their tolerances already, so SciPy is not to scale them by columns
    # again
    settings = {
        "ftol": COST_CHANGE,
        "xtol": STEP_CHANGE,
        "gtol": 1e-14,
        "jac": walk.jacobian,
        "x_scale": 1.0,
    }
    settings["max_nfev"] = most
    bounded = settings | {"method": "trf", "bounds": (lower, upper)}
    inside = np.clip(s, lower + 1e-9, upper - 1e-9)
    if isinstance(loss, Squares):
        solution = least_squares(walk.residual, s, method="lm", **settings).x
        if ((solution < lower) | (solution > upper)).any():
            solution = least_squares(walk.residual, inside, **bounded).x
    else:
        measured = len(first) - int((walk.prior > 0).sum())

        def rho(z: np.ndarray) -> np.ndarray:
            return np.concatenate([loss.rho(z[:measured]), SQUARES.rho(z[measured:])], axis=1)

        solution = least_squares(walk.residual, inside, loss=rho, **bounded).x
    evaluation = walk.at(solution)
    residual = evaluation.residual
    return Solution(
        correction=solution * walk.scale,
        evaluation=evaluation,
        jacobian=walk.jacobian_at(evaluation),
        prior=walk.prior,
        weights=loss.rho(residual**2)[1],
        evaluations=walk.count,
    )
