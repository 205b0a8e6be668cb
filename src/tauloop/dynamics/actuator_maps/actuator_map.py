"""The map between the joints and the motors of a parallel ankle, knee, wrist or neck."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import final

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.keywords import keywords
from tauloop.common.shown import ReprMixin
from tauloop.compiler.catalogue import JACOBIANS
from tauloop.compiler.expressions import Catalogue, MotionState, ProgramSpec
from tauloop.compiler.functions.actuator_maps import (
    actuator_to_joint_program,
    joint_to_actuator_program,
    reflected_inertia_program,
)
from tauloop.compiler.program import Program
from tauloop.dynamics.actuator_maps.carried_limits import (
    CarriedLimits,
    grid,
    largest_alone,
    largest_together,
    maximum,
)
from tauloop.dynamics.actuator_maps.mapped_joints import MappedJoints, mapped_joints
from tauloop.dynamics.actuator_maps.mapped_states import (
    MappedStates,
    MapStatus,
    deciding_numbers,
    failures,
)
from tauloop.dynamics.actuator_maps.start_values import (
    StartPolynomials,
    constant_start,
    start_polynomials,
)
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.equations.ports import ACTUATORS, Port, checked
from tauloop.model.model import MachineSource, Model
from tauloop.model.motion import Motion
from tauloop.model.runner import Runner

#: Function that builds a program from the joints and the Jacobian's determinant at the reference
#: pose.
JointProgram = Callable[..., Program]
#: Range assumed for joints without limits, on either side of the reference pose: rad, or
#: characteristic lengths.
DEFAULT_RANGE = 0.8
#: Number of samples per joint to which start values are fitted, for one joint, two joints and so
#: on. More joints use the last number.
SAMPLES_PER_JOINT = (101, 25, 11, 7, 5)
#: Range of joints to which start values are fitted, as a multiple of the range of their limits.
FITTED_RANGE = 1.1
#: Condition number of the Jacobian above which the reference pose counts as singular.
MAX_REFERENCE_CONDITION = 1e8


@final
class ActuatorMap(ReprMixin):
    """Position, velocity and effort maps between named joints and the motors that move them.

    Methods are named after those of a ros2_control transmission. They take one sample (n,) or many
    (N, n) in SI units, and follow the working mode and the assembly mode of the reference pose.
    As in the machine file, a motor position is the sum of the driven coordinates times their ratios.

    Attributes:
        model: the machine with only these joints and motors moving.
        joints, actuators: names of the joints and motors, in the order of all arrays.

    Examples:
        >>> import tauloop as tl
        >>> lever = tl.ActuatorMap(tl.load("four_bar"), joints=["rocker_pin"])
        >>> lever.actuators
        ('motor',)
        >>> motor = lever.joint_to_actuator_position([1.7])
        >>> lever.actuator_to_joint_position(motor).round(6).tolist()
        [1.7]
    """

    @keywords()
    @solving(PoseError)
    def __init__(self, machine: MachineSource, joints: Iterable[str] | str = ()) -> None:
        """Build the map.

        Args:
            machine: a model, a mechanism, a path, or the name of a shipped machine.
            joints: names of joint coordinates, in the order of all arrays; by default the
                independent coordinates of the machine.

        Raises:
            InputError: a name is unknown or refers to a dependent coordinate, or the number of
                motors that move the joints differs from the number of joints.
            AssemblyError: the machine cannot be assembled as described.
            PoseError: the reference pose is singular.
        """
        self._mapped: MappedJoints = mapped_joints(machine, joints)
        self.model: Model = self._mapped.model
        self.joints: tuple[str, ...] = self._mapped.joints
        self.actuators: tuple[str, ...] = self.model.actuators.ports.position.columns
        self._check_reference()

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.model.mechanism.name,
            "joints": self.joints,
            "actuators": self.actuators,
        }

    @cached_property
    def joint_motion(self) -> Motion:
        """Kinematics and dynamics that take the motion of the joints, in the order of `joints`."""
        model = self.model
        catalogue = Catalogue(model.assembly, self._mapped.ports, model.formulation, model.free)
        return Motion(Runner(catalogue, model.evaluator, model.limits))

    @property
    def actuator_motion(self) -> Motion:
        """Kinematics and dynamics that take the motion of the motors."""
        return self.model.actuators

    @property
    def reference(self) -> np.ndarray:
        """Joint positions (n,) of the reference pose."""
        return self.joint_motion.ports.at(self.model.assembly.q)

    def _check_reference(self) -> None:
        """Raise if the reference pose is singular."""
        condition = float(np.linalg.cond(self._reference_jacobian))
        if not condition < MAX_REFERENCE_CONDITION:
            what = (
                "is singular at the reference pose: the condition number of the Jacobian is "
                f"{condition:.3g}"
            )
            raise PoseError.of(
                self.model.mechanism.name, what, "choose another reference pose (`Model.at`)"
            )

    @cached_property
    def _reference_jacobian(self) -> np.ndarray:
        """Motor velocities per joint velocity (n, n) at the reference pose."""
        outputs, _, _ = self.joint_motion.runner.run(
            JACOBIANS[ACTUATORS],
            {"position": self.reference, "velocity": np.zeros(len(self.joints))},
        )
        return np.asarray(outputs["J"].reshape(len(self.actuators), len(self.joints)))

    @cached_property
    def joint_range(self) -> np.ndarray:
        """Lower and upper limits of the joints (n, 2).

        Joints without limits get a range around the reference pose.
        """
        topology, loops = self.model.topology, self.model.assembly.loops
        freedoms = [topology.freedoms[i] for i in self._mapped.velocities]
        scale = loops.velocity_scale[list(self._mapped.velocities)]
        lower = np.array([freedom.lower for freedom in freedoms])
        upper = np.array([freedom.upper for freedom in freedoms])
        lower = np.where(np.isfinite(lower), lower, self.reference - DEFAULT_RANGE * scale)
        upper = np.where(np.isfinite(upper), upper, self.reference + DEFAULT_RANGE * scale)
        return np.stack([lower, upper], axis=1)

    def joint_grid(self, samples: int, widened: float = 1.0) -> np.ndarray:
        """Return joint positions (N, n) on a grid over the range of the joints.

        Args:
            samples: number of positions of each joint.
            widened: width of the grid as a multiple of the range.
        """
        center = self.joint_range.mean(axis=1)
        half_width = 0.5 * widened * np.ptp(self.joint_range, axis=1)
        return grid(np.stack([center - half_width, center + half_width], axis=1), samples)

    @cached_property
    def _fitted_states(self) -> tuple[np.ndarray, np.ndarray]:
        """Joint positions (N, n) and coordinates (N, n_q) on the branch of the reference pose."""
        count = SAMPLES_PER_JOINT[min(len(self.joints), len(SAMPLES_PER_JOINT)) - 1]
        joints = self.joint_grid(count, FITTED_RANGE)
        spec = ProgramSpec(
            name="mode",
            meaning="the determinant of the Jacobian, relative to the reference pose",
            build=self._of_joints(joint_to_actuator_program),
            inputs=("position", "velocity", "effort"),
            outputs=("mode",),
        )
        runner = self.joint_motion.runner
        zeros = np.zeros_like(joints)
        motion: dict[str, object] = {"position": joints, "velocity": zeros, "effort": zeros}
        inputs, _, n = runner.inputs(motion, None, None)
        outputs, health = runner.settled(spec, inputs, n)
        is_good = health.is_reached & health.is_regular & (outputs["mode"][:, 0] > 0.0)
        return joints[is_good], outputs["q"][is_good]

    def _of_joints(self, build: JointProgram) -> Callable[[MotionState], Program]:
        """Return a builder of programs for these joints and the mode of the reference pose."""
        reference = float(np.linalg.det(self._reference_jacobian))
        return partial(build, joints=self._mapped.velocities, reference=reference)

    def _start_values(self, motion: Motion) -> StartPolynomials:
        """Return start values of Newton's method.

        They also determine the multiple of 2 pi of each angle.
        """
        iterated = [
            name for block in motion.blocks if block.method == "Newton" for name in block.unknowns
        ]
        topology = self.model.topology
        columns = tuple(topology.coordinate_names.index(name) for name in iterated)
        components = {i + k for i, _ in topology.quaternions for k in range(4)}
        columns = tuple(i for i in columns if i not in components)
        if not columns:
            return constant_start(self.model.assembly.q, len(self.joints))
        joints, q = self._fitted_states
        position, linear = joints, np.eye(len(self.joints))
        if motion is self.actuator_motion:
            position, linear = self._motors_at(q), np.linalg.inv(self._reference_jacobian)
        return start_polynomials(position, q, columns, linear, self.model.assembly.q)

    def _motors_at(self, q: np.ndarray) -> np.ndarray:
        """Return motor positions (N, n) at coordinates (N, n_q)."""
        return self.actuator_motion.ports.at(q)

    @cached_property
    def to_actuators(self) -> Program:
        """Compiled program behind `joint_to_actuator`."""
        return self._program(self.joint_motion, "joint_to_actuator", joint_to_actuator_program)

    @cached_property
    def to_joints(self) -> Program:
        """Compiled program behind `actuator_to_joint`."""
        return self._program(self.actuator_motion, "actuator_to_joint", actuator_to_joint_program)

    def _program(self, motion: Motion, name: str, build: JointProgram) -> Program:
        """Return a program of a motion, with fitted start values of Newton's method."""
        return self._of_joints(build)(self._state(motion, name))

    def _state(self, motion: Motion, name: str) -> MotionState:
        """Return the initial state of a program of a motion, with its start values."""
        catalogue = motion.runner.catalogue
        return MotionState(
            catalogue.assembly,
            catalogue.ports,
            name,
            levels=1,
            formulation=catalogue.formulation,
            free=catalogue.free,
            start_values=self._start_values(motion),
        )

    def _spec(self, motion: Motion) -> ProgramSpec:
        """Return the specification of a motion's program, which takes its start values as an input."""
        is_joints = motion is self.joint_motion
        build = joint_to_actuator_program if is_joints else actuator_to_joint_program
        side = "actuator" if is_joints else "joint"
        names = (f"{side}_position", f"{side}_velocity", f"{side}_effort", "jacobian", "mode")
        return ProgramSpec(
            name=f"followed_{side}",
            meaning=f"{side} positions, velocities and efforts",
            build=self._of_joints(build),
            inputs=("position", "velocity", "effort"),
            outputs=names,
        )

    @cached_property
    def _followed(self) -> dict[str, ProgramSpec]:
        """Specifications of programs that take their start values as an input, by computed side."""
        return {
            "actuator": self._spec(self.joint_motion),
            "joint": self._spec(self.actuator_motion),
        }

    def joint_to_actuator(
        self, position: object, velocity: object | None = None, effort: object | None = None
    ) -> MappedStates:
        """Return the motors' states from the joints' states, with a status for every sample.

        Args:
            position, velocity, effort: state of the joints (N, n) or (n,), SI; velocity and effort
                are zero if omitted.

        Raises:
            InputError: wrong names, shapes or values.
        """
        return self._mapped_states("actuator", position, velocity, effort)

    def actuator_to_joint(
        self, position: object, velocity: object | None = None, effort: object | None = None
    ) -> MappedStates:
        """Return the joints' states from the motors' states, with a status for every sample.

        Args:
            position, velocity, effort: state of the motors (N, n) or (n,), SI; velocity and effort
                are zero if omitted.

        Raises:
            InputError: wrong names, shapes or values.
        """
        return self._mapped_states("joint", position, velocity, effort)

    def joint_to_actuator_position(self, position: object) -> np.ndarray:
        """Return motor positions (N, n) at joint positions.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: a sample has no motor position; `joint_to_actuator` returns a status instead.
        """
        return self._required("actuator", position).position

    def joint_to_actuator_velocity(self, position: object, velocity: object) -> np.ndarray:
        """Return the motor velocities J q', shape (N, n), at joint positions and velocities.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        return self._required("actuator", position, velocity).velocity

    def joint_to_actuator_effort(self, position: object, effort: object) -> np.ndarray:
        """Return the motor efforts J^-T tau, shape (N, n), at joint positions and efforts.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        return self._required("actuator", position, effort=effort).effort

    def actuator_to_joint_position(self, position: object) -> np.ndarray:
        """Return joint positions (N, n) at motor positions.

        Raises:
            InputError: wrong names, shapes or values.
            PoseError: a sample has no joint position; `actuator_to_joint` returns a status instead.
        """
        return self._required("joint", position).position

    def actuator_to_joint_velocity(self, position: object, velocity: object) -> np.ndarray:
        """Return the joint velocities J^-1 m', shape (N, n), at motor positions and velocities.

        Raises:
            InputError, PoseError: see `actuator_to_joint_position`.
        """
        return self._required("joint", position, velocity).velocity

    def actuator_to_joint_effort(self, position: object, effort: object) -> np.ndarray:
        """Return the joint efforts J^T u, shape (N, n), at motor positions and efforts.

        Raises:
            InputError, PoseError: see `actuator_to_joint_position`.
        """
        return self._required("joint", position, effort=effort).effort

    def jacobian(self, position: object) -> np.ndarray:
        """Return J, shape (N, n, n): motor velocities (rows) per joint velocity, at joint positions.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        return self._required("actuator", position).jacobian

    def reflected_inertia(self, position: object, *, include_links: bool = False) -> np.ndarray:
        """Return the inertia (N, n, n) that motors add in joint coordinates, J^T I J.

        Use it as the joints' armature in simulators without loop-closure constraints.

        Args:
            position: joint positions (N, n) or (n,).
            include_links: whether to add the inertia of cranks and rods between motors and joints.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        n = len(self.joints)
        outputs, _, single = self.joint_motion.runner.run(
            self.inertia, {"position": position, "velocity": np.zeros(n)}
        )
        inertia = outputs["motor_inertia"]
        if include_links:
            inertia = inertia + outputs["link_inertia"]
        inertia = inertia.reshape(-1, n, n)
        return np.asarray(inertia[0] if single else inertia)

    def limits_of_joints(self, position: object | None = None) -> CarriedLimits:
        """Return the limits of the joints that follow from the limits of motors and joints.

        The range of a joint is the interval over which all motors and intermediate elements can
        stay within their stops.
        Speed and effort are the limits of one joint while the others rest and carry no load.

        Args:
            position: joint positions (N, n) at which speeds and efforts are computed; by default
                the smallest limits over the whole range, which hold at every position.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        speed, force = self._motor_limits
        if position is not None:
            J = np.reshape(self.jacobian(position), (-1, *2 * (len(self.joints),)))
            velocity, effort = self._single_joint_limits(J, speed, force)
        else:
            reciprocals = maximum(
                lambda q: self._reciprocal_limits(q, speed, force), self.joint_range
            )
            velocity, effort = np.split(1.0 / np.maximum(reciprocals, 0.0), 2)
        lower, upper = np.split(maximum(self._signed_positions, self.joint_range), 2)
        return CarriedLimits(
            names=self.joints, lower=-lower, upper=upper, velocity=velocity, effort=effort
        )

    def limits_of_actuators(
        self, *, velocity: object | None = None, effort: object | None = None
    ) -> CarriedLimits:
        """Return the limits that motors need so that joints can use their range, speed and effort.

        Args:
            velocity: largest speeds of the joints (n,), which all joints may have at once; by
                default the speeds in the machine file.
            effort: largest efforts of the joints (n,), which all joints may have at once; by
                default unlimited, because machine files contain no efforts of joints.

        Raises:
            InputError: wrong shapes or values.
        """
        topology = self.model.topology
        speeds = np.array([topology.freedoms[i].speed for i in self._mapped.velocities])
        if velocity is not None:
            speeds = self._given_limits("velocity", velocity)
        efforts = np.full(len(self.joints), np.inf)
        if effort is not None:
            efforts = self._given_limits("effort", effort)
        needs = maximum(lambda q: self._motor_requirements(q, speeds, efforts), self.joint_range)
        lower, upper, fastest, largest = np.split(needs, 4)
        return CarriedLimits(
            names=self.actuators, lower=-lower, upper=upper, velocity=fastest, effort=largest
        )

    def _given_limits(self, name: str, values: object) -> np.ndarray:
        """Return limits (n,) of the joints, which must be positive."""
        columns, units = self.joints, ("",) * len(self.joints)
        arrays, _ = checked({name: Port(name=name, columns=columns, units=units)}, {name: values})
        limits = arrays[name][0]
        wrong = [
            Problem(
                f"{name}.{joint}", f"must be positive, got {value:g}", "give its largest magnitude"
            )
            for joint, value in zip(columns, limits, strict=True)
            if not value > 0.0
        ]
        InputError.raise_if_any(wrong)
        return limits

    @property
    def _motor_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Largest speeds and efforts (n,) of the motors."""
        actuators = self.model.mechanism.actuators
        speed = np.array([actuator.speed for actuator in actuators])
        return speed, np.array([actuator.force for actuator in actuators])

    def _single_joint_limits(
        self, J: np.ndarray, speed: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return largest speeds and efforts (N, n) of single joints for J (N, n, n)."""
        to_motors = np.linalg.inv(J).swapaxes(-1, -2)
        return largest_alone(J, speed), largest_alone(to_motors, force)

    def _reciprocal_limits(
        self, position: np.ndarray, speed: np.ndarray, force: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return reciprocal speed and effort limits (N, 2 n), and which poses are allowed (N,)."""
        states = self.joint_to_actuator(position)
        is_allowed = states.sample_status == MapStatus.SUCCESS
        J = np.where(is_allowed[:, None, None], states.jacobian, np.eye(len(self.joints)))
        velocity, effort = self._single_joint_limits(J, speed, force)
        return 1.0 / np.concatenate([velocity, effort], axis=1), is_allowed

    def _signed_positions(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the negated and the given positions (N, 2 n), and whether they are allowed (N,)."""
        status = self.joint_to_actuator(position).sample_status
        return np.concatenate([-position, position], axis=1), status == MapStatus.SUCCESS

    def _motor_requirements(
        self, position: np.ndarray, speeds: np.ndarray, efforts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the motors' requirements (N, 4 n), and whether positions are allowed (N,).

        The requirements are negated positions, positions, speeds and efforts.
        """
        states = self.joint_to_actuator(position)
        is_allowed = states.sample_status == MapStatus.SUCCESS
        J = np.where(is_allowed[:, None, None], states.jacobian, np.eye(len(self.joints)))
        fastest = largest_together(J, speeds)
        largest = largest_together(np.linalg.inv(J).swapaxes(-1, -2), efforts)
        needs = [-states.position, states.position, fastest, largest]
        return np.concatenate(needs, axis=1), is_allowed

    def clip_joint_position(self, position: object) -> np.ndarray:
        """Return joint positions (N, n) whose motor positions are clipped to the motors' limits.

        Each motor's limits follow from the stops of the coordinates that it drives
        (`actuator_range`).

        Raises:
            InputError, PoseError: see `joint_to_actuator_position` and `actuator_to_joint_position`.
        """
        motors = self.joint_to_actuator_position(position)
        lower, upper = self.actuator_range.T
        return self.actuator_to_joint_position(np.clip(motors, lower, upper))

    def clip_joint_velocity(self, position: object, velocity: object) -> np.ndarray:
        """Return the joint velocities (N, n) whose motor velocities are clipped to their limits.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        speed, _ = self._motor_limits
        states = self._required("actuator", position, velocity)
        clipped = np.clip(states.velocity, -speed, speed)
        return np.linalg.solve(states.jacobian, clipped[..., None])[..., 0]

    def clip_joint_effort(self, position: object, effort: object) -> np.ndarray:
        """Return the joint efforts (N, n) whose motor efforts are clipped to their limits.

        Raises:
            InputError, PoseError: see `joint_to_actuator_position`.
        """
        _, force = self._motor_limits
        states = self._required("actuator", position, effort=effort)
        clipped = np.clip(states.effort, -force, force)
        return np.einsum("...ij,...i->...j", states.jacobian, clipped)

    @cached_property
    def actuator_range(self) -> np.ndarray:
        """Lower and upper limits of the motors (n, 2) from stops of the coordinates that they drive."""
        assembly = self.model.assembly
        lower, upper = coordinate_limits(self.model.topology)
        driven = list(assembly.driven)
        columns = [self.model.topology.q_of_v[i] for i in driven]
        A = assembly.loops.transmission[:, driven]
        # coordinates at which each motor has its lower and its upper limit
        coordinates = [
            np.where(A > 0.0, first[columns], last[columns])
            for first, last in ((lower, upper), (upper, lower))
        ]
        with np.errstate(invalid="ignore"):
            limits = [np.where(A == 0.0, 0.0, A * q).sum(axis=1) for q in coordinates]
            return np.stack(limits, axis=1) + assembly.loops.actuator_offsets[:, None]

    @cached_property
    def inertia(self) -> Program:
        """Compiled program behind `reflected_inertia`."""
        mechanism, named = self.model.mechanism, set(self.joints)
        motors = {actuator.name for actuator in mechanism.actuators}
        motors |= set(self.model.topology.velocity_names) - named
        links = {body.name for body in mechanism.bodies} - self._mapped.carried
        links |= {rod.name for rod in mechanism.rods}
        state = self._state(self.joint_motion, "reflected_inertia")
        return reflected_inertia_program(state, motors=motors, links=links)

    def _required(
        self,
        side: str,
        position: object,
        velocity: object | None = None,
        effort: object | None = None,
    ) -> MappedStates:
        """Return the states of the computed side, "actuator" or "joint".

        Raises:
            PoseError: a sample has no position on the computed side.
        """
        states, mode = self._states_and_mode(side, position, velocity, effort)
        status = np.atleast_1d(states.sample_status)
        failed = np.flatnonzero(status >= MapStatus.UNREACHABLE)
        if len(failed):
            side_of_input = "joints" if side == "actuator" else "motors"
            row = np.atleast_2d(np.asarray(self._rows(side, position)))[failed[0]]
            what, remedy = self._reason(side, row, float(mode[failed[0]]))
            text = f"sample {failed[0]}: {what}"
            if len(failed) > 1:
                text += f" ({len(failed)} of {len(status)} samples fail)"
            raise PoseError.of(f"position of the {side_of_input}", text, remedy)
        return states

    def _rows(self, side: str, position: object) -> np.ndarray:
        """Return the given positions (N, n) as an array.

        They are joint positions if the computed side is "actuator", otherwise motor positions.
        """
        motion = self.joint_motion if side == "actuator" else self.actuator_motion
        arrays, _ = checked({"position": motion.ports.position}, {"position": position})
        return arrays["position"]

    def _reason(self, side: str, position: np.ndarray, mode: float) -> tuple[str, str]:
        """Return why a given position (n,) has no state on the computed side, and the remedy."""
        motion = self.joint_motion if side == "actuator" else self.actuator_motion
        try:
            motion.kinematics(position)
        except PoseError as error:
            return error.problems[0].what, error.problems[0].remedy
        what = (
            f"the pose is beyond a singularity, because the determinant of the Jacobian is "
            f"{mode:.3g} times its value at the reference pose"
        )
        return (
            what,
            "stay on the same side of the singularity, or choose another reference pose (`Model.at`)",
        )

    def _mapped_states(
        self, side: str, position: object, velocity: object | None, effort: object | None
    ) -> MappedStates:
        """Return the states of the computed side with their statuses."""
        return self._states_and_mode(side, position, velocity, effort)[0]

    def _states_and_mode(
        self, side: str, position: object, velocity: object | None, effort: object | None
    ) -> tuple[MappedStates, np.ndarray]:
        """Return the states of the computed side, and det(J) relative to the reference pose (N,)."""
        motion, names = self.joint_motion, self.actuators
        program = self.to_actuators
        if side == "joint":
            motion, names, program = self.actuator_motion, self.joints, self.to_joints
        runner = motion.runner
        zero = np.zeros(len(self.joints))
        arguments = {
            "position": position,
            "velocity": zero if velocity is None else velocity,
            "effort": zero if effort is None else effort,
        }
        inputs, single, n = runner.inputs(arguments, None, None)
        outputs, health = runner.attempt(program, inputs, n)
        numbers = deciding_numbers(outputs, health)
        failed = np.flatnonzero(failures(numbers) != MapStatus.SUCCESS)
        if len(failed) and runner.iterates:
            self._follow(side, runner, inputs, failed, outputs, numbers)
        status = failures(numbers)
        self._mark_limit_violations(status, outputs["q"])
        is_missing = status >= MapStatus.UNREACHABLE
        n_joints = len(self.joints)
        arrays = [outputs[f"{side}_{name}"] for name in ("position", "velocity", "effort")]
        arrays.append(outputs["jacobian"])
        if is_missing.any():
            arrays = [np.where(is_missing[:, None], np.nan, array) for array in arrays]
        arrays[-1] = arrays[-1].reshape(-1, n_joints, n_joints)
        if single:
            arrays = [array[0] for array in arrays]
        states = MappedStates(
            names=names,
            position=arrays[0],
            velocity=arrays[1],
            effort=arrays[2],
            jacobian=arrays[3],
            sample_status=status[0] if single else status,
        )
        return states, numbers["mode"]

    def _follow(
        self,
        side: str,
        runner: Runner,
        inputs: dict[str, np.ndarray],
        failed: np.ndarray,
        outputs: dict[str, np.ndarray],
        numbers: dict[str, np.ndarray],
    ) -> None:
        """Follow failed samples along lines from the reference pose, and store the results."""
        inputs_of_failed = {
            name: np.ascontiguousarray(array[failed]) for name, array in inputs.items()
        }
        spec = self._followed[side]
        inputs_of_failed["start"], _ = runner.walked(inputs_of_failed)
        results, health = runner.evaluate(spec, inputs_of_failed, len(failed))
        for name, array in results.items():
            if name in outputs:
                outputs[name] = np.array(outputs[name])
                outputs[name][failed] = array
        for name, array in deciding_numbers(results, health).items():
            numbers[name] = np.array(numbers[name])
            numbers[name][failed] = array

    def _mark_limit_violations(self, status: np.ndarray, q: np.ndarray) -> None:
        """Set the status of solved samples beyond stops of joints, motors or intermediate elements."""
        limits = self.model.limits
        if not limits.is_stop.any():
            return
        good = np.flatnonzero(status == MapStatus.SUCCESS)
        beyond = limits.margins(q[good], ("stop",)) < 0.0
        of_joints = np.array([name in self.joints for name in limits.names])
        status[good[beyond[:, ~of_joints].any(axis=1)]] = MapStatus.ACTUATOR_LIMITS
        status[good[beyond[:, of_joints].any(axis=1)]] = MapStatus.JOINT_LIMITS
