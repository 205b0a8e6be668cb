"""Compliance by a function of coordinates and parameters, which is built once per machine."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import AssemblyError, PoseError, solving
from tauloop.common.records import dataclass
from tauloop.compiler.c.calling.evaluator import BatchRuns
from tauloop.compiler.program import Evaluate, Program
from tauloop.elasticity.frame.assembled import MECHANISM_TOLERANCE, AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.statics import tool_compliance
from tauloop.elasticity.frame.structure import ElasticJoint
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.poses import (
    PoseInput,
    machine_coordinates,
    require_elastic_data,
)
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.machine.symbolic_structure import SymbolicStructure
from tauloop.elasticity.machine.symbolic_twists import carry
from tauloop.equations.operators import fast_operators
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.model import BASE
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Minimum number of poses for which the equations are compiled.
MIN_COMPILED_POSES = 256


@solving(PoseError)
def compliance_matrices(
    machine: MachineSource,
    poses: PoseInput = None,
    *,
    actuators: object | None = None,
    shear: bool = False,
) -> np.ndarray:
    """Return the compliance (N, 6, 6) of an unloaded machine at its tool, as `stiffness` does.

    It maps wrenches (N, N m) to twists (m, rad) of the tool center point, in the axes of the base.
    If no rigid parts close loops and all bearings are rigid, the equations are built once as a
    function of the coordinates, which takes a few microseconds per pose.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform, see `stiffness`; by default the reference pose.
        actuators: positions of the actuators of one pose, instead of poses of the platform.
        shear: include shear deformation of beams (Timoshenko).

    Raises:
        InputError: the machine has no elastic data, or an argument is wrong.
        AssemblyError: a part can move without any deformation.
        PoseError: a pose is out of reach or singular.

    Examples:
        >>> from tauloop.elasticity import compliance_matrices
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> print(f"{compliance_matrices(machine)[0, 0, 0]:.1e} m/N")
        2.0e-07 m/N
    """
    model = modeled(machine)
    q, _ = machine_coordinates(model, poses, actuators)
    return compliance_at(model, q, has_shear=shear)


def compliance_at(model: Model, q: Array, *, has_shear: bool) -> Array:
    """Return the compliance (N, 6, 6) at coordinates (N, n_q)."""
    function = machine_constants(model).stored(
        ("compliance", has_shear), lambda: _compliance_function(model, q[:1], has_shear=has_shear)
    )
    if function is None:
        elastic_machine, assembled = _structure(model, q, has_shear=has_shear)
        return tool_compliance(
            assembled, elastic_machine.tool_body, elastic_machine.tool_point
        ).matrix
    entries, pivots = function(q, np.zeros((len(q), 0)))
    if not len(q) or pivots.min() > MECHANISM_TOLERANCE:
        return _symmetric(entries)
    pose = int(np.argmin(pivots.min(axis=1)))
    _, assembled = _structure(model, q[pose : pose + 1], has_shear=has_shear)
    assembled.require_no_mechanism()
    what = (
        f"the structure can nearly move without deformation at pose {pose}: a pivot is "
        f"{pivots[pose].min():.1e} of its terms"
    )
    raise AssemblyError.of("structure", what, "exclude singular poses")


def parametric_compliance(
    model: Model, names: Sequence[str], q: Array, theta: Array, *, has_shear: bool = False
) -> Array | None:
    """Return the compliance (N, 6, 6) at the tool of N machines that differ in their parameters.

    The machines have the coordinates and the structure of a single model. The compliance is NaN where
    coordinates are not finite, or where a part can move without any deformation. The compliance of a
    machine is bit-identical in any batch.

    Args:
        model: the machine at its nominal parameters.
        names: t independent parameters that differ.
        q: coordinates (N, n_q), at which the loops of each machine close.
        theta: parameters (N, t), SI.
        has_shear: include shear of beams (Timoshenko).

    Returns:
        The compliances; None if they are not a function of the coordinates, because rigid parts close
        loops or bearings are elastic.

    Raises:
        InputError: the machine has no elastic data.
    """
    names = tuple(names)
    function = machine_constants(model).stored(
        ("compliance", has_shear, names),
        lambda: _compliance_function(model, model.assembly.q[None], names, 1, has_shear=has_shear),
    )
    if function is None:
        return None
    compliance = np.full((len(q), 6, 6), np.nan)
    is_known = np.isfinite(q).all(axis=1) & np.isfinite(theta).all(axis=1)
    entries, pivots = function(q[is_known], theta[is_known])
    known = _symmetric(entries)
    known[~(pivots > MECHANISM_TOLERANCE).all(axis=1)] = np.nan
    compliance[is_known] = known
    return compliance


def _symmetric(entries: Array) -> Array:
    """Return symmetric matrices (N, 6, 6) from their lower triangles (N, 21)."""
    matrices = np.empty((len(entries), 6, 6))
    rows, columns = np.tril_indices(6)
    matrices[:, rows, columns] = entries
    matrices[:, columns, rows] = entries
    return matrices


def _structure(
    model: Model, q: Array, *, has_shear: bool
) -> tuple[MachineStructure, AssembledStructure]:
    """Return the structure of a machine, and the same structure in minimal coordinates.

    Raises:
        InputError: the machine has no elastic data.
    """
    settings = StructureOptions(has_shear=has_shear, has_rod_modes=False)
    elastic_machine = machine_structure(model, q, settings)
    require_elastic_data(model.mechanism, elastic_machine)
    return elastic_machine, assemble(elastic_machine.structure)


class ParametricFunction:
    """A function of coordinates and parameters of a machine, which is compiled for large batches.

    Compiled and interpreted values can differ by rounding errors.
    """

    def __init__(
        self, model: Model, function: ca.Function, outputs: Sequence[str], compiled_from: int
    ) -> None:
        """Store the function (q, theta) -> outputs, which is compiled from a number of samples on."""
        step = Evaluate(
            function=BatchFunction(function), inputs=("q", "theta"), outputs=tuple(outputs)
        )
        self._program = Program(
            name=function.name(), steps=(step,), outputs=step.outputs, closed_forms=(), pivots=()
        )
        self._runs = BatchRuns(model.evaluator)
        self._compiled_from = compiled_from

    def __call__(self, q: Array, theta: Array) -> tuple[Array, ...]:
        """Return all outputs (N, k) at coordinates (N, n_q) and parameters (N, t)."""
        n = len(q)
        inputs = {"q": np.ascontiguousarray(q), "theta": np.ascontiguousarray(theta)}
        if n < self._compiled_from:
            outputs, _ = self._program.run(inputs, n)
        else:
            outputs, _ = self._runs(self._program, inputs, n)
        return tuple(outputs[name] for name in self._program.outputs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SymbolicStiffness:
    """Stiffness of a machine in the coordinates of its tree, as expressions.

    Attributes:
        symbolic: expressions of the structure over coordinates and parameters.
        motion: matrix (n_x, n) from the coordinates of the tree to the twists and motions x.
        stiffness: K (n, n).
    """

    symbolic: SymbolicStructure
    motion: ca.SX
    stiffness: ca.SX


def symbolic_stiffness(
    model: Model, q: Array, names: Sequence[str], *, has_shear: bool
) -> SymbolicStiffness | None:
    """Return the stiffness K = Bᵀ F⁻¹ B in the coordinates of the tree.

    The result is None if closed loops constrain these coordinates, or bearings are elastic.

    Args:
        model: the machine.
        q: coordinates (1, n_q) of an assembled pose.
        names: parameters that are symbols.
        has_shear: include shear of beams (Timoshenko).

    Raises:
        InputError: the machine has no elastic data.
        AssemblyError: a part can move without any deformation.
    """
    elastic_machine, assembled = _structure(model, q, has_shear=has_shear)
    has_bearings = any(law.bearings is not None for law in elastic_machine.laws)
    if assembled.constraints or has_bearings:
        return None
    compliance = tool_compliance(assembled, elastic_machine.tool_body, elastic_machine.tool_point)
    symbolic = SymbolicStructure(
        model,
        assembled,
        elastic_machine.tool_body,
        elastic_machine.laws,
        compliance.displacement,
        names,
        has_shear=has_shear,
    )
    x = _tree_motion(symbolic)
    size = x.shape[1]
    K = ca.SX(size, size)
    for item in symbolic.items:
        B = item.deformation @ x
        if item.stiffness is not None:
            K += B.T @ item.stiffness @ B
        elif item.flexibility is not None:
            F = ca.sparsify(item.flexibility)
            K += B.T @ (B / F if F.numel() == 1 else ca.inv(F) @ B)
    return SymbolicStiffness(symbolic=symbolic, motion=x, stiffness=ca.sparsify(K))


@fast_operators()
def _compliance_function(
    model: Model,
    q: Array,
    names: Sequence[str] = (),
    compiled_from: int = MIN_COMPILED_POSES,
    *,
    has_shear: bool,
) -> ParametricFunction | None:
    """Return the function (q, theta) -> lower triangle of C (21), and relative pivots of K (n).

    C = J K⁻¹ Jᵀ. K is positive definite and is factorized as L D Lᵀ without pivoting. Pivots are
    relative to the diagonal entries of K. The result is None where there is no `symbolic_stiffness`.

    Raises:
        InputError: the machine has no elastic data.
        AssemblyError: a part can move without any deformation.
    """
    static = symbolic_stiffness(model, q, names, has_shear=has_shear)
    if static is None:
        return None
    symbolic, K = static.symbolic, static.stiffness
    D, LT, order = ca.ldl(K)
    J = symbolic.tool @ static.motion
    C = J @ ca.ldl_solve(ca.densify(J.T), D, LT, order)
    lower = ca.vertcat(*(C[i, j] for i in range(6) for j in range(i + 1)))
    diagonal = ca.diag(K)[list(order)]
    outputs = [ca.densify(lower), ca.densify(ca.vec(D) / diagonal)]
    function = ca.Function("compliance", [symbolic.q, symbolic.theta], outputs, {"cse": True})
    return ParametricFunction(model, function, ("entries", "pivot_ratios"), compiled_from)


def _tree_motion(symbolic: SymbolicStructure) -> ca.SX:
    """Return the matrix (n_x, n) from the coordinates of the tree to the twists and motions x.

    `assemble` does the same for numbers.
    """
    assembled = symbolic.assembled
    joints: list[tuple[ElasticJoint, str, str]] = list(assembled.tree)
    structure = assembled.structure
    jointed = {far for _, _, far in joints}
    free = [body.name for body in structure.bodies if body.name not in jointed]
    size = 6 * len(free) + sum(joint.count for joint, _, _ in joints)
    x = ca.SX(symbolic.size, size)
    twists = {BASE: ca.SX(6, size)}
    column = 0
    for name in free:
        twist = ca.SX(6, size)
        for i in range(6):
            twist[i, column + i] = 1.0
        twists[name] = twist
        column += 6
    by_name = {joint.name: joint for joint in symbolic.mechanism.joints}
    for joint, near, far in joints:
        point = symbolic.position(by_name[joint.name].child)
        joint_twist = symbolic.carried(near, point, twists[near])
        directions = symbolic.free_twists(by_name[joint.name])
        indices = [
            index
            for index, name in enumerate(by_name[joint.name].velocity_names)
            if name in symbolic.motion_columns
        ]
        sign = 1.0 if near == joint.parent else -1.0
        for index, name in zip(indices, joint.names, strict=True):
            step = ca.SX(6, size)
            step[:, column] = sign * directions[:, index]
            joint_twist = joint_twist + step
            x[symbolic.motion_columns[name], column] = 1.0
            column += 1
        twists[far] = carry(symbolic.origins[far] - point) @ joint_twist
    for name, row in symbolic.body_columns.items():
        x[row : row + 6, :] = twists[name]
    return x
