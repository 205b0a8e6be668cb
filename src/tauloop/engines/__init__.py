"""The same machine in Pinocchio and MuJoCo, made independently of Tauloop's equations, to check results against."""

from tauloop.engines.check import check_with_engines
from tauloop.engines.comparison import EngineComparison, Verification, compare_forces, frictionless
from tauloop.engines.engine import Engine
from tauloop.engines.in_mujoco import MujocoEngine, mujoco_engine
from tauloop.engines.in_pinocchio import PinocchioEngine, pinocchio_engine
from tauloop.engines.motion import NamedMotion
from tauloop.engines.results import EngineAccelerations, EngineForces, EngineVelocities, TreeStates
from tauloop.engines.verification import VerifiedMachine, VerifyOptions, verify

__all__ = [
    "Engine",
    "EngineAccelerations",
    "EngineComparison",
    "EngineForces",
    "EngineVelocities",
    "MujocoEngine",
    "NamedMotion",
    "PinocchioEngine",
    "TreeStates",
    "Verification",
    "VerifiedMachine",
    "VerifyOptions",
    "check_with_engines",
    "compare_forces",
    "frictionless",
    "mujoco_engine",
    "pinocchio_engine",
    "verify",
]
__dir__ = __all__.copy
