"""A machine around a reference, in linear steps from sample to sample: exact slopes of its forward dynamics."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from tauloop.common.records import dataclass
from tauloop.model import Model

#: Conditions at both ends of an interval of unit length -> coefficients of the polynomial of fifth
#: degree.
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
    """Steps e[k + 1] = A[k] e[k] + B[k] (u[k] - mean[k]) + drift[k] of errors e = (p - p_ref, p' - p_ref').

    Attributes:
        A, B: (K, 2 m, 2 m) and (K, 2 m, n_u).
        mean: forces (K, n_u) that, held, leave the reference's speed at the end of the step.
        drift: errors (K, 2 m) that holding them leaves, for the reference's own forces change on
            the way.
        speed: of all actuators of the reference at the end of a step (K, n_u).
        driven: their speeds (K, n_u, 2 m), of e.
        seen: what counts as an error (K, 2 r, 2 m): its positions, then its speeds, of e.
    """

    A: np.ndarray
    B: np.ndarray
    mean: np.ndarray
    drift: np.ndarray
    speed: np.ndarray
    driven: np.ndarray
    seen: np.ndarray


def between(
    reference: tuple[np.ndarray, ...], period: float, time: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Positions, velocities and accelerations (M, n) at times (M,), s, between samples (N, n) of them; at rest behind.

    The polynomial of fifth degree that has all three at both ends.
    """
    position, velocity, acceleration = (
        np.concatenate([array, last])
        for array, last in zip(
            reference,
            (reference[0][-1:], 0 * reference[1][-1:], 0 * reference[2][-1:]),
            strict=True,
        )
    )
    ends = np.stack([position, velocity * period, acceleration * period**2], axis=1)
    k = np.minimum(np.floor(time / period + 1e-9).astype(int), len(ends) - 2)
    x = np.minimum(time / period - k, 1.0)[:, None]
    powers = np.arange(6.0)
    by_order = (
        x**powers,
        powers * x ** np.maximum(powers - 1, 0),
        powers * (powers - 1) * x ** np.maximum(powers - 2, 0),
    )
    both = np.concatenate([ends[k], ends[k + 1]], axis=1)
    made = [np.einsum("mi,min->mn", weights @ _QUINTIC, both) for weights in by_order]
    return made[0], made[1] / period, made[2] / period**2


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
    """Steps k of a length that begin at first + k times the period.

    Slopes of forward dynamics are those in the middle of a step, carried through it by the matrix
    exponential; forces of the reference change as Simpson's rule sees them. Both are of second
    order in the step.

    Args:
        model: the machine.
        reference: positions, velocities and accelerations of the leading actuators (N, m), a period
            apart.
        period: s.
        first: s.
        step: length of a step, s.
        count: K.
        in_platform: whether the platform's displacements count as errors, not those of the
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
    here = slice(1, None, 3)
    at = position[here], velocity[here]
    moved = actuators.derivatives("forward_dynamics", *at, force[:, 1], wrt=MOVED, start=q[here])
    by_position, by_velocity, by_force = (moved.jacobian("acceleration", name) for name in MOVED)
    n_u = force.shape[2]
    rates = np.zeros((count, 2 * m + n_u, 2 * m + n_u))
    rates[:, :m, m : 2 * m] = np.eye(m)
    rates[:, m : 2 * m] = np.concatenate([by_position, by_velocity, by_force], axis=2)
    whole = expm(rates * step)
    changes = np.einsum("kij,kj->ki", by_force, force[:, 2] - force[:, 0]) * step**2 / 12
    seen = np.broadcast_to(np.eye(2 * m), (count, 2 * m, 2 * m))
    A, driven = model.assembly.loops.transmission, seen[:, m:]
    if in_platform or n_u > m:
        columns = list(model.platform.ports.v)
        turned = actuators.derivatives(
            "kinematics", *at, acceleration[here], wrt=("position", "velocity"), start=q[here]
        )
        by_speed, by_place = (turned.jacobian("v", name) for name in ("velocity", "position"))
        driven = np.concatenate([A @ by_place, A @ by_speed], axis=2)
        if in_platform:
            slopes = by_speed[:, columns]
            seen = np.block([[slopes, 0 * slopes], [by_place[:, columns], slopes]])
    return ErrorSteps(
        A=whole[:, : 2 * m, : 2 * m],
        B=whole[:, : 2 * m, 2 * m :],
        mean=np.einsum("i,kij->kj", np.array([1.0, 4.0, 1.0]) / 6, force),
        drift=np.concatenate([changes, 0 * changes], axis=1),
        speed=v[2::3] @ A.T,
        driven=driven,
        seen=seen,
    )


#: By what forward dynamics is differentiated.
MOVED = ("position", "velocity", "force")
