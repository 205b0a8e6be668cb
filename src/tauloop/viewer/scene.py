"""The scene: a machine's bodies, rods, actuators and tool as nodes of a viser server, moved to any state."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from tauloop.kinematics.machine_geometry import BodyShape, MachineGeometry
from tauloop.mechanism.model import BASE
from tauloop.report.figures import FAINT, PREDICTED, RESIDUAL, TEXT
from tauloop.report.machine_figure import DRIVE

#: Sizes as shares of the machine's largest dimension: radii of rods, rails and body lines; joints; drives; tool axes.
ROD, RAIL, LINE, JOINT = 0.006, 0.007, 0.010, 0.016
DRIVE_RADIUS, DRIVE_LENGTH, TOOL = 0.018, 0.06, 0.07
#: A segment shorter than this share has no direction, and is drawn as nothing.
SHORTEST = 1e-9
#: Where the eye stands at first, in largest dimensions from the middle; how far from the plane of a planar machine.
EYE, FACING = (0.75, -1.05, 0.45), 1.3
#: Radius and colour of segments by kind; lit from above they look paler than on paper.
SEGMENT_LOOKS = {"rod": (ROD, "#6c93c0"), "slide": (ROD, FAINT), "rail": (RAIL, FAINT)}


class MachineScene:
    """Nodes of a machine, by name: ``/machine/BODY``, ``/segments/NAME``, ``/drives/NAME``, ``/tool``, ``/path``."""

    def __init__(self, server: Any, geometry: MachineGeometry) -> None:
        """Build the nodes.

        Args:
            server: a `viser.ViserServer`.
            geometry: the machine at its first state.
        """
        self._scene, self.shape = server.scene, geometry.shape
        low, high = geometry.extent
        self._size = geometry.size
        self._bodies = {body.name: self._body(body) for body in self.shape.bodies}
        self._segments = [self._segment(i) for i in range(len(self.shape.segments))]
        self._drives = [self._drive(i) for i in range(len(self.shape.drives))]
        self._tool = self._scene.add_frame(
            "/tool", axes_length=TOOL * self._size, axes_radius=0.06 * TOOL * self._size, origin_radius=0.0
        )
        self._scene.add_label("/tool/name", self.shape.platform)
        middle = (low + high) / 2
        self._scene.add_grid(
            "/floor",
            width=1.4 * self._size,
            height=1.4 * self._size,
            cell_size=self._size / 10,
            section_size=self._size / 2,
            position=(middle[0], middle[1], low[2] - 0.02 * self._size),
        )
        server.initial_camera.look_at = tuple(middle)
        eye = np.array(EYE)
        if len(geometry.plane) == 2:
            across = 3 - sum(geometry.plane)
            eye = FACING * np.eye(3)[across] * (1.0 if across == 2 else -1.0) + [0.0, -0.02, 0.02]
        server.initial_camera.position = tuple(middle + eye * self._size)
        self.show(geometry)

    def show(self, geometry: MachineGeometry) -> None:
        """Move all nodes to the first state of a geometry."""
        turns = Rotation.from_matrix(geometry.rotations[0]).as_quat(scalar_first=True)
        for body, origin, turn in zip(self.shape.bodies, geometry.origins[0], turns, strict=True):
            node = self._bodies[body.name]
            node.position, node.wxyz = origin, turn
        ends = geometry.segments[0]
        ways = ends[:, 1] - ends[:, 0]
        lengths = np.linalg.norm(ways, axis=-1)
        for node, middle, length, turn in zip(self._segments, ends.mean(axis=1), lengths, along(ways), strict=True):
            node.visible = bool(length > SHORTEST * self._size)
            node.position, node.wxyz, node.scale = middle, turn, (1.0, 1.0, max(float(length), SHORTEST))
        origins, directions = (values[0] for values in geometry.drives)
        for node, origin, turn in zip(self._drives, origins, along(directions), strict=True):
            node.position, node.wxyz = origin, turn
        self._tool.position = geometry.tool[0]
        self._tool.wxyz = Rotation.from_matrix(geometry.tool_rotation[0]).as_quat(scalar_first=True)

    def draw_path(self, points: np.ndarray) -> None:
        """Draw the tool's path (N, 3)."""
        if len(points) > 1:
            ends = np.stack([points[:-1], points[1:]], axis=1)
            self._scene.add_line_segments("/path", points=ends, colors=rgb(RESIDUAL), thickness=0.5 * ROD * self._size)

    def _body(self, body: BodyShape) -> Any:
        """A frame with the body's points, lines and faces, all in its own coordinates."""
        name = f"/machine/{node_name(body.name)}"
        colour = rgb(TEXT if body.name == BASE else RESIDUAL if body.name == self.shape.platform else PREDICTED)
        node = self._scene.add_frame(name, show_axes=False)
        if len(body.points):
            self._scene.add_point_cloud(
                f"{name}/joints",
                points=body.points,
                colors=colour,
                point_size=JOINT * self._size,
                point_shape="square" if body.name == BASE else "circle",
            )
        if len(body.edges) and body.name != BASE:
            self._scene.add_line_segments(
                f"{name}/lines", points=body.points[body.edges], colors=colour, thickness=LINE * self._size
            )
        if len(body.arcs) and body.name != BASE:
            self._scene.add_line_segments(f"{name}/arcs", points=body.arcs, colors=colour, thickness=LINE * self._size)
        if len(body.faces) and body.name != BASE:
            self._scene.add_mesh_simple(
                f"{name}/faces", vertices=body.points, faces=body.faces, color=colour, opacity=0.35, side="double"
            )
        return node

    def _segment(self, number: int) -> Any:
        segment = self.shape.segments[number]
        radius, colour = SEGMENT_LOOKS[segment.kind]
        driven = segment.kind == "rod" and any(axis.rod == segment.name for axis in self.shape.drives)
        name = f"/segments/{node_name(segment.name)}" + ("" if segment.kind == "rod" else f"/{segment.kind}")
        return self._scene.add_cylinder(
            name, radius=radius * self._size, height=1.0, color=rgb(DRIVE if driven else colour), radial_segments=12
        )

    def _drive(self, number: int) -> Any:
        """A drum about an axis that turns, a thin pin along one that slides; the name beside it."""
        axis = self.shape.drives[number]
        same = [i for i, other in enumerate(self.shape.drives) if other.name == axis.name]
        name = f"/drives/{node_name(axis.name)}" + (f"/{same.index(number) + 1}" if same[0] != number else "")
        radius = DRIVE_RADIUS if axis.turns else 0.4 * DRIVE_RADIUS
        length = DRIVE_LENGTH if axis.turns else 2 * DRIVE_LENGTH
        node = self._scene.add_cylinder(
            name, radius=radius * self._size, height=length * self._size, color=rgb(DRIVE), opacity=0.6
        )
        if same[0] == number:
            self._scene.add_label(f"{name}/name", axis.name)
        return node


def along(directions: np.ndarray) -> np.ndarray:
    """Unit quaternions (N, 4; w, x, y, z) that turn the z axis into directions (N, 3); none for those without length.

    The half-way rotation: w = 1 + d_z, (x, y) = (-d_y, d_x), made a unit; straight down a half turn about x.
    """
    length = np.linalg.norm(directions, axis=-1, keepdims=True)
    unit = np.where(length > 0, directions / np.where(length > 0, length, 1.0), [0.0, 0.0, 1.0])
    turn = np.stack([1.0 + unit[:, 2], -unit[:, 1], unit[:, 0], np.zeros(len(unit))], axis=-1)
    size = np.linalg.norm(turn, axis=-1, keepdims=True)
    return np.where(size > 1e-8, turn / np.where(size > 1e-8, size, 1.0), [0.0, 1.0, 0.0, 0.0])


def node_name(name: str) -> str:
    """A name as a part of a path."""
    return name.replace("/", "_")


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour in numbers from 0 to 255."""
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue
