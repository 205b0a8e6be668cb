"""Tree forces by Newton-Euler and virtual work, before loops and actuators share them.

This module computes the left side of M a + h = S u + K^T lambda, linear in the dynamic parameters
pi. Together with the loop equations it is the general inverse dynamics of parallel robots of Khalil
and Ibrahim (Gantry-Tau paper, eq. 1). Friction has no energy and is the same in all formulations.

Source: Khalil and Ibrahim 2007, General solution for the dynamic modeling of parallel robots;
Gantry-Tau paper, eq. 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from tauloop.equations.rods import (
    EndForces,
    full_rod,
    inertial_moment,
    rigid_body_wrench,
    rod_motion,
    slender_fixed,
    slender_telescopic,
)
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
    """Return the friction force of an element as `Friction` defines it.

    The force is linear in all parameters except the Stribeck speed. Coulomb friction is zero for
    speeds up to `REST_SPEED`, so that rounding does not decide its sign.

    Args:
        entries: dynamic parameters.
        element: name of the element.
        velocity: m/s or rad/s.
        friction: friction law.
        values: parameter values.
        scale: unit of the velocity: the characteristic length of the machine, m; one for an element
            that rotates.
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
    """Return the forces (n_v,), N or N m, that overcome all friction.

    Friction of a motor acts on coordinates through its transmission, and friction of a combination
    of coordinates through its ratios.

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
        (motor.name, motor.drives, motor.friction, 1.0 if topology.motor_turns(motor) else length)
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
    """Return name, terms, friction and unit of the velocity of all combinations of coordinates with friction."""
    length = mechanism.characteristic_length
    return [
        (loss.name, loss.terms, loss.friction, 1.0 if loss.turns else length)
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
    """Add friction of combinations of coordinates to forces (n_v,): ratio_j F on each, by virtual work."""
    for name, terms, friction, scale in laws:
        ratios = combination(terms, topology, values)
        force = friction_force(entries, name, combined(ratios, v), friction, values, scale)
        for i, ratio in ratios:
            tau[i] += ratio * force


def tree_forces(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> ca.SX:
    """Return the generalized forces (n_v,) of a motion: M a + h, with friction, drives and springs.

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


class _Wrenches:
    """Total force and moment about each body's origin.

    Contributions in body coordinates and in base coordinates are summed separately, because
    transforming them costs more than propagating both.
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
                self.add_in_base(placement.body, force, ca.cross(point.r, force))
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
                self.add_in_body(inner, f_inner, link.R_PB @ n + ca.cross(link.p_PB, f_inner))
                r_W = self._motion.bodies[inner].R @ link.p_PB
                self.add_in_base(inner, f_W, n_W + ca.cross(r_W, f_W))
        return tau


def _add_body(
    body: str, moving: BodyMotion, gravity: ca.SX, pi: ca.SX, wrenches: _Wrenches
) -> None:
    """Add the Newton-Euler equations of a body in the coordinates in which its motion is known."""
    if not moving.is_native_in_base:
        own = moving.in_body
        force, moment = rigid_body_wrench(own.w, own.alpha, own.a - moving.R.T @ gravity, pi)
        wrenches.add_in_body(body, force, moment)
        return
    m, mc = pi[0], moving.R @ pi[1:4]
    a, w, alpha = moving.in_base.a - gravity, moving.in_base.w, moving.in_base.alpha
    force = m * a + ca.cross(alpha, mc) + ca.cross(w, ca.cross(w, mc))
    wrenches.add_in_base(body, force, ca.cross(mc, a))
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
            raise AssertionError("a full rod has a first axis: the reader sees to it")
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
    """Add inertia, friction and springs of all freedoms; `length` is the characteristic length, m."""
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
    scale = 1.0 if motion.topology.motor_turns(actuator) else length
    force = friction_force(
        entries, actuator.name, velocity, actuator.friction, motion.values, scale
    )
    inertia = entries.get(actuator.name, "inertia")
    # a motor may have the name of its joint, and that joint may have friction too
    if actuator.inertia is not None and inertia is not None:
        force += inertia * acceleration
    for i, ratio in ratios:
        tau[i] += ratio * force
