"""Locked degrees of freedom: coordinates by name, and spins of axisymmetric bodies.

A body that rotates about its axis of symmetry moves nothing else if its joints leave this rotation
free. An example is a rod between two ball joints. Its spin is a passive degree of freedom that acts
on other bodies only through its angular momentum.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.equations.assembly.assembly import Assembly, assemble
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.assembly.loops import Loops, loops, nominal
from tauloop.equations.topology import Topology
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.description.placements import turns_to_axes
from tauloop.mechanism.inertia import about_center, as_matrices
from tauloop.mechanism.links.ball_links import lies_between_balls, lies_between_hinges
from tauloop.mechanism.model import BASE, Freedom, Friction, Mechanism, Placement
from tauloop.mechanism.suggestions import unknown_names

#: Largest displacement of other bodies and of rod ends by a spin, as a fraction of its rotation.
STILLNESS_TOLERANCE = 1e-6
#: Largest distance of the mass centers of spinning bodies from the axis, as a fraction of the
#: characteristic length.
AXIS_OFFSET_TOLERANCE = 1e-3
#: Largest relative difference of the moments of inertia across the axis. Rods from CAD have
#: clevises and screws, and the difference affects forces only through the rotation of the rod.
SYMMETRY_TOLERANCE = 0.05
#: Relative difference from which it is reported.
REPORTED_ASYMMETRY = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """A passive degree of freedom that is a spin of axisymmetric bodies.

    Attributes:
        index: index of the passive velocity.
        name: name of the passive velocity.
        bodies: names of the bodies that spin.
        asymmetry: difference of the moments of inertia across the axis, as a fraction of the
            largest moment.
    """

    index: int
    name: str
    bodies: tuple[str, ...]
    asymmetry: float


def lock_spins(assembly: Assembly, locks: Locks) -> Assembly:
    """Return the assembly of a machine whose spins are locked as requested.

    If a spin is a coordinate, this coordinate is locked. The spin of a body on a ball joint is
    locked by replacing the ball joint with a universal joint, whose axes are both perpendicular to
    the spin's axis at the reference pose. The assembly then has the changed mechanism.

    Args:
        assembly: the assembly with the coordinates in `locks.names` locked.
        locks: degrees of freedom to lock.

    Raises:
        AssemblyError: the loops cannot be closed.
    """
    current, names = assembly.loops, locks.names
    if locks.spins is False:
        return assembly
    notes: list[Problem] = []
    for _ in range(len(assembly.passive)):
        spins = find_spins(assembly)
        if locks.spins is None:
            spins = tuple(spin for spin in spins if _is_locked_by_default(assembly, spin))
        if not spins:
            break
        held = (*names, *(spin.name for spin in spins if current.topology.q_of_v[spin.index] >= 0))
        balls = [spin for spin in spins if current.topology.q_of_v[spin.index] < 0]
        changed = loops(_with_universal_joints(assembly, balls)) if balls else current
        locked = assemble(changed, held_velocities(changed, held))
        if locks.spins is None and locked.findings and not assembly.findings:
            break  # these spins do more than rotate symmetric bodies: the machine needs them
        notes += map(_note, spins, [assembly.mechanism.file] * len(spins))
        current, names, assembly = changed, held, locked
    return replace(assembly, notes=(*assembly.notes, *notes)) if notes else assembly


def _note(spin: Spin, file: str) -> Problem:
    bodies = ", ".join(spin.bodies)
    what = f"the spin of {bodies} is locked: no actuator drives it, and it moves nothing else"
    if spin.asymmetry > REPORTED_ASYMMETRY:
        difference = f"moments of inertia across it differ by {100 * spin.asymmetry:.2g} %"
        what += f" ({difference}, so a free spin would change forces slightly)"
    return Problem(
        where=spin.name,
        what=what,
        remedy="to keep it free, name it in `platform.independent` (`--independent`), or in Python use "
        "`Model(..., locks=Locks(spins=False))`",
        file=file,
    )


def _is_locked_by_default(assembly: Assembly, spin: Spin) -> bool:
    """Return whether a spin is locked by default.

    It is locked if it is the spin of a link between ball joints or of a pin, the file does not name
    it, and no force acts on it.
    """
    mechanism, topology = assembly.mechanism, assembly.topology
    is_idle = lies_between_balls(mechanism, spin.bodies) or lies_between_hinges(
        mechanism, spin.bodies
    )
    if mechanism.platform.body in spin.bodies or not is_idle:
        return False
    joint = next(tree.joint for tree in topology.tree if spin.index in tree.v)
    is_ball = topology.q_of_v[spin.index] < 0
    lost_names = joint.velocity_names if is_ball else (spin.name,)
    terms = [actuator.drives for actuator in mechanism.actuators]
    terms += [loss.terms for loss in mechanism.losses]
    read = {name for coupling in mechanism.couplings for name in coupling.coordinates}
    read |= {name for output in mechanism.outputs for name in output.coordinates}
    named = read | {
        *mechanism.platform.independent,
        *(name for pairs in terms for name, _ in pairs),
    }
    if named.intersection(lost_names):
        return False
    if is_ball:
        return _acts_equally_about_all_axes(joint.freedoms)
    # at rest within the stops, friction and rotor inertia exert no force, but a spring does
    return mechanism.freedoms.get(spin.name, Freedom()).spring is None


def _has_effect(freedom: Freedom) -> bool:
    """Return whether a degree of freedom has forces, inertia or stops."""
    stops = np.isfinite([freedom.lower, freedom.upper]).any()
    return bool(
        stops
        or any(part is not None for part in (freedom.friction, freedom.spring, freedom.inertia))
    )


def _acts_equally_about_all_axes(freedoms: tuple[Freedom, ...]) -> bool:
    """Return whether forces on a ball joint's three axes also apply to two perpendicular axes.

    Only equal viscous friction and equal inertia about all axes are independent of the directions
    of the axes.
    """
    for freedom in freedoms:
        friction = freedom.friction
        is_viscous = friction is None or friction == Friction(viscous=friction.viscous)
        if (
            freedom != freedoms[0]
            or not is_viscous
            or _has_effect(replace(freedom, friction=None, inertia=None))
        ):
            return False
    return True


def held_velocities(loops: Loops, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indices of the velocities to lock.

    Raises:
        InputError: a name is not a velocity, or not the rate of a scalar coordinate.
    """
    _require_scalar(loops.topology, names)
    return tuple(loops.topology.velocity_names.index(name) for name in names)


def _require_scalar(topology: Topology, names: tuple[str, ...]) -> None:
    known = [
        name for name, i in zip(topology.velocity_names, topology.q_of_v, strict=True) if i >= 0
    ]
    what, remedy = "is not the rate of a scalar coordinate", f"lock one of {', '.join(known)}"
    InputError.raise_if_any(unknown_names(names, known, what, "locks.{}", remedy))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BodyMotions:
    """Orientations of bodies, and their motions per unit of each passive velocity.

    Attributes:
        names: names of the k bodies.
        rotation: orientations of the bodies (N, k, 3, 3).
        center: mass centers of the bodies (N, k, 3), base frame.
        angular_velocity: angular velocities of the bodies (N, k, 3, p).
        center_velocity: velocities of the mass centers (N, k, 3, p); zero for massless bodies.
        ends: velocities of the ends of all rods (N, r, 3, p).
    """

    names: tuple[str, ...]
    rotation: np.ndarray
    center: np.ndarray
    angular_velocity: np.ndarray
    center_velocity: np.ndarray
    ends: np.ndarray


def find_spins(assembly: Assembly) -> tuple[Spin, ...]:
    """Return the passive degrees of freedom that, at all states, only spin axisymmetric bodies."""
    if not assembly.passive:
        return ()
    motions = _body_motions(assembly)
    mechanism, length = assembly.mechanism, assembly.loops.length
    inertias = {name: _about_center(mechanism, name) for name in motions.names}
    spins = []
    for k, index in enumerate(assembly.passive):
        turn, shift = (
            motions.angular_velocity[..., k],
            np.linalg.norm(motions.center_velocity[..., k], axis=2),
        )
        rate = np.linalg.norm(turn, axis=2)
        largest = rate.max(axis=1, initial=0.0)
        unit = largest * length
        if not (largest > 0).all():
            continue
        if (
            np.linalg.norm(motions.ends[..., k], axis=2).max(axis=1, initial=0.0)
            > STILLNESS_TOLERANCE * unit
        ).any():
            continue
        turning = (rate > STILLNESS_TOLERANCE * largest[:, None]).any(axis=0)
        if (shift[:, ~turning] > STILLNESS_TOLERANCE * unit[:, None]).any():
            continue
        bodies = np.flatnonzero(turning)
        asymmetry = max(
            (_asymmetry(group, unit) for group in _rigid_groups(motions, inertias, bodies, k)),
            default=0.0,
        )
        if asymmetry < SYMMETRY_TOLERANCE:
            name = assembly.topology.velocity_names[index]
            spinning = tuple(motions.names[b] for b in bodies)
            spins.append(Spin(index=index, name=name, bodies=spinning, asymmetry=asymmetry))
    return tuple(spins)


def _passive_motions(assembly: Assembly, q: np.ndarray) -> np.ndarray:
    """Return velocities (N, n_v, p) per unit of each passive velocity.

    The actuators and the other passive velocities are zero.
    """
    loops, n_v = assembly.loops, assembly.topology.n_v
    _, K = loops.residuals(q)
    fixed = np.concatenate(
        [loops.transmission[list(assembly.leading)], np.eye(n_v)[list(assembly.passive)]]
    )
    hold = np.eye(n_v)[list(assembly.frozen)]
    rest = np.broadcast_to(np.concatenate([fixed, hold]), (len(q), len(fixed) + len(hold), n_v))
    matrix = np.concatenate([loops.scaled(K), rest * loops.velocity_scale], axis=1)
    right = np.zeros((matrix.shape[1], len(assembly.passive)))
    first = K.shape[1] + len(assembly.leading)
    right[first : first + len(assembly.passive)] = np.eye(len(assembly.passive))
    return np.asarray(loops.velocity_scale[:, None] * (np.linalg.pinv(matrix) @ right))


def _body_motions(assembly: Assembly) -> _BodyMotions:
    loops = assembly.loops
    mechanism, topology = loops.mechanism, loops.topology
    motion = symbolic_motion(topology, nominal(mechanism))
    bodies = [body for body in mechanism.bodies if body.name in motion.bodies]
    rotations, centers, turns, shifts = [], [], [], []
    for body in bodies:
        moving = motion.bodies[body.name]
        m, center, _ = _about_center(mechanism, body.name)
        rotations.append(ca.vec(ca.densify(moving.R)))
        centers.append(ca.densify(moving.point(ca.SX(center)).p))
        turns.append(moving.in_base.w)
        shifts.append(moving.point(ca.SX(center)).v if m > 0 else ca.SX(3, 1))
    ends = [motion.point(end).v for rod in mechanism.rods for end in (rod.start, rod.end)]
    jacobians = [
        ca.jacobian(ca.vertcat(ca.SX(0, 1), *rates), motion.v) for rates in (turns, shifts, ends)
    ]
    function = BatchFunction(
        ca.Function(
            "bodies",
            [motion.q],
            [
                ca.vertcat(*rotations),
                ca.vertcat(*centers),
                *(ca.vec(ca.densify(J).T) for J in jacobians),
            ],
        )
    )
    states = assembly.states
    n, D = len(states), _passive_motions(assembly, states)
    R, center, *J = function([states], n)
    turn, shift, end = (
        matrix.reshape(n, matrix.shape[1] // topology.n_v, topology.n_v) @ D for matrix in J
    )
    return _BodyMotions(
        names=tuple(body.name for body in bodies),
        rotation=R.reshape(n, len(bodies), 3, 3).transpose(0, 1, 3, 2),
        center=center.reshape(n, len(bodies), 3),
        angular_velocity=turn.reshape(n, len(bodies), 3, D.shape[2]),
        center_velocity=shift.reshape(n, len(bodies), 3, D.shape[2]),
        ends=end.reshape(n, len(ends), 3, D.shape[2]),
    )


def _about_center(mechanism: Mechanism, name: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, mass center (3,) and moments of inertia (3, 3) about it; zero if massless."""
    inertia = mechanism.body(name).inertia
    if inertia is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    m, h, origin = as_matrices(map(mechanism.value, inertia.parameters))
    return (m, *about_center(m, h, origin)) if m > 0 else (0.0, np.zeros(3), origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Bodies that spin together, at N states.

    Attributes:
        angular_velocity: angular velocity (N, 3) per unit of the spin.
        center_velocity: velocity of the common mass center (N, 3) per unit of the spin.
        inertia: inertia about the common mass center (N, 3, 3), base frame.
    """

    angular_velocity: np.ndarray
    center_velocity: np.ndarray
    inertia: np.ndarray


def _rigid_groups(
    motions: _BodyMotions,
    inertias: dict[str, tuple[float, np.ndarray, np.ndarray]],
    bodies: np.ndarray,
    k: int,
) -> list[_Group]:
    """Return the bodies of a spin grouped by angular velocity.

    For example, a rod may consist of two halves that a loop welds together.
    """
    groups: list[_Group] = []
    remaining = [int(b) for b in bodies if inertias[motions.names[b]][2].any()]
    while remaining:
        turn = motions.angular_velocity[:, remaining[0], :, k]
        size = np.linalg.norm(turn, axis=1).max()
        members = [
            b
            for b in remaining
            if np.abs(motions.angular_velocity[:, b, :, k] - turn).max()
            < STILLNESS_TOLERANCE * size
        ]
        remaining = [b for b in remaining if b not in members]
        mass = np.array([inertias[motions.names[b]][0] for b in members])
        mass_fraction = mass / mass.sum() if mass.any() else np.zeros(len(mass))
        center = np.einsum("b,nbi->ni", mass_fraction, motions.center[:, members])
        inertia = np.zeros((len(turn), 3, 3))
        for m, b in zip(mass, members, strict=True):
            R, d = motions.rotation[:, b], motions.center[:, b] - center
            inertia += R @ inertias[motions.names[b]][2] @ R.transpose(0, 2, 1)
            inertia += m * (
                (d * d).sum(axis=1)[:, None, None] * np.eye(3) - d[:, :, None] * d[:, None, :]
            )
        shift = np.einsum("b,nbi->ni", mass_fraction, motions.center_velocity[..., k][:, members])
        groups.append(_Group(angular_velocity=turn, center_velocity=shift, inertia=inertia))
    return groups


def _asymmetry(group: _Group, unit: np.ndarray) -> float:
    """Return the relative difference of the moments of inertia across the axis of a spin.

    It is infinite if the mass center moves.

    Args:
        group: bodies that spin together.
        unit: rotation (N,) times the machine's characteristic length.
    """
    if (np.linalg.norm(group.center_velocity, axis=1) > AXIS_OFFSET_TOLERANCE * unit).any():
        return np.inf
    size = np.abs(group.inertia).max()
    if size == 0.0:
        return 0.0
    axis = group.angular_velocity / np.maximum(
        np.linalg.norm(group.angular_velocity, axis=1, keepdims=True), 1e-300
    )
    P = np.eye(3) - axis[:, :, None] * axis[:, None, :]
    along = np.einsum("nij,njk,nk->ni", P, group.inertia, axis)
    across = P @ group.inertia @ P
    mean = np.trace(across, axis1=1, axis2=2)[:, None, None] / 2
    return float(max(np.abs(along).max(), np.abs(across - mean * P).max()) / size)


def _with_universal_joints(assembly: Assembly, spins: list[Spin]) -> Mechanism:
    """Return the machine with universal joints in place of ball joints that leave spins free."""
    topology, mechanism, q = assembly.topology, assembly.mechanism, assembly.q
    motions = _body_motions(assembly)
    orientation = {name: motions.rotation[:, b] for b, name in enumerate(motions.names)}
    orientation[BASE] = np.broadcast_to(np.eye(3), (len(assembly.states), 3, 3))
    changed = {}
    for spin in spins:
        ball = next(tree.joint for tree in topology.tree if spin.index in tree.v)
        turn = motions.angular_velocity[
            :, motions.names.index(spin.bodies[0]), :, assembly.passive.index(spin.index)
        ]
        is_child = ball.child.body in spin.bodies
        frame = _axes_across(
            turn, orientation[ball.parent.body if is_child else ball.child.body], is_first=is_child
        )
        changed[ball.name] = replace(
            ball,
            kind="universal",
            parent=_with_axes(ball.parent, orientation[ball.parent.body][0].T @ frame),
            child=_with_axes(ball.child, orientation[ball.child.body][0].T @ frame),
            axes=("x", "y"),
            reference=(0.0, 0.0),
            freedoms=ball.freedoms[:2],
        )
    trees = {tree.joint.name: tree for tree in topology.tree}
    joints = []
    for joint in mechanism.joints:
        if joint.name not in changed and joint.name in trees:
            joint = replace(joint, reference=tuple(map(float, q[list(trees[joint.name].q)])))
        joints.append(changed.get(joint.name, joint))
    return replace(mechanism, joints=tuple(joints))


def _axes_across(turn: np.ndarray, neighbor: np.ndarray, *, is_first: bool) -> np.ndarray:
    """Return axes (3, 3) of a universal joint in the base frame at the reference pose.

    The last axis is that of the spin. The joint cannot lock the spin if its axis on the neighbor is
    parallel to the spin. Therefore this axis is the perpendicular direction to which the link's
    axis never comes close over all states.

    Args:
        turn: angular velocity (N, 3) of the spin, the reference pose first.
        neighbor: orientation (N, 3, 3) of the body on the other side of the joint.
        is_first: whether that body carries the joint's first axis.
    """
    directions = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    axis = directions[0]
    # directions of the spin relative to the neighbor, at its reference orientation
    relative = np.einsum("nji,nj->ni", neighbor, directions) @ neighbor[0].T
    basis = np.linalg.svd(axis[None, :])[2][1:]
    _, vectors = np.linalg.eigh(basis @ relative.T @ relative @ basis.T)
    neighbor_axis = vectors[:, 0] @ basis
    if is_first:
        return np.stack([neighbor_axis, np.cross(axis, neighbor_axis), axis], axis=1)
    return np.stack([np.cross(neighbor_axis, axis), neighbor_axis, axis], axis=1)


def _with_axes(placement: Placement, R: np.ndarray) -> Placement:
    """Return a placement whose axes are the columns of R (3, 3) in its body."""
    return replace(placement, turns=turns_to_axes(R[:, 0].tolist(), R[:, 1].tolist()))
