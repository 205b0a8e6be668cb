"""Equivalent virtual platforms: matrices M, V and a gravity vector g of each inertia, in one frame.

f = M x'' + V x' + g is the force at the platform that moves a body or rod, so bodies can be
compared and summed. The paper writes I for M, and G for g. Some printed signs are corrected: all
signs follow from the definitions in `virtual_platforms`.

Source: Lopes and Almeida (RCID paper), eqs. 24 to 33 (platform), 38 to 41 (actuators), 51 to 55 and
69 to 73 (links), 75 to 78 (gravity).
"""

from __future__ import annotations

from itertools import islice

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.energy import gravity_energy, require_energy
from tauloop.equations.formulations.lagrange import koditschek_matrices
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.inertial_elements import InertialElement
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries
from tauloop.mechanism.model import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualPlatform:
    """Matrices of one inertia on the independent velocities x', without friction and springs.

    V is not unique. V x' is the same whether V follows from momentum or from energy, but M' - 2 V
    is skew only if it follows from energy.

    Attributes:
        name: name of the body, rod, coordinate or motor.
        kind: "platform", "body", "rod" or "rotor".
        part: "translation", "rotation", or "whole" if it is not split.
        M: inertia matrix (m, m).
        V: Coriolis and centripetal matrix (m, m).
        gravity: gravity vector g (m,).
    """

    name: str
    kind: str
    part: str
    M: ca.SX
    V: ca.SX
    gravity: ca.SX

    def mapped(self, T: ca.SX, T_rate: ca.SX) -> VirtualPlatform:
        """Return the matrices for velocities y' with x' = T y'.

        They are T^T M T, T^T (V T + M T') and T^T g (eqs. 26, 32, 33).
        """
        return VirtualPlatform(
            name=self.name,
            kind=self.kind,
            part=self.part,
            M=T.T @ self.M @ T,
            V=T.T @ (self.V @ T + self.M @ T_rate),
            gravity=T.T @ self.gravity,
        )


def virtual_platforms(
    mechanism: Mechanism,
    motion: TreeMotion,
    entries: Entries,
    G: ca.SX,
    G_rate: ca.SX,
    *,
    by_momentum: bool = True,
) -> tuple[VirtualPlatform, ...]:
    """Return every inertia as a virtual platform, split into translation and rotation.

    Translation is the motion of the mass center, and rotation is about it. u = J v is the velocity
    of an inertia I, and v = G x'. From generalized momentum: B = J G, M = B^T I B and
    V = B^T d(I B)/dt. From energies, with Koditschek's V_tree: M = G^T M_tree G and
    V = G^T (V_tree G + M_tree G'), so that M' - 2 V is skew. Derivatives are taken with respect to
    internal symbols (`StateSymbols`).

    Args:
        mechanism: the machine.
        motion: positions and velocities of all bodies.
        entries: dynamic parameters.
        G: embedding (n_v, m): velocities of all coordinates per unit of x'.
        G_rate: rate of G along the motion.
        by_momentum: True for generalized momentum, False for energies in Koditschek's form.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity; only if
            energies are used (see `require_energy`).
    """
    if not by_momentum:
        require_energy(mechanism)
    state = StateSymbols.of(motion)
    labeled = [
        (part, name)
        for element in state.elements(mechanism, entries)
        for part, name in _named_parts(element)
    ]
    on_symbols: list[ca.SX] = []
    for part, _ in labeled:
        on_symbols += _by_momentum(state, part) if by_momentum else _by_energy(state, part)
        on_symbols.append(state.gradient(gravity_energy(mechanism, motion.values, (part,))))
    # All parts together, because they share expressions.
    at_state = iter(state.at(on_symbols, motion))
    platforms = []
    for part, name in labeled:
        if by_momentum:
            J, P, P_rate = islice(at_state, 3)
            B = J @ G
            M, V = B.T @ (P @ G), B.T @ (P_rate @ G + P @ G_rate)
        else:
            M_tree, V_tree = islice(at_state, 2)
            M, V = G.T @ (M_tree @ G), G.T @ (V_tree @ G + M_tree @ G_rate)
        gravity = G.T @ next(at_state)
        platforms.append(
            VirtualPlatform(name=part.name, kind=part.kind, part=name, M=M, V=V, gravity=gravity)
        )
    return tuple(platforms)


def _named_parts(element: InertialElement) -> list[tuple[InertialElement, str]]:
    """Return the parts of an inertia with their names."""
    parts = element.split()
    names = ("translation", "rotation") if len(parts) > 1 else ("whole",)
    return list(zip(parts, names, strict=True))


def _by_momentum(state: StateSymbols, part: InertialElement) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return J, P = I J, and the rate of P with the matrix of the moving point."""
    J = ca.jacobian(part.velocity, state.v)
    P = part.inertia @ J
    return J, P, state.rate_at_constant_velocity(P) + part.moving_point_matrix() @ J


def _by_energy(state: StateSymbols, part: InertialElement) -> tuple[ca.SX, ca.SX]:
    """Return M and Koditschek's V of the tree."""
    scalar_momentum = (
        ca.gradient(part.energy, state.v) if part.kind == "rotor" else ca.SX(state.v.numel(), 1)
    )
    M, _, V = koditschek_matrices(state, part.energy, scalar_momentum)
    return M, V


def euler_axes(R: ca.SX, w: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return J_A with w = J_A (psi', theta', phi'), R = R_z(psi) R_y(theta) R_x(phi), and its rate.

    See eq. 9. The columns are the z axis of the base, the rotated y axis, which rotates about z
    with psi', and the x axis of the platform.

    Args:
        R: orientation of the platform (3, 3).
        w: angular velocity of the platform (3,).

    Returns:
        J_A (3, 3), its rate (3, 3), and cos(theta) >= 0; the Euler angles are singular where it is
        zero.
    """
    x, z = R[:, 0], ca.SX([0, 0, 1])
    cos_theta = ca.sqrt(x[0] * x[0] + x[1] * x[1])
    x_level = ca.vertcat(x[0], x[1], 0) / cos_theta
    y = ca.cross(z, x_level)
    psi_rate = w[2] - ca.dot(w, x_level) / cos_theta * x[2]
    J_A = ca.horzcat(z, y, x)
    return J_A, ca.horzcat(ca.SX(3, 1), -psi_rate * x_level, ca.cross(w, x)), cos_theta
