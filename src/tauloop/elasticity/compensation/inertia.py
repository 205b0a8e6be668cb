"""Forces of inertia on the structure of a machine that moves."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import Element, RigidBody
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.structure import MachineStructure
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.tree import Configuration, tree_motion
from tauloop.equations.values import BatchFunction
from tauloop.mechanism.model import BASE
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _BodyMotion:
    """Motion of a body at N samples in the axes of the base, each (N, 3).

    Attributes:
        origin: its origin, m.
        turning: angular velocity, rad/s.
        turning_rate: angular acceleration, rad/s^2.
        acceleration: acceleration of its origin, m/s^2.
    """

    origin: Array
    turning: Array
    turning_rate: Array
    acceleration: Array

    def at(self, point: Array) -> Array:
        """Return the acceleration (N, 3) of a point (N, 3) of the body, m/s^2."""
        arm = point - self.origin
        centripetal = np.cross(self.turning, np.cross(self.turning, arm))
        return np.asarray(self.acceleration + np.cross(self.turning_rate, arm) + centripetal)


def inertia_load(
    model: Model,
    built: MachineStructure,
    assembled: AssembledStructure,
    state: tuple[Array, Array, Array],
) -> Array:
    """Return the generalized forces (N, n) of the inertia of bodies, elements and joints.

    The parts move as the rigid machine does. The acceleration changes linearly along a beam or rod,
    which the mass matrix of its ends represents without error. Parts of a telescopic rod are
    treated like one of constant length.

    Args:
        model: the machine.
        built: its structure.
        assembled: the same in minimal coordinates.
        state: coordinates (N, n_q), velocities and accelerations (N, n_v).
    """
    motions = _body_motions(model, state)
    load = np.zeros((assembled.samples, assembled.size))
    for body in assembled.structure.bodies:
        if body.inertia is not None:
            motion = motions[built.carried_by.get(body.name, body.name)]
            wrench = _body_wrench(body, motion)
            load -= np.einsum("...ki,...k->...i", assembled.body_motion[body.name], wrench)
    for element, rows in zip(assembled.structure.elements, assembled.element_motion, strict=True):
        rate = _element_acceleration(element, built, motions)
        force = (element.matrices.mass @ rate[..., None])[..., 0]
        load -= np.einsum("...ki,...k->...i", rows, force)
    index = {name: i for i, name in enumerate(model.topology.velocity_names)}
    for joint, rows in zip(assembled.structure.joints, assembled.joint_motion, strict=True):
        if joint.inertia is None:
            continue
        columns = [index.get(name) for name in joint.names]
        rates = [
            np.zeros(assembled.samples) if column is None else state[2][:, column]
            for column in columns
        ]
        force = np.stack(rates, axis=-1) @ joint.inertia
        load -= np.einsum("...ki,...k->...i", rows, force)
    return load


def _body_motions(model: Model, state: tuple[Array, Array, Array]) -> dict[str, _BodyMotion]:
    """Return the motion of all bodies by name."""
    function, names = machine_constants(model).stored("motion", lambda: _motion_function(model))
    q, v, a = (np.ascontiguousarray(part) for part in state)
    (flat,) = function([q, v, a], len(q))
    values = flat.reshape(len(q), len(names), 4, 3)
    zero = np.zeros((len(q), 3))
    motions = {
        name: _BodyMotion(
            origin=values[:, i, 0],
            turning=values[:, i, 1],
            turning_rate=values[:, i, 2],
            acceleration=values[:, i, 3],
        )
        for i, name in enumerate(names)
    }
    motions[BASE] = _BodyMotion(origin=zero, turning=zero, turning_rate=zero, acceleration=zero)
    return motions


def _motion_function(model: Model) -> tuple[BatchFunction, tuple[str, ...]]:
    """Return the function (q, v, a) -> origin, ω, α and acceleration of each body, and their names."""
    topology, mechanism = model.topology, model.mechanism
    q, v, a = (
        ca.SX.sym(name, size)
        for name, size in (("q", topology.n_q), ("v", topology.n_v), ("a", topology.n_v))
    )
    motion = tree_motion(topology, nominal(mechanism), Configuration(q, {}), v, a)
    names = tuple(body.name for body in mechanism.bodies if body.name != BASE)
    columns = [ca.SX(0, 1)]
    for name in names:
        body = motion.bodies[name]
        columns += [body.p, body.in_base.w, body.in_base.alpha, body.in_base.a]
    outputs = ca.densify(ca.vertcat(*columns))
    return BatchFunction(ca.Function("motion", [q, v, a], [outputs])), names


def _body_wrench(body: RigidBody, motion: _BodyMotion) -> Array:
    """Return the force and moment (N, 6) about a body's origin that its acceleration needs.

    [m a + α × h + ω × (ω × h); h × a + J α + ω × J ω], with the first moment h.
    """
    inertia = np.asarray(body.inertia)
    turning = motion.turning
    h = np.stack([inertia[..., 5, 1], inertia[..., 3, 2], inertia[..., 4, 0]], axis=-1)
    rate = np.concatenate([motion.at(body.origin), motion.turning_rate], axis=-1)
    wrench = (inertia @ rate[..., None])[..., 0]
    spin = (inertia[..., 3:, 3:] @ turning[..., None])[..., 0]
    bias = [np.cross(turning, np.cross(turning, h)), np.cross(turning, spin)]
    return np.asarray(wrench + np.concatenate(bias, axis=-1))


def _element_acceleration(
    element: Element, built: MachineStructure, motions: dict[str, _BodyMotion]
) -> Array:
    """Return the accelerations (N, k) of an element's coordinates.

    A beam's ends turn with its line of accelerations a + s (α × e + ω × (ω × e)), whose slope is
    α + (ω · e) (e × ω).
    """
    parts = []
    ends = [np.asarray(attachment.point) for attachment in element.attachments]
    for attachment in element.attachments:
        motion = motions[built.carried_by.get(attachment.body, attachment.body)]
        linear, angular = motion.at(attachment.point), motion.turning_rate
        if element.beam is not None:
            along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0], axis=-1, keepdims=True)
            spin = np.sum(motion.turning * along, axis=-1, keepdims=True)
            angular = angular + spin * np.cross(along, motion.turning)
        back = np.swapaxes(attachment.axes, -1, -2)
        both = [(back @ part[..., None])[..., 0] for part in (linear, angular)]
        parts.append(np.concatenate(both, axis=-1)[..., list(attachment.freedoms)])
    parts.append(np.zeros((*parts[0].shape[:-1], element.internal)))
    return np.concatenate(parts, axis=-1)
