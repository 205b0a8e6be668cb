"""C source of a kinematics module: inverse and forward, with the geometry as arguments and pins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import reads_start
from tauloop.compiler.c.calling.signature import CPort
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import CFunction, c_source, comment, number
from tauloop.compiler.c.printing.straight import instructions
from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.expressions import MotionState, ProgramSpec
from tauloop.compiler.functions.tool import WRENCH
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.compiler.solving.bounded import Bounded
from tauloop.compiler.state import CONVERGED, SMALLEST_PIVOT
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.named_values import TOOL_PORT
from tauloop.equations.newton_euler import actuator_offsets, transmission
from tauloop.equations.values import BatchFunction
from tauloop.export.linuxcnc.machine import MAX_HAL_NAME_LENGTH, MachineLayout, Pin, pin_name
from tauloop.model.model import Model

#: Groups of the independent parameters that change positions and ratios.
GEOMETRIC_GROUPS = ("geometry", "drive")


@dataclass(frozen=True, slots=True, kw_only=True)
class KinematicFunctions:
    """Programs that convert between joints and coordinates.

    Attributes:
        theta: names of the independent parameters that are inputs of the programs.
        used: indices of the parameters that have an effect.
        inverse: function from the platform's position to all coordinates and the joints.
        forward: function from the actuators' positions at nominal ratios to all coordinates.
        drive: function from the joints to the actuators' positions at nominal ratios.
    """

    theta: tuple[str, ...]
    used: tuple[int, ...]
    inverse: CFunction
    forward: CFunction
    drive: CFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCorrection:
    """Correction of the platform's position by load and temperatures on pins.

    Attributes:
        function: function from position, wrench and temperatures to the corrected position of the
            rigid machine.
        pins: names of the pins, in the order of the function's inputs.
        units: units of the pins: N, N m or K.
    """

    function: CFunction
    pins: tuple[str, ...]
    units: tuple[str, ...]


def load_correction(model: Model, module: str, taken: set[str]) -> LoadCorrection:
    """Return the correction of a machine's position, with the names of its pins.

    Args:
        model: the machine.
        module: name of the component.
        taken: names of the other pins.

    Raises:
        InputError: the machine has no elastic data, or the code does not support one of its parts.
    """
    # imported here, because only this option needs elasticity
    from tauloop.elasticity.compensation.compensation_program import (
        CORRECTED,
        TEMPERATURES,
        compensation_program,
    )

    built = compensation_program(model)
    sizes = {
        "position": model.platform.ports.position.size,
        "wrench": WRENCH,
        TEMPERATURES: len(built.parts),
        "start": model.topology.n_q,
        CORRECTED: model.platform.ports.position.size,
    }
    ports = {name: CPort(name=name, size=size) for name, size in sizes.items()}
    inputs = ["position", "wrench"]
    if built.parts:
        inputs.append(TEMPERATURES)
    if reads_start(built.correction, (CORRECTED,)):
        inputs.append("start")
    names = [f"load.{column}" for column in TOOL_PORT.columns]
    names += [f"temperature.{part}" for part in built.parts]
    max_length = MAX_HAL_NAME_LENGTH - len(module) - 1
    return LoadCorrection(
        function=CFunction(
            name="tauloop_correction_program",
            program=built.correction,
            inputs=tuple(ports[name] for name in inputs),
            outputs=(ports[CORRECTED],),
        ),
        pins=tuple(pin_name(name, taken, max_length) for name in names),
        units=(*TOOL_PORT.units, *("K",) * len(built.parts)),
    )


def kinematic_functions(model: Model) -> KinematicFunctions:
    """Return the programs of a machine, with all geometric parameters free.

    Raises:
        AssemblyError: the actuators do not determine the coordinates that they drive.
    """
    model = model.with_free_parameters(
        p.name for p in model.mechanism.parameters if p.group in GEOMETRIC_GROUPS
    )
    joints = len(model.mechanism.actuators)
    spec = ProgramSpec(
        name="joints",
        meaning="joints and all coordinates",
        build=_joints_program,
        inputs=("position",),
        outputs=("joint", "q"),
    )
    sizes = {
        "position": model.platform.ports.position.size,
        "theta": len(model.free),
        "start": model.topology.n_q,
        "q": model.topology.n_q,
        "joint": joints,
    }
    ports = {name: CPort(name=name, size=size) for name, size in sizes.items()}

    def function(
        name: str, program: Program, inputs: Sequence[str], outputs: Sequence[str]
    ) -> CFunction:
        all_inputs = list(inputs)
        if reads_start(program, tuple(outputs)):
            all_inputs.append("start")
        if model.free:
            all_inputs.append("theta")
        return CFunction(
            name=f"tauloop_{name}_program",
            program=program,
            inputs=tuple(ports[port] for port in all_inputs),
            outputs=tuple(ports[port] for port in outputs),
        )

    inverse = function("inverse", model.platform.program(spec), ["position"], ["q", "joint"])
    ports["position"] = replace(ports["position"], size=joints)
    forward = function("forward", model.actuators.program(KINEMATICS[0]), ["position"], ["q"])
    drive = function("drive", _drive_program(model), ["joint"], ["position"])
    used = sorted(set().union(*map(_used_parameters, (inverse, forward, drive))))
    return KinematicFunctions(
        theta=model.free, used=tuple(used), inverse=inverse, forward=forward, drive=drive
    )


def _joints_program(state: MotionState) -> Program:
    """Return the program for all coordinates q and the joints p = A(theta) q + b(theta)."""
    # velocities that are the derivative of a coordinate
    columns = [i for i, iq in enumerate(state.topology.q_of_v) if iq >= 0]
    q = state.configuration.q
    ratios = ca.sparsify(state.transmission[:, columns])
    joint = ratios @ q[[state.topology.q_of_v[i] for i in columns]]
    return state.builder.finish({"q": q, "joint": ca.densify(joint + state.actuator_offsets)})


def _drive_program(model: Model) -> Program:
    """Return the program that converts joint values p to positions of the nominal actuators.

    The joint values are p = A(theta) q + b(theta), with ratios A and offsets b. The positions with
    the nominal values A_0 and b_0 are A_0 A(theta)^-1 (p - b(theta)) + b_0.
    """
    theta, ports = ca.SX.sym("theta", len(model.free)), model.actuators.ports
    values = nominal(model.mechanism, {name: theta[i] for i, name in enumerate(model.free)})
    A = ca.sparsify(transmission(model.mechanism, model.topology, values)[:, list(ports.v)])
    joint = position = ca.SX.sym("joint", A.size1())
    offsets = actuator_offsets(model.mechanism, values)
    nominal_offsets = model.assembly.loops.actuator_offsets
    if ca.depends_on(offsets, theta):
        position = joint - offsets + ca.DM(nominal_offsets)
    if ca.depends_on(A, theta):
        q = ca.solve(A, joint - offsets)
        position = ca.DM(np.linalg.inv(ports.to_v)) @ q + ca.DM(nominal_offsets)
    function = ca.Function("drive", [joint, theta], [ca.densify(position)])
    step = Evaluate(
        function=BatchFunction(function), inputs=("joint", "theta"), outputs=("position",)
    )
    return Program(name="drive", steps=(step,), outputs=("position",), closed_forms=(), pivots=())


def _used_parameters(function: CFunction) -> set[int]:
    """Return the indices of the parameters that a program reads."""
    used = set()
    for step in function.program.steps:
        if isinstance(step, Bounded) or "theta" not in step.inputs:
            continue
        port = step.inputs.index("theta") + isinstance(step, Newton)  # after Newton's unknowns
        code = step.function.function
        for instruction in instructions(code, [True] * code.n_out()):
            if (
                instruction.operation == ca.OP_INPUT
                and instruction.port is not None
                and instruction.port[0] == port
            ):
                used.add(instruction.port[1])
    return used


def header_text(
    module: str,
    note: str,
    model: Model,
    layout: MachineLayout,
    functions: KinematicFunctions,
    pins: Sequence[Pin],
    correction: LoadCorrection | None = None,
) -> str:
    """Return the header of a module: programs, tables and conversions in LinuxCNC's units.

    Args:
        module: name of the module.
        note: comment at the top.
        model, layout: the machine, and its joints, axes and tool.
        functions: programs of the machine.
        pins: pins of the programs' parameters, in their order, and of the tool.
        correction: correction of the platform's position for loads; None for no correction.
    """
    corrections = [] if correction is None else [correction.function]
    tables = _tables(module, model, layout, functions, pins, correction)
    programs = c_source(
        [functions.inverse, functions.forward, functions.drive, *corrections],
        note,
        with_batch=False,
        further="\n".join(tables),
    )
    return f"{programs}\n{c_file('tauloop.export.linuxcnc', 'conversions.c')}"


def _tables(
    module: str,
    model: Model,
    layout: MachineLayout,
    functions: KinematicFunctions,
    pins: Sequence[Pin],
    correction: LoadCorrection | None,
) -> Iterator[str]:
    """Yield the machine's tables for `conversions.c` and `module.c`."""
    sizes = {
        "JOINTS": len(layout.joints),
        "THETA": len(functions.theta),
        "FREE": len(functions.used),
        "PINS": len(pins),
        "POSITION": len(layout.world),
        "Q": model.topology.n_q,
        "TURNS": layout.rotation_mode,
        "HAS_TOOL": int(bool(layout.tool)),
        "LOADS": 0 if correction is None else len(correction.pins),
    }
    yield f'#define TAULOOP_MODULE "{module}"'
    yield from (f"#define TAULOOP_{name} {size}" for name, size in sizes.items())
    yield f"#define TAULOOP_SMALLEST_PIVOT {SMALLEST_PIVOT!r}"
    yield f"#define TAULOOP_CONVERGED {CONVERGED!r}"
    yield "typedef struct {"
    yield "    const char *name;"
    yield "    double value, si;"
    yield "} tauloop_pin;"
    rows = [
        f'    {{"{pin.name}", {number(pin.value)}, {number(pin.si)}}}, /* {_note(pin)} */'
        for pin in pins
    ]
    yield from (
        "static const tauloop_pin tauloop_pins[TAULOOP_PINS + 1] = {",
        *rows,
        '    {"", 0.0, 1.0},',
        "};",
    )
    nominal_theta = model.mechanism.parameters.vector(functions.theta).tolist()
    yield _array(
        "double", "nominal", "THETA", [*(number(value) for value in nominal_theta), "0.0"], 1
    )
    yield _array("int", "free", "FREE", [*map(str, functions.used), "0"], 1)
    yield _array("int", "axes", "POSITION", map(str, layout.world))
    yield _array("int", "columns", "POSITION", map(str, model.platform.ports.q))
    yield _array("double", "units", "JOINTS", (number(joint.si) for joint in layout.joints))
    yield _array("double", "reference", "Q", (number(value) for value in model.assembly.q.tolist()))
    yield from _call(
        "inverse", functions.inverse, "const double *position", "double *q, double *joint"
    )
    yield from _call("drive", functions.drive, "const double *joint", "double *position")
    yield from _call("forward", functions.forward, "const double *position", "double *q")
    names = () if correction is None else correction.pins
    texts = ", ".join(f'"{name}"' for name in (*names, ""))
    yield f"#define TAULOOP_LOAD_NAMES {{{texts}}}"
    if correction is not None:
        yield from _correction_call(correction.function)


def _correction_call(function: CFunction) -> Iterator[str]:
    """Yield the lines of the correction's C wrapper, with wrench and temperatures in one array."""
    head = "const double *position, const double *loads, const double *start, double *corrected"
    yield f"static void tauloop_correction_solved({head}, double *health)"
    yield "{"
    yield f"    const double *wrench = loads, *temperatures = loads + {WRENCH};"
    yield "    (void)temperatures;"
    yield "    (void)start;"
    yield f"    {function.name}({', '.join(port.name for port in function.arguments)});"
    yield "}"


def _note(pin: Pin) -> str:
    return comment(f"{pin.parameter}, {pin.unit}")


def _array(ctype: str, name: str, size: str, values: Iterable[str], extra: int = 0) -> str:
    """Return a C table of TAULOOP_`size` elements plus `extra` elements, so that it is not empty."""
    elements = ", ".join(values)
    return f"static const {ctype} tauloop_{name}[TAULOOP_{size} + {extra}] = {{{elements}}};"


def _call(name: str, function: CFunction, inputs: str, outputs: str) -> Iterator[str]:
    """Yield the lines of a C wrapper that passes only the arguments of a program to it."""
    head = f"{inputs}, const double *theta, const double *start, {outputs}, double *health"
    yield f"static void tauloop_{name}_solved({head})"
    yield "{"
    yield "    (void)theta;"
    yield "    (void)start;"
    yield f"    {function.name}({', '.join(port.name for port in function.arguments)});"
    yield "}"
