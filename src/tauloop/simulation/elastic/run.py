"""One simulation of an elastic machine: time steps, energies and diagnostics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tauloop.common.result import Diagnostic, diagnostic, provenance
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.statics import buckling_factors, load_factors
from tauloop.elasticity.machine.poses import rigid_parts
from tauloop.elasticity.static_analysis.stiffness import MAX_BUCKLING_UTILIZATION, MAX_DEFLECTION
from tauloop.elasticity.vibrations.machine_modes import loop_stability
from tauloop.elasticity.vibrations.vibration import Vibration
from tauloop.integrate.linear import LinearMotion, integrate_linear
from tauloop.mechanism.model import omission_diagnostics
from tauloop.simulation.elastic.controlled import ControlledCourse
from tauloop.simulation.elastic.result import ElasticSimulation, ElasticSimulationOptions
from tauloop.simulation.elastic.sampling import (
    INTERPOLATION_TOLERANCE,
    RigidPath,
    SampledCourse,
    tool_path,
)
from tauloop.simulation.elastic.time_course import TimeCourse

#: Periods of the lowest mode that are simulated after a motion by default.
PERIODS_AFTER = 10.0
#: Number of steps per period of the lowest mode in the first attempt.
STEPS_PER_PERIOD = 8
#: Minimum number of steps in the first attempt.
MIN_STEPS = 100
#: Maximum number of steps.
MAX_STEPS = 200_000
#: Factor on the number of steps if the error is far from the tolerance; otherwise it is doubled.
MAX_FACTOR = 4
#: Order of the error in the step length that decides whether it is far from the tolerance.
ORDER = 2
#: Largest error of the energy balance of a reliable simulation, relative to the largest energy.
ENERGY_TOLERANCE = 0.01
#: Speed, relative to the largest, below which a motion starts at rest.
REST_SPEED_RATIO = 1e-6
#: Fraction of the largest energy of the vibration above which a mode counts.
ENERGY_SHARE = 0.01
#: Change of energy below which a motion is a rounding error, as a fraction of the elastic energy.
ROUNDED_ENERGY = 1e-10
#: Minimum number of steps per period of the highest mode that counts, so that its motion is resolved.
MIN_STEPS_PER_PERIOD = 10.0
#: Number of times at which the energy is divided among modes.
MODE_TIMES = 64
#: Number of times per batch of matrices, which limits the memory.
BATCH = 256


class ElasticRun:
    """A machine along its motion, with its loads."""

    def __init__(
        self,
        course: SampledCourse,
        path: RigidPath | None,
        motion_end: float,
        wrench: Callable[[Array], Array],
        released: Array,
        options: ElasticSimulationOptions,
        modes: Vibration,
    ) -> None:
        """Build the equations of motion.

        Args:
            course: the structure along the motion.
            path: the motion of the undeformed machine; None for none.
            motion_end: end time of the motion, s; zero for none.
            wrench: function from times (N,) to the wrench at the tool (N, 6).
            released: additional wrench (6,) of the equilibrium in which the machine starts; it is
                released at the start.
            options: duration and tolerance.
            modes: vibration of the machine at its start.
        """
        self.course = course
        self.path = path
        self.motion_end = motion_end
        self.released = released
        self.options = options
        self.modes = modes
        self._runs: dict[int, LinearMotion] = {}

        def acceleration(time: Array) -> Array:
            if path is None:
                return np.zeros((len(time), 0))
            return np.asarray(path.at(np.minimum(time, motion_end)).acceleration)

        self.equations = self._equations(acceleration, wrench)
        lowest = self._lowest_frequency()
        after = PERIODS_AFTER / lowest
        self.duration = options.duration or motion_end + after
        self._first_steps = max(MIN_STEPS, math.ceil(STEPS_PER_PERIOD * lowest * self.duration))

    def _equations(
        self, acceleration: Callable[[Array], Array], wrench: Callable[[Array], Array]
    ) -> TimeCourse:
        """Return the equations of motion."""
        course = self.course
        structure, path = course.structure, self.path
        if course.loops is None:
            return TimeCourse(structure.time, course.sampled, acceleration, wrench)

        def velocity(time: Array) -> Array:
            if path is None:
                return np.zeros((len(time), 0))
            return np.asarray(path.at(np.minimum(time, self.motion_end)).velocity)

        drives = structure.machine.drives
        return ControlledCourse(
            structure.time,
            course.sampled,
            (velocity, acceleration),
            wrench,
            course.loops,
            (
                tuple(item.law for item in drives),
                np.array([value for item in drives for _, value in item.dampers]),
            ),
            self.options.feedforward,
        )

    def _lowest_frequency(self) -> float:
        """Return the lowest natural frequency at the start, Hz.

        If the machine with its position loops has no vibration, the motors are free.
        """
        if self.modes.frequency.size:
            return float(np.nanmin(self.modes.frequency[0]))
        angular = self.course.structure.modes.angular[0]
        return float(angular[angular > 0.0].min(initial=np.inf)) / (2.0 * math.pi)

    def result(self) -> ElasticSimulation:
        """Return the simulation."""
        motion, error = self._integrated()
        time, model = motion.time, self.modes.model
        deflection = self._outputs("tool", motion)
        axial = self._outputs("axial", motion)
        kinetic, elastic, work, loss = self._energies(motion)
        end, size = time[-1:], self.course.structure.assembled.size
        rest = self.equations.equilibrium(end, self.equations.loads(end))[0, :size]
        motors, motor_force, following_error = self._motors(motion)
        is_damped = bool(self.course.sampled.damping.any())
        notes = self.course.structure.machine.notes
        if not is_damped:
            notes += ("no damping is stated, so that vibrations do not decay",)
        machine = self.course.structure.machine
        result = ElasticSimulation(
            model=model,
            options=self.options,
            time=time,
            motion_end=self.motion_end,
            tool=self._tool_points(time),
            deflection=deflection,
            rest=self.equations.at("tool", end)[0] @ rest,
            beams=self.course.beams,
            axial=axial,
            drives=self.course.drives,
            drive_force=self._outputs("drives", motion),
            motors=motors,
            motor_force=motor_force,
            following_error=following_error,
            kinetic=kinetic,
            elastic=elastic,
            work=work,
            loss=loss,
            frequency=self.modes.frequency[0],
            link_modes=self.modes.link_modes,
            poses=len(self.course.structure.time),
            rigid=rigid_parts(model.mechanism, machine),
            notes=notes,
            diagnostics=(),
            provenance=provenance(
                options={
                    "duration": self.duration,
                    "tolerance": self.options.tolerance,
                    "link_modes": self.options.link_modes,
                    "shear": self.options.shear,
                    "motor_state": self.options.motor_state,
                    "feedforward": self.options.feedforward,
                },
                inputs={"machine": model.mechanism.name},
            ),
        )
        return replace(result, diagnostics=tuple(self._diagnostics(result, motion, error)))

    # Time steps

    def _integrated(self) -> tuple[LinearMotion, float]:
        """Return the motion with the number of steps that the tolerance needs, and its error.

        The error is estimated from a motion with longer steps.
        """
        steps, factor = self._first_steps, 2
        coarse = self._extrapolated(steps)
        while True:
            fine = self._extrapolated(steps * factor)
            steps *= factor
            error = self._step_error(coarse, fine, factor)
            if error <= self.options.tolerance or 4 * steps > MAX_STEPS:
                return fine, error
            is_far = error > MAX_FACTOR**ORDER * self.options.tolerance
            factor = MAX_FACTOR if is_far and 2 * MAX_FACTOR * steps <= MAX_STEPS else 2
            coarse = fine

    def _extrapolated(self, steps: int) -> LinearMotion:
        """Return the motion by Richardson extrapolation from two runs of second order."""
        coarse, fine = self._run(steps), self._run(2 * steps)
        values = {}
        for name in ("position", "velocity", "acceleration"):
            fine_values = getattr(fine, name)[::2]
            values[name] = fine_values + (fine_values - getattr(coarse, name)) / 3.0
        return LinearMotion(time=coarse.time, **values)

    def _run(self, steps: int) -> LinearMotion:
        """Return the motion in a number of time steps, from a cache if it was computed before."""
        if steps not in self._runs:
            self._runs[steps] = self._integrate(steps)
        return self._runs[steps]

    def _integrate(self, steps: int) -> LinearMotion:
        """Integrate the motion in a number of time steps from static equilibrium."""
        time = np.linspace(0.0, self.duration, steps + 1)
        first, equations = time[:1], self.equations
        tool = equations.at("tool", first)[0]
        force = equations.loads(first)[0] + tool.T @ self.released
        if self._moves_at_start():
            force = force + equations.rigid(first)[0]
        x = equations.equilibrium(first, force[None])[0]
        return integrate_linear(equations.terms, time, x, np.zeros_like(x))

    def _moves_at_start(self) -> bool:
        """Return whether the motion does not start at rest."""
        if self.path is None:
            return False
        speed = np.abs(self.path.at(self.course.structure.time).velocity).max(axis=1)
        return bool(speed[0] > REST_SPEED_RATIO * speed.max())

    def _step_error(self, coarse: LinearMotion, fine: LinearMotion, factor: int) -> float:
        """Return the error of the shorter steps, relative to the largest change of the tool's position.

        The estimate assumes an error of first order. The order is lower than that of the method if
        loads or accelerations jump, because high modes are then not resolved.
        """
        coarse_tool = self._outputs("tool", coarse)[:, :3]
        fine_tool = self._outputs("tool", fine)[:, :3]
        change = np.linalg.norm(fine_tool - fine_tool[0], axis=1).max()
        if change <= np.finfo(float).eps * np.abs(fine_tool).max() * len(fine_tool):
            return 0.0
        difference = np.linalg.norm(fine_tool[::factor] - coarse_tool, axis=1).max()
        return float(difference / change / (factor - 1))

    # Results

    def _outputs(self, name: str, motion: LinearMotion) -> Array:
        """Return linear outputs (N, k) of the elastic coordinates."""
        size = self.course.structure.assembled.size
        parts = []
        for part in self._batches(motion):
            rows = self.equations.at(name, motion.time[part])
            parts.append(np.einsum("nki,ni->nk", rows, motion.position[part, :size]))
        return np.concatenate(parts)

    def _motors(self, motion: LinearMotion) -> tuple[tuple[str, ...], Array, Array]:
        """Return the names of the controlled motors, their forces and their position errors (N, u)."""
        equations = self.equations
        if not isinstance(equations, ControlledCourse):
            empty = np.zeros((len(motion.time), 0))
            return (), empty, empty
        forces = [
            equations.motor_forces(
                motion.time[part],
                LinearMotion(
                    time=motion.time[part],
                    position=motion.position[part],
                    velocity=motion.velocity[part],
                    acceleration=motion.acceleration[part],
                ),
            )
            for part in self._batches(motion)
        ]
        names = tuple(item.actuator for item in self.course.structure.machine.drives)
        return names, np.concatenate(forces), -self._outputs("position", motion)

    @staticmethod
    def _batches(motion: LinearMotion) -> Iterator[slice]:
        """Yield the times in batches."""
        for first in range(0, len(motion.time), BATCH):
            yield slice(first, first + BATCH)

    def _tool_points(self, time: Array) -> Array:
        """Return the tool center point (N, 3) of the undeformed machine."""
        if self.path is None:
            point = self.course.structure.machine.tool_point[0]
            return np.broadcast_to(point, (len(time), 3))
        return tool_path(self.modes.model, self.path, np.minimum(time, self.motion_end))

    def _energies(self, motion: LinearMotion) -> tuple[Array, Array, Array, Array]:
        """Return kinetic and elastic energy, work and loss (N,) of the elastic motion, J.

        With the elastic coordinates x, the matrices M, C, G and K of mass, damping, gyroscopic terms
        and stiffness, and the forces f:
        d/dt (½ ẋᵀ M ẋ + ½ xᵀ K x) = ẋᵀ f - ẋᵀ C ẋ + ẋᵀ (½ dM/dt - G) ẋ + ½ xᵀ dK/dt x.
        The last two terms are also work of the motors, which change the pose of the deformed
        machine.
        """
        kinetic = np.empty(len(motion.time))
        elastic = np.empty(len(motion.time))
        power = np.empty(len(motion.time))
        lost = np.empty(len(motion.time))
        equations, size = self.equations, self.course.structure.assembled.size
        _, motor_force, _ = self._motors(motion)
        for part in self._batches(motion):
            time = motion.time[part]
            x, v = motion.position[part, :size], motion.velocity[part, :size]

            def form(matrix: Array, left: Array, right: Array | None = None) -> Array:
                other = left if right is None else right
                return np.asarray(np.einsum("ni,nij,nj->n", left, matrix, other))

            damping, gyroscopic = equations.damping(time), equations.gyroscopic(time)
            kinetic[part] = 0.5 * form(equations.at("mass", time), v)
            elastic[part] = 0.5 * form(equations.at("stiffness", time), x)
            lost[part] = form(damping, v)
            by_pose = 0.5 * form(equations.rate("mass", time), v) - form(gyroscopic, v)
            by_pose += 0.5 * form(equations.rate("stiffness", time), x)
            power[part] = np.einsum("ni,ni->n", v, equations.force(time)) + by_pose
            if motor_force.size:
                speeds = np.einsum("nui,ni->nu", equations.at("torque", time), v)
                power[part] += np.sum(speeds * motor_force[part], axis=1)
        step = float(motion.time[1] - motion.time[0])
        return kinetic, elastic, _integral(power, step), _integral(lost, step)

    # Diagnostics

    def _diagnostics(
        self, result: ElasticSimulation, motion: LinearMotion, error: float
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics of the simulation: errors of the integration, and of linearity."""
        yield diagnostic(
            "error of the tool's deflection by the time steps, relative to its largest change",
            error,
            at_most=self.options.tolerance,
            advice="simulate a shorter time, or accept a larger `tolerance`",
        )
        yield diagnostic(
            "error of matrices that are interpolated between poses",
            self.course.error,
            at_most=INTERPOLATION_TOLERANCE,
            advice="simulate a part of the motion, or a smoother one",
        )
        scale = max(
            float(np.ptp(result.elastic)),
            float(result.kinetic.max()),
            np.ptp(result.work - result.work[0]),
        )
        # a machine that stays in equilibrium has only rounding errors of its elastic energy
        is_moving = scale > ROUNDED_ENERGY * float(np.abs(result.elastic).max())
        worst = float(np.abs(result.energy_error).max())
        yield diagnostic(
            "error of the energy balance, relative to the largest change of energy",
            worst / scale if is_moving else 0.0,
            at_most=ENERGY_TOLERANCE,
            advice="give a smaller `tolerance`",
        )
        yield self._resolved_modes(motion)
        if self.modes.modal.servo is not None:
            yield loop_stability(self.modes.modal.servo)
        size = self.course.structure.machine.structure.length
        yield diagnostic(
            "largest deflection, fraction of the machine's size",
            result.largest_deflection / size,
            at_most=MAX_DEFLECTION,
            advice="the linear equations hold only for small deflections; reduce loads or "
            "accelerations",
        )
        yield from self._second_order(result)
        yield from self.modes.model.limits.diagnostics(self.course.coordinates)
        yield from omission_diagnostics(self.modes.model.mechanism)

    def _second_order(self, result: ElasticSimulation) -> Iterator[Diagnostic]:
        """Yield diagnostics of the magnitude of the terms that the linear equations omit."""
        structure = self.course.structure
        at_poses = np.searchsorted(result.time, structure.time).clip(max=len(result.time) - 1)
        compression = -result.axial.min(axis=1, initial=0.0)
        axial = result.axial[at_poses]
        # after the motion, the machine stays in the last pose
        last = np.flatnonzero(result.time >= structure.time[-1])
        if len(last):
            axial[-1] = result.axial[last[np.argmax(compression[last])]]
        forces = dict(zip(result.beams, axial.T, strict=True))
        factors = self._buckling(structure.assembled.geometric(forces))
        yield diagnostic(
            "largest axial force as a fraction of the buckling load",
            float((1.0 / factors).max()),
            at_most=MAX_BUCKLING_UTILIZATION,
            advice="the equations use the stiffness of unloaded links: reduce loads or accelerations",
        )
        if self.path is not None:
            fastest = structure.turning_rate() / (2.0 * math.pi * self._lowest_frequency())
            yield diagnostic(
                "squared ratio of the largest rotation rate to the lowest natural frequency",
                fastest**2,
                at_most=MAX_BUCKLING_UTILIZATION,
                advice="centrifugal stiffness is neglected: move slower, or stiffen the links",
            )

    def _buckling(self, geometric: Array) -> Array:
        """Return the load factors (P, 1) by geometric stiffness (P, n, n), with all motors locked."""
        structure, loops = self.course.structure, self.course.loops
        if loops is None:
            return buckling_factors(structure.assembled, geometric)
        # basis of the motions without motion of the motors
        _, _, rows = np.linalg.svd(loops.torque, full_matrices=True)
        basis_T = rows[:, loops.torque.shape[1] :]
        basis = np.swapaxes(basis_T, -1, -2)
        stiffness = basis_T @ structure.stiffness @ basis
        return load_factors(stiffness, basis_T @ structure.congruent(geometric) @ basis)

    def _resolved_modes(self, motion: LinearMotion) -> Diagnostic:
        """Return the diagnostic of the steps per period of the highest mode that has energy."""
        structure = self.course.structure
        samples = np.unique(np.linspace(0, len(motion.time) - 1, MODE_TIMES).astype(int))
        size = structure.assembled.size
        time = motion.time[samples]
        x, v = motion.position[samples, :size], motion.velocity[samples, :size]
        K = self.equations.at("stiffness", time)
        deviation = x - self.equations.equilibrium(time, self.equations.loads(time))[:, :size]
        potential = 0.5 * np.einsum("ni,nij,nj->n", deviation, K, deviation)
        modes = structure.modes
        pose = np.searchsorted(structure.time, time).clip(max=len(structure.time) - 1)
        momentum = np.einsum("nij,nj->ni", (structure.assembled.mass @ structure.basis)[pose], v)
        kinetic = 0.5 * np.einsum("nik,ni->nk", modes.shapes[pose], momentum) ** 2
        largest = float((kinetic.sum(axis=1) + potential).max())
        stored = float(0.5 * np.einsum("ni,nij,nj->n", x, K, x).max())
        is_vibrating = largest > ROUNDED_ENERGY * stored
        counts = np.flatnonzero(is_vibrating & (kinetic.max(axis=0) > ENERGY_SHARE * largest))
        step = float(motion.time[1] - motion.time[0])
        steps = None
        highest = float(modes.frequencies[:, counts].max(initial=0.0))
        if highest > 0.0:
            steps = 1.0 / (step * highest)
        return diagnostic(
            "steps in a period of the highest mode that vibrates",
            steps,
            at_least=MIN_STEPS_PER_PERIOD,
            advice="give a smaller `tolerance`",
        )


def _integral(values: Array, step: float) -> Array:
    """Return the integral (N,) of uniformly sampled values up to each sample, to fourth order."""
    if len(values) < 4:
        return np.concatenate([[0.0], np.cumsum(0.5 * step * (values[1:] + values[:-1]))])
    inner = 13.0 * (values[1:-2] + values[2:-1]) - values[:-3] - values[3:]
    first = 9.0 * values[0] + 19.0 * values[1] - 5.0 * values[2] + values[3]
    last = 9.0 * values[-1] + 19.0 * values[-2] - 5.0 * values[-3] + values[-4]
    parts = np.concatenate([[0.0, first], inner, [last]]) * (step / 24.0)
    return np.cumsum(parts)
