"""Inertia and gravity forces of two-point links, exactly reduced to forces at their ends.

Slender links have no axial inertia and need no orientation: a fixed one acts through a constant
matrix, a telescopic one through the two-part form. A link with full inertia has a rod frame; a
universal joint at its start determines its spin. Sources: machines.md, "Two-point rods"; Lopes and
Almeida for the frame.
"""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.tree import BodyMotion, PointMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class EndForces:
    """Forces at A and B and a couple on A's body that move a link (base frame)."""

    f_A: ca.SX
    f_B: ca.SX
    couple_A: ca.SX


def slender_fixed(
    A: PointMotion, B: PointMotion, gravity: ca.SX, length: ca.SX, pi: ca.SX
) -> EndForces:
    """Return the forces at the ends of a slender link of constant length.

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
    """Direction u of a rod from A to B, with rates, and the reciprocal of its length."""

    u: ca.SX
    u_rate: ca.SX
    u_acceleration: ca.SX
    per_length: ca.SX


def rod_motion(A: PointMotion, B: PointMotion, length: ca.SX, is_fixed: bool) -> RodMotion:
    """Return the direction of a rod from the motion of its ends.

    On the manifold of closed loops |d| = length, and l' = 0 for a fixed length.

    u' = P d'/l,  l'' = u.d'' + l |u'|^2,  u'' = (d'' - l'' u - 2 l' u')/l  with P = I - u u^T.
    """
    d, d_rate, d_acceleration = B.p - A.p, B.v - A.v, B.a - A.a
    per_length = 1 / length
    u = d * per_length
    if is_fixed:
        return RodMotion(
            u=u,
            u_rate=d_rate * per_length,
            u_acceleration=d_acceleration * per_length,
            per_length=per_length,
        )
    rate = ca.dot(u, d_rate)
    u_rate = (d_rate - rate * u) * per_length
    acceleration = ca.dot(u, d_acceleration) + length * ca.dot(u_rate, u_rate)
    return RodMotion(
        u=u,
        u_rate=u_rate,
        u_acceleration=(d_acceleration - acceleration * u - 2 * rate * u_rate) * per_length,
        per_length=per_length,
    )


def slender_telescopic(
    A: PointMotion, B: PointMotion, rod: RodMotion, gravity: ca.SX, pi_lower: ca.SX, pi_upper: ca.SX
) -> EndForces:
    """Return the forces at the ends of a slender two-part telescopic link.

    With t = P (h1 (a_A - g) - h2 (a_B - g) + (J1 + J2) u'')/l: f_A = m1 (a_A - g) + h1 u'' - t,
    f_B = m2 (a_B - g) - h2 u'' + t.  Axial parts of the distributed inertia act at the part's own
    end, where the actuator along the rod acts too.

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
    t = (moment - ca.dot(rod.u, moment) * rod.u) * rod.per_length
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
    """Return the forces and the couple that move a link with full inertia in its rod frame.

    The rod frame has z = u and y along h x u, with h the first axis of the universal joint, fixed
    to A's body. w = u x u' + sigma u; the universal joint gives sigma = ((W - u x u') . y x h)/(u .
    y x h) for the neighbour's angular velocity W (machines.md: sigma = (h.u)(h x u).u'/|h x u|^2
    for W = 0). Without spin sigma = 0. Forces follow from virtual power with the same partial
    velocities: with n the moment about the ends, D = 1 - (h.u)^2, b = u - (h.u) h and u' = P (v_B -
    v_A)/l, the ends carry t = (n x u - (n.u/D) b x u)/l, the couple is (n.u/D) b.

    Args:
        A, B, rod: motion of the ends and of the direction.
        neighbour: motion of A's body.
        first_axis: h in that body's coordinates, unit vector.
        spins: whether the universal joint imposes a spin.
        gravity: g (3,), m/s^2.
        pi_lower: ten parameters about A in the rod frame.
        pi_upper: ten parameters about B in the rod frame (telescopic), or None.
    """
    spin = _forced_spin(rod, neighbour, first_axis) if spins else None
    parts = [(pi_lower, A.a - gravity)] + ([] if pi_upper is None else [(pi_upper, B.a - gravity)])
    force_A, force_B = ca.SX(3, 1), ca.SX(3, 1)
    across, about_axis = ca.SX(3, 1), ca.SX(0)
    frame: _RodFrame | None = None
    for i, (pi, a) in enumerate(parts):
        if _is_axisymmetric(pi):
            force, part_across, part_about = _axisymmetric(rod, spin, a, pi)
        else:
            frame = frame or _rod_frame(rod, neighbour, first_axis, spin)
            force, moment = _rigid_wrench(frame, a, pi)
            part_across, part_about = ca.cross(moment, rod.u), ca.dot(rod.u, moment)
        across, about_axis = across + part_across, about_axis + part_about
        force_A, force_B = (force_A + force, force_B) if i == 0 else (force_A, force_B + force)
    if spin is None:
        t, couple = across * rod.per_length, ca.SX(3, 1)
    else:
        share = about_axis * spin.per_D
        # b x u = -c h x u
        t = (across + share * spin.c * ca.cross(spin.h, rod.u)) * rod.per_length
        couple = share * (rod.u - spin.c * spin.h)
    return EndForces(f_A=force_A - t, f_B=force_B + t, couple_A=couple)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForcedSpin:
    """Spin of a rod at a universal joint: first axis h, c = h.u, 1/D = 1/(1 - c^2), spin and its rate, u x u'."""

    h: ca.SX
    c: ca.SX
    per_D: ca.SX
    sigma: ca.SX
    rate: ca.SX
    turning: ca.SX


def _forced_spin(rod: RodMotion, neighbour: BodyMotion, first_axis: ca.SX) -> _ForcedSpin:
    """Return the spin from sigma D = (W - w).b with w = u x u' and b = u - c h, along y x h.

    u.w = 0 = u'.w are used.

    (W - w).b = W.b + c h.w, and its rate is W'.b + W.(u' - c' h - c h') + c h.(u x u'') + c' h.w +
    c h'.w.
    """
    u, du = rod.u, rod.u_rate
    h = neighbour.R @ first_axis
    W, dW = neighbour.in_base.w, neighbour.in_base.alpha
    dh = ca.cross(W, h)
    c = ca.dot(h, u)
    dc = ca.dot(dh, u) + ca.dot(h, du)
    D = 1 - c * c
    w = ca.cross(u, du)
    hw = ca.dot(h, w)
    b = u - c * h
    db = du - dc * h - c * dh
    per_D = 1 / D
    sigma = (ca.dot(W, b) + c * hw) * per_D
    driven = ca.dot(dW, b) + ca.dot(W, db)
    rate = (
        driven
        + c * (ca.dot(h, ca.cross(u, rod.u_acceleration)) + ca.dot(dh, w) + 2 * dc * sigma)
        + dc * hw
    ) * per_D
    return _ForcedSpin(h=h, c=c, per_D=per_D, sigma=sigma, rate=rate, turning=w)


def _is_axisymmetric(pi: ca.SX) -> bool:
    """Return whether mass centre and inertia are constants with symmetry about the rod."""
    _, mc_x, mc_y, _, I_xx, I_xy, I_yy, I_xz, I_yz, _ = ca.vertsplit(pi)
    return all(entry.is_zero() for entry in (mc_x, mc_y, I_xy, I_xz, I_yz, I_xx - I_yy))


def _axisymmetric(
    rod: RodMotion, spin: _ForcedSpin | None, a: ca.SX, pi: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return force, moment x u and moment . u of an axisymmetric part, which needs no frame.

    Its angular momentum about its end is I_xx u x u' + I_zz sigma u, so that
    moment x u = P (I_xx u'' + mc_z a) - I_zz sigma (u x u'),  moment . u = I_zz sigma'.
    """
    m, mc, I_across, I_axial = pi[0], pi[3], pi[4], pi[9]
    n = I_across * rod.u_acceleration + mc * a
    across, about_axis = n - ca.dot(rod.u, n) * rod.u, ca.SX(0)
    if spin is not None:
        across = across - I_axial * spin.sigma * spin.turning
        about_axis = I_axial * spin.rate
    return m * a + mc * rod.u_acceleration, across, about_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class _RodFrame:
    """Orientation of the rod frame with the angular velocity and acceleration of the link (base frame)."""

    R: ca.SX
    w: ca.SX
    alpha: ca.SX


def _rod_frame(
    rod: RodMotion, neighbour: BodyMotion, first_axis: ca.SX, spin: _ForcedSpin | None
) -> _RodFrame:
    u, du, ddu = rod.u, rod.u_rate, rod.u_acceleration
    h = neighbour.R @ first_axis
    y = ca.cross(h, u)
    y = y / ca.norm_2(y)
    w, alpha = ca.cross(u, du), ca.cross(u, ddu)
    if spin is not None:
        w, alpha = w + spin.sigma * u, alpha + spin.rate * u + spin.sigma * du
    return _RodFrame(R=ca.horzcat(ca.cross(y, u), y, u), w=w, alpha=alpha)


def _rigid_wrench(frame: _RodFrame, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return force and moment about the origin of a rigid part (base frame); a includes -g."""
    R = frame.R
    force, moment = rigid_body_wrench(R.T @ frame.w, R.T @ frame.alpha, R.T @ a, pi)
    return R @ force, R @ moment


def rigid_body_wrench(w: ca.SX, alpha: ca.SX, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the force and moment about the origin that move a body, in body coordinates.

    f = m a + alpha x mc + w x (w x mc),  n = I alpha + w x I w + mc x a.

    Args:
        a: acceleration of the origin minus gravity (3,).
        a: acceleration of the origin less gravity (3,).
        pi: (m, mc_x, mc_y, mc_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the origin.
    """
    m, mc = pi[0], pi[1:4]
    force = m * a + ca.cross(alpha, mc) + ca.cross(w, ca.cross(w, mc))
    return force, inertial_moment(w, alpha, pi) + ca.cross(mc, a)


def inertial_moment(w: ca.SX, alpha: ca.SX, pi: ca.SX) -> ca.SX:
    """Return I alpha + w x I w about the origin.

    The products of w are written out, so that equal moments of inertia cancel.
    """
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = ca.vertsplit(pi[4:10])
    x, y, z = ca.vertsplit(w)
    about_x = (I_zz - I_yy) * (y * z) + I_yz * (y * y - z * z) + x * (I_xz * y - I_xy * z)
    about_y = (I_xx - I_zz) * (x * z) + I_xz * (z * z - x * x) + y * (I_xy * z - I_yz * x)
    about_z = (I_yy - I_xx) * (x * y) + I_xy * (x * x - y * y) + z * (I_yz * x - I_xz * y)
    return inertia_matrix(pi) @ alpha + ca.vertcat(about_x, about_y, about_z)


def inertia_matrix(pi: ca.SX) -> ca.SX:
    """Return the moments of inertia (3, 3) about the origin from the ten parameters."""
    I_xx, I_xy, I_yy, I_xz, I_yz, I_zz = ca.vertsplit(pi[4:10])
    return ca.SX(
        ca.vertcat(
            ca.horzcat(I_xx, I_xy, I_xz), ca.horzcat(I_xy, I_yy, I_yz), ca.horzcat(I_xz, I_yz, I_zz)
        )
    )
