"""Whether the times of a log are in the unit that it says, judged by the inertias of the machine file."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError, Problem
from tauloop.identification.faults.measured_motion import Measured
from tauloop.identification.faults.misfits import measured_outputs
from tauloop.identification.regression.from_log import regressor_rows
from tauloop.model import Model

#: Samples on which units are tried, evenly spread over the log.
TRIED = 200
#: Seconds that one unit of the stamps may be where the log says 1 s, and their names.
UNITS = {1e-3: "ms", 1e-6: "us"}
#: Inertial forces are those of another unit when they are as near to its square as this factor:
#: machine files err by less, and units differ by far more.
NEAR = 5.0
#: Without the other unit so many times as much of the forces must stay unexplained.
BETTER = 1.4
#: Roles of the parameters that are left free: the machine file seldom knows friction.
FREE = ("viscous", "coulomb", "offset")


def wrong_time_unit(
    model: Model, log: Measured, *, output: str = "actuators"
) -> tuple[Problem, ...]:
    """Whether inertial forces are what the machine file says only where time is in another unit than the log says.

    Forces are fitted by g G + x A + friction, where G are the machine file's forces at rest and A
    those that motion adds (with the file's inertias), every output weighted by its own force,
    friction free. With times in a unit of s seconds that are said to be seconds, x / g is 1 / s^2;
    x alone without forces at rest.

    Args:
        model: the machine as its file has it.
        log: its motion and forces.
        output: of `regressor_rows`.

    Returns:
        One problem where x / g is that of ms or us to a factor of 5, and x = g leaves 1.4 times as
        much of the forces unexplained; none where the machine file has no inertias, or actuators
        are redundant.
    """
    if model.assembly.is_redundant:
        return ()
    mixing, rows = measured_outputs(model, log, output)
    forces = log.forces @ mixing
    at = np.unique(np.linspace(0, len(forces) - 1, min(TRIED, len(forces))).round().astype(int))
    position, velocity, acceleration = (
        x[at] for x in (log.position, log.velocity, log.acceleration)
    )
    try:
        start = model.actuators.track(position).q if model.assembly.rows else None
        still = regressor_rows(
            model, (position, 0.0 * velocity, 0.0 * acceleration), output, start
        )[:, rows]
        moved = regressor_rows(model, (position, velocity, acceleration), output, start)[:, rows]
    except PoseError:
        return ()
    sizes = np.maximum(np.linalg.norm(forces[at], axis=0), np.finfo(float).tiny)

    def weighed(columns: np.ndarray) -> np.ndarray:
        return np.asarray(
            (columns / sizes[:, None]).reshape(sizes.size * len(at), columns.shape[2])
        )

    free = np.array([parameter.role in FREE for parameter in model.parameters])
    rest = still[:, :, ~free] @ model.pi[~free]
    motion = moved[:, :, ~free] @ model.pi[~free] - rest
    friction, own = weighed(moved[:, :, free]), weighed(np.stack([rest, motion], axis=2))
    wanted = weighed(forces[at][:, :, None])[:, 0]
    own = own[:, np.linalg.norm(own, axis=0) > 0.0]
    if not np.any(motion):
        return ()
    together, separate = np.hstack([own.sum(axis=1)[:, None], friction]), np.hstack([own, friction])
    _, stated = _fitted(together, wanted)
    factors, best = _fitted(separate, wanted)
    ratio = factors[1] / factors[0] if np.any(rest) else factors[0]
    unit = next((unit for unit in UNITS if 1.0 / NEAR < ratio * unit**2 < NEAR), None)
    if unit is None or (np.any(rest) and (factors[0] <= 0.0 or stated < BETTER * best)):
        return ()
    what = (
        f"seems to be in {UNITS[unit]} where the log says s (one sample every {log.step:g} s): forces of inertia are "
        f"{ratio:.3g} times those that follow from the machine file"
    )
    if np.any(rest):
        what += f", forces at rest {factors[0]:.3g} times"
    return (Problem("time", what, f"correct the unit of the time column, 'time [{UNITS[unit]}]'"),)


def _fitted(columns: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, float]:
    """Coefficients of least squares, and the norm of what is left."""
    norms = np.linalg.norm(columns, axis=0)
    norms[norms == 0.0] = 1.0
    solution = np.linalg.lstsq(columns / norms, wanted, rcond=None)[0]
    return solution / norms, float(np.linalg.norm(wanted - columns / norms @ solution))
