"""Functions of a motion as CasADi Functions with their exact Jacobians: for IPOPT and other optimisers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from tauloop.assembly.ports import EntryPorts
from tauloop.equations.topology import Topology
from tauloop.errors import InputError
from tauloop.model.derivatives import differentiated
from tauloop.model.runner import Runner
from tauloop.programs.derivatives import by
from tauloop.programs.program import Evaluate, Program


def casadi_function(runner: Runner, function: str) -> ca.Function:
    """The first output of a function, its Jacobian with the zeros that it has at all states (see `Motion.casadi`)."""
    if function == "kinematics":
        what = "has positions, whose Jacobian is by displacements"
        raise InputError.of(function, what, "choose inverse_dynamics or forward_dynamics, or `Motion.derivatives`")
    spec, _ = differentiated(function, None, loaded=False)
    output, program, sizes = spec.outputs[0], runner.program(spec), runner.empty_inputs()
    inputs = {name: ca.SX.sym(name, sizes[name].shape[1]) for name in spec.inputs}
    baked = {name: ca.SX(ca.DM(numbers)) for name, numbers in runner.nominal.items()}
    values = unfolded(program, {**baked, **inputs})
    blocks = [ca.sparsify(ca.reshape(values[by(output, name)], values[output].numel(), -1)) for name in inputs]
    blocks[0] = blocks[0] @ displacements(runner.topology, runner.ports, inputs["position"])
    ahead = [*inputs.values(), ca.SX.sym("out", values[output].numel())]
    names = [*inputs, f"out_{output}"]
    jacobian = ca.Function(f"jac_{function}", ahead, ca.cse(blocks), names, [f"jac_{output}_{name}" for name in inputs])
    options: dict[str, Any] = {"custom_jacobian": jacobian, "jac_penalty": 0}
    return ca.Function(function, [*inputs.values()], ca.cse([values[output]]), [*inputs], [output], options)


def unfolded(program: Program, inputs: Mapping[str, ca.SX]) -> dict[str, ca.SX]:
    """All values of a program as expressions.

    Raises:
        InputError: it iterates.
    """
    values = dict(inputs)
    for step in program.steps:
        if not isinstance(step, Evaluate):
            what = "closes loops by iteration, which is no expression"
            raise InputError.of(program.name, what, "take the other entry's motion, or `Motion.derivatives`")
        results = step.function.function.call([values[name] for name in step.inputs])
        values |= dict(zip(step.outputs, results, strict=True))
    return values


def displacements(topology: Topology, ports: EntryPorts, position: ca.SX) -> ca.SX:
    """Displacements, in the components of velocities, per unit of the numbers of a position; 2 q' q* of quaternions.

    Raises:
        InputError: only part of a quaternion is among the numbers.
    """
    q = ca.SX(ca.DM(ports.to_q)) @ position
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
