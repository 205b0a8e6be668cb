"""The machine as numbers: assembly, sorting into blocks, programs, and the `Model` bundle with checked ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.functions.assembly import Assembly, assemble
    from tauloop.functions.evaluator import Compiled, Evaluator, Interpreted
    from tauloop.functions.hybrid import HybridForces, HybridFunctions
    from tauloop.functions.hybrid_locks import Spin, find_spins
    from tauloop.functions.hybrid_sharing import ForceSharing
    from tauloop.functions.locks import Locks
    from tauloop.functions.loops import Loops
    from tauloop.functions.model import Model
    from tauloop.functions.motion_functions import MotionFunctions
    from tauloop.functions.ports import Port
    from tauloop.functions.ready import FunctionOptions, load_function
    from tauloop.functions.state import Forces, Health, State
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Assembly": "assembly",
            "Compiled": "evaluator",
            "Evaluator": "evaluator",
            "ForceSharing": "hybrid_sharing",
            "Forces": "state",
            "FunctionOptions": "ready",
            "Health": "state",
            "HybridForces": "hybrid",
            "HybridFunctions": "hybrid",
            "Interpreted": "evaluator",
            "Locks": "locks",
            "Loops": "loops",
            "Model": "model",
            "MotionFunctions": "motion_functions",
            "Port": "ports",
            "Spin": "hybrid_locks",
            "State": "state",
            "assemble": "assembly",
            "find_spins": "hybrid_locks",
            "load_function": "ready",
        },
    )

__all__ = [
    "Assembly",
    "Compiled",
    "Evaluator",
    "ForceSharing",
    "Forces",
    "FunctionOptions",
    "Health",
    "HybridForces",
    "HybridFunctions",
    "Interpreted",
    "Locks",
    "Loops",
    "Model",
    "MotionFunctions",
    "Port",
    "Spin",
    "State",
    "assemble",
    "find_spins",
    "load_function",
]
