"""What an FMU of a plant runs: forward dynamics of a machine, pushed by its drive lines where it has them."""

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
from tauloop.export.fmu.variables import FmuVariable, FmuVariables, named, parameter_variable, table
from tauloop.integrate.routine import Routine, RoutineCall, program_call, straight
from tauloop.integrate.system import HybridSystem
from tauloop.mechanism.expression import ParameterTable
from tauloop.model import Model
from tauloop.simulation.routes import IndependentCoordinates
from tauloop.simulation.system import System

#: What acts at the tool, in the base frame, and its units.
_WRENCH = tuple(f"tool.{kind}_{axis}" for kind in ("force", "moment") for axis in "xyz")
_WRENCH_UNITS = ("N",) * 3 + ("N m",) * 3


@dataclass(frozen=True, kw_only=True, eq=False)
class FmuFunctions:
    """The functions of an FMU and what their numbers are.

    Attributes:
        system: rates, resets, samples and the way back.
        begin: states that follow from others at the start.
        outputs, turns: from what is known beside rates.
        diagnosis: what closed forms miss; without calls where there are none.
        forms: element of each closed form.
        length: characteristic length of the machine, m.
        loops: what does not close, or is singular, where there are none.
        variables: all variables.
        constants: name of each constant of the system.
        guess: coordinates that Newton's method begins from.
        period: of samples, s; zero without any.
        front: C text in front of all, which defines what samples call, TL_OWN; samples call
            routines alone without it.
        values: parameters by name that this text has a hash of; none without it.
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
        """Routines beside those of the integrator, by name."""
        return {
            "begin": self.begin,
            "outputs": self.outputs,
            "turns": self.turns,
            "diagnosis": self.diagnosis,
        }

    @property
    def known(self) -> int:
        """Numbers that are known beside rates."""
        return sum(size for _, size in self.system.rate.known)

    def tables(self) -> str:
        """C text of sizes and tables that stands in front of `instance.c`."""
        parameters = [variable.name for variable in self.variables.parameters]
        places = [str(parameters.index(name)) for name in self.constants] or ["0"]
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
        return "\n".join(
            [
                *(f"#define {name} {value}" for name, value in sizes.items()),
                *([] if self.front else ["#define TL_OWN 0"]),
                self.variables.tables(),
                table("tl_guess", self.guess),
                f"static const int tl_parameter[{len(places)}] = {{{', '.join(places)}}};",
                *(
                    [f"static const char *const tl_form[{len(self.forms)}] = {{{forms}}};"]
                    if forms
                    else []
                ),
                *(f"static int system_{name}{signature}" for name in self.further),
                "",
            ]
        )


def quoted(text: str) -> str:
    """A C string of any text."""
    return '"' + comment(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def plant_functions(model: Model, tolerance: float) -> FmuFunctions:
    """Forward dynamics of a machine: forces of actuators and at the tool in; with drive lines, torques of the motors.

    Args:
        model: the machine; its free parameters stay parameters.
        tolerance: to what zero is known: standstill of dry friction, SI.

    Raises:
        InputError: as of `System` and `DrivenMachine`.
    """
    if any(actuator.drive for actuator in model.mechanism.actuators):
        return _driven(model, tolerance)
    return _free(model)


def _free(model: Model) -> FmuFunctions:
    """The machine pushed by its actuators' forces."""
    made = System(model, IndependentCoordinates(), with_wrench=True)
    system, ports = made.routines, model.platform.ports
    actuators, units = model.output_ports("actuators")
    n_q, n_v, at_rest = system.coordinates, system.velocities, ports.at(model.assembly.q)
    inputs = named(
        (*(f"{name}.force" for name in actuators), *_WRENCH),
        (*units, *_WRENCH_UNITS),
        causality="input",
        start=0.0,
    )

    def outputs(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        return {"rate": ca.vertcat(*actuator_motion(model.assembly, q, v))}

    reads = {"run->known": n_q, f"run->known + {n_q}": n_v}
    table, (turns, turning) = model.mechanism.parameters, _turns(model, reads)
    return FmuFunctions(
        system=system,
        begin=system.back if made.rate.quaternions else Routine(),
        outputs=Routine(calls=(straight("outputs", reads, outputs),)),
        turns=turning,
        **diagnosis_of(model, "p"),  # type: ignore[arg-type]
        length=model.assembly.loops.length,
        loops=loops_of(made.rate.program),
        variables=FmuVariables(
            parameters=tuple(parameter_variable(table[name]) for name in model.free),
            inputs=inputs,
            states=(*_motion(model, at_rest), *_balance("")),
            outputs=actuator_motion_variables(model),
            turns=turns,
        ),
        constants=model.free,
        guess=model.assembly.q,
    )


def _turns(model: Model, reads: Mapping[str, int]) -> tuple[tuple[FmuVariable, ...], Routine]:
    """Speeds of what dry friction acts on: at their zeros it jumps, which integrators have to know."""
    names, actuators = (
        model.topology.velocity_names,
        [actuator.name for actuator in model.mechanism.actuators],
    )
    dry = (
        p.name.rpartition(".")[0]
        for p in model.parameters
        if p.role in ("coulomb", "coulomb_asymmetry", "stribeck")
    )
    rubbing = [name for name in dict.fromkeys(dry) if name in names or name in actuators]
    units = dict(zip(names, velocity_units(model.topology), strict=True))
    units |= {
        v.name.removesuffix(".velocity"): v.unit
        for v in actuator_motion_variables(model)[len(actuators) :]
    }

    def speeds(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        _, rates = actuator_motion(model.assembly, q, v)
        chosen = [
            v[names.index(name)] if name in names else rates[actuators.index(name)]
            for name in rubbing
        ]
        return {"rate": ca.vertcat(*chosen)}

    turns = (
        FmuVariable(name=f"{name}.turns", causality="local", unit=units[name]) for name in rubbing
    )
    return tuple(turns), Routine(calls=(straight("turns", reads, speeds),) if rubbing else ())


def _motion(model: Model, at_rest: np.ndarray) -> tuple[FmuVariable, ...]:
    """Independent positions and velocities of the platform."""
    ports = model.platform.ports
    velocities = named(
        (f"{name}.velocity" for name in ports.velocity.columns), ports.velocity.units, start=0.0
    )
    positions = zip(ports.position.columns, ports.position.units, at_rest, strict=True)
    return (
        *(FmuVariable(name=name, unit=unit, start=float(x)) for name, unit, x in positions),
        *velocities,
    )


def _balance(prefix: str) -> tuple[FmuVariable, ...]:
    """Work and loss, which begin at zero."""
    return named((f"{prefix}work", f"{prefix}loss"), ("J", "J"), causality="local")


def actuator_motion_variables(model: Model) -> tuple[FmuVariable, ...]:
    """Positions and speeds of the actuators."""
    names, units = model.output_ports("actuators")
    lengths = ["rad" if unit == "N m" else "m" for unit in units]
    positions = named((f"{name}.position" for name in names), lengths)
    return (
        *positions,
        *named((f"{name}.velocity" for name in names), (f"{unit}/s" for unit in lengths)),
    )


def diagnosis_of(model: Model, theta: str, position: str = "y") -> dict[str, object]:
    """The routine that says what closed forms miss, and their elements."""
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
    """The loops that Newton's method closes, or the machine."""
    names = [name for step in program.steps if isinstance(step, Newton) for name in step.what]
    return ", ".join(names) or "the machine"


# Drive lines


def _driven(model: Model, tolerance: float) -> FmuFunctions:
    """The machine pushed by the motors of its drive lines."""
    made = with_free(DrivenMachine(model.mechanism, interpreted=True).system, model.free)
    sampled, plant, lines = sampled_machine(made), made.plant, made.lines
    inputs: list[FmuVariable] = []
    for line, actuator in zip(lines, plant.mechanism.actuators, strict=True):
        for motor in line.line.motors:
            unit = "N m" if line.line.inertia(motor.on).turns else "N"
            name = f"{actuator.name}.{motor.name}.torque_asked"
            inputs.append(FmuVariable(name=name, causality="input", unit=unit, start=0.0))
    asked = _asked(lines, tolerance)
    own = {**sampled.rate.own, "asked": sampled.held, "told": sampled.inputs}
    begin, outputs, shown = _begin(made), *_line_outputs(made, asked, own)
    constants = (*made.parameters.names, *plant.free)
    leaves = ParameterTable(
        (*made.parameters, *(p for p in plant.mechanism.parameters if p.name in plant.free))
    )
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
        **diagnosis_of(plant, f"p + {len(made.parameters)}"),  # type: ignore[arg-type]
        length=plant.assembly.loops.length,
        loops=loops_of(made.rate.program),
        variables=FmuVariables(
            parameters=tuple(parameter_variable(p) for p in {p.name: p for p in leaves}.values()),
            inputs=tuple(inputs),
            states=(
                *_motion(plant, plant.platform.ports.at(plant.assembly.q)),
                *_balance(""),
                *(state for line in lines for state in _line_states(line)),
            ),
            outputs=(*actuator_motion_variables(plant), *shown),
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
    """The system with some parameters of its machine free, behind those of the lines."""
    plant = system.plant.with_free_parameters(free)
    rate = independent_rate_program(
        plant.assembly, plant.platform.ports, plant.formulation, free=plant.free
    )
    return replace(system, plant=plant, rate=rate)


def plain_name(text: str) -> str:
    """A variable's name from that of a signal or a mode: words joined, parts with points between."""
    return re.sub(r"\s+", "_", re.sub(r"\s*:\s*", ".", text.strip()))


def _asked(lines: tuple[LineSystem, ...], tolerance: float) -> RoutineCall:
    """What the lines hold and are told, from torques of their motors: these alone are asked for."""
    sizes = [len(line.line.motors) for line in lines]

    def fill(torques: ca.SX) -> dict[str, ca.SX]:
        parts = ca.vertsplit(torques, np.cumsum([0, *sizes]).tolist())
        asked = [
            ca.vertcat(ca.SX(line.held_size - n, 1), x)
            for line, n, x in zip(lines, sizes, parts, strict=True)
        ]
        inputs = ca.SX(len(MACHINE_INPUTS), 1)
        inputs[INPUTS.index("standstill")] = tolerance
        return {"asked": ca.vertcat(*asked), "told": ca.vertcat(*[inputs] * len(lines))}

    return straight("asked_of_motors", {"in": sum(sizes)}, fill)


def _redirected(call: RoutineCall) -> RoutineCall:
    """A call that reads what is asked of the motors in the place of what a sample has found."""
    places = tuple(
        re.sub(r"^in\b", "told", re.sub(r"^held\b", "asked", place)) for place in call.inputs
    )
    return replace(call, inputs=places)


def _line_states(line: LineSystem) -> tuple[FmuVariable, ...]:
    """States of a line; they follow from the machine's at the start."""
    turns = {item.name: item.turns for item in line.line.inertias}
    states = []
    for name in line.state_names:
        body, _, what = name.rpartition(".")
        unit = "rad" if turns.get(body, False) else "m"
        unit = {"velocity": f"{unit}/s"}.get(what, unit if body else "1")
        causality = "output" if what in ("position", "velocity") else "local"
        states.append(FmuVariable(name=f"{line.line.name}.{name}", causality=causality, unit=unit))
    return (*states, *_balance(f"{line.line.name}."))


def _begin(system: MachineSystem) -> Routine:
    """States of the lines in the middle of their gaps, moving with the actuators."""
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
        for i, (line, y, _, _) in enumerate(system.places()):
            moving = sum(name.endswith(".velocity") for name in line.state_names)
            state = ca.SX(ca.DM(line.start)) * position[i]
            state[moving : 2 * moving] = ca.SX(ca.DM(line.start[:moving])) * speed[i]
            result[f"y + {y}"] = state
        return result

    return Routine(
        calls=(pose, straight("first_lines", {"start": shape.n_q, "v": shape.n_v}, follow)),
        own={"v": shape.n_v},
    )


def _line_outputs(
    system: MachineSystem, asked: RoutineCall, own: dict[str, int]
) -> tuple[Routine, tuple[FmuVariable, ...]]:
    """Motion of the actuators, and behind it what encoders measure and all signals of the lines."""
    plant, shape, n_u = system.plant, system.plant.topology, len(system.lines)
    known = {"run->known": shape.n_q, f"run->known + {shape.n_q}": shape.n_v}

    def motion(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        position, speed = actuator_motion(plant.assembly, q, v)
        return {"at": ca.vec(ca.horzcat(position, speed).T), "rate": ca.vertcat(position, speed)}

    calls, shown, at = [asked, straight("motion", known, motion)], list[FmuVariable](), 2 * n_u
    for i, (line, y, s, z) in enumerate(system.places()):
        inputs = (
            f"y + {y}",
            f"at + {2 * i}",
            f"s + {s}",
            f"asked + {z}",
            f"told + {len(MACHINE_INPUTS) * i}",
            "p",
        )
        measured = line.measured
        whole = line.signals.function
        symbols = [ca.SX.sym(f"x{k}", whole.numel_in(k)) for k in range(whole.n_in())]
        (signals,) = whole.call(symbols)
        chosen = ca.Function(f"line{i}_outputs", symbols, [signals[list(measured.values())]])
        calls.append(RoutineCall(function=chosen, inputs=inputs, outputs=(f"rate + {at}",)))
        for name, k in measured.items():
            unit = line.signal_names[k].rpartition(" [")[2].removesuffix("]")
            shown.append(FmuVariable(name=plain_name(f"{line.line.name}.{name}"), unit=unit))
        at += len(measured)
    return Routine(calls=tuple(calls), own=own), tuple(shown)
