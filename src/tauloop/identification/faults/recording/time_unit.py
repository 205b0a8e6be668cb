"""Detection of a wrong unit of time in a log, from the inertias in the machine file."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError, Problem
from tauloop.identification.faults.measured_motion import LogMotion
from tauloop.identification.faults.misfits import measured_outputs
from tauloop.identification.regression.from_log import regressor_rows, regressor_start
from tauloop.model import Model

#: Maximum number of samples that are used, spread evenly over the log.
MAX_TESTED_SAMPLES = 200
#: Units of time stamps that may be declared as seconds by mistake, by their size in seconds.
POSSIBLE_TIME_UNITS = {1e-3: "ms", 1e-6: "us"}
#: Inertial forces indicate another unit of time if their ratio to the machine file agrees with the
#: inverse square of the unit's size up to this factor. Errors of machine files are smaller than
#: this factor, and units differ by far more.
MAX_INERTIA_FACTOR = 5.0
#: The residual with the declared unit must be larger by at least this factor.
MIN_RESIDUAL_RATIO = 1.4
#: Roles of the parameters that are fitted freely, because machine files seldom state friction.
FREE_ROLES = ("viscous", "coulomb", "offset")


def wrong_time_unit(
    model: Model, log: LogMotion, *, output: str = "actuators"
) -> tuple[Problem, ...]:
    """Return a problem if inertial forces agree with the machine file only in another unit of time.

    Forces are fitted by g G + x A + friction, where G are the forces at rest and A the additional
    forces of the motion, both according to the machine file. The coefficients g and x and the
    friction are fitted, and every output is weighted by the inverse of its force. If times are
    declared in seconds, but their unit is s seconds, then x / g = 1 / s^2. Without forces at rest,
    x = 1 / s^2.

    Args:
        model: the machine as its file describes it.
        log: motion and forces of the log.
        output: "actuators", or "joints" for forces on the driven coordinates.

    Returns:
        One problem if x / g agrees with ms or us up to a factor of `MAX_INERTIA_FACTOR`, and the
        residual with x = g is larger by the factor `MIN_RESIDUAL_RATIO`. The result is empty if the
        machine file has no inertias, or if actuators are redundant.
    """
    if model.assembly.is_redundant:
        return ()
    mixing, rows = measured_outputs(model, log, output)
    count = len(log.forces)
    sample_indices = np.linspace(0, count - 1, min(MAX_TESTED_SAMPLES, count))
    tested = np.unique(sample_indices.round().astype(int))
    forces = log.forces[tested] @ mixing
    position = log.position[tested]
    velocity = log.velocity[tested]
    acceleration = log.acceleration[tested]
    try:
        start = regressor_start(model, position, output)
        at_rest = regressor_rows(
            model, (position, 0.0 * velocity, 0.0 * acceleration), output, start
        )[:, rows]
        in_motion = regressor_rows(model, (position, velocity, acceleration), output, start)
        in_motion = in_motion[:, rows]
    except PoseError:
        return ()
    norms = np.maximum(np.linalg.norm(forces, axis=0), np.finfo(float).tiny)

    def weighted(columns: np.ndarray) -> np.ndarray:
        """Return columns (M n_out, n), divided by the sizes of the outputs' forces."""
        return np.asarray(
            (columns / norms[:, None]).reshape(norms.size * len(tested), columns.shape[2])
        )

    is_free = np.array([parameter.role in FREE_ROLES for parameter in model.parameters])
    rest_force = at_rest[:, :, ~is_free] @ model.pi[~is_free]
    motion_force = in_motion[:, :, ~is_free] @ model.pi[~is_free] - rest_force
    if not np.any(motion_force):
        return ()
    has_rest_force = bool(np.any(rest_force))
    friction = weighted(in_motion[:, :, is_free])
    file_forces = weighted(np.stack([rest_force, motion_force], axis=2))
    file_forces = file_forces[:, np.linalg.norm(file_forces, axis=0) > 0.0]
    measured = weighted(forces[:, :, None])[:, 0]
    _, stated_residual = _least_squares(
        np.hstack([file_forces.sum(axis=1)[:, None], friction]), measured
    )
    factors, residual = _least_squares(np.hstack([file_forces, friction]), measured)
    ratio = factors[1] / factors[0] if has_rest_force else factors[0]
    unit = _unit_of_ratio(ratio)
    if unit is None:
        return ()
    is_confirmed = factors[0] > 0.0 and stated_residual >= MIN_RESIDUAL_RATIO * residual
    if has_rest_force and not is_confirmed:
        return ()
    what = (
        f"seems to be in {unit}, but the log states s (one sample every {log.step:g} s): "
        f"inertial forces are {ratio:.3g} times those of the machine file"
    )
    if has_rest_force:
        what += f", forces at rest {factors[0]:.3g} times"
    return (Problem("time", what, f"correct the unit of the time column, 'time [{unit}]'"),)


def _unit_of_ratio(ratio: float) -> str | None:
    """Return the unit of time that explains a ratio of inertial forces; None if none does."""
    for size, name in POSSIBLE_TIME_UNITS.items():
        if 1.0 / MAX_INERTIA_FACTOR < ratio * size**2 < MAX_INERTIA_FACTOR:
            return name
    return None


def _least_squares(columns: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the least-squares coefficients and the norm of the residual."""
    norms = np.linalg.norm(columns, axis=0)
    norms[norms == 0.0] = 1.0
    solution = np.linalg.lstsq(columns / norms, measured, rcond=None)[0]
    return solution / norms, float(np.linalg.norm(measured - columns / norms @ solution))
