"""Encoders of redundant drives that disagree with the instrument and with each other, after a fit.

A constant error e_i of the readings of encoder i changes the whitened residuals by c_i e_i. Let Q
project the residuals r onto the directions that the unknowns cannot change, and g_i = Q c_i. Least
squares give
e_i = g_i.r / g_i.g_i, and

    t_i = |g_i.r| / (s_(i) |g_i|)

is Student's t of that error, where s_(i) is the standard deviation of the remaining residuals. A
wrong scale is an error proportional to the reading p_i: its column is c_i p_i.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from tauloop.calibration.judging.statistics import OUTLIER_FALSE_ALARM
from tauloop.calibration.problem.measured_poses import MeasuredPose, MeasuredPoseState
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.result import Diagnostic, diagnostic

#: An encoder error is not observable if less than this fraction of it remains in the residuals
#: after the unknowns are fitted.
MIN_OBSERVABLE_FRACTION = 1e-6


def encoder_misfits(problem: CalibrationProblem, solution: Solution) -> tuple[Diagnostic, ...]:
    """Return a diagnostic of the encoder whose error would explain most of the residuals.

    The error is constant or proportional to the reading. The result is empty for machines without
    redundant drives.

    Args:
        problem: the calibration.
        solution: optimum of the calibration.
    """
    if not problem.assembly.is_redundant:
        return ()
    states = zip(problem.measured_poses, solution.evaluation.states, strict=True)
    count = len(problem.mechanism.actuators)
    columns = np.concatenate(
        [_error_columns(measured_pose, state) for measured_pose, state in states]
    )
    basis, _ = np.linalg.qr(solution.jacobian * problem.tolerances)
    observable = columns - basis @ (basis.T @ columns)
    residual = solution.residual - basis @ (basis.T @ solution.residual)
    dof = len(residual) - basis.shape[1] - 1
    squared_norms = (observable**2).sum(axis=0)
    is_observable = squared_norms > MIN_OBSERVABLE_FRACTION**2 * (columns**2).sum(axis=0)
    if dof < 1 or not is_observable.any():
        return ()
    error = np.where(
        is_observable, observable.T @ residual / np.where(is_observable, squared_norms, 1.0), 0.0
    )
    explained = error**2 * squared_norms
    deviation = np.sqrt(np.maximum(float(residual @ residual) - explained, 1e-300) / dof)
    t = np.where(is_observable, np.sqrt(explained) / deviation, 0.0)
    worst = int(t.argmax())
    actuator = problem.mechanism.actuators[worst % count]
    parameter = f"encoder.{actuator.name}.{'offset' if worst < count else 'scale'}"
    if worst >= count:
        amount = f"{100 * error[worst]:.4g} %"
    elif problem.assembly.topology.is_rotary(actuator):
        amount = f"{np.degrees(error[worst]):.4g} deg"
    else:
        amount = f"{1e3 * error[worst]:.4g} mm"
    return (
        diagnostic(
            f"largest misfit of an encoder over its standard deviation ({actuator.name})",
            t[worst],
            at_most=float(-scipy.special.stdtrit(dof, OUTLIER_FALSE_ALARM / (4 * count))),
            advice=f"the encoder of {actuator.name} reads {amount} more than pose and geometry predict: check the "
            f"zero, the scale and the column of this encoder, or estimate {parameter}",
        ),
    )


def _error_columns(measured_pose: MeasuredPose, state: MeasuredPoseState) -> np.ndarray:
    """Return the derivatives (n, 2 n_u) of residuals with respect to encoder errors.

    The first n_u columns are for constant errors, the others for scale errors. Columns of scale
    errors are zero if a reading belongs to several poses, such as a distance between two poses.
    """
    constant = measured_pose.encoder_columns(state)
    if measured_pose.poses == 1:
        scale = constant * measured_pose.series.encoders[:, None, :]
    else:
        scale = np.zeros_like(constant)
    columns = np.concatenate([constant, scale], axis=2)
    return columns.reshape(-1, columns.shape[2])
