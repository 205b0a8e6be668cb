"""Solids of links that were converted to rods, in rod frames (`tauloop.geometry.body_frames`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.linkage import Linkage
from tauloop.mechanism.links.rigid_tree import first_hinge
from tauloop.mechanism.model import Mechanism, Rod
from tauloop.mechanism.poses import FramePose, rotation_matrix
from tauloop.mechanism.solids.solid import Solid
from tauloop.mechanism.solids.visual import solid_at


@dataclass(frozen=True, slots=True, kw_only=True)
class RodLink:
    """A link that was converted to a rod or to one part of a telescopic rod.

    Attributes:
        rod: rod of the mechanism.
        link: bodies of the link.
        end: the joint center (3,), m, which is the origin of the rod's frame, in the frame of the
            link's first body.
        line: vector (3,) along the rod from A to B, in the same frame.
    """

    rod: Rod
    link: tuple[str, ...]
    end: np.ndarray
    line: np.ndarray


def rod_solids(
    linkage: Linkage, mechanism: Mechanism, links: Mapping[str, RodLink]
) -> Iterator[Solid]:
    """Return the solids of links on the rods that replace them.

    Args:
        linkage: the machine before its links become rods.
        mechanism: the machine with its rods.
        links: links by the name of the rod, or by ``ROD.lower`` and ``ROD.upper``.
    """
    for name, part in links.items():
        R_link, R_start = (
            linkage.world[part.link[0]].rotation,
            linkage.world[part.rod.start.body].rotation,
        )
        z = R_link @ part.line / np.linalg.norm(part.line)
        x = R_start @ -first_hinge(mechanism, part.rod, R_start.T @ z)
        x -= z * (x @ z)
        x /= np.linalg.norm(x)
        frame = FramePose(R_link.T @ np.column_stack([x, np.cross(z, x), z]), part.end)
        for solid in linkage.mechanism.solids:
            if solid.body in part.link:
                pose_on_link = linkage.pose_in(part.link, solid.body)
                pose = (
                    frame.inverse()
                    @ pose_on_link
                    @ FramePose(rotation_matrix(solid.turns), np.array(solid.position))
                )
                rod_solid = solid_at(name, solid.shape, solid.size, pose.position, pose.rotation)
                yield replace(solid, body=name, position=rod_solid.position, turns=rod_solid.turns)
