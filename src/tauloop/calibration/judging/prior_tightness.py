"""Whether priors are as wide as the data want them: the likelihood of the measurements against the priors' width.

With whitened residuals r = r_0 + J x, linear at the optimum, unknowns u with priors of deviation s
D (D the stated ones) and the others free, the measurements are normal about zero in the directions
P that no free unknown reaches:

    P r_0 ~ N(0, f I + s^2 (P J_u D) (P J_u D)^T),

f the size of the noise. In the singular directions of P J_u D (values S, coordinates c of P r_0
along them, rho the sum of squares in the n directions left) that is

    -2 log L(s, f) = sum log(f + s^2 S^2) + c^2 / (f + s^2 S^2) + n log f + rho / f.

The s with the largest likelihood is what the data want (empirical Bayes; MacKay 1992, "Bayesian
interpolation").
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, diagnostic

#: Widths of the priors that are looked at, over the stated ones: exponents of ten.
WIDEST = 3.0
#: Points on which the likelihood is looked at before the best is refined.
GRID = 25
#: Quantiles of chi squared with one degree of freedom, of a doubled difference of log likelihoods:
#: 95 %, for intervals, and 99.9 %, beyond which the stated width is doubtful.
LIKELY, UNLIKELY = 3.84, 10.83
#: Singular values below this share of the largest are none.
NOTHING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorTightness:
    """What the data say of the width of the priors.

    Attributes:
        unknowns: with priors.
        width: by which the stated deviations would have to be multiplied to be as likely as can be;
            at most 1000.
        lower, upper: widths that are not much less likely (95 %).
        ratio: twice the difference of log likelihoods between that width and one; above 10.83 one
            is unlikely.
    """

    unknowns: int
    width: float
    lower: float
    upper: float
    ratio: float

    def diagnostic(self) -> Diagnostic:
        """Doubtful where the priors are too tight: estimates are then held at their nominal values against the data."""
        return diagnostic(
            "deviation of the priors that the data want, over the stated one"
            f" ({self.unknowns} priors; 95 %: {self.lower:.2g} to {self.upper:.2g})",
            self.width,
            at_most=None if self.ratio <= UNLIKELY else min(1.0, self.width),
            advice="the priors are too tight: estimates are held near the nominal values against the data, and their "
            "error bars are too small; state tolerances that are so much larger",
        )


def prior_tightness(
    problem: CalibrationProblem, solution: Solution, *, known_noise: bool = False
) -> PriorTightness | None:
    """Compare the stated width of the priors with the one that the data want.

    Args:
        problem: the calibration.
        solution: its optimum.
        known_noise: whether the noise is as stated; else its size is found beside the width.

    Returns:
        None without priors, or where no residual depends on an unknown that has one.
    """
    held = solution.prior > 0
    if not held.any():
        return None
    root = np.sqrt(solution.weights)
    J = root[:, None] * solution.jacobian
    start = root * solution.residual - J @ solution.correction
    free = J[:, ~held] * problem.tolerances[~held]
    U, S, _ = np.linalg.svd(free, full_matrices=False)
    U = U[:, S > NOTHING * max(S.max(initial=0.0), 1e-300)]
    reach = J[:, held] / solution.prior[held]
    reach, start, taken = reach - U @ (U.T @ reach), start - U @ (U.T @ start), U.shape[1]
    U, S, _ = np.linalg.svd(reach, full_matrices=False)
    kept = NOTHING * max(S.max(initial=0.0), 1e-300) < S
    if not kept.any():
        return None
    c, S = U[:, kept].T @ start, S[kept]
    rest = float(start @ start - c @ c)
    left = len(start) - taken - len(c)

    def cost(exponent: float) -> float:
        return _cost(10.0**exponent, S, c, max(rest, 0.0), left, known_noise)

    exponents = np.linspace(-WIDEST, WIDEST, GRID)
    costs = np.array([cost(exponent) for exponent in exponents])
    k = int(costs.argmin())
    near = (exponents[max(k - 1, 0)], exponents[min(k + 1, GRID - 1)])
    best = float(minimize_scalar(cost, bounds=near, method="bounded", options={"xatol": 1e-3}).x)
    least = cost(best)

    def crossing(end: float) -> float:
        """Where the likelihood falls to that of the interval's ends, between the best width and an end of all."""
        if cost(end) <= least + LIKELY:
            return 10.0**end
        return 10.0 ** float(brentq(lambda e: cost(e) - least - LIKELY, best, end, xtol=1e-3))

    return PriorTightness(
        unknowns=int(held.sum()),
        width=10.0**best,
        lower=crossing(-WIDEST),
        upper=crossing(WIDEST),
        ratio=cost(0.0) - least,
    )


def _cost(
    width: float, S: np.ndarray, c: np.ndarray, rest: float, left: int, known_noise: bool
) -> float:
    """-2 log L of a width; without known noise the least over its size."""

    def at(noise: float) -> float:
        spread = noise + (width * S) ** 2
        return float(
            np.log(spread).sum() + (c**2 / spread).sum() + left * np.log(noise) + rest / noise
        )

    if known_noise or left < 1:
        return at(1.0)
    minimum = minimize_scalar(
        lambda e: at(10.0**e), bounds=(-8.0, 8.0), method="bounded", options={"xatol": 1e-2}
    )
    return float(minimum.fun)
