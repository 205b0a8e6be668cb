"""Tauloop: kinematics, dynamics and identification of parallel robots from one description of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.functions import Assembly, Forces, FunctionOptions, Model, State, load_function
    from tauloop.mechanism import Mechanism, load, loads, shipped_machines
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(("Assembly", "Forces", "FunctionOptions", "Model", "State", "load_function"), "functions"),
            **dict.fromkeys(("Mechanism", "load", "loads", "shipped_machines"), "mechanism"),
        },
    )

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
