"""The loop equations of one machine as CasADi functions of the full coordinates, for assembly and its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from tauloop.assembly.batch import BatchFunction
from tauloop.assembly.quantiles import quantile
from tauloop.equations.closure import ClosureRow, closure, is_tree
from tauloop.equations.newton_euler import transmission
from tauloop.equations.topology import Topology, topology, with_ends
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import Values, unit_vector
from tauloop.mechanism.model import Mechanism
from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops(Shown):
    """Residuals and Jacobians of all loop equations at given parameter values.

    Attributes:
        mechanism: the machine, with its nominal parameter values, and ends of the joints that need them (`with_ends`).
        topology: its coordinates.
        names: name of every loop equation (c,).
        elements: rod or joint of every loop equation.
        is_length: whether each residual is in metres.
        function: q -> (phi, K by columns).
        acceleration: (q, v) -> bias k with K a = k.
        transmission: matrix A (n_u, n_v) of actuator velocities.
        length: characteristic length of the machine, m; it makes angles and lengths comparable.
    """

    mechanism: Mechanism
    topology: Topology
    names: tuple[str, ...]
    elements: tuple[str, ...]
    is_length: np.ndarray
    function: BatchFunction
    acceleration: BatchFunction
    transmission: np.ndarray
    length: float

    def residuals(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residuals phi (N, c) and Jacobians K (N, c, n_v) at coordinates (N, n_q)."""
        n, c = len(q), len(self.names)
        if c == 0:
            return np.zeros((n, 0)), np.zeros((n, 0, self.topology.n_v))
        phi, K = self.function([q], n)
        return phi, K.reshape(n, self.topology.n_v, c).transpose(0, 2, 1)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Loop bias k (N, c): accelerations must satisfy K a = k."""
        if not self.names:
            return np.zeros((len(q), 0))
        return self.acceleration([q, v], len(q))[0]

    @property
    def row_scale(self) -> np.ndarray:
        """Factors (c,) that make residuals pure numbers: 1/length for residuals in metres."""
        return np.where(self.is_length, 1.0 / self.length, 1.0)

    @property
    def velocity_scale(self) -> np.ndarray:
        """Unit displacement (n_v,) of every velocity: the characteristic length, or one radian."""
        return np.where(self.topology.angular, 1.0, self.length)

    def scaled(self, K: np.ndarray) -> np.ndarray:
        """Jacobians made free of units."""
        return np.asarray(self.row_scale[:, None] * K * self.velocity_scale)


def nominal(mechanism: Mechanism, symbols: Mapping[str, Any] | None = None) -> Values:
    """Nominal parameter values, with symbols in place of some."""
    return Values({**mechanism.parameters.values, **(symbols or {})})


def loops(mechanism: Mechanism) -> Loops:
    """Build the loop functions of a machine at its nominal parameter values."""
    mechanism = with_ends(mechanism)
    shape = topology(mechanism)
    values = nominal(mechanism)
    q, v = ca.SX.sym("q", shape.n_q), ca.SX.sym("v", shape.n_v)
    rows: tuple[ClosureRow, ...] = ()
    if not is_tree(mechanism, shape):
        motion = tree_motion(shape, values, Configuration(q, {}), v, ca.SX(shape.n_v, 1))
        rows = closure(mechanism, shape, values, motion)
    phi, rate, acceleration = stacked(rows)
    K = ca.jacobian(rate, v)
    return Loops(
        mechanism=mechanism,
        topology=shape,
        names=tuple(row.name for row in rows),
        elements=tuple(row.element for row in rows),
        is_length=np.array([row.is_length for row in rows], dtype=bool),
        function=BatchFunction(ca.Function("closure", [q], [ca.densify(phi), ca.densify(ca.vec(K))])),
        acceleration=BatchFunction(ca.Function("bias", [q, v], [ca.densify(-acceleration)])),
        transmission=np.array(ca.DM(transmission(mechanism, shape, values)).full()),
        length=characteristic_length(mechanism),
    )


#: Axes of both frames that have to coincide in a cut joint, beyond being perpendicular to others; "a": the joint's own.
_COINCIDENT = {
    "fixed": "xyz",
    "prismatic": "xyz",
    "translational": "xyz",
    "revolute": "a",
    "cylindrical": "a",
    "planar": "z",
    "schoenflies": "z",
}


def aligned(found: Loops) -> Loops:
    """The same loops with three more equations e_A - e_B = 0 for every axis that two frames of a cut joint share.

    Closed loops satisfy them unless a joint came out a third or half turn away, where its directions are perpendicular
    too. They are redundant, so they serve to close the loops from afar and to see which way a joint closed.
    """
    shape, values = found.topology, nominal(found.mechanism)
    q, v = ca.SX.sym("q", shape.n_q), ca.SX.sym("v", shape.n_v)
    motion = tree_motion(shape, values, Configuration(q, {}), v, ca.SX(shape.n_v, 1))
    phi, rate, _ = stacked(closure(found.mechanism, shape, values, motion))
    names, elements = list(found.names), list(found.elements)
    for joint in shape.cuts:
        A, B = motion.bodies[joint.parent.body], motion.bodies[joint.child.body]
        R_A, R_B = values.placement(joint.parent)[0], values.placement(joint.child)[0]
        for letter in _COINCIDENT.get(joint.kind, ""):
            axis = joint.axes[0] if letter == "a" else letter
            e_A, e_B = A.R @ (R_A @ unit_vector(axis)), B.R @ (R_B @ unit_vector(axis))
            phi = ca.vertcat(phi, e_A - e_B)
            rate = ca.vertcat(rate, ca.cross(A.w_W, e_A) - ca.cross(B.w_W, e_B))
            names += [f"{joint.name}: {axis} aligned along {base}" for base in "xyz"]
            elements += [joint.name] * 3
    K = ca.jacobian(rate, v)
    return replace(
        found,
        names=tuple(names),
        elements=tuple(elements),
        is_length=np.concatenate([found.is_length, np.zeros(len(names) - len(found.names), dtype=bool)]),
        function=BatchFunction(ca.Function("aligned", [q], [ca.densify(phi), ca.densify(ca.vec(K))])),
    )


def stacked(rows: tuple[ClosureRow, ...]) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Residuals, rates and accelerations of loop equations as columns (c,)."""
    if not rows:
        return ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)
    return (
        ca.vertcat(*(row.residual for row in rows)),
        ca.vertcat(*(row.rate for row in rows)),
        ca.vertcat(*(row.acceleration for row in rows)),
    )


def characteristic_length(mechanism: Mechanism) -> float:
    """A typical dimension of the machine, m: the median of its rod lengths and joint offsets that are not zero."""
    lengths = [mechanism.value(rod.length) for rod in mechanism.rods if rod.length is not None]
    lengths += [rod.telescope.reference for rod in mechanism.rods if rod.telescope is not None]
    frames = [frame for joint in mechanism.joints for frame in (joint.parent, joint.child)]
    frames += [frame for rod in mechanism.rods for frame in (rod.start, rod.end)]
    lengths += [float(np.linalg.norm([mechanism.value(x) for x in frame.position])) for frame in frames]
    lengths = [length for length in lengths if length > 1e-9]
    return float(quantile(lengths, 0.5)) if lengths else 1.0
