"""Motions as functions of time: multisines with exact derivatives."""

from tauloop.motion.multisine import Multisine, random_multisine
from tauloop.motion.sampled import SampledMotion

__all__ = ["Multisine", "SampledMotion", "random_multisine"]
