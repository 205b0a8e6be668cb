"""Limits of the poses of a machine: stops, ranges of cut joints, and cones of joints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.design.pose_symbols import PoseSymbols
from tauloop.equations.assembly.freedoms.cut_freedoms import POSITIONED_KINDS
from tauloop.equations.assembly.limits import limits_of
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import unit_vector
from tauloop.mechanism.model import Joint, Mechanism
from tauloop.model import Model

#: Kinds of joints whose child can tilt, and which can therefore have a cone.
TILTING_KINDS = ("spherical", "universal")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLimit:
    """A limit of an unknown.

    Attributes:
        name: name of the coordinate.
        unit: m or rad.
        unknown: index of the coordinate among the unknowns.
        lower, upper: range of the coordinate; infinite without a limit.
    """

    name: str
    unit: str
    unknown: int
    lower: float
    upper: float


def _coordinate_limits(
    model: Model, with_drawing: bool
) -> dict[int, tuple[str, str, float, float]]:
    """Return name, unit and range of limited coordinates, by the index of the coordinate."""
    limits = limits_of(model.assembly.loops.mechanism, model.assembly.topology)
    coordinate_limits = {}
    for k, column in enumerate(limits.columns):
        if limits.is_stop[k] or with_drawing:
            coordinate_limits[column] = (
                limits.names[k],
                limits.units[k],
                float(limits.lower[k]),
                float(limits.upper[k]),
            )
    return coordinate_limits


def unknown_limits(
    model: Model, symbols: PoseSymbols, with_drawing: bool
) -> tuple[UnknownLimit, ...]:
    """Return the limits of the unknowns."""
    by_coordinate = _coordinate_limits(model, with_drawing)
    limits = []
    for j, column in enumerate(symbols.unknown_coordinates):
        if column in by_coordinate:
            name, unit, lower, upper = by_coordinate[column]
            limits.append(UnknownLimit(name=name, unit=unit, unknown=j, lower=lower, upper=upper))
    return tuple(limits)


def axis_limits_of(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return limits of the axes: only stops, because a box may exceed the platform's drawing range."""
    by_coordinate = _coordinate_limits(model, False)
    topology = model.assembly.topology
    unlimited = ("", "", -np.inf, np.inf)
    limits = [by_coordinate.get(topology.q_of_v[i], unlimited) for i in model.assembly.independent]
    lower = np.array([low for _, _, low, _ in limits])
    upper = np.array([high for _, _, _, high in limits])
    return lower, upper


def pose_inequalities(
    mechanism: Mechanism,
    motions: tuple[TreeMotion, TreeMotion],
    with_drawing: bool,
    cones: Mapping[str, float],
) -> tuple[tuple[str, ...], list[ca.SX]]:
    """Return names and expressions that must not be negative: cut joints and cones.

    Args:
        mechanism: the machine.
        motions: motion of the machine as a function of axes and unknowns, and motion at the
            reference pose.
        with_drawing: whether drawing ranges count as stops.
        cones: largest angles by end of a rod or by joint, of `cone_candidates`, rad.
    """
    names = []
    expressions = []
    motion, at_reference = motions
    for joint in motion.topology.cuts:
        for name, expression in _cut_limits(joint, motion, with_drawing):
            names.append(name)
            expressions.append(expression)
    for name, expression in _cones(mechanism, motion, at_reference, cones):
        names.append(name)
        expressions.append(expression)
    return tuple(names), expressions


def _cut_limits(joint: Joint, motion: TreeMotion, with_drawing: bool) -> list[tuple[str, ca.SX]]:
    """Return names and expressions of the range of a joint that closes a loop.

    A revolute joint at angle a within its range a_0 - h to a_0 + h satisfies
    cos(a - a_0) - cos(h) >= 0, which needs no inverse function.
    """
    if not joint.freedoms:
        return []
    freedom = joint.freedoms[0]
    lower, upper = freedom.lower, freedom.upper
    if not np.isfinite([lower, upper]).any() or (freedom.limit != "stop" and not with_drawing):
        return []
    if joint.kind not in POSITIONED_KINDS or not np.isfinite([lower, upper]).all():
        what = f"a limited {joint.kind} joint closes a loop"
        remedy = "give both limits of a revolute or prismatic joint, or cut another joint"
        raise InputError.of(joint.name, what, remedy)
    A, B = motion.bodies[joint.parent.body], motion.bodies[joint.child.body]
    R_A, p_A = motion.values.placement(joint.parent)
    R_B, p_B = motion.values.placement(joint.child)
    axis = joint.axes[0]
    if joint.kind == "prismatic":
        a = A.R @ (R_A @ unit_vector(axis))
        travel = ca.dot(a, B.point(p_B).p - A.point(p_A).p)
        return [
            (f"{joint.name}: lower limit", travel - lower),
            (f"{joint.name}: upper limit", upper - travel),
        ]
    half, center = 0.5 * (upper - lower), 0.5 * (upper + lower)
    if half >= math.pi:
        return []
    u, w = "yzx"["xyz".index(axis)], "zxy"["xyz".index(axis)]
    e_u = A.R @ (R_A @ unit_vector(u))
    e_w = A.R @ (R_A @ unit_vector(w))
    f = B.R @ (R_B @ unit_vector(u))
    cosine = math.cos(center) * ca.dot(e_u, f) + math.sin(center) * ca.dot(e_w, f)
    return [(f"{joint.name}: range", cosine - math.cos(half))]


def cone_candidates(model: Model) -> tuple[str, ...]:
    """Return the names of ends of rods, and of ball and universal joints."""
    ends = [f"{rod.name}.{side}" for rod in model.mechanism.rods for side in ("start", "end")]
    joints = [joint.name for joint in model.mechanism.joints if joint.kind in TILTING_KINDS]
    return (*ends, *joints)


def _cones(
    mechanism: Mechanism,
    motion: TreeMotion,
    at_reference: TreeMotion,
    cones: Mapping[str, float],
) -> Iterator[tuple[str, ca.SX]]:
    """Yield names and expressions that are positive if rods and joints tilt less than their angles.

    At an end of a rod d . e - |d| cos(angle) >= 0 with the direction d of the rod, and e its
    direction at the reference pose, fixed to the body of that end. At a joint a . e - cos(angle)
    >= 0 with the z axis a of the child, and e its direction at the reference, fixed to the parent.
    """
    if not cones:
        return
    for rod in mechanism.rods:
        d = motion.point(rod.end).p - motion.point(rod.start).p
        d_0 = at_reference.point(rod.end).p - at_reference.point(rod.start).p
        length = ca.norm_2(d)
        for side, placement in (("start", rod.start), ("end", rod.end)):
            angle = cones.get(f"{rod.name}.{side}")
            if angle is not None:
                e = _fixed_direction(placement.body, d_0, motion, at_reference)
                yield f"{rod.name}: cone at its {side}", ca.dot(d, e) - length * math.cos(angle)
    for joint in mechanism.joints:
        if joint.name in cones:
            axis_0 = _child_axis(joint, at_reference)
            e = _fixed_direction(joint.parent.body, axis_0, motion, at_reference)
            cosine = ca.dot(_child_axis(joint, motion), e)
            yield f"{joint.name}: cone", cosine - math.cos(cones[joint.name])


def _child_axis(joint: Joint, motion: TreeMotion) -> ca.SX:
    """Return the z axis (3,) of a joint's frame on its child."""
    rotation, _ = motion.values.placement(joint.child)
    return motion.bodies[joint.child.body].R @ (rotation @ unit_vector("z"))


def _fixed_direction(
    body: str, direction: ca.SX, motion: TreeMotion, at_reference: TreeMotion
) -> ca.SX:
    """Return a unit direction (3,) at the reference as it moves with a body."""
    fixed = np.array(ca.DM(at_reference.bodies[body].R.T @ direction).full()).ravel()
    return motion.bodies[body].R @ ca.DM(fixed / np.linalg.norm(fixed))
