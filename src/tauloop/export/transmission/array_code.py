"""Functions of an actuator map as a Python module for arrays of NumPy, JAX or PyTorch.

The module does not import Tauloop. It uses only array operations, so it runs on the device of its
input arrays, works inside `jit`, `vmap` and `torch.compile`, and can be differentiated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files as resources

import casadi as ca

from tauloop.common.errors import InputError
from tauloop.compiler.c.printing.straight import Instruction, instructions
from tauloop.compiler.limits import CONVERGED, SMALLEST_PIVOT
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.dynamics import ActuatorMap

#: Newton steps without derivatives; another step with derivatives follows (implicit function
#: theorem). Fitted start values need three steps in double precision.
TRANSMISSION_NEWTON_STEPS = 5
_BINARY = {ca.OP_ADD: "+", ca.OP_SUB: "-", ca.OP_MUL: "*", ca.OP_DIV: "/"}
_COMPARE = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}
_ARRAY_FUNCTIONS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "arcsin",
    ca.OP_ACOS: "arccos",
    ca.OP_ATAN: "arctan",
    ca.OP_ATAN2: "arctan2",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_FABS: "abs",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_SIGN: "sign",
    ca.OP_FMIN: "minimum",
    ca.OP_FMAX: "maximum",
}


def array_module(actuator_map: ActuatorMap, stem: str) -> str:
    """Return the text of the Python module.

    Raises:
        InputError: the program needs an operation that the array libraries do not have.
    """
    mechanism = actuator_map.model.mechanism
    limits = actuator_map.actuator_range.tolist()
    constants = [
        f"JOINTS = {actuator_map.joints!r}",
        f"ACTUATORS = {actuator_map.actuators!r}",
        "#: Limits of the motors: positions, speeds and efforts, SI.",
        f"ACTUATOR_RANGE = {_literal(limits)}",
        f"ACTUATOR_SPEED = {_literal([actuator.speed for actuator in mechanism.actuators])}",
        f"ACTUATOR_EFFORT = {_literal([actuator.force for actuator in mechanism.actuators])}",
    ]
    frame = resources(__package__).joinpath("texts/array_map.py.in").read_text(encoding="utf-8")
    functions = [
        *_function("_to_actuators", actuator_map.to_actuators, "actuator"),
        *_function("_to_joints", actuator_map.to_joints, "joint"),
        *_inertia(actuator_map),
    ]
    return (
        frame.replace("@NAME@", stem)
        .replace("@MACHINE@", mechanism.name)
        .replace("@CONSTANTS@", "\n".join(constants))
        .replace("@CONVERGED@", repr(CONVERGED))
        .replace("@PIVOT@", repr(SMALLEST_PIVOT))
        .replace("@FUNCTIONS@", "\n".join(functions))
    )


def _literal(values: Sequence[object]) -> str:
    """Return the Python literal of nested numbers, with INFINITE for infinite values."""
    return repr(values).replace("inf", "INFINITE")


def _inertia(actuator_map: ActuatorMap) -> Iterator[str]:
    """Yield the lines of the function for the reflected inertia."""
    yield "def _inertia(xp, position):"
    lines, _ = _program(actuator_map.inertia, ("motor_inertia", "link_inertia"))
    yield from lines
    yield f"    motors = {_stacked(actuator_map, 'motor_inertia')}"
    yield f"    links = {_stacked(actuator_map, 'link_inertia')}"
    yield "    return motors, links"
    yield ""


def _stacked(actuator_map: ActuatorMap, name: str) -> str:
    """Return the text of a vector of all entries of a matrix."""
    entries = ", ".join(f"{name}_{i}" for i in range(len(actuator_map.joints) ** 2))
    return f"xp.stack([{entries}], position[..., 0])"


def _function(name: str, program: Program, side: str) -> Iterator[str]:
    """Yield the lines of a function from position, velocity and effort."""
    outputs = [f"{side}_{kind}" for kind in ("position", "velocity", "effort")]
    outputs += ["jacobian", "mode"]
    lines, sizes = _program(program, tuple(outputs))
    yield f"def {name}(xp, position, velocity, effort):"
    yield from lines
    for output in outputs[:-1]:
        entries = ", ".join(f"{output}_{i}" for i in range(sizes[output]))
        yield f"    {output} = xp.stack([{entries}], position[..., 0])"
    checks = "discriminant, residual, pivot, mode_0"
    yield f"    status = _status(xp, {checks}, position[..., 0])"
    yield f"    return {', '.join(outputs[:-1])}, status"
    yield ""


def _program(program: Program, wanted: tuple[str, ...]) -> tuple[list[str], dict[str, int]]:
    """Return the lines of a program, and the sizes of its values."""
    lines: list[str] = []
    sizes: dict[str, int] = {}
    discriminants: list[str] = []
    pivots: list[str] = []
    residuals: list[str] = []
    for step in program.steps:
        if isinstance(step, Newton):
            lines += _newton(step, sizes)
            pivots += _pivots(step.pivot_values, [record.typical for record in step.pivots])
            residuals += [
                f"xp.abs({step.solution}_left_{i}) * {1.0 / size!r}"
                for i, size in enumerate(step.residual_sizes)
            ]
            sizes[step.solution] = step.size
        elif isinstance(step, Evaluate):
            needed = {*wanted, "discriminants", "pivots", *_read_by_others(program, step)}
            lines += _straight(step, needed)
            sizes |= dict(zip(step.outputs, step.function.output_sizes, strict=True))
        else:
            what = "needs forces within bounds, which the Python module does not support"
            raise InputError.of("python", what, "leave out the format 'python'")
    discriminants += [f"discriminants_{i}" for i in range(len(program.closed_forms))]
    pivots += _pivots("pivots", [record.typical for record in program.pivots])
    lines.append(f"    discriminant = xp.least([{', '.join(discriminants)}], 1.0)")
    lines.append(f"    residual = xp.total([{', '.join(residuals)}])")
    lines.append(f"    pivot = xp.least([{', '.join(pivots)}], 1.0)")
    return lines, sizes


def _pivots(name: str, typical: Sequence[float]) -> list[str]:
    """Return the texts of the pivots' absolute values, divided by their typical sizes."""
    return [f"xp.abs({name}_{i}) * {1.0 / max(size, 1e-300)!r}" for i, size in enumerate(typical)]


def _read_by_others(program: Program, step: Evaluate) -> set[str]:
    """Return the names of values that steps other than this one read."""
    names: set[str] = set()
    for other in program.steps:
        if other is not step:
            names |= set(other.inputs)
            if isinstance(other, Newton):
                names.add(other.start)
    return names


def _newton(step: Newton, sizes: dict[str, int]) -> Iterator[str]:
    """Yield the lines of Newton's method with a fixed number of steps."""
    arguments = ", ".join(step.inputs)
    function = f"_{step.solution}_step"
    unknowns = [f"{step.solution}_{i}" for i in range(step.size)]
    yield f"    def {function}({', '.join(unknowns)}):"
    inner = _code(
        step.function.function,
        [step.solution, *step.inputs],
        [f"{step.solution}_left", f"{step.solution}_change", step.pivot_values],
        None,
    )
    yield from (f"    {line}" for line in inner)
    left = [f"{step.solution}_left_{i}" for i in range(step.size)]
    change = [f"{step.solution}_change_{i}" for i in range(step.size)]
    pivots = [f"{step.pivot_values}_{i}" for i in range(len(step.pivots))]
    yield f"        return {_tuple(left)}, {_tuple(change)}, {_tuple(pivots)}"
    yield ""
    start = [f"{step.start}_{i}" for i in range(step.size)]
    solution = f"{step.solution}_all"
    yield f"    # unknowns: {', '.join(step.unknowns)}; known: {arguments}"
    yield f"    {solution} = {_tuple(start)}"
    yield f"    for _ in range({TRANSMISSION_NEWTON_STEPS}):"
    yield f"        {solution} = xp.stopped(_moved(xp, {solution}, {function}(*{solution})[1], {step.sizes!r}))"
    yield f"    {solution} = tuple(x + d for x, d in zip({solution}, {function}(*{solution})[1]))"
    yield f"    {_tuple(left)}, _, {_tuple(pivots)} = {function}(*{solution})"
    yield f"    {_tuple(unknowns)} = {solution}"


def _tuple(names: Sequence[str]) -> str:
    """Return the Python literal of a tuple of names."""
    if len(names) == 1:
        return f"({names[0]},)"
    return f"({', '.join(names)})"


def _straight(step: Evaluate, needed: set[str]) -> list[str]:
    """Return the lines of straight-line code."""
    return _code(step.function.function, list(step.inputs), list(step.outputs), needed)


def _code(
    function: ca.Function, inputs: list[str], outputs: list[str], needed: set[str] | None
) -> list[str]:
    """Return the lines of a CasADi function.

    Inputs and outputs are named after their port, such as `position_0`. `needed` names the outputs
    to compute; None for all.
    """
    wanted = [needed is None or name in needed for name in outputs]
    names: dict[int, str] = {}
    lines = []
    for instruction in instructions(function, wanted):
        if instruction.operation == ca.OP_CONST:
            names[instruction.number] = f"({instruction.constant!r})"
        elif instruction.operation == ca.OP_OUTPUT:
            assert instruction.port is not None
            port, index = instruction.port
            value = names[instruction.operands[0]]
            lines.append(f"    {outputs[port]}_{index} = {value}")
        elif instruction.port is not None:
            port, index = instruction.port
            names[instruction.number] = _value(inputs[port], index)
        else:
            name = f"t{instruction.number}"
            operands = [names[k] for k in instruction.operands]
            lines.append(f"    {name} = {_expression(instruction, operands)}")
            names[instruction.number] = name
    return lines


def _value(name: str, index: int) -> str:
    """Return the text of an entry of a port: of an array argument, or of a value computed before."""
    if name in ("position", "velocity", "effort"):
        return f"{name}[..., {index}]"
    return f"{name}_{index}"


def _expression(instruction: Instruction, a: list[str]) -> str:
    """Return the text of an operation.

    Raises:
        InputError: the array libraries do not have this operation.
    """
    op = instruction.operation
    if op in _BINARY:
        return f"{a[0]} {_BINARY[op]} {a[1]}"
    if op in _ARRAY_FUNCTIONS:
        return f"xp.{_ARRAY_FUNCTIONS[op]}({', '.join(a)})"
    if op in _COMPARE:
        return f"xp.number({a[0]} {_COMPARE[op]} {a[1]})"
    simple = {
        ca.OP_ASSIGN: "{0}",
        ca.OP_NEG: "-{0}",
        ca.OP_SQ: "{0} * {0}",
        ca.OP_TWICE: "2.0 * {0}",
        ca.OP_INV: "1.0 / {0}",
        ca.OP_NOT: "1.0 - {0}",
        ca.OP_AND: "{0} * {1}",
        ca.OP_OR: "xp.maximum({0}, {1})",
        ca.OP_IF_ELSE_ZERO: "xp.where_nonzero({0}, {1})",
        ca.OP_POW: "{0} ** {1}",
        ca.OP_CONSTPOW: "{0} ** {1}",
    }
    if op not in simple:
        what = f"needs an operation that the Python module does not support (CasADi's {op})"
        raise InputError.of("python", what, "leave out the format 'python'")
    return simple[op].format(*a)
