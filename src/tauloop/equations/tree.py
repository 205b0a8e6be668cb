"""Motion of the tree: poses, velocities and accelerations of all bodies, swept from the base outwards.

Velocities and accelerations are kept in body coordinates, where inertias and joint axes are constant; points of
attachment are given in base coordinates (suffix W), where loops are closed.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from tauloop.equations.topology import Topology, TreeJoint
from tauloop.equations.values import Values, elementary_rotation, unit_vector
from tauloop.mechanism.model import BASE, Placement


@dataclass(frozen=True, slots=True)
class Configuration:
    """Coordinates q, with (cos, sin) of an angle given in its place where a closed form yields that pair.

    Attributes:
        q: coordinates (n_q,).
        pairs: cosine and sine by index in q; other angles take theirs from q.
    """

    q: ca.SX
    pairs: dict[int, tuple[ca.SX, ca.SX]]

    def pair(self, index: int) -> tuple[ca.SX, ca.SX]:
        """Cosine and sine of the angle at an index of q."""
        return self.pairs.get(index) or (ca.cos(self.q[index]), ca.sin(self.q[index]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """Relative motion across a joint, in coordinates of its outer frame.

    Attributes:
        R, p: orientation and origin of the outer frame in the inner one.
        S_w, S_v: angular velocity, and velocity of the outer origin as seen from the inner frame, per unit velocity
            (3, n).
        bias_w, bias_v: what is left of their rates without accelerations (3,).
    """

    R: ca.SX
    p: ca.SX
    S_w: ca.SX
    S_v: ca.SX
    bias_w: ca.SX
    bias_v: ca.SX


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One tree joint with the constant frames worked out: the outer body B as seen from the inner body P.

    Attributes:
        edge: the tree joint.
        R_PB, p_PB: pose of B in P.
        S_w, S_v: angular velocity and origin velocity of B relative to P, in B, per unit velocity (3, n).
        bias_w, bias_v: their bias.
    """

    edge: TreeJoint
    R_PB: ca.SX
    p_PB: ca.SX
    S_w: ca.SX
    S_v: ca.SX
    bias_w: ca.SX
    bias_v: ca.SX


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyMotion:
    """Pose of a body in the base frame; its velocities and accelerations in its own coordinates.

    Attributes:
        R, p: orientation (3, 3) and origin (3,) in the base frame.
        w, v: angular velocity and velocity of the origin.
        alpha, a: angular acceleration and acceleration of the origin.
    """

    R: ca.SX
    p: ca.SX
    w: ca.SX
    v: ca.SX
    alpha: ca.SX
    a: ca.SX

    def point(self, r: ca.SX) -> PointMotion:
        """Motion of the point at r (body coordinates) in the base frame."""
        w_r = ca.cross(self.w, r)
        return PointMotion(
            p=self.p + self.R @ r,
            v=self.R @ (self.v + w_r),
            a=self.R @ (self.a + ca.cross(self.alpha, r) + ca.cross(self.w, w_r)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMotion:
    """Position, velocity and acceleration of a point in the base frame (3,)."""

    p: ca.SX
    v: ca.SX
    a: ca.SX


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMotion:
    """Motion of everything: bodies by name, links from the base outwards, and the state it belongs to."""

    bodies: dict[str, BodyMotion]
    links: tuple[Link, ...]
    configuration: Configuration
    v: ca.SX
    a: ca.SX

    def point(self, placement: Placement, values: Values) -> PointMotion:
        """Motion of a frame's origin in the base frame."""
        return self.bodies[placement.body].point(values.vector(placement.position))

    def length(self, q_index: int, v_index: int) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Length of a telescopic rod with its rate and its acceleration."""
        return self.configuration.q[q_index], self.v[v_index], self.a[v_index]


def tree_motion(topology: Topology, values: Values, configuration: Configuration, v: ca.SX, a: ca.SX) -> TreeMotion:
    """Sweep positions, velocities and accelerations from the base to all bodies.

    With E the rotation from P to B coordinates:
    w_B = E w_P + S_w v,  v_B = E (v_P + w_P x p) + S_v v, and their rates (Khalil and Dombre, Newton-Euler sweep).

    Args:
        topology: the tree.
        values: parameters.
        configuration: coordinates (n_q,).
        v: velocities (n_v,).
        a: accelerations (n_v,).
    """
    zero = ca.SX(3, 1)
    bodies = {BASE: BodyMotion(R=ca.SX(ca.DM.eye(3)), p=zero, w=zero, v=zero, alpha=zero, a=zero)}
    links = []
    for edge in topology.tree:
        link = _link(edge, values, configuration, v[edge.v.start : edge.v.stop])
        links.append(link)
        v_joint, a_joint = v[edge.v.start : edge.v.stop], a[edge.v.start : edge.v.stop]
        P = bodies[edge.inner.body]
        E = link.R_PB.T
        w_rel, v_rel = link.S_w @ v_joint, link.S_v @ v_joint
        w_P = E @ P.w
        w_p = ca.cross(P.w, link.p_PB)
        bodies[edge.outer.body] = BodyMotion(
            R=P.R @ link.R_PB,
            p=P.p + P.R @ link.p_PB,
            w=w_P + w_rel,
            v=E @ (P.v + w_p) + v_rel,
            alpha=E @ P.alpha + link.S_w @ a_joint + link.bias_w + ca.cross(w_P, w_rel),
            a=E @ (P.a + ca.cross(P.alpha, link.p_PB) + ca.cross(P.w, w_p))
            + link.S_v @ a_joint
            + link.bias_v
            + 2 * ca.cross(w_P, v_rel),
        )
    return TreeMotion(bodies=bodies, links=tuple(links), configuration=configuration, v=v, a=a)


def _link(edge: TreeJoint, values: Values, configuration: Configuration, v: ca.SX) -> Link:
    """Move the joint's motion from its outer frame C to the origin and axes of the outer body B."""
    R_PF, p_PF = values.placement(edge.inner)
    R_BC, p_BC = values.placement(edge.outer)
    joint = joint_motion(edge, configuration, v)
    R_PB = R_PF @ joint.R @ R_BC.T
    S_w = R_BC @ joint.S_w
    S_v = R_BC @ joint.S_v + ca.skew(p_BC) @ S_w
    w_rel = S_w @ v
    bias_w = R_BC @ joint.bias_w
    # velocity of B's origin as seen from P: u = u_C + p_BC x w, and its rate as seen from P
    bias_v = R_BC @ joint.bias_v + ca.cross(p_BC, bias_w) + ca.cross(w_rel, ca.cross(p_BC, w_rel))
    return Link(
        edge=edge,
        R_PB=R_PB,
        p_PB=p_PF + R_PF @ joint.p - R_PB @ p_BC,
        S_w=S_w,
        S_v=S_v,
        bias_w=bias_w,
        bias_v=bias_v,
    )


def joint_motion(edge: TreeJoint, configuration: Configuration, v: ca.SX) -> JointMotion:
    """Relative motion across one joint of any kind, from the inner to the outer frame.

    A reversed joint has the inverse motion: opposite coordinates, a conjugate quaternion, swapped universal axes.
    """
    kind, axes, q = edge.joint.kind, edge.joint.axes, configuration.q
    sign = -1 if edge.is_reversed else 1
    i = edge.q.start
    n = len(edge.v)
    R, p = ca.SX(ca.DM.eye(3)), ca.SX(3, 1)
    S_w, S_v = ca.SX(3, n), ca.SX(3, n)
    bias_w, bias_v = ca.SX(3, 1), ca.SX(3, 1)
    if kind in ("revolute", "cylindrical"):
        c, s = configuration.pair(i)
        R = elementary_rotation(axes[0], c, sign * s)
        S_w[:, 0] = sign * unit_vector(axes[0])
    if kind in ("prismatic", "cylindrical"):
        S_v[:, n - 1] = sign * unit_vector(axes[0])
        p = sign * q[i + n - 1] * unit_vector(axes[0])
    elif kind == "universal":
        first, second = (1, 0) if edge.is_reversed else (0, 1)
        (c1, s1), (c2, s2) = configuration.pair(i + first), configuration.pair(i + second)
        R_second = elementary_rotation(axes[second], c2, sign * s2)
        R = elementary_rotation(axes[first], c1, sign * s1) @ R_second
        S_w[:, first] = sign * (R_second.T @ unit_vector(axes[first]))
        S_w[:, second] = sign * unit_vector(axes[second])
        bias_w = ca.cross(S_w[:, first] * v[first], S_w[:, second] * v[second])
    elif kind == "spherical":
        R_parent_child = quaternion_rotation(q[i : i + 4])
        R = R_parent_child.T if edge.is_reversed else R_parent_child
        S_w = -ca.SX(ca.DM.eye(3)) if edge.is_reversed else R_parent_child.T
    elif kind == "translational":
        p = sign * q[i : i + 3]
        S_v = sign * ca.SX(ca.DM.eye(3))
    elif kind == "planar":
        c, s = configuration.pair(i + 2)
        R = elementary_rotation("z", c, s)
        p = ca.vertcat(q[i], q[i + 1], 0)
        S_v[:, :2] = R.T[:, :2]
        S_w[2, 2] = 1
    elif kind == "free":
        p = q[i : i + 3]
        R = quaternion_rotation(q[i + 3 : i + 7])
        S_v[:, :3] = R.T
        S_w[:, 3:] = R.T
    return JointMotion(R=R, p=p, S_w=S_w, S_v=S_v, bias_w=bias_w, bias_v=bias_v)


def quaternion_rotation(quaternion: ca.SX) -> ca.SX:
    """Rotation matrix (3, 3) of a unit quaternion (w, x, y, z), from the turned frame into the reference frame."""
    w, x, y, z = ca.vertsplit(quaternion)
    return ca.vertcat(
        ca.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
