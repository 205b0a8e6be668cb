"""From the plain numbers of a URDF tree to bodies, joints and leaf parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tauloop.mechanism.expression import ZERO, Constant, Expression, Leaf, add, multiply, negate, subtract
from tauloop.mechanism.formats.urdf_tree import LinkInertia, Triple, UrdfJoint
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    AxisName,
    Body,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Parameter,
    Placement,
    Turn,
)

_LETTERS: dict[Triple, AxisName] = {(1.0, 0.0, 0.0): "x", (0.0, 1.0, 0.0): "y", (0.0, 0.0, 1.0): "z"}
#: R = Rz(yaw) Ry(pitch) Rx(roll), written as successive turns.
_ROLL_PITCH_YAW: tuple[tuple[int, AxisName], ...] = ((2, "z"), (1, "y"), (0, "x"))
#: Entries of an inertia in the order of `Inertia`.
_MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaves:
    """The leaf parameters as they are made, in order; all from one file."""

    source: str
    parameters: list[Parameter] = field(default_factory=list)

    def leaf(self, name: str, value: float, unit: str, group: str, *, lower: float = -np.inf) -> Leaf:
        """A new leaf parameter."""
        self.parameters.append(
            Parameter(name=name, value=value, unit=unit, group=group, status="given", source=self.source, lower=lower)
        )
        return Leaf(name)

    def structural(self, name: str, value: float, unit: str, group: str) -> Expression:
        """A leaf, or the constant zero: an exact zero of geometry or gravity is part of the structure."""
        return self.leaf(name, value, unit, group) if value != 0.0 else ZERO


@dataclass(frozen=True, slots=True, kw_only=True)
class JointExtra:
    """What URDF does not say about a joint.

    Attributes:
        offset: URDF's coordinate = measured coordinate + offset, rad or m.
        offset_value: its nominal value.
        friction: losses; they win over those of URDF's ``<dynamics>``.
        inertia: rotor inertia on the joint side.
    """

    offset: Expression = ZERO
    offset_value: float = 0.0
    friction: Friction = field(default_factory=Friction)
    inertia: Expression | None = None


def make_body(name: str, inertial: LinkInertia | None, leaves: Leaves) -> Body:
    """A body with ten inertial leaves (zero or not: all may be identified), or a massless one."""
    if inertial is None:
        return Body(name=name)
    m = leaves.leaf(f"{name}.mass", inertial.mass, "kg", "inertia", lower=0.0)
    c = [leaves.leaf(f"{name}.center[{k}]", inertial.center[k], "m", "inertia") for k in range(3)]
    moments = {
        (i, j): leaves.leaf(f"{name}.inertia.{'xyz'[i]}{'xyz'[j]}", float(inertial.inertia[i, j]), "kg m^2", "inertia")
        for i, j in _MOMENTS
    }
    first = (multiply(m, c[0]), multiply(m, c[1]), multiply(m, c[2]))
    xx, xy, yy, xz, yz, zz = (_about_origin(m, c, moment, i, j) for (i, j), moment in moments.items())
    return Body(name=name, inertia=Inertia(mass=m, first_moment=first, second_moment=(xx, xy, yy, xz, yz, zz)))


def _about_origin(m: Leaf, c: list[Leaf], moment: Leaf, i: int, j: int) -> Expression:
    """Parallel axis theorem, I_O = I_C + m (c.c 1 - c c^T), entry (i, j)."""
    if i != j:
        return subtract(moment, multiply(m, c[i], c[j]))
    return add(moment, multiply(m, add(*(multiply(x, x) for k, x in enumerate(c) if k != i))))


def make_joint(joint: UrdfJoint, root: str, extra: JointExtra, leaves: Leaves) -> Joint:
    """A joint whose coordinate is the measured one (see `JointExtra.offset`)."""
    parent, child = _placements(joint, root, leaves)
    axes: tuple[AxisName, ...] = ()
    if joint.kind in ("revolute", "prismatic", "planar"):
        letter = _LETTERS.get(joint.axis)
        if letter is None or (joint.kind == "planar" and letter != "z"):
            turns = _turns_to(joint.axis)
            parent, child, letter = _turned(parent, turns), _turned(child, turns), "z"
        if joint.kind != "planar":
            axes = (letter,)
    if extra.offset != ZERO:
        if joint.kind == "revolute":
            parent = _turned(parent, (Turn(axes[0], extra.offset),))
        else:
            child = _shifted(child, joint.axis, negate(extra.offset))
    return Joint(
        name=joint.name,
        kind=joint.kind,
        parent=parent,
        child=child,
        axes=axes,
        reference=_reference(joint, extra),
        freedoms=_freedoms(joint, extra, leaves),
    )


def _placements(joint: UrdfJoint, root: str, leaves: Leaves) -> tuple[Placement, Placement]:
    x, y, z = (leaves.structural(f"{joint.name}.origin.xyz[{k}]", joint.xyz[k], "m", "geometry") for k in range(3))
    angles = [
        (letter, leaves.structural(f"{joint.name}.origin.rpy[{k}]", joint.rpy[k], "rad", "geometry"))
        for k, letter in _ROLL_PITCH_YAW
    ]
    turns = tuple(Turn(letter, angle) for letter, angle in angles if angle != ZERO)
    body = BASE if joint.parent == root else joint.parent
    return Placement(body=body, position=(x, y, z), turns=turns), Placement(body=joint.child)


def _turns_to(axis: Triple) -> tuple[Turn, ...]:
    """Constant turns after which z points along a unit vector: about z by its azimuth, about y by its polar angle."""
    x, y, z = axis
    angles: tuple[tuple[AxisName, float], ...] = (("z", math.atan2(y, x)), ("y", math.atan2(math.hypot(x, y), z)))
    return tuple(Turn(letter, Constant(angle)) for letter, angle in angles if angle != 0.0)


def _turned(placement: Placement, turns: tuple[Turn, ...]) -> Placement:
    return Placement(body=placement.body, position=placement.position, turns=placement.turns + turns)


def _shifted(placement: Placement, axis: Triple, distance: Expression) -> Placement:
    x, y, z = (
        add(p, multiply(Constant(component), distance)) for p, component in zip(placement.position, axis, strict=True)
    )
    return Placement(body=placement.body, position=(x, y, z), turns=placement.turns)


def _reference(joint: UrdfJoint, extra: JointExtra) -> tuple[float, ...]:
    """URDF's zero position, or the middle of the range when zero is outside it."""
    if joint.kind == "free":
        return (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    count = len(JOINT_KINDS[joint.kind].coordinates)
    if count != 1:
        return (0.0,) * count
    inside = joint.lower <= 0.0 <= joint.upper
    return ((0.0 if inside else 0.5 * (joint.lower + joint.upper)) - extra.offset_value,)


def _freedoms(joint: UrdfJoint, extra: JointExtra, leaves: Leaves) -> tuple[Freedom, ...]:
    count = len(JOINT_KINDS[joint.kind].velocities)
    if count != 1:
        return (Freedom(),) * count
    force, speed = ("N m", "N m s/rad") if joint.kind == "revolute" else ("N", "N s/m")
    viscous, coulomb = extra.friction.viscous, extra.friction.coulomb
    if viscous is None and joint.damping != 0.0:
        viscous = leaves.leaf(f"{joint.name}.friction.viscous", joint.damping, speed, "friction")
    if coulomb is None and joint.friction != 0.0:
        coulomb = leaves.leaf(f"{joint.name}.friction.coulomb", joint.friction, force, "friction")
    friction = Friction(viscous=viscous, coulomb=coulomb, offset=extra.friction.offset)
    return (
        Freedom(
            friction=friction if friction != Friction() else None,
            inertia=extra.inertia,
            lower=joint.lower - extra.offset_value,
            upper=joint.upper - extra.offset_value,
            speed=joint.velocity,
        ),
    )
