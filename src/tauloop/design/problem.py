"""Equations of a machine as functions of a box of poses: loops, velocities, limits and ends of rods.

The box has one axis per varied position of the platform; its orientation is a rotation vector from
the reference, R = exp([r]) R_0, as in maps of the workspace. All other coordinates are unknowns of
the loop equations psi(b, y) = 0.
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
        nominal: their values.
        tolerances: largest deviations of the parameters.
        point: (b, y, p) -> psi, and its Jacobians by y and by b.
        loops, jacobian: programs of psi and of its Jacobian by y (n, n).
        rows: program of the unit rows (n, n_free), then of the inequalities.
        n_free: number of velocities that are left where all actuators rest.
        velocities: program of the dimensionless loop Jacobian (n, m + n), with the independent
            velocities first; None where no claim needs it.
        loads: program of the forces at rest, then of unit wrenches (m + n, 7), dimensionless; None
            where no claim needs it.
        deviations: program of the changes (n + n_u + 6, n_p) by the whole tolerance of each parameter,
            one column after the other: of loops, dimensionless, of actuator positions, and the twist
            of the tool. None where no claim needs it, or nothing varies.
        drives: actuator velocities (n_u, m + n) per dimensionless velocity.
        velocity_scale: unit of every velocity (m + n,).
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
        dropped: loop equations that the assembly dropped because they follow from the others at exact
            dimensions; without those that hold identically.
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
    drives: np.ndarray
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
        n, m, count = len(self.unknowns), len(self.axes), len(b)
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
        needed: what is computed.

    Raises:
        InputError: the machine has something that proofs do not cover.
    """
    # coordinates that are constant at exact dimensions move where their loop equations lose rank
    assembly = model.assembly.with_constant_coordinates()
    _require_covered(model, needed.tolerances)
    symbols = pose_symbols(assembly)
    parts = _varied_parts(model, needed.tolerances)
    mechanism, shape = parts.mechanism, parts.topology
    p = ca.SX.sym("p", len(parts.nominal))
    values = nominal(mechanism, {name: p[i] for i, name in enumerate(parts.nominal)})
    v = ca.SX.sym("v", shape.n_v)
    motion = tree_motion(shape, values, Configuration(symbols.q, {}), v, ca.SX(shape.n_v, 1))
    rows = closure(mechanism, motion)
    dropped = _not_identical(rows, assembly.dropped)
    if dropped and any(ca.depends_on(row.psi, p) for row in rows):
        _refuse_deviations(dropped)
    psi = ca.vertcat(*(rows[i].psi for i in assembly.rows))
    chosen = list(symbols.velocities)
    K = ca.jacobian(ca.vertcat(*(rows[i].rate for i in assembly.rows)), v)[:, chosen]
    by_y = ca.jacobian(psi, symbols.y)
    at_reference = tree_motion(
        shape,
        nominal(mechanism),
        Configuration(ca.SX(ca.DM(assembly.q)), {}),
        ca.SX(shape.n_v, 1),
        ca.SX(shape.n_v, 1),
    )
    names, inequalities = pose_inequalities(
        mechanism, (motion, at_reference), needed.with_drawing, needed.cones
    )
    z = ca.vertcat(symbols.b, symbols.y, p)
    drives = _fixed_transmission(mechanism, shape, values, p)[:, chosen]
    units = _unit_rows(assembly, K, drives, chosen, needed.length)
    pairs = rod_clearance(model).pairs if needed.clearance else np.zeros((0, 2), dtype=int)
    whole = ca.diag(ca.DM(assembly.loops.row_scale[list(assembly.rows)])) @ K
    whole = ca.vec(whole @ ca.diag(ca.DM(assembly.loops.velocity_scale[chosen])))
    inputs = [symbols.b, symbols.y, p]
    outputs = [psi, ca.vec(by_y), ca.vec(ca.jacobian(psi, symbols.b))]
    return PoseProblem(
        model=model,
        axes=symbols.axes,
        axis_units=tuple("rad" if shape.angular[i] else "m" for i in assembly.independent),
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
        velocities=_program(z, whole) if needed.velocities or needed.loads else None,
        loads=_program(z, _loads(model, symbols, motion, mechanism)) if needed.loads else None,
        deviations=_program(z, _deviations(assembly, parts, motion, rows, p))
        if needed.errors and parts.nominal
        else None,
        drives=drives * assembly.loops.velocity_scale[chosen],
        velocity_scale=np.array(assembly.loops.velocity_scale[chosen], dtype=float),
        ends=_program(z, _rod_ends(mechanism.rods, motion)) if len(pairs) else None,
        pairs=pairs,
        radii=np.array([needed.radii.get(rod.name, 0.0) for rod in mechanism.rods]),
        velocity_names=tuple(shape.velocity_names[i] for i in chosen),
        inequalities=names,
        limits=unknown_limits(model, symbols, needed.with_drawing),
        axis_limits=axis_limits_of(model),
        single_unknowns=_single_unknowns(by_y),
        is_angle=_is_angle(model, symbols),
        rotations=symbols.rotations,
        dropped=dropped,
    )


def _program(z: ca.SX, y: ca.SX) -> InstructionList:
    return program("the machine", z, y)


def _batch(name: str, inputs: list[ca.SX], outputs: list[ca.SX]) -> BatchFunction:
    dense = [ca.densify(output) for output in outputs]
    return BatchFunction(ca.Function(name, inputs, dense, {"cse": True}))


def _fixed_transmission(
    mechanism: Mechanism, topology: Topology, values: Values, p: ca.SX
) -> np.ndarray:
    """Return the actuator velocities per velocity (n_u, n_v).

    Raises:
        InputError: they depend on parameters with a deviation.
    """
    drives = transmission(mechanism, topology, values)
    if p.numel() and ca.depends_on(drives, p):
        what = "a parameter with a deviation changes a transmission"
        raise InputError.of("deviations", what, "give deviations to other parameters")
    return np.array(ca.DM(drives).full())


def _loads(model: Model, symbols: PoseSymbols, motion: TreeMotion, mechanism: Mechanism) -> ca.SX:
    """Return generalized forces at rest, and those of unit wrenches (n_c, 7), column by column.

    Forces are dimensionless like the velocities of the program of velocities: per unit of velocity
    over `velocity_scale`. Payloads and friction other than its offset are absent.
    """
    assembly, chosen = model.assembly, list(symbols.velocities)
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
    """Return the changes by the whole tolerance of each parameter, column by column.

    They are those of loops, actuator positions and tool at fixed coordinates.
    """
    scales = [assembly.loops.row_scale[i] / rows[i].scale for i in assembly.rows]
    psi = ca.vertcat(*(rows[i].psi for i in assembly.rows))
    place, R = tool_pose(motion, parts.mechanism)
    turned_R = ca.jacobian(ca.vec(R), p)
    spin = []
    for k in range(p.numel()):
        turn = ca.reshape(turned_R[:, k], 3, 3) @ R.T
        spin.append(ca.vertcat(turn[2, 1], turn[0, 2], turn[1, 0]))
    changes = ca.vertcat(
        ca.diag(ca.vertcat(*scales)) @ ca.jacobian(psi, p),
        ca.jacobian(actuator_offsets(parts.mechanism, motion.values), p),
        ca.jacobian(place, p),
        ca.horzcat(*spin),
    )
    return ca.vec(changes @ ca.diag(ca.DM(parts.tolerances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _VariedParts:
    """A machine whose parts have own values of the parameters that vary.

    Attributes:
        mechanism, topology: the machine.
        nominal: values of the parameters by name.
        tolerances: their largest deviations.
    """

    mechanism: Mechanism
    topology: Topology
    nominal: dict[str, float]
    tolerances: np.ndarray


def _varied_parts(model: Model, tolerances: Mapping[str, float]) -> _VariedParts:
    """Return the machine with a parameter for each part instead of shared ones."""
    mechanism, shape = model.assembly.loops.mechanism, model.assembly.topology
    if not tolerances:
        return _VariedParts(mechanism=mechanism, topology=shape, nominal={}, tolerances=np.zeros(0))
    parts = part_parameters(mechanism, tuple(tolerances))
    values = mechanism.parameters.values
    return _VariedParts(
        mechanism=parts.mechanism,
        topology=topology(parts.mechanism),
        nominal={name: float(values[owner]) for name, owner in parts.owners.items()},
        tolerances=np.array([tolerances[owner] for owner in parts.owners.values()], dtype=float),
    )


def _not_identical(rows: Sequence[ClosureRow], dropped: Sequence[int]) -> tuple[str, ...]:
    """Return the names of redundant loop equations that do not vanish at all coordinates.

    Those across the plane of a planar loop do: their expressions are zero.
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
        "leave the deviations out, or use `tauloop accuracy tolerances`, which states how far these "
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
    """Return the loop equations' rates per velocity where all actuators rest (n, n_free).

    Rows have unit directions: that of a rod is its direction and the moment about the velocity's
    axis over the length. They are the unit wrenches of all rods and of cut joints.

    Args:
        assembly: the loops.
        K: rates of the loop equations per velocity.
        A: actuator velocities per velocity (n_u, m + n).
        chosen: numbers of the velocities.
        length: length that makes rotations comparable with translations, m.
    """
    loops = assembly.loops
    scale = np.where([loops.topology.angular[i] for i in chosen], 1.0 / length, 1.0)
    row_scale = np.where(loops.is_length[list(assembly.rows)], 1.0, length)
    scaled = ca.diag(ca.DM(row_scale)) @ K @ ca.diag(ca.DM(scale))
    driven = A * scale
    if ((driven != 0.0).sum(axis=1) == 1).all():
        return scaled[:, [int(i) for i in np.flatnonzero(~driven.any(axis=0))]]
    _, sigma, Vt = np.linalg.svd(driven)
    rank = int((sigma > 1e-9 * sigma[0]).sum())
    return scaled @ ca.DM(Vt[rank:].T)


def _require_covered(model: Model, tolerances: Mapping[str, float]) -> None:
    """Raise InputError for machines that proofs do not cover."""
    assembly, shape = model.assembly, model.assembly.topology
    mobility = len(assembly.independent)
    if assembly.passive:
        names = ", ".join(shape.velocity_names[i] for i in assembly.passive)
        what = f"the machine has passive freedoms ({names}), which a box of poses does not fix"
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
    points = [motion.point(end).p for rod in rods for end in (rod.start, rod.end)]
    return ca.densify(ca.vertcat(*points))
