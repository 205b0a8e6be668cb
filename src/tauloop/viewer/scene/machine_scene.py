"""The scene: a machine's solids, actuator names and tool as nodes of a viser server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from tauloop.display.palette import RESIDUAL
from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.mechanism.poses import FramePose
from tauloop.mechanism.solids.solid import ROLE_COLORS, Mesh
from tauloop.model import Model
from tauloop.viewer.scene.camera import (
    CAMERA_DIRECTION,
    DEFAULT_SIZE,
    FIELD_OF_VIEW,
    Camera,
    fitted_camera,
)
from tauloop.viewer.scene.labels import SceneLabels, surface_points

#: Length of the tool's axes, as a fraction of the machine's largest dimension.
TOOL_AXES_LENGTH = 0.07
#: Thickness of the tool's path, as a fraction of the machine's largest dimension.
PATH_THICKNESS = 0.003
#: Distance between the points on motors that labels avoid, as a fraction of the machine's largest
#: dimension.
MOTOR_SPACING = 0.015
#: Distance between the points on all solids that labels avoid, as a fraction of the machine's
#: largest dimension.
SOLID_SPACING = 0.04
#: Height of the heading of a recording, as a fraction of the machine's largest dimension.
HEADING_HEIGHT = 0.18
#: Color of a second, transparent machine.
GHOST_COLOR = "#7a4f9a"
#: Opacity of a second, transparent machine.
GHOST_OPACITY = 0.38
#: Opacity of solids while objects inside them are shown.
TRANSPARENT_OPACITY = 0.35
#: Intensity of the ambient light. There is no environment map: without a graphics card, viser would
#: need half a minute to unpack the map, and the machine would be almost white until then.
LIGHT_INTENSITY = 3.0
#: Gray level (of 255) of the light reflected by the floor.
FLOOR_LIGHT = 140


class MachineScene:
    """Nodes of a machine: ``/machine/BODY`` (and rods), ``/drives/NAME``, ``/tool``, ``/path``.

    Attributes:
        size: the machine's largest dimension, m.
        labels: labels of the scene; None for an additional machine.
        points: points that a fitted view contains (N, 3), m.
        away: direction from the machine to the camera in the first view (3,).
    """

    def __init__(
        self,
        server: Any,
        model: Model,
        geometry: MachineGeometry,
        *,
        name: str = "machine",
        has_names: bool = True,
        is_ghost: bool = False,
    ) -> None:
        """Build the nodes.

        Args:
            server: a `viser.ViserServer`.
            model: the machine.
            geometry: the machine at its first state, or at all states of a motion.
            name: name of the machine's node.
            has_names: whether to add labels, tool axes, a floor and the camera, as for the first
                machine of a scene.
            is_ghost: whether the machine is transparent.

        Raises:
            EngineError: trimesh is not installed.
            InputError: the file of a mesh is missing, damaged or too large.
        """
        self._scene = server.scene
        self._mechanism = model.mechanism
        self.shape = geometry.shape
        self.size = geometry.size
        self._geometry = geometry
        self._reference = machine_geometry(model, model.assembly.q)
        self._frames = frames(self._mechanism, geometry, self._reference)
        solids = machine_solids(model)
        meshes = parts(solids)
        top = f"/{name}"
        self._nodes = {
            body: self._scene.add_frame(node_path(body, top), show_axes=False) for body, _ in meshes
        }
        self._mesh_nodes = {
            (body, color): self._scene.add_mesh_simple(
                f"{node_path(body, top)}/{color[1:]}",
                vertices=mesh.vertices.astype(np.float32),
                faces=mesh.faces.astype(np.uint32),
                color=rgb(GHOST_COLOR if is_ghost else color),
                opacity=GHOST_OPACITY if is_ghost else None,
                flat_shading=True,
                cast_shadow=not is_ghost,
            )
            for (body, color), mesh in meshes.items()
        }
        cables = {rod.name for rod in self._mechanism.rods if rod.tension is not None}
        mesh_lengths = {key: float(np.ptp(mesh.vertices[:, 2])) for key, mesh in meshes.items()}
        # Name, node and length of the mesh of each cable.
        self._cables = [
            (key[0], node, mesh_lengths[key])
            for key, node in self._mesh_nodes.items()
            if key[0] in cables
        ]
        self._vertices = _by_body({key: mesh.vertices for key, mesh in meshes.items()})
        self.labels: SceneLabels | None = None
        self._tool: Any = None
        self._texts: dict[str, str] = {}
        motors = parts(solid for solid in solids if solid.role == "motor")
        self._motors = _surfaces(motors, MOTOR_SPACING * self.size)
        self._surfaces = _surfaces(meshes, SOLID_SPACING * self.size)
        self.points = self._points_to_fit(geometry)
        if has_names:
            self._add_surroundings(server, geometry)
        self.show(geometry)
        self.arrange_labels()

    def _add_surroundings(self, server: Any, geometry: MachineGeometry) -> None:
        """Add names, the tool's axes, the floor, light, and the first camera."""
        self._tool = self._scene.add_frame(
            "/tool",
            axes_length=TOOL_AXES_LENGTH * self.size,
            axes_radius=0.06 * TOOL_AXES_LENGTH * self.size,
            origin_radius=0.0,
        )
        self.floor = self._scene.add_grid("/floor")
        self._scene.configure_environment_map(None)
        self._scene.add_light_hemisphere(
            "/light", ground_color=(FLOOR_LIGHT,) * 3, intensity=LIGHT_INTENSITY
        )
        self.away = np.array(CAMERA_DIRECTION)
        if len(geometry.plane) == 2:
            normal = 3 - sum(geometry.plane)
            self.away = np.eye(3)[normal] * (1.0 if normal == 2 else -1.0) + [0.0, -0.02, 0.02]
        self.labels = SceneLabels(self._scene, self.fitted_camera())
        self._put_floor()
        self._set_initial_camera(server, self.labels.camera)

    @staticmethod
    def _set_initial_camera(server: Any, camera: Camera) -> None:
        """Set the initial camera of every page."""
        initial_camera = server.initial_camera
        initial_camera.fov = FIELD_OF_VIEW
        initial_camera.look_at = tuple(camera.look_at)
        initial_camera.position = tuple(camera.eye)

    def frame_below_heading(self, server: Any, size: tuple[float, float]) -> None:
        """Fit the first view into pictures of a size (pixels), below a heading."""
        assert self.labels is not None
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        middle = 0.5 * (low + high)
        top = high[2] + HEADING_HEIGHT * self.size
        points = np.vstack([self.points, [middle[0], middle[1], top]])
        camera = fitted_camera(points, self.away, size)
        self._set_initial_camera(server, camera)
        self.labels.look_from(camera)

    def _points_to_fit(self, geometry: MachineGeometry) -> np.ndarray:
        """Return the vertices of all solids and the tool at some states of a motion (N, 3), m."""
        states = np.unique(np.linspace(0, len(geometry) - 1, 9).astype(int))
        vertices = [self.points_in_base(self._vertices, int(state)) for state in states]
        arrows = geometry.tool[states, None] + np.array([[0.0] * 3, *np.eye(3)]) * (
            2.0 * TOOL_AXES_LENGTH * self.size
        )
        return np.concatenate([*vertices, geometry.tool, arrows.reshape(-1, 3)])

    def include_points(self, points: np.ndarray) -> None:
        """Extend fitted views and the floor to further points (N, 3)."""
        self.points = np.concatenate([self.points, points])
        self._put_floor()

    def _put_floor(self) -> None:
        """Place the floor below all points."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        middle = 0.5 * (low + high)
        width = 1.4 * max(float(np.max((high - low)[:2])), self.size)
        floor = self.floor
        floor.width = floor.height = width
        floor.cell_size, floor.section_size = self.size / 10, self.size / 2
        floor.position = (middle[0], middle[1], low[2] - 0.02 * self.size)

    def fitted_camera(
        self, size: tuple[float, float] = DEFAULT_SIZE, away: np.ndarray | None = None
    ) -> Camera:
        """Return a camera that sees the whole machine.

        Args:
            size: width and height of the picture, pixels.
            away: direction from the machine to the camera (3,); default: direction of the first
                view.
        """
        return fitted_camera(self.points, self.away if away is None else away, size)

    def look_from(
        self, eye: np.ndarray, look_at: np.ndarray, size: tuple[float, float], fov: float
    ) -> None:
        """Arrange the labels for another camera."""
        assert self.labels is not None
        camera = Camera(eye=np.array(eye), look_at=np.array(look_at), size=size, fov=fov)
        self.labels.look_from(camera)

    @property
    def frames(self) -> dict[str, FramePose]:
        """Poses of bodies and rods in the displayed geometry, by name."""
        return self._frames

    def points_in_base(self, points: Mapping[str, np.ndarray], state: int = 0) -> np.ndarray:
        """Return points of bodies and rods in the base frame (N, 3), m.

        Args:
            points: points (k, 3) in the frame of each body or rod, by name.
            state: index of the state.
        """
        in_base = [np.zeros((0, 3))]
        for name, local in points.items():
            pose = self._frames[name].at(state)
            in_base.append(local @ pose.rotation.T + pose.position)
        return np.concatenate(in_base)

    def show(self, geometry: MachineGeometry, state: int = 0) -> None:
        """Move all nodes to one state of a geometry."""
        if geometry is not self._geometry:
            self._geometry = geometry
            self._frames = frames(self._mechanism, geometry, self._reference)
        for name, node in self._nodes.items():
            pose = self._frames[name].at(state)
            node.position = pose.position
            node.wxyz = Rotation.from_matrix(pose.rotation).as_quat(scalar_first=True)
        lengths = np.linalg.norm(np.diff(geometry.segments[state], axis=1)[:, 0], axis=-1)
        rods = dict(zip((segment.name for segment in self.shape.segments), lengths, strict=True))
        for name, node, mesh_length in self._cables:
            node.scale = (1.0, 1.0, float(rods[name]) / mesh_length)
        if self.labels is None:
            return
        self._tool.position = geometry.tool[state]
        self._tool.wxyz = Rotation.from_matrix(geometry.tool_rotation[state]).as_quat(
            scalar_first=True
        )
        for axis, origin in zip(self.shape.drives, geometry.drives[0][state], strict=True):
            text = self._texts.get(axis.name, axis.name)
            self.labels.put(f"/drives/{axis.name}", text, origin)
        self.labels.put("/tool_name", self.shape.platform, geometry.tool[state])

    def set_visible(self, is_visible: bool) -> None:
        """Show or hide the solids."""
        for node in self._nodes.values():
            node.visible = is_visible

    def arrange_labels(self, state: int = 0) -> None:
        """Move labels so that they do not cover motors or each other, for a displayed state."""
        if self.labels is not None:
            self.labels.avoid("machine", *self.obstacles(state))
            self.labels.arrange()

    def obstacles(self, state: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return points on motors and points on all solids (N, 3) at a displayed state, m."""
        motors = self.points_in_base(self._motors, state)
        return motors, self.points_in_base(self._surfaces, state)

    def draw_path(self, points: np.ndarray, colors: Sequence[str] | None = None) -> None:
        """Draw the tool's path (N, 3), each segment in the color of its first sample (N,)."""
        if len(points) > 1:
            segments = np.stack([points[:-1], points[1:]], axis=1)
            shades = np.array(
                [rgb(color) for color in colors or (RESIDUAL,) * len(points)], dtype=np.uint8
            )
            segment_shades = np.repeat(shades[:-1, None], 2, axis=1)
            self._scene.add_line_segments(
                "/path",
                points=segments,
                colors=segment_shades,
                thickness=PATH_THICKNESS * self.size,
            )

    def color_rods(self, colors: Mapping[str, str]) -> None:
        """Color rods by name; other rods keep their own color."""
        for (name, own_color), node in self._mesh_nodes.items():
            rod = name.removesuffix(".lower").removesuffix(".upper")
            is_colored = rod in colors and own_color != ROLE_COLORS["joint"]
            node.color = rgb(colors[rod] if is_colored else own_color)

    def name_drives(self, texts: Mapping[str, str]) -> None:
        """Change the labels of actuators by name; other actuators show their names."""
        self._texts = dict(texts)
        if self.labels is not None:
            for axis in self.shape.drives:
                label = self.labels.labels[f"/drives/{axis.name}"]
                self.labels.put(
                    f"/drives/{axis.name}", texts.get(axis.name, axis.name), label.point
                )

    def name_machine(self, node: str, name: str, points: np.ndarray) -> None:
        """Write the name of a machine above its points (N, 3)."""
        assert self.labels is not None
        low, high = points.min(axis=0), points.max(axis=0)
        top = np.array([*(0.5 * (low + high))[:2], high[2]])
        self.labels.put(f"/names/{node}", name, top)

    def show_inside(self, is_shown: bool) -> None:
        """Make solids transparent, so that objects inside them are visible, or opaque again."""
        for node in self._mesh_nodes.values():
            node.opacity = TRANSPARENT_OPACITY if is_shown else None

    def show_tool_axes(self, is_shown: bool) -> None:
        """Show or hide the axes of the tool."""
        self._tool.visible = is_shown


def _by_body(points: Mapping[tuple[str, str], np.ndarray]) -> dict[str, np.ndarray]:
    """Return the points of each body, from points by body and color."""
    bodies: dict[str, list[np.ndarray]] = {}
    for (body, _), body_points in points.items():
        bodies.setdefault(body, []).append(body_points)
    return {body: np.concatenate(arrays) for body, arrays in bodies.items()}


def _surfaces(meshes: Mapping[tuple[str, str], Mesh], spacing: float) -> dict[str, np.ndarray]:
    """Return points on the surfaces of meshes by body; see `surface_points`."""
    return _by_body(
        {key: surface_points(mesh.vertices, mesh.faces, spacing) for key, mesh in meshes.items()}
    )


def node_path(name: str, top: str = "/machine") -> str:
    """Return the path of the node of a body or rod."""
    return f"{top}/{name.replace('/', '_')}"


def rgb(color: str) -> tuple[int, int, int]:
    """Return a color as three numbers from 0 to 255."""
    red, green, blue = (round(255 * channel) for channel in to_rgb(color))
    return red, green, blue
