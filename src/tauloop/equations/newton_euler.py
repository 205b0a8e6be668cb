"""Tree forces by Newton-Euler equations and virtual work.

This module computes the left side of M a + h = S u + K^T lambda, which is linear in the dynamic
parameters pi. Together with the loop equations it is the general inverse dynamics of parallel
robots of Khalil and Ibrahim (Gantry-Tau paper, eq. 1). Friction has no energy and is the same in
all formulations.

Inertia and gravity of a link between two points are reduced exactly to forces at its ends. Slender
links have no axial inertia and need no orientation. Their inertia is a constant matrix for a fixed
length, and has a lower and an upper part for a telescopic link. A link with full inertia has a rod
frame; a universal joint at its start determines its spin.

Source: Khalil and Ibrahim 2007, General solution for the dynamic modeling of parallel robots;
Gantry-Tau paper, eq. 1; machines.md, "Two-point rods"; Lopes and Almeida for the rod frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.operators import cross
from tauloop.equations.topology import Topology
from tauloop.equations.tree import BodyMotion, PointMotion, TreeMotion
from tauloop.equations.values import Entries, Values
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import BASE, Actuator, Friction, Inertia, Mechanism, Placement, Rod

#: Speeds up to this value count as zero, characteristic lengths per second or rad/s.
REST_SPEED = 1e-12


def friction_force(
    entries: Entries,
    element: str,
    velocity: ca.SX,
    friction: Friction | None,
    values: Values,
    scale: float,
) -> ca.SX:
    """Return the friction force of an element (see `Friction` for the law).

    The force is linear in all parameters except the Stribeck speed. Coulomb friction is zero for
    speeds up to `REST_SPEED`, so that rounding does not determine its sign.

    Args:
        entries: dynamic parameters.
        element: name of the element.
        velocity: velocity of the element, m/s or rad/s.
        friction: friction law.
        values: parameter values.
        scale: characteristic length of the machine, m; one for an element that rotates.
    """
    if friction is None:
        return ca.SX(0)
    sign = ca.sign(velocity * (ca.fabs(velocity) > REST_SPEED * scale))
    factors = {
        "viscous": velocity,
        "coulomb": sign,
        "offset": ca.SX(1),
        "viscous_asymmetry": ca.fabs(velocity),
        "coulomb_asymmetry": ca.fabs(sign),
    }
    if friction.stribeck is not None:
        factors["stribeck"] = sign * ca.exp(-((velocity / values.scalar(friction.stribeck)) ** 2))
    force = ca.SX(0)
    for role, factor in factors.items():
        coefficient = entries.get(element, role)
        if coefficient is not None:
            force += coefficient * factor
    return force


def friction_forces(
    mechanism: Mechanism, topology: Topology, values: Values, v: ca.SX, entries: Entries
) -> ca.SX:
    """Return the generalized forces (n_v,), N or N m, that balance all friction.

    Friction of a motor acts on the coordinates through the transmission. Friction on a combination
    of coordinates (a loss) acts on them through its ratios.

    Args:
        mechanism, topology, values: the machine.
        v: velocities (n_v,).
        entries: dynamic parameters.
    """
    tau, length = ca.SX(topology.n_v, 1), mechanism.characteristic_length
    for i, (name, freedom) in enumerate(
        zip(topology.velocity_names, topology.freedoms, strict=True)
    ):
        tau[i] = friction_force(
            entries, name, v[i], freedom.friction, values, 1.0 if topology.angular[i] else length
        )
    motors = [
        (motor.name, motor.drives, motor.friction, 1.0 if topology.is_rotary(motor) else length)
        for motor in mechanism.actuators
    ]
    _add_combined(tau, [*motors, *_losses(mechanism)], topology, values, v, entries)
    return tau


Terms = Sequence[tuple[str, Expression]]


def combination(terms: Terms, topology: Topology, values: Values) -> list[tuple[int, Any]]:
    """Return the velocity index and ratio of each coordinate of a motor, belt or gear."""
    return [(topology.velocity_names.index(name), values.scalar(ratio)) for name, ratio in terms]


def combined(ratios: list[tuple[int, Any]], rates: ca.SX) -> ca.SX:
    """Return the sum of ratio_j v_j over rates (n_v,)."""
    return sum((ratio * rates[i] for i, ratio in ratios), ca.SX(0))


def _losses(mechanism: Mechanism) -> list[tuple[str, Terms, Friction | None, float]]:
    """Return name, terms, friction and velocity scale of all combinations with friction."""
    length = mechanism.characteristic_length
    return [
        (loss.name, loss.terms, loss.friction, 1.0 if loss.is_angular else length)
        for loss in mechanism.losses
    ]


def _add_combined(
    tau: ca.SX,
    laws: Iterable[tuple[str, Terms, Friction | None, float]],
    topology: Topology,
    values: Values,
    v: ca.SX,
    entries: Entries,
) -> None:
    """Add the friction F of combinations of coordinates to forces (n_v,): ratio_j F on each."""
    for name, terms, friction, scale in laws:
        ratios = combination(terms, topology, values)
        force = friction_force(entries, name, combined(ratios, v), friction, values, scale)
        for i, ratio in ratios:
            tau[i] += ratio * force


def tree_forces(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> ca.SX:
    """Return the generalized forces M a + h (n_v,) of a motion, with friction, rotors and springs.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.

    Returns:
        Forces on all velocities, N or N m.
    """
    wrenches = _Wrenches(motion)
    gravity = motion.values.vector(mechanism.gravity)
    for body in mechanism.bodies:
        if body.inertia is not None:
            _add_body(
                body.name, motion.bodies[body.name], gravity, entries.part(body.name), wrenches
            )
    for rod in mechanism.rods:
        if rod.lower is not None or rod.upper is not None:
            _add_rod(rod, motion, gravity, entries, wrenches)
    tau = wrenches.project()
    length = mechanism.characteristic_length
    _add_freedoms(tau, motion, entries, length)
    for actuator in mechanism.actuators:
        _add_actuator(tau, actuator, motion, entries, length)
    _add_combined(tau, _losses(mechanism), motion.topology, motion.values, motion.v, entries)
    return tau


def transmission(mechanism: Mechanism, topology: Topology, values: Values) -> ca.SX:
    """Return A (n_u, n_v) of the actuator velocities p' = A v; actuator forces use S = A^T."""
    A = ca.SX(len(mechanism.actuators), topology.n_v)
    for i, actuator in enumerate(mechanism.actuators):
        for j, ratio in combination(actuator.drives, topology, values):
            A[i, j] = ratio
    return A


def actuator_offsets(mechanism: Mechanism, values: Values) -> ca.SX:
    """Return b (n_u,) of the actuator positions p = A q + b."""
    return ca.SX(ca.vertcat(*(values.scalar(motor.offset) for motor in mechanism.actuators)))


class _Wrenches:
    """Total force and moment about each body's origin.

    Contributions in body coordinates and in base coordinates are summed separately, because
    propagating both costs less than transforming them.
    """

    def __init__(self, motion: TreeMotion) -> None:
        self._motion = motion
        zero = ca.SX(3, 1)
        self._in_body = {name: (zero, zero) for name in motion.bodies}
        self._in_base = {name: (zero, zero) for name in motion.bodies}
        self._at_points: dict[Placement, tuple[PointMotion, ca.SX]] = {}

    def add_in_body(self, body: str, force: ca.SX, moment: ca.SX) -> None:
        f, n = self._in_body[body]
        self._in_body[body] = (f + force, n + moment)

    def add_in_base(self, body: str, force: ca.SX, moment: ca.SX) -> None:
        f, n = self._in_base[body]
        self._in_base[body] = (f + force, n + moment)

    def add_at(self, placement: Placement, point: PointMotion, force: ca.SX) -> None:
        """Add a force at a point of a body in base coordinates.

        Forces at the same point are summed before their moment is computed.
        """
        if placement.body != BASE:
            at_point = replace(placement, turns=())
            _, before = self._at_points.get(at_point, (point, ca.SX(3, 1)))
            self._at_points[at_point] = (point, before + force)

    def project(self) -> ca.SX:
        """Return joint forces tau = S_w^T n + S_v^T f by a sweep from the outer bodies inwards."""
        tau = ca.SX(self._motion.topology.n_v, 1)
        hinges = {link.edge.outer.body: link.edge.v.start for link in self._motion.links}
        for placement, (point, force) in self._at_points.items():
            if point.tangent is not None:
                tau[hinges[placement.body]] += ca.dot(point.tangent, force)
            else:
                self.add_in_base(placement.body, force, cross(point.r, force))
        for link in reversed(self._motion.links):
            inner, outer = link.edge.inner.body, link.edge.outer.body
            (f, n), (f_W, n_W) = self._in_body[outer], self._in_base[outer]
            tau[link.edge.v.start : link.edge.v.stop, 0] += (
                link.in_body.w.T @ n
                + link.in_body.v.T @ f
                + link.in_base.w.T @ n_W
                + link.in_base.v.T @ f_W
            )
            if inner != BASE:
                f_inner = link.R_PB @ f
                self.add_in_body(inner, f_inner, link.R_PB @ n + cross(link.p_PB, f_inner))
                r_W = self._motion.bodies[inner].R @ link.p_PB
                self.add_in_base(inner, f_W, n_W + cross(r_W, f_W))
        return tau


def _add_body(
    body: str, moving: BodyMotion, gravity: ca.SX, pi: ca.SX, wrenches: _Wrenches
) -> None:
    """Add the Newton-Euler forces of a body, in the coordinates in which its motion is known."""
    if not moving.is_native_in_base:
        rates = moving.in_body
        force, moment = rigid_body_wrench(rates.w, rates.alpha, rates.a - moving.R.T @ gravity, pi)
        wrenches.add_in_body(body, force, moment)
        return
    m, mc = pi[0], moving.R @ pi[1:4]
    a, w, alpha = moving.in_base.a - gravity, moving.in_base.w, moving.in_base.alpha
    force = m * a + cross(alpha, mc) + cross(w, cross(w, mc))
    wrenches.add_in_base(body, force, cross(mc, a))
    wrenches.add_in_body(body, ca.SX(3, 1), inertial_moment(moving.R.T @ w, moving.R.T @ alpha, pi))


def _add_rod(
    rod: Rod, motion: TreeMotion, gravity: ca.SX, entries: Entries, wrenches: _Wrenches
) -> None:
    A, B, values = motion.point(rod.start), motion.point(rod.end), motion.values
    index = next(
        (iq for other, iq, _ in motion.topology.telescopes if other.name == rod.name), None
    )
    length = motion.q[index] if index is not None else ca.SX(values.scalar(rod.length))  # type: ignore[arg-type]
    ends: EndForces
    if rod.is_full:
        if rod.first_axis is None:
            raise AssertionError("the reader guarantees that a full rod has a first axis")
        h = values.vector(rod.first_axis)
        ends = full_rod(
            A,
            B,
            rod_motion(A, B, length, is_fixed=index is None),
            motion.bodies[rod.start.body],
            h / ca.norm_2(h),
            rod.spin == "universal",
            gravity,
            entries.part(rod.name) if isinstance(rod.lower, Inertia) else ca.SX(10, 1),
            entries.part(rod.name, upper=True) if rod.upper is not None else None,
        )
    elif index is None:
        ends = slender_fixed(A, B, gravity, length, entries.part(rod.name))
    else:
        lower = entries.part(rod.name) if rod.lower is not None else ca.SX(3, 1)
        upper = entries.part(rod.name, upper=True) if rod.upper is not None else ca.SX(3, 1)
        ends = slender_telescopic(
            A, B, rod_motion(A, B, length, is_fixed=False), gravity, lower, upper
        )
    wrenches.add_at(rod.start, A, ends.f_A)
    wrenches.add_at(rod.end, B, ends.f_B)
    if rod.start.body != BASE:
        wrenches.add_in_base(rod.start.body, ca.SX(3, 1), ends.couple_A)


def _add_freedoms(tau: ca.SX, motion: TreeMotion, entries: Entries, length: float) -> None:
    """Add inertia, friction and springs of all coordinates; `length` is the machine's, m."""
    topology = motion.topology
    for i, (name, freedom) in enumerate(
        zip(topology.velocity_names, topology.freedoms, strict=True)
    ):
        inertia = entries.get(name, "inertia")
        if freedom.inertia is not None and inertia is not None:
            tau[i] += inertia * motion.a[i]
        scale = 1.0 if topology.angular[i] else length
        tau[i] += friction_force(entries, name, motion.v[i], freedom.friction, motion.values, scale)
        stiffness, preload = entries.get(name, "stiffness"), entries.get(name, "preload")
        if stiffness is not None and preload is not None:
            tau[i] += stiffness * motion.q[topology.q_of_v[i]] - preload


def _add_actuator(
    tau: ca.SX, actuator: Actuator, motion: TreeMotion, entries: Entries, length: float
) -> None:
    """Add rotor inertia and motor friction; `length` is the characteristic length, m."""
    ratios = combination(actuator.drives, motion.topology, motion.values)
    velocity, acceleration = combined(ratios, motion.v), combined(ratios, motion.a)
    scale = 1.0 if motion.topology.is_rotary(actuator) else length
    force = friction_force(
        entries, actuator.name, velocity, actuator.friction, motion.values, scale
    )
    inertia = entries.get(actuator.name, "inertia")
    # a motor may have the same name as its joint, and that joint may have friction too
    if actuator.inertia is not None and inertia is not None:
        force += inertia * acceleration
    for i, ratio in ratios:
        tau[i] += ratio * force


@dataclass(frozen=True, slots=True, kw_only=True)
class EndForces:
    """Forces at A and B, and a couple on A's body, that move a link (base frame)."""

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
        pi: mass m, first moment h and moment of inertia J about A.
    """
    m, h, J = ca.vertsplit(pi)
    a_A, a_B = A.a - gravity, B.a - gravity
    m_BB = J / length**2
    m_AB = h / length - m_BB
    m_AA = m - 2 * h / length + m_BB
    return EndForces(f_A=m_AA * a_A + m_AB * a_B, f_B=m_AB * a_A + m_BB * a_B, couple_A=ca.SX(3, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RodMotion:
    """Direction u of a rod from A to B, its time derivatives, and the reciprocal of its length."""

    u: ca.SX
    u_rate: ca.SX
    u_acceleration: ca.SX
    per_length: ca.SX


def rod_motion(A: PointMotion, B: PointMotion, length: ca.SX, is_fixed: bool) -> RodMotion:
    """Return the direction of a rod from the motion of its ends.

    For closed loops |d| = length l, and l' = 0 for a fixed length. With P = I - u u^T:

    u' = P d'/l,  l'' = u.d'' + l |u'|^2,  u'' = (d'' - l'' u - 2 l' u')/l.
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
    f_B = m2 (a_B - g) - h2 u'' + t.  The axial inertia forces of each part act at the end of this
    part, where the actuator along the rod acts too.

    Args:
        A, B: motion of the ends.
        rod: direction and length.
        gravity: g (3,), m/s^2.
        pi_lower: (m1, h1, J1) of the lower part about A, measured from A.
        pi_upper: (m2, h2, J2) of the upper part about B, measured from B towards A.
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
    neighbor: BodyMotion,
    first_axis: ca.SX,
    spins: bool,
    gravity: ca.SX,
    pi_lower: ca.SX,
    pi_upper: ca.SX | None,
) -> EndForces:
    """Return the forces and the couple that move a link with full inertia in its rod frame.

    The rod frame has z = u and y along h x u, where h is the first axis of the universal joint,
    fixed to A's body. The angular velocity is w = u x u' + sigma u. The universal joint determines
    the spin sigma = ((W - u x u') . y x h)/(u . y x h) for the angular velocity W of A's body
    (machines.md: sigma = (h.u)(h x u).u'/|h x u|^2 for W = 0). Without a universal joint sigma = 0.

    Forces follow from virtual power with the same partial velocities. With the moment n about the
    ends, D = 1 - (h.u)^2, b = u - (h.u) h and u' = P (v_B - v_A)/l, the transverse force at the
    ends is t = (n x u - (n.u/D) b x u)/l, and the couple is (n.u/D) b.

    Args:
        A, B, rod: motion of the ends and of the direction.
        neighbor: motion of A's body.
        first_axis: unit vector h in the coordinates of A's body.
        spins: whether the universal joint imposes a spin.
        gravity: g (3,), m/s^2.
        pi_lower: ten inertial parameters about A in the rod frame.
        pi_upper: ten inertial parameters of the upper part about B in the rod frame; None for a rod
            of fixed length.
    """
    spin = _forced_spin(rod, neighbor, first_axis) if spins else None
    parts = [(pi_lower, A.a - gravity)]
    if pi_upper is not None:
        parts.append((pi_upper, B.a - gravity))
    forces = [ca.SX(3, 1), ca.SX(3, 1)]
    across, about_axis = ca.SX(3, 1), ca.SX(0)
    frame: _RodFrame | None = None
    for i, (pi, a) in enumerate(parts):
        if _is_axisymmetric(pi):
            force, part_across, part_about = _axisymmetric(rod, spin, a, pi)
        else:
            frame = frame or _rod_frame(rod, neighbor, first_axis, spin)
            force, moment = _rigid_wrench(frame, a, pi)
            part_across, part_about = cross(moment, rod.u), ca.dot(rod.u, moment)
        across = across + part_across
        about_axis = about_axis + part_about
        forces[i] = forces[i] + force
    force_A, force_B = forces
    if spin is None:
        t, couple = across * rod.per_length, ca.SX(3, 1)
    else:
        couple_factor = about_axis * spin.per_D
        # b x u = -c h x u
        t = (across + couple_factor * spin.c * cross(spin.h, rod.u)) * rod.per_length
        couple = couple_factor * (rod.u - spin.c * spin.h)
    return EndForces(f_A=force_A - t, f_B=force_B + t, couple_A=couple)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ForcedSpin:
    """Spin of a rod that a universal joint determines; the symbols are those of `full_rod`.

    Attributes:
        h: first axis of the universal joint (3,), base frame.
        c: h.u.
        per_D: 1/D = 1/(1 - c^2).
        sigma, rate: spin and its time derivative.
        w: angular velocity u x u' (3,) without the spin.
    """

    h: ca.SX
    c: ca.SX
    per_D: ca.SX
    sigma: ca.SX
    rate: ca.SX
    w: ca.SX


def _forced_spin(rod: RodMotion, neighbor: BodyMotion, first_axis: ca.SX) -> _ForcedSpin:
    """Return the spin from sigma D = (W - w).b with w = u x u' and b = u - c h along y x h.

    Because u.w = 0 and u'.w = 0, (W - w).b = W.b + c h.w, and its rate is W'.b + W.(u' - c' h - c
    h') + c h.(u x u'') + c' h.w + c h'.w.
    """
    u, du = rod.u, rod.u_rate
    h = neighbor.R @ first_axis
    W, dW = neighbor.in_base.w, neighbor.in_base.alpha
    dh = cross(W, h)
    c = ca.dot(h, u)
    dc = ca.dot(dh, u) + ca.dot(h, du)
    D = 1 - c * c
    w = cross(u, du)
    hw = ca.dot(h, w)
    b = u - c * h
    db = du - dc * h - c * dh
    per_D = 1 / D
    sigma = (ca.dot(W, b) + c * hw) * per_D
    driven = ca.dot(dW, b) + ca.dot(W, db)
    rate = (
        driven
        + c * (ca.dot(h, cross(u, rod.u_acceleration)) + ca.dot(dh, w) + 2 * dc * sigma)
        + dc * hw
    ) * per_D
    return _ForcedSpin(h=h, c=c, per_D=per_D, sigma=sigma, rate=rate, w=w)


def _is_axisymmetric(pi: ca.SX) -> bool:
    """Return whether the inertia of a part is structurally symmetric about the rod."""
    _, mc_x, mc_y, _, I_xx, I_xy, I_yy, I_xz, I_yz, _ = ca.vertsplit(pi)
    return all(entry.is_zero() for entry in (mc_x, mc_y, I_xy, I_xz, I_yz, I_xx - I_yy))


def _axisymmetric(
    rod: RodMotion, spin: _ForcedSpin | None, a: ca.SX, pi: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return force, moment x u and moment . u of an axisymmetric part, which needs no frame.

    The angular momentum about its end is I_xx u x u' + I_zz sigma u, so that
    moment x u = P (I_xx u'' + mc_z a) - I_zz sigma (u x u') and moment . u = I_zz sigma'.
    """
    m, mc, I_across, I_axial = pi[0], pi[3], pi[4], pi[9]
    n = I_across * rod.u_acceleration + mc * a
    across, about_axis = n - ca.dot(rod.u, n) * rod.u, ca.SX(0)
    if spin is not None:
        across = across - I_axial * spin.sigma * spin.w
        about_axis = I_axial * spin.rate
    return m * a + mc * rod.u_acceleration, across, about_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class _RodFrame:
    """Orientation of the rod frame, angular velocity and acceleration of the link (base frame)."""

    R: ca.SX
    w: ca.SX
    alpha: ca.SX


def _rod_frame(
    rod: RodMotion, neighbor: BodyMotion, first_axis: ca.SX, spin: _ForcedSpin | None
) -> _RodFrame:
    u, du, ddu = rod.u, rod.u_rate, rod.u_acceleration
    h = neighbor.R @ first_axis
    y = cross(h, u)
    y = y / ca.norm_2(y)
    w, alpha = cross(u, du), cross(u, ddu)
    if spin is not None:
        w, alpha = w + spin.sigma * u, alpha + spin.rate * u + spin.sigma * du
    return _RodFrame(R=ca.horzcat(cross(y, u), y, u), w=w, alpha=alpha)


def _rigid_wrench(frame: _RodFrame, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return force and moment about the origin of a rigid part (base frame); a includes -g."""
    R = frame.R
    force, moment = rigid_body_wrench(R.T @ frame.w, R.T @ frame.alpha, R.T @ a, pi)
    return R @ force, R @ moment


def rigid_body_wrench(w: ca.SX, alpha: ca.SX, a: ca.SX, pi: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the force and moment about the origin that move a body, in body coordinates.

    f = m a + alpha x mc + w x (w x mc),  n = I alpha + w x I w + mc x a.

    Args:
        w, alpha: angular velocity and acceleration (3,).
        a: acceleration of the origin minus gravity (3,).
        pi: (m, mc_x, mc_y, mc_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) about the origin.
    """
    m, mc = pi[0], pi[1:4]
    force = m * a + cross(alpha, mc) + cross(w, cross(w, mc))
    return force, inertial_moment(w, alpha, pi) + cross(mc, a)


def inertial_moment(w: ca.SX, alpha: ca.SX, pi: ca.SX) -> ca.SX:
    """Return I alpha + w x I w about the origin.

    The products of w are expanded, so that equal moments of inertia cancel.
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
