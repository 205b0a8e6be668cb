"""MJCF (MuJoCo): bodies, joints, equality constraints and actuators become a `Mechanism`.

Each number that may be identified or calibrated becomes an independent parameter named after its
body or joint: ``arm.mass``, ``arm.center[0]``, ``arm.at[2]``, ``elbow.inertia`` (armature),
``elbow.friction.viscous``. The reader supports

- the tree with its default classes, inertias (from solids if there is no ``<inertial>``), limits,
  springs, losses and rotors,
- ``connect``, ``weld`` and ``joint`` equalities,
- tendons of joints and of sites with their losses and springs,
- motors on joints and tendons, and
- the extensions that `mjcf.writer` stores in ``<custom>``.

Constraints are hard here but soft in MuJoCo, so ``solref`` and similar settings have no effect. The
machine's description lists everything else in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tauloop.common.errors import DescriptionError
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.rod_recognition import finished
from tauloop.formats.mjcf.constraints import ConstraintReader
from tauloop.formats.mjcf.geoms import GeomReader
from tauloop.formats.mjcf.include import with_includes
from tauloop.formats.mjcf.keyframes import keyframe_names, started_at
from tauloop.formats.mjcf.refused import refuse_bounds, refuse_misplaced, refuse_unsupported_forces
from tauloop.formats.mjcf.settings import ACTUATORS, CUSTOM_PREFIX, MjcfReader
from tauloop.formats.mjcf.tree import GENERATORS, Bodies, TreeReader
from tauloop.formats.options import ImportOptions
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.xml.foreign_elements import inventory, refuse
from tauloop.formats.xml.nodes import XmlNode, read_xml, unused_notes
from tauloop.mechanism.expression import ONE, ParameterTable, steps_from
from tauloop.mechanism.model import (
    BASE,
    ZERO_VECTOR,
    Actuator,
    Coupling,
    Joint,
    Mechanism,
    Platform,
    Vector,
)
from tauloop.mechanism.poses import FramePose
from tauloop.mechanism.suggestions import listing, suggestion

#: Default gravity of an MJCF file, m/s^2 (MuJoCo's XML reference, option/gravity).
_GRAVITY = (0.0, 0.0, -9.81)
#: Elements and attributes for drawing, collisions or MuJoCo's solver. They do not describe the
#: machine.
_VISUAL_ELEMENTS = ("geom", "mesh", "material")
_OTHER_SECTIONS = (
    "visual",
    "statistic",
    "contact",
    "sensor",
    "size",
    "keyframe",
    "custom",
    "extension",
)
_OTHER_ELEMENTS = ("camera", "light", "texture", "hfield", "skin", "model", *_OTHER_SECTIONS)
_OTHER_ATTRIBUTES = frozenset(
    "name class group rgba user material margin solref solimp solreflimit solimplimit "
    "solreffriction solimpfriction size type sleep ctrlrange ctrllimited fromto model".split()
)
_READ_ELEMENTS = frozenset(
    "body frame joint inertial site flag compiler option connect weld flex flexvert flexstrain "
    "tendon fixed spatial pulley".split()
).union(ACTUATORS)
_READ_SECTIONS = (
    "asset",
    "compiler",
    "option",
    "default",
    "worldbody",
    "equality",
    "tendon",
    "actuator",
)


def load_mjcf(path: str | Path, *, options: ImportOptions = ImportOptions()) -> Mechanism:  # noqa: B008 (frozen)
    """Read an MJCF file.

    Args:
        path: the file; MuJoCo's ``<replicate>`` and similar elements must have been expanded.
        options: import options; the platform may also be a site, which is then the tool.

    Returns:
        The mechanism; its description lists the omitted parts. The platform is the last body with
        mass unless the options name one.

    Raises:
        DescriptionError: all problems, each with its file and line.
    """
    root = read_xml(path)
    file = str(path)
    if root.tag != "mujoco":
        what = f"the root element is <{root.tag}>, not <mujoco>"
        raise DescriptionError.of(root.tag, what, "give an MJCF file", file=file, line=root.line)
    root = with_includes(root, Path(path), options.package_folders)
    reader = MjcfReader(file, root)
    leaves = Leaves(source=Path(path).name)
    geoms = GeomReader(reader, root)
    tree = TreeReader(reader, leaves, geoms, root)
    for node in root.children:
        if node.tag in GENERATORS:
            what = f"<{node.tag}> is not expanded"
            reader.problem(
                node, node.tag, what, "let MuJoCo save the compiled model: mj_saveLastXML"
            )
    elements = inventory("mjcf", root)
    rejected = [
        item
        for item in elements.refused
        if item.node.tag not in GENERATORS and item.parent != "equality"
    ]
    refuse(reader, tuple(rejected), "write it as connect, weld, joint or tendon of <equality>")
    refuse_misplaced(reader, root)
    refuse_unsupported_forces(reader, root)
    for world in root.all("worldbody"):
        bodies = tree.read(world)
    bodies = tree.bodies
    refuse_bounds(reader, root, bodies.heaviest, tree.largest_length)
    is_generated = any(item.node.tag in GENERATORS for item in elements.refused)
    if not bodies.bodies and not is_generated:
        reader.problem(root, "worldbody", "there is no body", "give a model with moving bodies")
    constraints = ConstraintReader(reader, leaves, tree)
    constraints.read_tendons(root)
    loops, couplings = constraints.equality(root)
    forces = tuple(reader.omitted)
    actuators = _motors(reader, root, constraints.actuators(root), bodies.joints, options.motors)
    actuators = constraints.with_transmitted_limits(actuators)
    if options.motors:
        reader.omitted[:] = forces  # the caller's motors replace all actuators
    possible_motors = _unstated(reader, root, bodies.joints)
    tendon_elements = constraints.tendon_lengths()
    gravity_factor = _gravity_factor(reader, bodies, leaves, actuators)
    gravity = _gravity(reader, root, options, leaves, gravity_factor)
    joints = started_at(reader, root, bodies.joints, bodies.kinds, options.keyframe)
    platform = _platform(reader, root, tree, (*bodies.joints, *loops), couplings, options)
    reader.raise_any()
    for names, what in (
        (reader.massless, "bodies without mass"),
        (reader.solids, "mass and inertia follow from solid geoms"),
    ):
        if names:
            reader.notes.append(f"{what}: {', '.join(names)}")
    if options.keyframe:
        reader.notes.append(f"the start pose is keyframe {options.keyframe}")
    elif keys := keyframe_names(root):
        reader.notes.append(f"keyframes available as start: {', '.join(keys)}")
    notes = [*reader.notes, *geoms.notes(), *_unread(reader, root)]
    mechanism = Mechanism(
        name=identifier(root.attributes.get("model", "").replace(".", "_")) or "mujoco",
        parameters=ParameterTable(tuple(leaves.parameters)),
        gravity=gravity,
        bodies=(*bodies.bodies, *tendon_elements.bodies),
        joints=(*joints, *tendon_elements.joints, *loops),
        couplings=(*couplings, *tendon_elements.couplings),
        losses=tuple(tendon_elements.losses),
        rods=tuple(tendon_elements.rods),
        outputs=tuple(tendon_elements.outputs),
        actuators=actuators,
        unstated_motors=() if actuators else possible_motors,
        platform=platform,
        solids=tuple(geoms.solids),
        omitted_forces=tuple(dict.fromkeys((*reader.omitted, *reader.texts("omitted_forces")))),
        unknown_elements=(*elements.unknown_texts(), *reader.texts("unknown_elements")),
        file=file,
    )
    is_open = (bool(couplings) or bool(loops)) and not (
        options.platform_body or reader.listed("platform")
    )
    return finished(mechanism, notes, options, is_platform_open=is_open)


def _motors(
    reader: MjcfReader,
    root: XmlNode,
    actuators: tuple[Actuator, ...],
    joints: Sequence[Joint],
    names: Sequence[str],
) -> tuple[Actuator, ...]:
    """Return the actuators of a file, or those with the caller's names.

    The name of a joint gives it a motor of ratio 1.

    Args:
        reader: collects problems.
        root: the element ``<mujoco>``.
        actuators: actuators of the file.
        joints: joints of the file.
        names: names of actuators or joints from the caller; empty for all actuators.
    """
    if not names:
        return actuators
    scalar_joints = [joint.name for joint in joints if joint.kind in ("revolute", "prismatic")]
    known = {name: Actuator(name=name, drives=((name, ONE),)) for name in scalar_joints}
    known |= {actuator.name: actuator for actuator in actuators}
    chosen: dict[str, Actuator] = {}
    for word in names:
        name = word if word in known else identifier(word)
        if name not in known:
            what = f"there is no motor {word!r}, and no such joint that rotates or slides"
            reader.problem(
                root, "motors", what, suggestion(name, known) or f"there are {listing(known)}"
            )
        elif name in chosen:
            reader.problem(root, "motors", f"{word!r} is named twice", "name it once")
        else:
            chosen[name] = known[name]
    return tuple(chosen.values())


def _unstated(reader: MjcfReader, root: XmlNode, joints: Sequence[Joint]) -> tuple[str, ...]:
    """Return joints that may have motors, from a file written by Tauloop."""
    scalar_joints = [joint.name for joint in joints if joint.kind in ("revolute", "prismatic")]
    names = reader.listed("unstated_motors")
    unknown = [name for name in names if name not in scalar_joints]
    if unknown:
        what = f"there is no joint {', '.join(unknown)} that rotates or slides"
        reader.problem(root, "custom.unstated_motors", what, f"there are {listing(scalar_joints)}")
    return names


def _gravity_factor(
    reader: MjcfReader, bodies: Bodies, leaves: Leaves, actuators: Sequence[Actuator]
) -> float:
    """Return the factor of gravity: 1 - gravcomp if all bodies have the same ``gravcomp``, else 1.

    Compensation of only some bodies, or by different fractions, is listed as an omitted force. If
    actuators supply the compensation, they carry the weight, so the factor is 1.
    """
    pairs = (
        (joint.parent.body, joint.child.body) for joint in bodies.joints if joint.kind == "fixed"
    )
    fixed_bodies = set(steps_from(BASE, pairs))
    moving = [
        body for body in bodies.bodies if body.inertia is not None and body.name not in fixed_bodies
    ]
    moving_masses = [
        body.name
        for body in moving
        if body.inertia is not None and leaves.value(body.inertia.mass) > 0.0
    ]
    fractions = [bodies.compensated.get(name, 0.0) for name in moving_masses]
    driven = {name for actuator in actuators for name, _ in actuator.drives}
    if any(fractions) and bodies.commanded == {*bodies.kinds} <= driven:
        reader.notes.append(
            "gravity is not reduced by gravcomp, because the actuators supply it (actuatorgravcomp)"
        )
        return 1.0
    if len(set(fractions)) == 1 and not (any(fractions) and bodies.commanded):
        if fractions[0]:
            reader.notes.append(
                f"gravity is reduced to {1.0 - fractions[0]:g} of the file's by "
                f"gravcomp={fractions[0]:g} on all bodies"
            )
        return 1.0 - fractions[0]
    for name, fraction in zip(moving_masses, fractions, strict=True):
        if fraction:
            reader.omitted.append(
                f"the compensation of the weight of body {name} (gravcomp={fraction:g})"
            )
    return 1.0


def _gravity(
    reader: MjcfReader, root: XmlNode, options: ImportOptions, leaves: Leaves, factor: float
) -> Vector:
    components: Sequence[float] | None = None
    for node in root.all("option"):
        reader.use(node, "gravity")
        if "gravity" in node.attributes:
            components = reader.vector(node, "option", "gravity", _GRAVITY)
        flag = node.first("flag")
        if flag is not None and reader.word(flag, "gravity") == "disable":
            components = (0.0, 0.0, 0.0)
    if components is not None and options.gravity is not None:
        what = (
            f"given both in the options {tuple(options.gravity)} and in the file "
            f"{tuple(components)}"
        )
        reader.problem(root, "gravity", what, "remove it from the options")
    if components is None:
        components = _GRAVITY if options.gravity is None else options.gravity
    gravity = np.array(components)
    if gravity.shape != (3,) or not np.isfinite(gravity).all():
        reader.problem(
            root,
            "gravity",
            f"{gravity.tolist()} are not three finite numbers",
            "give x, y, z in m/s^2",
        )
        return ZERO_VECTOR
    return leaves.vector("gravity", factor * gravity, "m/s^2", "gravity")


def _platform(
    reader: MjcfReader,
    root: XmlNode,
    tree: TreeReader,
    joints: tuple[Joint, ...],
    couplings: tuple[Coupling, ...],
    options: ImportOptions,
) -> Platform:
    bodies: Bodies = tree.bodies
    coordinates = tuple(
        name for joint in joints if not joint.is_cut for name in joint.velocity_names
    )
    # recognized rods remove coordinates
    names_in_file = reader.listed("independent") if options.rods is None else ()
    for where, names in (
        ("options.independent", options.independent),
        ("custom.independent", names_in_file),
    ):
        unknown = [name for name in names if name not in coordinates]
        if unknown:
            what = f"there is no coordinate {', '.join(unknown)}"
            reader.problem(root, where, what, f"choose from {', '.join(coordinates)}")
    body = bodies.last
    if not body and bodies.bodies:
        body = bodies.bodies[-1].name
    pose = FramePose()
    platform_name = options.platform_body or " ".join(reader.listed("platform"))
    if platform_name in bodies.sites:
        body, pose = bodies.sites[platform_name]
    elif platform_name:
        body = bodies.body_names.get(platform_name, "")
        if not body or platform_name == "world":
            remedy = f"use one of {', '.join([*bodies.body_names, *bodies.sites])}"
            where = "options.platform_body" if options.platform_body else "custom.platform"
            reader.problem(root, where, f"{platform_name!r} is not a body that moves", remedy)
    is_open = bool(couplings) or any(joint.is_cut for joint in joints)
    default = () if is_open else coordinates
    independent = options.independent or names_in_file or default
    return Platform(
        body=body,
        tool=tree.placement(body, pose, "tool"),
        independent=independent,
        payload=reader.payload,
    )


def _unread(reader: MjcfReader, root: XmlNode) -> list[str]:
    """Return notes with the counts of unused elements and attributes that may affect motion."""
    elements: Counter[str] = Counter()
    attributes: Counter[str] = Counter()

    def visit(node: XmlNode) -> None:
        for key in node.attributes:
            if key not in _OTHER_ATTRIBUTES and not reader.is_used(node, key):
                attributes[f"{key} of {node.tag}"] += 1
        for child in node.children:
            if child.tag in _OTHER_ELEMENTS:
                elements[child.tag] += 1
            elif child.tag not in _READ_ELEMENTS.union(_VISUAL_ELEMENTS, ("default", "freejoint")):
                elements[f"unknown {child.tag}"] += 1
            elif child.tag in _READ_ELEMENTS and child.attributes.get("active") != "false":
                visit(child)

    for section in root.children:
        if section.tag in _READ_SECTIONS and section.tag != "default":
            visit(section)
        elif section.tag == "custom" and all(
            x.attributes.get("name", "").startswith(CUSTOM_PREFIX) for x in section.children
        ):
            continue
        elif section.tag not in ("default", "keyframe"):
            elements[section.tag] += 1
    return unused_notes(elements, attributes)
