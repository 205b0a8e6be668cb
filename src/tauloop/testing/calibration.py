"""Checks of calibration extensions: losses and instruments."""

from __future__ import annotations

import numpy as np

from tauloop.calibration import Instrument, Loss, calibration_problem, simulated_series
from tauloop.common.errors import Problems
from tauloop.kinematics import random_states
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare

#: Relative step of central differences, and their error: its square, and rounding divided by it.
LOSS_DIFFERENCE_STEP, LOSS_SLOPE_TOLERANCE = 1e-4, 1e-6
#: Largest error of an instrument at its own readings; the loops are solved from the encoders.
READING_TOLERANCE = 1e-9


def check_loss(loss: Loss) -> None:
    """Check a loss: rho(0) = 0, rho'(0) = 1, never decreasing, with the derivatives of rho.

    Source of the conditions: Triggs, McLauchlan, Hartley and Fitzgibbon 2000, Bundle adjustment: a
    modern synthesis.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    # offset from round numbers, at which a threshold may change the second derivative
    z = np.geomspace(1e-3, 1e3, 97) * 1.00123
    values = loss.rho(z)
    if values.shape != (3, len(z)):
        problems.add(
            "rho",
            f"has shape {values.shape} for {len(z)} squares",
            "return (3, m): rho, rho', rho''",
        )
        raise ConformanceError(problems)
    at_zero = loss.rho(np.array([0.0]))[:, 0]
    compare(
        problems,
        "rho(0)",
        at_zero[:2],
        [0.0, 1.0],
        tolerance=1e-12,
        remedy="make small residuals count as squares",
    )
    if (np.diff(values[0]) < 0).any():
        problems.add("rho", "decreases somewhere", "never give a larger residual less cost")
    for order, name in ((0, "rho'"), (1, "rho''")):
        above = loss.rho(z * (1 + LOSS_DIFFERENCE_STEP))[order]
        below = loss.rho(z * (1 - LOSS_DIFFERENCE_STEP))[order]
        slope = (above - below) / (2 * LOSS_DIFFERENCE_STEP * z)
        scale = np.abs(values[order]) / z
        size = np.abs(values[order + 1]) + scale
        limit = LOSS_SLOPE_TOLERANCE * size + LOSS_DIFFERENCE_STEP * scale
        bad = np.abs(slope - values[order + 1]) > limit
        if np.count_nonzero(bad) > 1:  # one may be across a threshold
            problems.add(
                name,
                f"is not the slope at {np.count_nonzero(bad)} of {len(z)} squares",
                "check the derivative",
            )
    ConformanceError.raise_if_any(problems)


def check_instrument(instrument: Instrument, mechanism: Mechanism, *, seed: int = 1) -> None:
    """Check an instrument on a machine: names, and zero errors at its simulated readings.

    Args:
        instrument: the instrument, with a name.
        mechanism: a machine that it can measure.
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
                "name nuisances after their instrument",
            )
    for kind, columns in (("columns", instrument.columns), ("errors", instrument.errors)):
        if not columns or len(dict(columns)) != len(columns):
            problems.add(kind, f"are {columns}", "give each name once, with its SI unit")
    ConformanceError.raise_if_any(problems)
    q = random_states(model, 8, np.random.default_rng(seed)).q
    series = simulated_series(model, instrument, q, 1.0)
    if series.readings.std(axis=0).max(initial=0.0) == 0.0:
        problems.add(
            "error", "simulated readings are equal at all poses", "let it depend on the scene"
        )
    geometry = [
        parameter.name for parameter in mechanism.parameters if parameter.group == "geometry"
    ]
    calibration = calibration_problem(mechanism, [series], [*geometry, *names])
    error = np.abs(calibration.evaluate(np.zeros(len(calibration.unknowns))).residual).max()
    if not error <= READING_TOLERANCE * max(1.0, np.abs(series.readings).max()):
        problems.add(
            "error",
            f"is {error:.3g} at its own readings",
            "return the expected minus the actual reading",
        )
    ConformanceError.raise_if_any(problems)
