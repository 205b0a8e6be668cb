"""Construction of a mechanism's rigid tree: links of bodies and rods, constraints, elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.links.rigid_tree import rigid_tree as spanned
from tauloop.mechanism.model import BASE, JOINT_KINDS, AxisName, Joint, Mechanism
from tauloop.mechanism.poses import IDENTITY, UNIT_VECTORS, Array, FramePose, placement_pose
from tauloop.verification.engines.trees.curves import curve_function
from tauloop.verification.engines.trees.rigid_tree import (
    GROUND,
    Anchor,
    Constraint,
    EngineLink,
    Loads,
    PlacedJoint,
    RigidTree,
)


def rigid_tree(mechanism: Mechanism) -> RigidTree:
    """Return the mechanism at its nominal parameters as a tree of rigid links with constraints.

    Raises:
        EngineError: the mechanism has parts that are not rigid bodies or ideal joints.
    """
    tree = spanned(mechanism, JOINT_KINDS, EngineError, keeps_loaded=False)
    links: list[EngineLink] = []
    anchors = {BASE: Anchor(link=GROUND, pose=IDENTITY)}
    for part in tree.links:
        parent_anchor = anchors[part.parent]
        parent = parent_anchor.link
        pose = parent_anchor.pose @ part.at
        for primitive in part.chain:
            links.append(EngineLink(name=part.joint, parent=parent, pose=pose, primitive=primitive))
            parent = len(links) - 1
            pose = IDENTITY
        pose = pose @ part.frame
        if part.mass is not None or not part.chain or not pose.is_identity:
            links.append(EngineLink(name=part.name, parent=parent, pose=pose, inertia=part.mass))
            parent = len(links) - 1
            pose = IDENTITY
        anchors[part.name] = Anchor(link=parent, pose=pose)

    def anchor(end: tuple[str, FramePose]) -> Anchor:
        """Return a frame on a link from a body and a pose in this body."""
        body, pose_in_body = end
        return Anchor(link=anchors[body].link, pose=anchors[body].pose @ pose_in_body)

    def placed(joint: Joint) -> PlacedJoint:
        """Return a joint with the poses of its frames."""
        return PlacedJoint(
            joint=joint,
            pose_in_parent=placement_pose(mechanism, joint.parent),
            pose_in_child=placement_pose(mechanism, joint.child),
        )

    constraints = []
    for closure in tree.closures:
        position_directions, orthogonal_pairs = _conditions(closure.kind, closure.axes)
        constraints.append(
            Constraint(
                name=closure.name.removesuffix(".tip"),
                first=anchor(closure.first),
                second=anchor(closure.second),
                position_directions=np.array(position_directions).reshape(-1, 3),
                orthogonal_pairs=np.array(orthogonal_pairs).reshape(-1, 2, 3),
            )
        )
    tool = mechanism.platform.tool
    return RigidTree(
        name=mechanism.name,
        gravity=np.array([mechanism.value(x) for x in mechanism.gravity]),
        links=tuple(links),
        bodies={body.name: anchors[body.name].link for body in mechanism.bodies} | {BASE: GROUND},
        joints={joint.name: placed(joint) for joint in mechanism.joints},
        tree=tree.joints,
        rods=tree.rods,
        constraints=tuple(constraints),
        loads=_loads(mechanism, links),
        tool=anchor((tool.body, placement_pose(mechanism, tool))),
    )


def _conditions(
    kind: str, axes: tuple[AxisName, ...]
) -> tuple[list[Array], list[tuple[Array, Array]]]:
    """Return the constraints of a joint: point directions, and pairs of orthogonal directions.

    See `Constraint` for their meaning.
    """
    x, y, z = np.eye(3)
    rigid = [(x, y), (y, z), (z, x)]
    fixed: dict[str, tuple[list[Array], list[tuple[Array, Array]]]] = {
        "free": ([], []),
        "planar": ([z], [(x, z), (y, z)]),
        "schoenflies": ([], [(x, z), (y, z)]),
        "translational": ([], rigid),
        "fixed": ([x, y, z], rigid),
        "spherical": ([x, y, z], []),
    }
    if kind in fixed:
        return fixed[kind]
    if kind == "universal":
        first = np.array(UNIT_VECTORS[axes[0]])
        second = np.array(UNIT_VECTORS[axes[1]])
        return [x, y, z], [(first, second)]
    axis = np.array(UNIT_VECTORS[axes[0]])
    normals = [np.roll(axis, 1), np.roll(axis, 2)]
    if kind == "revolute":
        return [x, y, z], [(e, axis) for e in normals]
    if kind == "prismatic":
        return normals, rigid
    return normals, [(e, axis) for e in normals]


def _loads(mechanism: Mechanism, links: list[EngineLink]) -> Loads:
    """Return the rotors, springs, actuators and couplings on the coordinates of the tree.

    Raises:
        EngineError: a rotor, spring, actuator or coupling acts on a coordinate that is not in the
            tree.
    """
    chain = [link.primitive for link in links if link.primitive is not None]
    names = [name for primitive in chain for name in primitive.velocities]
    index = {name: i for i, name in enumerate(names)}
    scalars = {
        name for primitive in chain if primitive.kind != "ball" for name in primitive.velocities
    }
    q_names = [name for primitive in chain for name in primitive.coordinates]
    problems = Problems()

    def add_missing(where: str, name: str) -> None:
        """Record that an element acts on a coordinate that is not in the tree."""
        what = f"acts on {name}, which is not a coordinate of the tree that the engines use"
        remedy = "use a joint that is not cut to open the loops"
        problems.add(where, what, remedy, file=mechanism.file)

    inertia = np.zeros((len(names), len(names)))
    stiffness = np.zeros(len(names))
    preload = np.zeros(len(names))
    for name, freedom in mechanism.freedoms.items():
        if freedom.spring is None and freedom.inertia is None:
            continue
        if name not in index or (freedom.spring is not None and name not in scalars):
            add_missing(f"degree of freedom {name}", name)
            continue
        i = index[name]
        if freedom.inertia is not None:
            inertia[i, i] += mechanism.value(freedom.inertia)
        if freedom.spring is not None:
            stiffness[i] = mechanism.value(freedom.spring.stiffness)
            preload[i] = stiffness[i] * mechanism.value(freedom.spring.rest)

    def ratio_matrix(
        where: str, parts: Sequence[tuple[str, tuple[tuple[str, Expression], ...]]]
    ) -> Array:
        """Return the ratios (n, n_v) of n linear combinations of velocities."""
        rows = np.zeros((len(parts), len(names)))
        for row, (part, terms) in zip(rows, parts, strict=True):
            for name, ratio in terms:
                if name not in index:
                    add_missing(f"{where}.{part}", name)
                else:
                    row[index[name]] += mechanism.value(ratio)
        return rows

    transmission = ratio_matrix(
        "actuators", [(actuator.name, actuator.drives) for actuator in mechanism.actuators]
    )
    gears = ratio_matrix(
        "couplings", [(coupling.name, coupling.terms) for coupling in mechanism.couplings]
    )
    for row, actuator in zip(transmission, mechanism.actuators, strict=True):
        if actuator.inertia is not None:
            inertia += mechanism.value(actuator.inertia) * np.outer(row, row)
    EngineError.raise_if_any(problems)
    return Loads(
        inertia=inertia,
        stiffness=stiffness,
        preload=preload,
        q_index=tuple(q_names.index(name) if name in scalars else -1 for name in names),
        transmission=transmission,
        actuators=tuple(actuator.name for actuator in mechanism.actuators),
        gears=gears,
        gear_offsets=np.array(
            [mechanism.value(coupling.offset) for coupling in mechanism.couplings]
        ),
        curves=tuple(
            (row, index[name], curve_function(mechanism, curve))
            for row, coupling in enumerate(mechanism.couplings)
            for name, curve in coupling.curves
        ),
    )
