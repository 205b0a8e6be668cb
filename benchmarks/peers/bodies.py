"""A machine as a skilled user of an engine would write it: few bodies, each with all its joints, depth first.

`tauloop.verification.engines` writes a link for every degree of freedom, which is good for checking
and slow. A fair comparison of speed uses the best form for the peers: links that are fixed to each
other become one body, chains of massless links become one joint (a free, planar or universal one),
and unused ones are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tauloop.mechanism.poses import IDENTITY, Array, FramePose
from tauloop.mechanism.solids.primitives import Primitive
from tauloop.verification.engines.trees.rigid_tree import GROUND, LinkInertia, RigidTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerBody:
    """A body and its motion relative to its parent.

    Attributes:
        parent: index of its parent, or `GROUND`.
        at: pose of its joint frame in the parent.
        primitives: its motions, from the parent outwards.
        q, v: first index of the coordinates and velocities of each primitive in the tree's.
        inertia: of all links that are fixed together.
    """

    parent: int
    at: FramePose
    primitives: tuple[Primitive, ...]
    q: tuple[int, ...]
    v: tuple[int, ...]
    inertia: LinkInertia

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of its primitives."""
        return tuple(primitive.kind for primitive in self.primitives)

    @property
    def axes(self) -> Array:
        """Return the axes of its primitives (n, 3)."""
        return np.array([primitive.axis for primitive in self.primitives])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerEnd:
    """A frame fixed on a body, or on the ground."""

    body: int
    at: FramePose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerConstraint:
    """The two ends of a constraint of the tree."""

    first: PeerEnd
    second: PeerEnd


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerTree:
    """Bodies, depth first, and the constraints of the tree in its own order."""

    tree: RigidTree
    bodies: tuple[PeerBody, ...]
    constraints: tuple[PeerConstraint, ...]


NOTHING = LinkInertia(mass=0.0, center=np.zeros(3), about_center=np.zeros((3, 3)))


def peer_tree(tree: RigidTree) -> PeerTree:
    """Combine the links of a tree into bodies."""
    where: dict[int, tuple[int, FramePose]] = {GROUND: (GROUND, IDENTITY)}
    bodies: list[PeerBody] = []
    q = v = 0
    for i, link in enumerate(tree.links):
        body, offset = where[link.parent]
        at = offset @ link.pose
        if link.primitive is not None:
            if _continues(tree, i):
                old = bodies[body]
                bodies[body] = replace(
                    old, primitives=(*old.primitives, link.primitive), q=(*old.q, q), v=(*old.v, v)
                )
            else:
                bodies.append(
                    PeerBody(
                        parent=body,
                        at=at,
                        primitives=(link.primitive,),
                        q=(q,),
                        v=(v,),
                        inertia=NOTHING,
                    )
                )
                body = len(bodies) - 1
            at = IDENTITY
            q, v = q + len(link.primitive.coordinates), v + len(link.primitive.velocities)
        where[i] = body, at
        if link.inertia is not None and body != GROUND:
            bodies[body] = replace(
                bodies[body], inertia=_joined(bodies[body].inertia, link.inertia, at)
            )

    def end(link: int, at: FramePose) -> PeerEnd:
        body, offset = where[link]
        return PeerEnd(body=body, at=offset @ at)

    ends = [
        PeerConstraint(
            first=end(c.first.link, c.first.pose), second=end(c.second.link, c.second.pose)
        )
        for c in tree.constraints
    ]
    return _depth_first(PeerTree(tree=tree, bodies=tuple(bodies), constraints=tuple(ends)))


def _continues(tree: RigidTree, i: int) -> bool:
    """Return whether a link and its massless parent, which has no other child, are one joint."""
    link = tree.links[i]
    if link.parent == GROUND or link.parent in tree.anchored:
        return False
    parent = tree.links[link.parent]
    is_alone = sum(other.parent == link.parent for other in tree.links) == 1
    stays = np.array_equal(link.pose.rotation, np.eye(3)) and not np.any(link.pose.position)
    return parent.primitive is not None and parent.inertia is None and is_alone and stays


def _joined(one: LinkInertia, other: LinkInertia, at: FramePose) -> LinkInertia:
    """Return the sum of two inertias, the other's frame at a pose in the first's."""
    mass, center = one.mass + other.mass, at.position + at.rotation @ other.center
    common = (one.mass * one.center + other.mass * center) / mass if mass else np.zeros(3)
    about = np.zeros((3, 3))
    turned = at.rotation @ other.about_center @ at.rotation.T
    for m, c, J in ((one.mass, one.center, one.about_center), (other.mass, center, turned)):
        d = c - common
        about += J + m * (d @ d * np.eye(3) - np.outer(d, d))
    return LinkInertia(mass=mass, center=common, about_center=about)


def _depth_first(peer: PeerTree) -> PeerTree:
    """Order bodies depth first: Pinocchio needs it for its mass matrix, and MuJoCo sorts this way itself."""

    def below(parent: int) -> Iterator[int]:
        for i, body in enumerate(peer.bodies):
            if body.parent == parent:
                yield i
                yield from below(i)

    order = list(below(GROUND))
    place = {old: new for new, old in enumerate(order)} | {GROUND: GROUND}

    def moved(end: PeerEnd) -> PeerEnd:
        return replace(end, body=place[end.body])

    return replace(
        peer,
        bodies=tuple(replace(peer.bodies[i], parent=place[peer.bodies[i].parent]) for i in order),
        constraints=tuple(
            PeerConstraint(first=moved(c.first), second=moved(c.second)) for c in peer.constraints
        ),
    )
