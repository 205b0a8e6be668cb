"""SDF (Gazebo): links, joints and loops become a `Mechanism`, as in a URDF.

A side file, in the same form as for URDF, adds properties that SDF lacks
(`formats.urdf.side_files`). All joints are at zero in the pose of the file; ``offsets`` in the side
file are their coordinates at this pose. Motors follow from effort limits as in a URDF
(`formats.imported.motors`); in SDF, a joint without ``<effort>`` has no effort limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf.include import with_included_models
from tauloop.formats.sdf.model import (
    GEAR_RATIO,
    ROTOR,
    SdfJoint,
    SdfMimic,
    SdfReader,
    descend,
)
from tauloop.formats.sdf.tree import child_frame, origin_element, urdf_elements
from tauloop.formats.urdf.parts import UrdfCoupling, UrdfJoint, UrdfReader, UrdfTree
from tauloop.formats.urdf.reader import machine_of
from tauloop.formats.urdf.side_files.side import Side, read_side
from tauloop.formats.urdf.tree import tree_of
from tauloop.formats.xml.nodes import XmlNode
from tauloop.formats.xml.xacro import read_source
from tauloop.mechanism.model import Mechanism


def load_sdf(
    path: str | Path,
    side_path: str | Path | None = None,
    *,
    options: ImportOptions = ImportOptions(),  # noqa: B008 (frozen)
) -> Mechanism:
    """Read the model of an SDF file and its side file, if there is one.

    Args:
        path: the file with the machine; `options.model_name` selects one of several machines.
        side_path: gravity, platform, offsets, friction, rotor inertia and actuators.
        options: import options.

    Returns:
        The mechanism; its description contains the findings of the import.

    Raises:
        DescriptionError: all problems, each with its file and line.
    """
    tree = read_sdf_tree(path, options)
    side = read_side(side_path, tree) if side_path is not None else Side(tree=tree)
    return machine_of(side.tree, side, Path(path), options)


def read_sdf_tree(path: str | Path, options: ImportOptions = ImportOptions()) -> UrdfTree:  # noqa: B008 (frozen)
    """Return the model of a file as plain numbers.

    Args:
        path: the file, or a xacro of one.
        options: `model_name` selects the model if the file has several; `motors` and
            `independent` name joints that should not close a loop.

    Raises:
        DescriptionError: all problems, each with its line.
    """
    source = read_source(path, options)
    files = with_included_models(source.root, Path(path), options.package_folders)
    reader = SdfReader(source.file, options.model_name, files.unread)
    model = reader.model(files.root)
    reader.raise_any()
    if model is None:
        raise AssertionError("there is no model, but no problem was reported")
    spanning = urdf_elements(reader, model, {*options.motors, *options.independent})
    reader.raise_any()
    tree = tree_of(spanning.robot, source.file, model.largest_length, options.package_folders)
    origins = UrdfReader(source.file, model.largest_length)
    pairs = tuple(zip(tree.joints, spanning.joints, strict=True))
    joints = tuple(
        _with_sdf_properties(reader, origins, _with_sdf_kind(reader, joint, sdf), sdf)
        for joint, sdf in pairs
    )
    scalar = [(joint, sdf) for joint, sdf in pairs if joint.kind in ("revolute", "prismatic")]
    rotors = {
        joint.name: _rotor(reader, sdf)
        for joint, sdf in scalar
        if sdf.node.first(ROTOR) is not None
    }
    names = {sdf.name: joint.name for joint, sdf in pairs}
    couplings = tuple(_coupling(mimic, spanning.joints, names) for mimic in model.mimics)
    reader.raise_any()
    tree_notes = (note for note in tree.notes if not note.startswith("not used: "))
    cut_efforts = tuple(
        _effort(joint) for joint in model.joints if joint.axes and joint.name not in names
    )
    return replace(
        tree,
        joints=joints,
        couplings=(*tree.couplings, *couplings),
        motors=replace(tree.motors, rotors={**tree.motors.rotors, **rotors}),
        cut_efforts=cut_efforts,
        gravity=model.gravity,
        notes=(*source.notes, *model.notes, *spanning.notes, *tree_notes),
        weightless=tuple(tree.link_name(name) for name in model.weightless),
        omitted_forces=(*model.omitted_forces, *spanning.omitted_forces),
        unknown_elements=model.unknown_elements,
    )


def _with_sdf_properties(
    reader: SdfReader, origins: UrdfReader, joint: UrdfJoint, sdf: SdfJoint
) -> UrdfJoint:
    """Return a joint with the properties that URDF lacks: frame on the child, spring and start."""
    frame = child_frame(sdf)
    element = XmlNode(
        tag="joint", attributes={}, line=sdf.node.line, children=[origin_element(frame, sdf.node)]
    )
    xyz, rpy = origins.origin(element, joint.name)
    joint = replace(joint, child_xyz=xyz, child_rpy=rpy)
    if joint.kind not in ("revolute", "prismatic"):
        return joint
    return _with_spring(reader, joint, sdf, "axis")


def _with_spring(reader: SdfReader, joint: UrdfJoint, sdf: SdfJoint, tag: str) -> UrdfJoint:
    """Return a revolute or prismatic joint with the spring and start value of SDF's axis."""
    axis = sdf.node.first(tag)
    dynamics = None if axis is None else axis.first("dynamics")
    stiffness = (
        0.0
        if dynamics is None
        else reader.child_number(dynamics, joint.name, "spring_stiffness", 0.0)
    )
    if stiffness < 0.0:
        reader.problem(
            sdf.node,
            joint.name,
            f"the stiffness of the spring is {stiffness:g}",
            "give zero or a positive number",
        )
    return replace(
        joint,
        stiffness=stiffness,
        rest=0.0
        if dynamics is None
        else reader.child_number(dynamics, joint.name, "spring_reference", 0.0),
        start=0.0
        if axis is None
        else reader.child_number(axis, joint.name, "initial_position", 0.0),
    )


def _rotor(reader: SdfReader, sdf: SdfJoint) -> tuple[float, float]:
    """Return gear ratio and rotor inertia of a joint, from Drake's elements."""
    inertia = reader.child_number(sdf.node, sdf.name, ROTOR, 0.0)
    if inertia < 0.0:
        reader.problem(
            sdf.node,
            sdf.name,
            f"the inertia of the rotor is {inertia:g}",
            "give zero or a positive number",
        )
    return reader.child_number(sdf.node, sdf.name, GEAR_RATIO, 1.0), inertia


def _coupling(
    mimic: SdfMimic, joints: Sequence[SdfJoint], names: Mapping[str, str]
) -> UrdfCoupling:
    """Return a gear between coordinates: q_follower - multiplier q_leader = offset."""
    known = {joint.name: joint for joint in joints}

    def coordinate(end: tuple[str, int]) -> str:
        joint, index = end
        return f"{names[joint]}{known[joint].coordinate(index)}"

    follower = coordinate(mimic.follower)
    terms: tuple[tuple[str, float], ...] = (
        (follower, 1.0),
        (coordinate(mimic.leader), -mimic.multiplier),
    )
    if mimic.multiplier == 0.0:  # the joint is held at the offset
        terms = terms[:1]
    return UrdfCoupling(
        name=f"{follower.replace('.', '_')}_mimic",
        terms=terms,
        offset=mimic.offset,
        mimics=mimic.mimics,
    )


def _with_sdf_kind(reader: SdfReader, joint: UrdfJoint, sdf: SdfJoint) -> UrdfJoint:
    """Return a joint of a kind that URDF lacks, in its frame.

    A joint that rotates or slides has no effort limit without ``<effort>``. For an axis of a
    universal joint, a missing effort means that it is unknown, because most universal joints are
    passive.
    """
    if sdf.kind == "universal":
        axis_joints = [_axis_joint(reader, joint, sdf, tag) for tag in ("axis", "axis2")]
        axis_joints.sort(key=lambda axis_joint: axis_joint.name)
        return replace(joint, kind="universal", axes=("x", "y"), axis_joints=tuple(axis_joints))
    if sdf.kind == "spherical":
        return replace(joint, kind="spherical")
    return replace(joint, effort=math.inf) if joint.effort is None else joint


def _axis_joint(reader: SdfReader, joint: UrdfJoint, sdf: SdfJoint, tag: str) -> UrdfJoint:
    """Return the rotation about one axis of a universal joint, with the properties of the axis."""
    limit = descend(sdf.node, tag, "limit")
    dynamics = descend(sdf.node, tag, "dynamics")

    def limit_value(key: str) -> float | None:
        is_stated = limit is not None and sdf.limit(key, tag) is not None
        return (
            reader.child_number(limit, sdf.name, key, 0.0)
            if limit is not None and is_stated
            else None
        )

    def loss_value(key: str) -> float:
        value = 0.0 if dynamics is None else reader.child_number(dynamics, sdf.name, key, 0.0)
        if value < 0.0:
            remedy = "give zero or a positive number"
            reader.problem(sdf.node, sdf.name, f"{key} is {value:g}", remedy)
        return value

    lower, upper = limit_value("lower"), limit_value("upper")
    velocity = limit_value("velocity")
    if lower is not None and upper is not None and lower > upper:
        what = f"lower limit {lower:g} is above upper limit {upper:g}"
        reader.problem(sdf.node, sdf.name, what, "swap the two limits")
    axis_joint = replace(
        joint,
        name=f"{joint.name}{sdf.coordinate(('axis', 'axis2').index(tag))}",
        kind="revolute",
        lower=-math.inf if lower is None else lower,
        upper=math.inf if upper is None else upper,
        effort=limit_value("effort"),
        velocity=velocity or math.inf,
        damping=loss_value("damping"),
        friction=loss_value("friction"),
    )
    return _with_spring(reader, axis_joint, sdf, tag)


def _effort(joint: SdfJoint) -> float:
    """Return the effort limit of a joint; a missing or negative one is infinite in SDF."""
    text = joint.limit("effort")
    try:
        return math.inf if text is None else float(text)
    except ValueError:
        return math.inf
