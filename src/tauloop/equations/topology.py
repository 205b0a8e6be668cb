"""Spanning tree of a mechanism: joints with coordinates, and cut joints that close loops."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from tauloop.common.errors import DescriptionError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    Actuator,
    Body,
    Freedom,
    Joint,
    Mechanism,
    Placement,
    Rod,
    Telescope,
    spanning_joints,
)
from tauloop.mechanism.poses import turned_quaternion


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeJoint:
    """A joint of the tree, from its inner body (nearer the base) to its outer body.

    Attributes:
        joint: the joint in the machine file.
        inner, outer: frames of the joint on the inner and outer body.
        is_reversed: whether the outer body is the parent in the machine file.
        q, v: ranges of the joint's indices in the coordinates and velocities.
    """

    joint: Joint
    inner: Placement
    outer: Placement
    is_reversed: bool
    q: range
    v: range


@dataclass(frozen=True, kw_only=True)
class Topology(ReprMixin):
    """Coordinates of the extended space, and the joints that close loops.

    Attributes:
        tree: joints of the tree, from the base outwards.
        cuts: joints that close loops.
        telescopes: telescopic rods, with the indices of their length in q and in v.
        coordinate_names, velocity_names: names of the components of q (n_q) and v (n_v).
        angular: whether each velocity is a rotation (rad/s), not a translation (m/s).
        is_angle: whether each coordinate is an angle in rad.
        quaternions: (start in q, start in v) of every quaternion and its angular velocity.
        freedoms: forces, inertia and limits of each velocity.
        q_of_v: index of the scalar coordinate of each velocity; -1 for angular velocities of
            quaternions.
        reference: start values of q.
    """

    tree: tuple[TreeJoint, ...]
    cuts: tuple[Joint, ...]
    telescopes: tuple[tuple[Rod, int, int], ...]
    coordinate_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    angular: tuple[bool, ...]
    is_angle: tuple[bool, ...]
    quaternions: tuple[tuple[int, int], ...]
    freedoms: tuple[Freedom, ...]
    q_of_v: tuple[int, ...]
    reference: tuple[float, ...]

    @cached_property
    def edge_of(self) -> dict[str, TreeJoint]:
        """The tree joint that leads to each body, by the body's name."""
        return {edge.outer.body: edge for edge in self.tree}

    def path(self, body: str) -> list[TreeJoint]:
        """Return the joints from the base to a body."""
        edges: list[TreeJoint] = []
        while body in self.edge_of:
            edges.append(self.edge_of[body])
            body = edges[-1].inner.body
        return edges[::-1]

    def loop(self, first: str, last: str) -> tuple[str, list[TreeJoint]]:
        """Return the outermost body that carries two bodies, and the joints from it to these."""
        first_path, last_path = self.path(first), self.path(last)
        shared = 0
        while (
            shared < min(map(len, (first_path, last_path)))
            and first_path[shared] is last_path[shared]
        ):
            shared += 1
        carrier = first_path[shared - 1].outer.body if shared else BASE
        return carrier, [*first_path[shared:], *last_path[shared:]]

    @property
    def n_q(self) -> int:
        """Number of coordinates."""
        return len(self.coordinate_names)

    @property
    def n_v(self) -> int:
        """Number of velocities."""
        return len(self.velocity_names)

    @property
    def is_length(self) -> tuple[bool, ...]:
        """Whether each coordinate is a length in meters."""
        in_quaternion = {i + k for i, _ in self.quaternions for k in range(4)}
        return tuple(
            not angular and i not in in_quaternion for i, angular in enumerate(self.is_angle)
        )

    def coordinates_of(self, velocities: Collection[int]) -> tuple[int, ...]:
        """Return the coordinates that are constant where these velocities are zero.

        A quaternion is constant if all three rotations are zero.
        """
        q = [self.q_of_v[i] for i in velocities if self.q_of_v[i] >= 0]
        whole = [q0 for q0, v0 in self.quaternions if {v0, v0 + 1, v0 + 2} <= set(velocities)]
        return (*q, *(q0 + k for q0 in whole for k in range(4)))

    def is_rotary(self, actuator: Actuator) -> bool:
        """Return whether an actuator is rotary, with its position in rad and its force in N m."""
        if actuator.is_rotary is not None:
            return actuator.is_rotary
        return all(self.angular[self.velocity_names.index(name)] for name, _ in actuator.drives)


def topology(mechanism: Mechanism) -> Topology:
    """Choose the spanning tree and number the coordinates.

    The tree grows from the base. Each step adds the first joint in this order: the joint of the
    platform, fixed joints, joints with an actuator, friction or a spring (these need a coordinate),
    then joints with few degrees of freedom. Ties are broken by depth, then by the order in the
    file. The remaining joints, and the joints that the file cuts, close loops. No force may act on
    these joints; see `with_ends`.

    Returns:
        The spanning tree with the numbers of all coordinates, and the cut joints.

    Raises:
        DescriptionError: a joint that is not reversible would have to be reversed; or an element
            acts on an angular velocity of a ball joint, which has no coordinate.
    """
    _require_coordinates(mechanism)
    edges = _spanning_tree(mechanism)
    cuts = _cut_joints(mechanism, edges)
    assert not any(mechanism.is_loaded(joint) for joint in cuts)

    lengths = [
        (rod, _length(rod, rod.telescope)) for rod in mechanism.rods if rod.telescope is not None
    ]
    joints = [*(joint for joint, _ in edges), *(length for _, length in lengths)]
    kinds = [JOINT_KINDS[joint.kind] for joint in joints]
    starts_q = [0, *accumulate(len(kind.coordinates) for kind in kinds)]
    starts_v = [0, *accumulate(len(kind.velocities) for kind in kinds)]
    scalars = [kind.scalars for kind in kinds]
    blocks = list(zip(kinds, scalars, starts_q, starts_v, strict=False))
    return Topology(
        tree=tuple(
            TreeJoint(
                joint=joint,
                inner=joint.child if is_reversed else joint.parent,
                outer=joint.parent if is_reversed else joint.child,
                is_reversed=is_reversed,
                q=range(starts_q[k], starts_q[k + 1]),
                v=range(starts_v[k], starts_v[k + 1]),
            )
            for k, (joint, is_reversed) in enumerate(edges)
        ),
        cuts=cuts,
        telescopes=tuple(
            (rod, starts_q[k], starts_v[k]) for k, (rod, _) in enumerate(lengths, len(edges))
        ),
        coordinate_names=tuple(name for joint in joints for name in joint.coordinate_names),
        velocity_names=tuple(name for joint in joints for name in joint.velocity_names),
        angular=tuple(angular for kind in kinds for angular in kind.angular),
        is_angle=tuple(
            i < n and kind.angular[i]
            for kind, n, _, _ in blocks
            for i in range(len(kind.coordinates))
        ),
        quaternions=tuple((q + n, v + n) for kind, n, q, v in blocks if n < len(kind.coordinates)),
        freedoms=tuple(
            freedom
            for joint, kind in zip(joints, kinds, strict=True)
            for freedom in joint.freedoms or (Freedom(),) * len(kind.velocities)
        ),
        q_of_v=tuple(
            q + i if i < n else -1 for kind, n, q, _ in blocks for i in range(len(kind.velocities))
        ),
        reference=tuple(
            x
            for joint, kind in zip(joints, kinds, strict=True)
            for x in joint.reference or kind.neutral
        ),
    )


def _require_coordinates(mechanism: Mechanism) -> None:
    """Raise an error if springs, actuators or couplings act on velocities of ball joints."""
    without_coordinate = {
        name for joint in mechanism.joints for name in _velocities_without_coordinate(joint)
    }
    problems = Problems()

    def check(where: str, element: str, names: Iterable[str]) -> None:
        for name in names:
            if name in without_coordinate:
                what = f"{element} acts on {name}, an angular velocity without a coordinate"
                remedy = "act on a revolute or universal joint"
                problems.add(where, what, remedy, file=mechanism.file)

    for name, freedom in mechanism.freedoms.items():
        if freedom.spring is not None:
            check(name, "a spring", [name])
    for motor in mechanism.actuators:
        check(motor.name, "an actuator", (name for name, _ in motor.drives))
    for gear in mechanism.couplings:
        check(gear.name, "a coupling", gear.coordinates)
    DescriptionError.raise_if_any(problems)


def _velocities_without_coordinate(joint: Joint) -> list[str]:
    """Return the names of a joint's angular velocities that are not rates of coordinates."""
    kind = JOINT_KINDS[joint.kind]
    names = zip(joint.velocity_names, kind.velocities, strict=True)
    return [name for name, suffix in names if suffix not in kind.coordinates]


def _length(rod: Rod, telescope: Telescope) -> Joint:
    """Return the prismatic joint that represents the length of a telescopic rod."""
    freedoms, reference = (telescope.freedom,), (telescope.reference,)
    return Joint(
        name=rod.name,
        kind="prismatic",
        parent=rod.start,
        child=rod.end,
        reference=reference,
        freedoms=freedoms,
    )


def with_ends(mechanism: Mechanism) -> Mechanism:
    """Return the machine with a coordinate for every joint that a force acts on.

    If every joint of a loop has friction, a spring, an inertia or an actuator, one of these joints
    would still be cut. Instead, this joint leads to a massless body (its end), and a weld between
    this body and the joint's child closes the loop.

    Raises:
        DescriptionError: a joint that is not reversible would have to be reversed.
    """
    cuts = _cut_joints(mechanism, _spanning_tree(mechanism))
    loaded = {joint.name: f"{joint.name}.end" for joint in cuts if mechanism.is_loaded(joint)}
    if not loaded:
        return mechanism
    joints: list[Joint] = []
    for joint in mechanism.joints:
        if (end := loaded.get(joint.name)) is None:
            joints.append(joint)
            continue
        joints.append(replace(joint, child=Placement(body=end), is_cut=False))
        joints.append(
            Joint(
                name=end, kind="fixed", parent=Placement(body=end), child=joint.child, is_cut=True
            )
        )
    bodies = (*mechanism.bodies, *(Body(name=end) for end in loaded.values()))
    return replace(mechanism, bodies=bodies, joints=tuple(joints))


def integrate(topology: Topology, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return coordinates (N, n_q) after a finite displacement (N, n_v).

    Quaternions rotate by the exponential map.
    """
    q = q.copy()
    for i, j in enumerate(topology.q_of_v):
        if j >= 0:
            q[:, j] += step[:, i]
    for iq, iv in topology.quaternions:
        q[:, iq : iq + 4] = turned_quaternion(q[:, iq : iq + 4], step[:, iv : iv + 3])
    return q


def _spanning_tree(mechanism: Mechanism) -> list[tuple[Joint, bool]]:
    """Return the joints of the tree, and whether each is reversed."""
    return spanning_joints(
        mechanism,
        DescriptionError,
        lambda depth, index: (depth, index),
        turns_around=lambda joint: JOINT_KINDS[joint.kind].reversible,
    )


def _cut_joints(mechanism: Mechanism, edges: list[tuple[Joint, bool]]) -> tuple[Joint, ...]:
    """Return the joints that are not in the tree."""
    in_tree = {joint.name for joint, _ in edges}
    return tuple(joint for joint in mechanism.joints if joint.name not in in_tree)
