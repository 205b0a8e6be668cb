"""Simulation of a machine that follows a trajectory under a sampled controller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import (
    OVER_TIME,
    channels,
    quantity_over,
)
from tauloop.common.errors import (
    AssemblyError,
    InputError,
    PoseError,
    Problems,
    solving,
)
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.plain import OMITTED, in_json, json_keys, none_if_empty
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Provenance, Result, diagnostic, provenance
from tauloop.compiler import State
from tauloop.equations.ports import Port, checked
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import Integrator, Method
from tauloop.integrate.sensitivity import labeled, sensitivity_rows
from tauloop.integrate.tableau import Tableau, with_dense_output
from tauloop.mechanism.cables import cable_problems
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.tool import LOAD_PORTS, Payload, loads
from tauloop.motion import Trajectory
from tauloop.simulation.controllers.laws import (
    RUNGE_KUTTA_4,
    Compensation,
    Controller,
    Loop,
    Sampling,
)
from tauloop.simulation.controllers.loop import CompiledLoop, Trace
from tauloop.simulation.controllers.redundant import gained_masses, passive_problems
from tauloop.simulation.controllers.sensitivity import directions
from tauloop.simulation.forces import Wrench

if TYPE_CHECKING:
    import xarray as xr

#: Number of integration steps between two samples of the controller.
SUBSTEPS = 4
#: Name of the diagnostic for forces at their limits.
SATURATED = "fraction of saturated forces"


class LoopRunner(Protocol):
    """A function that runs a control loop, such as a reusable `CompiledLoop`."""

    def __call__(self, loop: Loop) -> Trace:
        """Return the trace of the run."""
        ...


#: Names of the summary values of a run, with their units.
SUMMARY_NAMES = (
    "peak_error_m",
    "rms_error_m",
    "peak_turn_rad",
    "actuator_error",
    "peak_force",
    "rms_force",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledMotion(Result):
    """The motion along a trajectory under a controller, at the controller's samples.

    Attributes:
        time: times of the samples (N,), s; fewer samples if the run failed.
        reference, position: positions of the platform (N, n_position).
        velocity: velocities of the platform (N, n).
        force: actuator forces, held from each sample to the next (N, n_u), N or N m.
        actuator_error: reference minus actuator positions (N, n_u), m or rad.
        tool_error: distance of the tool center point from its reference (N,), m.
        turn_error: angle between the tool and its reference (N,), rad.
        end: reason why the run ended early; empty for a complete run or after a terminal event.
        occurrences: events in order of time.
        sensitivities: derivatives of `position`, `velocity` and `force`, SI, with units. The axes
            are time, column and parameter (`by`). None if no sensitivities were requested.
        step_time: computing time of a law in Python at each sample (N,), s; empty for laws in
            machine code. It is not written to files.
        model: model of the simulated machine.
    """

    time: np.ndarray = field(metadata=json_keys("samples", summary=len) | OVER_TIME)
    reference: np.ndarray = field(
        metadata=OMITTED | channels("time", port="model.platform.ports.position")
    )
    position: np.ndarray = field(
        metadata=OMITTED | channels("time", port="model.platform.ports.position")
    )
    velocity: np.ndarray = field(
        metadata=OMITTED | channels("time", port="model.platform.ports.velocity")
    )
    force: np.ndarray = field(metadata=OMITTED | channels("time", port="model.force_port"))
    actuator_error: np.ndarray = field(
        metadata=OMITTED | channels("time", port="model.actuator_port")
    )
    tool_error: np.ndarray = field(metadata=OMITTED | quantity_over("time", unit="m"))
    turn_error: np.ndarray = field(metadata=OMITTED | quantity_over("time", unit="rad"))
    end: str = field(metadata=json_keys(summary=none_if_empty))
    occurrences: tuple[Occurrence, ...] = field(metadata=json_keys("events"))
    model: Model = field(repr=False, metadata=OMITTED)
    sensitivities: xr.Dataset | None = field(
        default=None, metadata=json_keys(optional=True, summary=sensitivity_rows)
    )
    step_time: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False, metadata=OMITTED)

    figures = old_attribute("figures", "summary")

    @property
    @in_json(flat=True)
    def summary(self) -> dict[str, object]:
        """Largest and root mean square errors and forces; None if the first sample failed."""
        if not len(self.time):
            return dict.fromkeys(SUMMARY_NAMES)
        values = (
            self.peak_error,
            self.rms_error,
            self.peak_turn,
            np.abs(self.actuator_error).max(axis=0),
            np.abs(self.force).max(axis=0),
            np.sqrt(np.mean(self.force**2, axis=0)),
        )
        return dict(zip(SUMMARY_NAMES, values, strict=True))

    @property
    def peak_error(self) -> float:
        """Largest distance from the reference, m."""
        return float(self.tool_error.max())

    @property
    def peak_turn(self) -> float:
        """Largest angle between the tool and its reference, rad."""
        return float(self.turn_error.max())

    @property
    def rms_error(self) -> float:
        """Root mean square of the distance from the reference, m."""
        return float(np.sqrt(np.mean(self.tool_error**2)))


@solving(PoseError)
def follow(
    trajectory: Trajectory,
    controller: Controller,
    sampling: Sampling,
    *,
    plant: Model | None = None,
    loop: LoopRunner | None = None,
    method: Tableau | Integrator = RUNGE_KUTTA_4,
    substeps: int = SUBSTEPS,
    settling: float = 0.0,
    events: Sequence[Event] = (),
    sensitivities: Sequence[str] = (),
    wrench: Wrench | None = None,
    payload: Callable[[float], Payload] | None = None,
    values: Mapping[str, float] = MappingProxyType({}),
) -> ControlledMotion:
    """Simulate a controller that follows a trajectory from rest at its start.

    Args:
        trajectory: trajectory planned with the model that the controller assumes.
        controller: the control law.
        sampling: sampling of the controller.
        plant: the simulated machine; by default the controller's model. It must have the same
            structure. It starts at the actuator positions of the trajectory's start, with its own
            lengths.
        loop: an existing `CompiledLoop`; by default a new one.
        method: integrator between samples: a tableau with `substeps` steps per sample, or any other
            integrator.
        substeps: number of substeps per sample period; the delay is rounded to whole substeps.
        settling: time at rest after the end, s.
        events: events to detect; a terminal event ends the run.
        sensitivities: names of parameters with respect to which the run is differentiated:
            parameters of the simulated machine (the controller's model does not change),
            `bandwidth` and `damping` of the controller, and start values, such as
            ``position.platform.x``.
        wrench: force and moment at the tool center point in the base frame (6,), or a function of
            time. The controller does not know it. It is constant from sample to sample.
        payload: mass fixed to the tool as a function of time. The controller does not know it. It
            is constant from sample to sample.
        values: values of free parameters of the simulated machine that replace those of its file.
            The same `CompiledLoop` can be used for all values. Changed lengths do not change the
            start.

    Returns:
        The motion with forces and tracking errors.

    Raises:
        InputError: a machine or an option is unsuitable. A failure during the run is not raised:
            the result ends early and reports the reason.
        PoseError: the trajectory cannot be followed at all.
        EngineError: no C compiler was found, or it fails.
    """
    prepared, reference = prepared_loop(
        trajectory,
        controller,
        sampling,
        plant=plant,
        method=method,
        substeps=substeps,
        settling=settling,
        events=events,
        sensitivities=sensitivities,
        wrench=wrench,
        payload=payload,
        values=values,
    )
    run = loop_runner(prepared) if loop is None else loop
    time = np.arange(len(prepared.feedforward)) * prepared.period
    return _result(prepared, reference, time, run(prepared), sampling)


def prepared_loop(
    trajectory: Trajectory,
    controller: Controller,
    sampling: Sampling,
    *,
    plant: Model | None = None,
    method: Tableau | Integrator = RUNGE_KUTTA_4,
    substeps: int = SUBSTEPS,
    settling: float = 0.0,
    events: Sequence[Event] = (),
    sensitivities: Sequence[str] = (),
    wrench: Wrench | None = None,
    payload: Callable[[float], Payload] | None = None,
    values: Mapping[str, float] = MappingProxyType({}),
) -> tuple[Loop, State]:
    """Return the loop of `follow`, which starts at rest, and the reference states.

    The arguments are those of `follow`.

    Raises:
        InputError: a machine or an option is unsuitable.
        PoseError: the trajectory cannot be followed at all.
    """
    model = trajectory.stroke.model
    plant = model if plant is None else plant
    _check(plant, model, controller, sampling, substeps, settling)
    plant = plant.with_free_parameters(
        name for name in sensitivities if name in plant.mechanism.parameters.names
    )
    period = 1.0 / sampling.frequency
    time = np.arange(int(np.ceil((trajectory.total + settling) * sampling.frequency)) + 1) * period
    reference = trajectory.states(time)
    start = _state_at_rest(plant, model.actuators.ports.at(reference.q[0]), reference.q[0])
    ports = plant.platform.ports
    n_u = len(plant.mechanism.actuators)
    if isinstance(method, Integrator):
        integration_method, max_steps = method.method, method.max_steps
    else:
        integration_method = Method.fixed(method, period / substeps)
        max_steps = 2 * len(time) * substeps
    if events and integration_method.tableau is not None:
        # events are located with the dense output
        tableau = with_dense_output(integration_method.tableau)
        integration_method = replace(integration_method, tableau=tableau)
    nominal = plant.mechanism.parameters.vector(plant.free)
    prepared = Loop(
        plant=plant,
        model=model,
        controller=controller,
        method=integration_method,
        max_steps=max_steps,
        substeps=substeps,
        delay=round(sampling.delay / period * substeps),
        period=period,
        position=ports.at(start.q),
        velocity=np.zeros(ports.velocity.size),
        q=start.q,
        reference=_reference(model, controller, reference),
        feedforward=_feed_forward(model, controller, reference),
        initial_force=_holding_forces(model, reference.q[:1])[0],
        gains=_gains(model, controller, reference.q[:1]),
        limit=np.array(
            [a.force if sampling.saturates else np.inf for a in plant.mechanism.actuators]
        ),
        resolution=np.broadcast_to(np.asarray(sampling.resolution, dtype=float), (n_u,)),
        uses_velocity_differences=sampling.velocity_differences,
        theta=np.array(
            [values.get(name, value) for name, value in zip(plant.free, nominal, strict=True)]
        ),
        load=_load(wrench, payload, time),
        events=tuple(events),
    )
    prepared = replace(prepared, directions=directions(prepared, sensitivities))
    return prepared, reference


def _state_at_rest(plant: Model, actuators: np.ndarray, q: np.ndarray) -> State:
    """Return the state of a plant at actuator positions (m,), near coordinates (n_q,).

    The coordinates are those of the controller's model; the plant's lengths may differ.

    Raises:
        AssemblyError: loops do not close near these coordinates. The message lists them.
        PoseError: the plant does not reach these actuator positions.
    """
    try:
        return plant.forward_kinematics(actuators, start=q)
    except AssemblyError:
        return plant.forward_kinematics(actuators, start=plant.at(q).assembly.q)


def _load(
    wrench: Wrench | None, payload: Callable[[float], Payload] | None, time: np.ndarray
) -> np.ndarray | None:
    """Return wrench and payload at the tool at each sample (N, 16); None if neither is given.

    Raises:
        InputError: the wrench is not six finite numbers.
    """
    if wrench is None and payload is None:
        return None
    rows = []
    for t in time.tolist():
        wrench_now = wrench(t) if callable(wrench) else wrench
        payload_now = None if payload is None else payload(t)
        rows.append(loads(wrench_now, payload_now))
    loads_by_name = {}
    for name in LOAD_PORTS:
        loads_by_name[name] = np.array([row[name] for row in rows])
    arrays, _ = checked(LOAD_PORTS, loads_by_name)
    return np.concatenate([arrays[name] for name in LOAD_PORTS], axis=1)


def loop_runner(loop: Loop) -> CompiledLoop:
    """Return a compiled runner for a loop."""
    return CompiledLoop(
        *(loop.plant, loop.model, loop.controller),
        directions=len(loop.directions),
        loaded=loop.load is not None,
    )


def _check(
    plant: Model,
    model: Model,
    controller: Controller,
    sampling: Sampling,
    substeps: int,
    settling: float,
) -> None:
    problems = Problems([*cable_problems(plant.mechanism), *passive_problems(model.assembly)])
    actuators = len(model.mechanism.actuators)
    if (
        plant.topology.coordinate_names != model.topology.coordinate_names
        or plant.platform.ports.q != (model.platform.ports.q)
    ):
        problems.add(
            "plant",
            "has different coordinates from the controller's model",
            "change only values, not the structure",
        )
    if np.ndim(sampling.resolution) and np.shape(sampling.resolution) != (actuators,):
        what = (
            f"has shape {np.shape(sampling.resolution)}, but the machine has "
            f"{counted(actuators, 'actuator')}"
        )
        problems.add("resolution", what, "give one number, or one per actuator")
    if substeps < 1:
        problems.add(
            "substeps", f"must be at least 1, got {substeps}", "give a larger number, such as 4"
        )
    if not 0 <= settling < np.inf:
        problems.add(
            "settling",
            f"must be finite and not negative, got {settling:g} s",
            "give a time such as 0",
        )
    InputError.raise_if_any(problems)


def _reference(
    model: Model, controller: Controller, reference: State
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return reference positions, velocities and accelerations in the controller's space (N, n).

    The positions of a reference in platform space are all coordinates (N, n_q).
    """
    v, a = np.asarray(reference.v), np.asarray(reference.a)
    if controller.space == "platform":
        columns = list(model.platform.ports.v)
        return reference.q, v[:, columns], a[:, columns]
    A = model.assembly.loops.transmission
    return model.actuator_position(reference.q), v @ A.T, a @ A.T


def _feed_forward(model: Model, controller: Controller, reference: State) -> np.ndarray:
    """Return the feed-forward forces (N, n_u): inverse dynamics along the reference, or zeros."""
    if not controller.feeds_forward:
        return np.zeros((len(reference.q), len(model.mechanism.actuators)))
    columns = list(model.platform.ports.v)
    v, a = np.asarray(reference.v)[:, columns], np.asarray(reference.a)[:, columns]
    return model.platform.inverse_dynamics(
        model.platform.ports.at(reference.q), v, a, start=reference.q
    ).force


def _holding_forces(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the forces (1, n_u) that hold the machine at coordinates (1, n_q)."""
    zero = np.zeros((1, model.platform.ports.velocity.size))
    return model.platform.inverse_dynamics(model.platform.ports.at(q), zero, zero, start=q).force


def _gains(model: Model, controller: Controller, q: np.ndarray) -> np.ndarray:
    """Return proportional and derivative gains (2, n) at coordinates (1, n_q)."""
    in_platform = controller.space == "platform"
    if controller.compensation is Compensation.ACCELERATION:
        mass = np.ones(
            model.platform.ports.velocity.size if in_platform else len(model.mechanism.actuators)
        )
    else:
        mass = gained_masses(model, in_platform, q)
    w = controller.bandwidth
    return np.stack([w**2 * mass, 2 * controller.damping * w * mass])


def _result(
    loop: Loop, reference: State, time: np.ndarray, trace: Trace, sampling: Sampling
) -> ControlledMotion:
    plant = loop.plant
    n = len(trace.force)
    start = reference.q[:n]
    state = reference
    if n:
        state = plant.platform.kinematics(trace.position, trace.velocity, start=start)
    reference_position = plant.platform.ports.at(start)
    distance, angle = tool_errors(loop, reference_position, trace.position, start)
    diagnostics = (
        *trace.samples.diagnostics(len(loop.feedforward), trace.end),
        saturation(trace.force, loop.limit),
        *trace.diagnostics,
        *plant.limits.diagnostics(state.q, time[: len(state.q)]),
        *omission_diagnostics(plant.mechanism),
    )
    return ControlledMotion(
        diagnostics=diagnostics,
        provenance=control_provenance(loop, sampling),
        time=time[:n],
        reference=reference_position,
        position=trace.position,
        velocity=trace.velocity,
        force=trace.force,
        actuator_error=loop.model.actuator_position(start) - plant.actuator_position(state.q),
        tool_error=distance,
        turn_error=angle,
        end=trace.end,
        occurrences=trace.samples.occurrences,
        model=plant,
        sensitivities=_sensitivities(loop, time[:n], trace) if loop.directions else None,
        step_time=trace.step_time,
    )


def saturation(force: np.ndarray, limit: np.ndarray) -> Diagnostic:
    """Return the diagnostic for the fraction of forces (N, n_u) at their limits (n_u,)."""
    return diagnostic(
        SATURATED,
        float(np.mean(np.abs(force) >= limit)) if len(force) else 0.0,
        at_most=0.0,
        advice="plan a slower motion, or lower the bandwidth: actuators reached their limits",
    )


def control_provenance(loop: Loop, sampling: Sampling) -> Provenance:
    """Return the provenance of a control loop."""
    controller = loop.controller
    return provenance(
        options={
            "controller": type(controller).__name__,
            "bandwidth": controller.bandwidth,
            "damping": controller.damping,
            "space": controller.space,
            "frequency": sampling.frequency,
            "delay": loop.delay * loop.period / loop.substeps,
            "resolution": loop.resolution,
            "differences": sampling.velocity_differences,
            "substeps": loop.substeps,
        },
        inputs={"machine": loop.plant.mechanism.name, "samples": len(loop.feedforward)},
    )


def tool_errors(
    loop: Loop, reference: np.ndarray, position: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (N,), m, and angles (N,), rad, between the plant's tool and its reference.

    The reference is the tool of the controller's model at the reference positions.
    """
    if not len(position):
        return np.zeros(0), np.zeros(0)
    expected = loop.model.platform.tool(reference, start=start)
    actual = loop.plant.platform.tool(position, start=start)
    distance = np.linalg.norm(actual.place - expected.place, axis=1)
    # the Frobenius norm of a difference of rotations is sqrt(8) sin(angle / 2)
    chord = np.linalg.norm(actual.rotation - expected.rotation, axis=(1, 2)) / np.sqrt(8.0)
    return distance, 2.0 * np.arcsin(np.minimum(chord, 1.0))


def _sensitivities(loop: Loop, time: np.ndarray, trace: Trace) -> xr.Dataset:
    ports = loop.plant.platform.ports
    names, units = loop.plant.output_ports("actuators")
    quantities = ports.position, ports.velocity, Port(name="force", columns=names, units=units)
    return labeled(time, quantities, trace.by, loop.directions)
