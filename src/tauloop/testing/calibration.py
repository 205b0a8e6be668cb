"""Checks of calibration extensions: losses and instruments."""

from __future__ import annotations

import numpy as np

from tauloop.calibration import Instrument, Loss, calibration_problem, simulated_series
from tauloop.common.errors import Problems
from tauloop.kinematics import random_states
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare

#: Relative step of central differences.
LOSS_DIFFERENCE_STEP = 1e-4
#: Largest relative error of central differences, from truncation and rounding.
LOSS_DERIVATIVE_TOLERANCE = 1e-6
#: Largest error of an instrument at its simulated readings. The error is not exactly zero, because
#: the loops are solved from the encoders.
READING_TOLERANCE = 1e-9


def check_loss(loss: Loss) -> None:
    """Check a loss: rho(0) = 0, rho'(0) = 1, rho does not decrease, and derivatives are correct.

    Source of the conditions: Triggs, McLauchlan, Hartley and Fitzgibbon 2000, Bundle adjustment: a
    modern synthesis.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    # Avoid round numbers, which may be thresholds where the second derivative jumps.
    z = np.geomspace(1e-3, 1e3, 97) * 1.00123
    values = loss.rho(z)
    if values.shape != (3, len(z)):
        problems.add(
            "rho",
            f"has shape {values.shape} for {len(z)} squared residuals",
            "return an array (3, m) with rho, rho' and rho''",
        )
        raise ConformanceError(problems)
    at_zero = loss.rho(np.array([0.0]))[:, 0]
    compare(
        problems,
        "rho(0)",
        at_zero[:2],
        [0.0, 1.0],
        tolerance=1e-12,
        remedy="scale rho so that rho(z) = z for small z",
    )
    if (np.diff(values[0]) < 0).any():
        problems.add("rho", "decreases", "give a larger residual a cost that is not smaller")
    for order, name in ((0, "rho'"), (1, "rho''")):
        above = loss.rho(z * (1 + LOSS_DIFFERENCE_STEP))[order]
        below = loss.rho(z * (1 - LOSS_DIFFERENCE_STEP))[order]
        difference_quotient = (above - below) / (2 * LOSS_DIFFERENCE_STEP * z)
        scale = np.abs(values[order]) / z
        magnitude = np.abs(values[order + 1]) + scale
        limit = LOSS_DERIVATIVE_TOLERANCE * magnitude + LOSS_DIFFERENCE_STEP * scale
        n_wrong = np.count_nonzero(np.abs(difference_quotient - values[order + 1]) > limit)
        if n_wrong > 1:  # one difference may span a threshold
            what = f"is not the derivative at {n_wrong} of {len(z)} squared residuals"
            problems.add(name, what, "correct the derivative")
    ConformanceError.raise_if_any(problems)


def check_instrument(instrument: Instrument, mechanism: Mechanism, *, seed: int = 1) -> None:
    """Check the names of an instrument, and that its errors are zero at simulated readings.

    Args:
        instrument: the instrument, with a name.
        mechanism: a machine that the instrument can measure.
        seed: seed of the random states.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    model = Model(mechanism)
    for problem in instrument.check(mechanism, model.topology):
        problems.append(problem)
    names = [nuisance.name for nuisance in instrument.nuisances()]
    for name in names:
        if not name.startswith(f"{instrument.name}."):
            problems.add(
                name,
                f"does not begin with {instrument.name}.",
                "begin the names of nuisance parameters with the name of their instrument",
            )
    for kind, columns in (("columns", instrument.columns), ("errors", instrument.errors)):
        if not columns or len(dict(columns)) != len(columns):
            what = f"are empty or contain a name twice: {columns}"
            problems.add(kind, what, "give each name once, with its SI unit")
    ConformanceError.raise_if_any(problems)
    q = random_states(model, 8, np.random.default_rng(seed)).q
    series = simulated_series(model, instrument, q, 1.0)
    if series.readings.std(axis=0).max(initial=0.0) == 0.0:
        problems.add(
            "error",
            "the simulated readings are equal at all poses",
            "compute the reading from the scene",
        )
    geometry = [
        parameter.name for parameter in mechanism.parameters if parameter.group == "geometry"
    ]
    calibration = calibration_problem(mechanism, [series], [*geometry, *names])
    error = np.abs(calibration.evaluate(np.zeros(len(calibration.unknowns))).residual).max()
    if not error <= READING_TOLERANCE * max(1.0, np.abs(series.readings).max()):
        problems.add(
            "error",
            f"is {error:.3g} at simulated readings, but must be zero",
            "return the predicted minus the measured reading",
        )
    ConformanceError.raise_if_any(problems)
