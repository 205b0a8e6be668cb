"""Prior width supported by the data: likelihood as a function of the priors' width.

Whitened residuals are r = r_0 + J x, linearized at the optimum. Unknowns u have priors with
standard deviations s D, where D are the specified standard deviations and s is a common factor (the
width); the other unknowns are free. P projects onto the residual directions that free unknowns
cannot change. In these directions the residuals have a normal distribution with mean zero:

    P r_0 ~ N(0, f I + s^2 (P J_u D) (P J_u D)^T),

with the variance scale f of the noise. Let S be the singular values of P J_u D, c the coordinates
of P r_0 along the singular directions, and rho the sum of squares of P r_0 in the other n
directions. Then

    -2 log L(s, f) = sum log(f + s^2 S^2) + c^2 / (f + s^2 S^2) + n log f + rho / f.

The best width s has the largest likelihood (empirical Bayes; MacKay 1992, "Bayesian
interpolation").
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic

#: Widths from 10^-MAX_EXPONENT to 10^MAX_EXPONENT times the given width are searched.
MAX_EXPONENT = 3.0
#: Number of grid points of the search before the best point is refined.
WIDTH_GRID_POINTS = 25
#: 95 % quantile of the chi-squared distribution with one degree of freedom. Twice the difference in
#: log likelihood is compared with it to find the ends of intervals.
CHI_SQUARED_95 = 3.84
#: 99.9 % quantile of the same distribution, beyond which the given width is doubtful.
CHI_SQUARED_999 = 10.83
#: Singular values below this fraction of the largest are treated as zero.
PRIOR_RANK_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorTightness:
    """The prior width supported by the data.

    Attributes:
        unknowns: number of unknowns with priors.
        width: factor on the given deviations that maximizes the likelihood, between 0.001 and 1000.
        lower: lower end of the 95 % interval of the factor.
        upper: upper end of the 95 % interval of the factor.
        ratio: twice the difference in log likelihood between `width` and a factor of 1. Above 10.83
            the given deviations are unlikely.
    """

    unknowns: int
    width: float
    lower: float
    upper: float
    ratio: float

    def diagnostic(self) -> Diagnostic:
        """Return a diagnostic that is doubtful if the priors are too tight.

        Priors that are too tight keep estimates at their nominal values against the data. Priors
        that are too wide (a factor below 1) only make the standard deviations larger, and pass.
        """
        return diagnostic(
            "ratio of the prior standard deviation supported by the data to the specified one"
            f" ({self.unknowns} priors; 95 %: {self.lower:.2g} to {self.upper:.2g})",
            self.width,
            at_most=1.0 if self.ratio > CHI_SQUARED_999 else None,
            advice="the priors are too tight: estimates are held near the nominal values against the data, and their "
            "standard deviations are too small; multiply the tolerances by this factor",
        )


def prior_tightness(
    problem: CalibrationProblem, solution: Solution, *, known_noise: bool = False
) -> PriorTightness | None:
    """Compare the given width of the priors with the width supported by the data.

    Args:
        problem: the calibration.
        solution: optimum of the calibration.
        known_noise: whether the noise is as given; otherwise it is estimated together with the
            width.

    Returns:
        The comparison; None if there are no priors, or no residual depends on an unknown with a
        prior.
    """
    has_prior = solution.prior > 0
    if not has_prior.any():
        return None
    root = np.sqrt(solution.weights)
    J = root[:, None] * solution.jacobian
    residual_0 = root * solution.residual - J @ solution.correction
    free_directions = _column_space(J[:, ~has_prior] * problem.tolerances[~has_prior])
    J_u = J[:, has_prior] / solution.prior[has_prior]
    J_u = J_u - free_directions @ (free_directions.T @ J_u)
    residual_0 = residual_0 - free_directions @ (free_directions.T @ residual_0)
    U, S, _ = np.linalg.svd(J_u, full_matrices=False)
    is_nonzero = PRIOR_RANK_TOLERANCE * max(S.max(initial=0.0), 1e-300) < S
    if not is_nonzero.any():
        return None
    c = U[:, is_nonzero].T @ residual_0
    S = S[is_nonzero]
    rho = max(float(residual_0 @ residual_0 - c @ c), 0.0)
    n = len(residual_0) - free_directions.shape[1] - len(c)

    def cost(exponent: float) -> float:
        return _cost(10.0**exponent, S, c, rho, n, known_noise)

    exponents = np.linspace(-MAX_EXPONENT, MAX_EXPONENT, WIDTH_GRID_POINTS)
    costs = np.array([cost(exponent) for exponent in exponents])
    k = int(costs.argmin())
    bracket = (exponents[max(k - 1, 0)], exponents[min(k + 1, WIDTH_GRID_POINTS - 1)])
    minimum = minimize_scalar(cost, bounds=bracket, method="bounded", options={"xatol": 1e-3})
    best = float(minimum.x)
    least_cost = cost(best)

    def interval_end(limit: float) -> float:
        """Return the end of the 95 % interval between the best exponent and a limit."""
        if cost(limit) <= least_cost + CHI_SQUARED_95:
            return 10.0**limit
        crossing = brentq(lambda e: cost(e) - least_cost - CHI_SQUARED_95, best, limit, xtol=1e-3)
        return 10.0 ** float(crossing)

    return PriorTightness(
        unknowns=int(has_prior.sum()),
        width=10.0**best,
        lower=interval_end(-MAX_EXPONENT),
        upper=interval_end(MAX_EXPONENT),
        ratio=cost(0.0) - least_cost,
    )


def _column_space(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns of a matrix."""
    U, S, _ = np.linalg.svd(A, full_matrices=False)
    return np.asarray(U[:, S > PRIOR_RANK_TOLERANCE * max(S.max(initial=0.0), 1e-300)])


def _cost(
    width: float, S: np.ndarray, c: np.ndarray, rho: float, n: int, known_noise: bool
) -> float:
    """Return -2 log L of a width; with unknown noise, the minimum over its variance scale."""

    def cost_of_noise(noise: float) -> float:
        variance = noise + (width * S) ** 2
        return float(
            np.log(variance).sum() + (c**2 / variance).sum() + n * np.log(noise) + rho / noise
        )

    if known_noise or n < 1:
        return cost_of_noise(1.0)
    minimum = minimize_scalar(
        lambda e: cost_of_noise(10.0**e),
        bounds=(-8.0, 8.0),
        method="bounded",
        options={"xatol": 1e-2},
    )
    return float(minimum.fun)
