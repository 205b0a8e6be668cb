"""Shipped machines ready to be simulated, for the tests: each is assembled and compiled once."""

from __future__ import annotations

import functools
from typing import Any

from tauloop import Model, load
from tauloop.simulation import DormandPrince, Integrator, Route, Simulation, Simulator, Wrench
from tauloop.simulation.free_motion import FreeMotionSetup, free_motion_setup

#: Tolerances of a step at which a free motion keeps its energy to 1e-8 for 10 s.
FINE = DormandPrince(rtol=1e-11, atol=1e-12)


@functools.cache
def swinging(name: str) -> FreeMotionSetup:
    return free_motion_setup(load(name))


@functools.cache
def swinger(name: str, route: Route, integrator: Integrator = FINE) -> Simulator:
    return Simulator(swinging(name).model, route=route, integrator=integrator)


@functools.cache
def frictionless(name: str) -> Model:
    return Model(load(name).without_friction())


@functools.lru_cache(maxsize=32)
def _simulator(
    model: Model, route: Route | None, integrator: Integrator | None, with_wrench: bool
) -> Simulator:
    return Simulator(model, route=route, integrator=integrator, with_wrench=with_wrench)


def simulated(
    model: Model,
    duration: float,
    *,
    route: Route | None = None,
    integrator: Integrator | None = None,
    wrench: Wrench | None = None,
    **acting: Any,
) -> Simulation:
    """One simulation, by a simulator that is made once."""
    return _simulator(model, route, integrator, wrench is not None).run(
        duration, wrench=wrench, **acting
    )
