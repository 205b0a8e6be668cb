"""Initial coordinates of the engines; coordinates that a motion lacks follow from the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.mechanism.model import BASE, JOINT_KINDS, Joint
from tauloop.mechanism.poses import Array, FramePose, turned
from tauloop.mechanism.solids.primitives import joint_coordinates, joint_pose, propagate_poses
from tauloop.verification.engines.trees.rigid_tree import PlacedJoint, RigidTree


def body_poses(
    joints: Mapping[str, PlacedJoint],
    tree: tuple[str, ...],
    coordinates: Mapping[str, Array],
    samples: int,
) -> dict[str, FramePose]:
    """Return the poses of all bodies in the base frame at N samples.

    Poses are propagated from the base across all joints whose coordinates are given, including cut
    joints. A body that no chain of such joints reaches is placed by its joint in the tree, at the
    reference coordinates of this joint.

    Args:
        joints: all joints.
        tree: names of the joints of the tree, from the base outwards.
        coordinates: values (N,) of the given coordinates, by name.
        samples: number of samples N.
    """
    poses = {BASE: FramePose(np.broadcast_to(np.eye(3), (samples, 3, 3)), np.zeros((samples, 3)))}
    order = [joints[name].joint for name in dict.fromkeys((*tree, *joints))]
    known = [joint for joint in order if coordinates.keys() >= set(joint.coordinate_names)]

    def relative_pose(joint: Joint) -> FramePose:
        """Return the pose of a joint's child body relative to its parent body."""
        start = joint.reference or JOINT_KINDS[joint.kind].neutral
        values = {}
        for name, reference in zip(joint.coordinate_names, start, strict=True):
            values[name] = coordinates.get(name, np.full(samples, reference))
        placed = joints[joint.name]
        child_in_joint = placed.pose_in_child.inverse()
        return placed.pose_in_parent @ joint_pose(joint, values) @ child_in_joint

    propagate_poses(poses, known, relative_pose)
    for name in tree:
        propagate_poses(poses, [joints[name].joint], relative_pose)
        propagate_poses(poses, known, relative_pose)
    return poses


def start_coordinates(tree: RigidTree, coordinates: Mapping[str, Array]) -> Array:
    """Return the coordinates (N, n_q) of the tree.

    Missing coordinates are computed from the poses of the bodies at the two ends of the joint or
    rod. For a motion with closed loops they are exact up to rounding, which Newton steps then
    reduce.
    """
    n_samples = len(next(iter(coordinates.values())))
    poses = body_poses(tree.joints, tree.tree, coordinates, n_samples)
    all_coordinates = dict(coordinates)
    for name in tree.tree:
        placed = tree.joints[name]
        joint = placed.joint
        if not all(q in coordinates for q in joint.coordinate_names):
            parent = poses[joint.parent.body] @ placed.pose_in_parent
            child = poses[joint.child.body] @ placed.pose_in_child
            values = joint_coordinates(joint, parent.inverse() @ child)
            all_coordinates |= dict(zip(joint.coordinate_names, values.T, strict=True))
    for rod in tree.rods:
        frame = poses[rod.start[0]] @ rod.start[1]
        d = (poses[rod.end[0]] @ rod.end[1]).position - frame.position
        length = np.linalg.norm(d, axis=-1)
        x, y, z = turned(
            np.swapaxes(frame.rotation, -1, -2), d / np.where(length > 0.0, length, 1.0)[:, None]
        ).T
        # After rotations by a about x and by b about y, the rod's z axis is
        # (sin b, -sin a cos b, cos a cos b).
        angles = np.arctan2(-y, z), np.arcsin(np.clip(x, -1.0, 1.0))
        all_coordinates |= dict(zip(rod.angles, angles, strict=True))
        if rod.is_telescopic and rod.name not in coordinates:
            all_coordinates[rod.name] = length
    q = np.empty((n_samples, len(tree.coordinate_names)))
    for i, name in enumerate(tree.coordinate_names):
        q[:, i] = all_coordinates[name]
    return q
