"""The graph of a machine: what hangs on a body, and moving a part of the machine by a constant vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from tauloop.errors import Problems
from tauloop.mechanism.expression import Call, Constant, Expression, Leaf, ParameterTable, leaves
from tauloop.mechanism.model import BASE, ZERO_VECTOR, Body, Inertia, Joint, Mechanism, Placement, Rod, Vector
from tauloop.reduction.inertia import clean, plus, total, turned_vector
from tauloop.reduction.steps import BodyMotions, require

#: Joints across which a body cannot turn.
STRAIGHT = ("fixed", "prismatic", "translational")


def joints_of(mechanism: Mechanism, body: str) -> tuple[Joint, ...]:
    """Joints with one side on a body."""
    return tuple(joint for joint in mechanism.joints if body in (joint.parent.body, joint.child.body))


def rods_of(mechanism: Mechanism, body: str) -> tuple[Rod, ...]:
    """Rods with one end on a body."""
    return tuple(rod for rod in mechanism.rods if body in (rod.start.body, rod.end.body))


def side(joint: Joint, body: str) -> Placement:
    """A joint's frame on a body."""
    return joint.parent if joint.parent.body == body else joint.child


def far_side(joint: Joint, body: str) -> Placement:
    """A joint's frame on the other body."""
    return joint.child if joint.parent.body == body else joint.parent


def far_end(rod: Rod, body: str) -> Placement:
    """A rod's end on the other body."""
    return rod.end if rod.start.body == body else rod.start


def numbers(mechanism: Mechanism, vector: Vector) -> np.ndarray:
    """Nominal values (3,) of a vector."""
    return np.array([mechanism.value(component) for component in vector])


def is_loaded(mechanism: Mechanism, joint: Joint) -> bool:
    """Whether friction, a spring, an inertia or an actuator acts on a joint, or the platform is given by it."""
    wanted = {name for actuator in mechanism.actuators for name, _ in actuator.drives}
    wanted |= set(mechanism.platform.independent) | {name for loss in mechanism.losses for name, _ in loss.terms}
    acts = (
        value is not None for freedom in joint.freedoms for value in (freedom.friction, freedom.spring, freedom.inertia)
    )
    return any(acts) or any(name in wanted for name in joint.velocity_names)


def is_guided(mechanism: Mechanism, body: str) -> bool:
    """Whether joints that cannot turn lead from the base to a body."""
    reached, grows = {BASE}, True
    while grows:
        grows = False
        for joint in mechanism.joints:
            ends = {joint.parent.body, joint.child.body}
            if joint.kind in STRAIGHT and len(ends & reached) == 1:
                reached |= ends
                grows = True
    return body in reached


def cluster(mechanism: Mechanism, body: str, still: frozenset[str]) -> frozenset[str]:
    """A body with all that hangs together with it without passing a body that never turns."""
    bodies, pending = set[str](), [body]
    while pending:
        current = pending.pop()
        if current in still or current in bodies:
            continue
        bodies.add(current)
        pending += [far_side(joint, current).body for joint in joints_of(mechanism, current)]
        for rod in rods_of(mechanism, current):
            pending += [rod.start.body, rod.end.body]
    return frozenset(bodies)


def displaced(
    mechanism: Mechanism, bodies: frozenset[str], by: Vector, motion: BodyMotions, rods: Iterable[str] = ()
) -> Mechanism:
    """Move bodies by a constant vector, and with them their joints and rod ends on bodies that never turn.

    All velocities, accelerations and forces stay as they are: potential energy changes by a constant.

    Args:
        mechanism: the machine.
        bodies: a cluster of bodies that turn.
        by: displacement in base axes, m.
        motion: how the bodies move.
        rods: rods between bodies that never turn, moved at both ends.

    Raises:
        InputError: the platform is among the bodies, or they are tied to one that turns and stays.
    """
    if by == ZERO_VECTOR:
        return mechanism
    own = set(rods)
    problems = Problems()
    if mechanism.platform.body in bodies:
        problems.add(
            mechanism.platform.body,
            "is the platform and turns, so it cannot be displaced",
            "leave this part of the machine as it is",
        )

    def moved(placement: Placement, neighbour: str, is_own: bool) -> Placement:
        if placement.body in bodies or not (is_own or neighbour in bodies):
            return placement
        if placement.body not in motion.translating:
            problems.add(placement.body, f"turns and is tied to {neighbour}, which is to be displaced", "displace both")
            return placement
        R = clean(motion.orientation[placement.body])
        return replace(placement, position=plus(placement.position, turned_vector(R.T, by)))

    joints = tuple(
        replace(
            joint,
            parent=moved(joint.parent, joint.child.body, False),
            child=moved(joint.child, joint.parent.body, False),
        )
        for joint in mechanism.joints
    )
    shifted = tuple(
        replace(
            rod,
            start=moved(rod.start, rod.end.body, rod.name in own),
            end=moved(rod.end, rod.start.body, rod.name in own),
        )
        for rod in mechanism.rods
    )
    require(mechanism, problems)
    return replace(mechanism, joints=joints, rods=shifted)


def with_added(mechanism: Mechanism, body: str, inertia: Inertia | None) -> Mechanism:
    """Add inertia to a body, about its origin; the base takes any without effect."""
    if inertia is None or body == BASE:
        return mechanism

    def added(other: Body) -> Body:
        if other.name != body:
            return other
        return replace(other, inertia=inertia if other.inertia is None else total(other.inertia, inertia))

    return replace(mechanism, bodies=tuple(added(other) for other in mechanism.bodies))


def without(mechanism: Mechanism, bodies: Iterable[str] = (), joints: Iterable[str] = ()) -> Mechanism:
    """The machine without some bodies and joints."""
    bodies, joints = set(bodies), set(joints)
    return replace(
        mechanism,
        bodies=tuple(body for body in mechanism.bodies if body.name not in bodies),
        joints=tuple(joint for joint in mechanism.joints if joint.name not in joints),
    )


def with_expressions(item: Any, change: Callable[[Expression], Expression]) -> Any:
    """A copy of any part of a mechanism with every expression in it changed."""
    if isinstance(item, Constant | Leaf | Call):
        return change(item)
    if isinstance(item, ParameterTable):
        return item
    if isinstance(item, tuple):
        return tuple(with_expressions(part, change) for part in item)
    if is_dataclass(item) and not isinstance(item, type):
        return replace(item, **{f.name: with_expressions(getattr(item, f.name), change) for f in fields(item)})
    return item


def used_parameters(mechanism: Mechanism) -> frozenset[str]:
    """Leaf parameters that some expression of the machine depends on."""
    names = set[str]()

    def note(expression: Expression) -> Expression:
        names.update(leaves(expression))
        return expression

    with_expressions(mechanism, note)
    return frozenset(names)


def without_unused_parameters(mechanism: Mechanism) -> Mechanism:
    """The machine with a parameter table of those leaves alone that it still depends on."""
    used = used_parameters(mechanism)
    kept = tuple(parameter for parameter in mechanism.parameters if parameter.name in used)
    return replace(mechanism, parameters=ParameterTable(kept))
