"""Inertia and gravity forces of two-point links, reduced exactly to forces at their ends.

Slender links have no axial inertia and need no orientation: a fixed one acts through a constant matrix, a telescopic
one through the two-part form. A link with full inertia carries a rod frame; a universal joint at its start forces
its spin. Sources: machines.md, "Two-point rods"; Lopes and Almeida for the frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from tauloop.equations.tree import BodyMotion, PointMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class EndForces:
    """What the neighbours must supply to move a link: forces at A and B and a couple on A's body (base frame)."""

    f_A: ca.SX
    f_B: ca.SX
    couple_A: ca.SX


def slender_fixed(A: PointMotion, B: PointMotion, gravity: ca.SX, length: ca.SX, pi: ca.SX) -> EndForces:
    """Forces at the ends of a slender link of constant length.

    f_A = m_AA (a_A - g) + m_AB (a_B - g),  f_B = m_AB (a_A - g) + m_BB (a_B - g), with
    m_AA = m - 2h/L + J/L^2, m_AB = h/L - J/L^2, m_BB = J/L^2.

    Args:
        A, B: motion of the ends.
        gravity: g (3,), m/s^2.
        length: L, m.
        pi: (m, h, J) about A.
    """
    m, h, J = ca.vertsplit(pi)
    a_A, a_B = A.a - gravity, B.a - gravity
    m_BB = J / length**2
    m_AB = h / length - m_BB
    m_AA = m - 2 * h / length + m_BB
    return EndForces(f_A=m_AA * a_A + m_AB * a_B, f_B=m_AB * a_A + m_BB * a_B, couple_A=ca.SX(3, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RodMotion:
    """Direction u of a rod from A to B, with rates, and its length with rates."""

    u: ca.SX
    u_rate: ca.SX
    u_acceleration: ca.SX
    length: ca.SX
    rate: ca.SX
    acceleration: ca.SX


def rod_motion(A: PointMotion, B: PointMotion, length: ca.SX) -> RodMotion:
    """Direction and length of a rod from the motion of its ends; on the loops' manifold |d| = length.

    u' = P d'/l,  l'' = u.d'' + l |u'|^2,  u'' = (d'' - l'' u - 2 l' u')/l  with P = I - u u^T.
    """
    d, d_rate, d_acceleration = B.p - A.p, B.v - A.v, B.a - A.a
    u = d / length
    rate = ca.dot(u, d_rate)
    u_rate = (d_rate - rate * u) / length
    acceleration = ca.dot(u, d_acceleration) + length * ca.dot(u_rate, u_rate)
    return RodMotion(
        u=u,
        u_rate=u_rate,
        u_acceleration=(d_acceleration - acceleration * u - 2 * rate * u_rate) / length,
        length=length,
        rate=rate,
        acceleration=acceleration,
    )


def slender_telescopic(
    A: PointMotion, B: PointMotion, rod: RodMotion, gravity: ca.SX, pi_lower: ca.SX, pi_upper: ca.SX
) -> EndForces:
    """Forces at the ends of a slender two-part telescopic link.

    With t = P (h1 (a_A - g) - h2 (a_B - g) + (J1 + J2) u'')/l:
    f_A = m1 (a_A - g) + h1 u'' - t,  f_B = m2 (a_B - g) - h2 u'' + t.  Axial parts of the distributed inertia go to
    the part's own end, through which the actuator along the rod acts.

    Args:
        A, B: motion of the ends.
        rod: direction and length.
        gravity: g (3,), m/s^2.
        pi_lower: (m1, h1, J1) about A, measured from A.
        pi_upper: (m2, h2, J2) about B, measured from B towards A.
    """
    m1, h1, J1 = ca.vertsplit(pi_lower)
    m2, h2, J2 = ca.vertsplit(pi_upper)
    a_A, a_B = A.a - gravity, B.a - gravity
    moment = h1 * a_A - h2 * a_B + (J1 + J2) * rod.u_acceleration
    t = (moment - ca.dot(rod.u, moment) * rod.u) / rod.length
    return EndForces(
        f_A=m1 * a_A + h1 * rod.u_acceleration - t,
        f_B=m2 * a_B - h2 * rod.u_acceleration + t,
        couple_A=ca.SX(3, 1),
    )


def full_rod(
    A: PointMotion,
    B: PointMotion,
    rod: RodMotion,
    neighbour: BodyMotion,
    first_axis: ca.SX,
    spins: bool,
    gravity: ca.SX,
    pi_lower: ca.SX,
    pi_upper: ca.SX | None,
) -> EndForces:
    """Forces and the couple that move a link with full inertia in its rod frame.

    The rod frame has z = u and y along h x u, with h the first axis of the universal joint, fixed to A's body.
    w = u x u' + sigma u; the universal joint gives sigma = ((W - u x u') . y x h)/(u . y x h) for the neighbour's
    angular velocity W (machines.md: sigma = (h.u)(h x u).u'/|h x u|^2 for W = 0). Without spin sigma = 0. Forces
    follow from virtual power with the same partial velocities.

    Args:
        A, B, rod: motion of the ends and of the direction.
        neighbour: motion of A's body.
        first_axis: h in that body's coordinates, unit vector.
        spins: whether the universal joint forces a spin.
        gravity: g (3,), m/s^2.
        pi_lower: ten parameters about A in the rod frame.
        pi_upper: ten parameters about B in the rod frame (telescopic), or None.
    """
    u, du, ddu = rod.u, rod.u_rate, rod.u_acceleration
    h = neighbour.R @ first_axis
    W, dW = neighbour.w_W, neighbour.alpha_W
    dh = ca.cross(W, h)
    c = ca.dot(h, u)
    dc = ca.dot(dh, u) + ca.dot(h, du)
    D = 1 - c * c
    y = ca.cross(h, u) / ca.sqrt(D)
    R = ca.horzcat(ca.cross(y, u), y, u)
    w, alpha = ca.cross(u, du), ca.cross(u, ddu)
    b = u - c * h  # along y x h
    if spins:
        db = du - dc * h - c * dh
        relative, d_relative = W - w, dW - alpha
        sigma = ca.dot(relative, b) / D
        d_sigma = (ca.dot(d_relative, b) + ca.dot(relative, db) + 2 * c * dc * sigma) / D
        w, alpha = w + sigma * u, alpha + d_sigma * u + sigma * du
    force_A, moment = _rigid_wrench(R, w, alpha, A.a - gravity, pi_lower)
    force_B = ca.SX(3, 1)
    if pi_upper is not None:
        force_B, moment_B = _rigid_wrench(R, w, alpha, B.a - gravity, pi_upper)
        moment = moment + moment_B
    # virtual power of the couple: moment . w with w = u x u' + sigma u, u' = P (v_B - v_A)/l
    spin_moment = ca.dot(u, moment) if spins else ca.SX(0)
    across = ca.cross(moment, u)
    if spins:
        across = across - (spin_moment / D) * ca.cross(b, u)
    t = across / rod.length
    couple = (spin_moment / D) * b
    return EndForces(f_A=force_A - t, f_B=force_B + t, couple_A=couple)


def _rigid_wrench(R: ca.SX, w: ca.SX, alpha: ca.SX, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Force and moment about the frame's origin that move a rigid part (base frame); a includes -g."""
    w_body, alpha_body, a_body = R.T @ w, R.T @ alpha, R.T @ a
    force, moment = rigid_body_wrench(w_body, alpha_body, a_body, pi)
    return R @ force, R @ moment


def rigid_body_wrench(w: ca.SX, alpha: ca.SX, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Newton-Euler about a body frame's origin: the force and moment that move the body, in body coordinates.

    f = m a + alpha x mc + w x (w x mc),  n = I alpha + w x I w + mc x a.

    Args:
        w, alpha: angular velocity and acceleration (3,).
        a: acceleration of the origin less gravity (3,).
        pi: (m, mc_x, mc_y, mc_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the origin.
    """
    m, mc = pi[0], pi[1:4]
    force = m * a + ca.cross(alpha, mc) + ca.cross(w, ca.cross(w, mc))
    return force, inertial_moment(w, alpha, pi) + ca.cross(mc, a)


def inertial_moment(w: ca.SX, alpha: ca.SX, pi: ca.SX) -> ca.SX:
    """I alpha + w x I w about the origin, with the products of w written out so that equal moments cancel."""
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = ca.vertsplit(pi[4:10])
    x, y, z = ca.vertsplit(w)
    gyroscopic = ca.vertcat(
        (I_zz - I_yy) * (y * z) + I_yz * (y * y - z * z) + x * (I_xz * y - I_xy * z),
        (I_xx - I_zz) * (x * z) + I_xz * (z * z - x * x) + y * (I_xy * z - I_yz * x),
        (I_yy - I_xx) * (x * y) + I_xy * (x * x - y * y) + z * (I_yz * x - I_xz * y),
    )
    return inertia_matrix(pi) @ alpha + gyroscopic


def inertia_matrix(pi: ca.SX) -> ca.SX:
    """Moments of inertia (3, 3) about the origin from the ten parameters."""
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = ca.vertsplit(pi[4:10])
    return ca.SX(ca.vertcat(ca.horzcat(I_xx, I_xy, I_xz), ca.horzcat(I_xy, I_yy, I_yz), ca.horzcat(I_xz, I_yz, I_zz)))
