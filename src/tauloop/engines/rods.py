"""Rods as rigid links: which frame they hang from, and what their parts weigh."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tauloop.engines.rigid_tree import LinkInertia, PlacedJoint, RodLinks, link_inertia, slender_inertia
from tauloop.errors import EngineError, Problem
from tauloop.mechanism.model import Inertia, Mechanism, Rod, SlenderPart
from tauloop.mechanism.poses import UNIT_VECTORS, Array, Pose, placement_pose, turned

#: Sine of the least angle between a rod and the axis that is borrowed from a neighbouring joint for its first hinge.
CLEAR = 0.5

#: Largest asymmetry of an inertia about the rod's axis, relative to its largest entry, that counts as rounding.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RodShape:
    """A rod ready to be hung in the tree.

    Attributes:
        links: its joints and coordinates.
        length: of a fixed rod, m.
        lower, upper: inertia of the part at A and of the part at B, in the rod frame with origin there.
    """

    links: RodLinks
    length: float
    lower: LinkInertia | None
    upper: LinkInertia | None


def rod_shape(mechanism: Mechanism, rod: Rod, joints: dict[str, PlacedJoint], reference: dict[str, Pose]) -> RodShape:
    """Shape of a rod.

    A slender or massless rod does not mind how it turns about itself, so its first hinge is put where the rod stays
    clear of it. A full rod's first hinge is the one in the file.

    Args:
        mechanism, rod: the rod and its machine.
        joints: all joints in numbers.
        reference: poses of the bodies (1) at the joints' reference coordinates.

    Raises:
        EngineError: the rod is said not to spin, and its inertia is not that of a body of revolution.
    """
    A, B = placement_pose(mechanism, rod.start), placement_pose(mechanism, rod.end)
    forced_spin = rod.is_full and rod.spin == "universal"
    if forced_spin:
        if rod.first_axis is None:
            raise EngineError(
                Problem(where=f"rods.{rod.name}", what="a universal joint without first_axis", file=mechanism.file)
            )
        first = np.array([mechanism.value(x) for x in rod.first_axis])
        frame = _hinge_frame(first / np.linalg.norm(first), np.zeros(3))
    else:
        frame = _clear_frame(rod, A, B, joints, reference)
    return RodShape(
        links=RodLinks(
            name=rod.name,
            start=(rod.start.body, Pose(frame, A.position)),
            end=(rod.end.body, B),
            angles=(f"{rod.name}:first", f"{rod.name}:second"),
            is_telescopic=rod.telescope is not None,
        ),
        length=0.0 if rod.length is None else mechanism.value(rod.length),
        lower=_part(mechanism, rod, rod.lower, 1.0, forced_spin),
        upper=_part(mechanism, rod, rod.upper, -1.0, forced_spin),
    )


def _part(
    mechanism: Mechanism, rod: Rod, part: SlenderPart | Inertia | None, sign: float, forced_spin: bool
) -> LinkInertia | None:
    where = f"rods.{rod.name}"
    if not isinstance(part, Inertia):
        return slender_inertia(mechanism, where, part, sign)
    if forced_spin:
        return link_inertia(mechanism, where, part)
    # A body of revolution that has no spin about its axis is a slender link, whatever its axial inertia: with
    # w.u = 0 and dw/dt.u = 0 neither I_zz dw_z/dt nor (I_yy - I_xx) w_x w_y is there.
    m, hx, hy, hz, xx, xy, yy, xz, yz, _ = (mechanism.value(x) for x in part.parameters)
    skewness = max(abs(x) for x in (xx - yy, xy, xz, yz))
    if skewness > ROUNDING * max(abs(xx), abs(yy)) or max(abs(hx), abs(hy)) > ROUNDING * max(abs(hz), abs(m)):
        raise EngineError(
            Problem(
                where=where,
                what=f"a rod without spin whose inertia is not that of a body of revolution (I_xx = {xx:.6g}, "
                f"I_yy = {yy:.6g}, largest product {max(abs(xy), abs(xz), abs(yz)):.3g} kg m^2, mass centre "
                f"off its axis by {np.hypot(hx, hy) / m if m else 0.0:.3g} m): to have no spin is no ideal joint",
                remedy="write spin: universal, or make the rod slender",
                file=mechanism.file,
            )
        )
    straight = SlenderPart(mass=part.mass, first_moment=part.first_moment[2], second_moment=part.second_moment[0])
    return slender_inertia(mechanism, where, straight, 1.0)


def _hinge_frame(first: Array, along: Array) -> Array:
    """Axes (3, 3) of the frame whose x is opposite to the first hinge, with z near `along` (any z if that is zero).

    A rod along z of the frame turned about x and then y by less than a right angle has its y along first × z, which
    is the rod frame of the machine file.
    """
    z = along - first * (first @ along)
    if np.linalg.norm(z) < CLEAR * np.linalg.norm(along) or not np.any(along):
        z = np.eye(3)[np.argmin(np.abs(first))]
        z = z - first * (first @ z)
    z /= np.linalg.norm(z)
    return np.column_stack([-first, np.cross(first, z), z])


def _clear_frame(rod: Rod, A: Pose, B: Pose, joints: dict[str, PlacedJoint], reference: dict[str, Pose]) -> Array:
    """A hinge frame whose first axis the rod stays away from.

    Where the start body turns in a revolute joint, the rod keeps its angle to that axis when the body swings: the
    best axis if it is not too near the rod. Otherwise one across the rod as it is in the reference pose.
    """
    start, end = reference[rod.start.body], reference[rod.end.body]
    d = ((end @ B).position - (start @ A).position).reshape(3)
    along = turned(start.inverse().rotation.reshape(3, 3), d)
    along = along / np.linalg.norm(along) if np.any(along) else np.array([0.0, 0.0, 1.0])
    for placed in joints.values():
        joint = placed.joint
        if joint.kind != "revolute":
            continue
        for body, pose in ((joint.parent.body, placed.parent), (joint.child.body, placed.child)):
            axis = pose.rotation @ np.array(UNIT_VECTORS[joint.axes[0]])
            if body == rod.start.body and np.linalg.norm(np.cross(axis, along)) > CLEAR:
                return _hinge_frame(axis, along)
    first = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
    return _hinge_frame(first / np.linalg.norm(first), along)
