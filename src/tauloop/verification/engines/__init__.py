"""Models of a machine in Pinocchio and MuJoCo, against which results are checked.

The models do not use Tauloop's equations.

Examples:
    >>> import tauloop as tl
    >>> tl.verification.engines.frictionless(tl.load("four_bar")).name
    'four_bar'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.verification.engines.check import check_with_engines as check_with_engines
    from tauloop.verification.engines.comparison import (
        EngineComparison as EngineComparison,
        Verification as Verification,
        compare_forces as compare_forces,
        frictionless as frictionless,
    )
    from tauloop.verification.engines.engine import Engine as Engine
    from tauloop.verification.engines.in_mujoco import (
        MujocoEngine as MujocoEngine,
        mujoco_engine as mujoco_engine,
    )
    from tauloop.verification.engines.motion import NamedMotion as NamedMotion
    from tauloop.verification.engines.pinocchio.in_pinocchio import (
        PinocchioEngine as PinocchioEngine,
        pinocchio_engine as pinocchio_engine,
    )
    from tauloop.verification.engines.results import (
        EngineAccelerations as EngineAccelerations,
        EngineForces as EngineForces,
        EngineVelocities as EngineVelocities,
        TreeStates as TreeStates,
    )
    from tauloop.verification.engines.verification import (
        VerifiedMachine as VerifiedMachine,
        VerifyOptions as VerifyOptions,
        verify as verify,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
