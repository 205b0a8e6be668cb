"""Simulation: forward dynamics by three routes, carried forward in time by explicit and implicit integrators."""

from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.simulation.cables.result import CableEvent, CableSimulation
from tauloop.simulation.cables.simulation import simulate_cables
from tauloop.simulation.controllers.laws import Controller, Sampling
from tauloop.simulation.controllers.run import ControlledMotion, follow
from tauloop.simulation.controllers.workflow import ControlComparison, ControlOptions, control
from tauloop.simulation.forces import ConstantForce, Feedback, ForceLaw, InverseDynamicsForce, Wrench
from tauloop.simulation.many import ManySimulations, simulate_many
from tauloop.simulation.round_trip import RoundTrip, round_trip
from tauloop.simulation.routes import (
    Baumgarte,
    ExtendedSpace,
    IndependentCoordinates,
    Multipliers,
    Projected,
    Route,
)
from tauloop.simulation.simulation import Simulation, Simulator, start_state
from tauloop.simulation.stepping.steps import Ending
from tauloop.simulation.swing_comparison import SwingComparison
from tauloop.simulation.workflow import Integration, RoundTripOptions, SimulationOptions, SwingOptions, simulate

__all__ = [
    "Baumgarte",
    "CableEvent",
    "CableSimulation",
    "ConstantForce",
    "ControlComparison",
    "ControlOptions",
    "ControlledMotion",
    "Controller",
    "DormandPrince",
    "Ending",
    "Event",
    "ExtendedSpace",
    "Feedback",
    "ForceLaw",
    "IndependentCoordinates",
    "Integration",
    "Integrator",
    "InverseDynamicsForce",
    "ManySimulations",
    "Multipliers",
    "Occurrence",
    "Projected",
    "Radau",
    "RoundTrip",
    "RoundTripOptions",
    "Route",
    "RungeKutta4",
    "Sampling",
    "Simulation",
    "SimulationOptions",
    "Simulator",
    "SwingComparison",
    "SwingOptions",
    "Wrench",
    "control",
    "follow",
    "round_trip",
    "simulate",
    "simulate_cables",
    "simulate_many",
    "start_state",
]
__dir__ = __all__.copy
