"""Second-order effects within confidence intervals: validity of linear standard deviations.

With residuals r(x) and their Jacobian J at the optimum, a step d along the least certain direction
has the remainder

    e = r(x + d) - r(x) - J d,

which is zero for a linear problem. The remainder changes the estimates by s = (J^T W J + P)^-1 J^T
W e, with the weights W of the residuals and the information P of the priors. If s is as large as
the confidence interval, the interval is not symmetric, and its width is wrong.

Source: Bates and Watts 1980, Relative curvature measures of nonlinearity: parameter effects.
"""

from __future__ import annotations

import numpy as np

from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution

#: Lengths of the step, in tolerances, in the order in which they are tried. Long steps may put
#: poses out of reach.
STEP_LENGTHS = (1.0, 0.3, 0.1, 0.03)


def second_order_share(
    problem: CalibrationProblem, solution: Solution, half_widths: np.ndarray
) -> float | None:
    """Return the largest second-order shift of an estimate, relative to its interval's half-width.

    Longer steps than those in `STEP_LENGTHS` are shortened, and the shift is scaled with the square
    of the length.

    Args:
        problem: the calibration.
        solution: optimum of the calibration.
        half_widths: half-widths of the intervals (n,), SI.

    Returns:
        The relative shift; None if poses are out of reach close to the optimum, or if nothing is
        estimated.
    """
    scale = problem.tolerances
    if not len(scale):
        return None
    inverse = solution.inverse(scale)
    eigenvalues, directions = np.linalg.eigh(inverse)
    deviations = np.sqrt(np.maximum(np.diag(inverse), np.finfo(float).tiny))
    factor = float((half_widths / (scale * deviations)).max())
    full_step = factor * float(np.sqrt(eigenvalues[-1])) * directions[:, -1]
    largest = max(float(np.abs(full_step).max()), np.finfo(float).tiny)
    J = solution.jacobian * scale

    def relative_shift(step: np.ndarray, fraction: float) -> float | None:
        """Return the relative shift of a step (n,) that is a fraction of the full step."""
        evaluation = problem.evaluate(solution.correction + scale * step, solution.evaluation)
        if not evaluation.is_reached:
            return None
        remainder = evaluation.residual - solution.residual - J @ step
        shift = scale * (inverse @ (J.T @ (solution.weights * remainder)))
        return float(np.abs(shift / half_widths).max()) / fraction**2

    for length in STEP_LENGTHS:
        fraction = min(1.0, length / largest)
        forward = relative_shift(fraction * full_step, fraction)
        backward = relative_shift(-fraction * full_step, fraction)
        if forward is not None and backward is not None:
            return max(forward, backward)
    return None
