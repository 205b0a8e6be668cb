"""Functions of a motion as CasADi Functions with exact Jacobians, for IPOPT and other optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import build_without_cache
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.catalogue import PRODUCTS
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.ports import EntryPorts, direction_name, factor_of, jacobian_name
from tauloop.equations.topology import Topology
from tauloop.model.derivatives import differentiated
from tauloop.model.runner import Runner


def casadi_function(runner: Runner, function: str, *, compiled: bool = False) -> ca.Function:
    """Return the first output of a function with its sparse Jacobian; see `Motion.casadi`.

    The Jacobian has structural zeros where entries are zero at all states.
    """
    if isinstance(function, str) and function == "kinematics":
        what = "returns positions, whose Jacobian is defined by displacements"
        remedy = "choose inverse_dynamics or forward_dynamics, or `Motion.derivatives`"
        raise InputError.of(function, what, remedy)
    spec, _ = differentiated(function, None, loaded=False)
    output, program, sizes = spec.outputs[0], runner.program(spec), runner.empty_inputs()
    inputs = {name: ca.SX.sym(name, sizes[name].shape[1]) for name in spec.inputs}
    nominal = {name: ca.SX(ca.DM(numbers)) for name, numbers in runner.nominal.items()}
    values = unfolded(program, {**nominal, **inputs})
    blocks = [
        ca.sparsify(ca.reshape(values[jacobian_name(output, name)], values[output].numel(), -1))
        for name in inputs
    ]
    D = displacements(runner.topology, runner.ports, inputs["position"])
    blocks[0] = blocks[0] @ D
    arguments = [*inputs.values(), ca.SX.sym("out", values[output].numel())]
    names = [*inputs, f"out_{output}"]
    jacobian_names = [f"jac_{output}_{name}" for name in inputs]
    jacobian = ca.Function(f"jac_{function}", arguments, ca.cse(blocks), names, jacobian_names)
    definition = [*inputs.values()], ca.cse([values[output]]), [*inputs], [output]
    if compiled:
        all_inputs = {**nominal, **inputs}
        adjoints = _adjoints(runner, PRODUCTS[function], arguments, all_inputs, D, blocks)
        return _external(ca.Function(function, *definition), jacobian, *adjoints)
    options: dict[str, Any] = {"custom_jacobian": jacobian, "jac_penalty": 0}
    return ca.Function(function, *definition, options)


def _adjoints(
    runner: Runner,
    spec: ProgramSpec,
    arguments: list[ca.SX],
    inputs: Mapping[str, ca.SX],
    D: ca.SX,
    jacobian: list[ca.SX],
) -> tuple[ca.Function, ca.Function]:
    """Return w^T J for all inputs, and its Jacobian, with the names that CasADi expects.

    Args:
        runner: programs of the machine.
        spec: program of the products of the function.
        arguments: arguments of the function's Jacobian.
        inputs: all inputs of the program except factors and directions.
        D: matrix from changes of a position to displacements (see `displacements`).
        jacobian: blocks of the Jacobian with respect to the coordinates of the position.
    """
    function, output = spec.name.removesuffix("_products"), spec.outputs[0]
    names = [name for name in spec.inputs if direction_name(name) in spec.inputs]
    steps = {
        direction_name(name): ca.SX.sym(name, runner.known_ports[direction_name(name)].size)
        for name in names
    }
    factors = ca.SX.sym("factors", jacobian[0].size1())
    values = unfolded(runner.program(spec), {**inputs, **steps, factor_of(output): factors})
    slopes = [values[jacobian_name("slope", name)] for name in names]
    # Second derivatives; rows and columns are displacements.
    second: list[list[ca.SX]] = []
    for name in names:
        step = steps[direction_name(name)]
        bends = [ca.jacobian(values[jacobian_name("bend", other)], step).T for other in names]
        second.append([ca.sparsify(bend) for bend in bends])
    constant = ca.SX.sym("held", slopes[0].numel())
    D_slope = ca.jacobian(D.T @ constant, inputs[names[0]])
    (D_slope,) = ca.substitute([D_slope], [constant], [ca.densify(slopes[0])])
    second = [[blocks[0] @ D, *blocks[1:]] for blocks in second]
    second[0] = [D.T @ block for block in second[0]]
    second[0][0] += D_slope
    slopes[0] = D.T @ slopes[0]
    blocks = []
    for row, J in zip(second, jacobian, strict=True):
        # The columns of the output are zero, and those of the factors are J^T.
        blocks += [*row, ca.SX(row[0].size1(), factors.numel()), J.T]
    adjoint = f"adj1_{function}"
    outputs = [ca.SX.sym("adjoint", slope.numel()) for slope in slopes]
    return (
        ca.Function(adjoint, [*arguments, factors], ca.cse(slopes)),
        ca.Function(f"jac_{adjoint}", [*arguments, factors, *outputs], ca.cse(blocks)),
    )


def _external(function: ca.Function, *derivatives: ca.Function) -> ca.Function:
    """Return a function and its derivatives as machine code; CasADi finds them by their names."""
    generator = ca.CodeGenerator("function.c", {"casadi_int": "long long int"})
    for item in (function, *derivatives):
        generator.add(item)
    # At higher optimization levels, gcc needs minutes for straight-line code of 100 000 operations,
    # and the code is only three times as fast.
    library = build_without_cache(generator.dump(), require_compiler(), further=("-O0",))
    return ca.external(function.name(), str(library))


def unfolded(
    program: Program,
    inputs: Mapping[str, ca.SX],
    solution: Callable[[Newton, list[ca.SX]], ca.SX] | None = None,
) -> dict[str, ca.SX]:
    """Return all values of a program as expressions.

    Args:
        program: program to write as one expression.
        inputs: expressions of its inputs, by name.
        solution: function that returns an expression of the solution of an iterated block of loops,
            from the block and its inputs.

    Raises:
        InputError: the program iterates, and `solution` is None.
    """
    values = dict(inputs)
    for step in program.steps:
        if isinstance(step, Newton) and solution is not None:
            values[step.solution] = solution(step, [values[name] for name in step.inputs])
            continue
        if not isinstance(step, Evaluate):
            what = "solves its loops iteratively, so there is no CasADi expression"
            remedy = (
                "use model.platform instead of model.actuators (or the reverse), "
                "or `Motion.derivatives`"
            )
            raise InputError.of(program.name, what, remedy)
        results = step.function.function.call([values[name] for name in step.inputs])
        values |= dict(zip(step.outputs, results, strict=True))
    return values


def displacements(topology: Topology, ports: EntryPorts, position: ca.SX) -> ca.SX:
    """Return the matrix from changes of a position to displacements in components of velocities.

    The position includes all components of quaternions. The displacement of a quaternion is the
    vector part of 2 q' q*.

    Raises:
        InputError: only some components of a rotation are independent.
    """
    q = ca.SX(ca.DM(ports.to_q)) @ position + ca.DM(ports.offset)
    column_of = {index: k for k, index in enumerate(ports.q)}
    D = ca.SX(len(ports.v), len(ports.q))
    for row, i in enumerate(ports.v):
        if topology.q_of_v[i] >= 0:
            D[row, column_of[topology.q_of_v[i]]] = 1
    for q0, v0 in topology.quaternions:
        rows = [ports.v.index(i) for i in range(v0, v0 + 3) if i in ports.v]
        if not rows:
            continue
        if len(rows) < 3:
            what = "is a rotation with only some independent components"
            raise InputError.of(topology.velocity_names[v0], what, "use `Motion.derivatives`")
        columns = [column_of[q0 + k] for k in range(4)]
        w, xyz = q[columns[0]], q[columns[1:]]
        D[rows, columns] = 2 * ca.horzcat(-xyz, w * ca.SX(ca.DM.eye(3)) + ca.skew(xyz))
    return ca.SX(ca.DM(np.linalg.inv(ports.to_v))) @ D @ ca.SX(ca.DM(ports.to_q))
