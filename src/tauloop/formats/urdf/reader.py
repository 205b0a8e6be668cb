"""URDF: a tree of links and joints, with the loops between them, becomes a `Mechanism`.

A side file adds properties that URDF lacks, or Gepetto's ``robot.yaml`` closes loops (`loop_side`).

Links become bodies with their inertia about the link frame's origin, and the root link is the
immovable base. Each number that may be identified or calibrated becomes an independent parameter
named after its link or joint: ``link_1.mass``, ``link_1.center[0]``, ``link_1.inertia.xx``,
``joint_1.origin.xyz[2]``, ``joint_1.origin.rpy[0]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import DescriptionError, Problems
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.motors import ChosenMotors, Shift, choose_motors, make_actuators
from tauloop.formats.imported.rod_recognition import finished
from tauloop.formats.options import ImportOptions
from tauloop.formats.urdf.builder import JointExtra, make_coupling, make_joint, make_loop
from tauloop.formats.urdf.parts import UrdfCoupling, UrdfJoint, UrdfTree
from tauloop.formats.urdf.side_files.side import Side, read_side
from tauloop.formats.urdf.tree import read_urdf_tree
from tauloop.mechanism.expression import ZERO, Parameter, ParameterTable, multiply, steps_from
from tauloop.mechanism.model import (
    BASE,
    ZERO_VECTOR,
    Body,
    Coupling,
    Joint,
    Mechanism,
    Placement,
    Platform,
    Vector,
)

#: Gravity, m/s^2, if neither a description nor its side file gives it.
CONVENTIONAL_GRAVITY = (0.0, 0.0, -9.81)
#: A link lighter than this fraction of the heaviest one counts as a frame. Exporters write 1e-9 kg
#: if links must not be massless.
FRAME_MASS_FRACTION = 1e-6


def load_urdf(
    urdf_path: str | Path,
    side_path: str | Path | None = None,
    *,
    gravity: Sequence[float] | None = None,
    options: ImportOptions = ImportOptions(),  # noqa: B008 (frozen)
) -> Mechanism:
    """Read a URDF file and its side file, if there is one (see `side_files`).

    `tauloop.formats.imported.motors` determines the joints with motors. The description of the
    mechanism contains notes on unused elements, zero inertias and changed names.

    Args:
        urdf_path: the URDF file.
        side_path: gravity, platform, offsets, friction, rotor inertia, actuators and loops; or
            Gepetto's robot.yaml.
        gravity: gravity (3,), m/s^2, in the frame of the root link, if no side file specifies it;
            the same as `options.gravity`.
        options: import options.

    Returns:
        The mechanism. If neither the side file nor the options name a platform, it is the last link
        of the chain for a tree. With loops, it is the last link of the file that is not only a
        frame.

    Raises:
        DescriptionError: all problems, each with its file and line.
    """
    tree = read_urdf_tree(urdf_path, options)
    side = read_side(side_path, tree) if side_path is not None else Side(tree=tree)
    if gravity is not None:
        options = replace(options, gravity=gravity)
    return machine_of(side.tree, side, Path(urdf_path), options)


def machine_of(tree: UrdfTree, side: Side, path: Path, options: ImportOptions) -> Mechanism:
    """Return the mechanism of a tree and its side file.

    Raises:
        DescriptionError: the platform is ambiguous, or gravity is not a vector.
    """
    leaves = Leaves(source=Path(tree.file).name, zero_origins=options.origins)
    problems = Problems()
    loops = tuple(dict.fromkeys((*tree.loops, *side.loops)))
    chosen = _motors(tree, side, options, bool(loops), problems)
    extras = {
        joint.name: _extra(joint, side.joints.get(joint.name), tree, leaves)
        for joint in tree.joints
    }
    bodies = tuple(
        Body(
            name=link.name,
            inertia=None if link.inertial is None else leaves.inertia(link.name, link.inertial),
        )
        for link in tree.links
        if link.name != tree.root
    )
    joints = tuple(
        make_joint(joint, tree.root, extras[joint.name], leaves) for joint in tree.joints
    )
    joints += tuple(make_loop(loop, tree.root, leaves) for loop in loops)
    kinds = {joint.name: joint.kind for joint in tree.joints}
    couplings = tuple(
        make_coupling(
            coupling,
            kinds.get(coupling.terms[0][0]) != "prismatic",
            leaves,
        )
        for coupling in tree.couplings
    )
    couplings += side.couplings
    shifts = {
        name: Shift(expression=extra.offset, value=extra.offset_value)
        for name, extra in extras.items()
        if extra.offset != ZERO
    }
    actuators, renamed = make_actuators(chosen, tree, leaves, shifts)
    notes = [*_notes(tree, side), *chosen.notes, *renamed]
    platform = _platform(tree, joints, side, options, notes, problems)
    weightless = _weightless(tree)
    has_weight = len(weightless) < len(_moving_masses(tree))
    if weightless and not has_weight and side.gravity is None:
        tree = replace(tree, gravity=(0.0, 0.0, 0.0))
        notes.append("gravity is zero, because the file switches it off for all moving links")
    field = _gravity(tree, side, options.gravity, leaves.parameters, notes, problems)
    DescriptionError.raise_if_any(problems)
    mechanism = Mechanism(
        name=tree.name,
        parameters=ParameterTable((*leaves.parameters, *side.parameters)),
        gravity=field,
        bodies=bodies,
        joints=joints,
        couplings=couplings,
        losses=side.losses,
        actuators=actuators,
        unstated_motors=chosen.unstated,
        platform=platform,
        solids=tree.solids,
        omitted_forces=_listed_once(
            tree.omitted_forces,
            _omitted_compensations(weightless) if has_weight else (),
            side.omitted_forces,
        ),
        unknown_elements=_listed_once(
            tree.unknown_elements,
            _equal_limits(tree, side, couplings),
            side.unknown_elements,
        ),
        file=str(path),
    )
    has_loops = bool(couplings) or any(joint.is_cut for joint in joints)
    is_open = has_loops and not options.platform_body and side.tool is None
    return finished(mechanism, notes, options, is_platform_open=is_open)


def _listed_once(*lists: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of several lists in order, without duplicates."""
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


def _equal_limits(tree: UrdfTree, side: Side, couplings: Sequence[Coupling]) -> tuple[str, ...]:
    """Return a text for each joint whose equal limits may lock it.

    Gazebo and Drake lock it, but exporters also write zeros if they know no limits. Joints that
    couplings move, and those with limits in the side file, are left out.
    """
    coupled = {coupling.terms[0][0] for coupling in couplings}
    stated = {name for name, extra in side.joints.items() if extra.has_limits}
    return tuple(
        f"<limit> of {joint.name} with the equal ends {joint.locked_at:g}, read as no limits"
        for joint in tree.joints
        if joint.locked_at is not None and joint.name not in coupled | stated
    )


def _notes(tree: UrdfTree, side: Side) -> list[str]:
    """Return the notes of the tree and of the side file."""
    root = next(link for link in tree.links if link.name == tree.root)
    notes = [f"the root link {tree.root!r} is the immovable base"]
    if root.inertial is not None:
        notes[0] += "; its inertia has no effect"
    return [*notes, *tree.notes, *side.notes]


def _motors(
    tree: UrdfTree, side: Side, options: ImportOptions, has_loops: bool, problems: Problems
) -> ChosenMotors:
    """Return the joints with motors."""
    couplings: tuple[Coupling | UrdfCoupling, ...] = (*tree.couplings, *side.couplings)
    followers = {coupling.terms[0][0] for coupling in tree.couplings if coupling.mimics}
    driven_by_others = followers | {
        coupling.terms[0][0] for coupling in couplings if len(coupling.terms) == 1
    }
    is_open = has_loops or any(
        coupling.terms[0][0] not in driven_by_others for coupling in couplings
    )
    return choose_motors(
        tree, options.motors, side.actuators, side.motors, driven_by_others, is_open, problems
    )


def _extra(
    joint: UrdfJoint, extra: JointExtra | None, tree: UrdfTree, leaves: Leaves
) -> JointExtra:
    """Return the properties of a joint from the side file or, without it, from its transmission."""
    extra = extra or JointExtra()
    ratio, inertia = tree.motors.rotors.get(joint.name, (1.0, 0.0))
    if inertia and extra.freedom.inertia is None:
        unit = "kg m^2" if joint.kind == "revolute" else "kg"
        n = leaves.leaf(f"{joint.name}.gear_ratio", ratio, "", "drive")
        rotor = leaves.leaf(f"{joint.name}.rotor_inertia", inertia, unit, "drive")
        extra = replace(
            extra, freedom=replace(extra.freedom, inertia=multiply(multiply(n, n), rotor))
        )
    return extra


def _moving_masses(tree: UrdfTree) -> list[str]:
    """Return the moving links with mass."""
    fixed_links = _welded_to(tree, tree.root)
    with_mass = [
        link.name for link in tree.links if link.inertial is not None and link.inertial.mass > 0.0
    ]
    return [name for name in with_mass if name not in fixed_links]


def _weightless(tree: UrdfTree) -> list[str]:
    """Return the moving links with mass for which gravity is switched off."""
    return [name for name in _moving_masses(tree) if name in tree.weightless]


def _omitted_compensations(links: Sequence[str]) -> tuple[str, ...]:
    """Return an omitted force for each link that has a weight in Tauloop but not in the file."""
    return tuple(
        f"the compensation of the weight of link {name} (the file switches its gravity off)"
        for name in links
    )


def _platform(
    tree: UrdfTree,
    joints: tuple[Joint, ...],
    side: Side,
    options: ImportOptions,
    notes: list[str],
    problems: Problems,
) -> Platform:
    coordinates = tuple(
        name for joint in joints for name in joint.velocity_names if not joint.is_cut
    )
    followers = [coupling.terms[0][0] for coupling in tree.couplings if coupling.mimics]
    leaders = tuple(name for name in coordinates if name not in followers)
    has_loops = any(joint.is_cut for joint in joints)
    is_open = has_loops or len(followers) < len(tree.couplings) + len(side.couplings)
    independent = (
        options.independent or side.independent or tree.independent or (() if is_open else leaders)
    )
    unknown = [name for name in options.independent if name not in coordinates]
    if unknown:
        what = f"there is no coordinate {', '.join(unknown)}"
        problems.add("options.independent", what, f"choose from {', '.join(coordinates)}")
    if options.platform_body:
        body = tree.link_name(options.platform_body)
        if body in (link.name for link in tree.links if link.name != tree.root):
            return Platform(body=body, tool=Placement(body=body), independent=independent)
        what = f"there is no moving link {options.platform_body!r}"
        names = ", ".join(link.name for link in tree.links if link.name != tree.root)
        problems.add("options.platform_body", what, f"use one of {names}", file=tree.file)
    if side.tool is not None:
        return Platform(
            body=side.tool.body, tool=side.tool, independent=independent, payload=side.payload
        )
    fixed_links = _welded_to(tree, tree.root)
    parents = {joint.parent for joint in tree.joints}
    ends = [link.name for link in tree.links if link.name not in parents | {tree.root}]
    ends = [name for name in ends if name not in fixed_links] or ends
    if is_open:
        ends = _last_end(tree, joints, ends)
    elif len(ends) > 1 and set(ends) <= _welded_to(tree, ends[-1]):
        notes.append(
            f"the platform is {ends[-1]}, the last of the frames on its link: {', '.join(ends)}"
        )
        ends = ends[-1:]
    if len(ends) != 1:
        problems.add(
            "platform",
            f"the tree has {len(ends)} leaf links ({', '.join(ends) or 'no moving link'}), "
            "so the platform is ambiguous",
            "name it: `--platform-body NAME`, or `platform: {body: ...}` in the side file"
            if ends
            else "give a model with moving links",
            file=tree.file,
        )
    body = ends[0] if ends else BASE
    return Platform(body=body, tool=Placement(body=body), independent=independent)


def _last_end(tree: UrdfTree, joints: tuple[Joint, ...], ends: Sequence[str]) -> list[str]:
    """Return the last moving end link outside loops and gears, else the last link with mass."""
    coupled = {name for coupling in tree.couplings for name, _ in coupling.terms}
    coupled_links = {joint.child for joint in tree.joints if joint.name in coupled}
    coupled_links |= {
        end.body for joint in joints if joint.is_cut for end in (joint.parent, joint.child)
    }
    uncoupled = [name for name in ends if name not in coupled_links | _welded_to(tree, tree.root)]
    masses = {link.name: link.inertial.mass for link in tree.links if link.inertial is not None}
    threshold = FRAME_MASS_FRACTION * max(masses.values(), default=0.0)
    not_frames = [name for name, mass in masses.items() if mass > threshold]
    return (uncoupled or [name for name in not_frames if name != tree.root] or list(ends))[-1:]


def _welded_to(tree: UrdfTree, link: str) -> set[str]:
    """Return the links connected to a link by fixed joints, including that link."""
    return set(
        steps_from(
            link, ((joint.parent, joint.child) for joint in tree.joints if joint.kind == "fixed")
        )
    )


def _gravity(
    tree: UrdfTree,
    side: Side,
    components: Sequence[float] | None,
    parameters: list[Parameter],
    notes: list[str],
    problems: Problems,
) -> Vector:
    """Return the gravity of the side file or the argument; otherwise the conventional one.

    This is the only physical value with a default. Every tool that reads URDF assumes that z points
    up, so the format implies it.
    """
    source, status = "argument `gravity`", "given"
    if side.gravity is not None and components is None:
        return side.gravity
    if components is None and tree.gravity is not None:
        components, source = tree.gravity, Path(tree.file).name
    if components is None:
        convention = side.convention or (
            "the tools that read its loops" if tree.loops or tree.couplings else "URDF"
        )
        components = CONVENTIONAL_GRAVITY
        source = f"convention of {convention}; the file does not state it"
        status = "chosen"
        notes.append(f"gravity is 9.81 m/s^2 along -z, the {source}")
    if side.gravity is not None:
        what = f"given as argument {tuple(components)} and in the side file"
        remedy = "give only one of them"
    elif len(components) != 3 or not np.isfinite(components).all():
        what = f"{tuple(components)} are not three finite numbers"
        remedy = "give x, y, z in m/s^2"
    else:
        leaves = Leaves(source=source, status=status, parameters=parameters)
        return leaves.vector("gravity", components, "m/s^2", "gravity")
    problems.add("gravity", what, remedy)
    return ZERO_VECTOR
