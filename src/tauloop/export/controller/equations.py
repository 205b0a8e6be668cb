"""Equations of a generated controller: pose, reference motion, stop ramp and control law.

All routines write to one work array with the layout `ControllerEquations.work`. The C file
`controller.c` calls them and handles faults.
"""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.compiler.catalogue import EMBEDDING, INVERSE_DYNAMICS, KINEMATICS, MEASURED_MOTION
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.drives.equations.control import control_law, pid_states
from tauloop.drives.equations.switches import Direct
from tauloop.drives.machine.lines import encoder_ratios
from tauloop.equations.values import Values
from tauloop.export.controller.options import ControllerOptions
from tauloop.integrate.routine import Layout, Routine, RoutineCall, program_call, straight
from tauloop.mechanism.cables import cable_problems
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.drive_line import DriveLine
from tauloop.model import Model
from tauloop.model.motion import Motion
from tauloop.simulation.controllers.redundant import gained_masses, passive_problems, spread
from tauloop.simulation.controllers.system import pose_error


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerChannel:
    """An array of a controller: an input, an output or a parameter.

    Attributes:
        name: name in C.
        columns, units: name and unit of each number.
        meaning: description for the comment in C.
    """

    name: str
    columns: tuple[str, ...]
    units: tuple[str, ...]
    meaning: str

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControllerEquations:
    """Routines of a controller and the layout of their numbers.

    Attributes:
        model: the controller's model of the machine.
        options: the law and its gains, limits and period.
        inputs, forces, parameters: channels in the order of their arrays.
        defaults: values of the parameters, concatenated.
        work: layout of the work array.
        routines: routines by name: `measured`, the actuators' motion from the encoder readings;
            `pose`, coordinates and velocities from that motion; `reference_motion`, the machine's
            motion along the reference; `reference_actuators`, actuator positions and speeds of that
            motion; `ramp`, the machine's motion along a stop ramp; `open_loop_state`, the state on
            a stop ramp without a measurement; `law`, the forces.
        needs_model: whether the law evaluates the dynamic model.
        ratios: ratios (2, n_u) of encoder motion to actuator motion, for the position loops and for
            the speed loops.
    """

    model: Model
    options: ControllerOptions
    inputs: tuple[ControllerChannel, ...]
    forces: ControllerChannel
    parameters: tuple[ControllerChannel, ...]
    defaults: np.ndarray
    work: Layout
    routines: Mapping[str, Routine]
    needs_model: bool
    ratios: np.ndarray

    def readings(self, q: np.ndarray) -> np.ndarray:
        """Return the encoder readings (n_u,) at coordinates (n_q,)."""
        return np.asarray(self.model.actuator_position(q[None])[0] * self.ratios[0])

    def sample(self, time: float, stamp: float, **channels: np.ndarray) -> np.ndarray:
        """Return the inputs of one sample, all channels concatenated; missing channels are zero."""
        channels |= {"time": np.array([time]), "stamp": np.array([stamp])}
        return np.concatenate(
            [np.asarray(channels.get(c.name, np.zeros(c.size)), dtype=float) for c in self.inputs]
        )


def controller_equations(model: Model, options: ControllerOptions) -> ControllerEquations:
    """Return the equations of a machine's controller.

    Args:
        model: the controller's model of the machine; its free parameters become parameters
            of the controller.
        options: the law.

    Raises:
        InputError: a degree of freedom has no actuator, the machine has cables, a force has no
            limit, an option has a wrong number of values, or the law is for drive lines and the
            machine has none.
    """
    return _EquationBuilder(model, options).equations()


class _EquationBuilder:
    """Builder of the routines of a controller."""

    def __init__(self, model: Model, options: ControllerOptions) -> None:
        self.model = model
        self.options = options
        self.topology = model.topology
        self.platform = model.platform.ports
        self.actuators = model.mechanism.actuators
        self.lines: tuple[DriveLine, ...] = ()
        InputError.raise_if_any(self._problems())
        if options.controller == "drive":
            self.lines = tuple(a.drive for a in self.actuators if a.drive is not None)
        self.n_u = len(self.actuators)
        self.n_q = self.topology.n_q
        self.n_v = self.topology.n_v
        self.leading = list(model.assembly.leading)
        #: Whether the actuators are redundant, so that they share the forces.
        self.shares = model.assembly.is_redundant
        self.m = len(self.leading)
        self.forces = self._forces()
        self.loops = sum(_loop_states(line) for line in self.lines)
        self.inputs = self._inputs()
        self.parameters, self.defaults = self._parameters()
        self.input_layout = Layout("in", {item.name: item.size for item in self.inputs})
        self.p = Layout("p", {item.name: item.size for item in self.parameters})
        self.work = Layout("y", self._work_sizes())

    def _work_sizes(self) -> dict[str, int]:
        """Return the sizes of the sections of the work array by name, in their order."""
        return {
            "position": self.m,
            "speed": self.m,
            "q": self.n_q,
            "v": self.n_v,
            "target_q": self.n_q,
            "target_v": self.n_v,
            "target_a": self.n_v,
            "force": self.forces.size,
            "ramp": 3 * self.n_u,
            "reference_actuators": 2 * self.n_u,
            "loop": self.loops,
            "measured": 2 * self.n_u,
            "all_actuators": 2 * self.n_u if self.shares else 0,
            "R": self.n_u * self.m if self.shares else 0,
            "share": self.n_u * self.m if self.shares else 0,
        }

    def _problems(self) -> list[Problem]:
        model, options = self.model, self.options
        problems = Problems(cable_problems(model.mechanism))
        problems += passive_problems(model.assembly)
        name, actuators = model.mechanism.name, len(self.actuators)
        if options.controller == "drive" and model.assembly.is_redundant:
            freedoms = counted(self.platform.velocity.size, "degree of freedom")
            message = (
                f"has {counted(actuators, 'actuator')} for {freedoms}; with the law 'drive' they "
                "would work against each other"
            )
            problems.add(name, message, "choose a law that distributes the forces")
        elif options.controller == "drive" and not all(a.drive for a in self.actuators):
            problems.add(
                "law", f"not every actuator of {name} has a drive line", "choose another law"
            )
        if len(options.deceleration) not in (1, actuators):
            numbers = counted(len(options.deceleration), "number")
            message = f"{numbers} for {counted(actuators, 'actuator')}"
            problems.add("deceleration", message, "give one number for all, or one per actuator")
        return list(problems)

    def _forces(self) -> ControllerChannel:
        """Return the outputs of the controller: forces of actuators or torques of motors."""
        if not self.lines:
            names, units = self.model.output_ports("actuators")
            return ControllerChannel(
                name="force", columns=names, units=units, meaning="forces of the actuators"
            )
        names = tuple(
            f"{a.name}.{m.name}"
            for a, line in zip(self.actuators, self.lines, strict=True)
            for m in line.motors
        )
        units = tuple(
            "N m" if line.inertia(m.on).is_rotary else "N"
            for line in self.lines
            for m in line.motors
        )
        return ControllerChannel(
            name="force", columns=names, units=units, meaning="torques of the motors"
        )

    def _inputs(self) -> tuple[ControllerChannel, ...]:
        platform, position_units = self.platform, self.model.actuator_units
        names = tuple(actuator.name for actuator in self.actuators)
        speed_units = tuple(f"{unit}/s" for unit in position_units)
        speed_names = names
        if self.lines:
            names, speed_names, position_units, speed_units = self._encoders()
        positions, speeds = "encoder readings", "rates of the encoder readings"
        channels = [
            ControllerChannel(
                name="time",
                columns=("time",),
                units=("s",),
                meaning="clock of the host at this sample",
            ),
            ControllerChannel(
                name="stamp",
                columns=("stamp",),
                units=("1",),
                meaning="counter or time of the measurement; it changes with each new measurement",
            ),
            ControllerChannel(
                name="position", columns=names, units=position_units, meaning=positions
            ),
            ControllerChannel(name="speed", columns=speed_names, units=speed_units, meaning=speeds),
            ControllerChannel(
                name="reference",
                columns=platform.position.columns,
                units=platform.position.units,
                meaning="reference position of the platform",
            ),
            ControllerChannel(
                name="reference_speed",
                columns=platform.velocity.columns,
                units=platform.velocity.units,
                meaning="reference velocity of the platform",
            ),
            ControllerChannel(
                name="reference_acceleration",
                columns=platform.velocity.columns,
                units=platform.acceleration.units,
                meaning="reference acceleration of the platform",
            ),
        ]
        return tuple(
            item
            for item in channels
            if item.name != "speed" or not self.options.velocity_differences
        )

    def _encoders(self) -> tuple[tuple[str, ...], ...]:
        """Return the encoders of the position loops and of the speed loops, and their units."""
        names, speed_names, position_units, speed_units = [], [], [], []
        for actuator, line in zip(self.actuators, self.lines, strict=True):
            on = {encoder.name: line.inertia(encoder.on) for encoder in line.encoders}
            speed = line.control.speed_encoder or line.control.encoder
            names.append(f"{actuator.name}.{line.control.encoder}")
            speed_names.append(f"{actuator.name}.{speed}")
            position_units.append("rad" if on[line.control.encoder].is_rotary else "m")
            speed_units.append("rad/s" if on[speed].is_rotary else "m/s")
        return tuple(names), tuple(speed_names), tuple(position_units), tuple(speed_units)

    def _parameters(self) -> tuple[tuple[ControllerChannel, ...], np.ndarray]:
        options, forces = self.options, self.forces
        names = tuple(a.name for a in self.actuators)
        rates = tuple("rad/s^2" if unit == "rad" else "m/s^2" for unit in self.model.actuator_units)
        scalars = [
            ("bandwidth", "rad/s", options.bandwidth, "bandwidth w of the law"),
            ("damping", "1", options.damping, "damping ratio of the law"),
            ("hold", "1", options.hold_samples, "samples for which the last good forces are held"),
            (
                "stuck",
                "1",
                options.stuck,
                "samples after which an encoder that does not change is stale",
            ),
            (
                "stuck_motion",
                "m or rad",
                options.stuck_motion,
                "expected motion above which an unchanged encoder is stale",
            ),
            (
                "late",
                "1",
                options.max_lateness,
                "largest delay of a sample, as a fraction of the period",
            ),
            (
                "max_pose_jump",
                "m or rad",
                options.max_pose_jump,
                "largest distance of a coordinate from its predicted value",
            ),
            (
                "settling",
                "s",
                options.settling,
                "time at rest after a stop, before the brake is applied",
            ),
        ]
        channels = [
            ControllerChannel(name=n, columns=(n,), units=(unit,), meaning=text)
            for n, unit, _, text in scalars
        ]
        channels += [
            ControllerChannel(
                name="limit", columns=forces.columns, units=forces.units, meaning="largest forces"
            ),
            ControllerChannel(
                name="deceleration",
                columns=names,
                units=rates,
                meaning="deceleration of the actuators in a controlled stop",
            ),
        ]
        values = [np.array([value], dtype=float) for _, _, value, _ in scalars]
        values += [self._limits(), np.broadcast_to(np.asarray(options.deceleration), (self.n_u,))]
        table, free = self.model.mechanism.parameters, self.model.free
        if free:
            units = tuple(si_unit(table[name].unit) for name in free)
            channels.append(
                ControllerChannel(
                    name="machine",
                    columns=free,
                    units=units,
                    meaning="free parameters of the machine (SI)",
                )
            )
            values.append(table.vector(free))
        return tuple(channels), np.concatenate(values)

    def _limits(self) -> np.ndarray:
        """Return the largest forces (n,).

        Raises:
            InputError: a force has no limit.
        """
        forces = self.forces
        if self.lines:
            motors = [(line, motor) for line in self.lines for motor in line.motors]
            machine_limit = [
                np.inf if m.torque is None else self.model.mechanism.value(m.torque)
                for _, m in motors
            ]
        else:
            machine_limit = [actuator.force for actuator in self.actuators]
        problems, limit = Problems(), self.options.limit or (np.inf,)
        if len(limit) not in (1, forces.size):
            message = f"{counted(len(limit), 'number')} for {counted(forces.size, 'force')}"
            problems.add("limit", message, "give one number for all, or one per force")
            InputError.raise_if_any(problems)
        lower = np.minimum(machine_limit, np.broadcast_to(np.asarray(limit), (forces.size,)))
        for name, value in zip(forces.columns, lower, strict=True):
            if not np.isfinite(value):
                problems.add(
                    "limit",
                    f"the force of {name} has no limit",
                    "give a limit with this option or in the machine file",
                )
        InputError.raise_if_any(problems)
        return lower

    def equations(self) -> ControllerEquations:
        """Return the complete equations."""
        target = {
            "q": self.work.place("target_q"),
            "v": self.work.place("target_v"),
            "a": self.work.place("target_a"),
        }
        reference = {
            key: self.input_layout.place(name)
            for key, name in zip(
                ("position", "velocity", "acceleration"),
                ("reference", "reference_speed", "reference_acceleration"),
                strict=True,
            )
        }
        open_loop_pose = self._pose("open_loop_") if self.shares else Routine()
        routines = {
            "measured": Routine(calls=(self._measured(),)),
            "pose": self._pose(),
            "reference_motion": Routine(
                calls=(
                    self._program(
                        "reference_motion", self.model.platform, KINEMATICS[2], reference, target
                    ),
                )
            ),
            "ramp": self._ramp(target),
            "reference_actuators": Routine(calls=(self._reference_actuators(),)),
            "open_loop_state": Routine(
                calls=(self._open_loop_state(), *open_loop_pose.calls), own=open_loop_pose.own
            ),
            "law": self._law(),
        }
        return ControllerEquations(
            model=self.model,
            options=self.options,
            inputs=self.inputs,
            forces=self.forces,
            parameters=self.parameters,
            defaults=self.defaults,
            work=self.work,
            routines=routines,
            needs_model=self.options.controller not in ("pd", "drive"),
            ratios=np.array(self._ratios()),
        )

    def _program(
        self,
        name: str,
        motion: Motion,
        spec: ProgramSpec,
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
    ) -> RoutineCall:
        sizes = {key: array.shape[1] for key, array in motion.runner.empty_inputs().items()}
        theta = self.p.place("machine") if self.model.free else "p"
        places = {"start": "start", "theta": theta, **inputs}
        return program_call(name, motion.runner.program(spec), sizes, places, outputs)

    def _weights(self, name: str) -> tuple[list[RoutineCall], dict[str, int]]:
        """Return the call that sets the weights of forces and of readings, and the array sizes.

        Both are empty if the actuators are not redundant.
        """
        if not self.shares:
            return [], {}
        numbers = {
            "weight": ca.SX.ones(self.n_u),
            "spread": ca.SX(spread(self.model, np.zeros(self.n_u))),
        }
        call = straight(f"{name}weights", {self.work.place("measured"): 1}, lambda _: numbers)
        return [call], dict.fromkeys(numbers, self.n_u)

    def _pose(self, name: str = "") -> Routine:
        """Return the routine for q and v from the actuators' motion.

        With redundant actuators it fits q and v by least squares. It then also returns R and the
        shares of the actuators in the forces.
        """
        place, calls, own = self.work.place, *self._weights(name)
        motion = {"position": place("position"), "velocity": place("speed")}
        if self.shares:

            def leading_motion(measured: ca.SX) -> dict[str, ca.SX]:
                return {
                    place("position"): measured[self.leading],
                    place("speed"): measured[self.n_u :][self.leading],
                }

            calls.append(
                straight(f"{name}leading", {place("all_actuators"): 2 * self.n_u}, leading_motion)
            )
            least_squares = {
                "measured": place("all_actuators"),
                "measured_speed": f"y + {self.work.slices['all_actuators'].start + self.n_u}",
            }
            inputs = motion | least_squares | {"weight": "weight", "spread": "spread"}
            outputs = {
                "x": place("position"),
                "speed": place("speed"),
                "R": place("R"),
                "share": place("share"),
            }
            calls.append(
                self._program(f"{name}fit", self.model.actuators, MEASURED_MOTION, inputs, outputs)
            )
        measured_outputs = {"q": place("q"), "v": place("v")}
        calls.append(
            self._program(
                f"{name}measured_pose",
                self.model.actuators,
                KINEMATICS[1],
                motion,
                measured_outputs,
            )
        )
        return Routine(calls=tuple(calls), own=own)

    def _ramp(self, target: Mapping[str, str]) -> Routine:
        """Return the routine for the machine's motion while the leading actuators follow ramps."""
        start, keys = self.work.slices["ramp"].start, ("position", "velocity", "acceleration")
        if not self.shares:
            ramp = {key: f"y + {start + k * self.n_u}" for k, key in enumerate(keys)}
            return Routine(
                calls=(
                    self._program("ramp_motion", self.model.actuators, KINEMATICS[2], ramp, target),
                )
            )

        def leading_ramps(ramp: ca.SX) -> dict[str, ca.SX]:
            return {
                "leading_ramps": ca.vertcat(
                    *(part[self.leading] for part in ca.vertsplit(ramp, self.n_u))
                )
            }

        ramp = {key: f"leading_ramps + {k * self.m}" for k, key in enumerate(keys)}
        calls = (
            straight("leading_ramp", {f"y + {start}": 3 * self.n_u}, leading_ramps),
            self._program("ramp_motion", self.model.actuators, KINEMATICS[2], ramp, target),
        )
        return Routine(calls=calls, own={"leading_ramps": 3 * self.m})

    def _ratios(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ratios of measured to actuator motion of position and speed loops (n_u,)."""
        if not self.lines:
            return np.ones(self.n_u), np.ones(self.n_u)
        return encoder_ratios(self.model.mechanism, self.lines)

    def _measured(self) -> RoutineCall:
        """Return the call that computes the actuators' motion from the encoder readings."""
        position_ratio, speed_ratio = self._ratios()

        def motion(measured: ca.SX) -> dict[str, ca.SX]:
            if self.shares:  # redundant actuators have no drive lines in a generated controller
                return {self.work.place("all_actuators"): measured}
            return {
                self.work.place("position"): measured[: self.n_u] / ca.DM(position_ratio),
                self.work.place("speed"): measured[self.n_u :] / ca.DM(speed_ratio),
            }

        return straight("measured_motion", {self.work.place("measured"): 2 * self.n_u}, motion)

    def _open_loop_state(self) -> RoutineCall:
        """Return the call that sets the state on the stop ramp when there is no measurement."""
        position_ratio, speed_ratio = self._ratios()

        def state_on_ramp(ramp: ca.SX, q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
            x, speed = ramp[: self.n_u], ramp[self.n_u : 2 * self.n_u]
            if self.shares:
                motion = ca.vertcat(*actuator_motion(self.model.assembly, q, v))
                return {
                    self.work.place("all_actuators"): motion,
                    self.work.place("measured"): motion,
                }
            readings = ca.vertcat(x * ca.DM(position_ratio), speed * ca.DM(speed_ratio))
            return {
                self.work.place("position"): x,
                self.work.place("speed"): speed,
                self.work.place("measured"): readings,
                self.work.place("q"): q,
                self.work.place("v"): v,
            }

        reads = {self.work.place("ramp"): 3 * self.n_u, self.work.place("target_q"): self.n_q}
        return straight(
            "open_loop_state", reads | {self.work.place("target_v"): self.n_v}, state_on_ramp
        )

    def _reference_actuators(self) -> RoutineCall:
        """Return the call that computes the actuator positions and speeds of the reference."""

        def reference_actuators(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
            motion = ca.vertcat(*actuator_motion(self.model.assembly, q, v))
            return {self.work.place("reference_actuators"): motion}

        reads = {self.work.place("target_q"): self.n_q, self.work.place("target_v"): self.n_v}
        return straight("reference_actuators", reads, reference_actuators)

    # Laws

    def _law(self) -> Routine:
        """Return the routine for the forces of the law.

        Newton's method of the model starts from the measured pose, or with feed-forward from the
        pose of the reference or the stop ramp.
        """
        if self.lines:
            return self._drive_law()
        in_platform, law = self.options.space == "platform", self.options.controller
        accelerates = law == "computed-torque"
        n, entry = self.platform.velocity.size, list(self.platform.v)
        mass = (
            np.ones(n)
            if accelerates
            else gained_masses(self.model, in_platform, self.model.assembly.q[None])
        )
        # In joint space each actuator follows its own reference; the sum of their forces is then
        # distributed among the redundant actuators.
        is_per_actuator = self.shares and not (in_platform or accelerates)
        calls, sizes = self._weights("law_")
        sizes |= {"G": self.n_v * self.m, "x": max(self.platform.position.size, self.n_u)}
        sizes |= {"velocity": n, "command": self.n_u, "model_force": self.n_u}
        if in_platform and not accelerates:
            inputs = {"position": self.work.place("position"), "velocity": self.work.place("speed")}
            calls.append(
                self._program("jacobian", self.model.actuators, EMBEDDING, inputs, {"G": "G"})
            )

        def command(y: ca.SX, p: ca.SX, G: ca.SX) -> dict[str, ca.SX]:
            work, constants = self.work.parts(y), self.p.parts(p)
            w, z = constants["bandwidth"], constants["damping"]
            q, v, x, speed = work["target_q"], work["target_v"], work["position"], work["speed"]
            # reference positions and speeds of all actuators
            all_positions, all_speeds = actuator_motion(self.model.assembly, q, v)
            _, all_accelerations = actuator_motion(self.model.assembly, q, work["target_a"])
            reference = all_positions[self.leading]
            reference_speed = all_speeds[self.leading]
            acceleration = all_accelerations[self.leading]
            target = {"x": reference, "velocity": reference_speed, "model_force": acceleration}
            if in_platform:
                error = pose_error(self.model, q, work["q"])
                rate, acceleration = v[entry] - work["v"][entry], work["target_a"][entry]
                x, speed = work["q"][list(self.platform.q)], work["v"][entry]
            elif is_per_actuator:
                error = all_positions - work["all_actuators"][: self.n_u]
                rate = all_speeds - work["all_actuators"][self.n_u :]
            else:
                error, rate = reference - x, reference_speed - speed
            feedback = ca.DM(mass) * (w**2 * error + 2 * z * w * rate)
            if accelerates:
                return {"x": x, "velocity": speed, "command": acceleration + feedback}
            if in_platform:
                feedback = ca.reshape(G, self.n_v, self.m)[entry, :].T @ feedback
            if self.shares:
                R, C = (ca.reshape(work[name], self.n_u, self.m) for name in ("R", "share"))
                if is_per_actuator:
                    feedback = R.T @ feedback
                feedback = C @ feedback
            at_rest = {"x": work["position"], "velocity": ca.SX(n, 1), "model_force": ca.SX(n, 1)}
            return {"command": feedback} | (
                {"gravity": at_rest, "feed-forward": target}.get(law, {})
            )

        reads = {"y": self.work.size, "p": self.p.size, "G": self.n_v * self.m}
        calls.append(straight("errors", reads, command))
        force = self.work.place("force")
        if law == "pd":
            calls.append(straight("total_force", {"command": self.n_u}, lambda a: {force: a}))
            return Routine(calls=tuple(calls), own=sizes)
        motion = self.model.platform if in_platform and accelerates else self.model.actuators
        start = self.work.place("target_q") if law == "feed-forward" else self.work.place("q")
        places = {
            "position": "x",
            "velocity": "velocity",
            "acceleration": "command" if accelerates else "model_force",
        }
        places |= {"start": start} | ({"weight": "weight"} if self.shares else {})
        if accelerates:
            calls.append(
                self._program("model_inverse", motion, INVERSE_DYNAMICS, places, {"force": force})
            )
        else:
            calls.append(
                self._program(
                    "model_inverse", motion, INVERSE_DYNAMICS, places, {"force": "model_force"}
                )
            )
            calls.append(
                straight(
                    "total_force",
                    {"command": self.n_u, "model_force": self.n_u},
                    lambda a, b: {force: a + b},
                )
            )
        return Routine(calls=tuple(calls), own=sizes)

    def _drive_law(self) -> Routine:
        """Return the routine for the motor torques, which also advances the states of the loops."""
        position_ratio, speed_ratio = self._ratios()

        def controls(y: ca.SX) -> dict[str, ca.SX]:
            work = self.work.parts(y)
            position, speed = actuator_motion(
                self.model.assembly, work["target_q"], work["target_v"]
            )
            parameters = Values(self.model.mechanism.parameters.values)
            torques, loops, first = [], [], 0
            for i, line in enumerate(self.lines):
                states = work["loop"][first : first + _loop_states(line)]
                first += _loop_states(line)
                reference = position[i] * position_ratio[i]
                # On a path, preloads act in the direction of the motion.
                direction = ca.if_else(speed[i] < 0, -1.0, 1.0)
                before = reference - direction * abs(position_ratio[i])
                law = control_law(
                    line.control,
                    work["measured"][i],
                    work["measured"][self.n_u + i],
                    reference,
                    before,
                    states,
                    parameters,
                    Direct(),
                    (speed[i] * speed_ratio[i], ca.SX(0)),
                )
                torques += [law.torques.get(motor.name, ca.SX(0)) for motor in line.motors]
                loops.append(states + self.options.period * law.rates)
            outputs = {self.work.place("force"): ca.vertcat(*torques)}
            if self.loops:
                outputs[self.work.place("loop")] = ca.vertcat(*loops)
            return outputs

        return Routine(calls=(straight("line_controls", {"y": self.work.size}, controls),))


def _loop_states(line: DriveLine) -> int:
    """Return the number of states of a drive line's position and speed loops."""
    states = pid_states(line.control.position)
    if line.control.speed:
        states += pid_states(line.control.speed)
    return states
