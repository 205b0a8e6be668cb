"""Tauloop: kinematics, dynamics and identification of parallel robots from one description of a machine."""

from tauloop.errors import (
    AssemblyError,
    DescriptionError,
    EngineError,
    IdentificationError,
    InputError,
    LogError,
    PoseError,
    Problem,
    TauloopError,
)
from tauloop.functions import Assembly, Forces, Model, State
from tauloop.mechanism import Mechanism, load, loads, shipped_machines

__all__ = [
    "Assembly",
    "AssemblyError",
    "DescriptionError",
    "EngineError",
    "Forces",
    "IdentificationError",
    "InputError",
    "LogError",
    "Mechanism",
    "Model",
    "PoseError",
    "Problem",
    "State",
    "TauloopError",
    "load",
    "loads",
    "shipped_machines",
]
