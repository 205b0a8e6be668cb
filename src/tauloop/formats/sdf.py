"""SDF (Gazebo): links, joints and the loops between them become a `Mechanism`, as those of a URDF do.

A side file of a URDF's form adds what SDF cannot say (`tauloop.formats.urdf_side`); ``offsets`` there are those of the
joints, which are all at zero in the pose of the file. Motors follow from the efforts as in a URDF (`formats.motors`); a
joint without ``<effort>`` has none that limits it, as SDF has it.
"""

from __future__ import annotations

import math
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
    notes = (*model.notes, *spanned.notes, *tree.notes)
    cut_efforts = tuple(_effort(joint) for joint in model.joints if joint.axes and joint not in spanned.joints)
    return replace(tree, joints=joints, cut_efforts=cut_efforts, gravity=model.gravity, notes=notes)


def _of_kind(joint: UrdfJoint, sdf: SdfJoint) -> UrdfJoint:
    """A joint of a kind that URDF has not, in the frame that stands for it; without <effort> it has no limit."""
    if sdf.kind == "universal":
        return replace(joint, kind="universal", axes=("x", "y"))
    if sdf.kind == "spherical":
        return replace(joint, kind="spherical")
    return replace(joint, effort=math.inf) if joint.effort is None else joint


def _effort(joint: SdfJoint) -> float:
    """The effort limit of a joint; SDF takes none, or a negative one, as infinite."""
    text = joint.limit("effort")
    try:
        return math.inf if text is None else float(text)
    except ValueError:
        return math.inf
