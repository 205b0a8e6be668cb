"""Kinematics of closed loops: random assembled states and the conditioning of poses."""

from tauloop.kinematics.conditioning import Conditioning, conditioning
from tauloop.kinematics.states import RandomStates, random_states

__all__ = ["Conditioning", "RandomStates", "conditioning", "random_states"]
