"""Positions and speeds of cut joints, which are not coordinates of the tree but may have limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.topology import Topology
from tauloop.equations.tree import BodyMotion, Configuration, TreeMotion, tree_motion
from tauloop.equations.values import BatchFunction, unit_vector
from tauloop.mechanism.model import Freedom, Joint, Mechanism

#: Kinds of cut joints whose motion follows from their two frames.
POSITIONED_KINDS = ("revolute", "prismatic")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutFreedoms:
    """Degrees of freedom of cut joints that have limits.

    Attributes:
        names: names of the joints.
        freedoms: limits, friction and springs of the joints.
        units: units of their positions, rad or m.
        n_v: number of velocities.
        function: (q, v) -> positions, then speeds (2 n,); None if there are no such joints.
        unseen: names and kinds of limited cut joints whose positions cannot be computed.
    """

    names: tuple[str, ...]
    freedoms: tuple[Freedom, ...]
    units: tuple[str, ...]
    n_v: int
    function: BatchFunction | None
    unseen: tuple[tuple[str, str], ...] = ()

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Return positions (N, n) at coordinates (N, n_q)."""
        return self.positions_and_speeds(q, np.zeros((len(q), self.n_v)))[0]

    def positions_and_speeds(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and speeds (N, n) at coordinates and velocities (N, ...)."""
        if self.function is None:
            return np.zeros((len(q), 0)), np.zeros((len(q), 0))
        both = self.function([np.ascontiguousarray(q), np.ascontiguousarray(v)], len(q))[0]
        return both[:, : len(self.names)], both[:, len(self.names) :]


def cut_freedoms(mechanism: Mechanism, topology: Topology) -> CutFreedoms:
    """Return the cut joints whose range or speed is limited.

    Raises:
        InputError: a limited cut joint is neither revolute nor prismatic.
    """
    freedoms = limited_cuts(mechanism, topology)
    if freedoms.unseen:
        raise InputError(
            Problem(
                where=name,
                what=f"is a loop-closing {kind} joint with limits, which is not supported",
                remedy="cut another joint of the loop ('cut: yes'), or remove the limits",
                file=mechanism.file,
            )
            for name, kind in freedoms.unseen
        )
    return freedoms


def limited_cuts(mechanism: Mechanism, topology: Topology) -> CutFreedoms:
    """Return the limited cut joints, including those whose positions cannot be computed."""
    joints_with_limits = tuple(_limited(topology.cuts))
    joints = tuple(joint for joint in joints_with_limits if joint.kind in POSITIONED_KINDS)
    function = None
    if joints:
        q, v = ca.SX.sym("q", topology.n_q), ca.SX.sym("v", topology.n_v)
        position, speed = zip(*cut_motions(mechanism, topology, q, v).values(), strict=True)
        function = BatchFunction(
            ca.Function("cut_freedoms", [q, v], [ca.densify(ca.vertcat(*position, *speed))])
        )
    return CutFreedoms(
        names=tuple(joint.name for joint in joints),
        freedoms=tuple(joint.freedoms[0] for joint in joints),
        units=tuple("rad" if joint.kind == "revolute" else "m" for joint in joints),
        n_v=topology.n_v,
        function=function,
        unseen=tuple(
            (joint.name, joint.kind)
            for joint in joints_with_limits
            if joint.kind not in POSITIONED_KINDS
        ),
    )


def cut_motions(
    mechanism: Mechanism, topology: Topology, q: ca.SX, v: ca.SX
) -> dict[str, tuple[ca.SX, ca.SX]]:
    """Return position and speed of every limited revolute or prismatic cut joint, by name.

    A revolute joint has an axis a and perpendicular directions u, w (u x w = a) in both frames A
    and B. Its angle has cos = u_A . u_B and sin = w_A . u_B, and is within half a revolution of the
    middle of its range. The position of a prismatic joint is the offset along a.

    Args:
        mechanism, topology: the machine.
        q, v: coordinates and velocities.
    """
    joints = [joint for joint in _limited(topology.cuts) if joint.kind in POSITIONED_KINDS]
    if not joints:
        return {}
    motion = tree_motion(
        topology, nominal(mechanism), Configuration(q, {}), v, ca.SX(topology.n_v, 1)
    )
    return {joint.name: _motion(joint, motion) for joint in joints}


def _limited(cuts: Iterable[Joint]) -> Iterator[Joint]:
    for joint in cuts:
        for freedom in joint.freedoms:
            if np.isfinite([freedom.lower, freedom.upper, freedom.speed]).any():
                yield joint
                break


def _motion(joint: Joint, motion: TreeMotion) -> tuple[ca.SX, ca.SX]:
    A, B, values = motion.bodies[joint.parent.body], motion.bodies[joint.child.body], motion.values
    (R_A, p_A), (R_B, p_B) = values.placement(joint.parent), values.placement(joint.child)
    axis = joint.axes[0]
    a = _base_direction(A, R_A, axis)
    if joint.kind == "prismatic":
        F, C = A.point(p_A), B.point(p_B)
        d = C.p - F.p
        return ca.dot(a, d), ca.dot(a, C.v - F.v) + ca.dot(ca.cross(A.in_base.w, a), d)
    u, w = "yzx"["xyz".index(axis)], "zxy"["xyz".index(axis)]
    cosine, sine = (
        ca.dot(_base_direction(A, R_A, letter), _base_direction(B, R_B, u)) for letter in (u, w)
    )
    middle = _middle(joint.freedoms[0])
    c, s = np.cos(middle), np.sin(middle)
    angle = middle + ca.atan2(c * sine - s * cosine, c * cosine + s * sine)
    return angle, ca.dot(a, B.in_base.w - A.in_base.w)


def _base_direction(body: BodyMotion, rotation: ca.SX, axis: str) -> ca.SX:
    """Return a direction of a joint frame in the base frame."""
    return body.R @ (rotation @ unit_vector(axis))


def _middle(freedom: Freedom) -> float:
    """Return the middle of a range of angles; with a single limit, an angle 90 deg inside it."""
    if np.isfinite(freedom.lower) and np.isfinite(freedom.upper):
        return 0.5 * (freedom.lower + freedom.upper)
    if np.isfinite(freedom.lower):
        return freedom.lower + 0.5 * np.pi
    if np.isfinite(freedom.upper):
        return freedom.upper - 0.5 * np.pi
    return 0.0
