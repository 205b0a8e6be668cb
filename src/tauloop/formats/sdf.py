"""SDF (Gazebo): links, joints and the loops between them become a `Mechanism`, as those of a URDF do.

A side file of a URDF's form adds what SDF cannot say (`tauloop.formats.urdf_side`); ``offsets`` there are those of the
joints, which are all at zero in the pose of the file. Joints whose effort is limited to zero are passive.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tauloop.formats.options import ImportOptions
from tauloop.formats.sdf_model import SdfJoint, SdfReader
from tauloop.formats.sdf_tree import urdf_elements
from tauloop.formats.urdf import machine_of
from tauloop.formats.urdf_parts import UrdfJoint, UrdfTree
from tauloop.formats.urdf_side import Side, read_side
from tauloop.formats.urdf_tree import tree_of
from tauloop.formats.xml_nodes import read_xml
from tauloop.mechanism.model import Mechanism


def load_sdf(
    path: str | Path,
    side_path: str | Path | None = None,
    *,
    options: ImportOptions = ImportOptions(),  # noqa: B008 (frozen)
) -> Mechanism:
    """Read the model of an SDF file and, where there is one, its side file.

    Args:
        path: the file, with one model, in a world or alone.
        side_path: gravity, platform, offsets, friction, rotor inertia and actuators.
        options: choices of whoever imports.

    Returns:
        The mechanism, its description with what was found on the way.

    Raises:
        DescriptionError: everything that is wrong, each with its file and line.
    """
    tree = read_sdf_tree(path)
    side = read_side(side_path, tree) if side_path is not None else Side(tree=tree)
    return machine_of(tree, side, Path(path), options)


def read_sdf_tree(path: str | Path) -> UrdfTree:
    """The model of a file as plain numbers.

    Raises:
        DescriptionError: everything that is wrong, each with its line.
    """
    reader = SdfReader(str(path))
    model = reader.model(read_xml(path))
    reader.raise_any()
    if model is None:
        raise AssertionError("a file without a model has a problem that was noted")
    spanned = urdf_elements(reader, model)
    reader.raise_any()
    tree = tree_of(spanned.robot, str(path))
    joints = tuple(_of_kind(joint, sdf) for joint, sdf in zip(tree.joints, spanned.joints, strict=True))
    efforts = {joint.name: sdf.limit("effort") for joint, sdf in zip(joints, spanned.joints, strict=True)}
    motors = None
    if any(_is_zero(effort) for effort in efforts.values()):
        motors = tuple(
            joint.name
            for joint in joints
            if joint.kind in ("revolute", "prismatic") and not _is_zero(efforts[joint.name])
        )
    notes = (*model.notes, *spanned.notes, *tree.notes)
    return replace(tree, joints=joints, motors=motors, gravity=model.gravity, notes=notes)


def _of_kind(joint: UrdfJoint, sdf: SdfJoint) -> UrdfJoint:
    """A joint of a kind that URDF has not, in the frame that stands for it."""
    if sdf.kind == "universal":
        return replace(joint, kind="universal", axes=("x", "y"))
    return replace(joint, kind="spherical") if sdf.kind == "spherical" else joint


def _is_zero(effort: str | None) -> bool:
    return effort is not None and not effort.strip("+-0.eE")
