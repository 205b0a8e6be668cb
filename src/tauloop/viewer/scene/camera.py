"""Cameras that fit a machine into a picture, and the projection of points into the picture."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass

#: Direction from the machine to the camera in the first view.
CAMERA_DIRECTION = (0.42, -0.89, 0.18)
#: Vertical field of view, rad.
FIELD_OF_VIEW = 0.8
#: Horizontal and vertical margin for labels on each side of a fitted view, pixels.
MARGIN_PIXELS = np.array([80.0, 48.0])
#: Largest margin on each side, as a fraction of the picture.
MAX_MARGIN = 0.18
#: Size of the picture before a page has reported its own, pixels.
DEFAULT_SIZE = (960.0, 800.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """A pinhole camera, with z upwards in the picture.

    Attributes:
        eye: position of the camera (3,), m.
        look_at: point in the middle of the picture (3,), m.
        size: width and height of the picture, pixels.
        fov: vertical field of view, rad.
    """

    eye: np.ndarray
    look_at: np.ndarray
    size: tuple[float, float] = DEFAULT_SIZE
    fov: float = FIELD_OF_VIEW

    @property
    def axes(self) -> np.ndarray:
        """Directions to the right, upwards and forwards in the picture (3, 3), one per row."""
        return view_axes(self.look_at - self.eye)

    @property
    def focal_length(self) -> float:
        """Distance of the picture plane from the camera, pixels."""
        return 0.5 * self.size[1] / float(np.tan(0.5 * self.fov))

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Return the projections (N, 2) of points (N, 3): pixels right and up from the middle."""
        in_camera_frame = (points - self.eye) @ self.axes.T
        depth = np.maximum(in_camera_frame[:, 2:], 1e-9)
        return np.asarray(self.focal_length * in_camera_frame[:, :2] / depth)

    def shifted(self, point: np.ndarray, pixels: np.ndarray) -> np.ndarray:
        """Return a point (3,) after a displacement by pixels (2,) parallel to the picture."""
        axes = self.axes
        depth = max(float((point - self.eye) @ axes[2]), 1e-9)
        return np.asarray(point + depth / self.focal_length * (pixels @ axes[:2]))


def view_axes(forwards: np.ndarray) -> np.ndarray:
    """Return the directions right, up and forwards (3, 3) of a camera that looks forwards (3,)."""
    forwards = forwards / np.linalg.norm(forwards)
    right = np.cross(forwards, [0.0, 0.0, 1.0])
    if np.linalg.norm(right) < 1e-6:  # if the camera looks along z, x is to the right
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return np.array([right, np.cross(right, forwards), forwards])


def fitted_camera(
    points: np.ndarray,
    away: np.ndarray,
    size: tuple[float, float] = DEFAULT_SIZE,
    fov: float = FIELD_OF_VIEW,
) -> Camera:
    """Return the nearest camera in a direction that sees all points, with margins for labels.

    A point with coordinates x to the right and z forwards is inside the picture if
    |x - c| <= t (z + d), where t is the tangent of half the angle of view. The largest values of
    x - t z and -x - t z give the position c and the distance d of the camera. The vertical
    direction is treated in the same way.

    Args:
        points: points of the machine (N, 3), m.
        away: direction from the machine to the camera (3,).
        size: width and height of the picture, pixels.
        fov: vertical field of view, rad.
    """
    axes = view_axes(-np.asarray(away, dtype=float))
    x, y, z = axes @ points.T
    pixels = np.array(size)
    margins = np.minimum(MARGIN_PIXELS / pixels, MAX_MARGIN)
    half_angles = np.tan(0.5 * fov) * pixels / pixels[1]
    centers = []
    distances = []
    for values, tangent in zip((x, y), half_angles * (1.0 - 2.0 * margins), strict=True):
        upper = (values - tangent * z).max()
        lower = (-values - tangent * z).max()
        centers.append(0.5 * (upper - lower))
        distances.append(0.5 * (upper + lower) / tangent)
    nearest = 0.05 * float(np.ptp(points, axis=0).max()) or 1.0
    distance = max(*distances, nearest - float(z.min()))
    middle = 0.5 * float(z.min() + z.max())
    origin = centers[0] * axes[0] + centers[1] * axes[1]
    return Camera(
        eye=origin - distance * axes[2], look_at=origin + middle * axes[2], size=size, fov=fov
    )
