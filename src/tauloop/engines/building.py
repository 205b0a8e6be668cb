"""From a mechanism to its rigid tree: spanning tree, links of bodies and rods, constraints, loads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.engines.joints import Primitive, primitives
from tauloop.engines.rigid_tree import (
    GROUND,
    Anchor,
    Constraint,
    Link,
    LinkInertia,
    Loads,
    PlacedJoint,
    RigidTree,
    link_inertia,
)
from tauloop.engines.rods import RodShape, rod_shape
from tauloop.engines.start import body_poses, reference_coordinates
from tauloop.errors import EngineError, Problem, Problems
from tauloop.mechanism.model import BASE, JOINT_KINDS, Freedom, Joint, Mechanism
from tauloop.mechanism.poses import IDENTITY, UNIT_VECTORS, Array, Pose, placement_pose

#: Name of the joint by which a platform with its own coordinates hangs on the base.
PLATFORM_JOINT = "platform"


def rigid_tree(mechanism: Mechanism) -> RigidTree:
    """The mechanism at its nominal parameters as a tree of rigid links with constraints.

    Raises:
        EngineError: something in it cannot be represented by rigid bodies and ideal joints.
    """
    joints = {
        joint.name: PlacedJoint(
            joint=joint, parent=placement_pose(mechanism, joint.parent), child=placement_pose(mechanism, joint.child)
        )
        for joint in mechanism.joints
    }
    edges = _spanning_tree(mechanism)
    tree = tuple(joint.name for joint, _ in edges)
    reference = body_poses(joints, tree, reference_coordinates(joints), 1)
    shapes, problems = _rod_shapes(mechanism, joints, reference)
    EngineError.raise_if_any(problems)

    links: list[Link] = []
    bodies = {BASE: GROUND}
    for joint, is_reversed in edges:
        placed = joints[joint.name]
        inner, outer = (placed.child, placed.parent) if is_reversed else (placed.parent, placed.child)
        inner_body, outer_body = joint.parent.body, joint.child.body
        if is_reversed:
            inner_body, outer_body = outer_body, inner_body
        last = _chain(links, bodies[inner_body], inner, joint.name, primitives(joint, is_reversed=is_reversed))
        inertia = link_inertia(mechanism, f"bodies.{outer_body}", mechanism.body(outer_body).inertia)
        at = last.at @ outer.inverse()
        links.append(Link(name=outer_body, parent=last.link, at=at, inertia=inertia))
        bodies[outer_body] = len(links) - 1
    constraints = [_cut(placed, bodies) for name, placed in joints.items() if name not in tree]
    constraints += [_hang_rod(links, bodies, shape) for shape in shapes]
    return RigidTree(
        name=mechanism.name,
        gravity=np.array([mechanism.value(x) for x in mechanism.gravity]),
        links=tuple(links),
        bodies=bodies,
        joints=joints,
        tree=tree,
        rods=tuple(shape.links for shape in shapes),
        constraints=tuple(
            constraint for constraint in constraints if constraint.points.size or constraint.directions.size
        ),
        loads=_loads(mechanism, links),
        tool=Anchor(link=bodies[mechanism.platform.tool.body], at=placement_pose(mechanism, mechanism.platform.tool)),
    )


def _spanning_tree(mechanism: Mechanism) -> list[tuple[Joint, bool]]:
    """Joints of the tree from the base outwards, each with whether it is run from its child to its parent.

    Grown from the base (Prim) by the platform's own joint, then fixed joints, then joints that carry independent,
    driven or loaded coordinates, then those with few freedoms; among equals the last in the file.
    """
    wanted = set(mechanism.platform.independent) | {name for x in mechanism.actuators for name, _ in x.drives}
    wanted |= {name for coupling in mechanism.couplings for name, _ in coupling.terms}

    def cost(joint: Joint) -> tuple[bool, bool, bool, int]:
        is_wanted = not wanted.isdisjoint(joint.velocity_names) or any(map(_is_loaded, joint.freedoms))
        freedoms = len(JOINT_KINDS[joint.kind].velocities)
        return joint.name != PLATFORM_JOINT, freedoms > 0, not is_wanted, freedoms

    queue = sorted((joint for joint in reversed(mechanism.joints) if not joint.is_cut), key=cost)
    reached, edges = {BASE}, []
    while True:
        joint = next((j for j in queue if (j.parent.body in reached) != (j.child.body in reached)), None)
        if joint is None:
            break
        edges.append((joint, joint.child.body in reached))
        reached |= {joint.parent.body, joint.child.body}
    lost = [body.name for body in mechanism.bodies if body.name not in reached]
    if lost:
        raise EngineError(
            Problem(
                where=f"bodies.{name}",
                what="no joint leads from the base to this body",
                remedy="give it a joint, or give the platform a `motion`",
                file=mechanism.file,
            )
            for name in lost
        )
    return edges


def _is_loaded(freedom: Freedom) -> bool:
    return freedom.spring is not None or freedom.inertia is not None


def _rod_shapes(
    mechanism: Mechanism, joints: dict[str, PlacedJoint], reference: dict[str, Pose]
) -> tuple[list[RodShape], list[Problem]]:
    shapes: list[RodShape] = []
    problems = Problems()
    for rod in mechanism.rods:
        with problems.collecting(EngineError):
            shapes.append(rod_shape(mechanism, rod, joints, reference))
    return shapes, problems


def _chain(links: list[Link], parent: int, at: Pose, name: str, chain: tuple[Primitive, ...]) -> Anchor:
    """Append a massless link for every primitive; where the chain ends."""
    for primitive in chain:
        links.append(Link(name=name, parent=parent, at=at, primitive=primitive))
        parent, at = len(links) - 1, IDENTITY
    return Anchor(link=parent, at=at)


def _hang_rod(links: list[Link], bodies: dict[str, int], shape: RodShape) -> Constraint:
    """Append the links of a rod; what its far end demands."""
    (start, frame), (end, B) = shape.links.start, shape.links.end

    def hold(part: LinkInertia | None, parent: int, at: Pose) -> None:
        if part is not None:
            links.append(Link(name=shape.links.name, parent=parent, at=at, inertia=part))

    hinges = tuple(
        Primitive(kind="hinge", axis=UNIT_VECTORS[axis], coordinates=(name,), velocities=(name,))
        for axis, name in zip("xy", shape.links.angles, strict=True)
    )
    last = _chain(links, bodies[start], frame, shape.links.name, hinges)
    hold(shape.lower, last.link, last.at)
    tip = Anchor(link=last.link, at=Pose(np.eye(3), np.array([0.0, 0.0, shape.length])))
    if shape.links.is_telescopic:
        names = (shape.links.name,)
        slide = Primitive(kind="slide", axis=UNIT_VECTORS["z"], coordinates=names, velocities=names)
        tip = _chain(links, last.link, last.at, shape.links.name, (slide,))
    hold(shape.upper, tip.link, tip.at)
    return Constraint(
        name=shape.links.name,
        first=Anchor(link=bodies[end], at=B),
        second=tip,
        points=np.eye(3),
        directions=np.zeros((0, 2, 3)),
    )


def _cut(placed: PlacedJoint, bodies: dict[str, int]) -> Constraint:
    points, directions = _conditions(placed.joint)
    return Constraint(
        name=placed.joint.name,
        first=Anchor(link=bodies[placed.joint.parent.body], at=placed.parent),
        second=Anchor(link=bodies[placed.joint.child.body], at=placed.child),
        points=np.array(points).reshape(-1, 3),
        directions=np.array(directions).reshape(-1, 2, 3),
    )


def _conditions(joint: Joint) -> tuple[list[Array], list[tuple[Array, Array]]]:
    """What a joint forbids: parting along directions of its parent frame, and leaving right angles."""
    x, y, z = np.eye(3)
    rigid = [(x, y), (y, z), (z, x)]
    if joint.kind == "free":
        return [], []
    if joint.kind == "planar":
        return [z], [(x, z), (y, z)]
    if joint.kind == "schoenflies":
        return [], [(x, z), (y, z)]
    if joint.kind == "translational":
        return [], rigid
    if joint.kind == "fixed":
        return [x, y, z], rigid
    if joint.kind == "spherical":
        return [x, y, z], []
    if joint.kind == "universal":
        first, second = (np.array(UNIT_VECTORS[axis]) for axis in joint.axes)
        return [x, y, z], [(first, second)]
    axis = np.array(UNIT_VECTORS[joint.axes[0]])
    across = [np.roll(axis, 1), np.roll(axis, 2)]
    if joint.kind == "revolute":
        return [x, y, z], [(e, axis) for e in across]
    return across, rigid if joint.kind == "prismatic" else [(e, axis) for e in across]


def _freedoms(mechanism: Mechanism) -> Iterator[tuple[str, Freedom]]:
    for joint in mechanism.joints:
        yield from zip(joint.velocity_names, joint.freedoms, strict=False)
    for rod in mechanism.rods:
        if rod.telescope is not None:
            yield rod.name, rod.telescope.freedom


def _loads(mechanism: Mechanism, links: list[Link]) -> Loads:
    """Rotors, springs and transmissions on the coordinates of the tree.

    Raises:
        EngineError: one of them acts on a coordinate that the tree does not have.
    """
    chain = [link.primitive for link in links if link.primitive is not None]
    names = [name for primitive in chain for name in primitive.velocities]
    index = {name: i for i, name in enumerate(names)}
    scalars = {name for primitive in chain if primitive.kind != "ball" for name in primitive.velocities}
    q_names = [name for primitive in chain for name in primitive.coordinates]
    problems = Problems()

    def missing(where: str, name: str) -> None:
        problems.add(
            where,
            f"acts on {name}, which is no coordinate of the tree that the engines use",
            "let it act on a joint that need not be cut to open the loops",
            file=mechanism.file,
        )

    inertia, stiffness, preload = np.zeros((len(names),) * 2), np.zeros(len(names)), np.zeros(len(names))
    for name, freedom in _freedoms(mechanism):
        if not _is_loaded(freedom):
            continue
        if name not in index or (freedom.spring is not None and name not in scalars):
            missing(f"freedom {name}", name)
            continue
        i = index[name]
        if freedom.inertia is not None:
            inertia[i, i] += mechanism.value(freedom.inertia)
        if freedom.spring is not None:
            stiffness[i] = mechanism.value(freedom.spring.stiffness)
            preload[i] = stiffness[i] * mechanism.value(freedom.spring.rest)
    transmission = np.zeros((len(mechanism.actuators), len(names)))
    for row, actuator in zip(transmission, mechanism.actuators, strict=True):
        for name, ratio in actuator.drives:
            if name not in index:
                missing(f"actuators.{actuator.name}", name)
                continue
            row[index[name]] += mechanism.value(ratio)
        if actuator.inertia is not None:
            inertia += mechanism.value(actuator.inertia) * np.outer(row, row)
    gears = np.zeros((len(mechanism.couplings), len(names)))
    for row, coupling in zip(gears, mechanism.couplings, strict=True):
        for name, ratio in coupling.terms:
            if name not in index:
                missing(f"couplings.{coupling.name}", name)
                continue
            row[index[name]] += mechanism.value(ratio)
    EngineError.raise_if_any(problems)
    return Loads(
        inertia=inertia,
        stiffness=stiffness,
        preload=preload,
        q_index=tuple(q_names.index(name) if name in scalars else -1 for name in names),
        transmission=transmission,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        gears=gears,
        gear_offsets=np.array([mechanism.value(coupling.offset) for coupling in mechanism.couplings]),
    )
