"""Lengths of lines that wind onto drums and sprockets, with exact rates.

The end B of the line has the coordinates x, y, z in the frame of the drum, whose axis is z. With
rho^2 = x^2 + y^2, the radius r, and s = -1 for a clockwise line and s = 1 otherwise,

    length = sqrt(rho^2 - r^2 + z^2) + r (s atan2(y, x) - acos(r / rho))

The root is the free tangent. The other term is the arc from the x axis, where the length starts, to
the point where the line leaves the drum. On the negative x axis (atan2 = 180 deg) the arc jumps by
one revolution, which `kinematics.drum_jumps` reports. A displacement z along the axis lengthens
only the free tangent, because the line leaves the drum in the plane of its frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from tauloop.equations.tree import Moving
from tauloop.equations.values import Values
from tauloop.mechanism.model import Drum


def line_length(drum: Drum, frame: Mapping[str, Moving], d: Moving, values: Values) -> Moving:
    """Return the length of a line that winds onto a drum.

    Args:
        drum: drum that the line winds onto.
        frame: unit vectors along the axes of the drum's frame, by letter.
        d: vector from the drum's center to the end of the line.
        values: parameters.
    """
    position = ca.vertcat(*(ca.dot(frame[axis].x, d.x) for axis in "xyz"))
    B = ca.SX.sym("B", 3)
    length = _length(B, values.scalar(drum.radius), -1.0 if drum.is_clockwise else 1.0)
    gradient = ca.gradient(length, B)
    hessian = ca.jacobian(gradient, B)
    length, gradient, hessian = ca.substitute([length, gradient, hessian], [B], [position])

    def speed() -> ca.SX:
        """Return the velocity of the end relative to the drum, in the axes of its frame."""
        return ca.vertcat(
            *(ca.dot(frame[axis].rate, d.x) + ca.dot(frame[axis].x, d.rate) for axis in "xyz")
        )

    def acceleration() -> ca.SX:
        relative = ca.vertcat(
            *(
                ca.dot(frame[axis].acceleration, d.x)
                + 2 * ca.dot(frame[axis].rate, d.rate)
                + ca.dot(frame[axis].x, d.acceleration)
                for axis in "xyz"
            )
        )
        v = speed()
        return ca.dot(gradient, relative) + ca.dot(v, hessian @ v)

    return Moving(length, lambda: ca.dot(gradient, speed()), acceleration)


def _length(B: ca.SX, radius: ca.SX | float, sense: float) -> ca.SX:
    """Return the length for the end B (3,) in the frame of the drum."""
    tangent2 = B[0] * B[0] + B[1] * B[1] - radius * radius
    arc = sense * ca.atan2(B[1], B[0]) - ca.atan2(ca.sqrt(tangent2), radius)
    return ca.SX(ca.sqrt(tangent2 + B[2] * B[2]) + radius * arc)
