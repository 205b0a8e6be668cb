"""Symbols of the coordinates in a box of poses.

The independent coordinates are the axes of the box. The dependent coordinates are the unknowns of
the loop equations.
"""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.topology import Topology

#: Largest rotation from the reference, rad. The series of the quaternion is accurate to rounding up
#: to this angle.
MAX_ROTATION = 2.5
#: Number of terms of the series of cos(sqrt(s) / 2) and sin(sqrt(s) / 2) / sqrt(s). For rotations up
#: to `MAX_ROTATION`, the first omitted term is below 2^-70. The rounding bound of the sum covers it.
SERIES_TERMS = 12
#: Names of the components of a rotation vector.
_ROTATIONS = ("rx", "ry", "rz")
#: Names of the components of an angular velocity.
_ANGULAR_VELOCITIES = ("wx", "wy", "wz")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseSymbols:
    """Symbols of the axes and the unknowns, and the coordinates as functions of them.

    Attributes:
        axes: names of the m independent coordinates.
        unknowns: names of the n dependent coordinates.
        b: symbols (m,) of the axes.
        y: symbols (n,) of the unknowns.
        q: all coordinates as functions of b and y.
        velocities: indices of the velocities of the axes, then of the unknowns.
        unknown_coordinates: index of each unknown in q; -1 for a component of a rotation vector.
        rotations: for each rotation vector with an unknown component, the indices of its components
            in the list of axes and unknowns.
    """

    axes: tuple[str, ...]
    unknowns: tuple[str, ...]
    b: ca.SX
    y: ca.SX
    q: ca.SX
    velocities: tuple[int, ...]
    unknown_coordinates: tuple[int, ...]
    rotations: tuple[tuple[int, ...], ...]


def pose_symbols(assembly: Assembly) -> PoseSymbols:
    """Return symbols of the axes and the unknowns, and the coordinates as functions of them.

    Args:
        assembly: the loops; it defines which coordinates are independent and which are constant.
    """
    topology = assembly.topology
    dependent = tuple(
        i for i in range(topology.n_v) if i not in assembly.independent and i not in assembly.frozen
    )
    q = ca.SX(ca.DM(assembly.q))
    symbols: dict[int, ca.SX] = {}
    names: dict[int, str] = {}
    quaternion_of = {v0 + k: (q0, v0) for q0, v0 in topology.quaternions for k in range(3)}
    for i in (*assembly.independent, *dependent):
        name = topology.velocity_names[i]
        if i in quaternion_of:
            k = i - quaternion_of[i][1]
            name = name.removesuffix(_ANGULAR_VELOCITIES[k]) + _ROTATIONS[k]
        names[i], symbols[i] = name, ca.SX.sym(name)
    for q0, v0 in topology.quaternions:
        if {v0, v0 + 1, v0 + 2} <= set(assembly.frozen):
            continue
        r = ca.vertcat(*(symbols.get(v0 + k, ca.SX(0)) for k in range(3)))
        q[q0 : q0 + 4] = rotated(assembly.q[q0 : q0 + 4], r)
    for i, symbol in symbols.items():
        if topology.q_of_v[i] >= 0:
            q[topology.q_of_v[i]] = symbol
    return PoseSymbols(
        axes=tuple(names[i] for i in assembly.independent),
        unknowns=tuple(names[i] for i in dependent),
        b=ca.vertcat(*(symbols[i] for i in assembly.independent)),
        y=ca.vertcat(*(symbols[i] for i in dependent)) if dependent else ca.SX(0, 1),
        q=q,
        velocities=(*assembly.independent, *dependent),
        unknown_coordinates=tuple(topology.q_of_v[i] for i in dependent),
        rotations=_unknown_rotations(topology, (*assembly.independent, *dependent), dependent),
    )


def _unknown_rotations(
    topology: Topology, velocities: tuple[int, ...], dependent: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return `PoseSymbols.rotations`.

    Args:
        topology: the coordinates.
        velocities: indices of the velocities of axes and unknowns.
        dependent: indices of the velocities of the unknowns.
    """
    rotations = []
    for _, v0 in topology.quaternions:
        components = {v0, v0 + 1, v0 + 2}
        if components & set(dependent):
            rotations.append(tuple(k for k, i in enumerate(velocities) if i in components))
    return tuple(rotations)


def rotated(q_0: np.ndarray | ca.SX, r: ca.SX) -> ca.SX:
    """Return the quaternion exp(r / 2) q_0, rotated by the rotation vector r.

    The functions of the angle are series in s = r . r, which are smooth at zero.
    """
    s = ca.sumsqr(r)
    cosine, sine = ca.SX(0), ca.SX(0)
    for k in reversed(range(SERIES_TERMS)):
        sign = (-1.0) ** k / 4.0**k
        cosine = cosine * s + sign / math.factorial(2 * k)
        sine = sine * s + 0.5 * sign / math.factorial(2 * k + 1)
    d0, d = cosine, sine * r
    w, x = ca.SX(q_0[0]), ca.SX(q_0[1:])
    return ca.vertcat(d0 * w - ca.dot(d, x), d0 * x + w * d + ca.cross(d, x))


def reference_pose(assembly: Assembly, symbols: PoseSymbols) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of axes and unknowns at the reference pose, where rotations are zero."""
    topology = assembly.topology
    q = assembly.q
    values = [q[topology.q_of_v[i]] if topology.q_of_v[i] >= 0 else 0.0 for i in symbols.velocities]
    return np.array(values[: len(symbols.axes)]), np.array(values[len(symbols.axes) :])
