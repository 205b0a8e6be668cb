"""Simulation of a machine under forces, in free motion, or on a round trip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import overload

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.equations.named_values import named_values
from tauloop.equations.ports import Port
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.kinematics.event_texts import parse_events
from tauloop.mechanism.description import units
from tauloop.model import Model
from tauloop.model.forces.force_sharing import sharing_of
from tauloop.model.model import MachineSource, modeled
from tauloop.model.motion_table import motion_table
from tauloop.simulation.cables.result import CableSimulation
from tauloop.simulation.cables.simulation import simulate_cables
from tauloop.simulation.forces import ConstantForce, ForceLaw, Wrench, wrench_at_tool
from tauloop.simulation.free_motion import AMPLITUDE, FREQUENCY
from tauloop.simulation.free_motion_comparison import FreeMotionComparison, compare_routes
from tauloop.simulation.planned.spline_motion import SplineMotion
from tauloop.simulation.round_trips import RoundTrip, round_trip
from tauloop.simulation.routes import ROUTES, IndependentCoordinates, Projected, Route
from tauloop.simulation.simulation import Simulation, Simulator, start_state

_ROUTE = option(IndependentCoordinates(), named=ROUTES)


@dataclass(frozen=True, kw_only=True)
class Integration(Options):
    """The integrator and its accuracy.

    Attributes:
        tolerance: relative tolerance of an integration step.
        absolute_tolerance: absolute tolerance of an integration step, such as 1e-12 (SI) or 0.1nm;
            the same number is used for positions and speeds, in m, rad, m/s and rad/s.
        fixed_step: length of fixed Runge-Kutta steps, s.
        stiff: integrate by implicit steps, for stiff machines.
        integrator: any integrator, which replaces the other options.
    """

    tolerance: float = option(1e-11)
    absolute_tolerance: float = option(
        1e-12,
        metavar="QUANTITY",
        unit=(*units.POSITIONS, *units.SPEEDS, units.ONE),
    )
    fixed_step: float | None = option(None, metavar="TIME", unit=units.TIME)
    stiff: bool = False
    integrator: Integrator | None = option(None, flag="")

    def _note_mismatches(self, problems: Problems) -> None:
        """Report contradictory options."""
        if self.stiff and self.fixed_step is not None:
            problems.add("stiff", "cannot be combined with fixed_step", "give only one of them")
        else:
            with problems.collecting(InputError):
                _ = self.chosen

    @property
    def chosen(self) -> Integrator:
        """The integrator that the options select."""
        if self.integrator is not None:
            return self.integrator
        if self.fixed_step is not None:
            return RungeKutta4(step=self.fixed_step)
        return (Radau if self.stiff else DormandPrince)(
            rtol=self.tolerance, atol=self.absolute_tolerance
        )


@dataclass(frozen=True, kw_only=True)
class SimulationOptions(Options):
    """A simulation from a start under forces; by default a free fall from the reference pose.

    Attributes:
        duration: duration of the simulation, such as 0.3 or 300ms; by default 10 s for a free
            motion, the duration of a given motion, or 1 s.
        force: constant forces, such as 'motor1=1.5,motor2=-2' (N, N m); zero if not named. If
            omitted, cable winches are locked so that the start is at rest. Python also accepts a
            force law.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame). Python also
            accepts a function of time.
        pose: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), at the
            start; the other coordinates as in the reference pose.
        velocity: velocity of the platform or the actuators at the start, such as 'x=0.1' (SI, or
            with units); zero if not named.
        until: end at this event: a coordinate, such as 'platform.z<-0.7'; its speed, such as
            'velocity.platform.z>0.5' (SI); or the distance from singularities (1 far, 0 singular),
            such as 'singularity<0.05', or from singularities of a kind.
        record: record the times of this event, written as for --until, and continue.
        route: method of forward dynamics; projected for cables.
        preload: tensions of cables (N) with which locked winches hold the start, as in `tauloop
            dynamics`.
        sensitivities: parameters of the machine, and start values such as 'position.platform.x',
            with respect to which the motion is differentiated (`Simulation.sensitivities`).
        integration: the integrator and its accuracy.

    Examples:
        >>> import tauloop as tl
        >>> tl.SimulationOptions(duration=0.2, pose={"x": "10 mm"}, until=("platform.z<-0.7",)).until
        ('platform.z<-0.7',)
    """

    duration: float | None = option(None, least=0.0, metavar="TIME", unit=units.TIME)
    force: str | Mapping[str, str | float] | tuple[str | float, ...] | ForceLaw | None = option(
        None, read=pairs_reader("force", "motor1=1.5"), names="actuators", metavar="VALUES"
    )
    wrench: str | Mapping[str, str | float] | tuple[str | float, ...] | Wrench | None = option(
        None, read=pairs_reader("wrench", "fx=10"), metavar="VALUES"
    )
    pose: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=pairs_reader("pose"), metavar="VALUES"
    )
    velocity: str | Mapping[str, str | float] | tuple[str | float, ...] | None = option(
        None, read=pairs_reader("velocity"), metavar="VALUES"
    )
    until: tuple[str | Event, ...] = option((), metavar="EVENT")
    record: tuple[str | Event, ...] = option((), metavar="EVENT")
    route: Route = _ROUTE
    preload: str | float | Mapping[str, str | float] | None = option(None, read=str)
    sensitivities: tuple[str, ...] = option(())
    integration: Integration = field(default_factory=Integration)

    def _note_mismatches(self, problems: Problems) -> None:
        """Report forces that are given together with a preload."""
        if self.force is not None and self.preload is not None:
            problems.add("preload", "cannot be combined with force", "give only one of them")


@dataclass(frozen=True, kw_only=True)
class FreeMotionOptions(Options):
    """Free motion of a machine without friction, with springs at its drives, on every route.

    Attributes:
        duration: duration, s.
        frequency: frequency of the springs, Hz.
        amplitude: amplitude of the motion, rad or characteristic lengths.
        integration: the integrator and its accuracy.

    Examples:
        >>> import tauloop as tl
        >>> tl.FreeMotionOptions(duration="2 s").duration
        2.0
    """

    duration: float = option(10.0, least=0.0, unit=units.TIME)
    frequency: float = option(FREQUENCY, unit=units.FREQUENCY)
    amplitude: float = option(AMPLITUDE, unit=units.ANGLE)
    integration: Integration = field(default_factory=Integration)


@dataclass(frozen=True, kw_only=True)
class RoundTripOptions(Options):
    """A motion whose forces from inverse dynamics are the input of forward dynamics.

    Attributes:
        motion: CSV or Parquet with columns time and position.NAME of the platform.
        duration: duration, s; at most that of the motion, which is the default.
        route: method of forward dynamics.
        integration: the integrator and its accuracy.

    Examples:
        >>> import tauloop as tl
        >>> tl.RoundTripOptions(motion="motion.csv", duration="0.5 s").duration
        0.5
    """

    motion: Path
    duration: float | None = option(None, least=0.0, unit=units.TIME)
    route: Route = _ROUTE
    integration: Integration = field(default_factory=Integration)


AnyOptions = SimulationOptions | FreeMotionOptions | RoundTripOptions


@overload
def simulate(
    machine: MachineSource, options: SimulationOptions = ..., *, progress: Progress | None = ...
) -> Simulation | CableSimulation: ...
@overload
def simulate(
    machine: MachineSource, options: FreeMotionOptions, *, progress: Progress | None = ...
) -> FreeMotionComparison: ...
@overload
def simulate(
    machine: MachineSource, options: RoundTripOptions, *, progress: Progress | None = ...
) -> RoundTrip: ...
@overload
def simulate(
    machine: MachineSource, options: AnyOptions, *, progress: Progress | None = ...
) -> Simulation | CableSimulation | FreeMotionComparison | RoundTrip: ...


@keywords(SimulationOptions, FreeMotionOptions, RoundTripOptions)
@solving(PoseError)
def simulate(
    machine: MachineSource,
    options: AnyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Simulation | CableSimulation | FreeMotionComparison | RoundTrip:
    """Simulate a machine.

    Cables pull, become slack and become taut again. `Simulator` compiles a machine once for many
    simulations.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: start, forces and duration; or the options of a free motion or of a round trip.
        progress: called with the work done and the total work.

    Returns:
        The simulation with diagnostics. If it ends early, it contains the motion until then.

    Raises:
        InputError: a name or a number is wrong, or the machine cannot be simulated with these
            options.
        AssemblyError, PoseError: the start is not assembled or out of reach, or no cable tensions
            hold it.

    Examples:
        >>> import tauloop as tl
        >>> fall = tl.simulate("delta", duration=0.05)
        >>> fall.to_pandas()["position.platform.z"].iloc[-1].round(3).item()
        -0.518
        >>> fall.to_xarray()["energy.kinetic"].attrs["units"]
        'J'
    """
    model = modeled(machine)
    stages = Stages(progress, 1)
    result = _simulate(model, SimulationOptions() if options is None else options, stages.part)
    stages.done()
    return result


def _simulate(
    model: Model, options: AnyOptions, progress: Progress
) -> Simulation | CableSimulation | FreeMotionComparison | RoundTrip:
    if isinstance(options, SimulationOptions):
        if model.mechanism.cables:
            return _simulate_with_cables(model, options, progress)
        return _simulate_under_forces(model, options, progress)
    if model.mechanism.cables:
        problem = "free motion is not available for machines with cables, which cannot push"
        if isinstance(options, RoundTripOptions):
            problem = "a round trip is not available for machines with cables, because they stretch"
        raise InputError.of(model.mechanism.name, problem, "simulate it under forces")
    if isinstance(options, FreeMotionOptions):
        integrator = options.integration.chosen
        return compare_routes(
            model, options.duration, integrator, options.frequency, options.amplitude, progress
        )
    return _round_trip_of_file(model, options, progress)


def _start(model: Model, options: SimulationOptions) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial coordinates (n_q,) and velocities (n_v,)."""
    position_port = model.platform.ports.motion["position"]
    velocity_port = model.platform.ports.motion["velocity"]
    reference = model.platform_position(model.assembly.q)
    at_rest = np.zeros(velocity_port.size)
    position = reference
    velocity = at_rest
    problems = Problems()
    with problems.collecting(InputError):
        position = named_values(position_port, "pose", options.pose, reference)
    with problems.collecting(InputError):
        velocity = named_values(velocity_port, "velocity", options.velocity, at_rest)
    InputError.raise_if_any(problems)
    return start_state(model, position=position, velocity=velocity)


def force_law(model: Model, options: SimulationOptions) -> ForceLaw | None:
    """Return the force law of the options; None without forces."""
    if options.force is None or isinstance(options.force, ForceLaw):
        return options.force
    names, force_units = model.output_ports("actuators")
    port = Port(name="force", columns=names, units=force_units)
    values = named_values(port, "force", options.force, np.zeros(len(names)))
    return ConstantForce(tuple(map(float, values)))


def _simulate_under_forces(
    model: Model, options: SimulationOptions, progress: Progress
) -> Simulation:
    q, v = _start(model, options)
    if options.preload is not None:
        sharing_of(model.mechanism, options.preload)  # raises an error, because there are no cables
    wrench, integrator = wrench_at_tool(options.wrench), options.integration.chosen
    simulator = Simulator(
        model,
        route=options.route,
        integrator=integrator,
        with_wrench=wrench is not None,
        sensitivities=options.sensitivities,
    )
    events = parse_events(model, options.until, options.record)
    force, duration = force_law(model, options), options.duration or 1.0
    return simulator.run(
        duration, q=q, v=v, force=force, wrench=wrench, events=events, progress=progress
    )


def _simulate_with_cables(
    model: Model, options: SimulationOptions, progress: Progress
) -> CableSimulation:
    if options.sensitivities:
        problem = "motions of cables that become slack or taut cannot be differentiated"
        remedy = "use finite differences of simulations instead"
        raise InputError.of("sensitivities", problem, remedy)
    q, v = _start(model, options)
    return simulate_cables(
        model,
        options.duration or 1.0,
        q=q,
        v=v,
        force=force_law(model, options),
        wrench=wrench_at_tool(options.wrench),
        route=Projected() if options.route.is_independent else options.route,
        integrator=options.integration.chosen,
        sharing=sharing_of(model.mechanism, options.preload),
        events=parse_events(model, options.until, options.record),
        progress=progress,
    )


def _round_trip_of_file(model: Model, options: RoundTripOptions, progress: Progress) -> RoundTrip:
    time, arrays = motion_table({"position": model.platform.ports.position}, options.motion)
    spline = SplineMotion(model, time - time[0], arrays["position"])
    duration = min(options.duration or math.inf, spline.duration)
    integrator = options.integration.chosen
    return round_trip(
        model, spline, duration, route=options.route, integrator=integrator, progress=progress
    )
