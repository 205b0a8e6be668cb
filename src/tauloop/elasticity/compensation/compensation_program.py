"""Program that computes corrected motor positions: inverse kinematics with loads and temperatures.

The program is a fixed list of steps without memory allocation. Each pass computes the kinematics
and the deflection at a pose, and corrects the pose. The last step computes the actuator positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.compiler.expressions import MotionState, column
from tauloop.compiler.functions.tool import WRENCH, tool_jacobian, tool_pose
from tauloop.compiler.program import Evaluate, Newton, Program, Step
from tauloop.elasticity.compensation.local_parts import LocalParts, local_parts, prevented_parts
from tauloop.elasticity.compensation.part_structure import SymbolicPartStructure
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.thermal import thermal_response
from tauloop.elasticity.heat.expansion import free_expansion
from tauloop.elasticity.machine.poses import gravity_vector, require_elastic_data
from tauloop.elasticity.machine.structure import StructureOptions, machine_structure
from tauloop.equations.assembly.closing import random_walk
from tauloop.equations.operators import fast_operators
from tauloop.equations.values import BatchFunction
from tauloop.model import Model

#: Number of random walks from the reference pose. The stiffness of the parts is read at the poses
#: of these walks.
TEST_WALKS = 8
#: Number of steps per walk.
TEST_WALK_STEPS = 3
#: Length of a step (rad or characteristic lengths).
TEST_WALK_STEP = 0.05
#: Default number of passes of the correction; see `compensate`.
PASSES = 2
#: Name of the input with the temperatures of the parts.
TEMPERATURES = "temperatures"
#: Name of the output with the actuator positions.
ACTUATOR_OUTPUT = "actuators"
#: Name of the output with the corrected position of the platform.
CORRECTED = "corrected"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompensationProgram:
    """A program of corrected actuator positions.

    Attributes:
        program: program with the inputs `position` (commanded position of the platform), `wrench`,
            `temperatures` and `start`, and the output `actuators` (actuator positions).
        correction: program with the same inputs and the output `corrected`, the position of the
            rigid machine's platform.
        parts: names of the p parts whose temperatures are inputs; empty if no part expands.
        states: (M, n_q) poses at which the stiffness of the parts was read.
    """

    program: Program
    correction: Program
    parts: tuple[str, ...]
    states: Array


def compensation_program(
    model: Model,
    *,
    expansions: float | Mapping[str, float] | None = None,
    is_weightless: bool = False,
    passes: int = 2,
) -> CompensationProgram:
    """Return the program of corrected actuator positions of a machine.

    Args:
        model: the machine.
        expansions: coefficients of expansion by part, 1/K; see `ThermalExpansionOptions`.
        is_weightless: whether the weight is neglected.
        passes: number of corrections.

    Raises:
        InputError: the machine has no elastic data, or unsupported parts; all of them are listed.
    """
    states = _states(model)
    parts = _parts(model, states, expansions)
    gravity = np.zeros(3) if is_weightless else gravity_vector(model.mechanism)
    catalogue = model.platform.runner.catalogue
    pieces: list[tuple[Program, Mapping[str, str], Mapping[str, str]]] = []
    with fast_operators():
        first = _correction(catalogue.state("compensation", 0), parts, gravity, is_first=True)
        names = {"next": "position_1", "place": "place", "rotation": "rotation"}
        pieces.append((first, {}, names))
        if passes > 1:
            further = _correction(
                catalogue.state("compensation", 0), parts, gravity, is_first=False
            )
            for number in range(1, passes):
                inputs = {"position": f"position_{number}"}
                pieces.append((further, inputs, {"next": f"position_{number + 1}"}))
        joints = _joints(catalogue.state("joints", 0))
    last = f"position_{passes}"
    actuator_program = (joints, {"position": last}, {ACTUATOR_OUTPUT: ACTUATOR_OUTPUT})
    last_pass, input_names, output_names = pieces[-1]
    corrected = {key: CORRECTED if name == last else name for key, name in output_names.items()}
    return CompensationProgram(
        program=_joined("compensation", [*pieces, actuator_program], (ACTUATOR_OUTPUT,)),
        correction=_joined(
            "correction", [*pieces[:-1], (last_pass, input_names, corrected)], (CORRECTED,)
        ),
        parts=parts.parts,
        states=states,
    )


def _states(model: Model) -> Array:
    """Return coordinates (M, n_q) of poses around the reference pose."""
    assembly = model.assembly
    walks = random_walk(
        assembly.loops,
        assembly.q[None],
        np.random.default_rng(0),
        walks=TEST_WALKS,
        steps=TEST_WALK_STEPS,
        step=TEST_WALK_STEP,
        locked=assembly.locked,
    )
    return np.concatenate([assembly.q[None], walks])


def _parts(
    model: Model, states: Array, expansions: float | Mapping[str, float] | None
) -> LocalParts:
    """Return the parts of the structure in the frames of bodies.

    Raises:
        InputError: no part is elastic, or rigid parts prevent an expansion.
    """
    elastic_machine = machine_structure(model, states, StructureOptions(has_rod_modes=False))
    require_elastic_data(model.mechanism, elastic_machine)
    names, expansion = free_expansion(model.mechanism, elastic_machine, expansions)
    if names:
        response = thermal_response(assemble(elastic_machine.structure), expansion)
        InputError.raise_if_any(prevented_parts(names, response.is_prevented))
    return local_parts(model, states, names, expansion)


def _correction(
    state: MotionState, parts: LocalParts, gravity: Array, *, is_first: bool
) -> Program:
    """Return the program of a single pass, which computes the corrected position of the platform."""
    builder = state.builder
    mechanism = state.mechanism
    wrench = builder.input("wrench", WRENCH)
    temperatures = builder.input(TEMPERATURES, max(len(parts.parts), 1))
    samples = len(state.assembly.states)
    # Pivots are chosen for the stiffness, which does not depend on loads and temperatures.
    builder.set_samples(TEMPERATURES, np.zeros((samples, max(len(parts.parts), 1))))
    motion = state.motion(state.at_rest)
    frames = {name: (body.R, body.p) for name, body in motion.bodies.items()}
    structure = SymbolicPartStructure(parts, frames, temperatures)
    deviation = structure.tool_twist(builder, wrench, gravity)
    place, rotation = tool_pose(motion, mechanism)
    if not is_first:
        target = builder.input("place", 3)
        target_rotation = builder.input("rotation", 9)
        builder.set_samples("place", builder.at_samples(place))
        builder.set_samples("rotation", builder.at_samples(ca.vec(rotation)))
        relative = rotation @ ca.reshape(target_rotation, 3, 3).T
        angle = 0.5 * ca.inv_skew(relative - relative.T)
        deviation += ca.vertcat(place - target, angle)
    J = tool_jacobian(*state.parts, state.configuration) @ _embedding(state)
    S = _directions(state, parts, J)
    change = -builder.solve(ca.sparsify(S.T @ J), S.T @ deviation, "correction")
    outputs = {"next": _displaced_position(state, _embedding(state) @ change)}
    if is_first:
        outputs |= {"place": place, "rotation": ca.vec(rotation)}
    return builder.finish(outputs)


def _embedding(state: MotionState) -> ca.SX:
    """Return the matrix from platform velocities to all velocities, without a velocity input."""
    if state.dependent and not state.K.size1():
        v = ca.SX.sym("v", state.topology.n_v)
        rates = column(row.psi_rate for row in state.rows(v))
        state.K = ca.jacobian(rates, v)
    return state.embedding


def _directions(state: MotionState, parts: LocalParts, J: ca.SX) -> ca.SX:
    """Return the directions (6, m) in which the tool is corrected; see `LoadedTool.directions`."""
    constant = parts.directions
    if constant is not None:
        return ca.sparsify(ca.SX(ca.DM(constant)))
    weight = np.repeat([1.0, parts.length**2], 3)
    return ca.diag(ca.SX(ca.DM(weight))) @ J


def _displaced_position(state: MotionState, step: ca.SX) -> ca.SX:
    """Return the position of the platform after a displacement (n_v,) of all coordinates."""
    topology = state.topology
    q = ca.SX(state.configuration.q)
    displaced = ca.SX(q)
    for i, j in enumerate(topology.q_of_v):
        if j >= 0:
            displaced[j] = q[j] + step[i]
    for iq, iv in topology.quaternions:
        displaced[iq : iq + 4] = _rotated(q[iq : iq + 4], step[iv : iv + 3])
    return displaced[list(state.ports.q)]


def _rotated(quaternion: ca.SX, rotation: ca.SX) -> ca.SX:
    """Return a unit quaternion (4,) after an additional small rotation (3,), rad.

    Cosine and sine of half the angle are series up to the fourth order of the angle.
    """
    square = 0.25 * ca.sumsqr(rotation)
    d0 = 1.0 - square / 2.0 + square**2 / 24.0
    d = 0.5 * (1.0 - square / 6.0 + square**2 / 120.0) * rotation
    w, x = quaternion[0], quaternion[1:]
    product = ca.vertcat(d0 * w - ca.dot(d, x), d0 * x + w * d + ca.cross(d, x))
    return product / ca.norm_2(product)


def _joints(state: MotionState) -> Program:
    """Return the program that computes the actuator positions A q + b from the coordinates q."""
    placed = [i for i, iq in enumerate(state.topology.q_of_v) if iq >= 0]
    q = state.configuration.q[[state.topology.q_of_v[i] for i in placed]]
    joint = ca.sparsify(state.transmission[:, placed]) @ q + state.actuator_offsets
    return state.builder.finish({ACTUATOR_OUTPUT: ca.densify(joint)})


def _joined(
    name: str,
    pieces: Sequence[tuple[Program, Mapping[str, str], Mapping[str, str]]],
    outputs: tuple[str, ...],
) -> Program:
    """Return a single program that runs several programs one after the other.

    Args:
        name: name of the new program.
        pieces: the programs, each with new names for some of its inputs and for its outputs;
            intermediate values get a prefix.
        outputs: outputs of the new program.
    """
    steps: list[Step] = []
    diagnostics: dict[str, list[str]] = {"discriminants": [], "pivots": []}
    sizes: dict[str, int] = {}
    for number, (program, inputs, results) in enumerate(pieces):
        renamed = dict(inputs) | dict(results)
        computed = {output for step in program.steps for output in _outputs(step)}
        for local in computed - set(renamed):
            renamed[local] = f"part_{number}_{local}"
        steps += [_with_names(step, renamed) for step in program.steps]
        for label, count in (
            ("discriminants", len(program.closed_forms)),
            ("pivots", len(program.pivots)),
        ):
            if count:
                diagnostics[label].append(renamed[label])
                sizes[renamed[label]] = count
    for label, names in diagnostics.items():
        if names:
            symbols = [ca.SX.sym(item, sizes[item]) for item in names]
            function = ca.Function(label, symbols, [ca.vertcat(*symbols)])
            steps.append(
                Evaluate(function=BatchFunction(function), inputs=tuple(names), outputs=(label,))
            )
    programs = [program for program, _, _ in pieces]
    return Program(
        name=name,
        steps=tuple(steps),
        outputs=outputs,
        closed_forms=tuple(form for program in programs for form in program.closed_forms),
        pivots=tuple(pivot for program in programs for pivot in program.pivots),
        linear_blocks=tuple(block for program in programs for block in program.linear_blocks),
    )


def _outputs(step: Step) -> tuple[str, ...]:
    """Return the names of the values that a step computes."""
    if isinstance(step, Evaluate):
        return step.outputs
    return (step.solution,)


def _with_names(step: Step, names: Mapping[str, str]) -> Step:
    """Return a step whose inputs and outputs are renamed."""

    def renamed(items: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(item, item) for item in items)

    if isinstance(step, Evaluate):
        return replace(step, inputs=renamed(step.inputs), outputs=renamed(step.outputs))
    if isinstance(step, Newton):
        return replace(
            step,
            inputs=renamed(step.inputs),
            start=names.get(step.start, step.start),
            solution=names.get(step.solution, step.solution),
        )
    what = "a compensation program does not support the computation of cable tensions"
    raise InputError.of("machine", what, "use a machine without cables")
