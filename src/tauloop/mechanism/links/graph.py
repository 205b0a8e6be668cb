"""A mechanism as a graph: the joints and rods of a body, and their frames on the other body."""

from __future__ import annotations

from tauloop.mechanism.model import Joint, Mechanism, Placement, Rod


def joints_of(mechanism: Mechanism, body: str) -> tuple[Joint, ...]:
    """Return the joints with one side on a body."""
    return tuple(joint for joint in mechanism.joints if body in joint.bodies)


def rods_of(mechanism: Mechanism, body: str) -> tuple[Rod, ...]:
    """Return the rods with one end on a body."""
    return tuple(rod for rod in mechanism.rods if body in rod.bodies)


def side(joint: Joint, body: str) -> Placement:
    """Return a joint's frame on a body."""
    return joint.parent if joint.parent.body == body else joint.child


def far_side(joint: Joint, body: str) -> Placement:
    """Return a joint's frame on the other body."""
    return joint.child if joint.parent.body == body else joint.parent


def far_end(rod: Rod, body: str) -> Placement:
    """Return a rod's end on the other body."""
    return rod.end if rod.start.body == body else rod.start
