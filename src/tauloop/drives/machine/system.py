"""Equations of a machine and the drive lines of its actuators, as one hybrid system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.functions.rates import RateProgram, independent_rate_program
from tauloop.drives.equations.system import (
    INPUTS,
    LAST_ENCODER_POSITION,
    Equations,
    LineFunctions,
    must_be_positive,
    must_not_be_negative,
)
from tauloop.drives.machine.lines import on_the_load
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.cables import cable_problems, dry_friction
from tauloop.mechanism.drive_line import DriveLine, LineFriction
from tauloop.mechanism.expression import ParameterTable, leaves
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Inputs of a line on a machine: those of a single line (`INPUTS`), the reference speed, and the
#: feed-forward torque.
MACHINE_INPUTS = (*INPUTS, "speed", "forward")
#: Number of states of the energy balance, after the states of each line and of the machine: work
#: supplied and energy lost.
N_ENERGY_STATES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSystem(LineFunctions):
    """The drive line of one actuator.

    The functions take (x, load, modes, held, inputs, parameters), where x are the states and `load`
    is the position and velocity of the actuator. `rate` returns three vectors: the time derivatives
    of the states, followed by the powers of motors and losses; the guards; and the force on the
    machine. `signals` returns the named signals, followed by the sum of kinetic and elastic energy.

    Attributes:
        rest_state_per_position: derivative of the states at rest with respect to the actuator's
            position, without work and loss.
        rate_without_guards: like `rate`, but without guards.
        initial_hold: returns the values that the control holds before its first sample.
        ratio: motion of the (master) motor per motion of the actuator.
    """

    rest_state_per_position: np.ndarray
    rate_without_guards: ca.Function
    initial_hold: ca.Function
    ratio: float

    @property
    def measurable_signals(self) -> dict[str, int]:
        """Indices of signals that can be measured: encoders, and signals that are not states."""
        by_name = {name.partition(" [")[0]: k for k, name in enumerate(self.signal_names)}
        encoders = {
            encoder.name: by_name[f"{encoder.on}.position"] for encoder in self.line.encoders
        }
        return encoders | {name: k for name, k in by_name.items() if name not in self.state_names}


class LineOffsets(NamedTuple):
    """A drive line, and the indices of its first state, first mode and first held value."""

    line: LineSystem
    state: int
    mode: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSystem:
    """Equations of a machine and its drive lines.

    Attributes:
        plant: the machine, with the inertias that are rigidly connected to its actuators.
        rate: right-hand side of the machine's equations; the states are positions, velocities, work
            and loss.
        lines: drive lines of the actuators, in their order.
        parameters: independent parameters in the lines' expressions, in the order in which the
            functions of the lines take them.
        period: period of the sampled control, s.
    """

    plant: Model
    rate: RateProgram
    lines: tuple[LineSystem, ...]
    parameters: ParameterTable
    period: float

    @property
    def machine_size(self) -> int:
        """Number of states of the machine itself, with work and loss."""
        return sum(size for _, size in self.rate.state) + N_ENERGY_STATES

    @property
    def size(self) -> int:
        """Total number of states."""
        return self.machine_size + sum(
            len(line.rest_state_per_position) + N_ENERGY_STATES for line in self.lines
        )

    def line_offsets(self) -> Iterator[LineOffsets]:
        """Yield each line with the indices of its first state, first mode and first held value."""
        state = self.machine_size
        mode = 0
        held = 0
        for line in self.lines:
            yield LineOffsets(line, state, mode, held)
            state += len(line.rest_state_per_position) + N_ENERGY_STATES
            mode += len(line.mode_names)
            held += line.held_size


#: Remedy for Coulomb friction of the machine itself.
LUGRE_REMEDY = (
    "replace Coulomb friction at actuators by LuGre friction (presliding), or remove this friction"
)
#: Remedy for dry friction of the machine itself that depends on the direction.
ASYMMETRIC_REMEDY = (
    "remove this friction: LuGre friction (presliding) replaces only Coulomb friction that is equal "
    "in both directions"
)


def machine_system(
    mechanism: Mechanism, plant: Model, lines: tuple[DriveLine, ...]
) -> MachineSystem:
    """Return the equations of a machine with a drive line on every actuator.

    Args:
        mechanism: the machine whose parameters the lines' expressions use.
        plant: the machine that the lines drive (`load_side_machine`).
        lines: drive lines of the actuators, in their order.

    Raises:
        InputError: a control is continuous, sample times differ, or there is dry friction in the
            machine itself or on an inertia that moves rigidly with it.
        DescriptionError: the rigid connections are invalid.
    """
    InputError.raise_if_any(_problems(mechanism, lines))
    used = set().union(*(leaves(line) for line in lines))
    table = ParameterTable(tuple(p for p in mechanism.parameters if p.name in used))
    systems = tuple(
        _line_system(f"line{i}", line, table, mechanism) for i, line in enumerate(lines)
    )
    return MachineSystem(
        plant=plant,
        rate=independent_rate_program(plant.assembly, plant.platform.ports, plant.formulation),
        lines=systems,
        parameters=table,
        period=_period(mechanism, lines[0]),
    )


def _period(mechanism: Mechanism, line: DriveLine) -> float:
    time = line.control.sample_time
    return np.nan if time is None else mechanism.value(time)


def _problems(mechanism: Mechanism, lines: tuple[DriveLine, ...]) -> list[Problem]:
    problems = cable_problems(mechanism)
    periods = {}
    for line in lines:
        where = f"{line.name}.drive"
        if line.control.sample_time is None:
            what, remedy = "the control is continuous", "give it a sample_time, such as 1 ms"
            problems.append(Problem(where=f"{where}.control", what=what, remedy=remedy))
        else:
            periods[line.name] = _period(mechanism, line)
        for name in on_the_load(line):
            law = line.inertia(name).friction
            if isinstance(law, LineFriction) and law.coulomb is not None:
                what = f"{name} moves rigidly with the machine and must not have dry friction"
                remedy = (
                    "use LuGre friction (`lugre` of the inertia, or the option presliding_distance), "
                    "or move the friction to an inertia behind a shaft"
                )
                problems.append(
                    Problem(
                        where=f"{where}.inertias.{name}.friction.coulomb", what=what, remedy=remedy
                    )
                )
    if len(set(periods.values())) > 1:
        what = "the drive lines have different sample times: " + ", ".join(
            f"{name} {1e3 * T:g} ms" for name, T in periods.items()
        )
        problems.append(
            Problem(
                where="drive.control.sample_time",
                what=what,
                remedy="set the same sample_time for all drive lines",
            )
        )
    for name, key in dry_friction(mechanism):
        what = (
            "Coulomb friction is discontinuous at zero velocity, "
            "and this simulation does not detect sticking there"
        )
        remedy = LUGRE_REMEDY if key == "coulomb" else ASYMMETRIC_REMEDY
        problems.append(Problem(where=f"{name}.friction.{key}", what=what, remedy=remedy))
    return problems


def _line_system(
    prefix: str, line: DriveLine, table: ParameterTable, mechanism: Mechanism
) -> LineSystem:
    """Return the functions of a drive line whose load is a coordinate of the machine.

    Args:
        prefix: prefix of the names of the CasADi functions.
        line: the drive line.
        table: independent parameters of all lines.
        mechanism: the machine, for the values of the ratios.
    """
    load = line.performance.of
    # the load comes first, so its coordinate has index 0
    first = tuple(i for i in line.inertias if i.name == load)
    line = replace(line, inertias=(*first, *(i for i in line.inertias if i.name != load)))
    equations = Equations(line, table, MACHINE_INPUTS)
    forces, law, _ = equations.add_forces()
    load_force = forces[0]
    kinetic = _kinetic_energy(equations)
    # the machine determines the motion of the load, so the load's acceleration is not used
    equations.add_accelerations(forces)
    equations.rates[equations.loops] = law.rates
    # the states of the line exclude position and velocity of the load, which the machine has, and
    # the integral of squared torques
    n, n_y = equations.n, equations.y.numel()
    indices = [k for k in range(n_y) if k not in (0, n, n_y - 1)]
    x, load_motion = ca.SX.sym("x", len(indices)), ca.SX.sym("load", 2)
    y = ca.SX(n_y, 1)
    y[indices] = x
    y[0], y[n] = load_motion[0], load_motion[1]
    arguments = [x, load_motion, equations.modes.symbols, equations.held, equations.inputs]
    arguments.append(equations.p)

    def substituted(*expressions: ca.SX) -> list[ca.SX]:
        """Return expressions of x and the load's motion; `ca.substitute` needs dense vectors."""
        dense = [ca.densify(expression) for expression in expressions]
        return [ca.SX(e) for e in ca.substitute(dense, [equations.y], [ca.densify(y)])]

    rates, guards, force, reset, held, supplied, lost, stored, kinetic, signals = substituted(
        equations.rates[indices],
        equations.modes.guards,
        load_force,
        equations.reset[indices],
        equations.held_next(),
        equations.supplied,
        equations.lost,
        equations.stored,
        kinetic,
        ca.SX(ca.vertcat(ca.SX(0, 1), *equations.signals.values())),
    )
    rates_and_powers = ca.vertcat(rates, supplied, lost)
    initial_hold = ca.SX(equations.held.numel(), 1)
    speed_encoder = line.control.speed_encoder
    if speed_encoder is not None:
        inertia = next(item.on for item in line.encoders if item.name == speed_encoder)
        (initial_hold[LAST_ENCODER_POSITION],) = substituted(equations.position(inertia))
    ratios = {name: mechanism.value(ratio) for name, ratio in line.ratios().items()}
    rest_state = np.zeros(len(indices))
    for i, k in enumerate(indices):
        if k < n:
            rest_state[i] = ratios[equations.at.roots[k]]
    drive = line.control.drive
    positive = must_be_positive(equations)
    not_negative = must_not_be_negative(equations)
    checks = [ca.vertcat(ca.SX(0, 1), *scalars.values()) for scalars in (positive, not_negative)]
    master = drive.motor if hasattr(drive, "motor") else drive.master
    return LineSystem(
        line=line,
        rest_state_per_position=rest_state,
        state_names=tuple(equations.names[k] for k in indices),
        mode_names=equations.modes.names,
        mode_starts=equations.modes.starts,
        held_size=equations.held.numel(),
        rate=ca.Function(f"{prefix}_rate", arguments, [rates_and_powers, guards, force]),
        rate_without_guards=ca.Function(f"{prefix}_slope", arguments, [rates_and_powers, force]),
        reset=ca.Function(f"{prefix}_reset", arguments, [reset]),
        hold=ca.Function(f"{prefix}_hold", arguments, [held]),
        initial_hold=ca.Function(f"{prefix}_held", arguments, [initial_hold]),
        signals=BatchFunction(
            ca.Function(f"{prefix}_signals", arguments, [ca.vertcat(signals, kinetic + stored)])
        ),
        signal_names=tuple(equations.signals),
        parameter_checks=BatchFunction(ca.Function(f"{prefix}_checks", [equations.p], checks)),
        checked_names=(tuple(positive), tuple(not_negative)),
        ratio=ratios[next(motor.on for motor in line.motors if motor.name == master)],
    )


def _kinetic_energy(equations: Equations) -> ca.SX:
    """Return the kinetic energy of the inertias that do not move rigidly with the load (index 0)."""
    energy = ca.SX(0)
    for item in equations.line.inertias:
        if equations.at.index[item.name] != 0:
            energy += equations.scalar(item.value) * equations.velocity(item.name) ** 2 / 2
    return energy
