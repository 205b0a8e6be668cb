"""Conditioning of poses: how well the actuators control the platform."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import PoseError, solving
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.freedoms.coordinates import conditions
from tauloop.equations.ports import numbers
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditioning(ReprMixin):
    """Dimensionless actuator Jacobian of a pose, and its condition number.

    Attributes:
        jacobian: actuator velocities per platform velocity (N, n_u, m), SI.
        condition: condition number (N,) of the dimensionless Jacobian. Lengths are divided by the
            characteristic length. Actuator motions are divided by the motion due to one radian or
            one characteristic length of the joint, so that gears have no effect.
        length: the characteristic length, m.
    """

    jacobian: np.ndarray
    condition: np.ndarray
    length: float


@solving(PoseError)
def conditioning(model: Model, position: object, *, length: float | None = None) -> Conditioning:
    """Return the conditioning of platform positions.

    Args:
        model: the machine.
        position: platform positions (N, n) or (n,), columns as in `model.platform.ports`.
        length: characteristic length that makes rotations comparable with translations, m; None for
            the machine's.

    Raises:
        PoseError: a pose is out of reach or its loops are singular.
    """
    loops = model.assembly.loops
    characteristic_length = loops.length if length is None else length
    J = np.atleast_3d(
        model.platform.actuator_jacobian(np.atleast_2d(numbers(position, "position")))
    )
    topology = model.topology
    unit = np.where(topology.angular, 1.0, characteristic_length)
    # motion of an actuator while its joint moves by one unit
    rows = np.abs(loops.transmission * unit).max(axis=1)
    condition = conditions(J / rows[:, None] * unit[list(model.platform.ports.v)])
    return Conditioning(jacobian=J, condition=condition, length=characteristic_length)
