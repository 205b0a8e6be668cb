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
from tauloop.mechanism.reduction.inertia import minus, rounded_entries
from tauloop.mechanism.reduction.steps import Step, limits_of, require

#: Axes count as parallel if the sine of the angle between them is below this.
PARALLEL = 1e-9
#: Distances from the line of a link, relative to its length, that count as zero.
LINE_TOLERANCE = 1e-12


def frame(mechanism: Mechanism, placement: Placement) -> np.ndarray:
    """Return the orientation (3, 3) of a placement in its body, at nominal parameters."""
    return rounded_entries(
        rotation_matrix([(turn.axis, mechanism.value(turn.angle)) for turn in placement.turns])
    )


#: Kinds of joints that rotate about one direction.
ROTATING_KINDS = ("revolute", "cylindrical", "planar", "schoenflies")


def normals(mechanism: Mechanism) -> dict[str, np.ndarray]:
    """Return the common axis direction (3,) of all rotations, in coordinates of each body, by name.

    Raises:
        InputError: there is no rotation, or joints rotate about different directions.
    """
    rotating = [joint for joint in mechanism.joints if joint.kind in ROTATING_KINDS]
    problems = Problems(
        Problem(
            where=f"joints.{joint.name}",
            what=f"a {joint.kind} joint rotates about more than one direction",
            remedy="hold the rotations of the platform first, so that all axes are parallel",
        )
        for joint in mechanism.joints
        if joint.kind in ("universal", "spherical", "free")
    )
    if not rotating:
        problems.add("joints", "no joint rotates, so there is no plane", "skip this step")
    require(mechanism, problems)
    first = rotating[0]
    axes = {
        placement.body: axis_on(mechanism, first, placement)
        for placement in (first.parent, first.child)
    }
    pending = list(axes)
    while pending:
        body = pending.pop()
        for joint in joints_of(mechanism, body):
            inner, outer = side(joint, body), far_side(joint, body)
            if joint in rotating:
                axis = axis_on(mechanism, joint, inner)
                sign = 1.0 if axis @ axes[body] > 0 else -1.0
                deviation = float(np.linalg.norm(np.cross(axis, axes[body])))
                n = sign * axis_on(mechanism, joint, outer)
            else:
                deviation = 0.0
                n = (
                    rounded_entries(frame(mechanism, outer) @ frame(mechanism, inner).T)
                    @ axes[body]
                )
            if outer.body not in axes:
                axes[outer.body] = n
                pending.append(outer.body)
            deviation = max(deviation, float(np.linalg.norm(n - axes[outer.body])))
            if deviation > PARALLEL:
                problems.add(
                    f"joints.{joint.name}",
                    f"its axis is {np.degrees(np.arcsin(min(deviation, 1.0))):.3g} deg "
                    f"off the axis of {first.name}",
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

    With the normal n, the first moment h and the inertia I: h' = h - n (n.h), I' = (n.I n) n n^T.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the machine rotates about more than one direction.
    """
    directions = normals(mechanism)

    def flattened(body: Body) -> Body:
        if body.inertia is None or body.name not in directions:
            return body
        n = directions[body.name]
        h = body.inertia.first_moment
        moment = normal_moment(body.inertia, n)
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
    """Complete planar inertias to those of laminas, because files need possible inertias.

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

    def completed(body: Body) -> Body:
        inertia = body.inertia
        if (
            inertia is None
            or body.name not in directions
            or not mechanism.value(inertia.mass) > 0.0
        ):
            return body
        n, h, m = directions[body.name], inertia.first_moment, inertia.mass
        J = normal_moment(inertia, n)
        in_plane_moment = multiply(
            Constant(0.5), add(J, divide(add(*(multiply(x, x) for x in h)), m))
        )

        def moment(i: int, j: int) -> Expression:
            normal_factor = float(n[i] * n[j])
            moment_about_center = add(
                _scaled(normal_factor, J), _scaled(float(i == j) - normal_factor, in_plane_moment)
            )
            return subtract(moment_about_center, divide(multiply(h[i], h[j]), m))

        return replace(
            body, inertia=Inertia.of([m, *h, *(moment(i, j) for i, j in MOMENT_ENTRIES)])
        )

    return replace(mechanism, bodies=tuple(completed(body) for body in mechanism.bodies))


def normal_moment(inertia: Inertia, n: np.ndarray) -> Expression:
    """Return n.I n about the origin of the frame."""
    coefficients = (
        n[0] * n[0],
        2 * n[0] * n[1],
        n[1] * n[1],
        2 * n[0] * n[2],
        2 * n[1] * n[2],
        n[2] * n[2],
    )
    return add(
        *(
            _scaled(coefficient, moment)
            for coefficient, moment in zip(coefficients, inertia.second_moment, strict=True)
        )
    )


def _scaled(factor: float, expression: Expression) -> Expression:
    return multiply(Constant(float(factor)), expression)


def _dot(n: np.ndarray, vector: Vector) -> Expression:
    return add(*(_scaled(n[i], vector[i]) for i in range(3)))


def links_as_rods(mechanism: Mechanism) -> tuple[Mechanism, Step]:
    """Replace unloaded links between two revolute joints by slender rods.

    In the plane, a link whose mass center lies on the line through its joints is exactly a slender
    rod: h = (mc - m r_1).u, J = I_nn - 2 mc.r_1 + m r_1.r_1 about its first joint at r_1, with mass
    m, first moment mc, moment I_nn about the normal and unit vector u along the link. The loop then
    has one coordinate less, and only one equation.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the machine rotates about more than one direction.
    """
    directions = normals(mechanism)
    names: list[str] = []
    removed_joints: list[Joint] = []
    if any(
        joint.kind in ("cylindrical", "schoenflies", "translational") for joint in mechanism.joints
    ):
        return mechanism, Step(name="links as rods")
    for body in mechanism.bodies:
        ends = joints_of(mechanism, body.name)
        if not _can_be_rod(mechanism, body, ends, directions[body.name]):
            continue
        reduced = without(mechanism, (body.name,), (end.name for end in ends))
        if {other.name for other in reduced.bodies} <= steps_from(
            BASE, (joint.bodies for joint in reduced.joints)
        ).keys():
            rod = _rod(body, ends, directions[body.name])
            mechanism = replace(reduced, rods=(*reduced.rods, rod))
            names.append(body.name)
            removed_joints += ends
    step = Step(
        name="links as rods",
        removed=tuple(names),
        kept=tuple(names),
        preserved=("mass", "mass center", "moment of inertia about the normal") if names else (),
        lost=limits_of(removed_joints),
    )
    return mechanism, step


def _can_be_rod(mechanism: Mechanism, body: Body, ends: tuple[Joint, ...], n: np.ndarray) -> bool:
    """Return whether a body is an unloaded link with its mass center on the line of its joints."""
    if len(ends) != 2 or body.name == mechanism.platform.body or rods_of(mechanism, body.name):
        return False
    if any(joint.kind != "revolute" or mechanism.is_loaded(joint) for joint in ends):
        return False
    r1, r2 = (side(joint, body.name).position for joint in ends)
    d = np.array([mechanism.value(x) for x in minus(r2, r1)])
    length = float(np.linalg.norm(d))
    if length == 0.0 or abs(d @ n) > LINE_TOLERANCE * length:
        return False
    if body.inertia is None:
        return True
    m = mechanism.value(body.inertia.mass)
    h = np.array([mechanism.value(x) for x in body.inertia.first_moment])
    offset = np.cross(h - m * np.array([mechanism.value(x) for x in r1]), d / length)
    return abs(float(offset @ n)) <= LINE_TOLERANCE * m * length


def _rod(body: Body, ends: tuple[Joint, ...], n: np.ndarray) -> Rod:
    """Return the slender rod that replaces a link; see `links_as_rods`."""
    start, end = (far_side(joint, body.name) for joint in ends)
    r1, r2 = (side(joint, body.name).position for joint in ends)
    d = minus(r2, r1)
    length = _length(d)
    part = None
    if body.inertia is not None:
        m, h = body.inertia.mass, body.inertia.first_moment
        moment_along_rod = divide(
            add(*(multiply(subtract(h[i], multiply(m, r1[i])), d[i]) for i in range(3))), length
        )
        in_plane = minus_normal(r1, n)
        doubled_moment = [multiply(Constant(2.0), component) for component in h]
        shift = add(
            *(
                multiply(subtract(multiply(m, x), doubled_moment[i]), x)
                for i, x in enumerate(in_plane)
            )
        )
        part = SlenderPart(
            mass=m,
            first_moment=moment_along_rod,
            second_moment=add(normal_moment(body.inertia, n), shift),
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
    normal_component = _dot(n, vector)
    return triple(
        ZERO if abs(n[i]) == 1.0 else subtract(vector[i], _scaled(n[i], normal_component))
        for i in range(3)
    )


def _length(d: Vector) -> Expression:
    nonzero = [component for component in d if component != ZERO]
    if len(nonzero) == 1:
        return Call("abs", (nonzero[0],))
    return Call("sqrt", (add(*(multiply(component, component) for component in nonzero)),))
