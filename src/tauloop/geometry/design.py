"""Design of solids for a machine of which only the kinematics is known.

All dimensions are multiples of one radius, which is small compared with the machine and with the
distances between unconnected parts. A plane linkage is built in layers, so that its links pass each
other as those of a real one do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.geometry.body_frames import frames
from tauloop.geometry.clearance import segment_distances
from tauloop.geometry.machine_geometry import (
    SAME_POINT,
    BodyShape,
    DriveAxis,
    MachineGeometry,
    Segment,
    body_lines,
)
from tauloop.geometry.shapes import about, ball, bar, mesh, plate, tube
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement
from tauloop.mechanism.poses import placement_pose
from tauloop.mechanism.rigid_tree import VECTORS
from tauloop.mechanism.solid import Solid
from tauloop.mechanism.visual import solid_at

#: Largest radius of a link relative to the machine's size, and relative to the least distance of
#: unconnected parts.
RADIUS, ROOM = 0.013, 0.42
#: Smallest share of the usual radius, so that links stay visible.
THINNEST = 0.3
#: Dimensions relative to that radius.
ROD, CABLE, PIN, HOUSING, MOTOR, BALL, CARRIAGE, RAIL, TIP = (
    0.55,
    0.22,
    0.7,
    1.35,
    1.9,
    1.15,
    3.2,
    0.9,
    0.5,
)
#: Distance of the layers of a plane linkage over that radius.
LAYER = 2.6
#: Distance of the two bars of a parallelogram over their length.
APART = 0.1
#: Range of a length without limits, over its start.
SHORTEST, LONGEST = 0.7, 1.3


def designed(mechanism: Mechanism, geometry: MachineGeometry) -> tuple[Solid, ...]:
    """Return the solids of a machine: those of its description, and designed ones for the rest.

    Args:
        mechanism: the machine.
        geometry: where its parts are at the reference pose.
    """
    stated = {solid.body for solid in mechanism.solids}
    radius = _radius(mechanism, geometry)
    design = _Design(
        mechanism=mechanism,
        geometry=geometry,
        radius=radius,
        shifts=_shifts(mechanism, geometry, radius),
    )
    return (*mechanism.solids, *(solid for solid in design.solids() if solid.body not in stated))


def _radius(mechanism: Mechanism, geometry: MachineGeometry) -> float:
    """Return the radius (m) from which all sizes follow."""
    usual = RADIUS * geometry.size
    names, ends = _centre_lines(geometry)
    joined = _joined(mechanism)
    pairs = [
        (i, j)
        for i in range(len(names))
        for j in range(i)
        if names[i] != names[j] and frozenset((names[i], names[j])) not in joined
    ]
    if not pairs:
        return usual
    first, second = (ends[list(side)] for side in zip(*pairs, strict=True))
    apart = segment_distances(first[:, 0], first[:, 1], second[:, 0], second[:, 1])
    near = apart[apart > 1e-6 * geometry.size]  # crossing parts cross at any thickness
    return float(np.clip(ROOM * near.min(initial=np.inf), THINNEST * usual, usual))


def _centre_lines(geometry: MachineGeometry) -> tuple[list[str], np.ndarray]:
    """Return names and centre lines (n, 2, 3) of moving bodies and rods in the base frame."""
    names, ends = [], [np.zeros((0, 2, 3))]
    for body in geometry.shape.bodies:
        if body.name != BASE:
            points = geometry.points(body.name)[0]
            lines = np.concatenate([points[body.edges], geometry.arcs(body.name)[0]])
            ends.append(lines)
            names += [body.name] * len(lines)
    kept = [segment.kind == "rod" for segment in geometry.shape.segments]
    ends.append(geometry.segments[0][kept])
    names += [segment.name for segment in geometry.shape.segments if segment.kind == "rod"]
    return names, np.concatenate(ends)


def _shifts(
    mechanism: Mechanism, geometry: MachineGeometry, radius: float
) -> dict[str, np.ndarray]:
    """Return displacements (3,) of drawn bodies along parallel hinges, in body coordinates, m.

    Bodies that a hinge connects, or that cross, are in different layers: each gets the lowest free
    one, from the base outwards. A slider is in the layer of its body. The result is empty where
    hinges have different directions, or where layers would separate joints or rods.
    """
    turns = frames(mechanism, geometry, geometry)
    hinges = [joint for joint in mechanism.joints if joint.kind == "revolute"]
    axes = np.array(
        [
            turns[j.parent.body].rotation[0] @ _axis(mechanism, j.parent, j.axes[0])[1]
            for j in hinges
        ]
    )
    is_flat = len(axes) and np.abs(np.cross(axes[0], axes)).max() < 1e-6
    if not is_flat or not {j.kind for j in mechanism.joints} <= {
        "revolute",
        "fixed",
        "prismatic",
        "planar",
    }:
        return {}
    parted = {frozenset((joint.parent.body, joint.child.body)) for joint in hinges}
    stuck = [
        {j.parent.body, j.child.body} for j in mechanism.joints if j.kind in ("fixed", "prismatic")
    ]
    stuck += [{rod.start.body, rod.end.body} for rod in mechanism.rods]
    names, ends = _centre_lines(geometry)
    apart = segment_distances(
        ends[:, None, 0], ends[:, None, 1], ends[None, :, 0], ends[None, :, 1]
    )
    parted |= {frozenset((names[i], names[j])) for i, j in np.argwhere(apart < LAYER * radius)}
    layer: dict[str, int] = {}
    for body in geometry.shape.bodies:
        group = _group(body.name, stuck)
        taken = {
            layer[other] for other in layer for name in group if frozenset((name, other)) in parted
        }
        free = next(i for i in range(len(layer) + 1) if i not in taken)
        layer |= (
            dict.fromkeys(group, 0 if BASE in group else free) if body.name not in layer else {}
        )
    return {
        name: LAYER * radius * i * turns[name].rotation[0].T @ axes[0] for name, i in layer.items()
    }


def _group(name: str, stuck: list[set[str]]) -> set[str]:
    """Return a body with all bodies fixed to it."""
    group, before = {name}, set[str]()
    while group != before:
        before = set(group)
        group.update(*(pair for pair in stuck if pair & group))
    return group


def _joined(mechanism: Mechanism) -> set[frozenset[str]]:
    """Return pairs of bodies and rods with a common joint, and of rods with a common end."""
    joined = {frozenset((joint.parent.body, joint.child.body)) for joint in mechanism.joints}
    ends = [
        (rod.name, side.body, placement_pose(mechanism, side).position)
        for rod in mechanism.rods
        for side in (rod.start, rod.end)
    ]
    joined |= {frozenset((name, body)) for name, body, _ in ends}
    least = SAME_POINT * mechanism.characteristic_length
    same = [
        (a, b) for a, A, p in ends for b, B, r in ends if A == B and np.linalg.norm(p - r) < least
    ]
    return joined | {frozenset(pair) for pair in same}


def _axis(mechanism: Mechanism, placement: Placement, letter: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the origin (3,) and direction (3,) of an axis in the coordinates of its body."""
    pose = placement_pose(mechanism, placement)
    return pose.position, pose.rotation @ VECTORS[letter]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """One machine.

    Attributes:
        mechanism: the machine.
        geometry: at its reference pose.
        radius: of a link, m.
        shifts: of the bodies of a plane linkage (see `_shifts`).
    """

    mechanism: Mechanism
    geometry: MachineGeometry
    radius: float
    shifts: Mapping[str, np.ndarray]

    def solids(self) -> Iterator[Solid]:
        """Return all solids, each in the layer of its body."""
        for solid in self._in_plane():
            x, y, z = (solid.position + self.shifts.get(solid.body, np.zeros(3))).tolist()
            yield replace(solid, position=(x, y, z))

    def _in_plane(self) -> Iterator[Solid]:
        drives = {
            (axis.body, axis.origin.tobytes()): axis
            for axis in self.geometry.shape.drives
            if axis.turns
        }
        arcs = {body.name for body in self.geometry.shape.bodies if len(body.arcs)}
        for body in self.geometry.shape.bodies:
            yield from self._body(body)
        for segment in self.geometry.shape.segments:
            yield from self._rod(segment) if segment.kind == "rod" else ()
        for joint in self.mechanism.joints:
            if not {joint.parent.body, joint.child.body} <= arcs:
                yield from self._joint(joint)
        for axis in drives.values():
            yield from self._motor(axis)
        yield from self._rail_frames()
        yield from self._tool()

    # Bodies

    def _body(self, body: BodyShape) -> Iterator[Solid]:
        is_base = body.name == BASE
        role = "base" if is_base else "link"
        if body.name == self.geometry.shape.platform:
            role = "platform"
        r = self.radius
        for line in _lines(body.arcs):
            yield mesh(body.name, tube(line, r), role)
        if len(body.arcs) or self._is_bolted(body.name):
            return
        points = body.points
        if is_base:
            points = np.array([p for p in points if not self._is_rail(p)]).reshape(-1, 3)
            if len(points) != len(body.points):
                return  # rails are a base of their own
        if (
            len(body.faces)
            and not is_base
            and np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-6) == 2
        ):
            yield mesh(body.name, plate(points, 1.5 * r, 1.2 * r), role)
            return
        for edge in body.edges:
            yield bar(body.name, points[edge], r, role)
        if len(points) == 1 and not is_base:
            yield ball(body.name, points[0], 1.6 * r, role)

    def _is_bolted(self, name: str) -> bool:
        """Return whether a body is only fixed to another one.

        Its mass centre is then not part of a linkage.
        """
        joints = [j for j in self.mechanism.joints if name in (j.parent.body, j.child.body)]
        return all(joint.kind == "fixed" for joint in joints)

    def _is_rail(self, point: np.ndarray) -> bool:
        """Return whether a slide starts at a point of the base."""
        slides = [
            s for s in self.geometry.shape.segments if s.kind == "slide" and s.bodies[0] == BASE
        ]
        return any(np.linalg.norm(segment.ends[0] - point) < 1e-9 for segment in slides)

    def _tool(self) -> Iterator[Solid]:
        shape = self.geometry.shape
        body, tip = shape.platform, shape.tool.position
        points = shape.bodies[shape.index[body]].points
        middle = points.mean(axis=0) if len(points) else np.zeros(3)
        arcs = [*_lines(shape.bodies[shape.index[body]].arcs)]
        middle = arcs[0][len(arcs[0]) // 2] if arcs else middle
        if np.linalg.norm(tip - middle) > 2 * self.radius:
            yield bar(body, np.stack([middle, tip]), TIP * self.radius, "tool")
        yield ball(body, tip, 0.8 * self.radius, "tool")

    # Rods

    def _rod(self, segment: Segment) -> Iterator[Solid]:
        rod, r = self.mechanism.rod(segment.name), self.radius
        i = [s.name for s in self.geometry.shape.segments].index(segment.name)
        length = float(np.linalg.norm(np.diff(self.geometry.segments[0, i], axis=0)))
        z, eye = np.array([0.0, 0.0, 1.0]), np.eye(3)
        if rod.tension is not None:
            yield solid_at(
                rod.name, "cylinder", (CABLE * r, length), 0.5 * length * z, eye, "cable"
            )
            return
        if rod.telescope is not None:
            lower, upper = rod.telescope.freedom.lower, rod.telescope.freedom.upper
            shortest = lower if np.isfinite(lower) else SHORTEST * length
            longest = upper if np.isfinite(upper) else LONGEST * length
            housing = 0.96 * shortest
            piston = min(max(longest - 0.9 * housing, 0.3 * shortest), housing)
            yield solid_at(
                f"{rod.name}.lower",
                "cylinder",
                (1.25 * r, housing),
                0.5 * housing * z,
                eye,
                "motor",
            )
            yield solid_at(
                f"{rod.name}.upper", "cylinder", (ROD * r, piston), -0.5 * piston * z, eye, "rod"
            )
        elif self._is_pair(segment):
            half = 0.5 * APART * length * np.array([1.0, 0.0, 0.0])
            for side in (-half, half):
                yield solid_at(
                    rod.name, "cylinder", (ROD * r, length), side + 0.5 * length * z, eye, "rod"
                )
                for height in (0.0, length):
                    yield ball(rod.name, side + height * z, BALL * ROD * r * 1.3, "joint")
            frame = frames(self.mechanism, self.geometry, self.geometry)
            pose = frame[rod.name].at(0)
            R, p = pose.rotation, pose.position
            for body, height in zip(segment.bodies, (0.0, length), strict=True):
                if body != BASE:
                    at_body = frame[body].at(0)
                    line = p + height * R[:, 2] + np.outer([-half[0], half[0]], R[:, 0])
                    role = "platform" if body == self.mechanism.platform.body else "link"
                    yield bar(body, (line - at_body.position) @ at_body.rotation, ROD * r, role)
        else:
            yield solid_at(rod.name, "cylinder", (ROD * r, length), 0.5 * length * z, eye, "rod")
        if not self._is_pair(segment):
            start, end = (
                (rod.name, rod.name)
                if rod.telescope is None
                else (f"{rod.name}.lower", f"{rod.name}.upper")
            )
            yield ball(start, np.zeros(3), BALL * r, "joint")
            yield ball(
                end, np.zeros(3) if rod.telescope is not None else length * z, BALL * r, "joint"
            )

    def _is_pair(self, segment: Segment) -> bool:
        """Return whether a rod represents a parallelogram.

        It is alone between its bodies and holds a platform that cannot rotate.
        """
        platform = self.mechanism.platform.body
        hinge = next(
            (
                j
                for j in self.mechanism.joints
                if j.child.body == platform and j.parent.body == BASE
            ),
            None,
        )
        holds = (
            platform in segment.bodies
            and hinge is not None
            and hinge.kind in ("translational", "schoenflies")
        )
        alike = [
            s
            for s in self.geometry.shape.segments
            if s.kind == "rod" and set(s.bodies) == set(segment.bodies)
        ]
        rod = self.mechanism.rod(segment.name)
        return holds and len(alike) == 1 and rod.tension is None and rod.telescope is None

    # Joints

    def _joint(self, joint: Joint) -> Iterator[Solid]:
        r, parent, child = self.radius, joint.parent, joint.child
        if joint.kind == "revolute":
            at, axis = _axis(self.mechanism, parent, joint.axes[0])
            yield solid_at(
                parent.body, "cylinder", (HOUSING * r, 3.4 * r), at, about(axis), "joint"
            )
            at, other = _axis(self.mechanism, child, joint.axes[0])
            up = float(self._shift(parent.body) @ axis - self._shift(child.body) @ other)
            reach = np.array([min(up, 0.0) - 2.3 * r, max(up, 0.0) + 2.3 * r])
            yield bar(child.body, at + reach[:, None] * other, PIN * r, "link", "cylinder")
        elif joint.kind == "universal":
            for side, letter in zip((parent, child), joint.axes, strict=True):
                at, axis = _axis(self.mechanism, side, letter)
                yield solid_at(side.body, "cylinder", (PIN * r, 3.6 * r), at, about(axis), "joint")
        elif joint.kind == "spherical":
            at, _ = _axis(self.mechanism, parent, "z")
            yield ball(parent.body, at, 1.3 * BALL * r, "joint")
        elif joint.kind in ("prismatic", "cylindrical"):
            yield from self._slide(joint)

    def _shift(self, body: str) -> np.ndarray:
        return self.shifts.get(body, np.zeros(3))

    def _slide(self, joint: Joint) -> Iterator[Solid]:
        """Return a rail over the range on the parent, and a carriage on the child.

        The carriage reaches from the rail to the child's joints.
        """
        r = self.radius
        at, axis, reach = self._rail(joint)
        beside, middle = self._beside(joint, axis), at + reach.mean() * axis
        way = float(np.ptp(reach))
        role = "rail" if joint.parent.body == BASE else "link"
        driven = any(
            name in joint.velocity_names for a in self.mechanism.actuators for name, _ in a.drives
        )
        carriage = "motor" if driven else "link"
        frame = _along(beside, axis)
        parent, child = (
            placement_pose(self.mechanism, side) for side in (joint.parent, joint.child)
        )
        turn = child.rotation @ parent.rotation.T @ frame
        at = child.position + 0.5 * turn @ frame.T @ beside
        size = CARRIAGE * r
        if joint.kind == "prismatic":
            yield solid_at(
                joint.parent.body,
                "box",
                (2 * RAIL * r, 2 * RAIL * r, way),
                middle + beside,
                frame,
                role,
            )
            edges = (0.8 * size + float(np.linalg.norm(beside)), 0.8 * size, 1.2 * size)
            yield solid_at(joint.child.body, "box", edges, at, turn, carriage)
        else:
            yield solid_at(joint.parent.body, "cylinder", (RAIL * r, way), middle, frame, role)
            yield solid_at(
                joint.child.body, "cylinder", (0.6 * size, 1.2 * size), at, turn, carriage
            )

    def _beside(self, joint: Joint, axis: np.ndarray) -> np.ndarray:
        """Return the displacement of a rail on the base from the joint centre (3,), m.

        It points away from the rods that end there.
        """
        segments = zip(self.geometry.shape.segments, self.geometry.segments[0], strict=True)
        rods = [
            (s, ends) for s, ends in segments if s.kind == "rod" and joint.child.body in s.bodies
        ]
        if joint.parent.body != BASE or joint.kind != "prismatic" or not rods:
            return np.zeros(3)
        ways = [
            ends[1] - ends[0] if s.bodies[0] == joint.child.body else ends[0] - ends[1]
            for s, ends in rods
        ]
        away = -np.mean([way / np.linalg.norm(way) for way in ways], axis=0)
        away -= axis * (axis @ away)
        length = np.linalg.norm(away)
        return 2.8 * self.radius * away / length if length > 0.1 else np.zeros(3)

    def _rail(self, joint: Joint) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return origin (3,) and direction (3,) of a rail on its body, and its range (2,), m."""
        at, axis = _axis(self.mechanism, joint.parent, joint.axes[0])
        freedom = joint.freedoms[-1] if joint.freedoms else None
        reach = np.array([freedom.lower, freedom.upper]) if freedom else np.array([-np.inf, np.inf])
        start = joint.reference[-1] if joint.reference else 0.0
        usual = start + 0.3 * self.geometry.size * np.array([-1.0, 1.0])
        beyond = 2.0 * self.radius * np.array([-1.0, 1.0])
        return at, axis, np.where(np.isfinite(reach), reach, usual) + beyond

    def _rail_frames(self) -> Iterator[Solid]:
        """Return the frames that join the ends of parallel rails on the base."""
        slides = [
            j for j in self.mechanism.joints if j.kind == "prismatic" and j.parent.body == BASE
        ]
        rails = [
            (at + self._beside(j, axis), axis, reach)
            for j in slides
            for at, axis, reach in [self._rail(j)]
        ]
        for _, axis, _ in rails[:1]:
            signed = [
                (at, a, reach * np.sign(a @ axis))
                for at, a, reach in rails
                if abs(a @ axis) > 1.0 - 1e-6
            ]
            for end in (np.min, np.max):
                points = np.array([at + axis * end(reach) for at, _, reach in signed])
                edges, _ = body_lines(points)
                for edge in edges:
                    yield bar(BASE, points[edge], RAIL * self.radius, "base")

    def _motor(self, axis: DriveAxis) -> Iterator[Solid]:
        if axis.direction is None:
            return
        r = self.radius
        yield solid_at(
            axis.body, "cylinder", (MOTOR * r, 5.0 * r), axis.origin, about(axis.direction), "motor"
        )


def _along(across: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3): z along an axis (3,), x along a perpendicular vector (3,)."""
    length = np.linalg.norm(across)
    if length == 0.0:
        return about(axis)
    x = across / length
    return np.column_stack([x, np.cross(axis, x), axis])


def _lines(pieces: np.ndarray) -> Iterator[np.ndarray]:
    """Return lines (k, 3) joined from straight pieces (m, 2, 3) that continue each other."""
    line: list[np.ndarray] = []
    for start, end in pieces:
        if line and np.linalg.norm(line[-1] - start) > 1e-9:
            yield np.array(line)
            line = []
        line += [end] if line else [start, end]
    if line:
        yield np.array(line)
