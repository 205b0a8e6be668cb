"""Kinematics of closed loops: checks, states, modes, workspaces and reduced models.

Examples:
    >>> import tauloop as tl
    >>> import numpy as np
    >>> states = tl.kinematics.random_states(tl.Model(tl.load("delta")), 5, np.random.default_rng(0))
    >>> states.position.shape
    (5, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.kinematics.description import (
        DescribeOptions as DescribeOptions,
        Description as Description,
        describe as describe,
    )
    from tauloop.kinematics.inspection import (
        CheckOptions as CheckOptions,
        Inspection as Inspection,
        check as check,
    )
    from tauloop.kinematics.modes.modes import (
        ModeOptions as ModeOptions,
        Modes as Modes,
        assembly_modes as assembly_modes,
        working_modes as working_modes,
    )
    from tauloop.kinematics.named_kinematics import (
        JacobianOptions as JacobianOptions,
        KinematicsOptions as KinematicsOptions,
        forward_kinematics as forward_kinematics,
        inverse_kinematics as inverse_kinematics,
        jacobian as jacobian,
    )
    from tauloop.kinematics.pose_conditioning import (
        Conditioning as Conditioning,
        conditioning as conditioning,
    )
    from tauloop.kinematics.reduction import (
        NewtonEulerCount as NewtonEulerCount,
        Reduction as Reduction,
        ReductionComparison as ReductionComparison,
        ReductionOptions as ReductionOptions,
        compare_reduction as compare_reduction,
        reduce_model as reduce_model,
    )
    from tauloop.kinematics.states import (
        RandomStates as RandomStates,
        random_states as random_states,
    )
    from tauloop.kinematics.workspaces.machine_workspace import (
        WorkspaceOptions as WorkspaceOptions,
        workspace as workspace,
    )
    from tauloop.kinematics.workspaces.map import Workspace as Workspace
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
