"""Optimised excitation: motions that tell the parameters best, under all limits of the machine."""

from tauloop.identification.excitation.design import ExcitationOptions, excite
from tauloop.identification.excitation.result import Excitation

__all__ = ["Excitation", "ExcitationOptions", "excite"]
__dir__ = __all__.copy
