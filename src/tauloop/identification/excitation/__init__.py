"""Optimized excitation: motions for identification, under all limits of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.identification.excitation.design import plan_excitation as plan_excitation
    from tauloop.identification.excitation.options import ExcitationOptions as ExcitationOptions
    from tauloop.identification.excitation.result import Excitation as Excitation
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
