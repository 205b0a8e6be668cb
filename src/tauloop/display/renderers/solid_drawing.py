"""Drawings of a machine's solids with Matplotlib: shaded triangles in space or in a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model

#: Direction of the light, and brightness of surfaces that face away from it.
LIGHT, SHADE = np.array([0.35, -0.6, 0.72]), 0.55
#: Number of corners with which round sections are drawn in pictures.
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
        self._placed = frames(model.mechanism, geometry, machine_geometry(model, model.assembly.q))

    def draw(self, axes: Any, state: int, plane: tuple[int, ...] = (0, 1, 2)) -> None:
        """Draw a state into Matplotlib axes: in space, or projected onto two axes of the base."""
        from matplotlib.collections import PolyCollection
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        corners, colors = self._lit(state)
        style: dict[str, Any] = {"linewidths": 0.1}
        if len(plane) == 3:
            axes.add_collection3d(
                Poly3DCollection(corners, facecolors=colors, edgecolors=colors, **style)
            )
            return
        along = 3 - sum(plane)
        towards = -1.0 if along == 1 else 1.0  # the front view looks along +y
        order = np.argsort(towards * corners[:, :, along].mean(axis=1), kind="stable")
        seen = corners[order][:, :, list(plane)]
        colors = colors[order]
        axes.add_collection(
            PolyCollection(list(seen), facecolors=colors, edgecolors=colors, **style),
            autolim=False,
        )

    def extent(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the minima and maxima (3,), m, of the solids at a state and of the geometry."""
        points = self._lit(state)[0].reshape(-1, 3)
        low, high = self.geometry.extent
        return np.minimum(low, points.min(axis=0)), np.maximum(high, points.max(axis=0))

    def _lit(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Return triangles (f, 3, 3) and their colors (f, 3), shaded by the light's direction."""
        from matplotlib.colors import to_rgb

        corners, colors = [], []
        for (body, color), mesh in self._meshes.items():
            pose = self._placed[body].at(state)
            corners.append((mesh.vertices @ pose.rotation.T + pose.position)[mesh.faces])
            colors.append(np.broadcast_to(to_rgb(color), (len(mesh.faces), 3)))
        triangles = np.concatenate(corners)
        normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        bright = SHADE + (1.0 - SHADE) * np.clip(normals @ LIGHT, 0.0, 1.0)
        return triangles, bright[:, None] * np.concatenate(colors)


def solid_drawing(model: Model, geometry: MachineGeometry) -> SolidDrawing | None:
    """Return the solids of a machine; None if trimesh is missing, so that lines are drawn."""
    from tauloop.common.errors import EngineError

    try:
        return SolidDrawing(model, geometry)
    except EngineError:
        return None
