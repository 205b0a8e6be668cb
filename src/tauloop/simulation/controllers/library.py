"""The registry of controllers."""

from __future__ import annotations

from tauloop.common.extensions import Registry
from tauloop.simulation.controllers.laws import (
    PD,
    CompiledLaw,
    ComputedTorque,
    Controller,
    FeedForward,
    GravityCompensation,
)
from tauloop.simulation.controllers.predictive import PredictiveTracking

#: Controllers by the names used in commands and tables.
CONTROLLERS = Registry[type[Controller]](
    "tauloop.controllers",
    Controller,
    {
        "pd": PD,
        "gravity": GravityCompensation,
        "feed-forward": FeedForward,
        "computed-torque": ComputedTorque,
        "predictive": PredictiveTracking,
    },
    holds_classes=True,
)
#: Names of built-in controllers that run entirely in machine code.
COMPILED = tuple(name for name, law in CONTROLLERS.builtin.items() if issubclass(law, CompiledLaw))
