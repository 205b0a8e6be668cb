"""Coordinates of a box of poses as symbols: axes, and unknowns of the loop equations."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.topology import Topology

#: Largest rotation from the reference, rad: the series of the quaternion has no visible error up to
#: here.
MAX_ROTATION = 2.5
#: Terms of the series of cos(sqrt(s) / 2) and sin(sqrt(s) / 2) / sqrt(s); the next one is below
#: 2^-70 for rotations up to `MAX_ROTATION`, which the rounding bound of the last sum contains.
SERIES_TERMS = 12
#: Names of the components of a rotation vector, and of the angular velocity.
_ROTATIONS, _SPINS = ("rx", "ry", "rz"), ("wx", "wy", "wz")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseSymbols:
    """Symbols of axes and unknowns, and the coordinates that follow from them.

    Attributes:
        axes, unknowns: their names.
        b, y: their symbols (m,) and (n,).
        q: all coordinates as functions of them.
        velocities: indices of the velocities of axes and unknowns.
        unknown_coordinates: index of each unknown among the coordinates; -1 for none.
        rotations: indices, among axes and unknowns, of the components of each rotation vector that
            has an unknown.
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
    """Return symbols of axes and unknowns, and the coordinates.

    Args:
        assembly: the loops, and which coordinates are constant.
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
            name = name.removesuffix(_SPINS[k]) + _ROTATIONS[k]
        names[i], symbols[i] = name, ca.SX.sym(name)
    for q0, v0 in topology.quaternions:
        if {v0, v0 + 1, v0 + 2} <= set(assembly.frozen):
            continue
        r = ca.vertcat(*(symbols.get(v0 + k, ca.SX(0)) for k in range(3)))
        q[q0 : q0 + 4] = turned(r, assembly.q[q0 : q0 + 4])
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
    topology: Topology, moving: tuple[int, ...], dependent: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the components of each rotation vector that has an unknown."""
    rotations = []
    for _, v0 in topology.quaternions:
        components = {v0, v0 + 1, v0 + 2}
        if components & set(dependent):
            rotations.append(tuple(k for k, i in enumerate(moving) if i in components))
    return tuple(rotations)


def turned(r: ca.SX, start: np.ndarray | ca.SX) -> ca.SX:
    """Return the quaternion exp(r / 2) q_0, by series in s = r . r, which are smooth at zero."""
    s = ca.sumsqr(r)
    cosine, sine = ca.SX(0), ca.SX(0)
    for k in reversed(range(SERIES_TERMS)):
        sign = (-1.0) ** k / 4.0**k
        cosine = cosine * s + sign / math.factorial(2 * k)
        sine = sine * s + 0.5 * sign / math.factorial(2 * k + 1)
    d0, d = cosine, sine * r
    w, x = ca.SX(start[0]), ca.SX(start[1:])
    return ca.vertcat(d0 * w - ca.dot(d, x), d0 * x + w * d + ca.cross(d, x))


def reference_pose(assembly: Assembly, symbols: PoseSymbols) -> tuple[np.ndarray, np.ndarray]:
    """Return axes and unknowns at the reference pose; rotations are zero there."""
    topology, q = assembly.topology, assembly.q
    values = [q[topology.q_of_v[i]] if topology.q_of_v[i] >= 0 else 0.0 for i in symbols.velocities]
    return np.array(values[: len(symbols.axes)]), np.array(values[len(symbols.axes) :])
