"""Frames of bodies and rods, to which solids are fixed, at any number of states."""

from __future__ import annotations

import numpy as np

from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.mechanism.links.rigid_tree import first_hinge
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import FramePose


def frames(
    mechanism: Mechanism, geometry: MachineGeometry, reference: MachineGeometry
) -> dict[str, FramePose]:
    """Return the poses of bodies and rods in the base frame at N states, by name.

    A rod's z axis points from its start A to its end B. Its x axis is a fixed direction of its
    start body, projected onto the plane perpendicular to the rod.

    Args:
        mechanism: the machine.
        geometry: geometry at N states.
        reference: geometry at the state at which the fixed direction is chosen; it must be the same
            for all calls.
    """
    shape = geometry.shape
    poses = {
        body.name: FramePose(geometry.rotations[:, i], geometry.origins[:, i])
        for i, body in enumerate(shape.bodies)
    }
    ends = geometry.segments
    for i, segment in enumerate(shape.segments):
        if segment.kind != "rod":
            continue
        A, B = ends[:, i, 0], ends[:, i, 1]
        z = B - A
        z /= np.linalg.norm(z, axis=-1, keepdims=True)
        body = shape.index[segment.bodies[0]]
        rod = mechanism.rod(segment.name)
        rod_direction = np.diff(reference.segments[0, i], axis=0)[0]
        rod_direction = reference.rotations[0, body].T @ rod_direction
        rod_direction /= np.linalg.norm(rod_direction)
        hinge = geometry.rotations[:, body] @ -first_hinge(mechanism, rod, rod_direction)
        x = hinge - z * np.sum(hinge * z, axis=-1, keepdims=True)
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        R = np.stack([x, np.cross(z, x), z], axis=-1)
        # a cable has a telescope but is a single solid, so it needs this pose too
        poses[segment.name] = FramePose(R, A)
        if rod.telescope is not None:
            poses[f"{segment.name}.lower"] = FramePose(R, A)
            poses[f"{segment.name}.upper"] = FramePose(R, B)
    return poses
