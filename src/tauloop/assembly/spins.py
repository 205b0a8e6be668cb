"""Freedoms that are held on request: coordinates by name, and the spins of axisymmetric bodies.

A body that turns about an axis of symmetry of its own mass, through joints that leave this turn free, moves nothing: a
rod between two balls, for one. Its spin is a passive freedom, felt by the rest only through its own momentum.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from tauloop.assembly.assembly import Assembly, assemble
from tauloop.assembly.locks import Locks
from tauloop.assembly.loops import Loops, loops, nominal
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, symbolic_motion, tree_motion
from tauloop.equations.values import BatchFunction
from tauloop.errors import InputError
from tauloop.mechanism.bodies import about_center, as_matrices
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import AxisName, Mechanism, Placement, Turn
from tauloop.mechanism.suggestions import unknown_names
from tauloop.records import dataclass

#: A spin moves the centre of mass, and turns away from the axis, by less than this share of what the turn itself is.
STILL = 1e-6
#: Moments of inertia across the axis of symmetry agree to this share.
SYMMETRIC = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Spin:
    """A passive freedom that is the spin of axisymmetric bodies.

    Attributes:
        index: of the passive velocity.
        name: its name.
        bodies: the bodies that spin with it.
    """

    index: int
    name: str
    bodies: tuple[str, ...]


def assemble_locked(loops_of_file: Loops, locks: Locks) -> Assembly:
    """Assemble a machine and hold what is to be held.

    A spin that has a coordinate of its own is held there. The spin of a body on a ball joint is held by a universal
    joint in its place, both axes across the spin at the reference pose; the assembly has the changed mechanism.

    Raises:
        AssemblyError: the loops cannot be closed.
        InputError: a name is not a velocity, or not the rate of a coordinate of its own.
    """
    current, names = loops_of_file, list(locks.names)
    _require_scalar(current.topology, locks.names)
    assembly = assemble(current, _indices(current, names))
    if not locks.spins:
        return assembly
    for _ in range(len(assembly.passive)):
        spins = find_spins(assembly)
        if not spins:
            break
        names += [spin.name for spin in spins if current.topology.q_of_v[spin.index] >= 0]
        balls = [spin for spin in spins if current.topology.q_of_v[spin.index] < 0]
        if balls:
            current = loops(_with_universal_joint(assembly, balls[0]))
        assembly = assemble(current, _indices(current, names))
    return assembly


def _indices(loops: Loops, names: list[str]) -> tuple[int, ...]:
    return tuple(loops.topology.velocity_names.index(name) for name in names)


def _require_scalar(topology: Topology, names: tuple[str, ...]) -> None:
    known = [name for name, i in zip(topology.velocity_names, topology.q_of_v, strict=True) if i >= 0]
    what, remedy = "is not the rate of a coordinate of its own", f"lock one of {', '.join(known)}"
    InputError.raise_if_any(unknown_names(names, known, what, "locks.{}", remedy))


@dataclass(frozen=True, slots=True, kw_only=True)
class _BodyMotions:
    """Orientation (N, k, 3, 3), turn and shift of the mass centre per unit of each passive freedom (N, k, 3, p).

    Attributes:
        names: bodies (k,).
        rotation, turn, shift: of these bodies; massless ones shift nothing.
        ends: shift of the ends of all rods (N, r, 3, p).
    """

    names: tuple[str, ...]
    rotation: np.ndarray
    turn: np.ndarray
    shift: np.ndarray
    ends: np.ndarray


def find_spins(assembly: Assembly) -> tuple[Spin, ...]:
    """The passive freedoms that turn axisymmetric bodies about their axes and move nothing else, at all states."""
    if not assembly.passive:
        return ()
    moved = _body_motions(assembly)
    mechanism, length = assembly.mechanism, assembly.loops.length
    inertias = {name: _about_center(mechanism, name) for name in moved.names}
    spins = []
    for k, index in enumerate(assembly.passive):
        turn, shift = moved.turn[..., k], moved.shift[..., k]
        rate = np.linalg.norm(turn, axis=2)
        largest = rate.max(axis=1, initial=0.0)
        still = STILL * largest * length
        if not (largest > 0).all() or (np.linalg.norm(shift, axis=2).max(axis=1, initial=0.0) > still).any():
            continue
        if (np.linalg.norm(moved.ends[..., k], axis=2).max(axis=1, initial=0.0) > still).any():
            continue
        turning = [b for b in range(len(moved.names)) if (rate[:, b] > STILL * largest).any()]
        axes = np.einsum("nbji,nbj->nbi", moved.rotation, turn) / np.maximum(rate, 1e-300)[..., None]
        if all(_is_axisymmetric(inertias[moved.names[b]], axes[:, b]) for b in turning):
            name = assembly.topology.velocity_names[index]
            spins.append(Spin(index=index, name=name, bodies=tuple(moved.names[b] for b in turning)))
    return tuple(spins)


def _passive_motions(assembly: Assembly, q: np.ndarray) -> np.ndarray:
    """Velocities (N, n_v, p) per unit of each passive freedom, the actuators and the other passive freedoms at rest."""
    loops, n_v = assembly.loops, assembly.topology.n_v
    _, K = loops.residuals(q)
    fixed = np.concatenate([loops.transmission[list(assembly.leading)], np.eye(n_v)[list(assembly.passive)]])
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
    rotations, turns, shifts = [], [], []
    for body in bodies:
        moving = motion.bodies[body.name]
        m, center, _ = _about_center(mechanism, body.name)
        rotations.append(ca.vec(ca.densify(moving.R)))
        turns.append(moving.in_base.w)
        shifts.append(moving.point(ca.SX(center)).v if m > 0 else ca.SX(3, 1))
    ends = [motion.point(end).v for rod in mechanism.rods for end in (rod.start, rod.end)]
    jacobians = [ca.jacobian(ca.vertcat(ca.SX(0, 1), *rates), motion.v) for rates in (turns, shifts, ends)]
    function = BatchFunction(
        ca.Function("bodies", [motion.q], [ca.vertcat(*rotations), *(ca.vec(ca.densify(J).T) for J in jacobians)])
    )
    states = assembly.states
    n, D = len(states), _passive_motions(assembly, states)
    R, *J = function([states], n)
    turn, shift, end = (matrix.reshape(n, matrix.shape[1] // topology.n_v, topology.n_v) @ D for matrix in J)
    return _BodyMotions(
        names=tuple(body.name for body in bodies),
        rotation=R.reshape(n, len(bodies), 3, 3).transpose(0, 1, 3, 2),
        turn=turn.reshape(n, len(bodies), 3, D.shape[2]),
        shift=shift.reshape(n, len(bodies), 3, D.shape[2]),
        ends=end.reshape(n, len(ends), 3, D.shape[2]),
    )


def _about_center(mechanism: Mechanism, name: str) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, mass centre (3,) in the body, and moments of inertia (3, 3) about it; zero for a massless body."""
    inertia = mechanism.body(name).inertia
    if inertia is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    m, h, origin = as_matrices(map(mechanism.value, inertia.parameters))
    return (m, *about_center(m, h, origin)) if m > 0 else (0.0, np.zeros(3), origin)


def _is_axisymmetric(inertia: tuple[float, np.ndarray, np.ndarray], axes: np.ndarray) -> bool:
    """Whether turns about any of the axes (N, 3) through the mass centre leave the mass where it is."""
    about_center = inertia[2]
    size = np.abs(about_center).max()
    if size == 0.0:
        return True
    P = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    along = np.einsum("nij,jk,nk->ni", P, about_center, axes)
    across = P @ about_center @ P
    mean = np.trace(across, axis1=1, axis2=2)[:, None, None] / 2
    return bool(np.abs(along).max() < SYMMETRIC * size and np.abs(across - mean * P).max() < SYMMETRIC * size)


def _with_universal_joint(assembly: Assembly, spin: Spin) -> Mechanism:
    """The machine at its assembled pose with a universal joint for the ball joint that leaves a spin free."""
    topology, mechanism, q = assembly.topology, assembly.mechanism, assembly.q
    at_rest = ca.SX(topology.n_v, 1)
    motion = tree_motion(topology, nominal(mechanism), Configuration(ca.SX(ca.DM(q)), {}), at_rest, at_rest)
    ball = next(tree for tree in topology.tree if spin.index in tree.v)

    def orientation(name: str) -> np.ndarray:
        return np.array(ca.DM(motion.bodies[name].R))

    moved = _body_motions(assembly)
    k, b = assembly.passive.index(spin.index), moved.names.index(spin.bodies[0])
    axis = moved.turn[0, b, :, k] / np.linalg.norm(moved.turn[0, b, :, k])
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    frame = np.stack([first, np.cross(axis, first), axis], axis=1)

    def turned(placement: Placement) -> Placement:
        from scipy.spatial.transform import Rotation  # all of scipy.spatial, for a rare case

        angles = Rotation.from_matrix(orientation(placement.body).T @ frame).as_euler("XYZ")
        letters: tuple[AxisName, ...] = ("x", "y", "z")
        turns = tuple(Turn(letter, Constant(float(x))) for letter, x in zip(letters, angles, strict=True))
        return replace(placement, turns=turns)

    joints = []
    for joint in mechanism.joints:
        tree = next((tree for tree in topology.tree if tree.joint.name == joint.name), None)
        if tree is ball:
            changed = replace(
                joint, kind="universal", parent=turned(joint.parent), child=turned(joint.child), axes=("x", "y")
            )
            joints.append(replace(changed, reference=(0.0, 0.0), freedoms=joint.freedoms[:2]))
        else:
            joints.append(joint if tree is None else replace(joint, reference=tuple(map(float, q[list(tree.q)]))))
    return replace(mechanism, joints=tuple(joints))
