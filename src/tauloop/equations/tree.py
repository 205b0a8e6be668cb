"""Motion of the tree: poses, velocities and accelerations of all bodies, from the base outwards.

Velocities and accelerations are in body coordinates, in which inertias and joint axes are constant.
Attachment points are in base coordinates (suffix W), in which loops are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.operators import cross
from tauloop.equations.topology import Topology, TreeJoint
from tauloop.equations.values import Values, elementary_rotation, unit_vector
from tauloop.mechanism.model import BASE, JOINT_KINDS, Placement


class Moving:
    """A number or vector with its first and second time derivative, computed on first use.

    Attributes:
        x: the value.
    """

    def __init__(
        self, x: ca.SX, rate: Callable[[], ca.SX], acceleration: Callable[[], ca.SX]
    ) -> None:
        """Store the value and the functions that compute its rates."""
        self.x, self._rate, self._acceleration = x, rate, acceleration

    @cached_property
    def rate(self) -> ca.SX:
        """First rate."""
        return self._rate()

    @cached_property
    def acceleration(self) -> ca.SX:
        """Second rate."""
        return self._acceleration()

    def component(self, i: int) -> Moving:
        """Return one component of a vector."""
        return Moving(self.x[i], lambda: self.rate[i], lambda: self.acceleration[i])


@dataclass(frozen=True, slots=True)
class Configuration(ReprMixin):
    """Coordinates q, with known cosines and sines of angles that a closed form determines.

    Attributes:
        q: coordinates (n_q,).
        pairs: cosine and sine by index in q; for other angles they are computed from q.
    """

    q: ca.SX
    pairs: dict[int, tuple[ca.SX, ca.SX]]

    def pair(self, index: int) -> tuple[ca.SX, ca.SX]:
        """Return cosine and sine of the angle at an index of q."""
        return self.pairs.get(index) or (ca.cos(self.q[index]), ca.sin(self.q[index]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """Relative motion across a joint from its inner frame F to its outer frame C.

    Attributes:
        R, p: orientation and origin of C in F.
        inner, outer: partial velocities and their bias in the axes of F and of C. Both are stored,
            because each is constant for some kinds of joints.
    """

    R: ca.SX
    p: ca.SX
    inner: Partial
    outer: Partial


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Partial velocities of a relative motion, in one set of axes.

    Attributes:
        w: angular velocity relative to the inner body per unit velocity (3, n).
        v: velocity of the outer origin relative to the inner body per unit velocity (3, n).
        bias_w, bias_v: rates of these velocities at zero accelerations, relative to the inner body
            (3,).
    """

    w: ca.SX
    v: ca.SX
    bias_w: ca.SX
    bias_v: ca.SX

    def rotated(self, R: ca.SX) -> Partial:
        """Return the partial velocities in the axes to which R (3, 3) rotates."""
        return Partial(w=R @ self.w, v=R @ self.v, bias_w=R @ self.bias_w, bias_v=R @ self.bias_v)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TreeLink:
    """A joint of the tree and its frames: the outer body B relative to the inner body P.

    Attributes:
        edge: the tree joint.
        R_PB, p_PB: pose of B in P.
        r_W: p_PB in axes of the base.
        joint: motion across the joint, from its inner frame F to its outer frame C.
        R_PF: orientation of F in P.
        R_BC, p_BC: pose of C in B.
        R_P: orientation of P in the base frame.
        v, a: velocities and accelerations of the joint.
    """

    edge: TreeJoint
    R_PB: ca.SX
    p_PB: ca.SX
    r_W: ca.SX
    joint: JointMotion
    R_PF: ca.SX
    R_BC: ca.SX
    p_BC: ca.SX
    R_P: ca.SX
    v: ca.SX
    a: ca.SX

    @cached_property
    def in_body(self) -> Partial:
        """Return partial velocities of B's origin relative to P, in axes of B."""
        return _at_origin(self.joint.outer.rotated(self.R_BC), self.p_BC, self.v)

    @cached_property
    def in_base(self) -> Partial:
        """Return partial velocities of B's origin relative to P, in axes of the base."""
        return _at_origin(
            self.joint.inner.rotated(self.R_P @ self.R_PF),
            self.R_P @ (self.R_PB @ self.p_BC),
            self.v,
        )


@dataclass(frozen=True, slots=True)
class BodyRates:
    """Angular velocity, velocity of the origin and their rates (3,) of a body, in some axes."""

    w: ca.SX
    v: ca.SX
    alpha: ca.SX
    a: ca.SX


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BodyMotion:
    """Pose, velocities and accelerations of a body and its origin.

    Attributes:
        R, p: orientation (3, 3) and origin (3,) in the base frame.
        is_native_in_base: whether the body's velocities are given in the base frame (a free
            platform).
        hinge: axis of a body that rotates about a fixed axis; None for other bodies.
        inner, link: inner body and joint through which the body moves; None for the base.
    """

    R: ca.SX
    p: ca.SX
    is_native_in_base: bool = False
    hinge: Hinge | None = None
    inner: BodyMotion | None = None
    link: TreeLink | None = None

    @cached_property
    def in_body(self) -> BodyRates:
        """Velocities and accelerations in body coordinates."""
        self._sweep("in_body")
        if self.inner is None or self.link is None:
            return _at_rest()
        return _outer_rates(
            self.link, self.link.in_body, self.link.p_PB, self.link.R_PB.T, self.inner.in_body
        )

    @cached_property
    def in_base(self) -> BodyRates:
        """Velocities and accelerations in base coordinates."""
        self._sweep("in_base")
        if self.inner is None or self.link is None:
            return _at_rest()
        return _outer_rates(self.link, self.link.in_base, self.link.r_W, None, self.inner.in_base)

    def _sweep(self, axes: str) -> None:
        """Compute the motion of all inner bodies from the base outwards, without recursion."""
        path = []
        body = self.inner
        while body is not None and axes not in vars(body):
            path.append(body)
            body = body.inner
        for body in reversed(path):
            getattr(body, axes)

    def point(self, r: ca.SX) -> PointMotion:
        """Return the motion of the point at r (body coordinates) in the base frame."""
        if self.hinge is not None:
            return self.hinge.point(self, r)
        r_W = self.R @ r
        return PointMotion(body=self, r=r_W, p=self.p + r_W)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinge:
    """A fixed axis about which a body rotates.

    The circle of a point is computed from two constant vectors, without cross products.

    Attributes:
        R, p: orientation and origin of the joint's inner frame in the base frame.
        R_BC, p_BC: the joint's outer frame on the body.
        axis: letter of the axis in both frames.
        sign: -1 where the joint is described from the body to the base.
        c, s: cosine and sine of the angle about the axis.
        rate, acceleration: first and second rate of the coordinate, rad/s and rad/s^2.
    """

    R: ca.SX
    p: ca.SX
    R_BC: ca.SX
    p_BC: ca.SX
    axis: str
    sign: int
    c: ca.SX
    s: ca.SX
    rate: ca.SX
    acceleration: ca.SX

    def point(self, body: BodyMotion, r: ca.SX) -> PointMotion:
        """Return the motion of a point on the circle c P + s Q with the tangent t = c Q - s P."""
        e = unit_vector(self.axis)
        rho = self.R_BC.T @ (r - self.p_BC)
        along = e * ca.dot(e, rho)
        P, Q = self.R @ (rho - along), self.R @ cross(e, rho)
        radius = self.c * P + self.s * Q
        tangent = self.sign * (self.c * Q - self.s * P)
        p = self.p + self.R @ along + radius
        return PointMotion(body=body, r=p - body.p, p=p, circle=(tangent, radius))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PointMotion:
    """Position, velocity and acceleration of a point of a body in the base frame (3,).

    Attributes:
        body: motion of the body.
        r: offset from the body's origin.
        p: position.
        circle: velocity per unit rate of the hinge, and radius, for a body that rotates about a
            fixed axis; None for other bodies.
    """

    body: BodyMotion
    r: ca.SX
    p: ca.SX
    circle: tuple[ca.SX, ca.SX] | None = None

    @property
    def tangent(self) -> ca.SX | None:
        """Velocity per unit rate of the hinge; None for a body without a fixed axis."""
        return self.circle[0] if self.circle else None

    @cached_property
    def v(self) -> ca.SX:
        """Velocity; on a circle it is t w with the tangent t and the rate w."""
        if self.circle and self.body.hinge:
            return self.circle[0] * self.body.hinge.rate
        return self.body.in_base.v + self._velocity_about_origin

    @cached_property
    def a(self) -> ca.SX:
        """Acceleration; on a circle it is t w' - radius w^2."""
        if self.circle and self.body.hinge:
            hinge, (tangent, radius) = self.body.hinge, self.circle
            return tangent * hinge.acceleration - radius * (hinge.rate * hinge.rate)
        rates = self.body.in_base
        return rates.a + cross(rates.alpha, self.r) + cross(rates.w, self._velocity_about_origin)

    @cached_property
    def _velocity_about_origin(self) -> ca.SX:
        return cross(self.body.in_base.w, self.r)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeMotion:
    """Motion of the tree: bodies by name, links from the base outwards, and the state.

    Attributes:
        topology, values: the tree and its parameters.
        bodies, links: motions of the bodies and joints.
        configuration, v, a: coordinates, velocities and accelerations.
    """

    topology: Topology
    values: Values
    bodies: dict[str, BodyMotion]
    links: tuple[TreeLink, ...]
    configuration: Configuration
    v: ca.SX
    a: ca.SX

    @property
    def q(self) -> ca.SX:
        """Coordinates (n_q,)."""
        return self.configuration.q

    def point(self, placement: Placement) -> PointMotion:
        """Return the motion of a frame's origin in the base frame."""
        return self.bodies[placement.body].point(self.values.placement(placement)[1])

    def relative_to(self, body: str, edges: Iterable[TreeJoint]) -> TreeMotion:
        """Return the motion of some bodies relative to another body, in that body's frame.

        Args:
            body: the body that serves as the base.
            edges: joints from that body outwards, inner joints first.
        """
        return tree_motion(
            self.topology, self.values, self.configuration, self.v, self.a, base=body, edges=edges
        )

    def length(self, q_index: int, v_index: int) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Return a scalar coordinate, such as a rod's length, with its rate and acceleration."""
        return self.configuration.q[q_index], self.v[v_index], self.a[v_index]


#: Kinds of joints whose velocities are components in the axes of the inner body.
_NATIVE_IN_INNER = ("free", "spherical", "translational")


def tree_motion(
    topology: Topology,
    values: Values,
    configuration: Configuration,
    v: ca.SX,
    a: ca.SX,
    *,
    base: str = BASE,
    edges: Iterable[TreeJoint] | None = None,
) -> TreeMotion:
    """Return the motion of all bodies by a sweep from the base outwards.

    E is the rotation from P to B coordinates. The sweep computes w_B = E w_P + S_w v and
    v_B = E (v_P + w_P x p) + S_v v, and their rates (Khalil and Dombre, Newton-Euler sweep). In
    base coordinates, the equations are the same without E.

    Args:
        topology: the tree.
        values: parameters.
        configuration: coordinates (n_q,).
        v: velocities (n_v,).
        a: accelerations (n_v,).
        base: body relative to which the motion is computed.
        edges: joints from that body outwards, inner joints first; by default all joints of the
            tree.
    """
    bodies = {base: BodyMotion(R=ca.SX.eye(3), p=ca.SX(3, 1), is_native_in_base=True)}
    links = []
    for edge in topology.tree if edges is None else edges:
        P = bodies[edge.inner.body]
        indices = slice(edge.v.start, edge.v.stop)
        # a slice keeps the shape of a scalar, a list would make a row
        v_joint, a_joint = v[indices, 0], a[indices, 0]
        link = _link(edge, values, configuration, v_joint, a_joint, P.R)
        links.append(link)
        bodies[edge.outer.body] = BodyMotion(
            R=P.R @ link.R_PB,
            p=P.p + link.r_W,
            is_native_in_base=P.is_native_in_base and edge.joint.kind in _NATIVE_IN_INNER,
            hinge=_hinge(edge, values, configuration, v_joint, a_joint)
            if edge.inner.body == base
            else None,
            inner=P,
            link=link,
        )
    return TreeMotion(
        topology=topology,
        values=values,
        bodies=bodies,
        links=tuple(links),
        configuration=configuration,
        v=v,
        a=a,
    )


def symbolic_motion(topology: Topology, values: Values, *, is_moving: bool = True) -> TreeMotion:
    """Return the motion of all bodies for symbols `q` and `v`, without accelerations.

    Args:
        topology: the tree.
        values: parameters.
        is_moving: whether to compute velocities in addition to positions.
    """
    q, zero = ca.SX.sym("q", topology.n_q), ca.SX(topology.n_v, 1)
    v = ca.SX.sym("v", topology.n_v) if is_moving else zero
    return tree_motion(topology, values, Configuration(q, {}), v, zero)


def _hinge(
    edge: TreeJoint, values: Values, configuration: Configuration, rate: ca.SX, acceleration: ca.SX
) -> Hinge | None:
    """Return the fixed axis of a body on a revolute joint of the base; None for other joints."""
    if edge.joint.kind != "revolute":
        return None
    sign = -1 if edge.is_reversed else 1
    c, s = configuration.pair(edge.q.start)
    R, p = values.placement(edge.inner)
    R_BC, p_BC = values.placement(edge.outer)
    return Hinge(
        R=R,
        p=p,
        R_BC=R_BC,
        p_BC=p_BC,
        axis=edge.joint.axes[0],
        sign=sign,
        c=c,
        s=sign * s,
        rate=rate,
        acceleration=acceleration,
    )


def _at_rest() -> BodyRates:
    zero = ca.SX(3, 1)
    return BodyRates(zero, zero, zero, zero)


def _outer_rates(
    link: TreeLink, partial: Partial, r: ca.SX, E: ca.SX | None, inner: BodyRates
) -> BodyRates:
    """Return the rates of the outer body from those of the inner body.

    Args:
        link: the joint between them.
        partial: relative motion in the axes of the result.
        r: offset from the inner to the outer origin, in the axes of the inner body's motion.
        E: rotation from these axes into those of the result; None if they are the same.
        inner: motion of the inner body.
    """

    def rotated(x: ca.SX) -> ca.SX:
        return x if E is None else E @ x

    w_r = cross(inner.w, r)
    w_P = rotated(inner.w)
    w_rel, v_rel = partial.w @ link.v, partial.v @ link.v
    return BodyRates(
        w_P + w_rel,
        rotated(inner.v + w_r) + v_rel,
        rotated(inner.alpha) + partial.w @ link.a + partial.bias_w + cross(w_P, w_rel),
        rotated(inner.a + cross(inner.alpha, r) + cross(inner.w, w_r))
        + partial.v @ link.a
        + partial.bias_v
        + 2 * cross(w_P, v_rel),
    )


def _link(
    edge: TreeJoint, values: Values, configuration: Configuration, v: ca.SX, a: ca.SX, R_P: ca.SX
) -> TreeLink:
    """Return the link, with the joint's motion transferred from frame C to the origin of B."""
    R_PF, p_PF = values.placement(edge.inner)
    R_BC, p_BC = values.placement(edge.outer)
    joint = joint_motion(edge, configuration, v)
    R_PB = R_PF @ joint.R @ R_BC.T
    p_PB = p_PF + R_PF @ joint.p - R_PB @ p_BC
    return TreeLink(
        edge=edge,
        R_PB=R_PB,
        p_PB=p_PB,
        r_W=R_P @ p_PB,
        joint=joint,
        R_PF=R_PF,
        R_BC=R_BC,
        p_BC=p_BC,
        R_P=R_P,
        v=v,
        a=a,
    )


def _at_origin(at_joint: Partial, p: ca.SX, v: ca.SX) -> Partial:
    """Return the partial velocities of the origin at -p from the joint: u = u_C + p x w."""
    w = at_joint.w @ v
    return Partial(
        w=at_joint.w,
        v=at_joint.v + ca.skew(p) @ at_joint.w,
        bias_w=at_joint.bias_w,
        bias_v=at_joint.bias_v + cross(p, at_joint.bias_w) + cross(w, cross(p, w)),
    )


def joint_motion(edge: TreeJoint, configuration: Configuration, v: ca.SX) -> JointMotion:
    """Return the motion across a joint of any kind, from its inner to its outer frame.

    A reversed joint has the inverse motion: negative coordinates, the conjugate quaternion, and
    swapped axes of a universal joint.
    """
    kind, axes, q = edge.joint.kind, edge.joint.axes, configuration.q
    if JOINT_KINDS[kind].placement is not None:
        return _plugin_motion(edge, q, v)
    sign = -1 if edge.is_reversed else 1
    i = edge.q.start
    n = len(edge.v)
    identity, zero = ca.SX.eye(3), ca.SX(3, 1)
    R, p = identity, zero
    inner_w, inner_v, outer_w, outer_v = ca.SX(3, n), ca.SX(3, n), ca.SX(3, n), ca.SX(3, n)
    inner_bias, outer_bias = zero, zero
    if kind in ("revolute", "cylindrical"):
        c, s = configuration.pair(i)
        R = elementary_rotation(axes[0], c, sign * s)
        inner_w[:, 0] = sign * unit_vector(axes[0])
        outer_w = inner_w
    if kind in ("prismatic", "cylindrical"):
        inner_v[:, n - 1] = sign * unit_vector(axes[0])
        outer_v = inner_v
        p = sign * q[i + n - 1] * unit_vector(axes[0])
    elif kind == "universal":
        first, second = (1, 0) if edge.is_reversed else (0, 1)
        (c1, s1), (c2, s2) = configuration.pair(i + first), configuration.pair(i + second)
        R_first = elementary_rotation(axes[first], c1, sign * s1)
        R_second = elementary_rotation(axes[second], c2, sign * s2)
        R = R_first @ R_second
        inner_w[:, first] = sign * unit_vector(axes[first])
        inner_w[:, second] = sign * (R_first @ unit_vector(axes[second]))
        outer_w[:, first] = sign * (R_second.T @ unit_vector(axes[first]))
        outer_w[:, second] = sign * unit_vector(axes[second])
        inner_bias = cross(inner_w[:, first] * v[first], inner_w[:, second] * v[second])
        outer_bias = cross(outer_w[:, first] * v[first], outer_w[:, second] * v[second])
    elif kind == "spherical":
        R_parent_child = quaternion_rotation(q[i : i + 4])
        R = R_parent_child.T if edge.is_reversed else R_parent_child
        inner_w = -R if edge.is_reversed else identity
        outer_w = -identity if edge.is_reversed else R.T
    elif kind == "translational":
        p = sign * q[i : i + 3]
        inner_v = outer_v = sign * identity
    elif kind in ("planar", "schoenflies"):
        slides = n - 1
        c, s = configuration.pair(i + slides)
        R = elementary_rotation("z", c, s)
        p = ca.vertcat(q[i : i + slides], ca.SX(3 - slides, 1))
        inner_v[:, :slides], outer_v[:, :slides] = identity[:, :slides], R.T[:, :slides]
        inner_w[2, slides] = 1
        outer_w = inner_w
    elif kind == "free":
        p = q[i : i + 3]
        R = quaternion_rotation(q[i + 3 : i + 7])
        inner_v[:, :3], inner_w[:, 3:] = identity, identity
        outer_v[:, :3], outer_w[:, 3:] = R.T, R.T
    return JointMotion(
        R=R,
        p=p,
        inner=Partial(w=inner_w, v=inner_v, bias_w=inner_bias, bias_v=zero),
        outer=Partial(w=outer_w, v=outer_v, bias_w=outer_bias, bias_v=zero),
    )


def _plugin_motion(edge: TreeJoint, q: ca.SX, v: ca.SX) -> JointMotion:
    """Return the motion across a joint of a plug-in kind, which is defined by R(x) and p(x).

    skew(w_i) = (dR/dx_i) R^T and v_i = dp/dx_i. The rates at constant velocities are (d/dx)(W v) v
    and (d/dx)(V v) v.
    """
    x = ca.SX.sym("x", len(edge.q))
    placement = JOINT_KINDS[edge.joint.kind].placement
    assert placement is not None
    axes = [unit_vector(axis) for axis in edge.joint.axes]
    R, p = (ca.SX(result) for result in placement(axes, x))
    if edge.is_reversed:
        R, p = R.T, -R.T @ p
    R_rates = ca.jacobian(ca.densify(ca.vec(R)), x)
    rotation_rates = [ca.reshape(R_rates[:, i], 3, 3) for i in range(len(edge.q))]
    W = ca.horzcat(*(ca.inv_skew(rate @ R.T) for rate in rotation_rates))
    V = ca.jacobian(ca.densify(p), x)
    rates = [ca.jtimes(ca.densify(velocity @ v), x, v) for velocity in (W, V)]
    R, p, W, V, bias_w, bias_v = ca.substitute(
        [R, p, W, V, *rates], [x], [q[edge.q.start : edge.q.stop]]
    )
    inner = Partial(w=W, v=V, bias_w=bias_w, bias_v=bias_v)
    return JointMotion(R=R, p=p, inner=inner, outer=inner.rotated(R.T))


def coordinate_rates(topology: Topology, q: ca.SX) -> ca.SX:
    """Return N (n_q, n_v) with dq/dt = N v.

    The rate of a quaternion is half its product with the angular velocity.
    """
    N = ca.SX(topology.n_q, topology.n_v)
    for i, j in enumerate(topology.q_of_v):
        if j >= 0:
            N[j, i] = 1
    for iq, iv in topology.quaternions:
        w, x, y, z = (q[iq + k] for k in range(4))
        N[iq : iq + 4, iv : iv + 3] = 0.5 * ca.vertcat(
            ca.horzcat(-x, -y, -z), ca.horzcat(w, z, -y), ca.horzcat(-z, w, x), ca.horzcat(y, -x, w)
        )
    return N


def quaternion_rotation(quaternion: ca.SX) -> ca.SX:
    """Return the rotation matrix (3, 3) of a unit quaternion (w, x, y, z).

    The matrix maps vectors from the rotated frame into the reference frame.
    """
    w, x, y, z = ca.vertsplit(quaternion)
    x2, y2, z2 = 2 * x, 2 * y, 2 * z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return ca.vertcat(
        ca.horzcat(1 - (yy + zz), xy - wz, xz + wy),
        ca.horzcat(xy + wz, 1 - (xx + zz), yz - wx),
        ca.horzcat(xz - wy, yz + wx, 1 - (xx + yy)),
    )
