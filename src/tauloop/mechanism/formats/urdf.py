"""URDF: a tree of links and joints becomes a `Mechanism`; a side file adds what URDF cannot say.

Links become bodies with their inertia about the link frame's origin, the root link is the immovable base, and every
figure that may be identified or calibrated is a leaf parameter named after its link or joint: ``link_1.mass``,
``link_1.center[0]``, ``link_1.inertia.xx``, ``joint_1.origin.xyz[2]``, ``joint_1.origin.rpy[0]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.expression import ONE
from tauloop.mechanism.formats.urdf_builder import JointExtra, Leaves, make_body, make_joint
from tauloop.mechanism.formats.urdf_side import Side, read_side
from tauloop.mechanism.formats.urdf_tree import UrdfTree, read_urdf_tree
from tauloop.mechanism.model import (
    BASE,
    ZERO_VECTOR,
    Actuator,
    Joint,
    Mechanism,
    Parameter,
    ParameterTable,
    Placement,
    Platform,
    Vector,
)


def load_urdf(
    urdf_path: str | Path, side_path: str | Path | None = None, *, gravity: Sequence[float] | None = None
) -> Mechanism:
    """Read a URDF file and, where there is one, its side file (see `tauloop.mechanism.formats.urdf_side`).

    Where no side file names actuators, each revolute and prismatic joint gets one of ratio 1, with the joint's name,
    effort and speed. What was found on the way (elements that are not used, zero inertias, changed names) is listed
    in the description of the mechanism.

    Args:
        urdf_path: the URDF file.
        side_path: gravity, platform, offsets, friction, rotor inertia and actuators.
        gravity: (3,) m/s^2 in the frame of the root link, when no side file says it.

    Returns:
        The mechanism; its platform is the last link of the chain unless the side file names a body.

    Raises:
        DescriptionError: everything that is wrong, each with its file and line.
    """
    tree = read_urdf_tree(urdf_path)
    side = read_side(side_path, tree) if side_path is not None else Side()
    leaves = Leaves(source=Path(tree.file).name)
    problems: list[Problem] = []
    extras = {joint.name: side.joints.get(joint.name, JointExtra()) for joint in tree.joints}
    bodies = tuple(make_body(link.name, link.inertial, leaves) for link in tree.links if link.name != tree.root)
    joints = tuple(make_joint(joint, tree.root, extras[joint.name], leaves) for joint in tree.joints)
    platform = _platform(tree, joints, side, problems)
    field = _gravity(side, gravity, leaves.parameters, problems)
    if problems:
        raise DescriptionError(problems)
    root = next(link for link in tree.links if link.name == tree.root)
    notes = [f"the root link {tree.root!r} is the immovable base"]
    if root.inertial is not None:
        notes[0] += "; its inertia plays no part"
    return Mechanism(
        name=tree.name,
        description="\n".join(
            [f"Imported from {Path(tree.file).name}.", *(f"- {note}" for note in [*notes, *tree.notes])]
        ),
        parameters=ParameterTable((*leaves.parameters, *side.parameters)),
        gravity=field,
        bodies=bodies,
        joints=joints,
        actuators=_direct_drives(tree) if side.actuators is None else side.actuators,
        platform=platform,
        file=str(urdf_path),
    )


def _direct_drives(tree: UrdfTree) -> tuple[Actuator, ...]:
    return tuple(
        Actuator(name=joint.name, drives=((joint.name, ONE),), force=joint.effort, speed=joint.velocity)
        for joint in tree.joints
        if joint.kind in ("revolute", "prismatic")
    )


def _platform(tree: UrdfTree, joints: tuple[Joint, ...], side: Side, problems: list[Problem]) -> Platform:
    every = tuple(name for joint in joints for name in joint.velocity_names)
    independent = every if side.independent is None else side.independent
    if side.tool is not None:
        return Platform(body=side.tool.body, tool=side.tool, independent=independent)
    parents = {joint.parent for joint in tree.joints}
    ends = [link.name for link in tree.links if link.name not in parents and link.name != tree.root]
    if len(ends) != 1:
        problems.append(
            Problem(
                where="platform",
                what=f"the tree has {len(ends)} ends ({', '.join(ends) or 'no moving link'}), so its platform is open",
                remedy="name it in the side file: `platform: {body: ...}`" if ends else "give a model that moves",
                file=tree.file,
            )
        )
    body = ends[0] if ends else BASE
    return Platform(body=body, tool=Placement(body=body), independent=independent)


def _gravity(side: Side, given: Sequence[float] | None, parameters: list[Parameter], problems: list[Problem]) -> Vector:
    """Gravity of the side file or of the argument: exactly one of the two must say it."""
    if side.gravity is not None and given is None:
        return side.gravity
    if given is None:
        what, remedy = "URDF does not say it", "give `gravity=(0, 0, -9.81)` or write it in the side file"
    elif side.gravity is not None:
        what, remedy = f"given as argument {tuple(given)} and in the side file", "give one of the two"
    elif len(given) != 3 or not np.isfinite(given).all():
        what, remedy = f"{tuple(given)} is not three finite numbers", "give x, y, z in m/s^2"
    else:
        leaves = Leaves(source="argument `gravity`", parameters=parameters)
        x, y, z = (leaves.structural(f"gravity[{k}]", float(given[k]), "m/s^2", "gravity") for k in range(3))
        return x, y, z
    problems.append(Problem(where="gravity", what=what, remedy=remedy))
    return ZERO_VECTOR
