"""Geometry of a printer from a machine: towers, shoulders or anchors at the nominal parameters."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import DescriptionError
from tauloop.common.records import dataclass
from tauloop.formats.printers.geometry import LinearDelta, Printer, RotaryDelta, Winches
from tauloop.mechanism.model import BASE, Actuator, Joint, Mechanism, Rod
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.mechanism.solids.primitives import joint_pose

#: Factor from m to mm.
MM = 1e3
#: Factor from rad to deg.
DEG = 180.0 / np.pi
#: Deviation of an axis from the vertical or horizontal, rad, up to which it counts as rounding.
AXIS_TOLERANCE = 1e-6
_REMEDY = "write a machine of three towers, of three shoulders, or of cables with a winch each"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leg:
    """A driven joint on the base, and the rod from its body to the platform.

    Attributes:
        joint: the joint.
        origin: origin (3,) of the joint in the base frame, m.
        axis: axis (3,) of the joint in the base frame.
        start: start (3,) of the rod in the base frame, at zero joint coordinate, m.
        end: end (3,) of the rod on the platform, in axes of the base, m.
        length: length of the rod, m.
        stop: limit of the joint at which the start of the rod is highest, m or rad.
    """

    joint: Joint
    origin: np.ndarray
    axis: np.ndarray
    start: np.ndarray
    end: np.ndarray
    length: float
    stop: float


def printer_of(mechanism: Mechanism) -> Printer:
    """Return the geometry of a printer.

    Raises:
        DescriptionError: printer firmware cannot represent the machine.
    """
    rods = {rod.name: rod for rod in mechanism.rods}
    driven = [_driven(mechanism, actuator) for actuator in mechanism.actuators]
    if driven and all(name in rods for name in driven):
        return _winches(mechanism, [rods[name] for name in driven])
    if len(driven) != 3:
        raise _unsupported(
            mechanism, f"has {len(driven)} motors, but the firmware supports exactly three"
        )
    legs = [_leg(mechanism, name) for name in driven]
    kinds = {leg.joint.kind for leg in legs}
    if kinds == {"prismatic"}:
        return _linear(mechanism, legs)
    if kinds == {"revolute"}:
        return _rotary(mechanism, legs)
    raise _unsupported(
        mechanism, f"has motors on joints of several kinds ({', '.join(sorted(kinds))})"
    )


def end_stops(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return motor positions (3,) at the end stops, rad or m, and directions (3,) away from them.

    Raises:
        DescriptionError: the machine is not a delta with limits.
    """
    driven = [_driven(mechanism, actuator) for actuator in mechanism.actuators]
    if len(driven) != 3:
        raise _unsupported(
            mechanism, f"has {len(driven)} motors, but the firmware supports exactly three"
        )
    legs = [_leg(mechanism, name) for name in driven]
    ratios = np.array([mechanism.value(motor.drives[0][1]) for motor in mechanism.actuators])
    directions = [1.0 if leg.stop == leg.joint.freedoms[0].lower else -1.0 for leg in legs]
    stops = np.array([leg.stop for leg in legs])
    return ratios * stops, np.sign(ratios) * np.array(directions)


def _unsupported(mechanism: Mechanism, what: str) -> DescriptionError:
    """Return the error of a machine that printer firmware cannot represent."""
    return DescriptionError.of(mechanism.name, what, _REMEDY, file=mechanism.file)


def _driven(mechanism: Mechanism, actuator: Actuator) -> str:
    """Return the name of the only coordinate that an actuator drives."""
    if len(actuator.drives) != 1:
        raise _unsupported(mechanism, f"has a motor on several coordinates ({actuator.name})")
    return actuator.drives[0][0]


def _leg(mechanism: Mechanism, name: str) -> _Leg:
    """Return the leg of a driven joint."""
    joint = next((joint for joint in mechanism.joints if joint.name == name), None)
    if joint is None or joint.parent.body != BASE or not joint.axes:
        raise _unsupported(mechanism, f"has a motor on {name}, which is not a joint of the base")
    body, platform = joint.child.body, mechanism.platform.body
    rods = [rod for rod in mechanism.rods if set(rod.bodies) == {body, platform}]
    if not rods or any(rod.length is None for rod in rods):
        raise _unsupported(mechanism, f"has no rod of fixed length from {body} to {platform}")
    outer, inner = (placement_pose(mechanism, side) for side in (joint.parent, joint.child))
    body_pose = outer @ inner.inverse()
    # both rods of a parallelogram move like one rod between the midpoints of their ends
    starts, ends, lengths = [], [], []
    for rod in rods:
        sides = {rod.start.body: rod.start, rod.end.body: rod.end}
        starts.append((body_pose @ placement_pose(mechanism, sides[body])).position)
        ends.append(
            _platform_orientation(mechanism) @ placement_pose(mechanism, sides[platform]).position
        )
        assert rod.length is not None
        lengths.append(mechanism.value(rod.length))
    return _Leg(
        joint=joint,
        origin=outer.position,
        axis=outer.rotation[:, "xyz".index(joint.axes[0])],
        start=np.mean(starts, axis=0),
        end=np.mean(ends, axis=0),
        length=float(np.mean(lengths)),
        stop=_stop(mechanism, joint, outer, np.mean(starts, axis=0)),
    )


def _platform_orientation(mechanism: Mechanism) -> np.ndarray:
    """Return the orientation (3, 3) of the platform at the start."""
    for joint in mechanism.joints:
        if joint.child.body == mechanism.platform.body and joint.parent.body == BASE:
            outer, inner = (placement_pose(mechanism, side) for side in (joint.parent, joint.child))
            return (outer @ joint_pose(joint) @ inner.inverse()).rotation
    return np.eye(3)


def _stop(mechanism: Mechanism, joint: Joint, outer: FramePose, start: np.ndarray) -> float:
    """Return the limit of a joint at which the start of its rod is higher."""
    (freedom,) = joint.freedoms
    limits = [limit for limit in (freedom.lower, freedom.upper) if np.isfinite(limit)]
    if not limits:
        what = f"has no limits of {joint.name}, but firmware needs its end stop"
        raise DescriptionError.of(mechanism.name, what, "give `limits`", file=mechanism.file)
    axis = outer.rotation[:, "xyz".index(joint.axes[0])]
    heights = [_displaced_point(joint, outer.position, axis, start, limit)[2] for limit in limits]
    return limits[int(np.argmax(heights))]


def _displaced_point(
    joint: Joint, origin: np.ndarray, axis: np.ndarray, start: np.ndarray, coordinate: float
) -> np.ndarray:
    """Return a point (3,) of the moved body at a coordinate of its joint."""
    if joint.kind == "prismatic":
        return np.asarray(start + coordinate * axis)
    d = start - origin
    parallel = axis * (axis @ d)
    perpendicular = d - parallel
    rotated = perpendicular * np.cos(coordinate) + np.cross(axis, perpendicular) * np.sin(
        coordinate
    )
    return np.asarray(origin + parallel + rotated)


def _linear(mechanism: Mechanism, legs: list[_Leg]) -> LinearDelta:
    """Return the geometry of a delta with vertical towers."""
    for leg in legs:
        if np.hypot(leg.axis[0], leg.axis[1]) > AXIS_TOLERANCE:
            raise _unsupported(mechanism, f"has a tower that is not vertical ({leg.joint.name})")
    towers = [(leg.start - leg.end)[:2] for leg in legs]
    radius = [float(np.linalg.norm(tower)) for tower in towers]
    stops = []
    for leg, distance in zip(legs, radius, strict=True):
        height = (_displaced_point(leg.joint, leg.origin, leg.axis, leg.start, leg.stop) - leg.end)[
            2
        ]
        stops.append(float(height - np.sqrt(leg.length**2 - distance**2)))
    return LinearDelta(
        radius=tuple(MM * distance for distance in radius),
        angle=tuple(_direction(tower) for tower in towers),
        arm=tuple(MM * leg.length for leg in legs),
        end_stop=tuple(MM * stop for stop in stops),
        print_radius=_print_radius(mechanism, MM * min(radius)),
    )


def _print_radius(mechanism: Mechanism, default: float) -> float:
    """Return the radius of the circle around the drawing limits, mm, or `default`."""
    half_widths = []
    for name, freedom in mechanism.freedoms.items():
        if name.rpartition(".")[2] in ("x", "y") and freedom.limit == "drawing":
            half_widths.append(max(abs(freedom.lower), abs(freedom.upper)))
    is_known = len(half_widths) == 2 and bool(np.isfinite(half_widths).all())
    return MM * float(np.linalg.norm(half_widths)) if is_known else default


def _rotary(mechanism: Mechanism, legs: list[_Leg]) -> RotaryDelta:
    """Return the geometry of a delta with horizontal shoulder axes."""
    centers = []
    for leg in legs:
        if abs(leg.axis[2]) > AXIS_TOLERANCE:
            raise _unsupported(
                mechanism, f"has a shoulder whose axis is not horizontal ({leg.joint.name})"
            )
        # the point of the axis closest to the elbow
        shoulder = leg.origin + leg.axis * (leg.axis @ (leg.start - leg.origin))
        centers.append(shoulder - leg.end)
    radius = [float(np.hypot(center[0], center[1])) for center in centers]
    upper = [
        float(np.linalg.norm(leg.start - leg.end - center))
        for leg, center in zip(legs, centers, strict=True)
    ]
    stops = []
    for leg in legs:
        elbow = _displaced_point(leg.joint, leg.origin, leg.axis, leg.start, leg.stop) - leg.end
        radial_distance = np.linalg.norm(elbow[:2])
        stops.append(float(elbow[2] - np.sqrt(leg.length**2 - radial_distance**2)))
    return RotaryDelta(
        radius=MM * float(np.mean(radius)),
        height=MM * float(np.mean([center[2] for center in centers])),
        angle=tuple(_direction(center[:2]) for center in centers),
        upper=tuple(MM * length for length in upper),
        lower=tuple(MM * leg.length for leg in legs),
        end_stop=tuple(MM * stop for stop in stops),
    )


def _winches(mechanism: Mechanism, rods: list[Rod]) -> Winches:
    """Return the anchors of a cable robot, relative to the cable ends on the platform."""
    anchors: list[tuple[float, float, float]] = []
    for rod in rods:
        sides = {rod.start.body: rod.start, rod.end.body: rod.end}
        if set(sides) != {BASE, mechanism.platform.body}:
            raise _unsupported(
                mechanism, f"has a cable that is not between base and platform ({rod.name})"
            )
        points = {body: placement_pose(mechanism, side).position for body, side in sides.items()}
        end = _platform_orientation(mechanism) @ points[mechanism.platform.body]
        x, y, z = (MM * (points[BASE] - end)).tolist()
        anchors.append((x, y, z))
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: len(rods)])
    return Winches(names=names, anchors=tuple(anchors))


def _direction(point: np.ndarray) -> float:
    """Return the direction of a point (2,), deg in [0, 360)."""
    return float(np.arctan2(point[1], point[0]) * DEG % 360.0)
