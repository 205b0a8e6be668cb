"""Optimised excitation: motions that tell the parameters best, under all limits of the machine."""

from tauloop.identification.excitation.design import excite
from tauloop.identification.excitation.options import ExcitationOptions
from tauloop.identification.excitation.result import Excitation

__all__ = ["Excitation", "ExcitationOptions", "excite"]
__dir__ = __all__.copy
