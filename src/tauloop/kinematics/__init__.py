"""Kinematics of closed loops: inspection, random assembled states, the conditioning of poses, reduced models."""

from tauloop.kinematics.conditioning import Conditioning, conditioning
from tauloop.kinematics.inspection import Inspection, inspect
from tauloop.kinematics.reduction import Comparison, Reduction, ReductionOptions, compare, reduce
from tauloop.kinematics.states import RandomStates, random_states

__all__ = [
    "Comparison",
    "Conditioning",
    "Inspection",
    "RandomStates",
    "Reduction",
    "ReductionOptions",
    "compare",
    "conditioning",
    "inspect",
    "random_states",
    "reduce",
]
__dir__ = __all__.copy
