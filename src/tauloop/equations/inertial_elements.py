"""All inertias of a machine, each with velocity u and matrix I such that T = u^T I u / 2.

For bodies and rods with a full inertia, u is a twist. For slender rods, u are the velocities of
both ends, or the velocity of one end and the rate of the direction, and I is constant. For rotors,
u is one rate. Energies, momenta and the matrices of equivalent virtual platforms follow from this
list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.newton_euler import combination, combined, inertia_matrix
from tauloop.equations.tree import BodyMotion, PointMotion, TreeMotion
from tauloop.equations.values import Entries, Values
from tauloop.mechanism.model import Inertia, Mechanism, Rod

#: Kind of element: the platform's body, another body, a rod, or a rotor on a coordinate or motor.
Kind = Literal["platform", "body", "rod", "rotor"]

_ZERO = ca.DM.zeros(3, 3)
_EYE = ca.DM.eye(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class InertialElement:
    """One inertia in the base frame.

    Attributes:
        name: name of the body, rod, coordinate or motor; the upper part of a telescopic rod has the
            suffix `.upper`.
        kind: kind of element.
        velocity: u (k,), linear in v: (v, w) of a frame, (v_A, v_B) of two ends, (v_A, u') of an
            end and a direction, or one rate.
        inertia: I (k, k), symmetric.
        energy: kinetic energy, J, as an expression with few operations.
        weight: sum of mass times position (3,), kg m; the potential energy is -g . weight.
        moment: sum of mass times offset from the reference point of a twist u (3,), kg m; None for
            other elements.
        ends: whether u is (v_A, v_B).
    """

    name: str
    kind: Kind
    velocity: ca.SX
    inertia: ca.SX
    energy: ca.SX
    weight: ca.SX
    moment: ca.SX | None = None
    ends: bool = False

    @property
    def momentum(self) -> ca.SX:
        """Return the momentum I u (k,)."""
        return self.inertia @ self.velocity

    def moving_point_matrix(self) -> ca.SX:
        """Return the matrix C (k, k) with force = d(I u)/dt + C u.

        The moment is about a moving point, which adds the term v x (w x mc).
        """
        if self.moment is None:
            return ca.SX(*self.inertia.shape)
        zero = ca.SX(3, 3)
        return ca.blockcat(
            [[zero, zero], [zero, -ca.skew(self.velocity[:3]) @ ca.skew(self.moment)]]
        )

    def split(self) -> tuple[InertialElement, ...]:
        """Return two elements: translation of the mass center, and rotation about it.

        Rotors and massless elements are not split. The velocity of the mass center is Q / m with
        the linear momentum Q = S u. The inertia of the rotation is I - S^T S / m.
        """
        if self.inertia.shape[0] < 6:
            return (self,)
        to_momentum = ca.horzcat(_EYE, _EYE if self.ends else _ZERO) @ self.inertia
        mass = to_momentum[0, 0] + (to_momentum[0, 3] if self.ends else 0)
        if mass.is_zero():
            return (self,)
        v_c = to_momentum @ self.velocity / mass
        w_c = self.velocity[3:] - (self.velocity[:3] if self.ends else 0)
        I_c = (self.inertia - to_momentum.T @ to_momentum / mass)[3:, 3:]
        base = replace(self, moment=None, ends=False)
        return (
            replace(base, velocity=v_c, inertia=mass * _EYE, energy=mass * ca.dot(v_c, v_c) / 2),
            replace(
                base,
                velocity=w_c,
                inertia=I_c,
                energy=ca.dot(w_c, I_c @ w_c) / 2,
                weight=ca.SX(3, 1),
            ),
        )


def inertial_elements(
    mechanism: Mechanism, motion: TreeMotion, entries: Entries
) -> tuple[InertialElement, ...]:
    """Return all inertias of the bodies, rods and rotors of a machine.

    Args:
        mechanism: the machine.
        motion: positions and velocities of all bodies.
        entries: dynamic parameters.
    """
    return (
        *_bodies(mechanism, motion, entries),
        *(element for rod in mechanism.rods for element in _rod(rod, motion, entries)),
        *_rotors(mechanism, motion, entries),
    )


def _bodies(
    mechanism: Mechanism, motion: TreeMotion, entries: Entries
) -> Iterator[InertialElement]:
    for body in mechanism.bodies:
        if body.inertia is not None:
            body_motion = motion.bodies[body.name]
            yield _rigid(
                body.name,
                "platform" if body.name == mechanism.platform.body else "body",
                body_motion.p,
                body_motion.R,
                (body_motion.in_base.v, body_motion.in_base.w),
                None
                if body_motion.is_native_in_base
                else (body_motion.in_body.v, body_motion.in_body.w),
                entries.part(body.name),
            )


def _rigid(
    name: str,
    kind: Kind,
    p: ca.SX,
    R: ca.SX,
    twist: tuple[ca.SX, ca.SX],
    twist_in_body: tuple[ca.SX, ca.SX] | None,
    pi: ca.SX,
) -> InertialElement:
    """Return the element of a rigid part with respect to the origin of its frame.

    I = [m, -[mc]; [mc], R J R^T] acts on the twist (v, w) in the base frame.

    Args:
        name, kind: name and kind of the element.
        p, R: origin and orientation of the part's frame.
        twist: (v, w) in the base frame.
        twist_in_body: the twist in the body's axes, if known; the energy is simpler in these axes.
        pi: ten inertial parameters.
    """
    v, w = twist
    m, mc, J = pi[0], R @ pi[1:4], inertia_matrix(pi)
    if twist_in_body is None:
        speed, w_body, coupling = ca.dot(v, v), R.T @ w, ca.dot(v, ca.cross(w, mc))
    else:
        v_body, w_body = twist_in_body
        speed, coupling = ca.dot(v_body, v_body), ca.dot(v_body, ca.cross(w_body, pi[1:4]))
    return InertialElement(
        name=name,
        kind=kind,
        velocity=ca.vertcat(v, w),
        inertia=ca.blockcat([[m * _EYE, -ca.skew(mc)], [ca.skew(mc), R @ J @ R.T]]),
        energy=m * speed / 2 + coupling + ca.dot(w_body, J @ w_body) / 2,
        weight=m * p + mc,
        moment=mc,
    )


def _paired(
    name: str,
    first: ca.SX,
    second: ca.SX,
    inertia: tuple[ca.SX, ca.SX, ca.SX],
    weight: ca.SX,
    ends: bool,
) -> InertialElement:
    """Return the element of a rod whose I = [a, b; b, c] acts on two velocity vectors."""
    a, b, c = inertia
    return InertialElement(
        name=name,
        kind="rod",
        velocity=ca.vertcat(first, second),
        inertia=ca.blockcat([[a * _EYE, b * _EYE], [b * _EYE, c * _EYE]]),
        energy=(a * ca.dot(first, first) + c * ca.dot(second, second)) / 2
        + b * ca.dot(first, second),
        weight=weight,
        ends=ends,
    )


def _rod(rod: Rod, motion: TreeMotion, entries: Entries) -> Iterator[InertialElement]:
    if rod.lower is None and rod.upper is None:
        return
    A, B, values = motion.point(rod.start), motion.point(rod.end), motion.values
    if not rod.is_full and rod.length is not None:
        m, h, J = ca.vertsplit(entries.part(rod.name))
        L = values.scalar(rod.length)
        m_BB = J / L**2
        m_AB = h / L - m_BB
        m_AA = m - 2 * h / L + m_BB
        weight = (m - h / L) * A.p + h / L * B.p
        yield _paired(rod.name, A.v, B.v, (m_AA, m_AB, m_BB), weight, ends=True)
        return
    u, u_rate = _direction(A, B)
    parts = ((rod.name, A, 1, rod.lower), (f"{rod.name}.upper", B, -1, rod.upper))
    for name, end, sign, part in parts:
        if part is None:
            continue
        pi = entries.part(rod.name, upper=end is B)
        if isinstance(part, Inertia):
            R, w = _rod_frame(rod, values, motion.bodies[rod.start.body], u, u_rate)
            yield _rigid(name, "rod", end.p, R, (end.v, w), None, pi)
        else:
            m, h, J = ca.vertsplit(pi)
            yield _paired(
                name, end.v, sign * u_rate, (m, h, J), m * end.p + sign * h * u, ends=False
            )


def _direction(A: PointMotion, B: PointMotion) -> tuple[ca.SX, ca.SX]:
    """Return the direction u = d/|d| from A to B and its rate.

    Both are also exact for open loops, so they may be differentiated.
    """
    d, d_rate = B.p - A.p, B.v - A.v
    length = ca.norm_2(d)
    u = d / length
    return u, (d_rate - ca.dot(u, d_rate) * u) / length


def _rod_frame(
    rod: Rod, values: Values, neighbor: BodyMotion, u: ca.SX, u_rate: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Return the rod frame (z = u, y along h x u) and w = u x u' + sigma u (`rods.full_rod`)."""
    if rod.first_axis is None:
        raise AssertionError("the reader guarantees that a full rod has a first axis")
    first_axis = values.vector(rod.first_axis)
    h = neighbor.R @ (first_axis / ca.norm_2(first_axis))
    c = ca.dot(h, u)
    D = 1 - c * c
    y = ca.cross(h, u) / ca.sqrt(D)
    w = ca.cross(u, u_rate)
    if rod.spin == "universal":
        w += ca.dot(neighbor.in_base.w - w, u - c * h) / D * u
    return ca.horzcat(ca.cross(y, u), y, u), w


def _rotors(
    mechanism: Mechanism, motion: TreeMotion, entries: Entries
) -> Iterator[InertialElement]:
    """Yield inertias on single coordinates, and those of motors, whose rates are A v."""
    topology = motion.topology
    rates: list[tuple[str, ca.SX]] = [
        (name, motion.v[i])
        for i, (name, freedom) in enumerate(
            zip(topology.velocity_names, topology.freedoms, strict=True)
        )
        if freedom.inertia is not None
    ]
    for actuator in mechanism.actuators:
        if actuator.inertia is not None:
            ratios = combination(actuator.drives, topology, motion.values)
            rates.append((actuator.name, combined(ratios, motion.v)))
    for name, rate in rates:
        inertia = entries.get(name, "inertia")
        if inertia is None:
            raise AssertionError(f"the inertia of {name} has no entry in pi")
        yield InertialElement(
            name=name,
            kind="rotor",
            velocity=rate,
            inertia=inertia,
            energy=inertia * rate * rate / 2,
            weight=ca.SX(3, 1),
        )
