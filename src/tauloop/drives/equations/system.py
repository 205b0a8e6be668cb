"""Equations of a drive line and its control as one hybrid system: modes, resets and signals."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.drives.equations.control import ControlLaw, control_law, pid_states
from tauloop.drives.equations.coordinates import LineCoordinates, coordinates
from tauloop.drives.equations.elements import (
    dry_friction,
    elastic_backlash,
    exact_backlash,
    lugre,
    motor_torque,
    stribeck_level,
)
from tauloop.drives.equations.switches import Direct, SwitchModes
from tauloop.equations.values import BatchFunction, Values
from tauloop.integrate.events import ValuePassed
from tauloop.mechanism.drive_line import (
    Connection,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    ExactBacklash,
    LineFriction,
    LuGre,
)
from tauloop.mechanism.expression import ZERO, ParameterTable
from tauloop.mechanism.suggestions import unknown_names

#: Inputs of the equations: the reference, the reference before its step, the external force on the
#: evaluated inertia, and the speed below which an inertia with dry friction counts as standing still,
#: m/s or rad/s.
INPUTS = ("reference", "before", "load", "standstill")
#: Index, among the values that a sampled control holds, of the last position of the speed loop's
#: encoder.
LAST_ENCODER_POSITION = 2
#: Index of the first motor's torque among these values.
FIRST_TORQUE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFunctions:
    """CasADi functions of a drive line.

    Their arguments are (states, modes, held, inputs, parameters), where `held` are the values that a
    sampled control holds between its samples. `parameter_checks` takes only the
    parameters.

    Attributes:
        line: the drive line.
        state_names: names of the states.
        mode_names, mode_starts: names and start values of the modes.
        held_size: number of values that a sampled control holds; zero for a continuous control.
        rate: returns the right-hand side: (time derivatives of the states, guards).
        reset: returns the states after a change of modes.
        hold: returns the values that a sampled control holds until its next sample.
        signals: returns the signals of a run, named by `signal_names`.
        signal_names: names with units.
        parameter_checks: returns [0] values that must be positive, and [1] values that must not be negative.
        checked_names: names of the values in [0] and [1], as paths in the machine file.
    """

    line: DriveLine
    state_names: tuple[str, ...]
    mode_names: tuple[str, ...]
    mode_starts: tuple[float, ...]
    held_size: int
    rate: ca.Function
    reset: ca.Function
    hold: ca.Function
    signals: BatchFunction
    signal_names: tuple[str, ...]
    parameter_checks: BatchFunction
    checked_names: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSystem(LineFunctions):
    """Equations of one drive line.

    Its states y are positions, velocities, positions in gaps, bristle deflections, states of the
    control loops, and the integral of the squared torques ("energy").

    Attributes:
        parameter_checks: outputs [0] and [1] as in `LineFunctions`, where the first value of [1] is a
            placeholder 0; [2] switch_max - switch_min, which must be positive (1 if the line does
            not have both); [3] factor from coordinate to evaluated position, half width of the
            settling band, and sample time (0 for a continuous control).
        watched: events to detect; each has a mode, and these are the last modes.
        output: index of the evaluated coordinate.
    """

    watched: tuple[ValuePassed, ...]
    output: int

    @property
    def coordinates(self) -> int:
        """Number n of positions: the states begin with n positions and n velocities."""
        return sum(name.endswith(".velocity") for name in self.state_names)


class Equations:
    """Symbols of a drive line, and the equations that its methods assemble from them.

    Methods named `add_...` extend `rates`, `reset`, `signals`, `modes` and the energies in place.
    """

    def __init__(
        self, line: DriveLine, parameters: ParameterTable, inputs: tuple[str, ...] = INPUTS
    ) -> None:
        """Make the symbols.

        Args:
            line: the drive line.
            parameters: independent parameters of its expressions.
            inputs: `INPUTS`; on a machine also the reference speed and the feed-forward torque.
        """
        self.line = line
        self.p = ca.SX.sym("p", len(parameters))
        self.values = Values(dict(zip(parameters.names, ca.vertsplit(self.p), strict=True)))
        self.at: LineCoordinates = coordinates(
            line, lambda expression: ca.SX(self.values.scalar(expression))
        )
        self.n = len(self.at.roots)
        gaps = [c.name for c in line.connections if isinstance(c.compliance, ExactBacklash)]
        bristles = [i.name for i in line.inertias if isinstance(i.friction, LuGre)]
        loops = pid_states(line.control.position) + (
            pid_states(line.control.speed) if line.control.speed else 0
        )
        self.names = (
            *(f"{root}.position" for root in self.at.roots),
            *(f"{root}.velocity" for root in self.at.roots),
            *(f"{name}.gap_position" for name in gaps),
            *(f"{name}.bristles" for name in bristles),
            *(f"loop{k}" for k in range(loops)),
            "energy",
        )
        self.y = ca.SX.sym("y", len(self.names))
        self.q, self.v = self.y[: self.n], self.y[self.n : 2 * self.n]
        at = 2 * self.n
        self.gaps = {name: at + k for k, name in enumerate(gaps)}
        at += len(gaps)
        self.bristles = {name: at + k for k, name in enumerate(bristles)}
        at += len(bristles)
        self.loops = slice(at, at + loops)
        self.inputs = ca.SX.sym("inputs", len(inputs))
        #: Feed-forward: reference speed and torque.
        self.feed = (ca.SX(0), ca.SX(0))
        if len(inputs) > len(INPUTS):
            self.feed = (self.inputs[4], self.inputs[5])
        self.is_sampled = line.control.sample_time is not None
        #: Values that a sampled control holds: measured position and speed, last position of the
        #: speed loop's encoder, and torques.
        self.held = ca.SX.sym("held", FIRST_TORQUE + len(line.motors) if self.is_sampled else 0)
        self.modes = SwitchModes()
        self.rates = ca.SX(len(self.names), 1)
        self.reset = ca.SX(self.y)
        self.signals: dict[str, ca.SX] = {}
        #: Energy in springs, power lost in dampers, contacts and friction, and power of the motors.
        self.stored, self.lost, self.supplied = ca.SX(0), ca.SX(0), ca.SX(0)

    def position(self, inertia: str) -> ca.SX:
        """Return the position of an inertia."""
        return self.at.factor[inertia] * self.q[self.at.index[inertia]]

    def velocity(self, inertia: str) -> ca.SX:
        """Return the velocity of an inertia."""
        return self.at.factor[inertia] * self.v[self.at.index[inertia]]

    def scalar(self, expression: object) -> ca.SX:
        """Return the value of an expression."""
        return ca.SX(self.values.scalar(expression))  # type: ignore[arg-type]

    def optional(self, expression: object) -> ca.SX | None:
        """Return the value of an expression, or None if there is no expression."""
        return None if expression is None else self.scalar(expression)

    # Parts

    def law(self) -> tuple[ControlLaw, dict[str, ca.SX]]:
        """Return the control law, and the torque that it requests from each motor."""
        control = self.line.control
        encoders = {encoder.name: encoder.on for encoder in self.line.encoders}
        if self.is_sampled:
            position, speed = self.held[0], self.held[1]
        else:
            position = self.position(encoders[control.encoder])
            speed = (
                self.velocity(encoders[control.speed_encoder])
                if control.speed_encoder
                else ca.SX(0)
            )
        reference, before = self.inputs[0], self.inputs[1]
        y = self.y[self.loops]
        law = control_law(
            control, position, speed, reference, before, y, self.values, self.modes, self.feed
        )
        if self.is_sampled:
            return law, {
                motor.name: self.held[FIRST_TORQUE + k] for k, motor in enumerate(self.line.motors)
            }
        return law, {
            motor.name: ca.SX(law.torques.get(motor.name, 0)) for motor in self.line.motors
        }

    def held_next(self) -> ca.SX:
        """Return the values that a sampled control holds after a sample.

        They are the measured position and speed, the position of the speed loop's encoder, and the
        torques.
        """
        if not self.is_sampled:
            return ca.SX(0, 1)
        control = self.line.control

        def reading(name: str) -> ca.SX:
            """Return the position of an encoder, rounded to its resolution."""
            encoder = next(encoder for encoder in self.line.encoders if encoder.name == name)
            position, resolution = self.position(encoder.on), self.optional(encoder.resolution)
            if resolution is None:
                return position
            return resolution * ca.floor(position / resolution + 0.5)

        position = reading(control.encoder)
        speed_position = reading(control.speed_encoder) if control.speed_encoder else ca.SX(0)
        last_position = self.held[LAST_ENCODER_POSITION]
        speed = (speed_position - last_position) / self.scalar(control.sample_time)
        reference, before = self.inputs[0], self.inputs[1]
        y = self.y[self.loops]
        law = control_law(
            control, position, speed, reference, before, y, self.values, Direct(), self.feed
        )
        torques = [ca.SX(law.torques.get(motor.name, 0)) for motor in self.line.motors]
        return ca.vertcat(position, speed, speed_position, *torques)

    def connection_force(self, connection: Connection) -> ca.SX:
        """Return the force of a connection on its second inertia; add its energy and signals.

        In the code D is the deflection r x_1 - x_2 of the connection with the ratio r, and w its time
        derivative; the elastic deflection excludes the motion in a gap.
        """
        ratio = self.scalar(connection.ratio)
        D = ratio * self.position(connection.first) - self.position(connection.second)
        w = ratio * self.velocity(connection.first) - self.velocity(connection.second)
        law, name = connection.compliance, connection.name
        assert law is not None
        stiffness, damping = self.scalar(law.stiffness), self.scalar(law.damping)
        if isinstance(law, ElasticBacklash):
            force = elastic_backlash(
                self.scalar(law.gap), stiffness, damping, D, w, self.modes, name
            )
            half_gap = self.scalar(law.gap) / 2
            elastic, rate = D - ca.fmax(-half_gap, ca.fmin(D, half_gap)), w
        elif isinstance(law, ExactBacklash):
            k = self.gaps[name]
            backlash = exact_backlash(
                self.scalar(law.gap), stiffness, damping, D, w, self.y[k], self.modes, name
            )
            self.rates[k], self.reset[k], force = backlash.rate, backlash.reset, backlash.force
            elastic, rate = D - self.y[k], w - backlash.rate
        else:
            force = stiffness * D + damping * w
            elastic, rate = D, w
        self.stored += stiffness * elastic**2 / 2
        self.lost += (force - stiffness * elastic) * rate
        second = self.line.inertia(connection.second)
        self.signals[f"{name}.deflection [{'rad' if second.is_rotary else 'm'}]"] = D
        self.signals[f"{name}.force [{'N m' if second.is_rotary else 'N'}]"] = force
        return force

    def smooth_friction(self) -> ca.SX:
        """Return the viscous and LuGre friction forces (n,).

        Also set the time derivatives of the bristle deflections, and add energy and losses.
        """
        forces = ca.SX(self.n, 1)
        for inertia in self.line.inertias:
            k, factor = self.at.index[inertia.name], self.at.factor[inertia.name]
            v = self.velocity(inertia.name)
            law = inertia.friction
            if isinstance(law, LuGre):
                i = self.bristles[inertia.name]
                level = stribeck_level(
                    self.scalar(law.coulomb), self.scalar(law.static), self.scalar(law.stribeck), v
                )
                stiffness = self.scalar(law.stiffness)
                force, self.rates[i] = lugre(
                    stiffness,
                    self.scalar(law.damping),
                    self.scalar(law.viscous),
                    level,
                    v,
                    self.y[i],
                    self.inputs[3],
                    self.modes,
                    inertia.name,
                )
                forces[k] -= factor * force
                self.stored += stiffness * self.y[i] ** 2 / 2
                self.lost += force * v - stiffness * self.y[i] * self.rates[i]
            elif law is not None and law.viscous is not None:
                forces[k] -= factor * self.scalar(law.viscous) * v
                self.lost += self.scalar(law.viscous) * v**2
        return forces

    def add_forces(self) -> tuple[ca.SX, ControlLaw, ca.SX]:
        """Add signals, energies and modes of motors, connections and smooth friction.

        Returns:
            Generalized forces (n,) without dry friction, the control law, and the sum of the
            squared torques.
        """
        line = self.line
        forces = self.smooth_friction()
        for inertia in line.inertias:
            unit, rate = ("rad", "rad/s") if inertia.is_rotary else ("m", "m/s")
            self.signals[f"{inertia.name}.position [{unit}]"] = self.position(inertia.name)
            self.signals[f"{inertia.name}.velocity [{rate}]"] = self.velocity(inertia.name)
        law, requested = self.law()
        energy = ca.SX(0)
        for motor in line.motors:
            limits = (
                self.optional(motor.torque),
                self.optional(motor.rated_speed),
                self.optional(motor.speed),
            )
            torque = motor_torque(
                requested[motor.name], self.velocity(motor.on), *limits, self.modes, motor.name
            )
            energy += torque**2
            self.supplied += torque * self.velocity(motor.on)
            forces[self.at.index[motor.on]] += self.at.factor[motor.on] * torque
            self.signals[
                f"{motor.name}.torque [{'N m' if line.inertia(motor.on).is_rotary else 'N'}]"
            ] = torque
        for connection in line.connections:
            if connection.compliance is None:
                continue
            force = self.connection_force(connection)
            first, second = connection.first, connection.second
            forces[self.at.index[second]] += self.at.factor[second] * force
            forces[self.at.index[first]] -= (
                self.at.factor[first] * self.scalar(connection.ratio) * force
            )
        return forces, law, energy

    def add_accelerations(self, forces: ca.SX) -> None:
        """Set the time derivatives of positions and velocities.

        The velocities of sticking inertias are reset to zero.

        Args:
            forces: generalized forces (n,) without dry friction, which this method adds.
        """
        mass = ca.SX(self.n, 1)
        for inertia in self.line.inertias:
            mass[self.at.index[inertia.name]] += self.at.factor[inertia.name] ** 2 * self.scalar(
                inertia.value
            )
        self.rates[: self.n], self.rates[self.n : 2 * self.n] = self.v, forces / mass
        for inertia in self.line.inertias:
            law = inertia.friction
            if not isinstance(law, LineFriction) or law.coulomb is None:
                continue
            k, factor = self.at.index[inertia.name], self.at.factor[inertia.name]
            v, coulomb = self.velocity(inertia.name), self.scalar(law.coulomb)
            static, level = coulomb, coulomb
            if law.static is not None and law.stribeck is not None:
                static = self.scalar(law.static)
                level = stribeck_level(coulomb, static, self.scalar(law.stribeck), v)
            dry = dry_friction(
                level, static, v, forces[k] / factor, self.inputs[3], self.modes, inertia.name
            )
            self.rates[k] = ca.if_else(dry.sticks, 0, self.v[k])
            self.lost += ca.if_else(dry.sticks, 0, dry.force * v)
            self.rates[self.n + k] = ca.if_else(
                dry.sticks, 0, (forces[k] - factor * dry.force) / mass[k]
            )
            self.reset[self.n + k] = ca.if_else(dry.sticks, 0, self.v[k])

    def add_watched_modes(self, watched: Sequence[ValuePassed]) -> None:
        """Add a mode for each event: whether its signal is above its value.

        Raises:
            InputError: an event names an unknown signal; all unknown names are reported.
        """
        known = {name.split(" [")[0]: signal for name, signal in self.signals.items()}
        for option, is_terminal in (("until", True), ("record", False)):
            names = [event.name for event in watched if event.is_terminal is is_terminal]
            InputError.raise_if_any(unknown_names(names, known, "no such signal", f"{option} {{}}"))
        for event in watched:
            self.modes.above(known[event.name] - event.value, event.label)


def build_system(line: DriveLine, watched: Sequence[ValuePassed] = ()) -> AxisSystem:
    """Return the equations of a drive line with its control.

    Args:
        line: the drive line.
        watched: events at which a signal (named without its unit) passes a value.

    Raises:
        InputError: an event names an unknown signal.
        DescriptionError: the rigid connections are invalid (see `coordinates`).
    """
    a = Equations(line, line.parameters)
    forces, law, energy = a.add_forces()
    evaluated = line.performance.of
    forces[a.at.index[evaluated]] += a.at.factor[evaluated] * a.inputs[2]
    a.add_accelerations(forces)
    a.rates[a.loops] = law.rates
    a.rates[-1] = energy
    a.signals["switching [1]"] = law.direction
    a.add_watched_modes(watched)
    arguments = [a.y, a.modes.symbols, a.held, a.inputs, a.p]
    checks, signs = must_be_positive(a), must_not_be_negative(a)
    order, drive = ca.SX(1), line.control.drive
    if (
        isinstance(drive, DualDrive)
        and drive.switch_min is not None
        and drive.switch_max is not None
    ):
        order = a.scalar(drive.switch_max) - a.scalar(drive.switch_min)
    period = a.optional(line.control.sample_time)
    scales = (
        a.at.factor[evaluated],
        a.scalar(line.performance.band),
        ca.SX(0) if period is None else period,
    )
    return AxisSystem(
        line=line,
        state_names=a.names,
        mode_names=a.modes.names,
        mode_starts=a.modes.starts,
        watched=tuple(watched),
        held_size=a.held.numel(),
        rate=ca.Function("drive_rate", arguments, [a.rates, a.modes.guards]),
        reset=ca.Function("drive_reset", arguments, [a.reset]),
        hold=ca.Function("drive_hold", arguments, [a.held_next()]),
        signals=BatchFunction(
            ca.Function("drive_signals", arguments, [ca.vertcat(*a.signals.values())])
        ),
        signal_names=tuple(a.signals),
        checked_names=(tuple(checks), ("", *signs)),
        output=a.at.index[evaluated],
        parameter_checks=BatchFunction(
            ca.Function(
                "drive_checks",
                [a.p],
                [
                    ca.vertcat(*checks.values()),
                    ca.vertcat(0, *signs.values()),
                    order,
                    ca.vertcat(*scales),
                ],
            )
        ),
    )


def _values(a: Equations, path: str, element: object, *keys: str) -> dict[str, ca.SX]:
    """Return the values that an element has for these keys, by their paths in the file."""
    values = {key: getattr(element, key, None) for key in keys}
    return {f"{path}.{key}": a.scalar(value) for key, value in values.items() if value is not None}


def must_be_positive(a: Equations) -> dict[str, ca.SX]:
    """Return the values that must be positive, by their paths in the file."""
    line = a.line
    # the load on a machine has no inertia of its own
    values = {f"inertias.{i.name}": a.scalar(i.value) for i in line.inertias if i.value != ZERO}
    for connection in line.connections:
        law = connection.compliance
        damping = ("damping",) if isinstance(law, ExactBacklash) else ()
        values |= _values(a, f"connections.{connection.name}", law, "stiffness", "gap", *damping)
    for name, loop in (("position", line.control.position), ("speed", line.control.speed)):
        keys = ("gain", "integral_time", "derivative_time", "filter", "limit", "tracking_time")
        values |= _values(a, f"control.{name}", loop, *keys)
    values |= _values(a, "control", line.control, "sample_time")
    for motor in line.motors:
        values |= _values(a, f"motors.{motor.name}", motor, "torque")
        if motor.speed is not None and motor.rated_speed is not None:
            values[f"motors.{motor.name}.speed - rated_speed"] = a.scalar(motor.speed) - a.scalar(
                motor.rated_speed
            )
    for encoder in line.encoders:
        values |= _values(a, f"encoders.{encoder.name}", encoder, "resolution")
    return values | _values(a, "performance", line.performance, "band")


def must_not_be_negative(a: Equations) -> dict[str, ca.SX]:
    """Return the values that must not be negative, by their paths in the file."""
    values: dict[str, ca.SX] = {}
    for connection in a.line.connections:
        values |= _values(a, f"connections.{connection.name}", connection.compliance, "damping")
    for inertia in a.line.inertias:
        law, path = inertia.friction, f"inertias.{inertia.name}.friction"
        values |= _values(a, path, law, "viscous", "coulomb", "damping", "stiffness")
        if law is not None and law.static is not None and law.coulomb is not None:
            values[f"{path}.static - coulomb"] = a.scalar(law.static) - a.scalar(law.coulomb)
    drive = a.line.control.drive
    keys = ("torque_share", "preload", "feed_forward_share") if isinstance(drive, DualDrive) else ()
    return values | _values(a, "control.dual", drive, *keys)


def sign_problems(
    names: Sequence[Sequence[str]], values: Sequence[np.ndarray], path: str = "{}"
) -> list[Problem]:
    """Return a problem for each value whose sign is wrong.

    Args:
        names: names of the values that must be positive, and of those that must not be negative.
        values: these values, two arrays (N, n) with a row for each run.
        path: template of the path in messages; ``{}`` is replaced by the name.
    """
    problems = Problems()
    remedy = "correct this entry, or the values of its parameters"
    needs = ("be positive", "not be negative")
    for group, columns, need in zip(names, values, needs, strict=True):
        for name, column in zip(group, columns.T, strict=True):
            row = int(np.argmin(column))
            if not (column[row] > 0 or (column[row] == 0 and need == "not be negative")):
                sample = f" (sample {row} of {len(column)})" if len(column) > 1 else ""
                what = f"must {need}, got {column[row]:g}{sample}"
                problems.add(path.format(name), what, remedy)
    return problems
