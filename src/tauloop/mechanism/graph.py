"""A mechanism as a graph: what hangs on what, how many steps away, and which joints make a tree of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tauloop.errors import Problem, TauloopError
from tauloop.mechanism.model import BASE, JOINT_KINDS, PLATFORM_JOINT, Joint, Mechanism, Placement, Rod


def steps_from(start: str, pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many steps what pairs lead to is away from a start, itself among it; pairs are walked both ways."""
    beside: dict[str, list[str]] = {}
    for first, second in pairs:
        beside.setdefault(first, []).append(second)
        beside.setdefault(second, []).append(first)
    steps, waiting = {start: 0}, [start]
    for name in waiting:  # which grows
        further = [other for other in dict.fromkeys(beside.get(name, ())) if other not in steps]
        steps |= dict.fromkeys(further, steps[name] + 1)
        waiting += further
    return steps


def joints_of(mechanism: Mechanism, body: str) -> tuple[Joint, ...]:
    """Joints with one side on a body."""
    return tuple(joint for joint in mechanism.joints if body in joint.bodies)


def rods_of(mechanism: Mechanism, body: str) -> tuple[Rod, ...]:
    """Rods with one end on a body."""
    return tuple(rod for rod in mechanism.rods if body in rod.bodies)


def side(joint: Joint, body: str) -> Placement:
    """A joint's frame on a body."""
    return joint.parent if joint.parent.body == body else joint.child


def far_side(joint: Joint, body: str) -> Placement:
    """A joint's frame on the other body."""
    return joint.child if joint.parent.body == body else joint.parent


def far_end(rod: Rod, body: str) -> Placement:
    """A rod's end on the other body."""
    return rod.end if rod.start.body == body else rod.start


#: What comes first among joints that are equal otherwise, from the depth of the near body and the place in the file.
Order = Callable[[int, int], tuple[int, ...]]


def spanning_joints(
    mechanism: Mechanism,
    error: type[TauloopError],
    order: Order,
    *,
    turns_around: Callable[[Joint], bool] = lambda _: True,
) -> list[tuple[Joint, bool]]:
    """Joints of the tree from the base outwards, each with whether it is run from its child to its parent.

    It grows by the cheapest joint (Prim): the platform's own, then fixed joints, then joints that something acts on,
    which need a coordinate, then those with few freedoms.

    Args:
        mechanism: the machine; joints that its file cuts are never in the tree.
        error: raised for bodies that no joint leads to.
        order: decides among equals.
        turns_around: whether a joint may be run from its child to its parent.

    Raises:
        TauloopError: of the given type; the bodies.
    """
    depth = {BASE: 0}
    edges: list[tuple[Joint, bool]] = []
    costs = {
        joint.name: (
            joint.name != PLATFORM_JOINT,
            bool(JOINT_KINDS[joint.kind].velocities),
            not mechanism.is_loaded(joint),
            len(JOINT_KINDS[joint.kind].velocities),
        )
        for joint in mechanism.joints
    }
    remaining = {index: joint for index, joint in enumerate(mechanism.joints) if not joint.is_cut}
    while True:
        candidates = []
        for index, joint in remaining.items():
            ends = (joint.parent.body in depth, joint.child.body in depth)
            if ends[0] != ends[1] and (ends[0] or turns_around(joint)):
                near = joint.parent.body if ends[0] else joint.child.body
                candidates.append((costs[joint.name], order(depth[near], index), index))
        if not candidates:
            break
        index = min(candidates)[2]
        joint = remaining.pop(index)
        is_reversed = joint.child.body in depth
        inner, outer = (joint.child, joint.parent) if is_reversed else (joint.parent, joint.child)
        depth[outer.body] = depth[inner.body] + 1
        edges.append((joint, is_reversed))
    error.raise_if_any(
        Problem(
            where=f"bodies.{body.name}",
            what="no joint that can carry coordinates leads from the base to this body",
            remedy="give it a joint that is not cut, its parent nearer the base, or give the platform a `motion`",
            file=mechanism.file,
        )
        for body in mechanism.bodies
        if body.name not in depth
    )
    return edges
