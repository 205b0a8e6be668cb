"""Frames of bodies and rods, to which solids are fixed, at any number of states."""

from __future__ import annotations

import numpy as np

from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import FramePose
from tauloop.mechanism.rigid_tree import first_hinge


def frames(
    mechanism: Mechanism, geometry: MachineGeometry, reference: MachineGeometry
) -> dict[str, FramePose]:
    """Return the poses of bodies and rods in the base frame at N states, by name.

    A rod's z points from A to B. Its x is a fixed direction of its start body without the component
    along the rod. The result is by name.

    Args:
        mechanism: the machine.
        geometry: at N states.
        reference: at the state at which that direction is chosen, the same for all calls.
    """
    shape = geometry.shape
    placed = {
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
        along = reference.rotations[0, body].T @ np.diff(reference.segments[0, i], axis=0)[0]
        along /= np.linalg.norm(along)
        across = geometry.rotations[:, body] @ -first_hinge(
            mechanism, mechanism.rod(segment.name), along
        )
        x = across - z * np.sum(across * z, axis=-1, keepdims=True)
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        R = np.stack([x, np.cross(z, x), z], axis=-1)
        # of a cable too, which has a telescope and is one solid
        placed[segment.name] = FramePose(R, A)
        if mechanism.rod(segment.name).telescope is not None:
            placed[f"{segment.name}.lower"] = FramePose(R, A)
            placed[f"{segment.name}.upper"] = FramePose(R, B)
    return placed
