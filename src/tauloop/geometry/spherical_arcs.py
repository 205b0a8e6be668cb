"""Arcs between the axes of bodies of spherical linkages, whose axes meet in one point."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.values import Values
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement

#: Cross product of unit vectors below which axes are parallel.
PARALLEL = 1e-6
#: Radius of arcs relative to the characteristic length: for a machine that is one spherical linkage,
#: and for a linkage that is a part of it, such as a wrist.
WHOLE, PART = 1.0, 0.05
#: Ratio of the radius of a body's arcs to that of the previous body from the base; equal radii would
#: overlap.
INWARDS = 0.86
#: Angle of one straight piece of an arc, rad.
PIECE = np.radians(3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SphericalBody:
    """A body whose axes meet in one point, in its own coordinates.

    Attributes:
        ends: ends of its axes (k, 3), each once, at the radius of its arcs.
        pieces: straight pieces (m, 2, 3): its arcs, and pins along its axes to the bodies that lie
            farther outside.
    """

    ends: np.ndarray
    pieces: np.ndarray


def spherical_bodies(
    mechanism: Mechanism, values: Values, places: Mapping[str, np.ndarray], length: float
) -> dict[str, SphericalBody]:
    """Return the bodies that are drawn by arcs between their axes.

    A body is spherical when its joint centres are one point, at least two axes of revolute joints
    meet there that are not parallel, and one of these joints leads to another such body: the cross
    of two pins is not spherical. A joint's end is on the side that its axis points to, in both bodies.

    Args:
        mechanism: the machine.
        values: of its parameters.
        places: joint centres of each body (m, 3).
        length: characteristic length of the machine, m.
    """
    hinges = [joint for joint in mechanism.joints if joint.kind == "revolute"]
    axes: dict[str, list[tuple[np.ndarray, np.ndarray, str]]] = {}
    for joint in hinges:
        for frame, other in ((joint.parent, joint.child), (joint.child, joint.parent)):
            axes.setdefault(frame.body, []).append(
                (*_line(frame, joint.axes[0], values), other.body)
            )
    single = {
        name
        for name, points in places.items()
        if len(points) and np.ptp(points, axis=0).max() < length * 1e-9
    }
    several = {name: lines for name, lines in axes.items() if name in single and _meet(lines)}
    spherical = {}
    for name, lines in several.items():
        neighbors = {other for *_, other in lines}
        if neighbors & several.keys():
            spherical[name] = lines
    with_points = {name for name, points in places.items() if len(points)}
    is_whole = not mechanism.rods and single >= with_points
    outermost, depth = (WHOLE if is_whole else PART) * length, _depths(hinges, spherical)
    radius = {name: outermost * INWARDS**steps for name, steps in depth.items()}
    return {name: _body(lines, radius[name], radius) for name, lines in spherical.items()}


def _body(
    lines: list[tuple[np.ndarray, np.ndarray, str]], own: float, radius: Mapping[str, float]
) -> SphericalBody:
    centre = lines[0][0]
    ends = np.array([p + own * a for p, a, _ in lines])
    kept = [
        i
        for i in range(len(ends))
        if not (np.linalg.norm(ends[:i] - ends[i], axis=1) < PARALLEL * own).any()
    ]
    pins = [
        np.stack([p + own * a, p + radius[other] * a])
        for p, a, other in lines
        if radius.get(other, 0.0) > own
    ]
    arcs = great_arcs(ends[kept], centre)
    return SphericalBody(
        ends=ends[kept], pieces=np.concatenate([arcs, *(pin[None] for pin in pins)])
    )


def _depths(hinges: list[Joint], spherical: Collection[str]) -> dict[str, int]:
    """Return the steps over revolute joints from the base, or from the first spherical body."""
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


def great_arcs(ends: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return straight pieces (m, 2, 3) of the great arcs that join ends (k, 3) about a centre (3,).

    More than two ends make a closed ring. Ends that are opposite to each other have no arc.
    """
    pieces = [np.zeros((0, 2, 3))]
    pairs = [(i, i + 1) for i in range(len(ends) - 1)] + (
        [(len(ends) - 1, 0)] if len(ends) > 2 else []
    )
    for i, j in pairs:
        a, b = ends[i] - centre, ends[j] - centre
        sine, cosine = float(np.linalg.norm(np.cross(a, b))), float(a @ b)
        if sine < PARALLEL * float(a @ a):
            continue
        angle = np.arctan2(sine, cosine)
        t = np.linspace(0.0, 1.0, max(int(np.ceil(angle / PIECE)), 1) + 1)[:, None]
        line = centre + (np.sin((1.0 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)
        pieces.append(np.stack([line[:-1], line[1:]], axis=1))
    return np.concatenate(pieces)


def _line(frame: Placement, letter: str, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Return a point on an axis and its direction, in the body's coordinates."""
    R, p = values.placement(frame)
    return ca.evalf(p).full()[:, 0], ca.evalf(R).full()[:, "xyz".index(letter)]


def _meet(lines: list[tuple[np.ndarray, np.ndarray, str]]) -> bool:
    """Return whether two axes at least have different directions."""
    return any(np.linalg.norm(np.cross(lines[0][1], a)) > PARALLEL for _, a, _ in lines[1:])
