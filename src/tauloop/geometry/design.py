"""Design of solids for a machine of which only the kinematics is known.

All dimensions are multiples of one radius, which is small compared with the machine and with the
distances between unconnected parts. A planar linkage is built in layers, so that its links do not
collide.
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
from tauloop.geometry.shapes import ball, bar, mesh, plate, rotation_z_along, tube
from tauloop.mechanism.links.rigid_tree import VECTORS
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement
from tauloop.mechanism.poses import placement_pose
from tauloop.mechanism.solids.solid import Solid
from tauloop.mechanism.solids.visual import solid_at

#: Largest radius of a link relative to the machine's size.
LINK_RADIUS = 0.013
#: Largest radius of a link relative to the smallest distance between unconnected parts.
RADIUS_PER_DISTANCE = 0.42
#: Smallest radius of a link relative to the largest radius, so that links remain visible.
MIN_RADIUS_FRACTION = 0.3
#: Dimensions relative to the radius of a link.
ROD_RADIUS = 0.55
CABLE_RADIUS = 0.22
PIN_RADIUS = 0.7
HOUSING_RADIUS = 1.35
MOTOR_RADIUS = 1.9
BALL_RADIUS = 1.15
CARRIAGE_SIZE = 3.2
RAIL_RADIUS = 0.9
TOOL_RADIUS = 0.5
#: Distance between the layers of a planar linkage relative to the radius of a link.
LAYER_DISTANCE = 2.6
#: Distance between the two bars of a parallelogram relative to their length.
PARALLELOGRAM_WIDTH = 0.1
#: Length of a retracted telescope without limits, relative to its length at the reference pose.
SHORTEST_ROD = 0.7
#: Length of an extended telescope without limits, relative to its length at the reference pose.
LONGEST_ROD = 1.3


def with_designed_solids(mechanism: Mechanism, geometry: MachineGeometry) -> tuple[Solid, ...]:
    """Return the solids of a machine, with designed solids for bodies and rods without solids.

    Args:
        mechanism: the machine.
        geometry: its geometry at the reference pose.
    """
    described_bodies = {solid.body for solid in mechanism.solids}
    radius = _radius(mechanism, geometry)
    design = _Design(
        mechanism=mechanism,
        geometry=geometry,
        radius=radius,
        shifts=_shifts(mechanism, geometry, radius),
    )
    additions = [solid for solid in design.solids() if solid.body not in described_bodies]
    return (*mechanism.solids, *additions)


def _radius(mechanism: Mechanism, geometry: MachineGeometry) -> float:
    """Return the radius of a link, m. All other dimensions are multiples of it."""
    largest = LINK_RADIUS * geometry.size
    names, ends = _center_lines(geometry)
    joined = _joined_pairs(mechanism)
    pairs = [
        (i, j)
        for i in range(len(names))
        for j in range(i)
        if names[i] != names[j] and frozenset((names[i], names[j])) not in joined
    ]
    if not pairs:
        return largest
    first, second = (ends[list(side)] for side in zip(*pairs, strict=True))
    distances = segment_distances(first[:, 0], first[:, 1], second[:, 0], second[:, 1])
    # parts whose center lines intersect collide at any radius
    smallest = distances[distances > 1e-6 * geometry.size].min(initial=np.inf)
    return float(np.clip(RADIUS_PER_DISTANCE * smallest, MIN_RADIUS_FRACTION * largest, largest))


def _center_lines(geometry: MachineGeometry) -> tuple[list[str], np.ndarray]:
    """Return names and center lines (n, 2, 3) of moving bodies and rods in the base frame."""
    names = []
    ends = [np.zeros((0, 2, 3))]
    for body in geometry.shape.bodies:
        if body.name != BASE:
            points = geometry.points(body.name)[0]
            lines = np.concatenate([points[body.edges], geometry.arcs(body.name)[0]])
            ends.append(lines)
            names += [body.name] * len(lines)
    is_rod = [segment.kind == "rod" for segment in geometry.shape.segments]
    ends.append(geometry.segments[0][is_rod])
    names += [segment.name for segment in geometry.shape.segments if segment.kind == "rod"]
    return names, np.concatenate(ends)


def _shifts(
    mechanism: Mechanism, geometry: MachineGeometry, radius: float
) -> dict[str, np.ndarray]:
    """Return displacements (3,) of drawn bodies along parallel hinges, in body coordinates, m.

    Bodies that are connected by a hinge, or whose center lines are close, are in different layers.
    Each body gets the lowest free layer, starting at the base. A slider is in the layer of its body. The result is
    empty if hinges have different directions, or if layers would separate joints or rods.
    """
    poses = frames(mechanism, geometry, geometry)
    hinges = [joint for joint in mechanism.joints if joint.kind == "revolute"]
    directions = []
    for hinge in hinges:
        _, direction = _axis(mechanism, hinge.parent, hinge.axes[0])
        directions.append(poses[hinge.parent.body].rotation[0] @ direction)
    axes = np.array(directions)
    is_planar = len(axes) and np.abs(np.cross(axes[0], axes)).max() < 1e-6
    kinds = {joint.kind for joint in mechanism.joints}
    if not is_planar or not kinds <= {"revolute", "fixed", "prismatic", "planar"}:
        return {}
    in_different_layers = {frozenset((joint.parent.body, joint.child.body)) for joint in hinges}
    fixed = [
        {joint.parent.body, joint.child.body}
        for joint in mechanism.joints
        if joint.kind in ("fixed", "prismatic")
    ]
    fixed += [{rod.start.body, rod.end.body} for rod in mechanism.rods]
    names, ends = _center_lines(geometry)
    distances = segment_distances(
        ends[:, None, 0], ends[:, None, 1], ends[None, :, 0], ends[None, :, 1]
    )
    near = np.argwhere(distances < LAYER_DISTANCE * radius)
    in_different_layers |= {frozenset((names[i], names[j])) for i, j in near}
    layers: dict[str, int] = {}
    for body in geometry.shape.bodies:
        if body.name in layers:
            continue
        group = _fixed_group(body.name, fixed)
        used = {
            layers[other]
            for other in layers
            for name in group
            if frozenset((name, other)) in in_different_layers
        }
        lowest = next(i for i in range(len(layers) + 1) if i not in used)
        layers |= dict.fromkeys(group, 0 if BASE in group else lowest)
    return {
        name: LAYER_DISTANCE * radius * layer * poses[name].rotation[0].T @ axes[0]
        for name, layer in layers.items()
    }


def _fixed_group(name: str, fixed: list[set[str]]) -> set[str]:
    """Return a body and all bodies that are fixed to it, from pairs of fixed bodies."""
    group = {name}
    previous = set[str]()
    while group != previous:
        previous = set(group)
        group.update(*(pair for pair in fixed if pair & group))
    return group


def _joined_pairs(mechanism: Mechanism) -> set[frozenset[str]]:
    """Return pairs of bodies and rods with a common joint, and of rods with a common end."""
    joined = {frozenset((joint.parent.body, joint.child.body)) for joint in mechanism.joints}
    ends = [
        (rod.name, side.body, placement_pose(mechanism, side).position)
        for rod in mechanism.rods
        for side in (rod.start, rod.end)
    ]
    joined |= {frozenset((name, body)) for name, body, _ in ends}
    tolerance = SAME_POINT * mechanism.characteristic_length
    for rod, body, point in ends:
        for other_rod, other_body, other_point in ends:
            if body == other_body and np.linalg.norm(point - other_point) < tolerance:
                joined.add(frozenset((rod, other_rod)))
    return joined


def _axis(mechanism: Mechanism, placement: Placement, letter: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the origin (3,) and direction (3,) of an axis in the coordinates of its body."""
    pose = placement_pose(mechanism, placement)
    return pose.position, pose.rotation @ VECTORS[letter]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """The design of one machine.

    Attributes:
        mechanism: the machine.
        geometry: its geometry at the reference pose.
        radius: radius of a link, m.
        shifts: displacements of the bodies of a planar linkage (see `_shifts`).
    """

    mechanism: Mechanism
    geometry: MachineGeometry
    radius: float
    shifts: Mapping[str, np.ndarray]

    def solids(self) -> Iterator[Solid]:
        """Yield all solids, each in the layer of its body."""
        for solid in self._in_plane():
            x, y, z = (solid.position + self.shifts.get(solid.body, np.zeros(3))).tolist()
            yield replace(solid, position=(x, y, z))

    def _in_plane(self) -> Iterator[Solid]:
        """Yield all solids, without the displacement to their layer."""
        drives = {
            (axis.body, axis.origin.tobytes()): axis
            for axis in self.geometry.shape.drives
            if axis.is_angular
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
        """Yield the solids of a body."""
        is_base = body.name == BASE
        role = "base" if is_base else "link"
        if body.name == self.geometry.shape.platform:
            role = "platform"
        r = self.radius
        for line in _joined_lines(body.arcs):
            yield mesh(body.name, tube(line, r), role)
        if len(body.arcs) or self._is_bolted(body.name):
            return
        points = body.points
        # the frames of the rails replace the base
        if is_base and any(self._is_rail(point) for point in points):
            return
        if len(body.faces) and not is_base:
            rank = np.linalg.matrix_rank(points - points.mean(axis=0), tol=1e-6)
            if rank == 2:
                yield mesh(body.name, plate(points, 1.5 * r, 1.2 * r), role)
                return
        for edge in body.edges:
            yield bar(body.name, points[edge], r, role)
        if len(points) == 1 and not is_base:
            yield ball(body.name, points[0], 1.6 * r, role)

    def _is_bolted(self, name: str) -> bool:
        """Return whether a body has only fixed joints, so that it is not a link."""
        joints = [j for j in self.mechanism.joints if name in (j.parent.body, j.child.body)]
        return all(joint.kind == "fixed" for joint in joints)

    def _is_rail(self, point: np.ndarray) -> bool:
        """Return whether a slide starts at a point of the base."""
        slides = [
            s for s in self.geometry.shape.segments if s.kind == "slide" and s.bodies[0] == BASE
        ]
        return any(np.linalg.norm(segment.ends[0] - point) < 1e-9 for segment in slides)

    def _tool(self) -> Iterator[Solid]:
        """Yield the tool's tip and a bar from the platform to the tip."""
        shape = self.geometry.shape
        body = shape.platform
        tip = shape.tool.position
        platform = shape.bodies[shape.index[body]]
        arcs = list(_joined_lines(platform.arcs))
        if arcs:
            center = arcs[0][len(arcs[0]) // 2]
        elif len(platform.points):
            center = platform.points.mean(axis=0)
        else:
            center = np.zeros(3)
        if np.linalg.norm(tip - center) > 2 * self.radius:
            yield bar(body, np.stack([center, tip]), TOOL_RADIUS * self.radius, "tool")
        yield ball(body, tip, 0.8 * self.radius, "tool")

    # Rods

    def _rod(self, segment: Segment) -> Iterator[Solid]:
        """Yield the solids of a rod, with balls at its ends."""
        rod = self.mechanism.rod(segment.name)
        r = self.radius
        i = [s.name for s in self.geometry.shape.segments].index(segment.name)
        length = float(np.linalg.norm(np.diff(self.geometry.segments[0, i], axis=0)))
        if rod.tension is not None:
            yield _cylinder(rod.name, CABLE_RADIUS * r, 0.0, length, "cable")
        elif rod.telescope is not None:
            lower, upper = rod.telescope.freedom.lower, rod.telescope.freedom.upper
            shortest = lower if np.isfinite(lower) else SHORTEST_ROD * length
            longest = upper if np.isfinite(upper) else LONGEST_ROD * length
            housing = 0.96 * shortest
            piston = min(max(longest - 0.9 * housing, 0.3 * shortest), housing)
            yield _cylinder(f"{rod.name}.lower", 1.25 * r, 0.0, housing, "motor")
            yield _cylinder(f"{rod.name}.upper", ROD_RADIUS * r, -piston, 0.0, "rod")
            yield ball(f"{rod.name}.lower", np.zeros(3), BALL_RADIUS * r, "joint")
            yield ball(f"{rod.name}.upper", np.zeros(3), BALL_RADIUS * r, "joint")
        elif self._is_parallelogram(segment):
            yield from self._parallelogram(segment, length)
        else:
            yield _cylinder(rod.name, ROD_RADIUS * r, 0.0, length, "rod")
            yield ball(rod.name, np.zeros(3), BALL_RADIUS * r, "joint")
            yield ball(rod.name, np.array([0.0, 0.0, length]), BALL_RADIUS * r, "joint")

    def _parallelogram(self, segment: Segment, length: float) -> Iterator[Solid]:
        """Yield the two bars of a parallelogram, and the bars that connect their ends."""
        r = self.radius
        name = segment.name
        half_width = 0.5 * PARALLELOGRAM_WIDTH * length
        for x in (-half_width, half_width):
            size = (ROD_RADIUS * r, length)
            center = np.array([x, 0.0, 0.5 * length])
            yield solid_at(name, "cylinder", size, center, np.eye(3), "rod")
            for z in (0.0, length):
                ball_radius = BALL_RADIUS * ROD_RADIUS * r * 1.3
                yield ball(name, np.array([x, 0.0, z]), ball_radius, "joint")
        poses = frames(self.mechanism, self.geometry, self.geometry)
        rod_pose = poses[name].at(0)
        R, p = rod_pose.rotation, rod_pose.position
        for body, z in zip(segment.bodies, (0.0, length), strict=True):
            if body == BASE:
                continue
            body_pose = poses[body].at(0)
            line = p + z * R[:, 2] + np.outer([-half_width, half_width], R[:, 0])
            role = "platform" if body == self.mechanism.platform.body else "link"
            ends = (line - body_pose.position) @ body_pose.rotation
            yield bar(body, ends, ROD_RADIUS * r, role)

    def _is_parallelogram(self, segment: Segment) -> bool:
        """Return whether a rod represents a parallelogram.

        This is the case if it is the only rod between its bodies, and one of these is a platform
        that does not rotate about horizontal axes.
        """
        platform = self.mechanism.platform.body
        rod = self.mechanism.rod(segment.name)
        if platform not in segment.bodies or rod.tension is not None or rod.telescope is not None:
            return False
        platform_kinds = [
            joint.kind
            for joint in self.mechanism.joints
            if joint.child.body == platform and joint.parent.body == BASE
        ]
        if not platform_kinds or platform_kinds[0] not in ("translational", "schoenflies"):
            return False
        parallel_rods = [
            other
            for other in self.geometry.shape.segments
            if other.kind == "rod" and set(other.bodies) == set(segment.bodies)
        ]
        return len(parallel_rods) == 1

    # Joints

    def _joint(self, joint: Joint) -> Iterator[Solid]:
        """Yield the solids of a joint."""
        r = self.radius
        parent = joint.parent
        child = joint.child
        if joint.kind == "revolute":
            origin, axis = _axis(self.mechanism, parent, joint.axes[0])
            size = (HOUSING_RADIUS * r, 3.4 * r)
            yield solid_at(parent.body, "cylinder", size, origin, rotation_z_along(axis), "joint")
            origin, child_axis = _axis(self.mechanism, child, joint.axes[0])
            step = float(self._shift(parent.body) @ axis - self._shift(child.body) @ child_axis)
            pin = np.array([min(step, 0.0) - 2.3 * r, max(step, 0.0) + 2.3 * r])
            ends = origin + pin[:, None] * child_axis
            yield bar(child.body, ends, PIN_RADIUS * r, "link", "cylinder")
        elif joint.kind == "universal":
            for placement, letter in zip((parent, child), joint.axes, strict=True):
                origin, axis = _axis(self.mechanism, placement, letter)
                size = (PIN_RADIUS * r, 3.6 * r)
                yield solid_at(
                    placement.body, "cylinder", size, origin, rotation_z_along(axis), "joint"
                )
        elif joint.kind == "spherical":
            origin, _ = _axis(self.mechanism, parent, "z")
            yield ball(parent.body, origin, 1.3 * BALL_RADIUS * r, "joint")
        elif joint.kind in ("prismatic", "cylindrical"):
            yield from self._slide(joint)

    def _shift(self, body: str) -> np.ndarray:
        """Return the displacement of a body to its layer, m."""
        return self.shifts.get(body, np.zeros(3))

    def _slide(self, joint: Joint) -> Iterator[Solid]:
        """Yield a rail over the range on the parent, and a carriage on the child.

        The carriage extends from the rail to the child's joints.
        """
        r = self.radius
        origin, axis, limits = self._rail(joint)
        offset = self._rail_offset(joint, axis)
        rail_center = origin + limits.mean() * axis
        length = float(np.ptp(limits))
        role = "rail" if joint.parent.body == BASE else "link"
        driven = {name for actuator in self.mechanism.actuators for name, _ in actuator.drives}
        is_driven = any(name in driven for name in joint.velocity_names)
        carriage_role = "motor" if is_driven else "link"
        frame = _frame_along(offset, axis)
        parent = placement_pose(self.mechanism, joint.parent)
        child = placement_pose(self.mechanism, joint.child)
        carriage_frame = child.rotation @ parent.rotation.T @ frame
        center = child.position + 0.5 * carriage_frame @ frame.T @ offset
        size = CARRIAGE_SIZE * r
        if joint.kind == "prismatic":
            width = 2 * RAIL_RADIUS * r
            rail = (width, width, length)
            carriage = (0.8 * size + float(np.linalg.norm(offset)), 0.8 * size, 1.2 * size)
            yield solid_at(joint.parent.body, "box", rail, rail_center + offset, frame, role)
            yield solid_at(joint.child.body, "box", carriage, center, carriage_frame, carriage_role)
        else:
            rail_size = (RAIL_RADIUS * r, length)
            carriage_size = (0.6 * size, 1.2 * size)
            yield solid_at(joint.parent.body, "cylinder", rail_size, rail_center, frame, role)
            yield solid_at(
                joint.child.body, "cylinder", carriage_size, center, carriage_frame, carriage_role
            )

    def _rail_offset(self, joint: Joint, axis: np.ndarray) -> np.ndarray:
        """Return the displacement (3,) of a rail from the joint center, m.

        A prismatic rail on the base is displaced away from the rods of its carriage; other rails
        are not displaced.
        """
        if joint.parent.body != BASE or joint.kind != "prismatic":
            return np.zeros(3)
        carriage = joint.child.body
        directions = []
        for segment, ends in zip(
            self.geometry.shape.segments, self.geometry.segments[0], strict=True
        ):
            if segment.kind == "rod" and carriage in segment.bodies:
                outward = ends[1] - ends[0] if segment.bodies[0] == carriage else ends[0] - ends[1]
                directions.append(outward / np.linalg.norm(outward))
        if not directions:
            return np.zeros(3)
        offset = -np.mean(directions, axis=0)
        offset -= axis * (axis @ offset)
        length = np.linalg.norm(offset)
        return 2.8 * self.radius * offset / length if length > 0.1 else np.zeros(3)

    def _rail(self, joint: Joint) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return origin (3,) and direction (3,) of a rail on its body, and its range (2,), m."""
        origin, axis = _axis(self.mechanism, joint.parent, joint.axes[0])
        limits = np.array([-np.inf, np.inf])
        if joint.freedoms:
            limits = np.array([joint.freedoms[-1].lower, joint.freedoms[-1].upper])
        start = joint.reference[-1] if joint.reference else 0.0
        sides = np.array([-1.0, 1.0])
        default = start + 0.3 * self.geometry.size * sides
        margin = 2.0 * self.radius * sides
        return origin, axis, np.where(np.isfinite(limits), limits, default) + margin

    def _rail_frames(self) -> Iterator[Solid]:
        """Yield the bars that connect the ends of parallel rails on the base."""
        rails = []
        for joint in self.mechanism.joints:
            if joint.kind == "prismatic" and joint.parent.body == BASE:
                origin, axis, limits = self._rail(joint)
                rails.append((origin + self._rail_offset(joint, axis), axis, limits))
        if not rails:
            return
        _, first_axis, _ = rails[0]
        parallel = [
            (origin, limits * np.sign(axis @ first_axis))
            for origin, axis, limits in rails
            if abs(axis @ first_axis) > 1.0 - 1e-6
        ]
        for end in (np.min, np.max):
            points = np.array([origin + first_axis * end(limits) for origin, limits in parallel])
            edges, _ = body_lines(points)
            for edge in edges:
                yield bar(BASE, points[edge], RAIL_RADIUS * self.radius, "base")

    def _motor(self, axis: DriveAxis) -> Iterator[Solid]:
        """Yield the motor of a rotating drive."""
        if axis.direction is None:
            return
        size = (MOTOR_RADIUS * self.radius, 5.0 * self.radius)
        yield solid_at(
            axis.body, "cylinder", size, axis.origin, rotation_z_along(axis.direction), "motor"
        )


def _cylinder(name: str, radius: float, start: float, end: float, role: str) -> Solid:
    """Return a cylinder along the z axis of a body or rod, from z = `start` to z = `end`, m."""
    center = np.array([0.0, 0.0, 0.5 * (start + end)])
    return solid_at(name, "cylinder", (radius, end - start), center, np.eye(3), role)


def _frame_along(perpendicular: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) with z along an axis and x along a perpendicular vector.

    If the perpendicular vector is zero, x is any direction perpendicular to the axis.
    """
    length = np.linalg.norm(perpendicular)
    if length == 0.0:
        return rotation_z_along(axis)
    x = perpendicular / length
    return np.column_stack([x, np.cross(axis, x), axis])


def _joined_lines(pieces: np.ndarray) -> Iterator[np.ndarray]:
    """Yield polylines (k, 3) joined from consecutive straight pieces (m, 2, 3)."""
    line: list[np.ndarray] = []
    for start, end in pieces:
        if line and np.linalg.norm(line[-1] - start) > 1e-9:
            yield np.array(line)
            line = []
        if not line:
            line.append(start)
        line.append(end)
    if line:
        yield np.array(line)
