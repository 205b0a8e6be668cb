"""Forces that the rigid motion of a machine exerts on its elastic coordinates."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import NODE_FREEDOMS, Array
from tauloop.elasticity.frame.structure import Element
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.structure import MachineStructure
from tauloop.elasticity.machine.telescopic_rods import TelescopicRod
from tauloop.elasticity.vibrations.servo_drives import Terms
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.model import BASE, Mechanism
from tauloop.mechanism.poses import skew
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RigidRates:
    """Motion of all rigid bodies at N times, in the axes of the base.

    Attributes:
        origin: origins (N, 3) of the bodies, by name.
        angular_velocity, angular_acceleration: ω and α (N, 3) of the bodies, by name.
        velocity, acceleration: velocities and accelerations (N, 3) of the origins, by name.
        coordinate_acceleration: accelerations (N,) of all coordinates, by name.
        coordinate_velocity: velocities (N,) of all coordinates, by name.
    """

    origin: Mapping[str, Array]
    angular_velocity: Mapping[str, Array]
    angular_acceleration: Mapping[str, Array]
    velocity: Mapping[str, Array]
    acceleration: Mapping[str, Array]
    coordinate_acceleration: Mapping[str, Array]
    coordinate_velocity: Mapping[str, Array]

    def velocity_at(self, body: str, point: Array) -> Array:
        """Return the velocity (N, 3) of a point (N, 3) that moves with a body."""
        r = point - self.origin[body]
        return np.asarray(self.velocity[body] + np.cross(self.angular_velocity[body], r))

    def acceleration_at(self, body: str, point: Array) -> Array:
        """Return the acceleration (N, 3) of a point (N, 3) that moves with a body."""
        r = point - self.origin[body]
        omega = self.angular_velocity[body]
        centripetal = np.cross(omega, np.cross(omega, r))
        return np.asarray(
            self.acceleration[body] + np.cross(self.angular_acceleration[body], r) + centripetal
        )


class RigidMotion:
    """A compiled function from coordinates to the motion of all bodies of a machine."""

    def __init__(self, mechanism: Mechanism, topology: Topology) -> None:
        """Build the function."""
        self._names = [body.name for body in mechanism.bodies if body.name != BASE]
        self._topology = topology
        q = ca.SX.sym("q", topology.n_q)
        v = ca.SX.sym("v", topology.n_v)
        a = ca.SX.sym("a", topology.n_v)
        motion = tree_motion(topology, nominal(mechanism), Configuration(q, {}), v, a)
        columns = []
        for name in self._names:
            body = motion.bodies[name]
            rates = body.in_base
            columns.append(ca.vertcat(body.p, rates.w, rates.alpha, rates.a, rates.v))
        values = ca.densify(ca.vertcat(ca.SX(0, 1), *columns))
        self._function = BatchFunction(ca.Function("rates", [q, v, a], [values]))

    def at(self, q: Array, v: Array, a: Array) -> RigidRates:
        """Return the motion at coordinates (N, n_q), velocities and accelerations (N, n_v)."""
        count = len(q)
        flat = self._function([q, v, a], count)[0].reshape(count, -1, 5, 3)
        zero = np.zeros((count, 3))

        def by_body(quantity: int) -> dict[str, Array]:
            moving = {name: flat[:, i, quantity] for i, name in enumerate(self._names)}
            return {BASE: zero} | moving

        return RigidRates(
            origin=by_body(0),
            angular_velocity=by_body(1),
            angular_acceleration=by_body(2),
            velocity=by_body(4),
            acceleration=by_body(3),
            coordinate_acceleration=dict(zip(self._topology.velocity_names, a.T, strict=True)),
            coordinate_velocity=dict(zip(self._topology.velocity_names, v.T, strict=True)),
        )


def rigid_motion(model: Model) -> RigidMotion:
    """Return the function of a machine's rigid motion, which is built once per model."""
    return machine_constants(model).stored(
        "rigid motion", lambda: RigidMotion(model.mechanism, model.topology)
    )


def inertia_forces(
    machine: MachineStructure, assembled: AssembledStructure, rates: RigidRates
) -> Array:
    """Return the generalized forces (N, n) that accelerate the undeformed machine.

    The forces follow from the virtual work of the rigid motion on the n elastic coordinates. Bodies
    contribute Bᵀ (I [a; α] + [ω×(ω×h); ω×Jω]), with the map B from the coordinates to the twist of
    the body, its spatial inertia I, first moment h and moments of inertia J. Elements, whose
    acceleration is linear along their axis, contribute Eᵀ M a, with the map E from the coordinates
    to those of the element. For telescopic rods see `TelescopicRod.acceleration`.

    Args:
        machine: bodies, joints and elements at N poses.
        assembled: the same structure in minimal coordinates.
        rates: rigid motion at the same poses.
    """
    total = np.zeros((assembled.samples, assembled.size))
    for body in machine.structure.bodies:
        if body.inertia is None:
            continue
        carrier = machine.carried_by[body.name]
        I = np.asarray(body.inertia)
        omega = rates.angular_velocity[carrier]
        alpha = rates.angular_acceleration[carrier]
        twist = np.concatenate([rates.acceleration_at(carrier, body.origin), alpha], axis=-1)
        h = first_moment(I)
        spin = np.cross(omega, np.einsum("...ij,...j->...i", I[..., 3:, 3:], omega))
        gyroscopic = np.concatenate([np.cross(omega, np.cross(omega, h)), spin], axis=-1)
        wrench = np.einsum("...ij,...j->...i", I, twist) + gyroscopic
        total += np.einsum("nki,nk->ni", assembled.body_motion[body.name], wrench)
    for element, motion in zip(machine.structure.elements, assembled.element_motion, strict=True):
        M = element.matrices.mass
        rod = machine.telescopes.get(element.name)
        if rod is not None:
            total += np.einsum("nki,nk->ni", motion, rod_inertia_forces(machine, rod, rates))
        elif M.any():
            local = element_acceleration(machine, element, rates)
            force = np.einsum("...ij,...j->...i", M, local)
            total += np.einsum("nki,nk->ni", motion, force)
    for joint, motion in zip(machine.structure.joints, assembled.joint_motion, strict=True):
        if joint.inertia is None:
            continue
        for index in np.flatnonzero(joint.inertia.diagonal()):
            terms = machine.rotors.get(joint.names[index], ((joint.names[index], 1.0),))
            acceleration = coordinate_sum(rates.coordinate_acceleration, terms)
            force = joint.inertia[index, index] * acceleration
            total += motion[:, index] * force[:, None]
    return total


def coordinate_sum(values: Mapping[str, Array], terms: Terms) -> Array:
    """Return a linear combination (N,) of velocities or accelerations of coordinates.

    Args:
        values: velocities or accelerations (N,) by coordinate.
        terms: names of coordinates and their factors.

    Raises:
        InputError: a coordinate belongs to a joint that closes a loop.
    """
    for name, _ in terms:
        if name not in values:
            what = "this joint closes a loop, and has an inertia or a motor"
            remedy = "give the inertia to a body, or cut the loop at another joint"
            raise InputError.of(f"joints.{name}", what, remedy)
    return np.sum([factor * values[name] for name, factor in terms], axis=0)


def rod_inertia_forces(machine: MachineStructure, rod: TelescopicRod, rates: RigidRates) -> Array:
    """Return the forces (N, k) that accelerate a telescopic rod, in its element's coordinates."""
    ends = [
        (machine.carried_by.get(body, BASE), np.broadcast_to(point, (len(rod.lengths), 3)))
        for body, point in zip(rod.bodies, rod.ends, strict=True)
    ]
    velocities = (rates.velocity_at(*ends[0]), rates.velocity_at(*ends[1]))
    accelerations = (rates.acceleration_at(*ends[0]), rates.acceleration_at(*ends[1]))
    local = rod.acceleration(velocities, accelerations) @ rod.axes
    weighted = rod.masses[:, None] * local
    return np.asarray(np.einsum("npxk,npx->nk", rod.shapes, weighted))


def first_moment(inertia: Array) -> Array:
    """Return the first moment of mass h (..., 3) in a spatial inertia (..., 6, 6)."""
    block = inertia[..., 3:, :3]
    return np.stack([block[..., 2, 1], block[..., 0, 2], block[..., 1, 0]], axis=-1)


def element_acceleration(machine: MachineStructure, element: Element, rates: RigidRates) -> Array:
    """Return the acceleration (N, k) of an undeformed element in its own coordinates."""
    points = [
        rates.acceleration_at(machine.carried_by.get(item.body, BASE), item.point)
        for item in element.attachments
    ]
    samples = len(points[0])
    if element.beam is None:
        # A reduced finite-element model belongs to a single body.
        carrier = machine.carried_by.get(element.attachments[0].body, BASE)
        angular = rates.angular_acceleration[carrier]
    else:
        angular = _beam_angular_acceleration(machine, element, rates, points)
    columns = []
    for item, point in zip(element.attachments, points, strict=True):
        to_local = np.swapaxes(item.axes, -1, -2)
        local = [np.einsum("...ij,...j->...i", to_local, vector) for vector in (point, angular)]
        columns.append(np.concatenate(local, axis=-1)[..., list(item.freedoms)])
    columns.append(np.zeros((samples, element.internal)))
    return np.concatenate(columns, axis=-1)


def _beam_angular_acceleration(
    machine: MachineStructure, element: Element, rates: RigidRates, points: list[Array]
) -> Array:
    """Return the angular acceleration (N, 3) of the line between the ends of a beam.

    Args:
        machine: the machine at N poses.
        element: the beam.
        rates: rigid motion at the same poses.
        points: accelerations (N, 3) of the two ends.
    """
    first, last = element.attachments
    line = last.point - first.point
    length = np.linalg.norm(line, axis=-1, keepdims=True)
    direction = line / length
    transverse = np.cross(direction, points[1] - points[0]) / length
    carrier = machine.carried_by.get(first.body, BASE)
    spin = np.sum(direction * rates.angular_acceleration[carrier], axis=-1, keepdims=True)
    return np.asarray(transverse + spin * direction)


def velocity_terms(
    machine: MachineStructure, rates: RigidRates, body: str, inertia: Array
) -> Array:
    """Return the matrix (N, 6, 6) from a rotating body's elastic velocity to its Coriolis forces.

    Particles at c from the origin move by δr = u + θ × c, so that δr̈ contains 2 θ̇ × (ω × c). This
    gives the force -2 S(ω × h) θ̇ and the moment -2 S(ω) Σ m c cᵀ θ̇.

    Args:
        machine: the machine at N poses.
        rates: rigid motion at the same poses.
        body: name of a body or node of the structure.
        inertia: spatial inertia (..., 6, 6) of the body about its origin.
    """
    omega = rates.angular_velocity[machine.carried_by[body]]
    J = inertia[..., 3:, 3:]
    second = 0.5 * np.trace(J, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J
    matrix = np.zeros((len(omega), NODE_FREEDOMS, NODE_FREEDOMS))
    matrix[:, :3, 3:] = -2.0 * skew(np.cross(omega, first_moment(inertia)))
    matrix[:, 3:, 3:] = -2.0 * skew(omega) @ second
    return matrix
