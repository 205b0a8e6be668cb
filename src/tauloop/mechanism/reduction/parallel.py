"""Bars that rotate as another body does: couplings of joint angles replace them.

The inertia of such a bar is distributed to other bodies. Consider a bar from A to B with d = B - A
and with the same rotation as another body, of angular velocity w. Then v_B = v_A + w x d. Let the
bar have mass m, first moment h = m_B d and moments I about A. It is exactly equivalent to point
masses m - m_B at A and m_B at B, and to moments I - m_B (d.d 1 - d d^T) added to the other body.
These moments may be negative, but the total inertia of each body must be physically possible. The
bar constrains one angle; a coupling of the joint angles replaces this constraint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problems
from tauloop.mechanism.expression import (
    ZERO,
    Constant,
    Expression,
    add,
    divide,
    multiply,
    steps_from,
    subtract,
    triple,
)
from tauloop.mechanism.inertia import DEGENERACY_TOLERANCE, is_possible
from tauloop.mechanism.links.graph import far_side, joints_of, rods_of, side
from tauloop.mechanism.model import (
    BASE,
    MOMENT_ENTRIES,
    ZERO_VECTOR,
    Coupling,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    SlenderPart,
    Vector,
)
from tauloop.mechanism.poses import UNIT_VECTORS
from tauloop.mechanism.reduction.graph import STRAIGHT, numbers, with_added, without
from tauloop.mechanism.reduction.inertia import (
    inertia_about,
    minus,
    point_mass,
    rotated_inertia,
    rounded_entries,
)
from tauloop.mechanism.reduction.planar import PARALLEL, axis_on, frame
from tauloop.mechanism.reduction.steps import BodyMotions, Step, limits_of, require

#: Names of the steps.
COUPLED = "couple parallel links"
PINNED = "lump pinned body"
CONCENTRATED = "concentrate mass"
#: Distance, relative to the characteristic length, below which two joints of a bar coincide.
LINE_TOLERANCE = 1e-12
#: Quantities that are preserved when a coupling replaces a bar.
PRESERVED = ("mass", "mass center", "inertia", "the constrained angle, by a coupling")
#: Offsets of a coupling below this count as zero, rad.
ZERO_OFFSET = 1e-12


def parallel_couplings(mechanism: Mechanism, motion: BodyMotions) -> tuple[Coupling, ...]:
    """Return the couplings of joint angles that hold in every pose because bodies rotate equally.

    In each group of bodies of equal rotation, paths of parallel revolute joints start at the body
    nearest to the base. The joint angles along each path add up to a constant.

    Args:
        mechanism: the machine.
        motion: motion of the bodies.
    """
    couplings = []
    for group in motion.groups:
        members = carriers(mechanism, group)
        for member in members[1:]:
            path = _parallel_hinge_path(mechanism, members[0], member, motion)
            if path is None:
                continue
            terms = tuple((joint.name, Constant(sign)) for joint, sign in path)
            total = sum(sign * _angle(mechanism, joint, motion) for joint, sign in path)
            offset = 0.0 if abs(total) < ZERO_OFFSET else float(total)
            couplings.append(
                Coupling(name=f"{member}.parallel", terms=terms, offset=Constant(offset))
            )
    return tuple(couplings)


def _parallel_hinge_path(
    mechanism: Mechanism, start: str, end: str, motion: BodyMotions
) -> tuple[tuple[Joint, float], ...] | None:
    """Return the revolute joints between two bodies, each with the sign of its angle.

    The result is None if the axes are not parallel.
    """
    joint_to: dict[str, Joint | None] = {start: None}
    queue = [start]
    for body in queue:  # the list grows during the loop
        for joint in joints_of(mechanism, body):
            neighbor = far_side(joint, body).body
            if neighbor not in joint_to and joint.kind in (*STRAIGHT, "revolute"):
                joint_to[neighbor] = joint
                queue.append(neighbor)
    if end not in joint_to:
        return None
    path: list[tuple[Joint, float]] = []
    first_axis: np.ndarray | None = None
    body = end
    while (step := joint_to[body]) is not None:
        joint = step
        if joint.kind == "revolute":
            axis = motion.orientation[body] @ axis_on(mechanism, joint, side(joint, body))
            first_axis = axis if first_axis is None else first_axis
            if np.linalg.norm(np.cross(axis, first_axis)) > PARALLEL:
                return None
            is_forward = joint.child.body == body
            path.append((joint, float(np.sign(axis @ first_axis)) * (1.0 if is_forward else -1.0)))
        body = far_side(joint, body).body
    return tuple(path) or None


def _angle(mechanism: Mechanism, joint: Joint, motion: BodyMotions) -> float:
    """Return the angle of a revolute joint at the reference pose, rad, near its start value."""
    parent = motion.orientation[joint.parent.body] @ frame(mechanism, joint.parent)
    child = motion.orientation[joint.child.body] @ frame(mechanism, joint.child)
    R = parent.T @ child
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    angle = float(np.arctan2(sine @ UNIT_VECTORS[joint.axes[0]], (np.trace(R) - 1) / 2))
    start_value = joint.reference[0] if joint.reference else 0.0
    return angle + 2 * np.pi * round((start_value - angle) / (2 * np.pi))


def distribute_rod(
    mechanism: Mechanism, name: str, carrier: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Remove a slender rod with the same rotation as a body, and distribute its inertia.

    Its inertia is distributed to the bodies at its ends and to the body `carrier`. The angle that
    the rod constrains becomes free unless a coupling of `parallel_couplings` is added.

    Args:
        mechanism: the machine.
        name: the rod.
        carrier: a body relative to which the direction of the rod is constant.
        motion: motion of the bodies.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the rod is telescopic, a cable or not slender, rotates differently, or the total
            inertia of a body would be impossible.
    """
    rod = mechanism.rod(name)
    problems = Problems()
    if rod.length is None or rod.tension is not None or rod.is_full:
        problems.add(
            f"rods.{name}",
            "is telescopic, a cable or not slender",
            "name a slender rod of constant length",
        )
    if carrier not in motion.rods.get(name, ()):
        problems.add(
            f"rods.{name}",
            f"changes its direction relative to {carrier}",
            "name a body relative to which it is constant",
        )
    require(mechanism, problems)
    reduced = replace(
        mechanism, rods=tuple(other for other in mechanism.rods if other.name != name)
    )
    if isinstance(rod.lower, SlenderPart) and rod.length is not None:
        m, h, J = rod.lower.parameters
        start = _point(mechanism, rod.start, motion)
        end = _point(mechanism, rod.end, motion)
        u = rounded_entries(
            motion.orientation[carrier].T @ (end - start) / np.linalg.norm(end - start)
        )
        remaining_moment = subtract(J, multiply(h, rod.length))
        moments = [
            multiply(Constant(float((i == j) - u[i] * u[j])), remaining_moment)
            for i, j in MOMENT_ENTRIES
        ]
        reduced = _with_distributed_inertia(
            reduced, (rod.start, rod.end), (m, divide(h, rod.length)), carrier, moments
        )
    return reduced, Step(name=COUPLED, removed=(name,), kept=(carrier,), preserved=PRESERVED)


def distribute_bar(
    mechanism: Mechanism, body: str, carrier: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Remove a bar with the same rotation as another body, and distribute its inertia.

    The bar is a body between two revolute joints. See `distribute_rod`.

    Args:
        mechanism: the machine.
        body: the bar.
        carrier: the body with the same rotation as the bar.
        motion: motion of the bodies.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the body is not a bar between two joints without loads, its mass center is not
            on the line through them, or the total inertia of a body would be impossible.
    """
    joints = joints_of(mechanism, body)
    problems = Problems()
    if not _is_bar(mechanism, body):
        what = "is not a bar between two revolute joints without loads"
        problems.add(f"bodies.{body}", what, "keep this body")
    if carrier == body or carrier not in motion.group(body):
        problems.add(
            f"bodies.{carrier}", f"does not rotate as {body} does", "name a body of equal rotation"
        )
    require(mechanism, problems)
    A, B = (side(joint, body).position for joint in joints)
    d = minus(B, A)
    reduced = without(mechanism, (body,), (joint.name for joint in joints))
    inertia = mechanism.body(body).inertia
    if inertia is not None:
        about_A = inertia_about(inertia, A)
        m_B = divide(_dot(about_A.first_moment, d), _dot(d, d))
        off_line = minus(about_A.first_moment, triple(multiply(m_B, component) for component in d))
        if not motion.is_steady(
            body, numbers(mechanism, off_line), _first_moment(mechanism, inertia)
        ):
            problems.add(
                f"bodies.{body}",
                "its center of mass is not on the line through its joints",
                "keep this body",
            )
        require(mechanism, problems)
        at_B = point_mass(m_B, d).second_moment
        moments = [
            subtract(total, at_end)
            for total, at_end in zip(about_A.second_moment, at_B, strict=True)
        ]
        remaining_inertia = rotated_inertia(
            Inertia.of((ZERO,) * 4 + tuple(moments)), _relative_rotation(motion, carrier, body)
        )
        ends = tuple(far_side(joint, body) for joint in joints)
        reduced = _with_distributed_inertia(
            reduced, ends, (inertia.mass, m_B), carrier, remaining_inertia.second_moment
        )
    return reduced, Step(
        name=COUPLED, removed=(body,), kept=(carrier,), preserved=PRESERVED, lost=limits_of(joints)
    )


def _is_bar(mechanism: Mechanism, body: str) -> bool:
    """Return whether a body has two separate revolute joints and no other elements or loads."""
    joints = joints_of(mechanism, body)
    if len(joints) != 2 or rods_of(mechanism, body) or body == mechanism.platform.body:
        return False
    if any(joint.kind != "revolute" or mechanism.is_loaded(joint) for joint in joints):
        return False
    A, B = (numbers(mechanism, side(joint, body).position) for joint in joints)
    return bool(np.linalg.norm(B - A) > LINE_TOLERANCE * mechanism.characteristic_length)


def _first_moment(mechanism: Mechanism, inertia: Inertia) -> float:
    """Return a typical first moment of a body, kg m."""
    return abs(mechanism.value(inertia.mass)) * mechanism.characteristic_length


def lump_pinned_body(
    mechanism: Mechanism, body: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Replace a body on a single coupled joint by a point mass at the joint.

    The coupling makes the body rotate as another body does. The moments of inertia about the joint
    are added to that other body.

    Args:
        mechanism: the machine.
        body: the pinned body.
        motion: motion of the bodies.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the body is the platform or not pinned, something acts on its joint, its mass
            center is not on the joint axis, or the total inertia of every candidate body would be
            impossible.
    """
    problems = Problems()
    joints = joints_of(mechanism, body)
    if len(joints) != 1 or rods_of(mechanism, body) or body == mechanism.platform.body:
        problems.add(
            f"bodies.{body}", "is the platform, or not on a single joint", "keep this body"
        )
        require(mechanism, problems)
    joint = joints[0]
    couplings = [coupling for coupling in mechanism.couplings if joint.name in coupling.coordinates]
    uncoupled = replace(
        mechanism, couplings=tuple(c for c in mechanism.couplings if c not in couplings)
    )
    if (
        joint.kind != "revolute"
        or len(couplings) != 1
        or couplings[0].curves
        or uncoupled.is_loaded(joint)
    ):
        what = "is not a revolute joint in exactly one coupling and without other loads"
        problems.add(f"joints.{joint.name}", what, f"keep {body}")
    inertia = mechanism.body(body).inertia
    inertia_at_pin = None
    if inertia is not None:
        inertia_at_pin = inertia_about(inertia, side(joint, body).position)
        if not motion.is_steady(
            body, numbers(mechanism, inertia_at_pin.first_moment), _first_moment(mechanism, inertia)
        ):
            problems.add(
                f"bodies.{body}",
                "its center of mass is not on the axis of its joint",
                "keep this body",
            )
    require(mechanism, problems)
    reduced = without(uncoupled, (body,), (joint.name,))
    removed = (body, couplings[0].name)
    if inertia_at_pin is None:
        return reduced, Step(name=PINNED, removed=removed, lost=limits_of(joints))
    pin = far_side(joint, body)
    reduced = with_added(reduced, pin.body, point_mass(inertia_at_pin.mass, pin.position))
    reduced, carrier = _with_moments(reduced, body, inertia_at_pin.second_moment, motion)
    kept = tuple(dict.fromkeys((pin.body, carrier)))
    preserved = ("mass", "mass center up to a constant", "inertia")
    return reduced, Step(
        name=PINNED, removed=removed, kept=kept, preserved=preserved, lost=limits_of(joints)
    )


def concentrate_mass(
    mechanism: Mechanism, body: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Replace a body with the same rotation as another by a point mass at its mass center.

    Its moments of inertia about the mass center are added to the other body.

    Args:
        mechanism: the machine.
        body: name of the body.
        motion: motion of the bodies.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the body has no mass, or the total inertia of every candidate body would be
            impossible.
    """
    inertia = mechanism.body(body).inertia
    problems = Problems()
    if inertia is None or mechanism.value(inertia.mass) <= 0.0:
        problems.add(f"bodies.{body}", "has no mass", "keep this body")
    require(mechanism, problems)
    assert inertia is not None
    h = inertia.first_moment
    at_center: tuple[Expression, ...] = (ZERO,) * 6
    if h != ZERO_VECTOR:
        center = triple(divide(component, inertia.mass) for component in h)
        at_center = point_mass(inertia.mass, center).second_moment
    central = tuple(
        subtract(total, point_moment)
        for total, point_moment in zip(inertia.second_moment, at_center, strict=True)
    )
    nominal = [mechanism.value(moment) for moment in central]
    if np.abs(nominal).max() <= DEGENERACY_TOLERANCE * max(
        abs(mechanism.value(x)) for x in inertia.second_moment
    ):
        return mechanism, Step(name=CONCENTRATED)
    point = Inertia.of((inertia.mass, *h, *at_center))
    bodies = tuple(replace(b, inertia=point) if b.name == body else b for b in mechanism.bodies)
    reduced, carrier = _with_moments(replace(mechanism, bodies=bodies), body, central, motion)
    preserved = ("mass", "mass center", "inertia")
    return reduced, Step(
        name=CONCENTRATED,
        removed=(f"moments of {body}",),
        kept=(body, carrier),
        preserved=preserved,
    )


def _with_distributed_inertia(
    mechanism: Mechanism,
    ends: tuple[Placement, ...],
    masses: tuple[Expression, Expression],
    carrier: str,
    moments: Iterable[Expression],
) -> Mechanism:
    """Return the machine with point masses added at a bar's ends and moments to `carrier`."""
    total_mass, m_B = masses
    mechanism = with_added(
        mechanism, ends[0].body, point_mass(subtract(total_mass, m_B), ends[0].position)
    )
    mechanism = with_added(mechanism, ends[1].body, point_mass(m_B, ends[1].position))
    mechanism = with_added(mechanism, carrier, Inertia.of((ZERO,) * 4 + tuple(moments)))
    require(mechanism, _inertia_problems(mechanism, {ends[0].body, ends[1].body, carrier}))
    return mechanism


def _with_moments(
    mechanism: Mechanism, body: str, moments: tuple[Expression, ...], motion: BodyMotions
) -> tuple[Mechanism, str]:
    """Return the machine with moments added to a body of equal rotation, and that body's name.

    The body is the nearest to the base whose total inertia is then possible.
    """
    problems = Problems()
    for carrier in carriers(mechanism, motion.group(body) - {body}):
        addition = rotated_inertia(
            Inertia.of((ZERO,) * 4 + moments), _relative_rotation(motion, carrier, body)
        )
        changed = with_added(mechanism, carrier, addition)
        impossible = _inertia_problems(changed, {carrier})
        if not impossible:
            return changed, carrier
        problems += impossible
    if not problems:
        problems.add(f"bodies.{body}", "no other body has the same rotation", "keep this body")
    require(mechanism, problems)
    raise AssertionError("unreachable: the checks above raise an error for this input")


def carriers(mechanism: Mechanism, group: Iterable[str]) -> list[str]:
    """Return the bodies of a group that are in the machine, sorted by distance from the base."""
    distance = steps_from(BASE, (joint.bodies for joint in mechanism.joints))
    return sorted(set(group) & distance.keys(), key=lambda body: (distance[body], body))


def _inertia_problems(mechanism: Mechanism, bodies: Iterable[str]) -> Problems:
    """Return a problem for each body whose inertia is impossible."""
    problems = Problems()
    for body in sorted(set(bodies) - {BASE}):
        inertia = mechanism.body(body).inertia
        if inertia is not None and not is_possible(
            [mechanism.value(x) for x in inertia.parameters]
        ):
            problems.add(
                f"bodies.{body}", "would get a physically inconsistent inertia", "keep the bar"
            )
    return problems


def _relative_rotation(motion: BodyMotions, to_body: str, from_body: str) -> np.ndarray:
    """Return the constant rotation (3, 3) from the axes of one body to those of another."""
    return rounded_entries(motion.orientation[to_body].T @ motion.orientation[from_body])


def _point(mechanism: Mechanism, placement: Placement, motion: BodyMotions) -> np.ndarray:
    """Return a point (3,) in the base frame at the reference pose, m."""
    return motion.position[placement.body] + motion.orientation[placement.body] @ numbers(
        mechanism, placement.position
    )


def _dot(a: Vector, b: Vector) -> Expression:
    return add(*(multiply(p, q) for p, q in zip(a, b, strict=True)))
