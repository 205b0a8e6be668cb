"""The scene: a machine's solids, the names of its actuators and its tool as nodes of a viser server, at any state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from tauloop.display.palette import RESIDUAL
from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.mechanism.solid import COLOURS
from tauloop.model import Model

#: Length of the tool's axes, and thickness of its path, as shares of the machine's largest
#: dimension.
TOOL, PATH = 0.07, 0.003
#: From where the eye looks at first, rad of its field of view, and how far it keeps from where the
#: machine just fits.
EYE, FIELD, FAR = (0.42, -0.89, 0.18), 0.8, 1.1
#: Width and height of a letter in the first picture, at a distance of one; and where the middle of
#: a name lies whose corner is at its place.
LETTER = (0.013, 0.032)
CORNERS = {
    "top-left": (1, -1),
    "bottom-left": (1, 1),
    "top-right": (-1, -1),
    "bottom-right": (-1, 1),
}
#: Colour of a machine beside another, and how much of what is behind it it hides.
GHOST, SEEN_THROUGH = "#7a4f9a", 0.38
#: Strength of the light from all around, and what the floor throws back (of 255). It is no picture
#: of surroundings: until one is unpacked, half a minute without a graphics card, viser keeps the
#: machine all but white.
LIGHT, THROWN_BACK = 3.0, 140


class MachineScene:
    """Nodes of a machine, by name: ``/machine/BODY`` (and rods), ``/drives/NAME``, ``/tool``, ``/path``.

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
            ghost: name of a see-through machine beside another, which has no names, no floor, and
                looks from nowhere.

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
            (name, colour): self._scene.add_mesh_simple(
                f"{node_path(name, top)}/{colour[1:]}",
                vertices=mesh.vertices.astype(np.float32),
                faces=mesh.faces.astype(np.uint32),
                color=rgb(GHOST if ghost else colour),
                opacity=SEEN_THROUGH if ghost else None,
                flat_shading=True,
                cast_shadow=not ghost,
            )
            for (name, colour), mesh in meshes.items()
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
        """Names, the tool's axes, the floor, light, and from where it is seen at first."""
        self._tool = self._scene.add_frame(
            "/tool",
            axes_length=TOOL * self.size,
            axes_radius=0.06 * TOOL * self.size,
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
        self._scene.add_light_hemisphere("/light", ground_color=(THROWN_BACK,) * 3, intensity=LIGHT)
        camera = server.initial_camera
        camera.fov, camera.look_at = FIELD, tuple(middle)
        way = np.array(EYE)
        if len(geometry.plane) == 2:
            across = 3 - sum(geometry.plane)
            way = np.eye(3)[across] * (1.0 if across == 2 else -1.0) + [0.0, -0.02, 0.02]
        far = FAR * 0.5 * max(float(np.linalg.norm(high - low)), self.size) / np.sin(0.5 * FIELD)
        eye = middle + far * way / np.linalg.norm(way)
        camera.position = tuple(eye)
        names = [axis.name for axis in self.shape.drives]
        at = corners(names, geometry.drives[0][0], eye, middle)
        self._names = {
            name: self._scene.add_label(f"/drives/{name}", name, anchor=corner)
            for name, corner in zip(names, at, strict=True)
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

    def draw_path(self, points: np.ndarray, colours: Sequence[str] | None = None) -> None:
        """Draw the tool's path (N, 3), each piece in the colour of its first sample (N,)."""
        if len(points) > 1:
            ends = np.stack([points[:-1], points[1:]], axis=1)
            shades = np.array(
                [rgb(colour) for colour in colours or (RESIDUAL,) * len(points)], dtype=np.uint8
            )
            ends_shades = np.repeat(shades[:-1, None], 2, axis=1)
            self._scene.add_line_segments(
                "/path", points=ends, colors=ends_shades, thickness=PATH * self.size
            )

    def colour_rods(self, colours: Mapping[str, str]) -> None:
        """Give rods other colours, by name; the rest have their own."""
        for (name, own), node in self._drawn.items():
            rod = name.removesuffix(".lower").removesuffix(".upper")
            node.color = rgb(colours[rod] if rod in colours and own != COLOURS["joint"] else own)

    def name_drives(self, texts: Mapping[str, str]) -> None:
        """Write other words at actuators, by name; the rest have their names."""
        for name, node in self._names.items():
            node.text = texts.get(name, name)


def corners(
    names: Sequence[str], places: np.ndarray, eye: np.ndarray, middle: np.ndarray
) -> list[Any]:
    """Which corner of each name lies at its place, so that it covers as little of the names before it as can be.

    Args:
        names: N texts.
        places: of them (N, 3), m.
        eye: the camera (3,), m.
        middle: what it looks at (3,), m.
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
    """The node of a body or rod."""
    return f"{top}/{name.replace('/', '_')}"


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour in numbers from 0 to 255."""
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue
