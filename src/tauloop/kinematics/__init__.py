"""Kinematics of closed loops: checks, descriptions, random states, modes, workspaces, conditioning, reduced models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.kinematics.description import DescribeOptions, Description, describe
    from tauloop.kinematics.inspection import CheckOptions, Inspection, check
    from tauloop.kinematics.machine_dynamics import DynamicsOptions, MotionForces, inverse_dynamics
    from tauloop.kinematics.machine_workspace import WorkspaceOptions, workspace
    from tauloop.kinematics.modes import ModeOptions, Modes, assembly_modes, working_modes
    from tauloop.kinematics.named_kinematics import (
        JacobianOptions,
        KinematicsOptions,
        forward_kinematics,
        inverse_kinematics,
        jacobian,
    )
    from tauloop.kinematics.pose_conditioning import Conditioning, conditioning
    from tauloop.kinematics.reduction import Reduction, ReductionComparison, ReductionOptions, compare_reduction, reduce
    from tauloop.kinematics.states import RandomStates, random_states
    from tauloop.kinematics.workspace_map import Workspace
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(("DescribeOptions", "Description", "describe"), "description"),
            **dict.fromkeys(("CheckOptions", "Inspection", "check"), "inspection"),
            **dict.fromkeys(("DynamicsOptions", "MotionForces", "inverse_dynamics"), "machine_dynamics"),
            **dict.fromkeys(("ModeOptions", "Modes", "assembly_modes", "working_modes"), "modes"),
            **dict.fromkeys(
                (
                    "JacobianOptions",
                    "KinematicsOptions",
                    "forward_kinematics",
                    "inverse_kinematics",
                    "jacobian",
                ),
                "named_kinematics",
            ),
            **dict.fromkeys(("Conditioning", "conditioning"), "pose_conditioning"),
            **dict.fromkeys(
                ("ReductionComparison", "Reduction", "ReductionOptions", "compare_reduction", "reduce"), "reduction"
            ),
            **dict.fromkeys(("WorkspaceOptions", "workspace"), "machine_workspace"),
            "Workspace": "workspace_map",
            **dict.fromkeys(("RandomStates", "random_states"), "states"),
        },
    )

__all__ = [
    "CheckOptions",
    "Conditioning",
    "DescribeOptions",
    "Description",
    "DynamicsOptions",
    "Inspection",
    "JacobianOptions",
    "KinematicsOptions",
    "ModeOptions",
    "Modes",
    "MotionForces",
    "RandomStates",
    "Reduction",
    "ReductionComparison",
    "ReductionOptions",
    "Workspace",
    "WorkspaceOptions",
    "assembly_modes",
    "check",
    "compare_reduction",
    "conditioning",
    "describe",
    "forward_kinematics",
    "inverse_dynamics",
    "inverse_kinematics",
    "jacobian",
    "random_states",
    "reduce",
    "working_modes",
    "workspace",
]
