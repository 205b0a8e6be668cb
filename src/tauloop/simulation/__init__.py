"""Simulation: forward dynamics on four routes, integrated by explicit and implicit methods.

Examples:
    >>> import tauloop as tl
    >>> options = tl.SimulationOptions(duration=0.05, integration=tl.simulation.Integration(tolerance=1e-9))
    >>> tl.simulate(tl.load("four_bar"), options).status.value
    'ok'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.integrate.events import Event as Event, Occurrence as Occurrence
    from tauloop.integrate.integrators import (
        DormandPrince as DormandPrince,
        Integrator as Integrator,
        Radau as Radau,
        RungeKutta4 as RungeKutta4,
    )
    from tauloop.simulation import observers as observers
    from tauloop.simulation.cables.result import (
        CableEvent as CableEvent,
        CableSimulation as CableSimulation,
    )
    from tauloop.simulation.cables.simulation import simulate_cables as simulate_cables
    from tauloop.simulation.controllers.laws import (
        Compensation as Compensation,
        Controller as Controller,
        Loop as Loop,
        Sampling as Sampling,
    )
    from tauloop.simulation.controllers.many import (
        ManyControlledMotions as ManyControlledMotions,
        follow_many as follow_many,
    )
    from tauloop.simulation.controllers.predictive import PredictiveTracking as PredictiveTracking
    from tauloop.simulation.controllers.run import (
        ControlledMotion as ControlledMotion,
        follow as follow,
        prepared_loop as prepared_loop,
    )
    from tauloop.simulation.controllers.workflow import (
        ControlComparison as ControlComparison,
        ControlOptions as ControlOptions,
        follow_path as follow_path,
    )
    from tauloop.simulation.elastic.result import (
        ElasticSimulation as ElasticSimulation,
        ElasticSimulationOptions as ElasticSimulationOptions,
    )
    from tauloop.simulation.elastic.workflow import simulate_elastic as simulate_elastic
    from tauloop.simulation.forces import (
        ConstantForce as ConstantForce,
        Feedback as Feedback,
        ForceLaw as ForceLaw,
        InverseDynamicsForce as InverseDynamicsForce,
        ToolForce as ToolForce,
        Wrench as Wrench,
    )
    from tauloop.simulation.free_motion_comparison import (
        FreeMotionComparison as FreeMotionComparison,
    )
    from tauloop.simulation.many import (
        ManySimulations as ManySimulations,
        simulate_many as simulate_many,
    )
    from tauloop.simulation.planned.cycles import (
        Cycle as Cycle,
        CycleOptions as CycleOptions,
        LegLimits as LegLimits,
        MotorLoad as MotorLoad,
        TriedCycle as TriedCycle,
        plan_cycle as plan_cycle,
    )
    from tauloop.simulation.planned.fastest import (
        ActiveLimit as ActiveLimit,
        FastestMotion as FastestMotion,
        PathOptions as PathOptions,
        TriedMotion as TriedMotion,
        plan_path as plan_path,
    )
    from tauloop.simulation.planned.limit_options import LimitOptions as LimitOptions
    from tauloop.simulation.planned.transfers import (
        LeastDistance as LeastDistance,
        Transfer as Transfer,
        TransferOptions as TransferOptions,
        plan_transfer as plan_transfer,
    )
    from tauloop.simulation.round_trips import RoundTrip as RoundTrip, round_trip as round_trip
    from tauloop.simulation.routes import (
        Baumgarte as Baumgarte,
        ExtendedSpace as ExtendedSpace,
        IndependentCoordinates as IndependentCoordinates,
        Multipliers as Multipliers,
        Projected as Projected,
        Route as Route,
    )
    from tauloop.simulation.simulation import (
        Simulation as Simulation,
        Simulator as Simulator,
        start_state as start_state,
    )
    from tauloop.simulation.stepping.steps import Ending as Ending
    from tauloop.simulation.workflow import (
        FreeMotionOptions as FreeMotionOptions,
        Integration as Integration,
        RoundTripOptions as RoundTripOptions,
        SimulationOptions as SimulationOptions,
        simulate as simulate,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
