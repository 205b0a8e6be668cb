"""Linear error dynamics of a machine along a reference, from sample to sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.names.lazy import lazy_functions
from tauloop.common.records import dataclass
from tauloop.model import Model

if TYPE_CHECKING:
    from scipy.linalg import expm
else:
    (expm,) = lazy_functions("scipy.linalg", "expm")

#: Matrix from boundary conditions on an interval of unit length to the coefficients of a quintic.
_QUINTIC = np.linalg.inv(
    [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 2, 0, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [0, 1, 2, 3, 4, 5],
        [0, 0, 2, 6, 12, 20],
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSteps:
    """Linear steps of the errors e = (p - p_ref, p' - p_ref') along a reference.

    The errors follow e[k + 1] = A[k] e[k] + B[k] (u[k] - mean[k]) + drift[k].

    Attributes:
        A, B: matrices of the steps (K, 2 m, 2 m) and (K, 2 m, n_u).
        mean: constant forces during a step that give the reference's speed at its end (K, n_u).
        drift: errors caused by constant forces, because the reference's forces vary within the step
            (K, 2 m).
        speed: reference speeds of all actuators at the end of a step (K, n_u).
        actuator_jacobian: derivatives of the actuator speeds with respect to e (K, n_u, 2 m).
        output_jacobian: derivatives of the r controlled positions and speeds with respect to e
            (K, 2 r, 2 m).
    """

    A: np.ndarray
    B: np.ndarray
    mean: np.ndarray
    drift: np.ndarray
    speed: np.ndarray
    actuator_jacobian: np.ndarray
    output_jacobian: np.ndarray


def between(
    reference: tuple[np.ndarray, ...], period: float, time: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return positions, velocities and accelerations (M, n) at times (M,) between samples.

    In each interval, they are those of the quintic polynomial that matches positions, velocities
    and accelerations at both ends. After the last sample, the reference is at rest.

    Args:
        reference: positions, velocities and accelerations at the samples (N, n).
        period: sample period, s.
        time: times (M,), s.
    """
    position, velocity, acceleration = reference
    at_rest = np.zeros_like(velocity[-1:])
    position = np.concatenate([position, position[-1:]])
    velocity = np.concatenate([velocity, at_rest])
    acceleration = np.concatenate([acceleration, at_rest])
    boundary = np.stack([position, velocity * period, acceleration * period**2], axis=1)
    k = np.minimum(np.floor(time / period + 1e-9).astype(int), len(boundary) - 2)
    x = np.minimum(time / period - k, 1.0)[:, None]
    powers = np.arange(6.0)
    values = x**powers
    first_derivatives = powers * x ** np.maximum(powers - 1, 0)
    second_derivatives = powers * (powers - 1) * x ** np.maximum(powers - 2, 0)
    both_ends = np.concatenate([boundary[k], boundary[k + 1]], axis=1)

    def combined(monomials: np.ndarray) -> np.ndarray:
        return np.asarray(np.einsum("mi,min->mn", monomials @ _QUINTIC, both_ends))

    return (
        combined(values),
        combined(first_derivatives) / period,
        combined(second_derivatives) / period**2,
    )


def error_steps(
    model: Model,
    reference: tuple[np.ndarray, ...],
    period: float,
    *,
    first: float,
    step: float,
    count: int,
    in_platform: bool,
    start: np.ndarray,
) -> ErrorSteps:
    """Return error steps of a given length that begin at the times first + k period.

    The derivatives of forward dynamics in the middle of a step are used for the whole step (matrix
    exponential). Simpson's rule gives the effect of the varying reference forces. Both are accurate
    to second order in the step length.

    Args:
        model: the machine.
        reference: positions, velocities and accelerations of the leading actuators (N, m), at times
            that are a period apart.
        period: sample period, s.
        first: start of the first step, s.
        step: length of a step, s.
        count: number of steps K.
        in_platform: whether errors are the platform's displacements instead of those of the
            actuators.
        start: coordinates (n_q,) at the start of the reference.

    Raises:
        PoseError: the reference is out of reach or singular.
    """
    middle = first + step / 2 + period * np.arange(count)
    time = np.stack([middle - step / 2, middle, middle + step / 2], axis=1).ravel()
    position, velocity, acceleration = between(reference, period, time)
    actuators, m = model.actuators, position.shape[1]
    q = actuators.track(position, start).q
    forces = actuators.inverse_dynamics(position, velocity, acceleration, start=q)
    force, v = forces.force.reshape(count, 3, -1), np.asarray(forces.state.v)
    middles = slice(1, None, 3)
    state = position[middles], velocity[middles]
    derivatives = actuators.derivatives(
        "forward_dynamics",
        *state,
        force[:, 1],
        wrt=("position", "velocity", "force"),
        start=q[middles],
    )
    by_position = derivatives.jacobian("acceleration", "position")
    by_velocity = derivatives.jacobian("acceleration", "velocity")
    by_force = derivatives.jacobian("acceleration", "force")
    n_u = force.shape[2]
    rates = np.zeros((count, 2 * m + n_u, 2 * m + n_u))
    rates[:, :m, m : 2 * m] = np.eye(m)
    rates[:, m : 2 * m] = np.concatenate([by_position, by_velocity, by_force], axis=2)
    transition = expm(rates * step)
    position_drift = np.einsum("kij,kj->ki", by_force, force[:, 2] - force[:, 0]) * step**2 / 12
    output_jacobian = np.broadcast_to(np.eye(2 * m), (count, 2 * m, 2 * m))
    actuator_jacobian = output_jacobian[:, m:]
    A = model.assembly.loops.transmission
    if in_platform or n_u > m:
        columns = list(model.platform.ports.v)
        derivatives = actuators.derivatives(
            "kinematics",
            *state,
            acceleration[middles],
            wrt=("position", "velocity"),
            start=q[middles],
        )
        v_by_velocity = derivatives.jacobian("v", "velocity")
        v_by_position = derivatives.jacobian("v", "position")
        actuator_jacobian = np.concatenate([A @ v_by_position, A @ v_by_velocity], axis=2)
        if in_platform:
            J = v_by_velocity[:, columns]
            output_jacobian = np.block([[J, 0 * J], [v_by_position[:, columns], J]])
    return ErrorSteps(
        A=transition[:, : 2 * m, : 2 * m],
        B=transition[:, : 2 * m, 2 * m :],
        mean=np.einsum("i,kij->kj", np.array([1.0, 4.0, 1.0]) / 6, force),
        drift=np.concatenate([position_drift, 0 * position_drift], axis=1),
        speed=v[2::3] @ A.T,
        actuator_jacobian=actuator_jacobian,
        output_jacobian=output_jacobian,
    )
