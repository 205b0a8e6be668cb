"""Checks of a freely hanging machine at the fitted geometry: taut cables and stable equilibrium."""

from __future__ import annotations

import numpy as np

from tauloop.calibration.problem.building import stiffness_of
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation
from tauloop.common.result import Diagnostic, diagnostic


def hanging(problem: CalibrationProblem, evaluation: Evaluation) -> tuple[Diagnostic, ...]:
    """Return diagnostics of the smallest cable tension and the smallest stiffness.

    The result is empty unless the calibration assumes static equilibrium.

    Args:
        problem: the calibration, by forward kinematics.
        evaluation: evaluation of the calibration at the optimum.
    """
    equilibrium = problem.equilibrium
    if equilibrium is None:
        return ()
    x = problem.whole(evaluation.correction)
    least_tension = np.inf
    least_location = ""
    least_stiffness = np.inf
    for measured_pose, state in zip(problem.measured_poses, evaluation.states, strict=True):
        stiffness = stiffness_of(measured_pose, problem.assembly, equilibrium, x, state.q)
        least_stiffness = min(least_stiffness, float(stiffness.min()))
        function = measured_pose.functions.tensions
        if function is None:
            continue
        count = len(state.q)
        (tensions,) = function([state.q, np.broadcast_to(x, (count, len(x)))], count)
        row, cable = np.unravel_index(int(tensions.argmin()), tensions.shape)
        if tensions[row, cable] < least_tension:
            least_tension = float(tensions[row, cable])
            label = measured_pose.series.label(int(row) // measured_pose.poses)
            least_location = f"{measured_pose.functions.cables[cable]}, {measured_pose.series.instrument.name}, {label}"
    return (
        diagnostic(
            f"least tension of a cable at equilibrium ({least_location})"
            if least_location
            else "least tension of a cable",
            least_tension if least_location else None,
            at_least=0.0,
            unit="N",
            advice="a cable with negative tension is slack, so its length does not determine the pose: remove such "
            "poses",
        ),
        diagnostic(
            "smallest stiffness of the equilibrium, divided by weight per length",
            least_stiffness,
            at_least=0.0,
            advice="the equilibrium is unstable: check masses and encoders, or remove the pose",
        ),
    )
