"""Simulation of a machine that follows a path through its drive lines, and its error."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import OVER_TIME, channels, tabulated_by
from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.compiler.c.calling.evaluator import default_evaluator
from tauloop.compiler.functions.extended import energy_program
from tauloop.drives.axis.simulation import signal_variables
from tauloop.drives.equations.system import sign_problems
from tauloop.drives.machine.bristles import with_bristles, without_dry_friction
from tauloop.drives.machine.lines import (
    direct_line,
    encoder_ratios,
    load_side_machine,
    require_lines,
    rigid_machine,
    rigid_without_dry_friction,
    with_lines,
    with_one_motor,
    without_backlash,
)
from tauloop.drives.machine.routines import sampled_machine
from tauloop.drives.machine.sensitivity import machine_directions
from tauloop.drives.machine.system import (
    MACHINE_INPUTS,
    N_ENERGY_STATES,
    MachineSystem,
    machine_system,
)
from tauloop.integrate.events import Event, Occurrence
from tauloop.integrate.integrators import DormandPrince, Integrator, described
from tauloop.integrate.outcome import StepOutcome
from tauloop.integrate.sampled import (
    CompiledSamples,
    SampledRun,
    SampledTrace,
)
from tauloop.integrate.sensitivity import course_along, labeled, sensitive, split_sensitivities
from tauloop.mechanism.drive_line import DriveLine, DualDrive
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model
from tauloop.motion import Trajectory

if TYPE_CHECKING:
    import xarray as xr

#: Largest error of the energy balance, as a fraction of the largest of work, losses and change of
#: energy. The errors of many thousand integration steps add up to less than this.
MAX_ENERGY_ERROR = 1e-5
#: Bandwidth of actuators without a drive line, rad/s.
DIRECT_BANDWIDTH = 100.0
#: Integrator with tolerances at which the results of a path have a relative error of 1e-6
#: (docs/drives.md).
PATH_INTEGRATOR = DormandPrince(rtol=1e-8, atol=1e-10, max_steps=20_000_000)


class Variation(enum.Enum):
    """A variation of the drive lines."""

    AS_DESCRIBED = "as described"
    ONE_MOTOR = "one motor"
    NO_PLAY = "one motor, no play"
    RIGID = "rigid"

    @property
    def label(self) -> str:
        """Name of the variation in tables."""
        return "two motors" if self is Variation.AS_DESCRIBED else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenMotion(Result):
    """Motion of a machine that follows a trajectory, at the samples of the control.

    Attributes:
        time: times (N,), s, zero where the trajectory starts; they end early if the run failed.
        reference: commanded positions of the platform (N, n_position), m or rad.
        position: simulated positions of the platform (N, n_position), m or rad.
        error: position minus reference of the platform coordinates in m (N, n), m.
        columns: names of these coordinates.
        actuator_error: actuator positions minus their reference (N, n_u), m or rad.
        signals: signals (N,) by actuator and name with unit, such as
            ``track1.motor: gearbox1.force [N m]``.
        turned_over: scale of the energy balance: the largest of the motors' work, the losses and
            the change of energy, J.
        steps, events: numbers of steps and events of the integrator.
        end: why the run ended early; empty if the whole trajectory was run.
        occurrences: events in the order of time.
        sensitivities: derivatives of `position` and `velocity` over time, column and parameter
            (`by`), SI, with units; None if none were requested.
    """

    time: np.ndarray = field(metadata=OVER_TIME)
    reference: np.ndarray
    position: np.ndarray
    error: np.ndarray = field(metadata=channels("time", names="columns", unit="m"))
    columns: tuple[str, ...]
    actuator_error: np.ndarray
    signals: Mapping[str, np.ndarray] = field(metadata=tabulated_by(signal_variables))
    turned_over: float
    steps: int
    events: int
    end: str
    occurrences: tuple[Occurrence, ...]
    sensitivities: xr.Dataset | None = None

    @property
    def distance(self) -> np.ndarray:
        """Distance from the reference (N,), m."""
        return np.linalg.norm(self.error, axis=1)


class DrivenMachine:
    """A machine with its drive lines, compiled once for any number of trajectories."""

    def __init__(
        self,
        mechanism: Mechanism,
        *,
        variation: Variation = Variation.AS_DESCRIBED,
        bandwidth: float = DIRECT_BANDWIDTH,
        period: float | None = None,
        presliding: float | None = None,
        folder: Path | None = None,
    ) -> None:
        """Build the equations; the first run compiles them.

        Args:
            mechanism: machine with a drive line on at least one actuator.
            variation: how the drive lines are simplified.
            bandwidth: bandwidth of actuators without a drive line, rad/s.
            period: control period of actuators without a drive line, s; used only if no drive line
                has a sample time.
            presliding: bristle deflection at the actuator, m or rad. LuGre friction with this
                deflection replaces Coulomb friction at which the machine could stick. By default
                such friction is rejected.
            folder: folder of compiled code; default: the user's cache.

        Raises:
            InputError: there is neither a drive line nor a period, or a line cannot be used on this
                machine.
        """
        if period is None:
            require_lines(mechanism)
        self.lines = tuple(_varied(actuator.drive, variation) for actuator in mechanism.actuators)
        varied = with_lines(mechanism, self.lines)
        removed_friction = None
        if presliding is not None:
            varied, removed_friction = without_dry_friction(varied)
        self.mechanism, self.variation = varied, variation
        #: Model of the control: rigid drive lines without Coulomb friction.
        self.model = Model(rigid_machine(varied, with_dry=False))
        plant = Model(load_side_machine(varied))
        lines = self._complete(bandwidth, period)
        if presliding is not None and removed_friction is not None:
            lines = tuple(
                with_bristles(varied, line, friction, presliding)
                for line, friction in zip(lines, removed_friction, strict=True)
            )
        self.system: MachineSystem = machine_system(varied, plant, lines)
        self._evaluator = default_evaluator(folder=folder)
        self.runner = CompiledSamples(sampled_machine(self.system), self._evaluator)

    def _complete(self, bandwidth: float, period: float | None) -> tuple[DriveLine, ...]:
        """Return a drive line for every actuator: its own, or a motor that acts directly on it."""
        times = [line.control.sample_time for line in self.lines if line is not None]
        sample_times = [self.mechanism.value(time) for time in times if time is not None]
        direct_period = sample_times[0] if sample_times else period or 0.0
        is_rotary = [unit == "N m" for unit in self.model.output_ports("actuators")[1]]
        mass = np.zeros(len(is_rotary))
        if not all(self.lines):
            # diagonal of the mass matrix at the reference pose: the inertia that each actuator moves
            # while the other actuators are fixed
            q = self.model.assembly.q
            mass = np.diagonal(
                self.model.actuators.mass_matrix(self.model.actuator_position(q), start=q)
            )
        return tuple(
            line or direct_line(actuator, is_rotary[i], float(mass[i]), bandwidth, direct_period)
            for i, (actuator, line) in enumerate(
                zip(self.mechanism.actuators, self.lines, strict=True)
            )
        )

    def follow(
        self,
        trajectory: Trajectory,
        *,
        values: Mapping[str, float] | None = None,
        settling: float = 0.5,
        integrator: Integrator = PATH_INTEGRATOR,
        feed_forward: bool = True,
        events: Sequence[Event] = (),
        sensitivities: Sequence[str] = (),
    ) -> DrivenMotion:
        """Follow a trajectory from rest at its start.

        Args:
            trajectory: trajectory in platform coordinates, of a machine of the same structure.
            values: independent parameters of the drive lines that differ from the machine file, SI,
                by name.
            settling: time at rest before the motion, s, in which the gears come into contact.
            integrator: integrator of the equations.
            feed_forward: whether the forces of inverse dynamics along the reference are added to
                the controls' output.
            events: events of coordinates and velocities to detect; a terminal event ends the run.
            sensitivities: names of the parameters and initial values with respect to which the
                motion is differentiated: parameters of the lines and of the machine that they move,
                and initial values of the machine, such as ``position.platform.x``. Reference,
                feed-forward and the initial states of the lines are constant.

        Returns:
            The motion of the machine and its drive lines.

        Raises:
            InputError: invalid numbers, or parameters that the lines do not have. A failure during
                the run is not raised: the result ends early and states the reason.
            PoseError: the trajectory has no reference motion of the actuators.
        """
        run = PathRun(self, trajectory, values, settling, feed_forward)
        course = run.sampled_run(integrator, events)
        if not sensitivities:
            return run.result(self.runner(course), integrator)
        system, directions = machine_directions(self.system, course, sensitivities)
        free = system.plant.mechanism.parameters.vector(system.plant.free)
        course = course_along(replace(course, p=np.append(course.p, free)), directions)
        sampled = sensitive(sampled_machine(system), len(directions))
        trace = CompiledSamples(sampled, self._evaluator)(course)
        states, motion_by = split_sensitivities(trace.states, directions)
        held, _ = split_sensitivities(trace.held, directions)
        motion = run.result(replace(trace, states=states, held=held), integrator)
        ports = system.plant.platform.ports
        by = labeled(motion.time, (ports.position, ports.velocity), motion_by, directions)
        return replace(motion, sensitivities=by)


def _varied(line: DriveLine | None, variation: Variation) -> DriveLine | None:
    if line is None or variation is Variation.AS_DESCRIBED:
        return line
    single = with_one_motor(line)
    if variation is Variation.ONE_MOTOR:
        return single
    if variation is Variation.NO_PLAY:
        return without_backlash(single)
    return rigid_without_dry_friction(single)


class PathRun:
    """References of the drive lines along one trajectory, and the result of its simulation.

    Attributes:
        time: times of the samples (N,), s; zero where the trajectory starts.
        reference: reference of each line (N, n_u, 4): position, position before its step, speed,
            and feed-forward torque.
    """

    def __init__(
        self,
        machine: DrivenMachine,
        trajectory: Trajectory,
        values: Mapping[str, float] | None = None,
        settling: float = 0.5,
        feed_forward: bool = True,
    ) -> None:
        """Compute references and feed-forward; arguments are those of `DrivenMachine.follow`."""
        if not 0 <= settling < np.inf:
            raise InputError.of(
                "settling",
                f"must be finite and not negative, got {settling:g} s",
                "give a time of zero or more, such as 0.5 s",
            )
        self.machine, self.values = machine, dict(values or {})
        system, model = machine.system, machine.model
        actuators = len(model.mechanism.actuators)
        if actuators != model.platform.ports.velocity.size:
            freedoms = counted(model.platform.ports.velocity.size, "degree of freedom")
            what = f"has {counted(actuators, 'actuator')} for {freedoms}"
            raise InputError.of(
                model.mechanism.name,
                what,
                "use a machine with an actuator for each degree of freedom",
            )
        settling_samples = int(np.ceil(settling / system.period - 1e-9))
        motion_samples = int(np.ceil(trajectory.total / system.period - 1e-9)) + 1
        self.time = np.arange(-settling_samples, motion_samples) * system.period
        motion = trajectory.at(self.time)
        start = trajectory.stroke.start(trajectory.places(self.time))
        functions = model.platform
        if trajectory.stroke.functions.ports.position.columns != functions.ports.position.columns:
            what = "the path was planned for a machine with other platform coordinates"
            raise InputError.of("trajectory", what, "plan the path with stroke(model, ...)")
        forces = functions.inverse_dynamics(
            motion.position, motion.velocity, motion.acceleration, start=start
        )
        state = forces.state
        self.platform = motion.position
        self.q = state.q
        position = model.actuator_position(state.q)
        # reference speeds and measured speeds are both backward differences of positions, so they
        # have the same delay
        speed = np.diff(position, axis=0, prepend=position[:1]) / system.period
        self.actuators = position
        span = np.ptp(position, axis=0)
        feed_torque = np.zeros_like(position)
        if feed_forward:
            ratios = np.array([line.ratio for line in system.lines])
            feed_torque = np.asarray(forces.force) / ratios
        position_ratios, speed_ratios = encoder_ratios(
            machine.mechanism, (item.line for item in system.lines)
        )
        # the control switches its motors by the error relative to the step of the reference, and
        # preloads act in the direction of the step; on a path the range of the motion replaces the
        # size of the step
        before = position - np.where(span > 0, span, 1.0)
        self.reference = np.stack(
            [
                position * position_ratios,
                before * position_ratios,
                speed * speed_ratios,
                feed_torque,
            ],
            axis=2,
        )

    def sampled_run(self, integrator: Integrator, events: Sequence[Event] = ()) -> SampledRun:
        """Return the inputs of a run from rest, with every line in the middle of its gaps.

        Raises:
            InputError: unknown or invalid parameters.
        """
        system = self.machine.system
        p = self._parameters()
        q = self.q[0]
        ports = system.plant.platform.ports
        states = [ports.at(q), np.zeros(ports.velocity.size + N_ENERGY_STATES)]
        held = []
        for i, line in enumerate(system.lines):
            x = line.rest_state_per_position * self.actuators[0, i]
            states += [x, np.zeros(N_ENERGY_STATES)]
            load = np.array([self.actuators[0, i], 0.0])
            modes, inputs = np.zeros(len(line.mode_names)), np.zeros(len(MACHINE_INPUTS))
            zeros = np.zeros(line.held_size)
            held.append(np.array(line.initial_hold(x, load, modes, zeros, inputs, p)).ravel())
        return SampledRun(
            period=system.period,
            inputs=self._inputs(len(self.time), integrator).reshape(len(self.time), -1),
            y=np.concatenate(states),
            held=np.concatenate(held),
            q=q,
            p=p,
            method=integrator.method,
            max_steps=integrator.max_steps,
            events=events,
        )

    def _inputs(self, n: int, integrator: Integrator) -> np.ndarray:
        """Return the references of the lines at the first samples (n, n_u, n_i)."""
        inputs = np.zeros((n, self.reference.shape[1], len(MACHINE_INPUTS)))
        inputs[:, :, [0, 1, 4, 5]] = self.reference[:n]
        inputs[:, :, 3] = integrator.method.atol  # the speed that counts as standstill
        return inputs

    def _parameters(self) -> np.ndarray:
        """Return the values of the lines' parameters (n_p,).

        Raises:
            InputError: unknown parameters, or an inertia, stiffness, gap or time that is not
                positive.
        """
        system = self.machine.system
        remedy = (
            "name an independent parameter that only the drive lines use "
            "(`tauloop show NAME --table`)"
        )
        names = system.parameters.names
        InputError.raise_if_any(
            unknown_names(
                self.values, names, "is not a parameter of the drive lines", remedy=remedy
            )
        )
        not_finite = [name for name, value in self.values.items() if not np.isfinite(value)]
        if not_finite:
            raise InputError(
                Problem(where=name, what="is not finite", remedy="give a finite number")
                for name in not_finite
            )
        p = np.array([self.values.get(q.name, q.value) for q in system.parameters])
        InputError.raise_if_any(
            problem
            for line in system.lines
            for problem in sign_problems(
                line.checked_names,
                line.parameter_checks([p[None]], 1),
                f"{line.line.name}.drive.{{}}",
            )
        )
        return p

    def result(self, trace: SampledTrace, integrator: Integrator) -> DrivenMotion:
        """Return the errors, signals and energy balance of a run."""
        system, n = self.machine.system, len(trace.states)
        plant = system.plant
        ports = plant.platform.ports
        n_p, n_v = ports.position.size, ports.velocity.size
        position, velocity = trace.states[:, :n_p], trace.states[:, n_p : n_p + n_v]
        state = plant.platform.kinematics(position, velocity, start=self.q[:n])
        actuators = plant.actuator_position(state.q)
        speeds = np.asarray(state.v) @ plant.assembly.loops.transmission.T
        signals, energy, work, lost = self._signals(trace, actuators, speeds, integrator)
        outputs, _ = energy_program(plant.assembly).run({"q": state.q, "v": np.asarray(state.v)}, n)
        energy = energy + outputs["kinetic"].ravel() + outputs["potential"].ravel()
        lost = lost + trace.states[:, n_p + n_v + 1]
        change = energy - energy[0]
        turned_over = float(max(np.abs(work).max(), np.abs(lost).max(), np.ptp(change)))
        balance = float(np.abs(work - lost - change).max()) / max(turned_over, 1e-12)
        translational = [i for i, unit in enumerate(ports.position.units) if unit == "m"]
        occurrences = tuple(
            replace(item, time=item.time + self.time[0]) for item in trace.occurrences
        )
        end = f"ends at {occurrences[-1].words}" if trace.outcome == StepOutcome.EVENT else ""
        if not trace.is_whole:
            end = trace.early_end(
                plant.assembly, state.q[-1], f"at {trace.end:.6g} s from the start"
            )
        return DrivenMotion(
            diagnostics=(
                *trace.diagnostics(len(self.time), end),
                diagnostic(
                    "error of the energy balance, relative to the largest of work, loss and energy change",
                    balance,
                    at_most=MAX_ENERGY_ERROR,
                    advice="tighten the tolerances",
                ),
                *plant.limits.diagnostics(state.q, self.time[:n]),
                *omission_diagnostics(plant.mechanism),
            ),
            provenance=provenance(
                options={
                    "variation": self.machine.variation,
                    "integrator": described(integrator),
                    "values": self.values,
                },
                inputs={"machine": self.machine.mechanism.name, "samples": len(self.time)},
            ),
            time=self.time[:n],
            reference=self.platform[:n],
            position=position,
            error=(position - self.platform[:n])[:, translational],
            columns=tuple(ports.position.columns[i] for i in translational),
            actuator_error=actuators - self.actuators[:n],
            signals=signals,
            turned_over=turned_over,
            steps=trace.steps,
            events=trace.events,
            end=end,
            occurrences=occurrences,
        )

    def _signals(
        self, trace: SampledTrace, actuators: np.ndarray, speeds: np.ndarray, integrator: Integrator
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Return the signals by name, and energy of the lines, motor work and losses (N,), J."""
        system, n = self.machine.system, len(trace.states)
        signals: dict[str, np.ndarray] = {}
        energy = np.zeros(n)
        work = np.zeros(n)
        lost = np.zeros(n)
        p = np.tile(self._parameters(), (n, 1))
        inputs = self._inputs(n, integrator)
        for i, (line, y, s, z) in enumerate(system.line_offsets()):
            size, modes = len(line.rest_state_per_position), len(line.mode_names)
            load = np.stack([actuators[:, i], speeds[:, i]], axis=1)
            arrays = [
                trace.states[:, y : y + size],
                load,
                trace.modes[:, s : s + modes],
                trace.held[:, z : z + line.held_size],
                inputs[:, i],
                p,
            ]
            values = line.signals(arrays, n)[0]
            name = self.machine.mechanism.actuators[i].name
            signals |= {f"{name}: {key}": values[:, k] for k, key in enumerate(line.signal_names)}
            energy += values[:, -1]
            work += trace.states[:, y + size]
            lost += trace.states[:, y + size + 1]
        return signals, energy, work, lost


def has_two_motors(mechanism: Mechanism) -> bool:
    """Return whether a drive line of the machine has two motors."""
    return any(
        a.drive is not None and isinstance(a.drive.control.drive, DualDrive)
        for a in mechanism.actuators
    )
