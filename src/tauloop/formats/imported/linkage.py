"""Links of a machine as a graph: welded bodies, the joints on each link, and nominal poses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.inertia import as_matrices, offset_inertia
from tauloop.mechanism.links.graph import joints_of
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.mechanism.solids.primitives import joint_pose, propagate_poses


def axis_of(mechanism: Mechanism, joint: Joint, side: Placement) -> np.ndarray:
    """Return the axis (3,) of a joint in coordinates of the body of one of its frames.

    The axis of a joint without axes is the frame's z axis.
    """
    if not joint.axes:
        letter = "z"
    else:
        letter = joint.axes[0] if side is joint.parent or len(joint.axes) == 1 else joint.axes[1]
    return np.asarray(placement_pose(mechanism, side).rotation[:, "xyz".index(letter)])


class Linkage:
    """A machine as a graph of links."""

    def __init__(self, mechanism: Mechanism) -> None:
        """Group the bodies into links.

        Args:
            mechanism: the machine.
        """
        self.mechanism = mechanism
        self._welds = [joint for joint in mechanism.joints if joint.kind == "fixed"]
        self._poses: dict[str, FramePose] = {}

    @cached_property
    def length(self) -> float:
        """Return a typical distance between joints, m."""
        return self.mechanism.characteristic_length

    @cached_property
    def world(self) -> dict[str, FramePose]:
        """Return the poses of all bodies at the reference coordinates, without cut joints."""
        return propagate_poses(
            {BASE: FramePose()},
            (j for j in self.mechanism.joints if not j.is_cut),
            self._relative_pose,
        )

    def _relative_pose(self, joint: Joint) -> FramePose:
        """Return the reference pose of a joint's child body in its parent body."""
        if joint.name not in self._poses:
            parent, child = (
                placement_pose(self.mechanism, side) for side in (joint.parent, joint.child)
            )
            self._poses[joint.name] = parent @ joint_pose(joint) @ child.inverse()
        return self._poses[joint.name]

    def links(self) -> list[tuple[str, ...]]:
        """Return the groups of welded bodies, without the base's group and rings of welds."""
        pairs = [weld.bodies for weld in self._welds]
        grouped, groups = set(steps_from(BASE, pairs)), list[tuple[str, ...]]()
        for body in self.mechanism.bodies:
            if body.name not in grouped:
                members = set(steps_from(body.name, pairs))
                grouped |= members
                if sum(first in members for first, _ in pairs) < len(members):
                    groups.append(
                        tuple(
                            other.name for other in self.mechanism.bodies if other.name in members
                        )
                    )
        return groups

    def is_needed(self, link: Iterable[str]) -> bool:
        """Return whether a link contains the platform or an end of a rod."""
        link = set(link)
        ends = {placement.body for rod in self.mechanism.rods for placement in (rod.start, rod.end)}
        return self.mechanism.platform.body in link or bool(link & ends)

    def joints_out_of(self, link: Sequence[str]) -> list[Joint]:
        """Return the joints, except welds, that connect a link to other links."""
        return [
            joint
            for joint in self.mechanism.joints
            if joint.kind != "fixed" and (joint.parent.body in link or joint.child.body in link)
        ]

    def inner(self, joint: Joint, link: Sequence[str]) -> str:
        """Return the body of a link to which a joint is attached."""
        return joint.parent.body if joint.parent.body in link else joint.child.body

    def passes(self, body: str, joint: Joint) -> Joint | None:
        """Return the other joint of a massless body with exactly two joints; otherwise None."""
        if body == BASE or self.is_needed((body,)) or not self.is_massless(body):
            return None
        others = [other for other in joints_of(self.mechanism, body) if other is not joint]
        return others[0] if len(others) == 1 and others[0].kind != "fixed" else None

    def is_massless(self, body: str) -> bool:
        """Return whether a body has no inertia."""
        inertia = self.mechanism.body(body).inertia
        return inertia is None or not any(self.mechanism.value(p) for p in inertia.parameters)

    def mass(self, body: str) -> float:
        """Return the mass of a body, kg."""
        inertia = self.mechanism.body(body).inertia
        return 0.0 if inertia is None else self.mechanism.value(inertia.mass)

    def pose_in(self, link: Sequence[str], body: str) -> FramePose:
        """Return the pose of a body in the frame of the first body of its link."""
        link_welds = (
            weld for weld in self._welds if weld.parent.body in link and weld.child.body in link
        )
        return propagate_poses({link[0]: FramePose()}, link_welds, self._relative_pose)[body]

    def inertia(self, link: Sequence[str]) -> LinkInertia:
        """Return the inertia of a link in the frame of its first body."""
        mass, first_moment, about_origin = 0.0, np.zeros(3), np.zeros((3, 3))
        for body in link:
            inertia = self.mechanism.body(body).inertia
            if inertia is None:
                continue
            m, h, body_inertia = as_matrices(map(self.mechanism.value, inertia.parameters))
            pose = self.pose_in(link, body)
            R, p = pose.rotation, pose.position
            h_link = R @ h
            rotated = R @ body_inertia @ R.T
            cross = np.outer(p, h_link) + np.outer(h_link, p)
            # I about a point at distance p: I + 2 (p.h) 1 - (p h^T + h p^T) + m (p.p 1 - p p^T)
            about_origin += (
                rotated + 2 * float(p @ h_link) * np.eye(3) - cross + m * offset_inertia(p)
            )
            first_moment += h_link + m * p
            mass += m
        center = first_moment / mass if mass > 0.0 else np.zeros(3)
        return LinkInertia(
            mass=mass, center=center, about_center=about_origin - mass * offset_inertia(center)
        )

    def joint_distances(self, joints: Iterable[Joint]) -> dict[str, int]:
        """Return the number of joints on the path from the base to each body, by body.

        Only bodies reached by joints that are not cut are included.
        """
        return steps_from(BASE, (joint.bodies for joint in joints if not joint.is_cut))
