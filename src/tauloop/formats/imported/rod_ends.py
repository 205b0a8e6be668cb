"""Ends of links that may be rods: ball and universal joints, as one joint or a revolute chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.linkage import Linkage, axis_of
from tauloop.mechanism.links.graph import far_side, side
from tauloop.mechanism.model import Joint, Placement
from tauloop.mechanism.poses import placement_pose

#: Lengths are equal within this fraction of the rod's length; exporters print about ten digits.
POINT_TOLERANCE = 1e-7
#: Directions are parallel or perpendicular within this angle, rad.
DIRECTION_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a link, with the joint that connects it to its neighbor.

    Attributes:
        kind: "ball" or "universal".
        point: joint center on the link (3,), m, in the frame of the link's first body.
        outside: the joint's frame on the neighbor.
        first_axis, second_axis: for a universal joint, its axis on the neighbor (3,), in
            coordinates of the neighbor, and its axis on the link (3,).
        joints, bodies: elements that disappear when the link becomes a rod.
    """

    kind: Literal["ball", "universal"]
    point: np.ndarray
    outside: Placement
    first_axis: np.ndarray
    second_axis: np.ndarray
    joints: tuple[str, ...]
    bodies: tuple[str, ...]


def ends_of(linkage: Linkage, link: Sequence[str]) -> tuple[End, End] | None:
    """Return the two ends of a link; None if the link is not a rod."""
    if linkage.is_needed(link):
        return None
    joints = linkage.joints_out_of(link)
    if len(joints) != 2:
        return None
    ends = [end_of(linkage, link, joint) for joint in joints]
    if ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]


def end_of(linkage: Linkage, link: Sequence[str], joint: Joint) -> End | None:
    """Follow joints through massless bodies to the neighbor while they pass through one point.

    Returns:
        The end at the neighbor; None if the joints do not pass through one point.
    """
    chain, bodies = [joint], []
    body = linkage.inner(joint, link)
    point = (
        linkage.pose_in(link, body) @ placement_pose(linkage.mechanism, side(joint, body))
    ).position
    inner_axis = linkage.pose_in(link, body).rotation @ axis_of(
        linkage.mechanism, joint, side(joint, body)
    )
    is_perpendicular = joint.kind == "universal"
    while True:
        last = chain[-1]
        if linkage.mechanism.is_loaded(last) or last.kind not in (
            "revolute",
            "universal",
            "spherical",
        ):
            return None
        outer = far_side(last, body).body
        next_joint = linkage.passes(outer, last)
        if next_joint is None:
            break
        last_frame, next_frame = side(last, outer), side(next_joint, outer)
        gap = (
            placement_pose(linkage.mechanism, last_frame).position
            - placement_pose(linkage.mechanism, next_frame).position
        )
        first, second = (
            axis_of(linkage.mechanism, j, s)
            for j, s in ((last, last_frame), (next_joint, next_frame))
        )
        if (
            np.linalg.norm(gap) > POINT_TOLERANCE * linkage.length
            or np.linalg.norm(np.cross(first, second)) < DIRECTION_TOLERANCE
        ):
            return None
        is_perpendicular = abs(float(first @ second)) < DIRECTION_TOLERANCE
        chain.append(next_joint)
        bodies.append(outer)
        body = outer
    freedoms = sum(len(j.velocity_names) for j in chain)
    outside = side(chain[-1], outer)
    if outer in link or freedoms not in (2, 3) or (freedoms == 2 and not is_perpendicular):
        return None
    return End(
        kind="ball" if freedoms == 3 else "universal",
        point=point,
        outside=replace(outside, turns=()),
        first_axis=axis_of(linkage.mechanism, chain[-1], outside),
        second_axis=inner_axis,
        joints=tuple(j.name for j in chain),
        bodies=tuple(bodies),
    )


def orientation(linkage: Linkage, link: Sequence[str], end: End, z: np.ndarray) -> float:
    """Return the sign of the second axis relative to h x z at the reference pose.

    See `Rod.first_axis` for h and z.
    """
    R = linkage.world[link[0]].rotation
    h = linkage.world[end.outside.body].rotation @ end.first_axis
    return 1.0 if float(np.cross(h, R @ z) @ R @ end.second_axis) >= 0.0 else -1.0
