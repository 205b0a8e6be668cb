"""Arcs between the axes of bodies in spherical linkages, whose axes intersect in one point."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.values import Values
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement

#: Length of the cross product of two unit vectors below which axes are parallel.
PARALLEL_TOLERANCE = 1e-6
#: Radius of arcs relative to the characteristic length, if the whole machine is a spherical
#: linkage.
MACHINE_RADIUS = 1.0
#: Radius of arcs relative to the characteristic length, if a spherical linkage is only a part of
#: the machine, such as a wrist.
WRIST_RADIUS = 0.05
#: Ratio of the radius of a body's arcs to that of the body before it, counted from the base, so
#: that the arcs do not overlap.
RADIUS_RATIO = 0.86
#: Angle of one straight piece of an arc, rad.
PIECE_ANGLE = np.radians(3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SphericalBody:
    """A body whose axes intersect in one point, in body coordinates.

    Attributes:
        ends: (k, 3) distinct ends of the axes, at the radius of the arcs.
        pieces: (m, 2, 3) straight pieces of the arcs, and of pins along the axes to bodies with a
            larger radius.
    """

    ends: np.ndarray
    pieces: np.ndarray


def spherical_bodies(
    mechanism: Mechanism, values: Values, joint_centers: Mapping[str, np.ndarray], length: float
) -> dict[str, SphericalBody]:
    """Return the bodies that are drawn by arcs between their axes, by name.

    A body is a candidate if its joint centers coincide and at least two axes of its revolute joints
    are not parallel. A candidate is spherical if a revolute joint connects it to another candidate;
    the cross of a universal joint is therefore not spherical. Arcs end on the side of the center to
    which the axes point, in both bodies of a joint.

    Args:
        mechanism: the machine.
        values: parameter values.
        joint_centers: joint centers (m, 3) of each body, by name.
        length: characteristic length of the machine, m.
    """
    hinges = [joint for joint in mechanism.joints if joint.kind == "revolute"]
    axes: dict[str, list[tuple[np.ndarray, np.ndarray, str]]] = {}
    for joint in hinges:
        for frame, other in ((joint.parent, joint.child), (joint.child, joint.parent)):
            point, direction = _axis_line(frame, joint.axes[0], values)
            axes.setdefault(frame.body, []).append((point, direction, other.body))
    connected = {name for name, centers in joint_centers.items() if len(centers)}
    with_one_center = {
        name for name in connected if np.ptp(joint_centers[name], axis=0).max() < length * 1e-9
    }
    candidates = {
        name: lines
        for name, lines in axes.items()
        if name in with_one_center and _has_two_directions(lines)
    }
    spherical = {}
    for name, lines in candidates.items():
        neighbors = {other for *_, other in lines}
        if neighbors & candidates.keys():
            spherical[name] = lines
    is_spherical_machine = not mechanism.rods and with_one_center >= connected
    largest_radius = (MACHINE_RADIUS if is_spherical_machine else WRIST_RADIUS) * length
    depths = _depths(hinges, spherical)
    radii = {name: largest_radius * RADIUS_RATIO**depth for name, depth in depths.items()}
    return {name: _spherical_body(name, lines, radii) for name, lines in spherical.items()}


def _spherical_body(
    name: str, lines: list[tuple[np.ndarray, np.ndarray, str]], radii: Mapping[str, float]
) -> SphericalBody:
    """Return a spherical body.

    Args:
        name: name of the body.
        lines: point, direction and connected body of each axis.
        radii: radii of the arcs of spherical bodies, by name, m.
    """
    radius = radii[name]
    center = lines[0][0]
    ends = np.array([point + radius * direction for point, direction, _ in lines])
    distinct = []
    for i, end in enumerate(ends):
        distances = np.linalg.norm(ends[:i] - end, axis=1)
        if not (distances < PARALLEL_TOLERANCE * radius).any():
            distinct.append(end)
    pieces = [great_arcs(np.array(distinct), center)]
    for point, direction, other in lines:
        outer_radius = radii.get(other, 0.0)
        if outer_radius > radius:
            pin = np.stack([point + radius * direction, point + outer_radius * direction])
            pieces.append(pin[None])
    return SphericalBody(ends=np.array(distinct), pieces=np.concatenate(pieces))


def _depths(hinges: list[Joint], spherical: Collection[str]) -> dict[str, int]:
    """Return the depth of each spherical body, by name.

    The depth is the number of revolute joints from the base, or from the first spherical body of a
    linkage that is not connected to a spherical base.
    """
    depth: dict[str, int] = {}
    pairs = [
        hinge.bodies
        for hinge in hinges
        if hinge.parent.body in spherical and hinge.child.body in spherical
    ]
    for start in (BASE, *spherical):
        if start in spherical and start not in depth:
            depth |= steps_from(start, pairs)
    return depth


def great_arcs(ends: np.ndarray, center: np.ndarray) -> np.ndarray:
    """Return straight pieces (m, 2, 3) of the great arcs between ends (k, 3) about a center (3,).

    More than two ends form a closed ring. Coincident and opposite ends have no arc.
    """
    pieces = [np.zeros((0, 2, 3))]
    pairs = [(i, i + 1) for i in range(len(ends) - 1)]
    if len(ends) > 2:
        pairs.append((len(ends) - 1, 0))
    for i, j in pairs:
        a, b = ends[i] - center, ends[j] - center
        sine, cosine = float(np.linalg.norm(np.cross(a, b))), float(a @ b)
        if sine < PARALLEL_TOLERANCE * float(a @ a):
            continue
        angle = np.arctan2(sine, cosine)
        t = np.linspace(0.0, 1.0, max(int(np.ceil(angle / PIECE_ANGLE)), 1) + 1)[:, None]
        line = center + (np.sin((1.0 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)
        pieces.append(np.stack([line[:-1], line[1:]], axis=1))
    return np.concatenate(pieces)


def _axis_line(frame: Placement, letter: str, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Return a point on an axis and its direction, in the body's coordinates."""
    R, p = values.placement(frame)
    return ca.evalf(p).full()[:, 0], ca.evalf(R).full()[:, "xyz".index(letter)]


def _has_two_directions(lines: list[tuple[np.ndarray, np.ndarray, str]]) -> bool:
    """Return whether at least two axes have different directions."""
    return any(
        np.linalg.norm(np.cross(lines[0][1], a)) > PARALLEL_TOLERANCE for _, a, _ in lines[1:]
    )
