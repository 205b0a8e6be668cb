"""Loop closure: the equations that rods and cut joints impose, with their rates and accelerations.

Every row is one of three kinds: a distance (a rod), a coordinate of the offset between two points, or the cosine of
an angle between two directions. Residuals are in metres (or are pure numbers for directions), so multipliers are
forces in newtons (or couples in newton metres).
"""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from tauloop.equations.topology import Topology
from tauloop.equations.tree import BodyMotion, PointMotion, TreeMotion
from tauloop.equations.values import Values, unit_vector
from tauloop.mechanism.model import Coupling, Joint, Mechanism, Rod
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureRow:
    """One scalar loop equation phi = psi / scale = 0.

    Programs solve with the polynomial psi and its rates, which cost less, and scale multipliers afterwards.

    Attributes:
        element: name of the rod or cut joint.
        what: which condition of that element.
        psi: polynomial in coordinates, cosines and sines; (d.d - L^2)/2 for a rod.
        scale: the length L of a rod (m), else one; constant where psi = 0 is differentiated.
        psi_rate: d(psi)/dt, linear in v.
        psi_acceleration: d^2(psi)/dt^2, affine in a.
        is_length: whether phi is in metres (else a pure number).
        difference: d from A to B of a rod; else None.
    """

    element: str
    what: str
    psi: ca.SX
    scale: ca.SX
    psi_rate: ca.SX
    psi_acceleration: ca.SX
    is_length: bool = True
    difference: ca.SX | None = None

    @property
    def name(self) -> str:
        """Element and condition, for messages."""
        return f"{self.element}: {self.what}"

    @property
    def residual(self) -> ca.SX:
        """The residual phi, in metres for lengths."""
        return self.psi / self.scale

    @property
    def rate(self) -> ca.SX:
        """Rate of phi on the manifold, linear in v."""
        return self.psi_rate / self.scale

    @property
    def acceleration(self) -> ca.SX:
        """Second rate of phi on the manifold, affine in a."""
        return self.psi_acceleration / self.scale


def is_tree(mechanism: Mechanism, topology: Topology) -> bool:
    """Whether a mechanism has no loop equations at all."""
    return not (mechanism.rods or topology.cuts or mechanism.couplings)


def closure(mechanism: Mechanism, topology: Topology, values: Values, motion: TreeMotion) -> tuple[ClosureRow, ...]:
    """All loop equations of a mechanism, rods first, then cut joints, then couplings.

    A rod's is phi = (d.d - L^2) / (2 L) with d from A to B (design, "Coordinates and terms"); a coupling's is
    phi = sum of ratio_j q_j - offset.
    """
    lengths = {rod.name: motion.length(iq, iv) for rod, iq, iv in topology.telescopes}
    rows = [_rod_row(rod, values, motion, lengths) for rod in mechanism.rods]
    for joint in topology.cuts:
        rows += _cut_rows(joint, values, motion)
    rows += [_coupling_row(coupling, topology, values, motion) for coupling in mechanism.couplings]
    return tuple(rows)


def _coupling_row(coupling: Coupling, topology: Topology, values: Values, motion: TreeMotion) -> ClosureRow:
    total, rate, acceleration = -ca.SX(values.scalar(coupling.offset)), ca.SX(0), ca.SX(0)
    for name, expression in coupling.terms:
        ratio, iv = values.scalar(expression), topology.velocity_names.index(name)
        q, v, a = motion.length(topology.q_of_v[iv], iv)
        total, rate, acceleration = total + ratio * q, rate + ratio * v, acceleration + ratio * a
    return ClosureRow(
        element=coupling.name,
        what="gear",
        psi=total,
        scale=ca.SX(1),
        psi_rate=rate,
        psi_acceleration=acceleration,
        is_length=not coupling.turns,
    )


def _rod_row(
    rod: Rod, values: Values, motion: TreeMotion, lengths: dict[str, tuple[ca.SX, ca.SX, ca.SX]]
) -> ClosureRow:
    A, B = motion.point(rod.start, values), motion.point(rod.end, values)
    d, d_rate, d_acceleration = B.p - A.p, B.v - A.v, B.a - A.a
    if rod.name in lengths:
        L, rate, acceleration = lengths[rod.name]
    else:
        L, rate, acceleration = ca.SX(values.scalar(rod.length)), ca.SX(0), ca.SX(0)  # type: ignore[arg-type]
    return ClosureRow(
        element=rod.name,
        what="length",
        psi=(ca.dot(d, d) - L * L) / 2,
        scale=L,
        psi_rate=ca.dot(d, d_rate) - L * rate,
        psi_acceleration=ca.dot(d, d_acceleration) + ca.dot(d_rate, d_rate) - rate * rate - L * acceleration,
        difference=d,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Direction:
    """A unit vector fixed to a body, with its first and second rate, in the base frame."""

    e: ca.SX
    rate: ca.SX
    acceleration: ca.SX


def _direction(body: BodyMotion, e: ca.SX) -> _Direction:
    e_W = body.R @ e
    rate = ca.cross(body.w_W, e_W)
    return _Direction(
        e=e_W,
        rate=rate,
        acceleration=ca.cross(body.alpha_W, e_W) + ca.cross(body.w_W, rate),
    )


def _frame(joint_placement_rotation: ca.SX, body: BodyMotion) -> dict[str, _Direction]:
    return {axis: _direction(body, joint_placement_rotation @ unit_vector(axis)) for axis in "xyz"}


#: Which conditions a cut joint imposes: coordinates of the offset in the parent frame (or of the base frame, when all
#: three vanish), and pairs (parent axis, child axis) of directions that stay perpendicular; "u" and "w" stand for
#: the two directions across the joint's axis, "a" for the axis itself.
_CONDITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fixed": ("all", ("xy", "yz", "zx")),
    "revolute": ("all", ("ua", "wa")),
    "prismatic": ("uw", ("xy", "yz", "zx")),
    "cylindrical": ("uw", ("ua", "wa")),
    "universal": ("all", ("12",)),
    "spherical": ("all", ()),
    "planar": ("z", ("xz", "yz")),
    "schoenflies": ("", ("xz", "yz")),
    "translational": ("", ("xy", "yz", "zx")),
    "free": ("", ()),
}


def _cut_rows(joint: Joint, values: Values, motion: TreeMotion) -> Iterator[ClosureRow]:
    offsets, perpendicular = _CONDITIONS[joint.kind]
    bodies = motion.bodies
    A, B = bodies[joint.parent.body], bodies[joint.child.body]
    R_A, p_A = values.placement(joint.parent)
    R_B, p_B = values.placement(joint.child)
    F, C = A.point(p_A), B.point(p_B)
    frame, child = _frame(R_A, A), _frame(R_B, B)
    axis = joint.axes[0] if joint.axes else "z"
    letters = {letter: letter for letter in "xyz"} | {
        "a": axis,
        "u": "yzx"["xyz".index(axis)],
        "w": "zxy"["xyz".index(axis)],
    }
    if joint.kind == "universal":
        letters |= {"1": joint.axes[0], "2": joint.axes[1]}
    if offsets == "all":
        for i, letter in enumerate("xyz"):
            yield ClosureRow(
                element=joint.name,
                what=letter,
                psi=C.p[i] - F.p[i],
                scale=ca.SX(1),
                psi_rate=C.v[i] - F.v[i],
                psi_acceleration=C.a[i] - F.a[i],
            )
    else:
        for letter in offsets:
            yield _offset_row(joint, letters[letter], frame[letters[letter]], F, C)
    for pair in perpendicular:
        parent_letter, child_letter = pair[0], pair[1]
        e, f = frame[letters[parent_letter]], child[letters[child_letter]]
        yield ClosureRow(
            element=joint.name,
            what=f"{letters[parent_letter]} across {letters[child_letter]}",
            psi=ca.dot(e.e, f.e),
            scale=ca.SX(1),
            psi_rate=ca.dot(e.rate, f.e) + ca.dot(e.e, f.rate),
            psi_acceleration=ca.dot(e.acceleration, f.e) + 2 * ca.dot(e.rate, f.rate) + ca.dot(e.e, f.acceleration),
            is_length=False,
        )


def _offset_row(joint: Joint, letter: str, e: _Direction, F: PointMotion, C: PointMotion) -> ClosureRow:
    d, d_rate = C.p - F.p, C.v - F.v
    return ClosureRow(
        element=joint.name,
        what=f"along {letter}",
        psi=ca.dot(e.e, d),
        scale=ca.SX(1),
        psi_rate=ca.dot(e.rate, d) + ca.dot(e.e, d_rate),
        psi_acceleration=ca.dot(e.acceleration, d) + 2 * ca.dot(e.rate, d_rate) + ca.dot(e.e, C.a - F.a),
    )
