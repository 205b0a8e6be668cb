"""Drawings of a machine's solids with Matplotlib: shaded triangles in space or in a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model

#: Direction to the light.
LIGHT = np.array([0.35, -0.6, 0.72])
#: Brightness of surfaces that face away from the light.
SHADE = 0.55
#: Number of vertices of the polygons that stand for round sections in pictures.
ROUND_CORNERS = 10


class SolidDrawing:
    """The solids of a machine at N states.

    Attributes:
        geometry: the machine at these states.
    """

    def __init__(self, model: Model, geometry: MachineGeometry) -> None:
        """Create the solids.

        Raises:
            EngineError: trimesh is not installed.
            InputError: the file of a mesh is missing, damaged or too large.
        """
        self.geometry = geometry
        self._meshes = parts(machine_solids(model), ROUND_CORNERS)
        self._poses = frames(model.mechanism, geometry, machine_geometry(model, model.assembly.q))

    def draw(self, axes: Any, state: int, plane: tuple[int, ...] = (0, 1, 2)) -> None:
        """Draw a state into Matplotlib axes: in space, or projected onto two axes of the base."""
        from matplotlib.collections import PolyCollection
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        triangles, colors = self._shaded_triangles(state)
        style: dict[str, Any] = {"linewidths": 0.1}
        if len(plane) == 3:
            axes.add_collection3d(
                Poly3DCollection(triangles, facecolors=colors, edgecolors=colors, **style)
            )
            return
        # Near triangles are drawn last, over those behind them.
        view_axis = 3 - sum(plane)
        sign = -1.0 if view_axis == 1 else 1.0  # the front view looks along +y
        order = np.argsort(sign * triangles[:, :, view_axis].mean(axis=1), kind="stable")
        projected = triangles[order][:, :, list(plane)]
        colors = colors[order]
        axes.add_collection(
            PolyCollection(list(projected), facecolors=colors, edgecolors=colors, **style),
            autolim=False,
        )

    def extent(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the minima and maxima (3,), m, of the solids at a state and of the geometry."""
        points = self._shaded_triangles(state)[0].reshape(-1, 3)
        low, high = self.geometry.extent
        return np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))

    def _shaded_triangles(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Return triangles (f, 3, 3) and their colors (f, 3), shaded by the light's direction."""
        from matplotlib.colors import to_rgb

        meshes, colors = [], []
        for (body, color), mesh in self._meshes.items():
            pose = self._poses[body].at(state)
            meshes.append((mesh.vertices @ pose.rotation.T + pose.position)[mesh.faces])
            colors.append(np.broadcast_to(to_rgb(color), (len(mesh.faces), 3)))
        triangles = np.concatenate(meshes)
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        brightness = SHADE + (1.0 - SHADE) * np.clip(normals @ LIGHT, 0.0, 1.0)
        return triangles, brightness[:, None] * np.concatenate(colors)


def solid_drawing(model: Model, geometry: MachineGeometry) -> SolidDrawing | None:
    """Return the solids of a machine; None if trimesh is missing, so that lines are drawn."""
    from tauloop.common.errors import EngineError

    try:
        return SolidDrawing(model, geometry)
    except EngineError:
        return None
