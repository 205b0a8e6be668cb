"""Conditioning of poses: how far the actuators' control of the platform is from being lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.functions import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning:
    """Actuator Jacobian of a pose, free of units, and its condition number.

    Attributes:
        jacobian: actuator velocities per platform velocity (N, n_u, m), SI.
        condition: condition number (N,) after dividing rotations by the characteristic length.
        length: the characteristic length, m.
    """

    jacobian: np.ndarray
    condition: np.ndarray
    length: float


def conditioning(model: Model, position: object, *, length: float | None = None) -> Conditioning:
    """Conditioning of platform positions.

    Args:
        model: the machine.
        position: platform positions (N, n) or (n,), columns as in `model.platform.ports`.
        length: length that makes rotations comparable with translations, m; the machine's own without it.

    Raises:
        PoseError: a pose is out of reach or its loops are singular.
    """
    loops = model.assembly.loops
    own = loops.length if length is None else length
    J = np.atleast_3d(model.platform.actuator_jacobian(np.atleast_2d(np.asarray(position, dtype=float))))
    shape = model.topology
    columns = np.array([1.0 if shape.angular[i] else own for i in model.platform.entry.v])
    driven = [[shape.angular[i] for i in np.flatnonzero(row)] for row in loops.transmission]
    rows = np.array([1.0 if all(angular) else 1.0 / own for angular in driven])
    sigma = np.linalg.svd(rows[:, None] * J * columns, compute_uv=False)
    with np.errstate(divide="ignore"):
        condition = sigma[:, 0] / sigma[:, -1]
    return Conditioning(jacobian=J, condition=condition, length=own)
