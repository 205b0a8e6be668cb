"""URDF: a tree of links and joints becomes a `Mechanism`; a side file adds what URDF cannot say.

Links become bodies with their inertia about the link frame's origin, the root link is the immovable base, and every
figure that may be identified or calibrated is a leaf parameter named after its link or joint: ``link_1.mass``,
``link_1.center[0]``, ``link_1.inertia.xx``, ``joint_1.origin.xyz[2]``, ``joint_1.origin.rpy[0]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.expression import ZERO, Constant, Expression, Leaf, add, multiply, negate, subtract
from tauloop.mechanism.formats.urdf_side import Side, read_side
from tauloop.mechanism.formats.urdf_tree import LinkInertia, Triple, UrdfJoint, UrdfTree, read_urdf_tree
from tauloop.mechanism.model import (
    BASE,
    ZERO_VECTOR,
    Actuator,
    AxisName,
    Body,
    Freedom,
    Friction,
    Inertia,
    Joint,
    Mechanism,
    Parameter,
    ParameterTable,
    Placement,
    Platform,
    Turn,
    Vector,
)

_LETTERS: dict[Triple, AxisName] = {(1.0, 0.0, 0.0): "x", (0.0, 1.0, 0.0): "y", (0.0, 0.0, 1.0): "z"}
_RPY: tuple[tuple[int, AxisName], ...] = ((2, "z"), (1, "y"), (0, "x"))
_MOMENTS = (("xx", 0, 0), ("xy", 0, 1), ("yy", 1, 1), ("xz", 0, 2), ("yz", 1, 2), ("zz", 2, 2))
_SCALAR = ("revolute", "prismatic")


def load_urdf(
    urdf_path: str | Path, side_path: str | Path | None = None, *, gravity: Sequence[float] | None = None
) -> Mechanism:
    """Read a URDF file and, where there is one, its side file (docs: `tauloop.mechanism.formats.urdf_side`).

    Without actuators in a side file each revolute and prismatic joint gets one of ratio 1 with the joint's name and
    effort. What was found on the way (elements that are not used, zero inertias, changed names) is listed in the
    description of the mechanism.

    Args:
        urdf_path: the URDF file.
        side_path: gravity, platform, offsets, friction, rotor inertia and actuators.
        gravity: (3,) m/s^2 in the frame of the root link, when no side file says it.

    Returns:
        The mechanism; its platform is the last link unless the side file names another.

    Raises:
        DescriptionError: everything that is wrong in either file, each with its line.
    """
    problems: list[Problem] = []
    try:
        tree = read_urdf_tree(urdf_path)
    except DescriptionError as error:
        raise error
    side = read_side(side_path, tree) if side_path is not None else Side()
