"""Equations of a machine whose parameters, encoders and joint centers have errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from tauloop.common.records import dataclass
from tauloop.equations.assembly.assembly import Assembly
from tauloop.equations.assembly.loops import closure, nominal, stacked
from tauloop.equations.newton_euler import actuator_offsets, transmission
from tauloop.equations.topology import integrate, topology
from tauloop.equations.tree import TreeMotion, coordinate_rates, symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.expression import Leaf, add, leaves, with_leaves
from tauloop.mechanism.model import Joint, Mechanism, Rod
from tauloop.mechanism.placement import Placement
from tauloop.model import Model

Array = NDArray[np.float64]
Element = TypeVar("Element")

#: Singular values of the equations below this fraction of the largest belong to passive freedoms.
PASSIVE_CUTOFF = 1e-9
#: Number of steps of Newton's method from the first-order displacement of a machine with errors.
NEWTON_STEPS = 4
#: Name of the part to which the tool center point belongs.
TOOL_PART = "tool"
#: Prefix of the symbols that displace joint centers.
CLEARANCE = "clearance"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartParameters:
    """A machine in which each part has its own parameters.

    Attributes:
        mechanism: the machine, in which each part has symbols ``NAME@PART``.
        owners: parameter of the machine file by symbol.
    """

    mechanism: Mechanism
    owners: dict[str, str]


def part_parameters(
    mechanism: Mechanism, names: Sequence[str], common: Collection[str] = ()
) -> PartParameters:
    """Return the machine with a parameter for each part instead of shared ones.

    The part of an element is its name up to the first dot, such as a leg. The tool is a part, too. A
    parameter of a single part keeps its name, and so do the parameters in `common`.
    """
    parts: dict[str, list[str]] = {name: [] for name in names}
    for part, geometry in geometry_of_parts(mechanism):
        for name in leaves(geometry) & parts.keys():
            if part not in parts[name] and name not in common:
                parts[name].append(part)
    owners: dict[str, str] = {}
    for name in names:
        symbols = [f"{name}@{part}" for part in parts[name]] if len(parts[name]) > 1 else [name]
        owners |= dict.fromkeys(symbols, name)
    shared = [name for name in names if len(parts[name]) > 1]

    def with_symbols(element: Element, part: str) -> Element:
        changes = {name: Leaf(f"{name}@{part}") for name in shared if part in parts[name]}
        changed_element: Element = with_leaves(element, changes)
        return changed_element

    def all_with_symbols(elements: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(with_symbols(item, _part(item.name)) for item in elements)

    platform = mechanism.platform
    table = mechanism.parameters
    part_values = [
        replace(table[owner], name=name) for name, owner in owners.items() if name != owner
    ]
    changed = replace(
        mechanism,
        parameters=replace(table, parameters=(*table, *part_values)),
        joints=all_with_symbols(mechanism.joints),
        rods=all_with_symbols(mechanism.rods),
        couplings=all_with_symbols(mechanism.couplings),
        actuators=all_with_symbols(mechanism.actuators),
        platform=replace(platform, tool=with_symbols(platform.tool, TOOL_PART)),
    )
    return PartParameters(mechanism=changed, owners=owners)


def geometry_of_parts(mechanism: Mechanism) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield the part and the geometry (placements, lengths, ratios) of each element and the tool."""
    for joint in mechanism.joints:
        yield _part(joint.name), (joint.parent, joint.child)
    for rod in mechanism.rods:
        yield _part(rod.name), (rod.start, rod.end, rod.length, rod.first_axis, rod.drum)
    for coupling in mechanism.couplings:
        yield _part(coupling.name), (coupling.terms, coupling.offset, coupling.curves)
    for actuator in mechanism.actuators:
        yield _part(actuator.name), (actuator.drives, actuator.offset)
    yield TOOL_PART, (mechanism.platform.tool,)


def _part(name: str) -> str:
    """Return the part that an element belongs to."""
    return name.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstOrder:
    """Derivatives by errors, with the actuators held.

    Attributes:
        velocities: (N, n_v, p) displacements in the coordinates of all velocities, per unit of each
            error.
        twist: (N, 6, p) twist of the tool center point, in the axes of the base.
        mismatch: (N, c, p) residuals of redundant loop equations, which rigid parts do not satisfy.
    """

    velocities: Array
    twist: Array
    mismatch: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ErrorExpressions:
    """The equations as expressions of coordinates and errors.

    Attributes:
        q, errors: symbols of coordinates and errors.
        f: independent loop equations, and actuator positions minus encoder readings.
        redundant: loop equations that follow from the others at exact dimensions.
        position, rotation: position and rotation matrix of the tool center point.
        n_v: number of velocities.
        q_of_v: index of the coordinate of each velocity; -1 for none.
        quaternions: index of the first coordinate and of the first velocity of each quaternion.
        is_angular: whether each velocity is a rotation (n_v,).
    """

    q: ca.SX
    errors: ca.SX
    f: ca.SX
    redundant: ca.SX
    position: ca.SX
    rotation: ca.SX
    n_v: int
    q_of_v: tuple[int, ...]
    quaternions: tuple[tuple[int, int], ...]
    is_angular: np.ndarray


class ErrorEquations:
    """Loops, encoders and tool as functions of coordinates and errors.

    The errors are those of the independent parameters, then of the readings of all actuators, then
    the displacements (x, y, z) of joint centers in the axes of their first body.

    Attributes:
        assembly: assembly of the loops.
        count: number of errors.
        expressions: the equations as expressions.
        held: indices of the locked and passive velocities, which errors do not change.
    """

    def __init__(self, model: Model, parts: PartParameters, joints: Sequence[str]) -> None:
        """Derive the equations.

        Args:
            model: the machine.
            parts: independent parameters of its parts that have errors.
            joints: joints and ends of rods (``ROD.start``, ``ROD.end``) whose centers move.
        """
        self.assembly = assembly = model.assembly
        names = tuple(parts.owners)
        mechanism = _with_clearances(parts.mechanism, joints)
        tree = topology(mechanism)
        motors = len(mechanism.actuators)
        clearances = [f"{CLEARANCE}.{joint}.{axis}" for joint in joints for axis in "xyz"]
        errors = ca.SX.sym("errors", len(names) + motors + len(clearances))
        self.count = errors.numel()
        values = {
            name: mechanism.parameters[owner].value + errors[i]
            for i, (name, owner) in enumerate(parts.owners.items())
        }
        values |= {name: errors[len(names) + motors + i] for i, name in enumerate(clearances)}
        motion = symbolic_motion(tree, nominal(mechanism, values), is_moving=False)
        readings = errors[len(names) : len(names) + motors]
        phi, _, _ = stacked(closure(mechanism, motion))
        independent = _independent_rows(assembly)
        redundant = [i for i in range(phi.numel()) if i not in independent]
        encoders = _actuator_positions(assembly, mechanism, motion) - readings
        f = ca.vertcat(phi[independent, :], encoders[list(assembly.leading), :])
        tool = mechanism.platform.tool
        position = motion.point(tool).p
        R = motion.bodies[tool.body].R @ motion.values.rotation(tool.turns)
        self.expressions = ErrorExpressions(
            q=motion.q,
            errors=errors,
            f=f,
            redundant=phi[redundant, :],
            position=position,
            rotation=R,
            n_v=tree.n_v,
            q_of_v=tuple(tree.q_of_v),
            quaternions=tuple(tree.quaternions),
            is_angular=np.array(tree.angular, dtype=bool),
        )
        rates = coordinate_rates(tree, motion.q)
        arguments = [motion.q, errors]
        self._value = _function("value", arguments, [f, position, ca.vec(R)])
        outputs = [
            *_derivatives(f, motion.q, errors, rates),
            *_derivatives(position, motion.q, errors, rates),
            *_derivatives(ca.vec(R), motion.q, errors, rates),
            *_derivatives(phi[redundant, :], motion.q, errors, rates),
        ]
        self._rate = _function("rate", arguments, [ca.vec(output) for output in outputs])
        self._shapes = [output.shape for output in outputs]
        self._locked = list(assembly.locked)
        self.held = frozenset({*assembly.locked, *assembly.passive})

    def value(self, q: Array, errors: Array) -> tuple[Array, Array, Array]:
        """Return loops and actuator positions (N, m), tool center points (N, 3) and rotations (N, 3, 3)."""
        f, position, rotation = self._value([q, errors], len(q))
        return f, position, np.swapaxes(rotation.reshape(-1, 3, 3), -1, -2)

    def _matrices(self, q: Array, errors: Array) -> list[Array]:
        """Return the derivatives of f, position, rotation and redundant loops by v and by errors."""
        columns = self._rate([q, errors], len(q))
        return [
            np.swapaxes(column.reshape(len(q), shape[1], shape[0]), -1, -2)
            for column, shape in zip(columns, self._shapes, strict=True)
        ]

    def first_order(self, q: Array) -> FirstOrder:
        """Return the derivatives at coordinates (N, n_q) of the machine without errors.

        With the equations f(q, e) = 0 of loops and encoders, dv = -(df/dv)⁺ (df/de) de. The
        pseudoinverse excludes motions of passive degrees of freedom.
        """
        errors = np.zeros((len(q), self.count))
        f_v, f_e, p_v, p_e, r_v, r_e, s_v, s_e = self._matrices(q, errors)
        velocities = -self._solve(f_v, f_e)
        _, _, R = self.value(q, errors)
        dR = (r_v @ velocities + r_e).reshape(len(q), 3, 3, self.count)
        # vec stacks columns, so that the first axis of the reshaped array is the column of R.
        skew = np.einsum("njia,nkj->nika", dR, R)
        rotation = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
        return FirstOrder(
            velocities=velocities,
            twist=np.concatenate([p_v @ velocities + p_e, rotation], axis=1),
            mismatch=s_v @ velocities + s_e,
        )

    def passive_motion(self, q: Array) -> Array:
        """Return the largest motion (N,) of the tool per unit motion of passive degrees of freedom.

        Displacements are in characteristic lengths, rotations in entries of the rotation matrix.
        """
        f_v, _, p_v, _, r_v, *_ = self._matrices(q, np.zeros((len(q), self.count)))
        f_v = self._without_locked(f_v)
        _, sigma, Vt = np.linalg.svd(f_v)
        rank = int((sigma > PASSIVE_CUTOFF * sigma[:, :1]).sum(axis=1).min())
        rates = np.concatenate([p_v / self.assembly.loops.length, r_v], axis=1)
        motions = rates @ np.swapaxes(Vt[:, rank:], -1, -2)
        return np.asarray(np.abs(motions).max(axis=(1, 2), initial=0.0))

    def displaced(self, q: Array, velocities: Array, errors: Array) -> tuple[Array, Array, Array]:
        """Return tool center points, rotations and residuals of machines with errors.

        Args:
            q: coordinates (N, n_q) without errors.
            velocities: first-order displacements (N, n_v).
            errors: errors (N, p).

        Returns:
            Tool center points (N, 3), rotations (N, 3, 3), and largest residuals (N,).
        """
        tree = self.assembly.topology
        readings, _, _ = self.value(q, np.zeros_like(errors))
        displaced = integrate(tree, q, velocities)
        for _ in range(NEWTON_STEPS):
            f = self.value(displaced, errors)[0] - readings
            f_v = self._matrices(displaced, errors)[0]
            displaced = integrate(tree, displaced, -self._solve(f_v, f[..., None])[..., 0])
        f, position, rotation = self.value(displaced, errors)
        return position, rotation, np.abs(f - readings).max(axis=1, initial=0.0)

    def _without_locked(self, f_v: Array) -> Array:
        """Return the equations with unit rows that set locked velocities to zero."""
        if not self._locked:
            return f_v
        rows = np.eye(f_v.shape[-1])[self._locked]
        return np.concatenate([f_v, np.broadcast_to(rows, (len(f_v), *rows.shape))], axis=1)

    def _solve(self, f_v: Array, right: Array) -> Array:
        """Return the smallest solution (N, n_v, k) of f_v x = right, with locked velocities zero."""
        f_v = self._without_locked(f_v)
        zeros = np.zeros((len(f_v), len(self._locked), right.shape[-1]))
        right = np.concatenate([right, zeros], axis=1)
        if f_v.shape[1] == f_v.shape[2]:
            return np.asarray(np.linalg.solve(f_v, right))
        return np.asarray(np.linalg.pinv(f_v, rcond=PASSIVE_CUTOFF) @ right)


def _independent_rows(assembly: Assembly) -> list[int]:
    """Return the indices of loop equations that are independent in all coordinates."""
    return list(assembly.with_constant_coordinates().rows)


def _actuator_positions(assembly: Assembly, mechanism: Mechanism, motion: TreeMotion) -> ca.SX:
    """Return the actuator positions (n_u,) as expressions of the coordinates."""
    tree = assembly.topology
    scalars = ca.vertcat(*(motion.q[j] if j >= 0 else 0 for j in tree.q_of_v))
    A = transmission(mechanism, tree, motion.values)
    return A @ scalars + actuator_offsets(mechanism, motion.values)


def _derivatives(f: ca.SX, q: ca.SX, errors: ca.SX, rates: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the derivatives of f by the velocities and by the errors."""
    return ca.jacobian(f, q) @ rates, ca.jacobian(f, errors)


def _function(name: str, arguments: list[ca.SX], outputs: list[ca.SX]) -> BatchFunction:
    """Return a function of batches with dense outputs."""
    return BatchFunction(ca.Function(name, arguments, [ca.densify(output) for output in outputs]))


def _with_clearances(mechanism: Mechanism, joints: Sequence[str]) -> Mechanism:
    """Return the machine with symbols that displace the centers of joints in their first body."""
    displaced_joints = tuple(_displaced_joint(joint, joints) for joint in mechanism.joints)
    displaced_rods = tuple(_displaced_rod(rod, joints) for rod in mechanism.rods)
    return replace(mechanism, joints=displaced_joints, rods=displaced_rods)


def _displaced_joint(joint: Joint, names: Sequence[str]) -> Joint:
    """Return a joint whose center has symbols of displacement if it is one of `names`."""
    if joint.name not in names:
        return joint
    return replace(joint, parent=_displaced(joint.parent, joint.name))


def _displaced_rod(rod: Rod, names: Sequence[str]) -> Rod:
    """Return a rod whose ends have symbols of displacement if they are in `names`."""
    start, end = f"{rod.name}.start", f"{rod.name}.end"
    if start in names:
        rod = replace(rod, start=_displaced(rod.start, start))
    if end in names:
        rod = replace(rod, end=_displaced(rod.end, end))
    return rod


def _displaced(placement: Placement, name: str) -> Placement:
    """Return a placement with symbols added to its position."""
    x, y, z = placement.position
    position = (
        add(x, Leaf(f"{CLEARANCE}.{name}.x")),
        add(y, Leaf(f"{CLEARANCE}.{name}.y")),
        add(z, Leaf(f"{CLEARANCE}.{name}.z")),
    )
    return replace(placement, position=position)
