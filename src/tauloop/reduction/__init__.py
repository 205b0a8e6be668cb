"""Reduced models: a mechanism becomes a smaller one, by equivalent lumped masses and parts that move alike.

Every step is a function of a mechanism (and of what is known of its motion) and says what it preserves exactly and what
it approximates; `tauloop.kinematics.reduction` finds the motion, runs the steps and measures the error.
"""

from __future__ import annotations

from tauloop.reduction.couplings import gather_joints, lump_translating_body, point_masses
from tauloop.reduction.graph import displaced, numbers, without_unused_parameters
from tauloop.reduction.links import group_parallel_links, merge_rods, parallel_joints
from tauloop.reduction.lumping import Equivalence, drop_rod_inertia, equivalence, lump_rods, total_mass
from tauloop.reduction.planar import as_laminas, is_planar, links_as_rods, planar_inertia
from tauloop.reduction.platform import hold_platform
from tauloop.reduction.steps import BodyMotions, Step
from tauloop.reduction.symmetry import share_parameters

__all__ = [
    "BodyMotions",
    "Equivalence",
    "Step",
    "as_laminas",
    "displaced",
    "drop_rod_inertia",
    "equivalence",
    "gather_joints",
    "group_parallel_links",
    "hold_platform",
    "is_planar",
    "links_as_rods",
    "lump_rods",
    "lump_translating_body",
    "merge_rods",
    "numbers",
    "parallel_joints",
    "planar_inertia",
    "point_masses",
    "share_parameters",
    "total_mass",
    "without_unused_parameters",
]
__dir__ = __all__.copy
