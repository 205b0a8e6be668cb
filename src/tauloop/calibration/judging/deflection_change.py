"""Change of the deflection due to the corrected geometry, which the derivatives do not contain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.common.result import Diagnostic, diagnostic


def deflection_change(problem: CalibrationProblem, at: Evaluation) -> Iterator[Diagnostic]:
    """Yield a diagnostic of the change of the deflection due to the corrected geometry and pose.

    The deflection itself is always computed with the corrected geometry. Its derivatives do not
    contain this change, so that standard deviations miss a contribution of this size. The value is
    relative to the noise of the instrument.

    Args:
        problem: the calibration, by forward kinematics.
        at: evaluation of the calibration at the optimum.
    """
    if problem.deflection is None:
        return
    x = problem.whole(at.correction)
    is_deflecting = [
        unknown.unit == "K" or problem.deflection.affects_deflection(unknown)
        for unknown in problem.unknowns
    ]
    x_nominal = np.where(is_deflecting, x, 0.0)
    largest = 0.0
    for measured_pose, state in zip(problem.measured_poses, at.states, strict=True):
        assert measured_pose.deflection is not None
        nominal = measured_pose.deflection.twist(x_nominal, measured_pose.q)
        n = len(measured_pose.series)
        change = (state.twist - nominal).reshape(n, -1, 1)
        loops, encoders, errors, _ = measured_pose.n_equations
        rows = slice(loops + encoders, loops + encoders + errors)
        error_changes = (measured_pose.by_twist(x, state)[:, rows] @ change)[..., 0]
        largest = max(
            largest, float(np.abs(error_changes / measured_pose.series.sigma).max(initial=0.0))
        )
    yield diagnostic(
        "change of the deflection with the corrected geometry, which derivatives leave out, relative to the noise",
        largest,
        at_most=1.0,
        advice="start from the calibrated machine file, so that the corrections of the geometry are small",
    )
