"""Loop equations of a machine: conditions of rods and cut joints as functions of all coordinates.

Every equation is one of three kinds: a distance (a rod), a component of the offset between two
points, or the cosine of an angle between two directions. Residuals are in meters (dimensionless for
directions), so multipliers are forces in newtons (or moments in newton meters). Each equation has
a first and a second time derivative (rate). `Loops` evaluates the equations on batches, for
assembly and its checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.assembly.drums import line_length
from tauloop.equations.curves import curve_derivatives
from tauloop.equations.newton_euler import actuator_offsets, combination, transmission
from tauloop.equations.operators import cross, fast_operators
from tauloop.equations.topology import Topology, topology, with_ends
from tauloop.equations.tree import BodyMotion, Moving, PointMotion, TreeMotion, symbolic_motion
from tauloop.equations.values import BatchFunction, Values, unit_vector
from tauloop.mechanism.model import BASE, Coupling, Drum, Joint, Mechanism, Rod


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureRow:
    """One scalar loop equation phi = psi / scale = 0.

    Programs solve the polynomial psi and its rates, which cost fewer operations, and scale
    multipliers afterwards.

    Attributes:
        element: name of the rod or cut joint.
        what: condition that the element imposes, for messages.
        moving: psi with its rates.
        scale: length L of a rod, m; one for other elements. Derivatives of psi treat it as
            constant.
        is_length: whether phi is in meters; otherwise it is dimensionless.
        difference: vector d from A to B of a rod; None for other elements.
    """

    element: str
    what: str
    moving: Moving
    scale: ca.SX = field(default_factory=lambda: ca.SX(1))
    is_length: bool = True
    difference: ca.SX | None = None

    @property
    def psi(self) -> ca.SX:
        """Polynomial in coordinates, cosines and sines; (d.d - L^2)/2 for a rod."""
        return self.moving.x

    @property
    def psi_rate(self) -> ca.SX:
        """d(psi)/dt, linear in v."""
        return self.moving.rate

    @property
    def psi_acceleration(self) -> ca.SX:
        """d^2(psi)/dt^2, affine in a."""
        return self.moving.acceleration

    @property
    def name(self) -> str:
        """Element and condition, as text for messages."""
        return f"{self.element}: {self.what}"

    @property
    def residual(self) -> ca.SX:
        """The residual phi, in meters for lengths."""
        return self.psi / self.scale

    @property
    def rate(self) -> ca.SX:
        """Rate of phi for closed loops, linear in v."""
        return self.psi_rate / self.scale

    @property
    def acceleration(self) -> ca.SX:
        """Second rate of phi for closed loops, affine in a."""
        return self.psi_acceleration / self.scale


def closure(mechanism: Mechanism, motion: TreeMotion) -> tuple[ClosureRow, ...]:
    """Return all loop equations of a mechanism: of rods, then of cut joints, then of couplings.

    The equation of a rod is phi = (d.d - L^2) / (2 L) with d from A to B. The equation of a line on
    a drum is phi = l - L (see `line_length`). The equation of a coupling is
    phi = sum of ratio_j q_j - offset - sum of curve_i(q_i).

    A loop is closed in the frame of its carrier, the outermost body that carries both of its ends.
    So its equations contain only the coordinates of the loop itself.
    """
    lengths = {rod.name: motion.length(iq, iv) for rod, iq, iv in motion.topology.telescopes}
    closing = [(rod.name, rod.start.body, rod.end.body) for rod in mechanism.rods]
    closing += [(cut.name, cut.parent.body, cut.child.body) for cut in motion.topology.cuts]
    motions = _loop_motions(motion, closing)
    rows = [_rod_row(rod, motions[rod.name], lengths) for rod in mechanism.rods]
    for joint in motion.topology.cuts:
        rows += _cut_rows(joint, motions[joint.name])
    rows += [_coupling_row(coupling, motion) for coupling in mechanism.couplings]
    return tuple(rows)


def _loop_motions(motion: TreeMotion, closing: list[tuple[str, str, str]]) -> dict[str, TreeMotion]:
    """Return the motion relative to the carrier of each loop.

    Args:
        motion: the motion relative to the base.
        closing: name, first body and last body of every rod and cut joint.
    """
    carriers: dict[str, str] = {}
    needed: dict[str, set[str]] = {}
    for name, first, last in closing:
        carrier, branches = motion.topology.loop(first, last)
        carriers[name] = carrier
        needed.setdefault(carrier, set()).update(edge.outer.body for edge in branches)
    views = {BASE: motion}
    for carrier, bodies in needed.items():
        if carrier != BASE:
            edges = [edge for edge in motion.topology.tree if edge.outer.body in bodies]
            views[carrier] = motion.relative_to(carrier, edges)
    return {name: views[carrier] for name, carrier in carriers.items()}


def _coupling_row(coupling: Coupling, motion: TreeMotion) -> ClosureRow:
    topology, values = motion.topology, motion.values
    total, rate, acceleration = -ca.SX(values.scalar(coupling.offset)), ca.SX(0), ca.SX(0)
    for iv, ratio in combination(coupling.terms, topology, values):
        q, v, a = motion.length(topology.q_of_v[iv], iv)
        total, rate, acceleration = total + ratio * q, rate + ratio * v, acceleration + ratio * a
    for name, curve in coupling.curves:
        iv = topology.velocity_names.index(name)
        q, v, a = motion.length(topology.q_of_v[iv], iv)
        value, slope, bend = curve_derivatives(curve, q, values)
        total, rate = total - value, rate - slope * v
        acceleration = acceleration - slope * a - bend * v * v
    return ClosureRow(
        element=coupling.name,
        what="cam" if coupling.curves else "gear",
        moving=Moving(total, lambda: rate, lambda: acceleration),
        is_length=not coupling.is_angular,
    )


def _rod_row(
    rod: Rod, motion: TreeMotion, lengths: dict[str, tuple[ca.SX, ca.SX, ca.SX]]
) -> ClosureRow:
    d = between(motion.point(rod.start), motion.point(rod.end))
    if rod.name in lengths:
        L, rate, acceleration = lengths[rod.name]
    else:
        L, rate, acceleration = ca.SX(motion.values.scalar(rod.length)), ca.SX(0), ca.SX(0)  # type: ignore[arg-type]
    if rod.drum is not None:
        line = length_on_drum(rod, rod.drum, motion)
        return ClosureRow(
            element=rod.name,
            what="length",
            moving=Moving(
                line.x - L, lambda: line.rate - rate, lambda: line.acceleration - acceleration
            ),
        )
    return ClosureRow(
        element=rod.name,
        what="length",
        moving=Moving(
            (ca.dot(d.x, d.x) - L * L) / 2,
            lambda: ca.dot(d.x, d.rate) - L * rate,
            lambda: (
                ca.dot(d.x, d.acceleration)
                + ca.dot(d.rate, d.rate)
                - rate * rate
                - L * acceleration
            ),
        ),
        scale=L,
        difference=d.x,
    )


def length_on_drum(rod: Rod, drum: Drum, motion: TreeMotion) -> Moving:
    """Return the length of a cable (line) that winds onto a drum, from the motion of its ends."""
    frame = _frame(motion.values.rotation(rod.start.turns), motion.bodies[rod.start.body])
    d = between(motion.point(rod.start), motion.point(rod.end))
    return line_length(drum, frame, d, motion.values)


def line_angles(loops: Loops, q: np.ndarray) -> dict[str, np.ndarray]:
    """Return the angles (N,), rad, of the ends of cables (lines) about their drums, by rod.

    The angles are measured from the x axis of the drum's frame, between -pi and pi. At the negative
    x axis, the length of a line jumps by one revolution of the drum.
    """
    mechanism = loops.mechanism
    motion = symbolic_motion(loops.topology, nominal(mechanism), is_moving=False)
    angles: dict[str, ca.SX] = {}
    for rod in mechanism.rods:
        if rod.drum is not None:
            frame = _frame(motion.values.rotation(rod.start.turns), motion.bodies[rod.start.body])
            d = between(motion.point(rod.start), motion.point(rod.end))
            x, y = (ca.dot(frame[axis].x, d.x) for axis in "xy")
            angles[rod.name] = ca.atan2(y, x)
    if not angles:
        return {}
    function = BatchFunction(ca.Function("angles", [motion.q], [ca.vertcat(*angles.values())]))
    return dict(zip(angles, function([q], len(q))[0].T, strict=True))


def between(A: PointMotion, B: PointMotion) -> Moving:
    """Return the vector from point A to point B."""
    return Moving(B.p - A.p, lambda: B.v - A.v, lambda: B.a - A.a)


def _direction(body: BodyMotion, e: ca.SX) -> Moving:
    """Return a unit vector that is fixed to a body."""
    e_W = body.R @ e

    def acceleration() -> ca.SX:
        return cross(body.in_base.alpha, e_W) + cross(body.in_base.w, moving.rate)

    moving = Moving(e_W, lambda: cross(body.in_base.w, e_W), acceleration)
    return moving


def _frame(joint_placement_rotation: ca.SX, body: BodyMotion) -> dict[str, Moving]:
    return {axis: _direction(body, joint_placement_rotation @ unit_vector(axis)) for axis in "xyz"}


def _product_row(joint: Joint, what: str, e: Moving, f: Moving, *, is_length: bool) -> ClosureRow:
    """Return the loop equation that the scalar product of two vectors is zero."""
    return ClosureRow(
        element=joint.name,
        what=what,
        moving=Moving(
            ca.dot(e.x, f.x),
            lambda: ca.dot(e.rate, f.x) + ca.dot(e.x, f.rate),
            lambda: (
                ca.dot(e.acceleration, f.x)
                + 2 * ca.dot(e.rate, f.rate)
                + ca.dot(e.x, f.acceleration)
            ),
        ),
        is_length=is_length,
    )


#: Conditions of each kind of cut joint: components of the offset in the parent frame that are zero
#: ("all": the three components in the carrier's frame), and pairs (parent axis, child axis) of
#: directions that are perpendicular. "a" is the joint's axis; "u" and "w" are perpendicular to it.
_CONDITIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "fixed": ("all", ("xy", "yz", "zx")),
    "revolute": ("all", ("ua", "wa")),
    "prismatic": ("uw", ("xy", "yz", "zx")),
    "cylindrical": ("uw", ("ua", "wa")),
    "universal": ("all", ("12",)),
    "spherical": ("all", ()),
    "planar": ("z", ("xz", "yz")),
    "schoenflies": ("", ("xz", "yz")),
    "translational": ("", ("xy", "yz", "zx")),
    "free": ("", ()),
}


def _cut_rows(joint: Joint, motion: TreeMotion) -> Iterator[ClosureRow]:
    offsets, perpendicular = _CONDITIONS[joint.kind]
    bodies, values = motion.bodies, motion.values
    A, B = bodies[joint.parent.body], bodies[joint.child.body]
    R_A, p_A = values.placement(joint.parent)
    R_B, p_B = values.placement(joint.child)
    d, frame, child = between(A.point(p_A), B.point(p_B)), _frame(R_A, A), _frame(R_B, B)
    axis = joint.axes[0] if joint.axes else "z"
    letters = {letter: letter for letter in "xyz"} | {
        "a": axis,
        "u": "yzx"["xyz".index(axis)],
        "w": "zxy"["xyz".index(axis)],
    }
    if joint.kind == "universal":
        letters |= {"1": joint.axes[0], "2": joint.axes[1]}
    if offsets == "all":
        for i, letter in enumerate("xyz"):
            yield ClosureRow(element=joint.name, what=letter, moving=d.component(i))
    else:
        for across in offsets:
            letter = letters[across]
            yield _product_row(joint, f"along {letter}", frame[letter], d, is_length=True)
    for pair in perpendicular:
        first, second = (letters[letter] for letter in pair)
        yield _product_row(
            joint, f"{first} across {second}", frame[first], child[second], is_length=False
        )


@dataclass(frozen=True, kw_only=True)
class Loops(ReprMixin):
    """Residuals and Jacobians of all loop equations at given parameter values.

    Attributes:
        mechanism: the machine with its nominal parameter values, and with ends of the joints that
            need them (`with_ends`).
        topology: coordinates of the machine.
        names: name of every loop equation (c,).
        elements: name of the rod or joint of every loop equation.
        is_length: whether each residual is in meters.
        function: q -> (phi, K by columns).
        acceleration: (q, v) -> bias k with K a = k.
        transmission: matrix A (n_u, n_v) of actuator velocities.
        actuator_offsets: positions of the actuators where all coordinates are zero (n_u,).
        coupling_ratios, coupling_offsets: coefficients (n, n_v) and right-hand sides (n,) of the
            couplings without curves: coupling_ratios @ q = coupling_offsets.
        length: characteristic length of the machine, m; it makes angles and lengths comparable.
    """

    mechanism: Mechanism
    topology: Topology
    names: tuple[str, ...]
    elements: tuple[str, ...]
    is_length: np.ndarray
    function: BatchFunction
    acceleration: BatchFunction
    transmission: np.ndarray
    actuator_offsets: np.ndarray
    coupling_ratios: np.ndarray
    coupling_offsets: np.ndarray
    length: float

    def residuals(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals phi (N, c) and Jacobians K (N, c, n_v) at coordinates (N, n_q)."""
        n, c = len(q), len(self.names)
        if c == 0:
            return np.zeros((n, 0)), np.zeros((n, 0, self.topology.n_v))
        phi, K = self.function([q], n)
        return phi, K.reshape(n, self.topology.n_v, c).transpose(0, 2, 1)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the loop bias k (N, c): accelerations satisfy K a = k."""
        if not self.names:
            return np.zeros((len(q), 0))
        return self.acceleration([q, v], len(q))[0]

    @cached_property
    def row_scale(self) -> np.ndarray:
        """Factors (c,) that make residuals dimensionless: 1/length for residuals in meters."""
        return _constant(np.where(self.is_length, 1.0 / self.length, 1.0))

    @cached_property
    def velocity_scale(self) -> np.ndarray:
        """Unit displacement (n_v,) of every velocity: the characteristic length, or one radian."""
        return _constant(np.where(self.topology.angular, 1.0, self.length))

    @cached_property
    def coordinate_scale(self) -> np.ndarray:
        """Unit difference (n_q,) of every coordinate: the characteristic length, one radian or one."""
        return _constant(np.where(self.topology.is_length, self.length, 1.0))

    @cached_property
    def aligned(self) -> Loops:
        """These loops with equations e_A - e_B = 0 for every axis that a cut joint's frames share.

        Closed loops satisfy these equations, unless a joint is closed at a wrong orientation,
        at which its directions are perpendicular too. The equations are redundant. They help to close
        loops from a distant start, and they show whether a joint closed with the right orientation.
        """
        return _with_aligned_axes(self) if self.topology.cuts else self

    def openings(self, phi: np.ndarray) -> np.ndarray:
        """Return the largest dimensionless residual of each sample (N,), from residuals (N, c)."""
        return np.asarray(np.abs(self.row_scale * phi).max(axis=1, initial=0.0))

    def largest_residual(self, phi: np.ndarray) -> np.ndarray:
        """Return the largest residual of each sample (N,), m, from residuals (N, c).

        Dimensionless residuals are multiplied by the characteristic length.
        """
        return self.length * self.openings(phi)

    def gaps(self, start: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the largest coordinate differences (N,), rad or characteristic lengths."""
        return np.asarray((np.abs(q - start) / self.coordinate_scale).max(axis=-1, initial=0.0))

    def scaled(self, K: np.ndarray) -> np.ndarray:
        """Return dimensionless Jacobians (N, c, n_v)."""
        return np.asarray(self.row_scale[:, None] * K * self.velocity_scale)


def _constant(array: np.ndarray) -> np.ndarray:
    """Return an array that cannot be changed, because all callers receive the same one."""
    array.flags.writeable = False
    return array


def nominal(mechanism: Mechanism, symbols: Mapping[str, Any] | None = None) -> Values:
    """Return nominal parameter values, with some replaced by symbols."""
    return Values({**mechanism.parameters.values, **(symbols or {})})


@fast_operators()
def loops(mechanism: Mechanism) -> Loops:
    """Build the loop functions of a machine at its nominal parameter values.

    Returns:
        The functions of the loop equations and of their derivatives.
    """
    mechanism = with_ends(mechanism)
    tree = topology(mechanism)
    motion = symbolic_motion(tree, nominal(mechanism))
    q, v = motion.q, motion.v
    rows = closure(mechanism, motion)
    phi, rate, acceleration = stacked(rows)
    K = ca.jacobian(rate, v)
    coupling_ratios, coupling_offsets = _coupling_equations(mechanism, tree, motion.values)
    return Loops(
        mechanism=mechanism,
        topology=tree,
        names=tuple(row.name for row in rows),
        elements=tuple(row.element for row in rows),
        is_length=np.array([row.is_length for row in rows], dtype=bool),
        function=BatchFunction(
            ca.Function("closure", [q], [ca.densify(phi), ca.densify(ca.vec(K))])
        ),
        acceleration=BatchFunction(ca.Function("bias", [q, v], [ca.densify(-acceleration)])),
        transmission=np.array(ca.DM(transmission(mechanism, tree, motion.values)).full()),
        actuator_offsets=np.array(ca.DM(actuator_offsets(mechanism, motion.values)).full()).ravel(),
        coupling_ratios=coupling_ratios,
        coupling_offsets=coupling_offsets,
        length=mechanism.characteristic_length,
    )


def _coupling_equations(
    mechanism: Mechanism, topology: Topology, values: Values
) -> tuple[np.ndarray, np.ndarray]:
    """Return ratios (n, n_v) and right-hand sides (n,) of the couplings at the nominal values."""
    gears = [coupling for coupling in mechanism.couplings if not coupling.curves]
    ratios = np.zeros((len(gears), topology.n_v))
    for row, gear in zip(ratios, gears, strict=True):
        for index, ratio in combination(gear.terms, topology, values):
            row[index] += float(ratio)
    offsets = [float(values.scalar(gear.offset)) for gear in gears]
    return ratios, np.array(offsets, dtype=float)


#: Axes of both frames that must coincide in each kind of cut joint; "a" is the joint's axis. The
#: perpendicular directions of the loop equations do not ensure this.
_COINCIDENT = {
    "fixed": "xyz",
    "prismatic": "xyz",
    "translational": "xyz",
    "revolute": "a",
    "cylindrical": "a",
    "planar": "z",
    "schoenflies": "z",
}


def _with_aligned_axes(loops: Loops) -> Loops:
    """Return the loops with equations for the axes of cut joints; see `Loops.aligned`."""
    motion = symbolic_motion(loops.topology, nominal(loops.mechanism))
    values = motion.values
    phi, rate, _ = stacked(closure(loops.mechanism, motion))
    names, elements = list(loops.names), list(loops.elements)
    for joint in loops.topology.cuts:
        A, B = motion.bodies[joint.parent.body], motion.bodies[joint.child.body]
        R_A, R_B = values.placement(joint.parent)[0], values.placement(joint.child)[0]
        for letter in _COINCIDENT.get(joint.kind, ""):
            axis = joint.axes[0] if letter == "a" else letter
            e_A, e_B = A.R @ (R_A @ unit_vector(axis)), B.R @ (R_B @ unit_vector(axis))
            phi = ca.vertcat(phi, e_A - e_B)
            rate = ca.vertcat(rate, cross(A.in_base.w, e_A) - cross(B.in_base.w, e_B))
            names += [f"{joint.name}: {axis} aligned along {base}" for base in "xyz"]
            elements += [joint.name] * 3
    K = ca.jacobian(rate, motion.v)
    return replace(
        loops,
        names=tuple(names),
        elements=tuple(elements),
        is_length=np.concatenate(
            [loops.is_length, np.zeros(len(names) - len(loops.names), dtype=bool)]
        ),
        function=BatchFunction(
            ca.Function("aligned", [motion.q], [ca.densify(phi), ca.densify(ca.vec(K))])
        ),
    )


def stacked(rows: tuple[ClosureRow, ...]) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return residuals, rates and accelerations of loop equations as columns (c,)."""
    if not rows:
        return ca.SX(0, 1), ca.SX(0, 1), ca.SX(0, 1)
    return (
        ca.vertcat(*(row.residual for row in rows)),
        ca.vertcat(*(row.rate for row in rows)),
        ca.vertcat(*(row.acceleration for row in rows)),
    )
