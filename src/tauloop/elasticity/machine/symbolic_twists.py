"""Symbolic twists, shared by `SymbolicStructure` and `SymbolicPartStructure`."""

from __future__ import annotations

import casadi as ca

from tauloop.elasticity.machine.joints import free_directions
from tauloop.mechanism.model import Joint


def carry(offset: ca.SX) -> ca.SX:
    """Return the matrix (6, 6) that maps a body's twist at one point to its twist at another.

    u_point = u + θ × r, θ_point = θ. `transport` is the numeric counterpart.

    Args:
        offset: r (3,) from the first point to the second.
    """
    matrix = ca.SX.eye(6)
    matrix[:3, 3:] = -ca.skew(offset)
    return ca.sparsify(matrix)


def symbolic_free_twists(joint: Joint, parent: ca.SX, child: ca.SX) -> ca.SX:
    """Return the twists (6, f) that a joint leaves free; `free_twists` is the numeric counterpart.

    Args:
        joint: a joint of a built-in kind.
        parent, child: axes (3, 3) of its frames in the base frame, as columns.
    """
    directions = free_directions(joint)
    twists = ca.SX(6, len(directions))
    for column, direction in enumerate(directions):
        axes = child if direction.uses_child_frame else parent
        rows = slice(3, 6) if direction.is_rotation else slice(0, 3)
        twists[rows, column] = axes[:, direction.axis]
    return twists
