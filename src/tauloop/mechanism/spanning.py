"""How a spanning tree of a machine grows, whoever needs one and whatever joints it prefers."""

from __future__ import annotations

from collections.abc import Callable

from tauloop.errors import Problem, TauloopError
from tauloop.mechanism.model import BASE, JOINT_KINDS, Joint, Mechanism

#: Name of the joint by which a platform with its own coordinates hangs on the base.
PLATFORM_JOINT = "platform"
#: What comes first among joints that are equal otherwise, from the depth of the near body and the place in the file.
Order = Callable[[int, int], tuple[int, ...]]


def is_loaded(mechanism: Mechanism, joint: Joint) -> bool:
    """Whether something acts on a joint or asks for its coordinate: losses, springs, rotors, motors, gears, users.

    A kind that a package brings says how its coordinates move the child, and so always has them.
    """
    acts = any(f.friction is not None or f.spring is not None or f.inertia is not None for f in joint.freedoms)
    is_brought = JOINT_KINDS[joint.kind].placement is not None
    return acts or is_brought or not _wanted(mechanism).isdisjoint(joint.velocity_names)


def _wanted(mechanism: Mechanism) -> frozenset[str]:
    driven = {name for actuator in mechanism.actuators for name, _ in actuator.drives}
    return mechanism.combined | driven | set(mechanism.platform.independent)


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
            not is_loaded(mechanism, joint),
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
