"""Recursive identification and external forces from logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.identification.online.alarm_threshold import (
        FalseAlarms as FalseAlarms,
    )
    from tauloop.identification.online.causal_rows import (
        CausalFilters as CausalFilters,
    )
    from tauloop.identification.online.external_wrench import (
        ContactInterval as ContactInterval,
        ExternalWrench as ExternalWrench,
        ExternalWrenchOptions as ExternalWrenchOptions,
        estimate_external_wrench as estimate_external_wrench,
    )
    from tauloop.identification.online.parameter_tracking import (
        ParameterTrack as ParameterTrack,
        TrackOptions as TrackOptions,
        track_parameters as track_parameters,
    )
    from tauloop.identification.online.recursive_fit import (
        RecursiveFit as RecursiveFit,
        Wander as Wander,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
