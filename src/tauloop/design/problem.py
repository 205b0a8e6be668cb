"""Equations of a machine as functions of a box of poses: loops, velocities, limits and ends of rods.

The box has one axis per varied position of the platform; its orientation is a rotation vector from
the reference, R = exp([r]) R_0, as in maps of the workspace. All other coordinates are unknowns of
the loop equations psi(b, y) = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.design.intervals.program import InstructionList, program
from tauloop.equations.assembly.freedoms.cut_freedoms import POSITIONED_KINDS
from tauloop.equations.assembly.limits import limits_of
from tauloop.equations.assembly.loops import closure, nominal
from tauloop.equations.newton_euler import transmission
from tauloop.equations.operators import fast_operators
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import BatchFunction, Values, unit_vector
from tauloop.geometry.clearance import rod_clearance
from tauloop.mechanism.description.units import require_unit, si_unit
from tauloop.mechanism.model import Joint, Rod
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.model import Model

#: Largest rotation from the reference, rad: the series of the quaternion has no visible error up to
#: here.
MAX_ROTATION = 2.5
#: Terms of the series of cos(sqrt(s) / 2) and sin(sqrt(s) / 2) / sqrt(s); the next one is below
#: 2^-70 for rotations up to `MAX_ROTATION`, which the rounding bound of the last sum contains.
SERIES_TERMS = 12
#: Names of the components of a rotation vector, and of the angular velocity.
_ROTATIONS, _SPINS = ("rx", "ry", "rz"), ("wx", "wy", "wz")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLimit:
    """A limit of an unknown.

    Attributes:
        name: name of the coordinate.
        unit: m or rad.
        unknown: its index among the unknowns.
        lower, upper: its range; infinite at an open end.
    """

    name: str
    unit: str
    unknown: int
    lower: float
    upper: float


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
        parameters: names of the parameters that vary.
        nominal: their values.
        tolerances: largest deviations of the parameters.
        point: (b, y, p) -> psi, and its Jacobians by y and by b.
        loops, jacobian: programs of psi and of its Jacobian by y (n, n).
        rows: program of the unit rows (n, n_free), then of the inequalities.
        n_free: number of velocities that are left where all actuators rest.
        velocities: program of the loop Jacobian (n, m + n) free of units, with the independent
            velocities first; None where no claim needs it.
        ends: program of the ends of all rods (6 n_rods); None without a clearance.
        pairs: indices (n_pairs, 2) of rods whose distance is bounded.
        inequalities: names of the expressions that must not be negative.
        limits: limits of the unknowns.
        axis_limits: lower and upper limits (m,) of the axes; infinite without limits.
        single_unknowns: equation and unknown of every loop equation with one unknown.
        is_angle: whether each unknown is an angle (n,).
        dropped: loop equations that the assembly dropped because they follow from the others.
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
    ends: InstructionList | None
    pairs: np.ndarray
    inequalities: tuple[str, ...]
    limits: tuple[UnknownLimit, ...]
    axis_limits: tuple[np.ndarray, np.ndarray]
    single_unknowns: tuple[tuple[int, int], ...]
    is_angle: np.ndarray
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
class _Symbols:
    """Symbols of axes and unknowns, and the coordinates that follow from them."""

    axes: tuple[str, ...]
    unknowns: tuple[str, ...]
    b: ca.SX
    y: ca.SX
    q: ca.SX
    velocities: tuple[int, ...]
    unknown_coordinates: tuple[int, ...]


@fast_operators()
def pose_problem(
    model: Model,
    *,
    tolerances: Mapping[str, float],
    with_drawing: bool,
    cone: float | None,
    clearance: bool,
    velocities: bool,
    length: float,
) -> PoseProblem:
    """Return the functions of a machine.

    Args:
        model: the machine.
        tolerances: largest deviation of independent parameters, by name, SI.
        with_drawing: whether drawing ranges count as stops.
        cone: largest angle of rods from their direction at the reference, at both ends, rad.
        clearance: whether distances of rods are needed.
        velocities: whether the loop Jacobian of all velocities is needed.
        length: length that makes moments comparable with forces, m.

    Raises:
        InputError: the machine has something that proofs do not cover.
    """
    assembly = model.assembly
    mechanism, topology = assembly.loops.mechanism, assembly.topology
    _require_covered(model, tolerances)
    symbols = _symbols(model)
    p = ca.SX.sym("p", len(tolerances))
    values = nominal(mechanism, {name: p[i] for i, name in enumerate(tolerances)})
    v = ca.SX.sym("v", topology.n_v)
    motion = tree_motion(topology, values, Configuration(symbols.q, {}), v, ca.SX(topology.n_v, 1))
    rows = closure(mechanism, motion)
    psi = ca.vertcat(*(rows[i].psi for i in assembly.rows))
    chosen = list(symbols.velocities)
    rate = ca.vertcat(*(rows[i].rate for i in assembly.rows))
    K = ca.jacobian(rate, v)[:, chosen]
    by_y = ca.jacobian(psi, symbols.y)
    names, inequalities = _inequalities(model, motion, values, with_drawing, cone)
    z = ca.vertcat(symbols.b, symbols.y, p)
    kept = ca.vertcat(*inequalities) if inequalities else ca.SX(0, 1)
    drives = transmission(mechanism, topology, values)
    if tolerances and ca.depends_on(drives, p):
        what = "a parameter with a deviation changes a transmission"
        raise InputError.of("deviations", what, "give deviations to other parameters")
    units = _unit_rows(model, K, np.array(ca.DM(drives).full())[:, chosen], chosen, length)
    scale = ca.DM(assembly.loops.velocity_scale[chosen])
    row_scale = ca.DM(assembly.loops.row_scale[list(assembly.rows)])
    whole = ca.diag(row_scale) @ K @ ca.diag(scale)
    outputs = [psi, ca.vec(by_y), ca.vec(ca.jacobian(psi, symbols.b))]
    unknown_scale = np.where(
        [c >= 0 and topology.is_length[c] for c in symbols.unknown_coordinates],
        assembly.loops.length,
        1.0,
    )
    pairs = rod_clearance(model).pairs if clearance else np.zeros((0, 2), dtype=int)
    return PoseProblem(
        model=model,
        axes=symbols.axes,
        axis_units=tuple("rad" if topology.angular[i] else "m" for i in assembly.independent),
        reference=_reference(model, symbols),
        unknowns=symbols.unknowns,
        unknown_scale=unknown_scale,
        parameters=tuple(tolerances),
        nominal=np.array([mechanism.parameters.values[name] for name in tolerances], dtype=float),
        tolerances=np.array(list(tolerances.values()), dtype=float),
        point=BatchFunction(
            ca.Function(
                "point",
                [symbols.b, symbols.y, p],
                [ca.densify(output) for output in outputs],
                {"cse": True},
            )
        ),
        loops=program("a loop equation", z, psi),
        jacobian=program("a loop equation", z, ca.vec(by_y)),
        rows=program("a loop equation", z, ca.vertcat(ca.vec(units), kept)),
        n_free=units.shape[1],
        velocities=program("a loop equation", z, ca.vec(whole)) if velocities else None,
        ends=program("an end of a rod", z, _rod_ends(mechanism.rods, motion))
        if len(pairs)
        else None,
        pairs=pairs,
        inequalities=names,
        limits=_limits(model, symbols, with_drawing),
        axis_limits=_axis_limits(model, symbols, with_drawing),
        single_unknowns=_single_unknowns(by_y),
        is_angle=np.array(
            [c >= 0 and topology.is_angle[c] for c in symbols.unknown_coordinates], dtype=bool
        ),
        dropped=tuple(assembly.loops.names[i] for i in assembly.dropped),
    )


def _single_unknowns(by_y: ca.SX) -> tuple[tuple[int, int], ...]:
    """Return equation and unknown of every loop equation with one unknown."""
    pattern = np.array(ca.DM(by_y.sparsity(), 1).full()) != 0.0
    equations = np.flatnonzero(pattern.sum(axis=1) == 1)
    return tuple((int(i), int(np.flatnonzero(pattern[i])[0])) for i in equations)


def _unit_rows(model: Model, K: ca.SX, A: np.ndarray, chosen: list[int], length: float) -> ca.SX:
    """Return the loop equations' rates per velocity where all actuators rest (n, n_free).

    Rows have unit directions: that of a rod is its direction and the moment about the velocity's
    axis over the length. They are the unit wrenches of all rods and of cut joints.

    Args:
        model: the machine.
        K: rates of the loop equations per velocity.
        A: actuator velocities per velocity (n_u, m + n).
        chosen: numbers of the velocities.
        length: length that makes rotations comparable with translations, m.
    """
    loops = model.assembly.loops
    scale = np.where([loops.topology.angular[i] for i in chosen], 1.0 / length, 1.0)
    row_scale = np.where(loops.is_length[list(model.assembly.rows)], 1.0, length)
    scaled = ca.diag(ca.DM(row_scale)) @ K @ ca.diag(ca.DM(scale))
    driven = A * scale
    if ((driven != 0.0).sum(axis=1) == 1).all():
        return scaled[:, [int(i) for i in np.flatnonzero(~driven.any(axis=0))]]
    _, sigma, Vt = np.linalg.svd(driven)
    rank = int((sigma > 1e-9 * sigma[0]).sum())
    return scaled @ ca.DM(Vt[rank:].T)


def _require_covered(model: Model, tolerances: Mapping[str, float]) -> None:
    """Raise InputError for machines that proofs do not cover."""
    assembly, topology = model.assembly, model.assembly.topology
    mobility = len(assembly.independent)
    if assembly.passive:
        names = ", ".join(topology.velocity_names[i] for i in assembly.passive)
        what = f"the machine has passive freedoms ({names}), which a box of poses does not fix"
        raise InputError.of("machine", what, "lock them, or certify another machine")
    if len(model.mechanism.actuators) < mobility:
        what = f"{len(model.mechanism.actuators)} actuators drive {mobility} freedoms"
        raise InputError.of("machine", what, "add actuators")
    if any(rod.drum is not None for rod in model.mechanism.rods):
        what = "lines on drums have loop equations that proofs do not cover"
        raise InputError.of("machine", what, "describe the lines as telescopic rods")
    if tolerances and assembly.dropped:
        names = ", ".join(assembly.loops.names[i] for i in assembly.dropped[:3])
        what = (
            f"{len(assembly.dropped)} loop equations are redundant at exact dimensions ({names} ...); "
            "deviations of parameters can break them"
        )
        raise InputError.of("deviations", what, "leave the deviations out for this machine")
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


def _symbols(model: Model) -> _Symbols:
    """Return symbols of axes and unknowns, and the coordinates.

    Raises:
        InputError: a ball joint other than that of the platform has coordinates.
    """
    assembly, topology = model.assembly, model.assembly.topology
    dependent = tuple(
        i for i in range(topology.n_v) if i not in assembly.independent and i not in assembly.frozen
    )
    q = ca.SX(ca.DM(assembly.q))
    symbols: dict[int, ca.SX] = {}
    names: dict[int, str] = {}
    quaternion_of = {v0 + k: (q0, v0) for q0, v0 in topology.quaternions for k in range(3)}
    for i in (*assembly.independent, *dependent):
        name = topology.velocity_names[i]
        if i in quaternion_of:
            k = i - quaternion_of[i][1]
            name = name.removesuffix(_SPINS[k]) + _ROTATIONS[k]
        names[i], symbols[i] = name, ca.SX.sym(name)
    for q0, v0 in topology.quaternions:
        if {v0, v0 + 1, v0 + 2} <= set(assembly.frozen):
            continue
        if not {v0, v0 + 1, v0 + 2} & set(assembly.independent):
            what = (
                f"{topology.coordinate_names[q0]} is the orientation of a ball joint inside a leg"
            )
            remedy = "describe the leg by rods, or by universal and revolute joints"
            raise InputError.of("machine", what, remedy)
        r = ca.vertcat(*(symbols.get(v0 + k, ca.SX(0)) for k in range(3)))
        q[q0 : q0 + 4] = _turned(r, assembly.q[q0 : q0 + 4])
    for i, symbol in symbols.items():
        if topology.q_of_v[i] >= 0:
            q[topology.q_of_v[i]] = symbol
    return _Symbols(
        axes=tuple(names[i] for i in assembly.independent),
        unknowns=tuple(names[i] for i in dependent),
        b=ca.vertcat(*(symbols[i] for i in assembly.independent)),
        y=ca.vertcat(*(symbols[i] for i in dependent)) if dependent else ca.SX(0, 1),
        q=q,
        velocities=(*assembly.independent, *dependent),
        unknown_coordinates=tuple(topology.q_of_v[i] for i in dependent),
    )


def _turned(r: ca.SX, start: np.ndarray) -> ca.SX:
    """Return the quaternion exp(r / 2) q_0, by series in s = r . r, which are smooth at zero."""
    s = ca.sumsqr(r)
    cosine, sine = ca.SX(0), ca.SX(0)
    for k in reversed(range(SERIES_TERMS)):
        sign = (-1.0) ** k / 4.0**k
        cosine = cosine * s + sign / math.factorial(2 * k)
        sine = sine * s + 0.5 * sign / math.factorial(2 * k + 1)
    d0, d = cosine, sine * r
    w, x = float(start[0]), ca.DM(start[1:])
    return ca.vertcat(d0 * w - ca.dot(d, x), d0 * x + w * d + ca.cross(d, ca.SX(x)))


def _reference(model: Model, symbols: _Symbols) -> tuple[np.ndarray, np.ndarray]:
    """Return axes and unknowns at the reference pose; rotations are zero there."""
    topology, q = model.assembly.topology, model.assembly.q
    values = [q[topology.q_of_v[i]] if topology.q_of_v[i] >= 0 else 0.0 for i in symbols.velocities]
    return np.array(values[: len(symbols.axes)]), np.array(values[len(symbols.axes) :])


def _coordinate_limits(
    model: Model, with_drawing: bool
) -> dict[int, tuple[str, str, float, float]]:
    """Return name, unit and range of limited coordinates, by their index."""
    limits = limits_of(model.assembly.loops.mechanism, model.assembly.topology)
    found_limits = {}
    for k, column in enumerate(limits.columns):
        if limits.is_stop[k] or with_drawing:
            found_limits[column] = (
                limits.names[k],
                limits.units[k],
                float(limits.lower[k]),
                float(limits.upper[k]),
            )
    return found_limits


def _limits(model: Model, symbols: _Symbols, with_drawing: bool) -> tuple[UnknownLimit, ...]:
    by_coordinate = _coordinate_limits(model, with_drawing)
    limits = []
    for j, column in enumerate(symbols.unknown_coordinates):
        if column in by_coordinate:
            name, unit, lower, upper = by_coordinate[column]
            limits.append(UnknownLimit(name=name, unit=unit, unknown=j, lower=lower, upper=upper))
    return tuple(limits)


def _axis_limits(
    model: Model, symbols: _Symbols, with_drawing: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of the axes: only stops, because a box may exceed the platform's drawing range."""
    by_coordinate = _coordinate_limits(model, False)
    topology = model.assembly.topology
    none = ("", "", -np.inf, np.inf)
    ranges = [by_coordinate.get(topology.q_of_v[i], none)[2:] for i in model.assembly.independent]
    return np.array([r[0] for r in ranges]), np.array([r[1] for r in ranges])


def _inequalities(
    model: Model, motion: TreeMotion, values: Values, with_drawing: bool, cone: float | None
) -> tuple[tuple[str, ...], list[ca.SX]]:
    """Return names and expressions that must not be negative: cut joints and cones of rods."""
    names, expressions = [], []
    for joint in motion.topology.cuts:
        for name, expression in _cut_limits(joint, motion, with_drawing):
            names.append(name)
            expressions.append(expression)
    if cone is not None:
        for rod in model.mechanism.rods:
            for name, expression in _cones(model, rod, motion, values, cone):
                names.append(name)
                expressions.append(expression)
    return tuple(names), expressions


def _cut_limits(joint: Joint, motion: TreeMotion, with_drawing: bool) -> list[tuple[str, ca.SX]]:
    """Return the conditions of the range of a joint that closes a loop.

    A revolute joint at angle a within its range a_0 - h to a_0 + h satisfies
    cos(a - a_0) - cos(h) >= 0, which needs no inverse function.
    """
    if not joint.freedoms:
        return []
    freedom = joint.freedoms[0]
    lower, upper = freedom.lower, freedom.upper
    if not np.isfinite([lower, upper]).any() or (freedom.limit != "stop" and not with_drawing):
        return []
    if joint.kind not in POSITIONED_KINDS or not np.isfinite([lower, upper]).all():
        what = f"a limited {joint.kind} joint closes a loop"
        remedy = "give both limits of a revolute or prismatic joint, or cut another joint"
        raise InputError.of(joint.name, what, remedy)
    A, B = motion.bodies[joint.parent.body], motion.bodies[joint.child.body]
    (R_A, p_A), (R_B, p_B) = (
        motion.values.placement(joint.parent),
        motion.values.placement(joint.child),
    )
    axis = joint.axes[0]
    if joint.kind == "prismatic":
        a = A.R @ (R_A @ unit_vector(axis))
        along = ca.dot(a, B.point(p_B).p - A.point(p_A).p)
        return [
            (f"{joint.name}: lower limit", along - lower),
            (f"{joint.name}: upper limit", upper - along),
        ]
    half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
    if half >= math.pi:
        return []
    u, w = "yzx"["xyz".index(axis)], "zxy"["xyz".index(axis)]
    e_u, e_w = (A.R @ (R_A @ unit_vector(letter)) for letter in (u, w))
    f = B.R @ (R_B @ unit_vector(u))
    cosine = math.cos(middle) * ca.dot(e_u, f) + math.sin(middle) * ca.dot(e_w, f)
    return [(f"{joint.name}: range", cosine - math.cos(half))]


def _cones(
    model: Model, rod: Rod, motion: TreeMotion, values: Values, cone: float
) -> list[tuple[str, ca.SX]]:
    """Return the conditions d . e - |d| cos(cone) >= 0 at both ends of a rod.

    e is the rod's direction at the reference pose, fixed to the body of that end.
    """
    d = motion.point(rod.end).p - motion.point(rod.start).p
    at_reference = tree_motion(
        motion.topology,
        nominal(model.assembly.loops.mechanism),
        Configuration(ca.SX(ca.DM(model.assembly.q)), {}),
        ca.SX(motion.topology.n_v, 1),
        ca.SX(motion.topology.n_v, 1),
    )
    d_0 = at_reference.point(rod.end).p - at_reference.point(rod.start).p
    length = ca.norm_2(d)
    conditions = []
    for end, placement in (("start", rod.start), ("end", rod.end)):
        R_0 = at_reference.bodies[placement.body].R
        fixed = np.array(ca.DM(R_0.T @ d_0).full()).ravel()
        e = motion.bodies[placement.body].R @ ca.DM(fixed / np.linalg.norm(fixed))
        name = f"{rod.name}: cone at its {end}"
        conditions.append((name, ca.dot(d, e) - length * math.cos(cone)))
    return conditions


def _rod_ends(rods: Sequence[Rod], motion: TreeMotion) -> ca.SX:
    points = [motion.point(end).p for rod in rods for end in (rod.start, rod.end)]
    return ca.densify(ca.vertcat(*points))
