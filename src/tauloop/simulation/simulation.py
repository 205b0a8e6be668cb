"""Simulation of a machine's motion in time, with diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import (
    OVER_TIME,
    channels,
    in_table,
    quantity_over,
)
from tauloop.common.errors import DescriptionError, InputError, Problem
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Provenance, Result, diagnostic, provenance
from tauloop.compiler.c.printing.source import CFunction
from tauloop.compiler.functions.extended import energy_program
from tauloop.compiler.functions.tool import WRENCH
from tauloop.compiler.program import Program
from tauloop.equations.assembly.limits import LimitViolation
from tauloop.equations.ports import coordinate_units, numbers
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import DormandPrince, Integrator, described
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    labeled,
    sensitivity_rows,
    split_sensitivities,
)
from tauloop.logs.log import log_of
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.runner import Runner
from tauloop.simulation.ending import why_ended
from tauloop.simulation.events import occurrences
from tauloop.simulation.forces import ConstantForce, ForceLaw, ToolForce, Wrench
from tauloop.simulation.routes import IndependentCoordinates, Route, built_once
from tauloop.simulation.sensitivity import (
    motion_along,
    require_differentiable,
    simulation_directions,
)
from tauloop.simulation.stepping.compiled import CompiledStepper
from tauloop.simulation.stepping.stepper import Laws, SteppingState
from tauloop.simulation.stepping.steps import Ending, Steps, joined_steps
from tauloop.simulation.system import N_ENERGY_STATES, System

if TYPE_CHECKING:
    import xarray as xr

#: Largest loop residual of a reliable simulation, in characteristic lengths: 10 nm for a machine
#: with a characteristic length of 0.2 m.
SIMULATED_LOOP_TOLERANCE = 5e-8
#: Largest energy error of a reliable simulation, as a fraction of the largest kinetic energy.
ENERGY_TOLERANCE = 1e-6
#: Largest difference between the start coordinates and the closed forms' solution, in
#: characteristic lengths or rad; beyond it the start is on another branch.
BRANCH_TOLERANCE = 1e-4


def _last(time: np.ndarray) -> float:
    return float(time[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation(Result):
    """The motion of a machine under forces, at the ends of the integrator's steps.

    Attributes:
        machine: name of the machine.
        coordinate_names, velocity_names, actuator_names: names of the columns.
        time: times of the steps (N,), s.
        q, v: coordinates and velocities (N, n_q), (N, n_v).
        force: actuator forces (N, n_u), N or N m.
        wrench: force and moment at the tool (N, 6); no columns if none acts.
        kinetic, potential: energies (N,), J; NaN if the kinetic energy of a rod is not defined.
        work, loss: work of actuators and wrench, and friction losses, since the start (N,), J.
        residual: largest residual of all loop equations, including redundant ones (N,), m;
            dimensionless equations are multiplied by the characteristic length.
        duration: requested duration, s.
        ending: why the simulation ended.
        problem: the problem and its remedy; None if the simulation reached the end or a terminal
            event.
        occurrences: events in order of time.
        steps: the integrator's steps, with polynomials between them.
        system: the equations that were integrated.
        sensitivities: derivatives of the platform's `position` and `velocity`, SI, with units. The
            axes are time, column and parameter (`by`). None if no sensitivities were requested.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "time",
        "position",
        "velocity",
        "force",
        "energy",
        "coordinate",
        "residual",
    )
    machine: str
    coordinate_names: tuple[str, ...] = field(metadata=OMITTED)
    velocity_names: tuple[str, ...] = field(metadata=OMITTED)
    actuator_names: tuple[str, ...] = field(metadata=OMITTED)
    time: np.ndarray = field(metadata=json_keys("reached_s", summary=_last) | OVER_TIME)
    q: np.ndarray = field(
        metadata=OMITTED | channels("time", port="system.model.coordinate_port", name="coordinate")
    )
    v: np.ndarray = field(metadata=OMITTED)
    force: np.ndarray = field(metadata=OMITTED | channels("time", port="system.model.force_port"))
    wrench: np.ndarray = field(metadata=OMITTED)
    kinetic: np.ndarray = field(
        metadata=json_keys("largest_kinetic_energy_J", nullable=True, summary=np.max)
        | quantity_over("time", name="energy.kinetic", unit="J")
    )
    potential: np.ndarray = field(
        metadata=OMITTED | quantity_over("time", name="energy.potential", unit="J")
    )
    work: np.ndarray = field(metadata=OMITTED | quantity_over("time", name="energy.work", unit="J"))
    loss: np.ndarray = field(metadata=OMITTED | quantity_over("time", name="energy.loss", unit="J"))
    residual: np.ndarray = field(
        metadata=json_keys("largest_loop_residual_m", summary=np.max)
        | quantity_over("time", unit="m")
    )
    duration: float = field(metadata=json_keys("duration_s"))
    ending: Ending
    problem: Problem | None
    occurrences: tuple[Occurrence, ...] = field(metadata=json_keys("events"))
    steps: Steps = field(
        repr=False,
        metadata=json_keys(steps="count", rejected_steps="rejected", evaluations="evaluations"),
    )
    system: System = field(repr=False, metadata=OMITTED)
    sensitivities: xr.Dataset | None = field(
        default=None, repr=False, metadata=json_keys(optional=True, summary=sensitivity_rows)
    )

    @property
    @in_table(channels("time", port="system.model.platform.ports.position", name="position"))
    def platform_position(self) -> np.ndarray:
        """Positions of the platform (N, n), m, rad or components of a quaternion."""
        return self.q[:, list(self.system.model.platform.ports.q)]

    @property
    @in_table(channels("time", port="system.model.platform.ports.velocity", name="velocity"))
    def platform_velocity(self) -> np.ndarray:
        """Velocities of the platform (N, m), m/s or rad/s."""
        return self.v[:, list(self.system.model.platform.ports.v)]

    @property
    def energy_error(self) -> np.ndarray:
        """Error of the energy balance T + V - work + loss = constant (N,), J."""
        balance = self.kinetic + self.potential - self.work + self.loss
        return np.asarray(balance - balance[0])

    @property
    @in_json(nullable=True)
    def relative_energy_error(self) -> float:
        """Largest energy error divided by the largest kinetic energy.

        Infinite for a machine at rest whose energy changes.
        """
        error = float(np.abs(self.energy_error).max())
        kinetic = float(self.kinetic.max())
        if kinetic > 0:
            return error / kinetic
        return 0.0 if error == 0 else np.inf

    @property
    @in_json()
    def beyond_stops(self) -> tuple[LimitViolation, ...]:
        """Coordinates that exceed their limits, with the largest excess and the first time.

        The simulation does not enforce limits.
        """
        return self.system.model.limits.beyond(self.q, self.time)

    def coordinate(self, name: str) -> np.ndarray:
        """Return the values of a coordinate over time (N,), by its name."""
        return np.asarray(self.q[:, self.coordinate_names.index(name)])

    def at(self, time: object) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates (N, n_q) and velocities (N, n_v) at times (N,), from dense output.

        Raises:
            InputError: a time is outside the simulated interval.
        """
        times = np.atleast_1d(np.asarray(time, dtype=float))
        if not len(self.steps) or not ((times >= self.time[0]) & (times <= self.time[-1])).all():
            interval = f"{times.min():.6g} to {times.max():.6g} s"
            problem = f"{interval} is outside the simulated 0 to {self.time[-1]:.6g} s"
            raise InputError.of("time", problem, "give times within the simulated interval")
        step = np.searchsorted(self.time, times, side="right") - 1
        near = self.q[np.clip(step, 0, len(self.q) - 1)]
        return self.system.decoded(self.steps.at(times), near)

    def log(self) -> xr.Dataset:
        """Return the platform's motion and the actuator forces as a log for `tauloop dynamics`."""
        return log_of(self, "position", "velocity", "force")

    @property
    @in_json()
    def route(self) -> str:
        """Name of the route."""
        return type(self.system.route).__name__

    @property
    @in_json()
    def final(self) -> dict[str, float]:
        """Coordinates at the end, by name."""
        return dict(zip(self.coordinate_names, map(float, self.q[-1]), strict=True))


class Simulator:
    """A machine with a route and an integrator, compiled once for any number of simulations."""

    def __init__(
        self,
        model: Model,
        *,
        route: Route | None = None,
        integrator: Integrator | None = None,
        with_wrench: bool = False,
        sensitivities: Sequence[str] = (),
    ) -> None:
        """Build the system; the first run compiles it.

        Args:
            model: the machine.
            route: method of forward dynamics; independent coordinates by default.
            integrator: integration method; Dormand-Prince by default.
            with_wrench: whether simulations have a wrench at the tool.
            sensitivities: names of machine parameters and start values, such as
                ``position.platform.x``, with respect to which simulations are differentiated. The
                platform's start position and velocity do not depend on machine parameters.

        Raises:
            InputError, DescriptionError: see `System`.
        """
        self.model = model.with_free_parameters(
            name for name in sensitivities if name in model.mechanism.parameters.names
        )
        self.sensitivities = tuple(sensitivities)
        self.integrator: Integrator = DormandPrince() if integrator is None else integrator
        self.system = System(
            self.model,
            IndependentCoordinates() if route is None else route,
            with_wrench=with_wrench,
        )
        self.stepper = CompiledStepper(self.system, self.integrator, len(self.sensitivities))
        self._energy = _energy(model)
        self._by_runner: dict[Runner, Simulator] = {}

    def run(
        self,
        duration: float,
        *,
        q: object | None = None,
        v: object | None = None,
        force: ForceLaw | None = None,
        wrench: Wrench | ToolForce | None = None,
        events: Sequence[Event] = (),
        progress: Progress | None = None,
    ) -> Simulation:
        """Simulate from an initial state, and return the motion.

        If the simulation ends early, the motion until then is returned.

        Args:
            duration: duration, s.
            q: start coordinates (n_q,); the assembled reference pose by default.
            v: start velocities (n_v,); zero by default.
            force: law of the actuator forces; zero by default.
            wrench: force and moment at the tool center point in the base frame (6,), a
                function of time, or a function of the tool's motion (with continuous force laws
                only).
            events: events to detect.
            progress: called with the simulated time and the duration.

        Raises:
            InputError: the duration is not positive and finite; an array has a wrong shape; the
                start is on another branch of the closed forms; a wrench acts, but the simulator was
                built without it; or sensitivities have unknown names, or are combined with Coulomb
                friction or with force laws in Python that depend on the motion.
            AssemblyError: the start is not assembled.
            EngineError: there is no C compiler, or it fails.
        """
        if not 0 < duration < np.inf:
            raise InputError.of(
                "duration",
                f"must be positive and finite, got {duration:g} s",
                "give a time such as 1.0",
            )
        if wrench is not None and not self.system.with_wrench:
            raise InputError.of(
                "wrench",
                "the simulator was built without a wrench",
                "build the simulator with with_wrench=True",
            )
        start_q = self.model.assembly.q if q is None else numbers(q, "q")
        start_v = np.zeros(self.model.topology.n_v) if v is None else numbers(v, "v")
        y = self.system.encode(start_q, start_v)
        ((branch_simulator, _),) = self.by_branch(start_q[None, :])
        if branch_simulator is not self:
            return branch_simulator.run(
                duration,
                q=start_q,
                v=start_v,
                force=force,
                wrench=wrench,
                events=events,
                progress=progress,
            )
        self.require_branch(y[None, :], start_q[None, :])
        applied_forces = _AppliedForces(self.system, force, wrench)
        if self.sensitivities:
            require_differentiable(self.system, force, wrench)
        directions = simulation_directions(self.system, self.sensitivities, start_q, start_v)
        state = self.stepper.begin(y, applied_forces, start_q, directions, duration)
        stages = Stages(progress, 1)
        parts: list[Steps] = []
        all_occurrences: list[Occurrence] = []
        ending: Ending | None = None
        while ending is None:
            part = self.stepper.advance(state, duration)
            stages.part(state.time, duration)
            new_occurrences = occurrences(tuple(events), part, self.system.decoded)
            all_occurrences += new_occurrences
            parts.append(part)
            if new_occurrences and new_occurrences[-1].is_terminal:
                parts[-1] = _truncated(part, new_occurrences[-1].time)
                ending = Ending.EVENT
            elif part.ending is not None:
                ending = part.ending
            elif sum(map(len, parts)) >= self.integrator.max_steps:
                ending = Ending.MAX_STEPS
        steps = joined_steps(parts)
        result = self._result(steps, duration, ending, all_occurrences, state, applied_forces)
        return self._differentiated(result, directions) if directions else result

    def by_branch(self, q: np.ndarray) -> list[tuple[Simulator, np.ndarray]]:
        """Return simulators for start coordinates (N, n_q), each with the indices of its starts.

        A branch is an assembly mode of the closed forms. Each branch other than the reference
        branch has a separate simulator, which is built once and stored.

        Raises:
            AssemblyError: the loops have a different rank at a start.
        """
        if not self.system.route.is_independent:
            return [(self, np.arange(len(q)))]
        branches = []
        reference_runner = self.model.platform.runner
        for runner, indices in reference_runner.by_branch(q):
            if runner is not reference_runner and runner not in self._by_runner:
                self._by_runner[runner] = Simulator(
                    self.model.at(q[indices[0]]),
                    route=self.system.route,
                    integrator=self.integrator,
                    with_wrench=self.system.with_wrench,
                    sensitivities=self.sensitivities,
                )
            branches.append((self._by_runner.get(runner, self), indices))
        return branches

    def require_branch(self, y: np.ndarray, q: np.ndarray) -> None:
        """Reject starts that are not on the reference branch of the closed forms.

        At such a start, the coordinates differ from the values that the closed forms compute from
        the independent coordinates.

        Args:
            y: states (N, n).
            q: coordinates of the same starts (N, n_q).

        Raises:
            InputError: a start differs. The message states the coordinate and the difference.
        """
        rates = self.system.rates(y, np.zeros((1, self.system.acting)), q, is_compiled=True)
        # unreachable starts are not rejected here: their integration ends at once with the reason
        topology = self.model.topology
        difference = np.abs(rates.q - q)[rates.is_good]
        wrapped = np.minimum(difference % (2 * np.pi), -difference % (2 * np.pi))
        difference = np.where(topology.is_angle, wrapped, difference)
        relative = difference / self.model.assembly.loops.coordinate_scale
        if relative.max(initial=0.0) > BRANCH_TOLERANCE:
            row, worst = np.unravel_index(int(np.argmax(relative)), difference.shape)
            unit = coordinate_units(topology)[worst]
            problem = (
                f"differs by {difference[row, worst]:.4g} {unit} at the start from the value that "
                "follows from the independent coordinates"
            )
            remedy = "simulate in full coordinates (`Projected`), or make the start the reference (`Model.at`)"
            raise InputError.of(topology.coordinate_names[worst], problem, remedy)

    def _result(
        self,
        steps: Steps,
        duration: float,
        ending: Ending,
        events: list[Occurrence],
        state: SteppingState,
        applied_forces: _AppliedForces,
    ) -> Simulation:
        steps, last_q, last_v = self._without_unreachable_end(steps, state.guess)
        q, v = np.vstack([steps.q, last_q]), np.vstack([steps.v, last_v])
        last_forces = applied_forces.at(float(steps.time[-1]), steps.y[-1], last_q[0], state)
        acting = np.vstack([steps.acting, last_forces])
        kinetic, potential = self.energies(q, v)
        n_u = len(self.model.mechanism.actuators)
        topology = self.model.topology
        result = Simulation(
            diagnostics=(),
            provenance=self.provenance(duration),
            machine=self.model.mechanism.name,
            coordinate_names=topology.coordinate_names,
            velocity_names=topology.velocity_names,
            actuator_names=tuple(actuator.name for actuator in self.model.mechanism.actuators),
            time=steps.time,
            q=q,
            v=v,
            force=acting[:, :n_u],
            wrench=acting[:, n_u:],
            kinetic=kinetic,
            potential=potential,
            work=steps.y[:, self.system.size - N_ENERGY_STATES],
            loss=steps.y[:, self.system.size - 1],
            residual=self.system.residual(q),
            duration=duration,
            ending=ending,
            problem=why_ended(self.system, ending, steps, q[-1], v, acting[-1], self.integrator),
            occurrences=tuple(events),
            steps=steps,
            system=self.system,
        )
        return replace(result, diagnostics=_diagnostics(result))

    def _differentiated(
        self, result: Simulation, directions: Sequence[SensitivityDirection]
    ) -> Simulation:
        """Return the simulation with its sensitivities, which follow the states in `result`."""
        states, states_by = split_sensitivities(result.steps.y, directions)
        tangent = self.stepper.routines.rate.calls[0].tangent
        assert tangent is not None
        assert isinstance(tangent.function, CFunction)
        theta_by = np.array([direction.constants for direction in directions])
        motion = motion_along(
            self.system, tangent.function.program, states, result.q, states_by, theta_by
        )
        ports = self.model.platform.ports
        polynomials = result.steps.polynomials[:, :, : self.system.size]
        return replace(
            result,
            steps=replace(result.steps, y=states, polynomials=polynomials),
            sensitivities=labeled(
                result.time, (ports.position, ports.velocity), motion, directions
            ),
        )

    def _without_unreachable_end(
        self, steps: Steps, guess: np.ndarray
    ) -> tuple[Steps, np.ndarray, np.ndarray]:
        """Return the steps, and q and v (1, n) at their end.

        If the last state is unreachable, the last step is removed.
        """
        near = steps.q[-1:] if len(steps) else guess[None, :]
        q, v = self.system.decoded(steps.y[-1:], near)
        if len(steps) and not (np.isfinite(q).all() and np.isfinite(v).all()):
            return steps.first(len(steps) - 1), steps.q[-1:], steps.v[-1:]
        return steps, q, v

    def energies(
        self, q: np.ndarray, v: np.ndarray, work: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return kinetic and potential energies (N,) of states (N, n_q), (N, n_v), J.

        They are NaN if the kinetic energy of a rod is not defined. If the states are only a part of
        the samples, `work` is the total number of samples, which decides whether compiling pays off.
        """
        if self._energy is None:
            undefined = np.full(len(q), np.nan)
            return undefined, undefined
        energies, _ = self.system.runs(self._energy, {"q": q, "v": v}, len(q), work=work)
        return energies["kinetic"][:, 0], energies["potential"][:, 0]

    def provenance(self, duration: float) -> Provenance:
        """Return the provenance of a simulation of this duration (s)."""
        route, integrator = self.system.route, self.integrator
        options = {
            "route": described(route),
            "integrator": described(integrator),
            "duration_s": duration,
        }
        return provenance(
            packages=("numpy", "scipy", "casadi"),
            options=options,
            inputs={"machine": self.model.mechanism.name},
        )


def start_state(
    model: Model, position: object, velocity: object | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial coordinates (n_q,) and velocities (n_v,) for a state of the platform.

    Args:
        model: the machine.
        position: position of the platform (n,).
        velocity: velocity of the platform; zero by default.

    Raises:
        InputError, PoseError: see `Motion.kinematics`.
    """
    rates = np.zeros(model.platform.ports.velocity.size) if velocity is None else velocity
    state = model.platform.kinematics(position, rates)
    return state.q, np.asarray(state.v)


class _AppliedForces(Laws):
    """Forces and wrench of a simulation, as laws that the stepper calls.

    There are at most two laws: a continuous law, and a law whose values are held between its samples.
    """

    def __init__(
        self, system: System, force: ForceLaw | None, wrench: Wrench | ToolForce | None
    ) -> None:
        n_u = len(system.model.mechanism.actuators)
        self._system = system
        self._n_u = n_u
        variable_force = None if isinstance(force, ConstantForce) else force
        variable_wrench = wrench if callable(wrench) or isinstance(wrench, ToolForce) else None
        super().__init__(np.zeros(system.acting))
        if isinstance(force, ConstantForce):
            self.constant[:n_u] = _numbers("force", force.values, n_u)
        if wrench is not None and variable_wrench is None:
            self.constant[n_u:] = _numbers("wrench", wrench, WRENCH)
        if force is not None and force.period:
            self.period = force.period
        self._last_q = system.model.assembly.q
        if self.period:
            self.sampled = partial(self._set_forces, variable_force, None)
            variable_force = None
        if variable_force is not None or variable_wrench is not None:
            self.law = partial(self._set_forces, variable_force, variable_wrench)

    def _set_forces(
        self,
        force: ForceLaw | None,
        wrench: Callable[[float], np.ndarray] | ToolForce | None,
        time: float,
        y: np.ndarray,
        acting: np.ndarray,
    ) -> None:
        """Write the forces and the wrench at a time (s) and a state into `acting`."""
        needs_state = isinstance(wrench, ToolForce) or (force is not None and force.needs_state)
        q, v = self._decoded(y) if needs_state else (self._last_q, self._last_q[:0])
        if force is not None:
            acting[: self._n_u] = force.force(time, q, v)
        if isinstance(wrench, ToolForce):
            acting[self._n_u :] = wrench.wrench(self._system.model, time, q, v)
        elif wrench is not None:
            acting[self._n_u :] = wrench(time)

    def _decoded(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v = self._system.decoded(y[None, :], self._last_q[None, :])
        if np.isfinite(q).all():
            self._last_q = q[0]
        return q[0], v[0]

    def at(self, time: float, y: np.ndarray, q: np.ndarray, progress: SteppingState) -> np.ndarray:
        """Return forces and wrench at the end of a simulation.

        The forces of a sampled law are those of its last sample.
        """
        acting = progress.acting.copy()
        if self.law is not None:
            self._last_q = q
            self.law(time, y, acting)
        return acting


def _numbers(where: str, values: object, size: int) -> np.ndarray:
    array = numbers(values, where)
    if array.shape != (size,) or not np.isfinite(array).all():
        problem = f"needs {counted(size, 'finite number')}, got an array of shape {array.shape}"
        raise InputError.of(where, problem, "give one number per actuator; six for a wrench")
    return array


def _truncated(part: Steps, time: float) -> Steps:
    """Return the steps up to a time. The last step is shortened so that it ends there."""
    m = int(np.searchsorted(part.time, time, side="left"))
    fraction = (time - part.time[m - 1]) / (part.time[m] - part.time[m - 1])
    steps = part.first(m)
    # the polynomials depend on the position in the step, from 0 to 1
    steps.polynomials[-1] *= fraction ** np.arange(1, part.polynomials.shape[1] + 1)[:, None]
    steps.time[-1] = time
    steps.y[-1] = part.at(np.array([time]))[0]
    return replace(steps, ending=Ending.EVENT)


def _energy(model: Model) -> Program | None:
    """Return the program of the energies; None if the kinetic energy of a rod is not defined."""
    try:
        return built_once(model, "energy", lambda: energy_program(model.assembly))
    except DescriptionError:
        return None


def _diagnostics(result: Simulation) -> tuple[Diagnostic, ...]:
    has_energy = bool(np.isfinite(result.kinetic).all()) and np.isfinite(
        result.relative_energy_error
    )
    reached = 1.0 if result.ending is Ending.EVENT else float(result.time[-1] / result.duration)
    return (
        diagnostic(
            "fraction of the duration reached",
            reached,
            at_least=1.0 if result.ending is not Ending.EVENT else None,
            advice=result.ending.value,
        ),
        *balance_diagnostics(
            result.relative_energy_error if has_energy else None,
            float(result.residual.max()),
            result.system.model.assembly.loops.length,
        ),
        *result.system.model.limits.diagnostics(result.q, result.time),
        *omission_diagnostics(result.system.model.mechanism),
    )


def balance_diagnostics(
    energy: float | None, residual: float, length: float
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the energy balance and the loops.

    Args:
        energy: energy error divided by the largest kinetic energy.
        residual: largest residual of the loops, m.
        length: characteristic length of the machine, m.
    """
    return (
        diagnostic(
            "energy-balance error as a fraction of the largest kinetic energy",
            energy,
            at_most=ENERGY_TOLERANCE,
            advice="tighten the tolerances or shorten the step",
        ),
        diagnostic(
            "largest residual of the loops",
            residual,
            at_most=SIMULATED_LOOP_TOLERANCE * length,
            unit="m",
            advice="use independent coordinates or projection, or a stronger stabilization",
        ),
    )
