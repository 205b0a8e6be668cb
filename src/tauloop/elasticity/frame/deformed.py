"""The geometry of a deformed structure, whose bodies have moved by small twists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import (
    Attachment,
    ElasticJoint,
    Element,
    RigidBody,
    RigidLink,
    Structure,
    beam_axes,
)
from tauloop.mechanism.model import BASE
from tauloop.mechanism.poses import skew


def deformed_structure(structure: Structure, twists: Mapping[str, Array]) -> Structure:
    """Return a structure whose bodies have moved by small twists.

    Points move with their bodies to p + u + θ × r + ½ θ × (θ × r). Axes of joints rotate with their
    parent. The axis of an element with two ends points from one end to the other. Local stiffnesses
    do not change.

    Args:
        structure: the structure at N poses.
        twists: twists (N, 6) of the bodies' origins, by name.
    """
    displaced = _DisplacedBodies(structure, twists)
    return replace(
        structure,
        bodies=tuple(displaced.body(body) for body in structure.bodies),
        joints=tuple(displaced.joint(joint) for joint in structure.joints),
        elements=tuple(displaced.element(element) for element in structure.elements),
        links=tuple(displaced.link(link) for link in structure.links),
    )


class _DisplacedBodies:
    """Bodies that are displaced by twists, to second order."""

    def __init__(self, structure: Structure, twists: Mapping[str, Array]) -> None:
        """Store origins and second-order rotations 1 + S + S² / 2."""
        self.origins = {body.name: body.origin for body in structure.bodies}
        self.twists = twists
        self.rotations = {}
        for name, twist in twists.items():
            S = skew(twist[:, 3:])
            self.rotations[name] = np.eye(3) + S + 0.5 * S @ S

    def point(self, body: str, point: Array) -> Array:
        """Return the displaced position (N, 3) of a point of a body."""
        if body == BASE:
            return point
        arm = np.broadcast_to(point - self.origins[body], self.twists[body][:, :3].shape)
        rotated_arm = (self.rotations[body] @ arm[..., None])[..., 0]
        return np.asarray(self.origins[body] + self.twists[body][:, :3] + rotated_arm)

    def rotated(self, body: str, vectors: Array) -> Array:
        """Return the rotated columns (N, 3, k) of vectors that are fixed to a body."""
        return vectors if body == BASE else np.asarray(self.rotations[body] @ vectors)

    def body(self, body: RigidBody) -> RigidBody:
        """Return a displaced body."""
        inertia = body.inertia
        if inertia is not None:
            R = self.rotations[body.name]
            twist_rotation = np.zeros((*R.shape[:-2], 6, 6))
            twist_rotation[..., :3, :3] = R
            twist_rotation[..., 3:, 3:] = R
            inertia = twist_rotation @ inertia @ np.swapaxes(twist_rotation, -1, -2)
        return replace(body, origin=self.point(body.name, body.origin), inertia=inertia)

    def joint(self, joint: ElasticJoint) -> ElasticJoint:
        """Return a displaced joint."""
        motion = np.concatenate(
            [
                self.rotated(joint.parent, joint.motion[..., :3, :]),
                self.rotated(joint.parent, joint.motion[..., 3:, :]),
            ],
            axis=-2,
        )
        return replace(joint, point=self.point(joint.child, joint.point), motion=motion)

    def element(self, element: Element) -> Element:
        """Return a displaced element."""
        points = [self.point(item.body, item.point) for item in element.attachments]
        if len(points) == 2:
            first = element.attachments[0]
            across = self.rotated(first.body, np.asarray(first.axes))[..., 2]
            axes = [beam_axes(points[0], points[1], across)] * 2
        else:
            axes = [self.rotated(item.body, np.asarray(item.axes)) for item in element.attachments]
        attachments = tuple(
            Attachment(body=item.body, point=point, axes=local_axes, freedoms=item.freedoms)
            for item, point, local_axes in zip(element.attachments, points, axes, strict=True)
        )
        return replace(element, attachments=attachments)

    def link(self, link: RigidLink) -> RigidLink:
        """Return a displaced rigid link."""
        start, end = (
            self.point(body, point) for body, point in zip(link.bodies, link.points, strict=True)
        )
        return replace(link, points=(start, end))
