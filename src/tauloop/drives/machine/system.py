"""Equations of a machine and the drive lines of its actuators, as one hybrid system."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.compiler.functions.rates import RateProgram, independent_rate_program
from tauloop.drives.equations.system import (
    INPUTS,
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
#: Number of states for the energy balance, after the states of each line and of the machine: work
#: supplied and energy lost.
BALANCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSystem(LineFunctions):
    """The drive line of one actuator: its functions take (x, load, modes, held, inputs, parameters).

    The rates of the states are followed by the powers of motors and losses; after the guards `rate`
    also returns the force on the machine. The named signals are followed by the sum of kinetic and
    elastic energy.

    Attributes:
        start: states at rest per unit of the actuator's position, without work and loss.
        slope: like `rate`, but without guards.
        held: returns the values that the control holds before its first sample.
        ratio: motion of the (master) motor per motion of the actuator.
    """

    start: np.ndarray
    slope: ca.Function
    held: ca.Function
    ratio: float

    @property
    def measured(self) -> dict[str, int]:
        """Indices of signals that can be measured: encoders, and signals that are not states."""
        by_name = {name.partition(" [")[0]: k for k, name in enumerate(self.signal_names)}
        seen = {encoder.name: by_name[f"{encoder.on}.position"] for encoder in self.line.encoders}
        return seen | {name: k for name, k in by_name.items() if name not in self.state_names}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSystem:
    """Equations of a machine and its drive lines.

    Attributes:
        plant: the machine, with the inertias that are rigidly connected to its actuators.
        rate: its right-hand side; the states are positions, velocities, work and loss.
        lines: drive lines of the actuators, in their order.
        parameters: independent parameters in the lines' expressions: arguments of their functions.
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
        return sum(size for _, size in self.rate.state) + BALANCE

    @property
    def size(self) -> int:
        """Total number of states."""
        return self.machine_size + sum(len(line.start) + BALANCE for line in self.lines)

    def places(self) -> Iterator[tuple[LineSystem, int, int, int]]:
        """Yield each line with the indices of its first state, first mode and first held value."""
        y, s, z = self.machine_size, 0, 0
        for line in self.lines:
            yield line, y, s, z
            y, s, z = y + len(line.start) + BALANCE, s + len(line.mode_names), z + line.held_size


#: Remedies for dry friction of the machine itself: Coulomb friction, and friction that depends on
#: the direction.
BRISTLES = (
    "replace Coulomb friction at actuators by LuGre friction (presliding), or remove this friction"
)
ONE_WAY = (
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
    built = tuple(_line_system(f"line{i}", line, table, mechanism) for i, line in enumerate(lines))
    return MachineSystem(
        plant=plant,
        rate=independent_rate_program(plant.assembly, plant.platform.ports, plant.formulation),
        lines=built,
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
                    "use `lugre` or LuGre friction (presliding), or move the friction to an inertia "
                    "behind a shaft"
                )
                problems.append(
                    Problem(
                        where=f"{where}.inertias.{name}.friction.coulomb", what=what, remedy=remedy
                    )
                )
    if len(set(periods.values())) > 1:
        what = "have different sample periods: " + ", ".join(
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
        remedy = ONE_WAY if key != "coulomb" else BRISTLES
        problems.append(Problem(where=f"{name}.friction.{key}", what=what, remedy=remedy))
    return problems


def _line_system(
    prefix: str, line: DriveLine, table: ParameterTable, mechanism: Mechanism
) -> LineSystem:
    load = line.performance.of
    first = tuple(i for i in line.inertias if i.name == load)
    line = replace(line, inertias=(*first, *(i for i in line.inertias if i.name != load)))
    a = Equations(line, table, MACHINE_INPUTS)
    forces, law, _ = a.add_forces()
    push = forces[0]
    kinetic = sum(
        (
            a.scalar(item.value) * a.velocity(item.name) ** 2 / 2
            for item in line.inertias
            if a.at.index[item.name] != 0
        ),
        ca.SX(0),
    )
    a.add_accelerations(forces)  # the load's rate is not used: the machine determines its motion
    a.rates[a.loops] = law.rates
    # without the load's position and velocity, which the machine has, and without the integral of
    # squared torques
    own = [k for k in range(a.y.numel()) if k not in (0, a.n, a.y.numel() - 1)]
    x, held_load = ca.SX.sym("x", len(own)), ca.SX.sym("load", 2)
    whole = ca.SX(a.y.numel(), 1)
    whole[own] = x
    whole[0], whole[a.n] = held_load[0], held_load[1]
    arguments = [x, held_load, a.modes.symbols, a.held, a.inputs, a.p]

    def placed(*expressions: ca.SX) -> list[ca.SX]:
        dense = [ca.densify(expression) for expression in expressions]
        return [ca.SX(e) for e in ca.substitute(dense, [a.y], [ca.densify(whole)])]

    rates, guards, force, reset, held, supplied, lost, stored, kinetic, signals = placed(
        a.rates[own],
        a.modes.guards,
        push,
        a.reset[own],
        a.held_next(),
        a.supplied,
        a.lost,
        a.stored,
        ca.SX(kinetic),
        ca.SX(ca.vertcat(ca.SX(0, 1), *a.signals.values())),
    )
    balanced = ca.vertcat(rates, supplied, lost)
    speed = line.control.speed_encoder
    last = ca.SX(a.held.numel(), 1)
    if speed is not None:
        on = next(encoder.on for encoder in line.encoders if encoder.name == speed)
        (last[2],) = placed(a.position(on))
    numbers = {name: mechanism.value(ratio) for name, ratio in line.ratios().items()}
    start = np.zeros(len(own))
    for place, k in enumerate(own):
        if k < a.n:
            start[place] = numbers[a.at.roots[k]]
    drive = line.control.drive
    positive, not_negative = must_be_positive(a), must_not_be_negative(a)
    figures = [ca.vertcat(ca.SX(0, 1), *scalars.values()) for scalars in (positive, not_negative)]
    master = drive.motor if hasattr(drive, "motor") else drive.master
    return LineSystem(
        line=line,
        start=start,
        state_names=tuple(a.names[k] for k in own),
        mode_names=a.modes.names,
        mode_starts=a.modes.starts,
        held_size=a.held.numel(),
        rate=ca.Function(f"{prefix}_rate", arguments, [balanced, guards, force]),
        slope=ca.Function(f"{prefix}_slope", arguments, [balanced, force]),
        reset=ca.Function(f"{prefix}_reset", arguments, [reset]),
        hold=ca.Function(f"{prefix}_hold", arguments, [held]),
        held=ca.Function(f"{prefix}_held", arguments, [last]),
        signals=BatchFunction(
            ca.Function(f"{prefix}_signals", arguments, [ca.vertcat(signals, kinetic + stored)])
        ),
        signal_names=tuple(a.signals),
        figures=BatchFunction(ca.Function(f"{prefix}_figures", [a.p], figures)),
        figure_names=(tuple(positive), tuple(not_negative)),
        ratio=numbers[next(motor.on for motor in line.motors if motor.name == master)],
    )
