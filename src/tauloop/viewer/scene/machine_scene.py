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
from tauloop.mechanism.solids.solid import ROLE_COLORS
from tauloop.model import Model

#: Length of the tool's axes, and thickness of its path, over the machine's largest dimension.
TOOL_AXES, PATH_THICKNESS = 0.07, 0.003
#: The first view: direction of the camera, its field of view, rad, and its distance over the
#: distance at which the machine just fits.
CAMERA_DIRECTION, FIELD_OF_VIEW, DISTANCE_RATIO = (0.42, -0.89, 0.18), 0.8, 1.1
#: Width and height of a letter in the first picture, at unit distance.
LETTER = (0.013, 0.032)
#: Direction from a name's anchor to its middle, by the corner that is the anchor.
CORNERS = {
    "top-left": (1, -1),
    "bottom-left": (1, 1),
    "top-right": (-1, -1),
    "bottom-right": (-1, 1),
}
#: Color and opacity of a second, transparent machine.
GHOST_COLOR, GHOST_OPACITY = "#7a4f9a", 0.38
#: Strength of the ambient light, and light reflected by the floor (of 255). An environment map is
#: not used: viser needs half a minute to unpack it without a graphics card, and until then the
#: machine is almost white.
LIGHT_INTENSITY, FLOOR_LIGHT = 3.0, 140


class MachineScene:
    """Nodes of a machine: ``/machine/BODY`` (and rods), ``/drives/NAME``, ``/tool``, ``/path``.

    Attributes:
        size: the machine's largest dimension, m.
    """

    def __init__(
        self, server: Any, model: Model, geometry: MachineGeometry, *, ghost: str = ""
    ) -> None:
        """Build the nodes.

        Args:
            server: a `viser.ViserServer`.
            model: the machine.
            geometry: the machine at its first state.
            ghost: name of a second, transparent machine, which has no names, no floor and no
                camera; empty for the first machine.

        Raises:
            EngineError: trimesh is not installed.
            InputError: the file of a mesh is missing, damaged or too large.
        """
        self._scene, self.shape, self._mechanism = server.scene, geometry.shape, model.mechanism
        self.size, self._shown = geometry.size, geometry
        self._reference = machine_geometry(model, model.assembly.q)
        self._frames = frames(self._mechanism, geometry, self._reference)
        meshes = parts(machine_solids(model))
        top = f"/{ghost or 'machine'}"
        self._nodes = {
            name: self._scene.add_frame(node_path(name, top), show_axes=False) for name, _ in meshes
        }
        self._drawn = {
            (name, color): self._scene.add_mesh_simple(
                f"{node_path(name, top)}/{color[1:]}",
                vertices=mesh.vertices.astype(np.float32),
                faces=mesh.faces.astype(np.uint32),
                color=rgb(GHOST_COLOR if ghost else color),
                opacity=GHOST_OPACITY if ghost else None,
                flat_shading=True,
                cast_shadow=not ghost,
            )
            for (name, color), mesh in meshes.items()
        }
        cables = {rod.name for rod in self._mechanism.rods if rod.tension is not None}
        reach = {key: float(np.ptp(mesh.vertices[:, 2])) for key, mesh in meshes.items()}
        self._cables = [
            (key[0], node, reach[key]) for key, node in self._drawn.items() if key[0] in cables
        ]
        self._names: dict[str, Any] = {}
        self._tool: Any = None
        if not ghost:
            self._furnish(server, geometry)
        self.show(geometry)

    def _furnish(self, server: Any, geometry: MachineGeometry) -> None:
        """Add names, the tool's axes, the floor, light, and the first camera."""
        self._tool = self._scene.add_frame(
            "/tool",
            axes_length=TOOL_AXES * self.size,
            axes_radius=0.06 * TOOL_AXES * self.size,
            origin_radius=0.0,
        )
        self._scene.add_label("/tool/name", self.shape.platform)
        low, high = geometry.extent
        middle = (low + high) / 2
        self._scene.add_grid(
            "/floor",
            width=1.4 * self.size,
            height=1.4 * self.size,
            cell_size=self.size / 10,
            section_size=self.size / 2,
            position=(middle[0], middle[1], low[2] - 0.02 * self.size),
        )
        self._scene.configure_environment_map(None)
        self._scene.add_light_hemisphere(
            "/light", ground_color=(FLOOR_LIGHT,) * 3, intensity=LIGHT_INTENSITY
        )
        camera = server.initial_camera
        camera.fov, camera.look_at = FIELD_OF_VIEW, tuple(middle)
        direction = np.array(CAMERA_DIRECTION)
        if len(geometry.plane) == 2:
            across = 3 - sum(geometry.plane)
            direction = np.eye(3)[across] * (1.0 if across == 2 else -1.0) + [0.0, -0.02, 0.02]
        half_size = 0.5 * max(float(np.linalg.norm(high - low)), self.size)
        distance = DISTANCE_RATIO * half_size / np.sin(0.5 * FIELD_OF_VIEW)
        eye = middle + distance * direction / np.linalg.norm(direction)
        camera.position = tuple(eye)
        names = [axis.name for axis in self.shape.drives]
        anchors = corners(names, geometry.drives[0][0], eye, middle)
        self._names = {
            name: self._scene.add_label(f"/drives/{name}", name, anchor=corner)
            for name, corner in zip(names, anchors, strict=True)
        }

    def show(self, geometry: MachineGeometry, state: int = 0) -> None:
        """Move all nodes to one state of a geometry."""
        if geometry is not self._shown:
            self._shown, self._frames = geometry, frames(self._mechanism, geometry, self._reference)
        for name, node in self._nodes.items():
            pose = self._frames[name].at(state)
            node.position = pose.position
            node.wxyz = Rotation.from_matrix(pose.rotation).as_quat(scalar_first=True)
        lengths = np.linalg.norm(np.diff(geometry.segments[state], axis=1)[:, 0], axis=-1)
        rods = dict(zip((segment.name for segment in self.shape.segments), lengths, strict=True))
        for name, node, reach in self._cables:
            node.scale = (1.0, 1.0, float(rods[name]) / reach)
        if self._tool is None:
            return
        for axis, origin in zip(self.shape.drives, geometry.drives[0][state], strict=True):
            self._names[axis.name].position = origin
        self._tool.position = geometry.tool[state]
        self._tool.wxyz = Rotation.from_matrix(geometry.tool_rotation[state]).as_quat(
            scalar_first=True
        )

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
        """Color rods by name; the others keep their own color."""
        for (name, own_color), node in self._drawn.items():
            rod = name.removesuffix(".lower").removesuffix(".upper")
            is_colored = rod in colors and own_color != ROLE_COLORS["joint"]
            node.color = rgb(colors[rod] if is_colored else own_color)

    def name_drives(self, texts: Mapping[str, str]) -> None:
        """Change the labels of actuators by name; the others show their names."""
        for name, node in self._names.items():
            node.text = texts.get(name, name)


def corners(
    names: Sequence[str], places: np.ndarray, eye: np.ndarray, middle: np.ndarray
) -> list[Any]:
    """Return which corner of each label is placed at its anchor, so that labels overlap less.

    Args:
        names: N texts.
        places: their positions (N, 3), m.
        eye: position of the camera (3,), m.
        middle: point that it looks at (3,), m.
    """
    aside = np.cross([0.0, 0.0, 1.0], eye - middle)
    axes = np.array([aside, np.cross(eye - middle, aside), middle - eye])
    seen = (places - eye) @ (axes / np.linalg.norm(axes, axis=1, keepdims=True)).T
    middles, halves, chosen = np.empty((0, 2)), np.empty((0, 2)), []
    for name, place in zip(names, seen[:, :2] / seen[:, 2:], strict=True):
        half = 0.5 * np.array([LETTER[0] * len(name), LETTER[1]])
        options = place + half * list(CORNERS.values())
        common = (
            np.clip(half + halves - np.abs(options[:, None] - middles), 0.0, None)
            .prod(axis=2)
            .sum(axis=1)
        )
        best = int(np.argmin(common))
        chosen.append(list(CORNERS)[best])
        middles, halves = np.vstack([middles, options[best]]), np.vstack([halves, half])
    return chosen


def node_path(name: str, top: str = "/machine") -> str:
    """Return the path of the node of a body or rod."""
    return f"{top}/{name.replace('/', '_')}"


def rgb(color: str) -> tuple[int, int, int]:
    """Return a color as three numbers from 0 to 255."""
    red, green, blue = (round(255 * channel) for channel in to_rgb(color))
    return red, green, blue
