"""Planar reduction: rotation about one direction needs three of the ten inertial parameters.

Mass, first moment in the plane and one moment of inertia suffice. The dropped parameters do not
affect any actuator force, even if the bodies also move along the normal of the plane (Kroneis et
al., step 1).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.mechanism.expression import (
    ZERO,
    Call,
    Constant,
    Expression,
    add,
    divide,
    multiply,
    steps_from,
    subtract,
    triple,
)
from tauloop.mechanism.links.graph import far_side, joints_of, rods_of, side
from tauloop.mechanism.model import (
    BASE,
    MOMENT_ENTRIES,
    Body,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
    Vector,
)
from tauloop.mechanism.poses import UNIT_VECTORS, rotation_matrix
from tauloop.mechanism.reduction.graph import without
from tauloop.mechanism.reduction.inertia import clean, minus
from tauloop.mechanism.reduction.steps import Step, limits_of, require

#: Sine of the angle between two axes below which they count as parallel.
PARALLEL = 1e-9
#: First moment across a link, relative to mass times length, up to which it counts as zero.
ON_THE_LINE = 1e-12


def frame(mechanism: Mechanism, placement: Placement) -> np.ndarray:
    """Return the orientation (3, 3) of a placement in its body, at nominal parameters."""
    return clean(
        rotation_matrix([(turn.axis, mechanism.value(turn.angle)) for turn in placement.turns])
    )


#: Joints that rotate about one direction.
TURNING = ("revolute", "cylindrical", "planar", "schoenflies")


def normals(mechanism: Mechanism) -> dict[str, np.ndarray]:
    """Return the common axis direction (3,) of all rotations, in coordinates of each body, by name.

    Raises:
        InputError: there is no rotation, or joints rotate about different directions.
    """
    turning = [joint for joint in mechanism.joints if joint.kind in TURNING]
    problems = Problems(
        Problem(
            where=f"joints.{joint.name}",
            what=f"a {joint.kind} joint rotates about more than one direction",
            remedy="hold the rotations of the platform first, so that all axes are parallel",
        )
        for joint in mechanism.joints
        if joint.kind in ("universal", "spherical", "free")
    )
    if not turning:
        problems.add("joints", "no joint rotates, so there is no plane", "skip this step")
    require(mechanism, problems)
    first = turning[0]
    axes = {
        placement.body: axis_on(mechanism, first, placement)
        for placement in (first.parent, first.child)
    }
    pending = list(axes)
    while pending:
        body = pending.pop()
        for joint in joints_of(mechanism, body):
            near, far = side(joint, body), far_side(joint, body)
            if joint in turning:
                axis = axis_on(mechanism, joint, near)
                sign = 1.0 if axis @ axes[body] > 0 else -1.0
                off = float(np.linalg.norm(np.cross(axis, axes[body])))
                n = sign * axis_on(mechanism, joint, far)
            else:
                off = 0.0
                n = clean(frame(mechanism, far) @ frame(mechanism, near).T) @ axes[body]
            if far.body not in axes:
                axes[far.body] = n
                pending.append(far.body)
            off = max(off, float(np.linalg.norm(n - axes[far.body])))
            if off > PARALLEL:
                problems.add(
                    f"joints.{joint.name}",
                    f"its axis is {np.degrees(np.arcsin(min(off, 1.0))):.3g} deg off the axis of "
                    f"{first.name}",
                    "make all axes parallel, or skip this step",
                )
    require(mechanism, list({problem.where: problem for problem in problems}.values()))
    return axes


def axis_on(mechanism: Mechanism, joint: Joint, placement: Placement) -> np.ndarray:
    """Return the axis (3,) of a joint in coordinates of the body of one of its frames.

    A joint without axes has the z axis of the frame.
    """
    return frame(mechanism, placement) @ UNIT_VECTORS[joint.axes[0] if joint.axes else "z"]


def is_planar(mechanism: Mechanism) -> bool:
    """Return whether all rotations in the machine are about one direction."""
    try:
        normals(mechanism)
    except InputError:
        return False
    return True


def planar_inertia(mechanism: Mechanism) -> tuple[Mechanism, Step]:
    """Reduce bodies to mass, first moment in the plane, and moment of inertia about the normal.

    With n the normal: h' = h - n (n.h), I' = (n.I n) n n^T.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the machine rotates about more than one direction.
    """
    directions = normals(mechanism)

    def flattened(body: Body) -> Body:
        if body.inertia is None or body.name not in directions:
            return body
        n, h, moment = (
            directions[body.name],
            body.inertia.first_moment,
            normal_moment(body.inertia, directions[body.name]),
        )
        moments = (_scaled(n[i] * n[j], moment) for i, j in MOMENT_ENTRIES)
        return replace(body, inertia=Inertia.of([body.inertia.mass, *minus_normal(h, n), *moments]))

    bodies = tuple(flattened(body) for body in mechanism.bodies)
    step = Step(
        name="planar inertia",
        kept=tuple(b.name for b, old in zip(bodies, mechanism.bodies, strict=True) if b != old),
        preserved=("mass", "first moment in the plane", "moment of inertia about the normal"),
    )
    return replace(mechanism, bodies=bodies), step


def as_laminas(mechanism: Mechanism) -> Mechanism:
    """Complete planar inertias to those of laminas, because machine files need possible inertias.

    With J the moment about the normal n and h the first moment in the plane, I = J n n^T + (J +
    h.h/m)/2 (1 - n n^T) - h h^T/m. The moment about each in-plane axis through the mass center is
    then half of the moment about the normal. In a planar machine the added moments have no effect.
    Other machines and bodies without mass remain unchanged.

    Returns:
        The machine with complete inertias.
    """
    if not is_planar(mechanism):
        return mechanism
    directions = normals(mechanism)

    def filled(body: Body) -> Body:
        inertia = body.inertia
        if (
            inertia is None
            or body.name not in directions
            or not mechanism.value(inertia.mass) > 0.0
        ):
            return body
        n, h, m = directions[body.name], inertia.first_moment, inertia.mass
        J = normal_moment(inertia, n)
        across = multiply(Constant(0.5), add(J, divide(add(*(multiply(x, x) for x in h)), m)))

        def moment(i: int, j: int) -> Expression:
            along = float(n[i] * n[j])
            whole = add(_scaled(along, J), _scaled(float(i == j) - along, across))
            return subtract(whole, divide(multiply(h[i], h[j]), m))

        return replace(
            body, inertia=Inertia.of([m, *h, *(moment(i, j) for i, j in MOMENT_ENTRIES)])
        )

    return replace(mechanism, bodies=tuple(filled(body) for body in mechanism.bodies))


def normal_moment(inertia: Inertia, n: np.ndarray) -> Expression:
    """Return n.I n about the origin of the frame."""
    weights = (
        n[0] * n[0],
        2 * n[0] * n[1],
        n[1] * n[1],
        2 * n[0] * n[2],
        2 * n[1] * n[2],
        n[2] * n[2],
    )
    return add(
        *(_scaled(w, moment) for w, moment in zip(weights, inertia.second_moment, strict=True))
    )


def _scaled(factor: float, expression: Expression) -> Expression:
    return multiply(Constant(float(factor)), expression)


def _dot(n: np.ndarray, vector: Vector) -> Expression:
    return add(*(_scaled(n[i], vector[i]) for i in range(3)))


def links_as_rods(mechanism: Mechanism) -> tuple[Mechanism, Step]:
    """Replace unloaded links between two revolute joints by slender rods.

    In the plane, a link whose mass center lies on the line through its joints is exactly a slender
    rod: h = (mc - m r_1).u, J = I_nn - 2 mc.r_1 + m r_1.r_1 about its first joint. The loop then
    has one coordinate less, and only one equation.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the machine rotates about more than one direction.
    """
    directions = normals(mechanism)
    names: list[str] = []
    gone: list[Joint] = []
    if any(
        joint.kind in ("cylindrical", "schoenflies", "translational") for joint in mechanism.joints
    ):
        return mechanism, Step(name="links as rods")
    for body in mechanism.bodies:
        ends = joints_of(mechanism, body.name)
        if not _hangs_free(mechanism, body, ends, directions[body.name]):
            continue
        rest = without(mechanism, (body.name,), (end.name for end in ends))
        if {other.name for other in rest.bodies} <= steps_from(
            BASE, (joint.bodies for joint in rest.joints)
        ).keys():
            rod = _rod(body, ends, directions[body.name])
            mechanism = replace(rest, rods=(*rest.rods, rod))
            names.append(body.name)
            gone += ends
    step = Step(
        name="links as rods",
        removed=tuple(names),
        kept=tuple(names),
        preserved=("mass", "mass center", "moment of inertia about the normal") if names else (),
        lost=limits_of(gone),
    )
    return mechanism, step


def _hangs_free(mechanism: Mechanism, body: Body, ends: tuple[Joint, ...], n: np.ndarray) -> bool:
    if len(ends) != 2 or body.name == mechanism.platform.body or rods_of(mechanism, body.name):
        return False
    if any(joint.kind != "revolute" or mechanism.is_loaded(joint) for joint in ends):
        return False
    r1, r2 = (side(joint, body.name).position for joint in ends)
    d = np.array([mechanism.value(x) for x in minus(r2, r1)])
    length = float(np.linalg.norm(d))
    if length == 0.0 or abs(d @ n) > ON_THE_LINE * length:
        return False
    if body.inertia is None:
        return True
    m = mechanism.value(body.inertia.mass)
    h = np.array([mechanism.value(x) for x in body.inertia.first_moment])
    off = np.cross(h - m * np.array([mechanism.value(x) for x in r1]), d / length)
    return abs(float(off @ n)) <= ON_THE_LINE * m * length


def _rod(body: Body, ends: tuple[Joint, ...], n: np.ndarray) -> Rod:
    start, end = (far_side(joint, body.name) for joint in ends)
    r1, r2 = (side(joint, body.name).position for joint in ends)
    d = minus(r2, r1)
    length = _length(d)
    part = None
    if body.inertia is not None:
        m, h = body.inertia.mass, body.inertia.first_moment
        along = divide(
            add(*(multiply(subtract(h[i], multiply(m, r1[i])), d[i]) for i in range(3))), length
        )
        in_plane = minus_normal(r1, n)
        twice = [multiply(Constant(2.0), component) for component in h]
        shift = add(
            *(multiply(subtract(multiply(m, x), twice[i]), x) for i, x in enumerate(in_plane))
        )
        part = SlenderPart(
            mass=m, first_moment=along, second_moment=add(normal_moment(body.inertia, n), shift)
        )
    return Rod(
        name=body.name,
        start=Placement(body=start.body, position=start.position),
        end=Placement(body=end.body, position=end.position),
        length=length,
        lower=part,
    )


def minus_normal(vector: Vector, n: np.ndarray) -> Vector:
    """Return the in-plane component of a vector."""
    along = _dot(n, vector)
    return triple(
        ZERO if abs(n[i]) == 1.0 else subtract(vector[i], _scaled(n[i], along)) for i in range(3)
    )


def _length(d: Vector) -> Expression:
    present = [component for component in d if component != ZERO]
    if len(present) == 1:
        return Call("abs", (present[0],))
    return Call("sqrt", (add(*(multiply(component, component) for component in present)),))
