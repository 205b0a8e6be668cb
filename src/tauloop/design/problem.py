"""Equations of a machine as functions of a box of poses: loops, velocities, limits and ends of rods.

The box has an axis b_i for each independent coordinate of the platform. Orientation is described by a
rotation vector r from the reference, R = exp([r]) R_0, as in maps of the workspace. All other
coordinates are unknowns y of the loop equations psi(b, y) = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.functions.tool import tool_pose, tool_twist
from tauloop.design.intervals.program import InstructionList, program
from tauloop.design.pose_limits import (
    UnknownLimit,
    axis_limits_of,
    pose_inequalities,
    unknown_limits,
)
from tauloop.design.pose_symbols import PoseSymbols, pose_symbols, reference_pose
from tauloop.design.tolerances.error_equations import part_parameters
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import ClosureRow, closure, nominal
from tauloop.equations.newton_euler import actuator_offsets, transmission, tree_forces
from tauloop.equations.operators import fast_operators
from tauloop.equations.topology import Topology, topology
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import BatchFunction, Entries, Values
from tauloop.geometry.clearance import rod_clearance
from tauloop.mechanism.description.units import require_unit, si_unit
from tauloop.mechanism.model import Mechanism, Rod
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseProblem(ReprMixin):
    """Functions of a machine's poses, for numbers and for programs in interval arithmetic.

    Inputs of all functions are the axes b (m,), the unknowns y (n,) and the parameters p.

    Attributes:
        model: the machine.
        axes: names of the axes, one per independent velocity.
        axis_units: m or rad.
        reference: axes and unknowns at the reference pose.
        unknowns: names of the unknowns.
        unknown_scale: unit of every unknown (n,): one radian, or the characteristic length.
        parameters: names of the parameters that vary; ``NAME@PART`` is the parameter NAME of one part.
        nominal: nominal values of these parameters.
        tolerances: largest deviations of the parameters.
        point: (b, y, p) -> psi, and the Jacobians of psi by y and by b.
        loops, jacobian: programs of psi and of its Jacobian by y (n, n).
        rows: program of the unit rows (n, n_free), then of the inequalities.
        n_free: number of independent velocities if all actuators rest and the loops are open.
        velocities: program of the dimensionless loop Jacobian (n, m + n), with the independent
            velocities first; None if no claim needs it.
        loads: program of the generalized forces (m + n, 7), dimensionless: those at rest, then those
            of unit wrenches at the tool. None if no claim needs it.
        deviations: program of the changes (n + n_u + 6, n_p) due to the full tolerance of each
            parameter, one column after the other: changes of the loop equations (dimensionless) and of
            the actuator positions, and the twist of the tool. None if no claim needs it, or no
            parameter varies.
        transmission: actuator velocities (n_u, m + n) per dimensionless velocity.
        velocity_scale: characteristic value of every velocity (m + n,).
        ends: program of the ends of all rods (6 n_rods); None without a clearance.
        pairs: indices (n_pairs, 2) of rods whose distance is bounded.
        radii: radii (n_rods,) of the rods, m.
        velocity_names: names of the velocities of axes and unknowns.
        inequalities: names of the expressions that must not be negative.
        limits: limits of the unknowns.
        axis_limits: lower and upper limits (m,) of the axes; infinite without limits.
        single_unknowns: equation and unknown of every loop equation with one unknown.
        is_angle: whether each unknown is an angle (n,).
        rotations: indices, among axes and unknowns, of the components of each rotation vector that
            has an unknown.
        dropped: loop equations that the assembly dropped, because they follow from the others at exact
            dimensions; equations that are satisfied identically are not listed.
    """

    model: Model
    axes: tuple[str, ...]
    axis_units: tuple[str, ...]
    reference: tuple[np.ndarray, np.ndarray]
    unknowns: tuple[str, ...]
    unknown_scale: np.ndarray
    parameters: tuple[str, ...]
    nominal: np.ndarray
    tolerances: np.ndarray
    point: BatchFunction
    loops: InstructionList
    jacobian: InstructionList
    rows: InstructionList
    n_free: int
    velocities: InstructionList | None
    loads: InstructionList | None
    deviations: InstructionList | None
    transmission: np.ndarray
    velocity_scale: np.ndarray
    ends: InstructionList | None
    pairs: np.ndarray
    radii: np.ndarray
    velocity_names: tuple[str, ...]
    inequalities: tuple[str, ...]
    limits: tuple[UnknownLimit, ...]
    axis_limits: tuple[np.ndarray, np.ndarray]
    single_unknowns: tuple[tuple[int, int], ...]
    is_angle: np.ndarray
    rotations: tuple[tuple[int, ...], ...]
    dropped: tuple[str, ...]

    @property
    def axis_scale(self) -> np.ndarray:
        """Unit of every axis (m,): one radian, or the characteristic length."""
        length = self.model.assembly.loops.length
        return np.where([unit == "rad" for unit in self.axis_units], 1.0, length)

    @property
    def rods(self) -> tuple[str, ...]:
        """Names of all rods."""
        return tuple(rod.name for rod in self.model.mechanism.rods)

    def values(self, b: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return psi (N, n), and its Jacobians by y (N, n, n) and by b (N, n, m)."""
        n = len(self.unknowns)
        m = len(self.axes)
        count = len(b)
        p = np.broadcast_to(self.nominal, (count, len(self.nominal)))
        psi, by_y, by_b = self.point([b, y, p], count)
        return (
            psi,
            by_y.reshape(count, n, n).swapaxes(1, 2),
            by_b.reshape(count, m, n).swapaxes(1, 2),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededFunctions:
    """Functions of a machine that the claims on poses need.

    Attributes:
        tolerances: largest deviation of independent parameters, by name, SI.
        with_drawing: whether drawing ranges count as stops.
        cones: largest angles by end of a rod or by joint, rad.
        clearance: whether distances of rods are needed.
        radii: radii of rods by name, m; zero where not stated.
        velocities: whether the loop Jacobian of all velocities is needed.
        loads: whether forces at rest are needed.
        errors: whether changes by deviations of parameters are needed.
        length: length that makes moments comparable with forces, m.
    """

    tolerances: Mapping[str, float]
    with_drawing: bool
    cones: Mapping[str, float]
    clearance: bool
    radii: Mapping[str, float]
    velocities: bool
    loads: bool
    length: float
    errors: bool = False


@fast_operators()
def pose_problem(model: Model, needed: NeededFunctions) -> PoseProblem:
    """Return the functions of a machine.

    Args:
        model: the machine.
        needed: functions that the claims need.

    Raises:
        InputError: the machine has something that proofs do not cover.
    """
    # Coordinates that are constant at exact dimensions can move where their loop equations lose rank.
    assembly = model.assembly.with_constant_coordinates()
    _require_covered(model, needed.tolerances)
    symbols = pose_symbols(assembly)
    parts = _varied_parts(model, needed.tolerances)
    mechanism = parts.mechanism
    tree = parts.topology
    p = ca.SX.sym("p", len(parts.nominal))
    values = nominal(mechanism, {name: p[i] for i, name in enumerate(parts.nominal)})
    v = ca.SX.sym("v", tree.n_v)
    motion = tree_motion(tree, values, Configuration(symbols.q, {}), v, ca.SX(tree.n_v, 1))
    rows = closure(mechanism, motion)
    redundant_equations = _not_identical(rows, assembly.dropped)
    if redundant_equations and any(ca.depends_on(row.psi, p) for row in rows):
        _refuse_deviations(redundant_equations)
    psi = ca.vertcat(*(rows[i].psi for i in assembly.rows))
    chosen = list(symbols.velocities)
    K = ca.jacobian(ca.vertcat(*(rows[i].rate for i in assembly.rows)), v)[:, chosen]
    by_y = ca.jacobian(psi, symbols.y)
    at_reference = tree_motion(
        tree,
        nominal(mechanism),
        Configuration(ca.SX(ca.DM(assembly.q)), {}),
        ca.SX(tree.n_v, 1),
        ca.SX(tree.n_v, 1),
    )
    names, inequalities = pose_inequalities(
        mechanism, (motion, at_reference), needed.with_drawing, needed.cones
    )
    z = ca.vertcat(symbols.b, symbols.y, p)
    velocity_map = _fixed_transmission(mechanism, tree, values, p)[:, chosen]
    units = _unit_rows(assembly, K, velocity_map, chosen, needed.length)
    pairs = rod_clearance(model).pairs if needed.clearance else np.zeros((0, 2), dtype=int)
    scaled_K = ca.diag(ca.DM(assembly.loops.row_scale[list(assembly.rows)])) @ K
    scaled_K = scaled_K @ ca.diag(ca.DM(assembly.loops.velocity_scale[chosen]))
    deviations = None
    if needed.errors and parts.nominal:
        deviations = _program(z, _deviations(assembly, parts, motion, rows, p))
    inputs = [symbols.b, symbols.y, p]
    outputs = [psi, ca.vec(by_y), ca.vec(ca.jacobian(psi, symbols.b))]
    return PoseProblem(
        model=model,
        axes=symbols.axes,
        axis_units=tuple("rad" if tree.angular[i] else "m" for i in assembly.independent),
        reference=reference_pose(assembly, symbols),
        unknowns=symbols.unknowns,
        unknown_scale=_unknown_scale(model, symbols),
        parameters=tuple(parts.nominal),
        nominal=np.array(list(parts.nominal.values()), dtype=float),
        tolerances=parts.tolerances,
        point=_batch("point", inputs, outputs),
        loops=_program(z, psi),
        jacobian=_program(z, ca.vec(by_y)),
        rows=_program(z, ca.vertcat(ca.vec(units), *inequalities)),
        n_free=units.shape[1],
        velocities=_program(z, ca.vec(scaled_K)) if needed.velocities or needed.loads else None,
        loads=_program(z, _loads(model, symbols, motion, mechanism)) if needed.loads else None,
        deviations=deviations,
        transmission=velocity_map * assembly.loops.velocity_scale[chosen],
        velocity_scale=np.array(assembly.loops.velocity_scale[chosen], dtype=float),
        ends=_program(z, _rod_ends(mechanism.rods, motion)) if len(pairs) else None,
        pairs=pairs,
        radii=np.array([needed.radii.get(rod.name, 0.0) for rod in mechanism.rods]),
        velocity_names=tuple(tree.velocity_names[i] for i in chosen),
        inequalities=names,
        limits=unknown_limits(model, symbols, needed.with_drawing),
        axis_limits=axis_limits_of(model),
        single_unknowns=_single_unknowns(by_y),
        is_angle=_is_angle(model, symbols),
        rotations=symbols.rotations,
        dropped=redundant_equations,
    )


def _program(z: ca.SX, y: ca.SX) -> InstructionList:
    """Return the program of expressions y of the symbols z."""
    return program("the machine", z, y)


def _batch(name: str, inputs: list[ca.SX], outputs: list[ca.SX]) -> BatchFunction:
    """Return the function of batches of numbers."""
    dense = [ca.densify(output) for output in outputs]
    return BatchFunction(ca.Function(name, inputs, dense, {"cse": True}))


def _fixed_transmission(
    mechanism: Mechanism, topology: Topology, values: Values, p: ca.SX
) -> np.ndarray:
    """Return the actuator velocities per velocity (n_u, n_v).

    Raises:
        InputError: the transmission depends on parameters with a deviation.
    """
    velocity_map = transmission(mechanism, topology, values)
    if p.numel() and ca.depends_on(velocity_map, p):
        what = "a parameter with a deviation changes a transmission"
        raise InputError.of("deviations", what, "give deviations to other parameters")
    return np.array(ca.DM(velocity_map).full())


def _loads(model: Model, symbols: PoseSymbols, motion: TreeMotion, mechanism: Mechanism) -> ca.SX:
    """Return generalized forces (n_c, 7) at rest and of unit wrenches, column by column.

    The forces are multiplied by `velocity_scale`, so that they correspond to dimensionless
    velocities. Payloads are omitted, and so is friction except its constant offset.
    """
    assembly = model.assembly
    chosen = list(symbols.velocities)
    zero = ca.SX(motion.topology.n_v, 1)
    rest = tree_motion(motion.topology, motion.values, Configuration(symbols.q, {}), zero, zero)
    tau = tree_forces(mechanism, rest, Entries(model.parameters, ca.SX(ca.DM(model.pi))))
    J = ca.jacobian(tool_twist(motion, mechanism), motion.v)
    columns = ca.horzcat(tau, J.T)[chosen, :]
    return ca.vec(ca.diag(ca.DM(assembly.loops.velocity_scale[chosen])) @ columns)


def _deviations(
    assembly: Assembly,
    parts: _VariedParts,
    motion: TreeMotion,
    rows: Sequence[ClosureRow],
    p: ca.SX,
) -> ca.SX:
    """Return the changes due to the full tolerance of each parameter, column by column.

    The changes are those of the loop equations, the actuator positions and the tool at constant
    coordinates.
    """
    scales = [assembly.loops.row_scale[i] / rows[i].scale for i in assembly.rows]
    psi = ca.vertcat(*(rows[i].psi for i in assembly.rows))
    position, R = tool_pose(motion, parts.mechanism)
    dR_dp = ca.jacobian(ca.vec(R), p)
    rotations = []
    for k in range(p.numel()):
        skew = ca.reshape(dR_dp[:, k], 3, 3) @ R.T
        rotations.append(ca.vertcat(skew[2, 1], skew[0, 2], skew[1, 0]))
    changes = ca.vertcat(
        ca.diag(ca.vertcat(*scales)) @ ca.jacobian(psi, p),
        ca.jacobian(actuator_offsets(parts.mechanism, motion.values), p),
        ca.jacobian(position, p),
        ca.horzcat(*rotations),
    )
    return ca.vec(changes @ ca.diag(ca.DM(parts.tolerances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _VariedParts:
    """A machine in which each part has its own value of the parameters that vary.

    Attributes:
        mechanism, topology: the machine.
        nominal: nominal values of the parameters by name.
        tolerances: largest deviations of the parameters.
    """

    mechanism: Mechanism
    topology: Topology
    nominal: dict[str, float]
    tolerances: np.ndarray


def _varied_parts(model: Model, tolerances: Mapping[str, float]) -> _VariedParts:
    """Return the machine with a parameter for each part instead of shared ones."""
    mechanism = model.assembly.loops.mechanism
    if not tolerances:
        return _VariedParts(
            mechanism=mechanism,
            topology=model.assembly.topology,
            nominal={},
            tolerances=np.zeros(0),
        )
    parts = part_parameters(mechanism, tuple(tolerances))
    values = mechanism.parameters.values
    return _VariedParts(
        mechanism=parts.mechanism,
        topology=topology(parts.mechanism),
        nominal={name: float(values[owner]) for name, owner in parts.owners.items()},
        tolerances=np.array([tolerances[owner] for owner in parts.owners.values()], dtype=float),
    )


def _not_identical(rows: Sequence[ClosureRow], dropped: Sequence[int]) -> tuple[str, ...]:
    """Return the names of redundant loop equations whose expressions are not identically zero.

    Out-of-plane equations of a planar loop are identically zero.
    """
    return tuple(rows[i].name for i in dropped if ca.sparsify(ca.SX(rows[i].psi)).nnz() > 0)


def _refuse_deviations(dropped: Sequence[str]) -> None:
    """Raise InputError because parts with independent deviations do not close redundant loops."""
    names = ", ".join(dropped[:3]) + (" ..." if len(dropped) > 3 else "")
    what = (
        f"{counted(len(dropped), 'loop equation', 'are')} redundant at exact dimensions ({names}): "
        "rigid parts with independent deviations leave a loop open, and cannot be assembled"
    )
    remedy = (
        "omit the deviations, or use `tauloop accuracy tolerances`, which states how far these "
        "loops open and which clearances let the parts fit"
    )
    raise InputError.of("deviations", what, remedy)


def _unknown_scale(model: Model, symbols: PoseSymbols) -> np.ndarray:
    """Return the unit of every unknown (n,): one radian, or the characteristic length."""
    is_length = model.assembly.topology.is_length
    lengths = [c >= 0 and is_length[c] for c in symbols.unknown_coordinates]
    return np.where(lengths, model.assembly.loops.length, 1.0)


def _is_angle(model: Model, symbols: PoseSymbols) -> np.ndarray:
    """Return whether each unknown is an angle (n,)."""
    is_angle = model.assembly.topology.is_angle
    return np.array([c >= 0 and is_angle[c] for c in symbols.unknown_coordinates], dtype=bool)


def _single_unknowns(by_y: ca.SX) -> tuple[tuple[int, int], ...]:
    """Return equation and unknown of every loop equation with one unknown."""
    pattern = np.array(ca.DM(by_y.sparsity(), 1).full()) != 0.0
    equations = np.flatnonzero(pattern.sum(axis=1) == 1)
    return tuple((int(i), int(np.flatnonzero(pattern[i])[0])) for i in equations)


def _unit_rows(
    assembly: Assembly, K: ca.SX, A: np.ndarray, chosen: list[int], length: float
) -> ca.SX:
    """Return the Jacobian of the loop equations by velocities at which all actuators rest (n, n_free).

    The rows are the unit wrenches of all rods and of cut joints. For a rod, they are its unit direction
    and the moment of this direction about the axis of the velocity, divided by a length.

    Args:
        assembly: the loops.
        K: Jacobian of the loop equations by the velocities.
        A: actuator velocities per velocity (n_u, m + n).
        chosen: indices of the velocities.
        length: length that makes rotations comparable with translations, m.
    """
    loops = assembly.loops
    scale = np.where([loops.topology.angular[i] for i in chosen], 1.0 / length, 1.0)
    row_scale = np.where(loops.is_length[list(assembly.rows)], 1.0, length)
    scaled = ca.diag(ca.DM(row_scale)) @ K @ ca.diag(ca.DM(scale))
    scaled_A = A * scale
    if ((scaled_A != 0.0).sum(axis=1) == 1).all():
        # Each actuator drives a single velocity: delete the columns of these velocities.
        return scaled[:, [int(i) for i in np.flatnonzero(~scaled_A.any(axis=0))]]
    _, sigma, Vt = np.linalg.svd(scaled_A)
    rank = int((sigma > 1e-9 * sigma[0]).sum())
    return scaled @ ca.DM(Vt[rank:].T)


def _require_covered(model: Model, tolerances: Mapping[str, float]) -> None:
    """Raise InputError for machines that proofs do not cover."""
    assembly = model.assembly
    mobility = len(assembly.independent)
    if assembly.passive:
        names = ", ".join(assembly.topology.velocity_names[i] for i in assembly.passive)
        what = (
            f"the machine has passive degrees of freedom ({names}), which a box of poses does not "
            "fix"
        )
        raise InputError.of("machine", what, "lock them, or certify another machine")
    if len(model.mechanism.actuators) < mobility:
        actuators = counted(len(model.mechanism.actuators), "actuator", "drive")
        what = f"{actuators} {counted(mobility, 'degree of freedom')}"
        raise InputError.of("machine", what, "add actuators")
    if any(rod.drum is not None for rod in model.mechanism.rods):
        what = "lines on drums have loop equations that proofs do not cover"
        raise InputError.of("machine", what, "describe the lines as telescopic rods")
    problems = Problems()
    known = {item.name: item.unit for item in model.mechanism.parameters}
    for name, value in tolerances.items():
        where = f"deviations {name}"
        if name not in known:
            remedy = suggestion(name, known) or f"known: {listing(known, 20)}"
            problems.add(where, "not an independent parameter", remedy)
        elif value < 0.0:
            problems.add(where, f"is {value:g}", "give the largest deviation, which is positive")
        else:
            with problems.collecting(InputError):
                require_unit(where, value, si_unit(known[name]))
    InputError.raise_if_any(problems)


def _rod_ends(rods: Sequence[Rod], motion: TreeMotion) -> ca.SX:
    """Return the positions (6 n_rods,) of both ends of all rods."""
    points = [motion.point(end).p for rod in rods for end in (rod.start, rod.end)]
    return ca.densify(ca.vertcat(*points))
