"""Observers for controllers: external forces, speeds and poses from encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.simulation.observers.collision_detection import (
        CollisionDetection as CollisionDetection,
        CollisionDetectionOptions as CollisionDetectionOptions,
        Detection as Detection,
        simulate_collision_detection as simulate_collision_detection,
    )
    from tauloop.simulation.observers.encoders import (
        EncoderFit as EncoderFit,
        fit_encoders as fit_encoders,
    )
    from tauloop.simulation.observers.observers import (
        DifferencedVelocities as DifferencedVelocities,
        ForceObserver as ForceObserver,
        MeasuredMotion as MeasuredMotion,
        MomentumObserver as MomentumObserver,
    )
    from tauloop.simulation.observers.speeds import (
        differenced as differenced,
        tracked as tracked,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
