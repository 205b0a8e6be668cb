"""Forces of a machine from one call; imports no application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.dynamics.machine_dynamics import (
        DynamicsOptions as DynamicsOptions,
        MotionForces as MotionForces,
        inverse_dynamics as inverse_dynamics,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
