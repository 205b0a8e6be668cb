"""Every controller by the name that a command or a table uses."""

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

#: Every controller by the name that a command or a table uses.
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
    of_class=True,
)
#: Those of Tauloop that are all in machine code.
COMPILED = tuple(name for name, law in CONTROLLERS.own.items() if issubclass(law, CompiledLaw))
