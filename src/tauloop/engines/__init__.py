"""The same machine in Pinocchio and MuJoCo, made independently of Tauloop's equations, to check results against."""

from tauloop.engines.check import check
from tauloop.engines.comparison import EngineComparison, Verification, compare, frictionless
from tauloop.engines.engine import Engine
from tauloop.engines.in_mujoco import MujocoEngine, mujoco_engine
from tauloop.engines.in_pinocchio import PinocchioEngine, pinocchio_engine
from tauloop.engines.motion import Motion
from tauloop.engines.results import EngineAccelerations, EngineForces, EngineVelocities, TreeStates
from tauloop.engines.verification import VerifiedMachine, VerifyOptions, verify

__all__ = [
    "Engine",
    "EngineAccelerations",
    "EngineComparison",
    "EngineForces",
    "EngineVelocities",
    "Motion",
    "MujocoEngine",
    "PinocchioEngine",
    "TreeStates",
    "Verification",
    "VerifiedMachine",
    "VerifyOptions",
    "check",
    "compare",
    "frictionless",
    "mujoco_engine",
    "pinocchio_engine",
    "verify",
]
__dir__ = __all__.copy
