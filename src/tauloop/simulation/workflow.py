"""One call from a machine and options to a simulation: forces by name, a swing, or the round trip of a motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import overload

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option, require
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.dynamics.machine_dynamics import motion_table
from tauloop.equations.named_values import named_motion, named_values
from tauloop.equations.ports import Port
from tauloop.integrate.events import Event
from tauloop.integrate.integrators import DormandPrince, Integrator, Radau, RungeKutta4
from tauloop.kinematics.watched import events_of
from tauloop.mechanism.bodies import cables
from tauloop.mechanism.description import units
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.model import Model
from tauloop.model.force_sharing import sharing_of
from tauloop.model.model import MachineSource, modelled
from tauloop.simulation.cables.result import CableSimulation
from tauloop.simulation.cables.simulation import simulate_cables
from tauloop.simulation.forces import ConstantForce, ForceLaw, Wrench, wrench_at_tool
from tauloop.simulation.planned.spline_motion import SplineMotion
from tauloop.simulation.round_trips import RoundTrip, round_trip
from tauloop.simulation.routes import ROUTES, IndependentCoordinates, Projected, Route
from tauloop.simulation.simulation import Simulation, Simulator, start_state
from tauloop.simulation.swing import AMPLITUDE, FREQUENCY
from tauloop.simulation.swing_comparison import SwingComparison, compare_routes

_ROUTE = option(IndependentCoordinates(), named=ROUTES)


@dataclass(frozen=True, kw_only=True)
class Integration:
    """Which integrator, and how exact.

    Attributes:
        rtol: relative tolerance of an integration step.
        atol: absolute tolerance of an integration step, such as 1e-12 (SI) or 0.1nm; the same
            number holds for positions and speeds, in m, rad, m/s and rad/s.
        step: fixed steps of this length (s), by Runge and Kutta.
        stiff: integrate by implicit steps, for stiff machines.
        own: any integrator in place of what these say.
    """

    rtol: float = option(1e-11, flag="--tolerance")
    atol: float = option(
        1e-12,
        flag="--absolute-tolerance",
        metavar="QUANTITY",
        unit=(*units.POSITIONS, *units.SPEEDS, units.ONE),
    )
    step: float | None = option(None, flag="--fixed-step", metavar="TIME", unit=units.TIME)
    stiff: bool = False
    own: Integrator | None = option(None, flag="")

    def __post_init__(self) -> None:
        """Refuse what no integrator can do."""
        require(self)
        if self.stiff and self.step is not None:
            raise InputError.of("stiff", "given beside step", "give one of them")
        _ = self.integrator

    @property
    def integrator(self) -> Integrator:
        """The integrator that is meant."""
        if self.own is not None:
            return self.own
        if self.step is not None:
            return RungeKutta4(step=self.step)
        return (Radau if self.stiff else DormandPrince)(rtol=self.rtol, atol=self.atol)


@dataclass(frozen=True, kw_only=True)
class SimulationOptions(Options):
    """A simulation from a start under forces; a free fall from the reference pose without any.

    Attributes:
        duration: duration of the simulation, such as 0.3 or 300ms; without it 10 s for a free
            motion, that of a motion, or 1 s.
        force: constant forces, such as 'motor1=1.5,motor2=-2' (N, N m); zero if not named. Winches
            of cables are held as they hold the start at rest without it. Python takes a law too.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame). Python takes a
            function of time too.
        position: position of the platform, such as 'x=0.1,z=-50cm' (SI, or with units), at the
            start; the rest as at the reference.
        velocity: velocity of the platform or the actuators at the start, such as 'x=0.1' (SI, or
            with units); zero where not named.
        until: end at this event: a coordinate, such as 'platform.z<-0.7'; its speed,
            'velocity.platform.z>0.5' (SI); or the distance from singularities (1 far, 0 singular),
            'singularity<0.05', or of one kind.
        watch: record the times of this event, written as for --until, and continue.
        route: way to forward dynamics; that of cables is projected.
        preload: tensions of cables (N) at which held winches hold the start, as of `tauloop
            dynamics`.
        sensitivities: parameters of the machine, and values of the start such as
            'position.platform.x', by which the motion is differentiated
            (`Simulation.sensitivities`).
        integration: which integrator, and how exact.

    Examples:
        >>> import tauloop as tl
        >>> tl.SimulationOptions(duration=0.2, position={"x": "10 mm"}, until=("platform.z<-0.7",)).until
        ('platform.z<-0.7',)
    """

    duration: float | None = option(None, least=0.0, metavar="TIME", unit=units.TIME)
    force: str | Mapping[str, str | float] | ForceLaw | None = option(
        None, read=pairs_reader("force", "motor1=1.5"), names="actuators", metavar="VALUES"
    )
    wrench: str | Mapping[str, str | float] | Wrench | None = option(
        None, read=pairs_reader("wrench", "fx=10"), metavar="VALUES"
    )
    position: str | Mapping[str, str | float] | None = option(
        None, read=pairs_reader("position"), flag="--pose", metavar="VALUES"
    )
    velocity: str | Mapping[str, str | float] | None = option(
        None, read=pairs_reader("velocity"), metavar="VALUES"
    )
    until: tuple[str | Event, ...] = option((), metavar="EVENT")
    watch: tuple[str | Event, ...] = option((), flag="--record", metavar="EVENT")
    route: Route = _ROUTE
    preload: str | float | Mapping[str, str | float] | None = option(None, read=str)
    sensitivities: tuple[str, ...] = option(())
    integration: Integration = field(default_factory=Integration)

    def _note_mismatches(self, problems: Problems) -> None:
        """Note forces beside a preload."""
        if self.force is not None and self.preload is not None:
            problems.add("preload", "given beside force", "give one of them")


@dataclass(frozen=True, kw_only=True)
class FreeMotionOptions(Options):
    """A machine without friction, in springs at its drives, pushed: by every route.

    Attributes:
        duration: s.
        frequency: of the springs, Hz.
        amplitude: of the motion, rad or characteristic lengths.
        integration: which integrator, and how exact.

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
    """A motion whose forces by inverse dynamics are fed to forward dynamics.

    Attributes:
        motion: CSV or Parquet with columns time and position.NAME of the platform.
        duration: s; that of the motion at most, which it is without it.
        route: way to forward dynamics.
        integration: which integrator, and how exact.

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
) -> SwingComparison: ...
@overload
def simulate(
    machine: MachineSource, options: RoundTripOptions, *, progress: Progress | None = ...
) -> RoundTrip: ...
@overload
def simulate(
    machine: MachineSource, options: AnyOptions, *, progress: Progress | None = ...
) -> Simulation | CableSimulation | SwingComparison | RoundTrip: ...


@keywords(SimulationOptions, FreeMotionOptions, RoundTripOptions)
@solving(PoseError)
def simulate(
    machine: MachineSource,
    options: AnyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Simulation | CableSimulation | SwingComparison | RoundTrip:
    """Simulate a machine; see `Simulator`, which is compiled once for many.

    Cables pull, become slack and are tautened again.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: from where, under which forces, until when; a swing or a round trip by the options
            of these.
        progress: called with what is done and what there is to do.

    Returns:
        What happened, with diagnostics; what was reached is kept, whatever happens.

    Raises:
        InputError: names or numbers that are wrong, or a machine that cannot be simulated so.
        AssemblyError, PoseError: the start is not assembled or out of reach, or no tensions hold
            it.

    Examples:
        >>> import tauloop as tl
        >>> fall = tl.simulate("delta", duration=0.05)
        >>> fall.to_pandas()["position.platform.z"].iloc[-1].round(3).item()
        -0.518
        >>> fall.to_xarray()["energy.kinetic"].attrs["units"]
        'J'
    """
    model = modelled(machine)
    chosen = SimulationOptions() if options is None else options
    stages = Stages(progress, 1)
    result = _simulated(model, chosen, stages.part)
    stages.done()
    return result


def _simulated(
    model: Model, chosen: AnyOptions, progress: Progress
) -> Simulation | CableSimulation | SwingComparison | RoundTrip:
    if isinstance(chosen, SimulationOptions):
        return (_of_cables if cables(model.mechanism) else _of_forces)(model, chosen, progress)
    if cables(model.mechanism):
        what = "a swing is not for machines with cables: they push nothing back"
        if isinstance(chosen, RoundTripOptions):
            what = "a round trip is not for machines with cables: those that stretch do not come back to the motion"
        raise InputError.of(model.mechanism.name, what, "simulate it under forces")
    if isinstance(chosen, FreeMotionOptions):
        integrator = chosen.integration.integrator
        return compare_routes(
            model, chosen.duration, integrator, chosen.frequency, chosen.amplitude, progress
        )
    return _there_and_back(model, chosen, progress)


def _start(model: Model, options: SimulationOptions) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of the start."""
    ports = {name: model.platform.ports.motion[name] for name in ("position", "velocity")}
    return start_state(
        model, **named_motion(ports, options, model.platform_position(model.assembly.q))
    )


def force_law(model: Model, options: SimulationOptions) -> ForceLaw | None:
    """Forces as they are asked for; None for none."""
    if options.force is None or isinstance(options.force, ForceLaw):
        return options.force
    names, units = model.output_ports("actuators")
    port = Port(name="force", columns=names, units=units)
    return ConstantForce(
        tuple(map(float, named_values(port, "force", options.force, np.zeros(len(names)))))
    )


def _of_forces(model: Model, options: SimulationOptions, progress: Progress) -> Simulation:
    q, v = _start(model, options)
    if options.preload is not None:
        sharing_of(model.mechanism, options.preload)  # which says that there are no cables
    wrench, integrator = wrench_at_tool(options.wrench), options.integration.integrator
    simulator = Simulator(
        model,
        route=options.route,
        integrator=integrator,
        with_wrench=wrench is not None,
        sensitivities=options.sensitivities,
    )
    events = events_of(model, options.until, options.watch)
    force, duration = force_law(model, options), options.duration or 1.0
    return simulator.run(
        duration, q=q, v=v, force=force, wrench=wrench, events=events, progress=progress
    )


def _of_cables(model: Model, options: SimulationOptions, progress: Progress) -> CableSimulation:
    if options.sensitivities:
        what = "cables that become slack or taut begin a new motion, through which nothing is differentiated"
        raise InputError.of("sensitivities", what, "take differences of runs instead")
    q, v = _start(model, options)
    return simulate_cables(
        model,
        options.duration or 1.0,
        q=q,
        v=v,
        force=force_law(model, options),
        wrench=wrench_at_tool(options.wrench),
        route=Projected() if options.route.is_independent else options.route,
        integrator=options.integration.integrator,
        sharing=sharing_of(model.mechanism, options.preload),
        events=events_of(model, options.until, options.watch),
        progress=progress,
    )


def _there_and_back(model: Model, options: RoundTripOptions, progress: Progress) -> RoundTrip:
    time, arrays = motion_table({"position": model.platform.ports.position}, options.motion)
    spline = SplineMotion(model, time - time[0], arrays["position"])
    duration = min(options.duration or math.inf, spline.duration)
    integrator = options.integration.integrator
    return round_trip(
        model, spline, duration, route=options.route, integrator=integrator, progress=progress
    )
