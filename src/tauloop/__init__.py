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
from tauloop.functions import Assembly, Forces, FunctionOptions, Model, State, load_function
from tauloop.mechanism import Mechanism, load, loads, shipped_machines

__all__ = [
    "Assembly",
    "AssemblyError",
    "DescriptionError",
    "EngineError",
    "Forces",
    "FunctionOptions",
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
    "load_function",
    "loads",
    "shipped_machines",
]
