"""Optimised excitation: motions that tell the parameters best, under all limits of the machine."""

from tauloop.common.lazy import public_names
from tauloop.identification.excitation.design import excite as excite
from tauloop.identification.excitation.options import ExcitationOptions as ExcitationOptions
from tauloop.identification.excitation.result import Excitation as Excitation

__dir__, __all__ = public_names(__name__)
