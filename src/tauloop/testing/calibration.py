"""Checks of what is added to calibration: losses and instruments."""

from __future__ import annotations

import numpy as np

from tauloop.calibration import Instrument, Loss, calibration_problem, simulated_series
from tauloop.common.errors import Problems
from tauloop.kinematics import random_states
from tauloop.mechanism import Mechanism
from tauloop.model import Model
from tauloop.testing.conformance import ConformanceError, compare

#: Central differences with this relative step err by its square and by rounding over it.
STEP, DIFFERENCES = 1e-4, 1e-6
#: Loops are closed anew from the encoders, and the error is that of some hundred operations.
ROUNDING = 1e-9


def check_loss(loss: Loss) -> None:
    """Check a loss: rho(0) = 0, rho'(0) = 1, never decreasing, and derivatives that are those of rho.

    Source of the conditions: Triggs, McLauchlan, Hartley and Fitzgibbon 2000, Bundle adjustment: a
    modern synthesis.

    Raises:
        ConformanceError: everything that does not hold.
    """
    problems = Problems()
    # away from one square in a hundred, where a threshold may bend the second derivative
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
        remedy="small residuals count as squares",
    )
    if (np.diff(values[0]) < 0).any():
        problems.add("rho", "decreases somewhere", "a larger residual must not count less")
    for order, name in ((0, "rho'"), (1, "rho''")):
        above, below = loss.rho(z * (1 + STEP))[order], loss.rho(z * (1 - STEP))[order]
        slope = (above - below) / (2 * STEP * z)
        size = np.abs(values[order + 1]) + np.abs(values[order]) / z
        bad = np.abs(slope - values[order + 1]) > DIFFERENCES * size + STEP * np.abs(
            values[order] / z
        )
        if np.count_nonzero(bad) > 1:  # one may sit astride a threshold
            problems.add(
                name,
                f"is not the slope at {np.count_nonzero(bad)} of {len(z)} squares",
                "derive it again",
            )
    ConformanceError.raise_if_any(problems)


def check_instrument(instrument: Instrument, mechanism: Mechanism, *, seed: int = 1) -> None:
    """Check an instrument on a machine: names, and errors that vanish at the readings that it would give there.

    Args:
        instrument: with a name of its own.
        mechanism: a machine that it can measure.
        seed: of the random states.

    Raises:
        ConformanceError: everything that does not hold.
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
            problems.add(kind, f"are {columns}", "name each once, with its SI unit")
    ConformanceError.raise_if_any(problems)
    q = random_states(model, 8, np.random.default_rng(seed)).q
    series = simulated_series(model, instrument, q, 1.0)
    if series.readings.std(axis=0).max(initial=0.0) == 0.0:
        problems.add("error", "readings are the same at all poses", "let it depend on the scene")
    geometry = [
        parameter.name for parameter in mechanism.parameters if parameter.group == "geometry"
    ]
    calibration = calibration_problem(mechanism, [series], [*geometry, *names])
    error = np.abs(calibration.evaluate(np.zeros(len(calibration.unknowns))).residual).max()
    if not error <= ROUNDING * max(1.0, np.abs(series.readings).max()):
        problems.add(
            "error",
            f"is {error:.3g} at its own readings",
            "give what should be read less what was read",
        )
    ConformanceError.raise_if_any(problems)
