"""FMUs of plants: forward dynamics of a machine, driven by its drive lines if it has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.printing.source import comment, number
from tauloop.compiler.catalogue import DIAGNOSIS, KINEMATICS
from tauloop.compiler.functions.rates import actuator_motion, independent_rate_program
from tauloop.compiler.program import Newton, Program
from tauloop.drives.equations.system import INPUTS
from tauloop.drives.machine.path import DrivenMachine
from tauloop.drives.machine.routines import sampled_machine
from tauloop.drives.machine.system import MACHINE_INPUTS, LineSystem, MachineSystem
from tauloop.equations.ports import velocity_units
from tauloop.export.fmu.variables import (
    FmuVariable,
    FmuVariables,
    named_variables,
    parameter_variable,
    table,
)
from tauloop.integrate.routine import Routine, RoutineCall, program_call, straight
from tauloop.integrate.system import HybridSystem
from tauloop.mechanism.expression import ParameterTable
from tauloop.model import Model
from tauloop.simulation.routes import IndependentCoordinates
from tauloop.simulation.system import System

#: Forces and moments on the tool in the base frame, with units.
_WRENCH = tuple(f"tool.{kind}_{axis}" for kind in ("force", "moment") for axis in "xyz")
_WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3
#: C array with the inputs of the drive lines; the name is part of generated code.
_LINE_INPUTS = "line_inputs"


@dataclass(frozen=True, kw_only=True, eq=False)
class FmuFunctions:
    """The functions of an FMU, and the meaning of their numbers.

    Attributes:
        system: routines for derivatives, resets and samples, and the map from coordinates to states.
        begin: routine that computes dependent states at the start.
        outputs, turns: routines that compute, from the known numbers, the outputs and the speeds
            whose signs determine the dry friction.
        diagnosis: routine for the range margins of closed forms; no calls without closed forms.
        forms: name of the element that each closed form solves.
        length: characteristic length of the machine, m.
        loops: names of the loops in the error "not closed, or singular" without closed forms.
        variables: all variables.
        constants: name of each constant of the system.
        guess: start coordinates of Newton's method (n_q,).
        period: sampling period, s; zero without samples.
        front: C text before all other text, which defines the function TL_OWN for samples; without
            it samples call routines only.
        values: parameters in the hash of this text, by name; empty for the machine's parameters.
    """

    system: HybridSystem
    begin: Routine = field(default_factory=Routine)
    outputs: Routine
    turns: Routine = field(default_factory=Routine)
    diagnosis: Routine = field(default_factory=Routine)
    forms: tuple[str, ...] = ()
    length: float = 1.0
    loops: str
    variables: FmuVariables
    constants: tuple[str, ...]
    guess: np.ndarray
    period: float = 0.0
    front: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def further(self) -> dict[str, Routine]:
        """Routines in addition to those of the integrator, by name."""
        return {
            "begin": self.begin,
            "outputs": self.outputs,
            "turns": self.turns,
            "diagnosis": self.diagnosis,
        }

    @property
    def known(self) -> int:
        """Number of known numbers, which follow the derivatives."""
        return sum(size for _, size in self.system.rate.known)

    def tables(self) -> str:
        """Return C text with sizes and tables for `instance.c`."""
        parameters = [variable.name for variable in self.variables.parameters]
        indices = [str(parameters.index(name)) for name in self.constants] or ["0"]
        sizes = {
            "TL_FREE": len(parameters),
            "NO": len(self.variables.outputs),
            "NG": len(self.variables.turns),
            "NK": self.system.held + self.system.kept,
            "TL_FORMS": len(self.forms),
            "TL_LENGTH": number(self.length),
            "TL_PERIOD": number(self.period),
            "TL_LOOPS": quoted(self.loops),
            "TL_SAFE": int(bool(self.front)),
        }
        signature = "(tl_run *run, double time, double *y, double *rate, double *guards);"
        forms = ", ".join(quoted(form) for form in self.forms)
        lines = [f"#define {name} {value}" for name, value in sizes.items()]
        if not self.front:
            lines.append("#define TL_OWN 0")
        lines += [self.variables.tables(), table("tl_guess", self.guess)]
        lines.append(f"static const int tl_parameter[{len(indices)}] = {{{', '.join(indices)}}};")
        if forms:
            lines.append(f"static const char *const tl_form[{len(self.forms)}] = {{{forms}}};")
        lines += [f"static int system_{name}{signature}" for name in self.further]
        return "\n".join([*lines, ""])


def quoted(text: str) -> str:
    """Return a text as a C string literal."""
    return '"' + comment(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def plant_functions(model: Model, tolerance: float) -> FmuFunctions:
    """Return the FMU functions of a machine's forward dynamics.

    The inputs are the forces of the actuators and the wrench at the tool. With drive lines, they
    are the torques of the motors.

    Args:
        model: the machine; its free parameters stay parameters.
        tolerance: speed below which dry friction treats the motion as standstill, SI.

    Raises:
        InputError: see `System` and `DrivenMachine`.
    """
    if any(actuator.drive for actuator in model.mechanism.actuators):
        return _driven(model, tolerance)
    return _free(model)


def _free(model: Model) -> FmuFunctions:
    """Return the functions of a machine that is driven by the forces of its actuators."""
    force_driven = System(model, IndependentCoordinates(), with_wrench=True)
    system, ports = force_driven.routines, model.platform.ports
    actuators, units = model.output_ports("actuators")
    n_q, n_v, at_rest = system.coordinates, system.velocities, ports.at(model.assembly.q)
    inputs = named_variables(
        (*(f"{name}.force" for name in actuators), *_WRENCH),
        (*units, *_WRENCH_UNITS),
        causality="input",
        start=0.0,
    )

    def outputs(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        return {"rate": ca.vertcat(*actuator_motion(model.assembly, q, v))}

    reads = {"run->known": n_q, f"run->known + {n_q}": n_v}
    table = model.mechanism.parameters
    friction_speeds, friction_routine = _friction_turns(model, reads)
    return FmuFunctions(
        system=system,
        begin=system.back if force_driven.rate.quaternions else Routine(),
        outputs=Routine(calls=(straight("outputs", reads, outputs),)),
        turns=friction_routine,
        **diagnosis_of(model, "p"),  # type: ignore[arg-type]
        length=model.assembly.loops.length,
        loops=loops_of(force_driven.rate.program),
        variables=FmuVariables(
            parameters=tuple(parameter_variable(table[name]) for name in model.free),
            inputs=inputs,
            states=(*_motion(model, at_rest), *_balance("")),
            outputs=actuator_motion_variables(model),
            turns=friction_speeds,
        ),
        constants=model.free,
        guess=model.assembly.q,
    )


def _friction_turns(
    model: Model, reads: Mapping[str, int]
) -> tuple[tuple[FmuVariable, ...], Routine]:
    """Return the variables and the routine of the speeds with dry friction.

    Their zeros are events because the friction jumps there.
    """
    names = model.topology.velocity_names
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    dry = (
        p.name.rpartition(".")[0]
        for p in model.parameters
        if p.role in ("coulomb", "coulomb_asymmetry", "stribeck")
    )
    elements = [name for name in dict.fromkeys(dry) if name in names or name in actuators]
    units = dict(zip(names, velocity_units(model.topology), strict=True))
    units |= {
        v.name.removesuffix(".velocity"): v.unit
        for v in actuator_motion_variables(model)[len(actuators) :]
    }

    def speeds(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        _, rates = actuator_motion(model.assembly, q, v)
        speeds_with_friction = [
            v[names.index(name)] if name in names else rates[actuators.index(name)]
            for name in elements
        ]
        return {"rate": ca.vertcat(*speeds_with_friction)}

    turns = (
        FmuVariable(name=f"{name}.turns", causality="local", unit=units[name]) for name in elements
    )
    return tuple(turns), Routine(calls=(straight("turns", reads, speeds),) if elements else ())


def _motion(model: Model, at_rest: np.ndarray) -> tuple[FmuVariable, ...]:
    """Return the variables of the platform's independent positions and velocities."""
    ports = model.platform.ports
    velocities = named_variables(
        (f"{name}.velocity" for name in ports.velocity.columns), ports.velocity.units, start=0.0
    )
    positions = zip(ports.position.columns, ports.position.units, at_rest, strict=True)
    return (
        *(FmuVariable(name=name, unit=unit, start=float(x)) for name, unit, x in positions),
        *velocities,
    )


def _balance(prefix: str) -> tuple[FmuVariable, ...]:
    """Return the variables of work and loss, which start at zero."""
    return named_variables((f"{prefix}work", f"{prefix}loss"), ("J", "J"), causality="local")


def actuator_motion_variables(model: Model) -> tuple[FmuVariable, ...]:
    """Return the variables of the actuators' positions and speeds."""
    names, units = model.output_ports("actuators")
    lengths = ["rad" if unit == "N m" else "m" for unit in units]
    positions = named_variables((f"{name}.position" for name in names), lengths)
    return (
        *positions,
        *named_variables((f"{name}.velocity" for name in names), (f"{unit}/s" for unit in lengths)),
    )


def diagnosis_of(model: Model, theta: str, position: str = "y") -> dict[str, object]:
    """Return the fields `diagnosis` and `forms` of `FmuFunctions`; empty without closed forms."""
    program = model.platform.program(DIAGNOSIS)
    if not program.closed_forms:
        return {}
    sizes = {key: array.shape[1] for key, array in model.platform.runner.empty_inputs().items()}
    places = {"position": position, "start": "start", "theta": theta}
    call = program_call("diagnosis", program, sizes, places, {"extremes": "rate"}, is_judged=False)
    return {
        "diagnosis": Routine(calls=(call,)),
        "forms": tuple(form.element for form in program.closed_forms),
    }


def loops_of(program: Program) -> str:
    """Return the names of the loops that Newton's method closes, or "the machine"."""
    names = [name for step in program.steps if isinstance(step, Newton) for name in step.what]
    return ", ".join(names) or "the machine"


# Drive lines


def _driven(model: Model, tolerance: float) -> FmuFunctions:
    """Return the functions of a machine that is driven by the torques of its drive lines' motors."""
    driven = with_free(DrivenMachine(model.mechanism).system, model.free)
    sampled, plant, lines = sampled_machine(driven), driven.plant, driven.lines
    inputs: list[FmuVariable] = []
    for line, actuator in zip(lines, plant.mechanism.actuators, strict=True):
        for motor in line.line.motors:
            unit = "N m" if line.line.inertia(motor.on).is_rotary else "N"
            name = f"{actuator.name}.{motor.name}.torque_asked"
            inputs.append(FmuVariable(name=name, causality="input", unit=unit, start=0.0))
    asked = _requested_torques(lines, tolerance)
    own = {**sampled.rate.own, "asked": sampled.held, _LINE_INPUTS: sampled.inputs}
    begin = _begin(driven)
    outputs, signals = _line_outputs(driven, asked, own)
    constants = (*driven.parameters.names, *plant.free)
    leaves = ParameterTable(
        (*driven.parameters, *(p for p in plant.mechanism.parameters if p.name in plant.free))
    )
    # a parameter that several lines use is a single variable
    parameters = {p.name: p for p in leaves}.values()
    return FmuFunctions(
        system=replace(
            sampled,
            held=0,
            inputs=len(inputs),
            rate=replace(
                sampled.rate, calls=(asked, *map(_redirected, sampled.rate.calls)), own=own
            ),
            reset=replace(
                sampled.reset, calls=(asked, *map(_redirected, sampled.reset.calls)), own=own
            ),
            sample=Routine(),
        ),
        begin=begin,
        outputs=outputs,
        **diagnosis_of(plant, f"p + {len(driven.parameters)}"),  # type: ignore[arg-type]
        length=plant.assembly.loops.length,
        loops=loops_of(driven.rate.program),
        variables=FmuVariables(
            parameters=tuple(parameter_variable(p) for p in parameters),
            inputs=tuple(inputs),
            states=(
                *_motion(plant, plant.platform.ports.at(plant.assembly.q)),
                *_balance(""),
                *(state for line in lines for state in _line_states(line)),
            ),
            outputs=(*actuator_motion_variables(plant), *signals),
            modes=tuple(
                FmuVariable(
                    name=plain_name(f"{line.line.name}.{name}"),
                    causality="local",
                    variability="discrete",
                    start=start,
                )
                for line in lines
                for name, start in zip(line.mode_names, line.mode_starts, strict=True)
            ),
        ),
        constants=constants,
        guess=plant.assembly.q,
    )


def with_free(system: MachineSystem, free: Iterable[str]) -> MachineSystem:
    """Return the system with free machine parameters, which follow the parameters of the lines."""
    plant = system.plant.with_free_parameters(free)
    rate = independent_rate_program(
        plant.assembly, plant.platform.ports, plant.formulation, free=plant.free
    )
    return replace(system, plant=plant, rate=rate)


def plain_name(text: str) -> str:
    """Return a variable's name from a signal's or mode's name.

    Spaces become underscores and colons become points.
    """
    return re.sub(r"\s+", "_", re.sub(r"\s*:\s*", ".", text.strip()))


def _requested_torques(lines: tuple[LineSystem, ...], tolerance: float) -> RoutineCall:
    """Return the call that sets the lines' held values and inputs from the motors' torques."""
    sizes = [len(line.line.motors) for line in lines]

    def fill(torques: ca.SX) -> dict[str, ca.SX]:
        by_line = ca.vertsplit(torques, np.cumsum([0, *sizes]).tolist())
        asked = [
            ca.vertcat(ca.SX(line.held_size - n, 1), x)
            for line, n, x in zip(lines, sizes, by_line, strict=True)
        ]
        inputs = ca.SX(len(MACHINE_INPUTS), 1)
        inputs[INPUTS.index("standstill")] = tolerance
        return {"asked": ca.vertcat(*asked), _LINE_INPUTS: ca.vertcat(*[inputs] * len(lines))}

    return straight("asked_of_motors", {"in": sum(sizes)}, fill)


def _redirected(call: RoutineCall) -> RoutineCall:
    """Return a call that reads the requested torques in place of the results of a sample."""
    arrays = [re.sub(r"^held\b", "asked", array) for array in call.inputs]
    inputs = tuple(re.sub(r"^in\b", _LINE_INPUTS, array) for array in arrays)
    return replace(call, inputs=inputs)


def _line_states(line: LineSystem) -> tuple[FmuVariable, ...]:
    """Return the variables of a line's states; their start values follow from the machine's."""
    is_rotary = {item.name: item.is_rotary for item in line.line.inertias}
    states = []
    for name in line.state_names:
        body, _, quantity = name.rpartition(".")
        unit = "rad" if is_rotary.get(body, False) else "m"
        unit = {"velocity": f"{unit}/s"}.get(quantity, unit if body else "1")
        causality = "output" if quantity in ("position", "velocity") else "local"
        states.append(FmuVariable(name=f"{line.line.name}.{name}", causality=causality, unit=unit))
    return (*states, *_balance(f"{line.line.name}."))


def _begin(system: MachineSystem) -> Routine:
    """Return the routine for the start states of the lines.

    They start in the middle of their gaps and move with the actuators.
    """
    plant, shape = system.plant, system.plant.topology
    ports = plant.platform.ports
    sizes = {key: array.shape[1] for key, array in plant.platform.runner.empty_inputs().items()}
    places = {"position": "y", "velocity": f"y + {ports.position.size}", "start": "start"}
    places["theta"] = f"p + {len(system.parameters)}"
    program = plant.platform.runner.program(KINEMATICS[1])
    pose = program_call("first_pose", program, sizes, places, {"q": "start", "v": "v"})

    def follow(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        position, speed = actuator_motion(plant.assembly, q, v)
        result = {}
        for i, (line, y, _, _) in enumerate(system.line_offsets()):
            n = sum(name.endswith(".velocity") for name in line.state_names)
            per_position = ca.SX(ca.DM(line.rest_state_per_position))
            state = per_position * position[i]
            state[n : 2 * n] = per_position[:n] * speed[i]  # velocities follow the positions
            result[f"y + {y}"] = state
        return result

    return Routine(
        calls=(pose, straight("first_lines", {"start": shape.n_q, "v": shape.n_v}, follow)),
        own={"v": shape.n_v},
    )


def _line_outputs(
    system: MachineSystem, asked: RoutineCall, own: dict[str, int]
) -> tuple[Routine, tuple[FmuVariable, ...]]:
    """Return the routine for the outputs, and the variables of the lines.

    The outputs are the actuators' motion, followed by the lines' encoder readings and signals.
    """
    plant, shape, n_u = system.plant, system.plant.topology, len(system.lines)
    known = {"run->known": shape.n_q, f"run->known + {shape.n_q}": shape.n_v}

    def motion(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        position, speed = actuator_motion(plant.assembly, q, v)
        return {"at": ca.vec(ca.horzcat(position, speed).T), "rate": ca.vertcat(position, speed)}

    calls, variables = [asked, straight("motion", known, motion)], list[FmuVariable]()
    first_output = 2 * n_u
    for i, (line, y, s, z) in enumerate(system.line_offsets()):
        inputs = (
            f"y + {y}",
            f"at + {2 * i}",
            f"s + {s}",
            f"asked + {z}",
            f"{_LINE_INPUTS} + {len(MACHINE_INPUTS) * i}",
            "p",
        )
        indices = line.measurable_signals
        all_signals = line.signals.function
        symbols = [ca.SX.sym(f"x{k}", all_signals.numel_in(k)) for k in range(all_signals.n_in())]
        (signals,) = all_signals.call(symbols)
        measurable = ca.Function(f"line{i}_outputs", symbols, [signals[list(indices.values())]])
        outputs = (f"rate + {first_output}",)
        calls.append(RoutineCall(function=measurable, inputs=inputs, outputs=outputs))
        for name, k in indices.items():
            unit = line.signal_names[k].rpartition(" [")[2].removesuffix("]")
            variables.append(FmuVariable(name=plain_name(f"{line.line.name}.{name}"), unit=unit))
        first_output += len(indices)
    return Routine(calls=tuple(calls), own=own), tuple(variables)
