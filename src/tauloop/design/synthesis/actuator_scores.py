"""Forces and speeds of the actuators of candidates, under load cases and over the task's motion.

Candidates and samples are one compiled batch of inverse dynamics with free parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tauloop.common.errors import InputError, PoseError, TauloopError
from tauloop.common.records import dataclass
from tauloop.compiler.state import Forces
from tauloop.design.synthesis.evaluation import TaskEvaluator
from tauloop.design.synthesis.task import ACTUATOR_QUANTITIES, DesignTask
from tauloop.dynamics import MotorCatalogue, load_motors
from tauloop.dynamics.motor_loads import ActuatorLoad
from tauloop.dynamics.motor_sizing import least_motor_use
from tauloop.logs import write_log
from tauloop.model import Model, Payload
from tauloop.model.motion_table import motion_table
from tauloop.model.tool import read_payload
from tauloop.motion import LAWS
from tauloop.motion.sampled import SampledMotion
from tauloop.simulation import plan_cycle

#: Maximum number of samples of a batch.
BATCH_SAMPLES = 100_000
#: Number of samples of a stroke.
STROKE_SAMPLES = 101
#: Length of a stroke, as a fraction of the width of the box.
STROKE_FRACTION = 0.9
#: Wrench of the case without a load.
_WEIGHT_ONLY = np.zeros(6)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlatformSamples:
    """A motion of the platform that is the same for all candidates, up to the center of the box.

    Attributes:
        time: times (T,), s.
        position: positions (T, p). A coordinate is relative to the center of the box if its entry of
            `follows` is 1, and absolute if it is 0.
        velocity, acceleration: velocities and accelerations (T, m).
        follows: 1 for each coordinate (p,) that is shifted with the center of the box, otherwise 0.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    follows: np.ndarray

    def about(self, center: np.ndarray) -> SampledMotion:
        """Return the motion for a displacement (p,) of positions to the center of the box."""
        return SampledMotion(
            time=self.time,
            position=self.position + self.follows * center,
            velocity=self.velocity,
            acceleration=self.acceleration,
        )


def task_motion(evaluator: TaskEvaluator) -> PlatformSamples | None:
    """Return the motion of a task with a known time law; None if the time law is not known.

    A trajectory is read from its file. A cycle is planned once, for the machine of the file. A
    stroke follows the 3-4-5 polynomial. The files of trajectories and cycles describe the motion
    for a box whose center is at the machine's reference pose; the motion is shifted if the search
    chooses another center.

    Raises:
        InputError: the trajectory lacks columns, or the machine of the file cannot follow the cycle.
    """
    motion = evaluator.task.motion
    if motion.trajectory is not None:
        return _motion_from_table(evaluator, motion.trajectory)
    if motion.cycle is not None:
        return _planned_cycle(evaluator, motion.cycle)
    return None if motion.duration is None else _stroke(evaluator, motion.duration)


def _motion_from_table(evaluator: TaskEvaluator, path: Path) -> PlatformSamples:
    """Return the motion in a table."""
    ports = evaluator.measures.model.platform.ports.motion
    time, values = motion_table(ports, path)
    position = np.array(values["position"])
    follows = np.zeros(position.shape[1])
    for variable in evaluator.task.variables:
        if variable.axis is not None:
            column = evaluator.position_column(variable.axis)
            follows[column] = 1.0
            position[:, column] -= evaluator.task.axes.reference[variable.axis]
    return PlatformSamples(
        time=time,
        position=position,
        velocity=values["velocity"],
        acceleration=values["acceleration"],
        follows=follows,
    )


def _planned_cycle(evaluator: TaskEvaluator, path: Path) -> PlatformSamples:
    """Return a cycle that is planned for the machine of the file.

    Raises:
        InputError: the machine cannot follow the cycle.
    """
    task = evaluator.task
    try:
        cycle = plan_cycle(task.model, path)
    except TauloopError as error:
        what = f"the machine of the file cannot follow {path.name}: {error.problems[0]}"
        remedy = "give motion.trajectory, a table with a time law, or change the machine"
        raise InputError.of("motion.cycle", what, remedy) from error
    with TemporaryDirectory() as folder:
        table = Path(folder) / "motion.csv"
        write_log(table, cycle.log())
        samples = _motion_from_table(evaluator, table)
    return samples


def _stroke(evaluator: TaskEvaluator, duration: float) -> PlatformSamples:
    """Return a stroke along the longest side of the box, about its center."""
    task = evaluator.task
    lengths = np.where([unit == "m" for unit in task.axes.units], task.half, 0.0)
    axis = int(np.argmax(lengths))
    pose = np.zeros(len(lengths))
    pose[axis] = STROKE_FRACTION
    ends = evaluator.base_positions(np.stack([-pose, pose]))
    law = LAWS["3-4-5"].at(np.linspace(0.0, 1.0, STROKE_SAMPLES))
    velocity = np.zeros((STROKE_SAMPLES, len(lengths)))
    acceleration = np.zeros_like(velocity)
    length = 2.0 * STROKE_FRACTION * lengths[axis]
    velocity[:, axis] = law.derivative * length / duration
    acceleration[:, axis] = law.second_derivative * length / duration**2
    return PlatformSamples(
        time=np.linspace(0.0, duration, STROKE_SAMPLES),
        position=ends[0] + law.s[:, None] * (ends[1] - ends[0]),
        velocity=velocity,
        acceleration=acceleration,
        follows=np.ones(ends.shape[1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedMotion:
    """Motion and catalogue of a task, which are sent to workers so that they need not be read again.

    Attributes:
        motion: motion of the platform; None without a time law.
        catalogue: motors and gears; None if the task does not need the utilization of motors.
    """

    motion: PlatformSamples | None
    catalogue: MotorCatalogue | None


def prepared_motion(evaluator: TaskEvaluator) -> PreparedMotion:
    """Return the motion and the catalogue that the quantities of actuators of a task need.

    Raises:
        InputError: the motion is wrong.
        DescriptionError: the catalogue has errors.
    """
    task_options = evaluator.task.motion
    quantities = actuator_quantities(evaluator.task)
    motion = None
    if quantities or task_options.trajectory is not None:
        motion = task_motion(evaluator)
    catalogue = None
    if "motor_use" in quantities and task_options.catalogue is not None:
        catalogue = load_motors(task_options.catalogue)
    return PreparedMotion(motion=motion, catalogue=catalogue)


def actuator_quantities(task: DesignTask) -> tuple[str, ...]:
    """Return the quantities of actuators that a task limits or minimizes."""
    wanted = {r.quantity for r in task.requirements} | {o.quantity for o in task.objectives}
    return tuple(name for name in ACTUATOR_QUANTITIES if name in wanted)


class ActuatorScores:
    """Largest forces, speeds and utilization of motors of candidates, over load cases and a motion.

    Attributes:
        wanted: names of the quantities of actuators that the task limits or minimizes.
        prepared: motion and catalogue.
        motion: motion of the platform; None without a time law.
        problem: reason why the last failed candidate could not be computed; "" if none failed.
    """

    def __init__(self, evaluator: TaskEvaluator, prepared: PreparedMotion | None = None) -> None:
        """Read or plan the motion, unless it is prepared.

        Raises:
            InputError: the motion is wrong, or a quantity needs a motion and the task has none.
            DescriptionError: the catalogue has errors.
        """
        self._evaluator = evaluator
        self.problem = ""
        self._model: Model = evaluator.measures.model
        self._task: DesignTask = evaluator.task
        self.wanted = actuator_quantities(self._task)
        self.prepared = prepared_motion(evaluator) if prepared is None else prepared
        self.motion = self.prepared.motion
        needs_motion = [name for name in self.wanted if name != "motor_force"]
        if needs_motion and self.motion is None:
            what = f"{needs_motion[0].replace('_', ' ')} needs a motion with a time law"
            raise InputError.of("motion", what, "give `duration`, `cycle` or `trajectory`")
        motion = self._task.motion
        self._payload: Payload | None = None
        if motion.payload:
            payload = read_payload(motion.payload)
            if not isinstance(payload, Payload):
                payload = Payload(mass=payload)
            self._payload = payload

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the wanted quantities (N,) of candidates (N, d); NaN where a pose is out of reach."""
        return {name: rows.max(axis=1) for name, rows in self.rows(x).items()}

    def rows(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the wanted quantities (N, n_u) of every actuator of candidates (N, d), or NaN."""
        count = len(self._model.mechanism.actuators)
        result = {name: np.full((len(x), count), np.nan) for name in self.wanted}
        if not self.wanted or not len(x):
            return result
        if self.motion is not None:
            self._over_motion(x, self.motion, result)
        if "motor_force" in self.wanted:
            peak_force = self._at_rest(x)
            if self.motion is not None:
                peak_force = np.maximum(peak_force, result["motor_force"])
            result["motor_force"] = peak_force
        return result

    def _at_rest(self, x: np.ndarray) -> np.ndarray:
        """Return the largest forces (N, n_u) of actuators under weight and load cases."""
        count = len(self._model.mechanism.actuators)
        peak_force = np.zeros((len(x), count))
        all_positions = self._evaluator.base_positions(self._evaluator.poses)
        cases = [(all_positions, _WEIGHT_ONLY)]
        for load in self._task.loads:
            positions = all_positions
            if load.offset is not None:
                positions = self._evaluator.positions_at(load.offset)
            cases.append((positions, load.wrench))
        for position, wrench in cases:
            zeros = np.zeros((len(position), self._model.platform.ports.velocity.size))
            samples = PlatformSamples(
                time=np.arange(float(len(position))),
                position=position,
                velocity=zeros,
                acceleration=zeros,
                follows=np.ones(position.shape[1]),
            )
            for rows, forces in self._batches(x, samples, wrench):
                if forces is None:
                    peak_force[rows] = np.nan
                    continue
                magnitudes = np.abs(forces.force).reshape(rows.stop - rows.start, -1, count)
                peak_force[rows] = np.maximum(peak_force[rows], magnitudes.max(axis=1))
        return peak_force

    def _over_motion(
        self, x: np.ndarray, motion: PlatformSamples, result: dict[str, np.ndarray]
    ) -> None:
        """Store the quantities of a motion."""
        transmission = self._model.assembly.loops.transmission
        for rows, forces in self._batches(x, motion, None):
            if forces is None:
                continue
            shape = (rows.stop - rows.start, len(motion.time), -1)
            force = np.asarray(forces.force).reshape(shape)
            # einsum is used because the rounding of a matrix product depends on the number of rows.
            v, a = np.asarray(forces.state.v), np.asarray(forces.state.a)
            speed = np.einsum("nj,ij->ni", v, transmission).reshape(shape)
            acceleration = np.einsum("nj,ij->ni", a, transmission).reshape(shape)
            mean_square = np.trapezoid(force**2, motion.time, axis=1) / np.ptp(motion.time)
            values = {
                "motor_force": np.abs(force).max(axis=1),
                "motor_rms": np.sqrt(mean_square),
                "motor_speed": np.abs(speed).max(axis=1),
            }
            if "motor_use" in self.wanted:
                values["motor_use"] = np.array(
                    [
                        self._use(motion.time, *arrays)
                        for arrays in zip(force, speed, acceleration, strict=True)
                    ]
                )
            for name in self.wanted:
                result[name][rows] = values[name]

    def _use(
        self, time: np.ndarray, force: np.ndarray, speed: np.ndarray, acceleration: np.ndarray
    ) -> list[float]:
        """Return the utilization of the best motor of every actuator, from arrays (T, n_u)."""
        uses = []
        catalogue = self.prepared.catalogue
        assert catalogue is not None
        for i, actuator in enumerate(self._model.mechanism.actuators):
            rotor = self._rotor_inertias[i]
            load = ActuatorLoad(
                name=actuator.name,
                is_rotary=self._model.topology.is_rotary(actuator),
                time=time,
                speed=speed[:, i],
                acceleration=acceleration[:, i],
                force=force[:, i] - rotor * acceleration[:, i],
                rotor_inertia=rotor or None,
                load_inertia=None,
            )
            uses.append(least_motor_use(load, catalogue))
        return uses

    @cached_property
    def _rotor_inertias(self) -> list[float]:
        """Inertias of the rotors of all actuators, zero where the file states none."""
        mechanism = self._model.mechanism
        inertias = [actuator.inertia for actuator in mechanism.actuators]
        return [0.0 if inertia is None else mechanism.value(inertia) for inertia in inertias]

    def _batches(
        self, x: np.ndarray, samples: PlatformSamples, wrench: np.ndarray | None
    ) -> Iterator[tuple[slice, Forces | None]]:
        """Yield candidates and their forces; None where a pose of a candidate is out of reach."""
        per_batch = max(BATCH_SAMPLES // len(samples.time), 1)
        pending = [
            slice(first, min(first + per_batch, len(x))) for first in range(0, len(x), per_batch)
        ]
        while pending:
            rows = pending.pop(0)
            try:
                yield rows, self._forces(x[rows], samples, wrench)
            except PoseError as error:
                self.problem = str(error.problems[0])
                middle = (rows.start + rows.stop) // 2
                if middle == rows.start:
                    yield rows, None
                else:
                    pending[:0] = [slice(rows.start, middle), slice(middle, rows.stop)]

    def _forces(self, x: np.ndarray, samples: PlatformSamples, wrench: np.ndarray | None) -> Forces:
        """Return the forces of candidates (N, d) at all samples, one candidate after the other."""
        n = len(x)
        count = len(samples.time)
        shift = self._evaluator.shifts(x) * samples.follows
        position = (samples.position[None] + shift[:, None]).reshape(n * count, -1)
        return self._model.platform.inverse_dynamics(
            position,
            np.tile(samples.velocity, (n, 1)),
            np.tile(samples.acceleration, (n, 1)),
            theta=np.repeat(self._task.theta(x), count, axis=0),
            wrench=None if wrench is None else np.tile(wrench, (n * count, 1)),
            payload=self._payload,
        )
