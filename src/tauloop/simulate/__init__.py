"""Simulation: forward dynamics by three routes, carried forward in time by explicit and implicit integrators."""

from tauloop.simulate.cable_result import CableEvent, CableSimulation
from tauloop.simulate.cable_simulation import simulate_cables
from tauloop.simulate.events import Event, Occurrence
from tauloop.simulate.forces import ConstantForce, Feedback, ForceLaw, InverseDynamicsForce, Wrench
from tauloop.simulate.many import ManySimulations, simulate_many
from tauloop.simulate.options import (
    Baumgarte,
    DormandPrince,
    ExtendedSpace,
    IndependentCoordinates,
    Integrator,
    Multipliers,
    Projected,
    Radau,
    Route,
    RungeKutta4,
)
from tauloop.simulate.simulation import Simulation, Simulator, simulate, start_state
from tauloop.simulate.steps import Ending

__all__ = [
    "Baumgarte",
    "CableEvent",
    "CableSimulation",
    "ConstantForce",
    "DormandPrince",
    "Ending",
    "Event",
    "ExtendedSpace",
    "Feedback",
    "ForceLaw",
    "IndependentCoordinates",
    "Integrator",
    "InverseDynamicsForce",
    "ManySimulations",
    "Multipliers",
    "Occurrence",
    "Projected",
    "Radau",
    "Route",
    "RungeKutta4",
    "Simulation",
    "Simulator",
    "Wrench",
    "simulate",
    "simulate_cables",
    "simulate_many",
    "start_state",
]
