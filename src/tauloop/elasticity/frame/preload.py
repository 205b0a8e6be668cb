"""Geometric stiffness: the change of a structure's stiffness due to internal forces and loads.

The potential of all forces is expanded to second order in the coordinates, at a pose in which the
forces are in equilibrium. A force f on a point r of a body adds f · ½ θ × (θ × r). An axial force P
in a beam adds the lateral stiffness P / L between its ends, and the geometric stiffness of its
bending. Forces keep their direction. End moments are included to first order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.statics import axial_forces, end_loads
from tauloop.elasticity.frame.structure import transport
from tauloop.mechanism.poses import skew


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeadLoad:
    """A force and a moment that act at a point of a body and keep their direction.

    Attributes:
        body: name of the body.
        point: (N, 3) or (3,) position in the base frame, m.
        wrench: (N, 6) or (6,) force and moment in the axes of the base, N and N m.
    """

    body: str
    point: Array
    wrench: Array


def preload_stiffness(
    assembled: AssembledStructure,
    displacement: Array,
    gravity: Array,
    loads: tuple[DeadLoad, ...] = (),
    internal: Mapping[str, Array] | None = None,
) -> Array:
    """Return the geometric stiffness (N, n, n); if rigid parts close loops, only that of beams.

    Args:
        assembled: the structure.
        displacement: (N, n) displacement due to these loads.
        gravity: (3,) acceleration in the axes of the base, m/s^2.
        loads: loads in addition to the weight.
        internal: additional loads (N, external) on the attachments of elements, by name, which are
            in equilibrium, such as thermal loads.
    """
    if assembled.constraints:
        at_ends = _end_loads(assembled, displacement, gravity, internal)
        return assembled.geometric(axial_forces(assembled, at_ends))
    return geometric_stiffness(assembled, displacement, gravity, loads, internal)


def geometric_stiffness(
    assembled: AssembledStructure,
    displacement: Array,
    gravity: Array,
    loads: tuple[DeadLoad, ...] = (),
    internal: Mapping[str, Array] | None = None,
) -> Array:
    """Return the geometric stiffness (N, n, n) of a loaded structure.

    The pose of the structure is the equilibrium under the loads.

    Args:
        assembled: the structure.
        displacement: (N, n) displacement due to these loads.
        gravity: (3,) acceleration in the axes of the base, m/s^2.
        loads: loads in addition to the weight.
        internal: additional loads (N, external) on the attachments of elements, by name, which are
            in equilibrium, such as thermal loads.

    Raises:
        InputError: closed loops of rigid joints, rigid links or gears constrain the coordinates.
    """
    if assembled.constraints:
        what = f"{assembled.constraints} rigid constraints close loops of this structure"
        remedy = "give elastic data to a rod, a body or a joint of each loop"
        raise InputError.of("structure", what, remedy)
    at_ends = _end_loads(assembled, displacement, gravity, internal)
    total = assembled.geometric(axial_forces(assembled, at_ends))
    forces = _BodyForces(assembled)
    for element in assembled.structure.elements:
        offset = 0
        for attachment in element.attachments:
            size = len(attachment.freedoms)
            local = np.zeros((assembled.samples, 6))
            local[:, list(attachment.freedoms)] = at_ends[element.name][..., offset : offset + size]
            offset += size
            wrench = np.concatenate(
                [_in_base(attachment.axes, local[:, :3]), _in_base(attachment.axes, local[:, 3:])],
                axis=-1,
            )
            forces.add(attachment.body, attachment.point, wrench)
    for load in loads:
        forces.add(load.body, load.point, -load.wrench)
    for body in assembled.structure.bodies:
        if body.inertia is not None:
            inertia = np.asarray(body.inertia)
            weight = inertia[..., :3, :3] @ gravity
            # The block S(h) of the inertia contains the first moment of mass h.
            moment = inertia[..., 3:, :3]
            h = np.stack([moment[..., 2, 1], moment[..., 0, 2], moment[..., 1, 0]], axis=-1)
            mass = inertia[..., 0, 0][..., None]
            center = np.divide(h, mass, out=np.zeros_like(h), where=mass > 0.0)
            wrench = np.concatenate([weight, np.zeros_like(weight)], axis=-1)
            forces.add(body.name, body.origin + center, -wrench)
    total += forces.second_derivative()
    total += _joint_stiffness(assembled, forces.gradients)
    return np.asarray(0.5 * (total + np.swapaxes(total, -1, -2)))


def _end_loads(
    assembled: AssembledStructure,
    displacement: Array,
    gravity: Array,
    internal: Mapping[str, Array] | None,
) -> dict[str, Array]:
    """Return the loads (N, external) on the attachments of each element, by name."""
    at_ends = end_loads(assembled, displacement, gravity)
    for name, load in (internal or {}).items():
        at_ends[name] = at_ends[name] + load
    return at_ends


def _in_base(axes: Array, vector: Array) -> Array:
    """Return vectors (N, 3) in the axes of the base, from components in local axes (N, 3, 3)."""
    return np.asarray((axes @ vector[..., None])[..., 0])


class _BodyForces:
    """Sums of the forces on points of each body.

    Attributes:
        gradients: gradients (N, 6) of the potential with respect to the twists of the bodies'
            origins, by name.
    """

    def __init__(self, assembled: AssembledStructure) -> None:
        """Start without forces."""
        self.assembled = assembled
        samples = assembled.samples
        self.gradients = {name: np.zeros((samples, 6)) for name in assembled.body_motion}
        self._hessians = {name: np.zeros((samples, 3, 3)) for name in assembled.body_motion}

    def add(self, body: str, point: Array, wrench: Array) -> None:
        """Add a force and a moment at a point.

        Args:
            body: name of the body.
            point: (N, 3) or (3,) position in the base frame, m.
            wrench: (N, 6) or (6,) gradient of the potential with respect to the point's twist.
        """
        arm = point - self.assembled.origin(body)
        force, moment = wrench[..., :3], wrench[..., 3:]
        self.gradients[body][:, :3] += force
        self.gradients[body][:, 3:] += moment + np.cross(arm, force)
        self._hessians[body] += _rotation_hessian(force, arm)

    def second_derivative(self) -> Array:
        """Return the second derivative (N, n, n) of the potential due to the bodies' rotations."""
        size = self.assembled.size
        total = np.zeros((self.assembled.samples, size, size))
        for body, hessian in self._hessians.items():
            theta = self.assembled.body_motion[body][:, 3:]
            if hessian.any() and theta.any():
                total += np.swapaxes(theta, -1, -2) @ (hessian @ theta)
        return total


def _rotation_hessian(force: Array, arm: Array) -> Array:
    """Return the Hessian (..., 3, 3) of f · ½ θ × (θ × r) with respect to θ.

    It follows from f · θ × (θ × r) = (θ · f) (θ · r) - θ² (f · r).

    Args:
        force, arm: f and r (..., 3).
    """
    outer = force[..., :, None] * arm[..., None, :]
    inner = np.sum(force * arm, axis=-1)[..., None, None]
    return np.asarray(0.5 * (outer + np.swapaxes(outer, -1, -2)) - inner * np.eye(3))


def _quadratic(theta: Array, force: Array, arm: Array) -> Array:
    """Return the Hessian (N, n, n) of f · ½ θ × (θ × r) with respect to the coordinates.

    Args:
        theta: matrix (N, 3, n) from the coordinates to the rotation θ.
        force, arm: f and r (N, 3).
    """
    if not theta.any():
        return np.zeros(())
    return np.asarray(np.swapaxes(theta, -1, -2) @ (_rotation_hessian(force, arm) @ theta))


def _joint_stiffness(assembled: AssembledStructure, gradients: Mapping[str, Array]) -> Array:
    """Return the second derivative (N, n, n) of the potential due to motions of the tree's joints.

    The second-order motion of the far body's origin is
    δ²p = ½ θ×(θ×R) + θ×a + ½ b×(b×r) + θ×(b×r), and its second-order rotation is δ²θ = ½ θ×b. Here
    θ is the rotation of the near body, a and b are translation and rotation of the joint, r is the
    vector from the joint to the far body's origin, and R the vector from the near body's origin to
    the far body's origin.
    """
    size = assembled.size
    total = np.zeros((assembled.samples, size, size))
    # Gradients of the potential with respect to a body's twist, including the bodies beyond it.
    totals = dict(gradients)
    for joint, near, far in reversed(assembled.tree):
        gradient = totals[far]
        force, moment = gradient[:, :3], gradient[:, 3:]
        near_motion, far_motion = assembled.body_motion[near], assembled.body_motion[far]
        r = np.broadcast_to(assembled.origin(far) - joint.point, force.shape)
        R = np.broadcast_to(assembled.origin(far) - assembled.origin(near), force.shape)
        relative = (
            transport(joint.point - assembled.origin(far)) @ far_motion
            - transport(joint.point - assembled.origin(near)) @ near_motion
        )
        theta, a, b = near_motion[:, 3:], relative[:, :3], relative[:, 3:]
        total += _quadratic(theta, force, R) + _quadratic(b, force, r)
        # f · θ × c = θᵀ (c × f) = -θᵀ S(f) c
        translation = a - skew(r) @ b
        mixed = -np.swapaxes(theta, -1, -2) @ skew(force) @ translation
        mixed -= 0.5 * np.swapaxes(theta, -1, -2) @ skew(moment) @ b
        total += mixed + np.swapaxes(mixed, -1, -2)
        to_near = np.swapaxes(transport(R), -1, -2)
        totals[near] = totals[near] + (to_near @ gradient[..., None])[..., 0]
    return total
