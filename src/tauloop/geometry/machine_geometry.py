"""The geometry of a machine for drawings: joint centers, lines, faces, rods and rails.

Shapes are constant in body coordinates, so only the poses of the bodies depend on the state. This
module does not draw; figures and the viewer use its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache, cached_property
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from tauloop.common.records import DEFERRED, dataclass, deferred
from tauloop.equations.assembly import Loops
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.geometry.spherical_arcs import SphericalBody, spherical_bodies
from tauloop.mechanism.model import BASE, JOINT_KINDS, Body, Freedom, Joint, Mechanism, Placement
from tauloop.mechanism.poses import FramePose, placement_pose
from tauloop.model import Model

#: Distance, in characteristic lengths, below which points coincide.
SAME_POINT = 1e-9
#: Deviation, relative to the extent, below which points are on a line or in a plane.
FLATNESS_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyShape:
    """The drawn shape of a body in body coordinates.

    Attributes:
        name: name of the body.
        points: (k, 3) distinct joint centers, m. A body with a single joint center also has its
            mass center as a point.
        edges: (e, 2) pairs of points joined by lines: a chain, the outline of a plate, or the edges
            of a hull.
        faces: (f, 3) triples of points that fill the plate or the hull.
        arcs: (m, 2, 3) straight pieces of arcs between axes that intersect in one point (see
            `spherical_arcs`).
    """

    name: str
    points: np.ndarray
    edges: np.ndarray = field(metadata=DEFERRED)
    faces: np.ndarray = field(metadata=DEFERRED)
    arcs: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A straight line between two points that are fixed to bodies.

    Attributes:
        name: name of the rod or joint.
        kind: "rod", "slide" (between the frames of a sliding joint) or "rail" (the range of a slide
            on its body).
        bodies: names of the bodies of both ends.
        ends: (2, 3) both ends in coordinates of these bodies, m.
    """

    name: str
    kind: str
    bodies: tuple[str, str]
    ends: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveAxis:
    """The axis of a coordinate that an actuator drives.

    Attributes:
        name: name of the actuator.
        is_angular: whether the coordinate is an angle.
        body: body to which the axis is fixed.
        origin: (3,) a point on the axis in coordinates of this body, m; for a rod, its start.
        direction: (3,) unit vector along the axis in coordinates of this body; None for the
            direction of a rod.
        rod: name of the rod; empty for a joint.
    """

    name: str
    is_angular: bool
    body: str
    origin: np.ndarray
    direction: np.ndarray | None
    rod: str = ""


@dataclass(frozen=True, kw_only=True)
class MachineShape:
    """The constant geometry of a machine, and the function of the poses of its bodies.

    Attributes:
        bodies: shapes of the base and of the moving bodies, in this order.
        platform: name of the platform's body.
        segments: rods, slides and rails.
        drives: axes of the actuators.
        tool: pose of the tool's frame on the platform.
        length: characteristic length of the machine, m.
        poses: function of q that returns R by columns (9) and the origin (3) of every body except
            the base.
    """

    bodies: tuple[BodyShape, ...]
    platform: str
    segments: tuple[Segment, ...]
    drives: tuple[DriveAxis, ...]
    tool: FramePose
    length: float
    poses: BatchFunction

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each body by name."""
        return {body.name: i for i, body in enumerate(self.bodies)}

    def at(self, q: np.ndarray) -> MachineGeometry:
        """Return the geometry of the machine at coordinates (N, n_q)."""
        n = len(q)
        flat = self.poses([q], n)[0].reshape(n, -1, 12)
        base_rotations = np.broadcast_to(np.eye(3), (n, 1, 3, 3))
        body_rotations = flat[..., :9].reshape(n, -1, 3, 3).mT
        R = np.concatenate([base_rotations, body_rotations], axis=1)
        p = np.concatenate([np.zeros((n, 1, 3)), flat[..., 9:]], axis=1)
        return MachineGeometry(shape=self, rotations=R, origins=p)


@dataclass(frozen=True, kw_only=True)
class MachineGeometry:
    """The geometry of a machine at N states, in the base frame, m.

    Attributes:
        shape: the constant geometry.
        rotations: (N, n_bodies, 3, 3) orientations of the bodies, in the order of `shape.bodies`.
        origins: (N, n_bodies, 3) origins of the bodies.
    """

    shape: MachineShape
    rotations: np.ndarray
    origins: np.ndarray

    def __len__(self) -> int:
        return len(self.origins)

    def fixed_to(self, body: str, points: np.ndarray) -> np.ndarray:
        """Return the positions (N, k, 3) in the base frame of points (k, 3) of a body."""
        i = self.shape.index[body]
        return np.asarray(self.origins[:, i, None] + points @ self.rotations[:, i].mT)

    def points(self, body: str) -> np.ndarray:
        """Return the joint centers of a body (N, k, 3)."""
        return self.fixed_to(body, self.shape.bodies[self.shape.index[body]].points)

    def arcs(self, body: str) -> np.ndarray:
        """Return the straight pieces (N, m, 2, 3) of the arcs of a body."""
        pieces = self.shape.bodies[self.shape.index[body]].arcs
        return self.fixed_to(body, pieces.reshape(-1, 3)).reshape(len(self), -1, 2, 3)

    @property
    def segments(self) -> np.ndarray:
        """Ends of all rods, slides and rails (N, s, 2, 3), in the order of `shape.segments`."""
        ends = [
            self.fixed_to(body, end[None])[:, 0]
            for segment in self.shape.segments
            for body, end in zip(segment.bodies, segment.ends, strict=True)
        ]
        if not ends:
            return np.zeros((len(self), 0, 2, 3))
        return np.stack(ends, axis=1).reshape(len(self), -1, 2, 3)

    def of_kind(self, kind: str) -> np.ndarray:
        """Return the ends of the segments of one kind (N, r, 2, 3)."""
        return self.segments[:, [segment.kind == kind for segment in self.shape.segments]]

    @property
    def drives(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions of the actuators' axes, in the order of `shape.drives`.

        Both have the shape (N, d, 3).
        """
        origins, directions = np.zeros((2, len(self), len(self.shape.drives), 3))
        names = (segment.name for segment in self.shape.segments)
        ends = dict(zip(names, self.segments.swapaxes(0, 1), strict=True))
        for i, axis in enumerate(self.shape.drives):
            origins[:, i] = self.fixed_to(axis.body, axis.origin[None])[:, 0]
            if axis.direction is None:
                vector = ends[axis.rod][:, 1] - ends[axis.rod][:, 0]
                directions[:, i] = vector / np.linalg.norm(vector, axis=-1, keepdims=True)
            else:
                directions[:, i] = self.rotations[:, self.shape.index[axis.body]] @ axis.direction
        return origins, directions

    @property
    def tool(self) -> np.ndarray:
        """Position of the tool center point (N, 3)."""
        return self.fixed_to(self.shape.platform, self.shape.tool.position[None])[:, 0]

    @property
    def tool_rotation(self) -> np.ndarray:
        """Orientation of the tool's frame (N, 3, 3)."""
        return np.asarray(
            self.rotations[:, self.shape.index[self.shape.platform]] @ self.shape.tool.rotation
        )

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounding box of all points over all states: smallest and largest coordinates (3,), m."""
        origins, _ = self.drives
        arrays = [self.points(body.name) for body in self.shape.bodies]
        arrays += [self.tool, self.segments, origins]
        points = np.concatenate([array.reshape(-1, 3) for array in arrays])
        return points.min(axis=0), points.max(axis=0)

    @property
    def size(self) -> float:
        """Longest side of the bounding box, m; the characteristic length if all points coincide."""
        low, high = self.extent
        return float(np.max(high - low)) or self.shape.length

    @property
    def plane(self) -> tuple[int, ...]:
        """Axes of the base for drawings: the two axes of a planar machine's plane, or all three."""
        low, high = self.extent
        thin = np.flatnonzero(high - low < FLATNESS_TOLERANCE * self.size)
        return tuple(i for i in range(3) if not len(thin) or i != thin[-1])


def machine_geometry(model: Model, q: np.ndarray) -> MachineGeometry:
    """Return the geometry of a machine at coordinates (N, n_q)."""
    return machine_shape(model).at(np.atleast_2d(q))


#: Shapes by model, because building a shape takes 20 ms.
_SHAPES: WeakKeyDictionary[Model, MachineShape] = WeakKeyDictionary()


def machine_shape(model: Model) -> MachineShape:
    """Return the points, lines and axes of a machine at its nominal parameter values."""
    shape = _SHAPES.get(model)
    if shape is None:
        shape = _SHAPES[model] = _shape(model.assembly.loops)
    return shape


def _shape(loops: Loops) -> MachineShape:
    """Build the shape of a machine; see `machine_shape`."""
    mechanism = loops.mechanism
    values = nominal(loops.mechanism)
    motion = symbolic_motion(loops.topology, values, is_moving=False)
    names = [body.name for body in mechanism.bodies if body.name != BASE]
    columns = [ca.vertcat(ca.vec(motion.bodies[name].R), motion.bodies[name].p) for name in names]
    poses = BatchFunction(
        ca.Function("poses", [motion.q], [ca.densify(ca.vertcat(ca.SX(0, 1), *columns))])
    )
    points_by_body: dict[str, list[np.ndarray]] = {name: [] for name in (BASE, *names)}
    for placement in _joint_centers(mechanism):
        points_by_body[placement.body].append(placement_pose(mechanism, placement).position)
    joint_centers = {name: np.array(points) for name, points in points_by_body.items()}
    spherical = spherical_bodies(mechanism, values, joint_centers, loops.length)
    for body in mechanism.bodies:
        mass_center = _mass_center(mechanism, body)
        centers = joint_centers[body.name].reshape(-1, 3)
        has_one_center = len(_distinct_points(centers, loops.length)) == 1
        if mass_center is not None and has_one_center:
            points_by_body[body.name].append(mass_center)
    return MachineShape(
        bodies=tuple(
            _body_shape(name, np.array(points).reshape(-1, 3), spherical.get(name), loops.length)
            for name, points in points_by_body.items()
        ),
        platform=mechanism.platform.body,
        segments=tuple(_segments(mechanism)),
        drives=tuple(_moved_to_arcs(axis, spherical) for axis in _drive_axes(mechanism)),
        tool=placement_pose(mechanism, mechanism.platform.tool),
        length=loops.length,
        poses=poses,
    )


def _mass_center(mechanism: Mechanism, body: Body) -> np.ndarray | None:
    """Return the mass center (3,) of a moving body in body coordinates, or None.

    In drawings it shows the rotation of a body with a single joint center.
    """
    if body.inertia is None or body.name == BASE:
        return None
    m, *moment = (mechanism.value(x) for x in body.inertia.parameters[:4])
    return np.array(moment) / m if m > 0 else None


def _joint_centers(mechanism: Mechanism) -> Iterator[Placement]:
    """Yield the ends of rods and frames of joints.

    Joints with free translations in a plane or in space have no center.
    """
    for rod in mechanism.rods:
        yield from (rod.start, rod.end)
    for joint in mechanism.joints:
        if joint.kind not in ("free", "translational", "planar", "schoenflies"):
            yield from (joint.parent, joint.child)


def _segments(mechanism: Mechanism) -> Iterator[Segment]:
    """Yield rods, slides and rails."""
    for rod in mechanism.rods:
        ends = np.stack([placement_pose(mechanism, side).position for side in (rod.start, rod.end)])
        yield Segment(name=rod.name, kind="rod", bodies=(rod.start.body, rod.end.body), ends=ends)
    for joint in mechanism.joints:
        if joint.kind not in ("prismatic", "cylindrical"):
            continue
        start, end = placement_pose(mechanism, joint.parent), placement_pose(mechanism, joint.child)
        ends = np.stack([start.position, end.position])
        yield Segment(
            name=joint.name, kind="slide", bodies=(joint.parent.body, joint.child.body), ends=ends
        )
        slide = joint.freedoms[-1] if joint.freedoms else Freedom()
        limits = np.array([slide.lower, slide.upper])
        if np.isfinite(limits).all():
            ends = start.position + limits[:, None] * start.rotation[:, "xyz".index(joint.axes[0])]
            yield Segment(name=joint.name, kind="rail", bodies=(joint.parent.body,) * 2, ends=ends)


def _drive_axes(mechanism: Mechanism) -> Iterator[DriveAxis]:
    """Yield the axes of the coordinates that actuators drive."""
    rods = {rod.name: rod for rod in mechanism.rods}
    joints = {name: joint for joint in mechanism.joints for name in joint.velocity_names}
    for actuator in mechanism.actuators:
        for coordinate, _ in actuator.drives:
            if coordinate in rods:
                start = rods[coordinate].start
                origin = placement_pose(mechanism, start).position
                yield DriveAxis(
                    name=actuator.name,
                    is_angular=False,
                    body=start.body,
                    origin=origin,
                    direction=None,
                    rod=coordinate,
                )
            else:
                joint = joints[coordinate]
                letter, is_angular, frame = _axis(joint, joint.velocity_names.index(coordinate))
                pose = placement_pose(mechanism, frame)
                origin = pose.position
                direction = pose.rotation[:, "xyz".index(letter)]
                yield DriveAxis(
                    name=actuator.name,
                    is_angular=is_angular,
                    body=frame.body,
                    origin=origin,
                    direction=direction,
                )


def joint_axes(mechanism: Mechanism) -> Iterator[DriveAxis]:
    """Yield the axes of hinges, slides and universal joints, named after their joints."""
    for joint in mechanism.joints:
        if joint.kind not in ("revolute", "prismatic", "cylindrical", "universal"):
            continue
        count = 2 if joint.kind == "universal" else 1
        for freedom in range(count):
            letter, is_angular, frame = _axis(joint, freedom)
            pose = placement_pose(mechanism, frame)
            yield DriveAxis(
                name=joint.name,
                is_angular=is_angular,
                body=frame.body,
                origin=pose.position,
                direction=pose.rotation[:, "xyz".index(letter)],
            )


def _axis(joint: Joint, freedom: int) -> tuple[str, bool, Placement]:
    """Return the letter of the axis of a joint's freedom, whether it is rotary, and its frame."""
    translations = {"translational": 3, "planar": 2, "schoenflies": 3, "free": 3, "spherical": 0}
    if joint.kind in translations:
        count = translations[joint.kind]
        if freedom < count:
            return "xyz"[freedom], False, joint.parent
        rotates_about_z = joint.kind in ("planar", "schoenflies")
        letter = "z" if rotates_about_z else "xyz"[freedom - count]
        return letter, True, joint.parent
    if joint.kind == "universal":
        return joint.axes[freedom], True, (joint.parent, joint.child)[freedom]
    # the label of a linear motor is drawn at the slider
    frame = joint.child if joint.kind == "prismatic" else joint.parent
    return next(iter(joint.axes), "z"), JOINT_KINDS[joint.kind].angular[freedom], frame


def _moved_to_arcs(axis: DriveAxis, spherical: Mapping[str, SphericalBody]) -> DriveAxis:
    """Return the axis of an actuator on a spherical body, moved to the end of the body's arcs."""
    if axis.direction is None or axis.body not in spherical:
        return axis
    ends = spherical[axis.body].ends
    along = (ends - axis.origin) @ axis.direction
    return replace(axis, origin=ends[along.argmax()])


def _body_shape(
    name: str, points: np.ndarray, spherical: SphericalBody | None, length: float
) -> BodyShape:
    """Return the shape of a body from its points (k, 3).

    The points of a spherical body are the ends of its axes. If its mass center is not at its joint
    center, its other points are included.
    """
    centers = _distinct_points(points, length)
    arcs = np.zeros((0, 2, 3))
    points = centers
    if spherical is not None:
        arcs = spherical.pieces
        points = np.concatenate([centers if len(centers) > 1 else centers[:0], spherical.ends])
    # computed on first use, because only drawings need the lines
    lines = cache(lambda: body_lines(centers))
    return BodyShape(
        name=name,
        points=points,
        edges=deferred(lambda: lines()[0]),
        faces=deferred(lambda: lines()[1]),
        arcs=arcs,
    )


def _distinct_points(points: np.ndarray, length: float) -> np.ndarray:
    """Return the points (k, 3) that do not coincide with an earlier one."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    is_repeated = np.tril(distances < SAME_POINT * length, -1).any(axis=1)
    return points[~is_repeated]


def body_lines(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lines (e, 2) and triangles (f, 3) that form a body from distinct points (k, 3).

    Collinear points form a chain. Coplanar points are joined by the outline of their convex hull.
    Other points are joined by the edges of their convex hull, except edges within plane faces.
    Points inside a hull are not on any line.
    """
    no_faces = np.zeros((0, 3), dtype=int)
    if len(points) < 2:
        return no_faces[:, :2], no_faces
    centered = points - points.mean(axis=0)
    _, singular_values, axes = np.linalg.svd(centered, full_matrices=True)
    rank = int(np.sum(singular_values > FLATNESS_TOLERANCE * singular_values[0]))
    if rank == 1:
        order = np.argsort(centered @ axes[0], kind="stable")
        return np.column_stack([order[:-1], order[1:]]), no_faces
    # this import takes longer than forward kinematics, which needs no hull
    from scipy.spatial import ConvexHull

    if rank == 2:
        outline = ConvexHull(centered @ axes[:2].T).vertices
        first = np.full(len(outline) - 2, outline[0])
        fan = np.column_stack([first, outline[1:-1], outline[2:]])
        return np.column_stack([outline, np.roll(outline, -1)]), fan
    hull = ConvexHull(centered)
    edges = [
        sorted(set(hull.simplices[i]) & set(hull.simplices[j]))
        for i, neighbors in enumerate(hull.neighbors)
        for j in neighbors
        if i < j and hull.equations[i, :3] @ hull.equations[j, :3] < 1.0 - FLATNESS_TOLERANCE
    ]
    return np.array(edges), np.asarray(hull.simplices)
