"""The scene: a machine's solids, the names of its actuators and its tool as nodes of a viser server, at any state."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from scipy.spatial.transform import Rotation

from tauloop.kinematics.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model
from tauloop.report.figures import RESIDUAL
from tauloop.solids import frames, machine_solids, parts

#: Length of the tool's axes, and thickness of its path, as shares of the machine's largest dimension.
TOOL, PATH = 0.07, 0.003
#: From where the eye looks at first, rad of its field of view, and how far it keeps from where the machine just fits.
EYE, FIELD, FAR = (0.75, -1.05, 0.45), 0.8, 1.1
#: Of the light from all around: at full strength colours would be washed out.
LIGHT = 0.35


class MachineScene:
    """Nodes of a machine, by name: ``/machine/BODY`` (and rods), ``/drives/NAME``, ``/tool``, ``/path``."""

    def __init__(self, server: Any, model: Model, geometry: MachineGeometry) -> None:
        """Build the nodes.

        Args:
            server: a `viser.ViserServer`.
            model: the machine.
            geometry: the machine at its first state.

        Raises:
            EngineError: trimesh is not installed.
            InputError: the file of a mesh is missing, damaged or too large.
        """
        self._scene, self.shape, self._mechanism = server.scene, geometry.shape, model.mechanism
        self._size, self._shown = geometry.size, geometry
        self._reference = machine_geometry(model, model.assembly.q)
        self._frames = frames(self._mechanism, geometry, self._reference)
        meshes = parts(machine_solids(model))
        self._nodes = {name: self._scene.add_frame(node_path(name), show_axes=False) for name, _ in meshes}
        drawn = {
            (name, colour): self._scene.add_mesh_simple(
                f"{node_path(name)}/{colour[1:]}",
                vertices=mesh.vertices.astype(np.float32),
                faces=mesh.faces.astype(np.uint32),
                color=rgb(colour),
                flat_shading=True,
            )
            for (name, colour), mesh in meshes.items()
        }
        cables = {rod.name for rod in self._mechanism.rods if rod.tension is not None}
        reach = {key: float(np.ptp(mesh.vertices[:, 2])) for key, mesh in meshes.items()}
        self._cables = [(key[0], node, reach[key]) for key, node in drawn.items() if key[0] in cables]
        self._names = {
            axis.name: self._scene.add_label(f"/drives/{axis.name}", axis.name) for axis in self.shape.drives
        }
        self._tool = self._scene.add_frame(
            "/tool", axes_length=TOOL * self._size, axes_radius=0.06 * TOOL * self._size, origin_radius=0.0
        )
        self._scene.add_label("/tool/name", self.shape.platform)
        low, high = geometry.extent
        middle = (low + high) / 2
        self._scene.add_grid(
            "/floor",
            width=1.4 * self._size,
            height=1.4 * self._size,
            cell_size=self._size / 10,
            section_size=self._size / 2,
            position=(middle[0], middle[1], low[2] - 0.02 * self._size),
        )
        self._scene.configure_environment_map("warehouse", environment_intensity=LIGHT)
        camera = server.initial_camera
        camera.fov, camera.look_at = FIELD, tuple(middle)
        way = np.array(EYE)
        if len(geometry.plane) == 2:
            across = 3 - sum(geometry.plane)
            way = np.eye(3)[across] * (1.0 if across == 2 else -1.0) + [0.0, -0.02, 0.02]
        far = FAR * 0.5 * max(float(np.linalg.norm(high - low)), self._size) / np.sin(0.5 * FIELD)
        camera.position = tuple(middle + far * way / np.linalg.norm(way))
        self.show(geometry)

    def show(self, geometry: MachineGeometry, state: int = 0) -> None:
        """Move all nodes to one state of a geometry."""
        if geometry is not self._shown:
            self._shown, self._frames = geometry, frames(self._mechanism, geometry, self._reference)
        for name, node in self._nodes.items():
            R, p = self._frames[name]
            node.position, node.wxyz = p[state], Rotation.from_matrix(R[state]).as_quat(scalar_first=True)
        lengths = np.linalg.norm(np.diff(geometry.segments[state], axis=1)[:, 0], axis=-1)
        rods = dict(zip((segment.name for segment in self.shape.segments), lengths, strict=True))
        for name, node, reach in self._cables:
            node.scale = (1.0, 1.0, float(rods[name]) / reach)
        for axis, origin in zip(self.shape.drives, geometry.drives[0][state], strict=True):
            self._names[axis.name].position = origin
        self._tool.position = geometry.tool[state]
        self._tool.wxyz = Rotation.from_matrix(geometry.tool_rotation[state]).as_quat(scalar_first=True)

    def draw_path(self, points: np.ndarray) -> None:
        """Draw the tool's path (N, 3)."""
        if len(points) > 1:
            ends = np.stack([points[:-1], points[1:]], axis=1)
            self._scene.add_line_segments("/path", points=ends, colors=rgb(RESIDUAL), thickness=PATH * self._size)


def node_path(name: str) -> str:
    """The node of a body or rod."""
    return f"/machine/{name.replace('/', '_')}"


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour in numbers from 0 to 255."""
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue
