"""Kinematics of closed loops: random assembled states, the conditioning of poses, reduced models."""

from tauloop.kinematics.conditioning import Conditioning, conditioning
from tauloop.kinematics.reduction import Comparison, Reduction, ReductionOptions, compare, reduce
from tauloop.kinematics.states import RandomStates, random_states

__all__ = [
    "Comparison",
    "Conditioning",
    "RandomStates",
    "Reduction",
    "ReductionOptions",
    "compare",
    "conditioning",
    "random_states",
    "reduce",
]
