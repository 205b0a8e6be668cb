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
from tauloop.formats.xml.nodes import XmlNode, read_xml, unread
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
    listed = inventory("mjcf", root)
    others = [
        item
        for item in listed.refused
        if item.node.tag not in GENERATORS and item.parent != "equality"
    ]
    refuse(reader, tuple(others), "write it as connect, weld, joint or tendon of <equality>")
    refuse_misplaced(reader, root)
    refuse_unsupported_forces(reader, root)
    for world in root.all("worldbody"):
        bodies = tree.read(world)
    bodies = tree.bodies
    refuse_bounds(reader, root, bodies.heaviest, tree.largest_length)
    is_generated = any(item.node.tag in GENERATORS for item in listed.refused)
    if not bodies.bodies and not is_generated:
        reader.problem(root, "worldbody", "there is no body", "give a model with moving bodies")
    constraints = ConstraintReader(reader, leaves, tree)
    constraints.read_tendons(root)
    loops, couplings = constraints.equality(root)
    forces = tuple(reader.omitted)
    actuators = _motors(reader, root, constraints.actuators(root), bodies.joints, options.motors)
    if options.motors:
        reader.omitted[:] = forces  # the caller's motors replace all actuators
    unstated = _unstated(reader, root, bodies.joints)
    lengths = constraints.tendon_lengths()
    share = _weight_share(reader, bodies, leaves, actuators)
    gravity = _gravity(reader, root, options, leaves, share)
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
        bodies=(*bodies.bodies, *lengths.bodies),
        joints=(*joints, *lengths.joints, *loops),
        couplings=(*couplings, *lengths.couplings),
        losses=tuple(lengths.losses),
        rods=tuple(lengths.rods),
        outputs=tuple(lengths.outputs),
        actuators=actuators,
        unstated_motors=() if actuators else unstated,
        platform=platform,
        solids=tuple(geoms.solids),
        omitted_forces=tuple(dict.fromkeys((*reader.omitted, *reader.texts("omitted_forces")))),
        unknown_elements=(*listed.unknown_texts(), *reader.texts("unknown_elements")),
        file=file,
    )
    is_open = (bool(couplings) or bool(loops)) and not (
        options.platform_body or reader.listed("platform")
    )
    return finished(mechanism, notes, options, is_platform_open=is_open)


def _motors(
    reader: MjcfReader,
    root: XmlNode,
    stated: tuple[Actuator, ...],
    joints: Sequence[Joint],
    wanted: Sequence[str],
) -> tuple[Actuator, ...]:
    """Return the actuators of a file, or those that the caller names.

    A name is that of an actuator of the file, or of a joint, which then gets a motor of ratio 1.
    """
    if not wanted:
        return stated
    scalar = [joint.name for joint in joints if joint.kind in ("revolute", "prismatic")]
    known = {name: Actuator(name=name, drives=((name, ONE),)) for name in scalar}
    known |= {actuator.name: actuator for actuator in stated}
    chosen: dict[str, Actuator] = {}
    for word in wanted:
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
    scalar = [joint.name for joint in joints if joint.kind in ("revolute", "prismatic")]
    names = reader.listed("unstated_motors")
    unknown = [name for name in names if name not in scalar]
    if unknown:
        what = f"there is no joint {', '.join(unknown)} that rotates or slides"
        reader.problem(root, "custom.unstated_motors", what, f"there are {listing(scalar)}")
    return names


def _weight_share(
    reader: MjcfReader, bodies: Bodies, leaves: Leaves, actuators: Sequence[Actuator]
) -> float:
    """Return the fraction of gravity that remains if all bodies have equal ``gravcomp``, else 1.

    Compensation of only some bodies, or by different fractions, is listed as an omitted force. If
    actuators supply the compensation, they carry the weight, so gravity remains unchanged.
    """
    pairs = (
        (joint.parent.body, joint.child.body) for joint in bodies.joints if joint.kind == "fixed"
    )
    resting = set(steps_from(BASE, pairs))
    moving = [
        body for body in bodies.bodies if body.inertia is not None and body.name not in resting
    ]
    heavy = [
        body.name
        for body in moving
        if body.inertia is not None and leaves.value(body.inertia.mass) > 0.0
    ]
    shares = [bodies.compensated.get(name, 0.0) for name in heavy]
    driven = {name for actuator in actuators for name, _ in actuator.drives}
    if any(shares) and bodies.commanded == {*bodies.kinds} <= driven:
        reader.notes.append(
            "gravity is not reduced by gravcomp, because the actuators supply it (actuatorgravcomp)"
        )
        return 1.0
    if len(set(shares)) == 1 and not (any(shares) and bodies.commanded):
        if shares[0]:
            reader.notes.append(
                f"gravity is reduced to {1.0 - shares[0]:g} of the file's by gravcomp={shares[0]:g} on all bodies"
            )
        return 1.0 - shares[0]
    for name, share in zip(heavy, shares, strict=True):
        if share:
            reader.omitted.append(
                f"the compensation of the weight of body {name} (gravcomp={share:g})"
            )
    return 1.0


def _gravity(
    reader: MjcfReader, root: XmlNode, options: ImportOptions, leaves: Leaves, share: float
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
        what = f"given both in the options {tuple(options.gravity)} and in the file {tuple(components)}"
        reader.problem(root, "gravity", what, "remove it from the options")
    if components is None:
        components = _GRAVITY if options.gravity is None else options.gravity
    field = np.array(components)
    if field.shape != (3,) or not np.isfinite(field).all():
        reader.problem(
            root,
            "gravity",
            f"{field.tolist()} are not three finite numbers",
            "give x, y, z in m/s^2",
        )
        return ZERO_VECTOR
    return leaves.vector("gravity", share * field, "m/s^2", "gravity")


def _platform(
    reader: MjcfReader,
    root: XmlNode,
    tree: TreeReader,
    joints: tuple[Joint, ...],
    couplings: tuple[Coupling, ...],
    options: ImportOptions,
) -> Platform:
    bodies: Bodies = tree.bodies
    every = tuple(name for joint in joints if not joint.is_cut for name in joint.velocity_names)
    # recognized rods remove coordinates
    named = reader.listed("independent") if options.rods is None else ()
    for where, names in (
        ("options.independent", options.independent),
        ("custom.independent", named),
    ):
        unknown = [name for name in names if name not in every]
        if unknown:
            what = f"there is no coordinate {', '.join(unknown)}"
            reader.problem(root, where, what, f"choose from {', '.join(every)}")
    body, pose = bodies.last or (bodies.bodies[-1].name if bodies.bodies else ""), FramePose()
    wanted = options.platform_body or " ".join(reader.listed("platform"))
    if wanted in bodies.sites:
        body, pose = bodies.sites[wanted]
    elif wanted:
        body = bodies.body_names.get(wanted, "")
        if not body or wanted == "world":
            remedy = f"use one of {', '.join([*bodies.body_names, *bodies.sites])}"
            where = "options.platform_body" if options.platform_body else "custom.platform"
            reader.problem(root, where, f"{wanted!r} is not a body that moves", remedy)
    is_open = bool(couplings) or any(joint.is_cut for joint in joints)
    independent = options.independent or named or (() if is_open else every)
    return Platform(
        body=body,
        tool=tree.placement(body, pose, "tool"),
        independent=independent,
        payload=reader.payload,
    )


def _unread(reader: MjcfReader, root: XmlNode) -> list[str]:
    """Return counts of unused elements and attributes that may affect motion."""
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
    return unread(elements, attributes)
