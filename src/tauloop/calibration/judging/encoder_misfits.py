"""Encoders of redundant drives that disagree with the instrument and with each other, after a fit.

A constant error e_i of an encoder's readings moves the whitened residuals by c_i e_i. With Q the
part of the residuals that the unknowns cannot take and g_i = Q c_i, least squares give e_i = g_i.r
/ g_i.g_i, and

    t_i = |g_i.r| / (s_(i) |g_i|)

is Student's t of that error, with the standard deviation s_(i) of the residuals that it leaves.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from tauloop.calibration.judging.statistics import FALSE_ALARM
from tauloop.calibration.problem.problem import CalibrationProblem
from tauloop.calibration.solving.solver import Solution
from tauloop.common.result import Diagnostic, diagnostic

#: Share of an encoder's error that unknowns leave visible below which nothing is known of it.
VISIBLE = 1e-6


def encoder_misfits(problem: CalibrationProblem, solution: Solution) -> tuple[Diagnostic, ...]:
    """The encoder whose constant error would explain most of the residuals; nothing without redundant drives.

    Args:
        problem: the calibration.
        solution: its optimum.
    """
    if not problem.assembly.is_redundant:
        return ()
    states = zip(problem.measured_poses, solution.evaluation.states, strict=True)
    count = len(problem.mechanism.actuators)
    columns = np.concatenate(
        [measured_pose.encoder_columns(state).reshape(-1, count) for measured_pose, state in states]
    )
    basis, _ = np.linalg.qr(solution.jacobian * problem.tolerances)
    left = columns - basis @ (basis.T @ columns)
    residual = solution.residual - basis @ (basis.T @ solution.residual)
    freedom = len(residual) - basis.shape[1] - 1
    square = (left**2).sum(axis=0)
    is_visible = square > VISIBLE**2 * (columns**2).sum(axis=0)
    if freedom < 1 or not is_visible.any():
        return ()
    error = np.where(is_visible, left.T @ residual / np.where(is_visible, square, 1.0), 0.0)
    explained = error**2 * square
    spread = np.sqrt(np.maximum(float(residual @ residual) - explained, 1e-300) / freedom)
    t = np.where(is_visible, np.sqrt(explained) / spread, 0.0)
    worst = int(t.argmax())
    actuator = problem.mechanism.actuators[worst]
    turns = problem.assembly.topology.motor_turns(actuator)
    amount = f"{np.degrees(error[worst]):.4g} deg" if turns else f"{1e3 * error[worst]:.4g} mm"
    return (
        diagnostic(
            f"largest misfit of an encoder over its standard deviation ({actuator.name})",
            t[worst],
            at_most=float(-scipy.special.stdtrit(freedom, FALSE_ALARM / (2 * count))),
            advice=f"the encoder of {actuator.name} reads {amount} more than pose and geometry give: check its zero, "
            f"its scale and its column, or estimate encoder.{actuator.name}.offset",
        ),
    )
