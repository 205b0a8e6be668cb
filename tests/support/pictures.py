"""Pictures of solids by a depth buffer: what lies behind is hidden at every pixel, whatever crosses what."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

from tauloop.geometry import frames, machine_solids, parts
from tauloop.geometry.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model

#: Pixels are drawn this many times finer along each side, and averaged.
FINER = 3
#: Where the light comes from, seen from the camera (right, up, towards it), and how bright what is
#: turned away stays.
LIGHT, SHADE = np.array([-0.45, 0.65, 0.62]), 0.45
#: Paper, and the share of the picture that the machine fills.
PAPER, FILLS = np.array([1.0, 1.0, 1.0]), 0.92
#: Corners of round sections.
SECTIONS = 20


class Stage:
    """A machine before a camera that stands still: one scale for all states of a motion."""

    def __init__(
        self, model: Model, q: np.ndarray, *, elevation: float = 22.0, azimuth: float = -55.0
    ) -> None:
        """Set the camera so that all states (N, n_q) are in the picture; angles in degrees."""
        self.geometry = machine_geometry(model, q)
        home = machine_geometry(model, model.assembly.q)
        self._meshes = parts(machine_solids(model), SECTIONS)
        self._frames = frames(model.mechanism, self.geometry, home)
        lengths = {}  # of cables, over those at the reference: they are drawn as long as they are
        for i, segment in enumerate(home.shape.segments):
            if segment.kind == "rod" and model.mechanism.rod(segment.name).tension is not None:
                now, then = (
                    np.linalg.norm(np.diff(x.segments[:, i], axis=1)[:, 0], axis=1)
                    for x in (self.geometry, home)
                )
                lengths[segment.name] = now / then
        self._stretch = lengths
        if (view := flat_view(home)) is not None:
            elevation, azimuth = view
        e, a = np.radians([elevation, azimuth])
        towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        right = np.array([-np.sin(a), np.cos(a), 0.0])
        self._camera = np.stack([right, np.cross(towards, right), towards])
        seen = np.concatenate(
            [self._triangles(k)[0].reshape(-1, 3) for k in range(0, len(q), max(len(q) // 12, 1))]
        )
        self._low, self._high = seen[:, :2].min(axis=0), seen[:, :2].max(axis=0)

    def _triangles(self, state: int) -> tuple[np.ndarray, np.ndarray]:
        """Corners (f, 3, 3) in camera axes, and colours (f, 3)."""
        corners, colors = [], []
        for (body, colour), mesh in self._meshes.items():
            pose = self._frames[body].at(state)
            R, p = pose.rotation, pose.position
            longer = self._stretch[body][state] if body in self._stretch else 1.0
            corners.append(
                ((mesh.vertices * [1.0, 1.0, longer] @ R.T + p) @ self._camera.T)[mesh.faces]
            )
            colors.append(np.broadcast_to(to_rgb(colour), (len(mesh.faces), 3)))
        return np.concatenate(corners), np.concatenate(colors)

    def picture(self, state: int, width: int, height: int) -> np.ndarray:
        """Pixels (height, width, 3), 0 to 255, of a state."""
        corners, colors = self._triangles(state)
        w, h = width * FINER, height * FINER
        scale = FILLS * min(np.array([w, h]) / (self._high - self._low))
        xy = (corners[..., :2] - (self._low + self._high) / 2) * scale * [1.0, -1.0] + [
            w / 2,
            h / 2,
        ]
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        normal *= np.where(normal[:, 2:] < 0.0, -1.0, 1.0)
        shine = np.clip(normal @ (LIGHT / np.linalg.norm(LIGHT)), 0.0, 1.0)
        colors = np.clip(
            colors * (SHADE + (1.0 - SHADE) * shine)[:, None] + 0.18 * shine[:, None] ** 24,
            0.0,
            1.0,
        )
        depth, image = np.full((h, w), -np.inf), np.broadcast_to(PAPER, (h, w, 3)).copy()
        low = np.clip(np.floor(xy.min(axis=1)).astype(int), 0, [w - 1, h - 1])
        high = np.clip(np.ceil(xy.max(axis=1)).astype(int), 0, [w - 1, h - 1])
        (ux, uy), (vx, vy) = (xy[:, 1] - xy[:, 0]).T, (xy[:, 2] - xy[:, 0]).T
        doubled = ux * vy - uy * vx
        for k in np.flatnonzero(np.abs(doubled) > 1e-9):
            (x0, y0), (x1, y1) = low[k], high[k]
            X, Y = np.meshgrid(np.arange(x0, x1 + 1) + 0.5, np.arange(y0, y1 + 1) + 0.5)
            (ax, ay), (bx, by), (cx, cy) = xy[k]
            u = ((bx - X) * (cy - Y) - (by - Y) * (cx - X)) / doubled[k]
            v = ((cx - X) * (ay - Y) - (cy - Y) * (ax - X)) / doubled[k]
            z = corners[k, :, 2] @ np.stack([u, v, 1.0 - u - v]).reshape(3, -1)
            z = z.reshape(X.shape)
            block = depth[y0 : y1 + 1, x0 : x1 + 1]
            seen = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (z > block)
            block[seen] = z[seen]
            image[y0 : y1 + 1, x0 : x1 + 1][seen] = colors[k]
        small = image.reshape(height, FINER, width, FINER, 3).mean(axis=(1, 3))
        return np.asarray(np.round(255.0 * small), dtype=np.uint8)


def flat_view(geometry: MachineGeometry) -> tuple[float, float] | None:
    """Elevation and azimuth (deg) for a machine in a plane: nearly at right angles to it; None in space."""
    return {(0, 1): (68.0, -80.0), (0, 2): (14.0, -72.0), (1, 2): (14.0, 18.0)}.get(geometry.plane)
