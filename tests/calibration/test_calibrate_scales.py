"""Calibrations do not depend on the size of the machine: steps and residuals count in characteristic lengths."""

from __future__ import annotations

import numpy as np
import pytest
from scaled_machines import Scale, scaled

from tauloop import Model
from tauloop.calibration import Position, Series, Tolerances, calibration_problem, fit_geometry
from tauloop.common.result import Status
from tauloop.compiler.c import Interpreted

#: Share of the corrections: rounding times the condition of the problem.
AGREEMENT = 1e-6
#: Errors of two lengths of the delta, and the noise of the instrument, m of the machine as it is.
ERRORS, NOISE = {"arm_length": 1e-3, "plate_radius": -5e-4}, 1e-6


def corrections(scale: Scale) -> np.ndarray:
    """Return the corrections of two lengths that the positions of the plate tell, in units of the scale."""
    machine, rng = scaled("delta", scale), np.random.default_rng(4)
    wrong = {
        name: machine.parameters[name].value + scale.length * error
        for name, error in ERRORS.items()
    }
    true = Model(machine.with_values(wrong), evaluator=Interpreted())
    angles = true.actuator_position(true.assembly.q) + rng.uniform(-0.3, 0.3, size=(12, 3))
    places = true.platform_position(true.forward_kinematics(angles).q)
    readings = places + scale.length * NOISE * rng.normal(size=places.shape)
    instrument = Position(name="tracker")
    series = Series(
        instrument=instrument, encoders=angles, readings=readings, noise=scale.length * NOISE
    )
    tolerances = Tolerances(named=dict.fromkeys(ERRORS, scale.length * 1e-3))
    problem = calibration_problem(machine, [series], tuple(ERRORS), tolerances=tolerances)
    fit = fit_geometry(problem, np.random.default_rng(5))
    assert fit.status is Status.OK
    estimates = {estimate.name: estimate.correction for estimate in fit.estimates}
    return np.array([estimates[name] for name in ERRORS]) / scale.length


@pytest.mark.parametrize("scale", [Scale(1e-6, 1e-18, 1.0), Scale(1e3, 1e9, 1.0)])
def test_a_delta_of_any_size_is_calibrated_alike(scale: Scale) -> None:
    """Steps of at most 0.3 m were too short for the large one, and a micrometre was converged for the small one."""
    expected = corrections(Scale())
    assert expected == pytest.approx(list(ERRORS.values()), abs=10 * NOISE)
    assert corrections(scale) == pytest.approx(expected, rel=AGREEMENT)
