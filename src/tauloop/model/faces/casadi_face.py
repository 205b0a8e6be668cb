"""Functions of a motion as CasADi Functions with their exact Jacobians: for IPOPT and other optimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.compiler import build
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.compiler.catalogue import PRODUCTS
from tauloop.compiler.derivatives.derivatives import by
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.program import Evaluate, Newton, Program
from tauloop.equations.ports import EntryPorts, factor_of, step_of
from tauloop.equations.topology import Topology
from tauloop.model.derivatives import differentiated
from tauloop.model.runner import Runner


def casadi_function(runner: Runner, function: str, *, compiled: bool = False) -> ca.Function:
    """The first output of a function, its Jacobian with the zeros that it has at all states (see `Motion.casadi`)."""
    if isinstance(function, str) and function == "kinematics":
        what = "has positions, whose Jacobian is by displacements"
        raise InputError.of(
            function, what, "choose inverse_dynamics or forward_dynamics, or `Motion.derivatives`"
        )
    spec, _ = differentiated(function, None, loaded=False)
    output, program, sizes = spec.outputs[0], runner.program(spec), runner.empty_inputs()
    inputs = {name: ca.SX.sym(name, sizes[name].shape[1]) for name in spec.inputs}
    baked = {name: ca.SX(ca.DM(numbers)) for name, numbers in runner.nominal.items()}
    values = unfolded(program, {**baked, **inputs})
    blocks = [
        ca.sparsify(ca.reshape(values[by(output, name)], values[output].numel(), -1))
        for name in inputs
    ]
    turned = displacements(runner.topology, runner.ports, inputs["position"])
    blocks[0] = blocks[0] @ turned
    ahead = [*inputs.values(), ca.SX.sym("out", values[output].numel())]
    names = [*inputs, f"out_{output}"]
    jacobian = ca.Function(
        f"jac_{function}", ahead, ca.cse(blocks), names, [f"jac_{output}_{name}" for name in inputs]
    )
    whole = [*inputs.values()], ca.cse([values[output]]), [*inputs], [output]
    if compiled:
        bent = _adjoints(runner, PRODUCTS[function], ahead, {**baked, **inputs}, turned, blocks)
        return _external(ca.Function(function, *whole), jacobian, *bent)
    options: dict[str, Any] = {"custom_jacobian": jacobian, "jac_penalty": 0}
    return ca.Function(function, *whole, options)


def _adjoints(
    runner: Runner,
    spec: ProgramSpec,
    ahead: list[ca.SX],
    inputs: Mapping[str, ca.SX],
    turned: ca.SX,
    jacobian: list[ca.SX],
) -> tuple[ca.Function, ca.Function]:
    """w^T J by the inputs, and its Jacobian, under the names by which CasADi finds them in a library.

    Args:
        runner: of the machine.
        spec: the products of the function.
        ahead: inputs of the Jacobian.
        inputs: all of the program, but factors and directions.
        turned: displacements per unit of the numbers of a position.
        jacobian: blocks of the Jacobian, by these numbers.
    """
    function, output = spec.name.removesuffix("_products"), spec.outputs[0]
    names = [name for name in spec.inputs if step_of(name) in spec.inputs]
    steps = {
        step_of(name): ca.SX.sym(name, runner.known_ports[step_of(name)].size) for name in names
    }
    factors = ca.SX.sym("factors", jacobian[0].size1())
    values = unfolded(runner.program(spec), {**inputs, **steps, factor_of(output): factors})
    slopes = [values[by("slope", name)] for name in names]
    second = [
        [
            ca.sparsify(ca.jacobian(values[by("bend", other)], steps[step_of(name)]).T)
            for other in names
        ]
        for name in names
    ]  # rows and columns by displacements
    held = ca.SX.sym("held", slopes[0].numel())
    (bent,) = ca.substitute(
        [ca.jacobian(turned.T @ held, inputs[names[0]])], [held], [ca.densify(slopes[0])]
    )
    second = [[blocks[0] @ turned, *blocks[1:]] for blocks in second]
    second[0] = [turned.T @ block for block in second[0]]
    second[0][0] += bent
    slopes[0] = turned.T @ slopes[0]
    none = ca.SX(factors.numel(), factors.numel())
    rows = [
        [*row, ca.SX(row[0].size1(), none.size1()), J.T]
        for row, J in zip(second, jacobian, strict=True)
    ]
    adjoint = f"adj1_{function}"
    behind = [ca.SX.sym("adjoint", slope.numel()) for slope in slopes]
    return (
        ca.Function(adjoint, [*ahead, factors], ca.cse(slopes)),
        ca.Function(
            f"jac_{adjoint}",
            [*ahead, factors, *behind],
            ca.cse([block for row in rows for block in row]),
        ),
    )


def _external(function: ca.Function, *derivatives: ca.Function) -> ca.Function:
    """A function and its derivatives as machine code; CasADi finds them by their names."""
    generator = ca.CodeGenerator("function.c", {"casadi_int": "long long int"})
    for made in (function, *derivatives):
        generator.add(made)
    # straight code of 100 000 operations takes gcc minutes at higher levels, for three times the
    # speed
    library = build(generator.dump(), require_compiler(), further=("-O0",))
    return ca.external(function.name(), str(library))


def unfolded(
    program: Program,
    inputs: Mapping[str, ca.SX],
    solution: Callable[[Newton, list[ca.SX]], ca.SX] | None = None,
) -> dict[str, ca.SX]:
    """All values of a program as expressions.

    Args:
        program: the program.
        inputs: expressions of its inputs, by name.
        solution: what stands for the solution of a block of loops that iterates, which knows these
            expressions.

    Raises:
        InputError: it iterates.
    """
    values = dict(inputs)
    for step in program.steps:
        if isinstance(step, Newton) and solution is not None:
            values[step.solution] = solution(step, [values[name] for name in step.inputs])
            continue
        if not isinstance(step, Evaluate):
            what = "closes loops by iteration, which is no expression"
            raise InputError.of(
                program.name, what, "take the other entry's motion, or `Motion.derivatives`"
            )
        results = step.function.function.call([values[name] for name in step.inputs])
        values |= dict(zip(step.outputs, results, strict=True))
    return values


def displacements(topology: Topology, ports: EntryPorts, position: ca.SX) -> ca.SX:
    """Displacements, in the components of velocities, per unit of the numbers of a position; 2 q' q* of quaternions.

    Raises:
        InputError: only part of a quaternion is among the numbers.
    """
    q = ca.SX(ca.DM(ports.to_q)) @ position + ca.DM(ports.offset)
    places = {index: k for k, index in enumerate(ports.q)}
    moved = ca.SX(len(ports.v), len(ports.q))
    for row, i in enumerate(ports.v):
        if topology.q_of_v[i] >= 0:
            moved[row, places[topology.q_of_v[i]]] = 1
    for q0, v0 in topology.quaternions:
        rows = [ports.v.index(i) for i in range(v0, v0 + 3) if i in ports.v]
        if not rows:
            continue
        if len(rows) < 3:
            what = "is a rotation of which only part is independent"
            raise InputError.of(topology.velocity_names[v0], what, "use `Motion.derivatives`")
        whole = [places[q0 + k] for k in range(4)]
        w, xyz = q[whole[0]], q[whole[1:]]
        moved[rows, whole] = 2 * ca.horzcat(-xyz, w * ca.SX(ca.DM.eye(3)) + ca.skew(xyz))
    return ca.SX(ca.DM(np.linalg.inv(ports.to_v))) @ moved @ ca.SX(ca.DM(ports.to_q))
