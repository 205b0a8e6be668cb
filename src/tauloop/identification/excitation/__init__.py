"""Optimised excitation: motions that tell the parameters best, under all limits of the machine."""

from tauloop.identification.excitation.design import excite as excite
from tauloop.identification.excitation.options import ExcitationOptions as ExcitationOptions
from tauloop.identification.excitation.result import Excitation as Excitation
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)
