"""The graph of a machine: clusters of bodies, and displacements of them by a constant vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problems
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.model import (
    BASE,
    ZERO_VECTOR,
    Body,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    Vector,
)
from tauloop.mechanism.reduction.inertia import plus, rotated_vector, rounded_entries, total
from tauloop.mechanism.reduction.steps import BodyMotions, require

#: Joints that do not permit rotation.
STRAIGHT = ("fixed", "prismatic", "translational")


def numbers(mechanism: Mechanism, vector: Vector) -> np.ndarray:
    """Return the nominal values (3,) of a vector."""
    return np.array([mechanism.value(component) for component in vector])


def cluster(mechanism: Mechanism, body: str, translating: frozenset[str]) -> frozenset[str]:
    """Return the bodies connected to a body by chains of rotating bodies."""
    elements: tuple[Joint | Rod, ...] = (*mechanism.joints, *mechanism.rods)
    pairs = (element.bodies for element in elements if translating.isdisjoint(element.bodies))
    return frozenset() if body in translating else frozenset(steps_from(body, pairs))


def displaced(
    mechanism: Mechanism,
    bodies: frozenset[str],
    by: Vector,
    motion: BodyMotions,
    rods: Iterable[str] = (),
) -> Mechanism:
    """Return the machine with bodies displaced by a constant vector.

    Their joints and rod ends on bodies that never rotate move with them. All velocities,
    accelerations and forces remain unchanged; the potential energy changes by a constant.

    Args:
        mechanism: the machine.
        bodies: a cluster of rotating bodies.
        by: displacement in base axes, m.
        motion: how the bodies move.
        rods: rods between bodies that never rotate; both ends are moved.

    Raises:
        InputError: the platform is among the bodies, or they are connected to another rotating
            body.
    """
    if by == ZERO_VECTOR:
        return mechanism
    moved_rods = set(rods)
    problems = Problems()
    if mechanism.platform.body in bodies:
        problems.add(
            mechanism.platform.body,
            "is the platform and rotates, so it cannot be displaced",
            "leave this part of the machine as it is",
        )

    def moved(placement: Placement, neighbor: str, is_moved_rod: bool) -> Placement:
        if placement.body in bodies or not (is_moved_rod or neighbor in bodies):
            return placement
        if placement.body not in motion.translating:
            problems.add(
                placement.body,
                f"rotates and is connected to {neighbor}, which is to be displaced",
                "displace both bodies",
            )
            return placement
        R = rounded_entries(motion.orientation[placement.body])
        return replace(placement, position=plus(placement.position, rotated_vector(R.T, by)))

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
            start=moved(rod.start, rod.end.body, rod.name in moved_rods),
            end=moved(rod.end, rod.start.body, rod.name in moved_rods),
        )
        for rod in mechanism.rods
    )
    require(mechanism, problems)
    return replace(mechanism, joints=joints, rods=shifted)


def with_added(mechanism: Mechanism, body: str, inertia: Inertia | None) -> Mechanism:
    """Return the machine with inertia about the origin added to a body; the base ignores it."""
    if inertia is None or body == BASE:
        return mechanism

    def added(other: Body) -> Body:
        if other.name != body:
            return other
        return replace(
            other, inertia=inertia if other.inertia is None else total(other.inertia, inertia)
        )

    return replace(mechanism, bodies=tuple(added(other) for other in mechanism.bodies))


def without(
    mechanism: Mechanism, bodies: Iterable[str] = (), joints: Iterable[str] = ()
) -> Mechanism:
    """Return the machine without some bodies and joints."""
    bodies, joints = set(bodies), set(joints)
    return replace(
        mechanism,
        bodies=tuple(body for body in mechanism.bodies if body.name not in bodies),
        joints=tuple(joint for joint in mechanism.joints if joint.name not in joints),
    )


def without_unused_parameters(mechanism: Mechanism) -> Mechanism:
    """Return the machine without the independent parameters that nothing depends on."""
    return mechanism.without_unused_parameters()
