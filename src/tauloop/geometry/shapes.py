"""Solids between points, and meshes of plates and bent tubes."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.solids.solid import Mesh, Solid, SolidShape, convex
from tauloop.mechanism.solids.visual import solid_at

#: Number of vertices of the polygon that represents a round section.
SECTION_VERTICES = 16
#: Number of vertices of the circle that rounds a corner of a plate.
ROUNDING_VERTICES = 12


def rotation_z_along(axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose z axis is along a nonzero vector (3,)."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def bar(
    body: str, ends: np.ndarray, radius: float, role: str, shape: SolidShape = "capsule"
) -> Solid:
    """Return a round bar between two different points (2, 3)."""
    axis = ends[1] - ends[0]
    size = (radius, float(np.linalg.norm(axis)))
    return solid_at(body, shape, size, ends.mean(axis=0), rotation_z_along(axis), role)


def ball(body: str, center: np.ndarray, radius: float, role: str) -> Solid:
    """Return a sphere."""
    return solid_at(body, "sphere", (radius,), center, np.eye(3), role)


def mesh(body: str, triangles: Mesh, role: str) -> Solid:
    """Return a solid of triangles in the frame of its body."""
    return Solid(body=body, shape="mesh", size=(1.0, 1.0, 1.0), role=role, mesh=triangles)


def plate(points: np.ndarray, radius: float, thickness: float) -> Mesh:
    """Return a plate through points (k, 3) in a plane, with rounded corners about them."""
    _, _, axes = np.linalg.svd(points - points.mean(axis=0))
    angles = np.linspace(0.0, 2 * np.pi, ROUNDING_VERTICES, endpoint=False)
    rim = radius * (np.cos(angles)[:, None] * axes[0] + np.sin(angles)[:, None] * axes[1])
    outline = (points[:, None] + rim).reshape(-1, 3)
    offset = 0.5 * thickness * axes[2]
    return convex(np.concatenate([outline + offset, outline - offset]))


def tube(line: np.ndarray, radius: float) -> Mesh:
    """Return a round tube with closed ends along a polyline of distinct points (k, 3)."""
    directions = np.diff(line, axis=0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    inner = directions[:-1] + directions[1:]
    tangents = np.concatenate([directions[:1], inner, directions[-1:]])
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    x = rotation_z_along(tangents[0])[:, 0]
    angles = np.linspace(0.0, 2 * np.pi, SECTION_VERTICES, endpoint=False)[:, None]
    rings = []
    for point, tangent in zip(line, tangents, strict=True):
        # parallel transport of x along the line, so that the tube is not twisted
        x = x - tangent * (x @ tangent)
        x /= np.linalg.norm(x)
        circle = np.cos(angles) * x + np.sin(angles) * np.cross(tangent, x)
        rings.append(point + radius * circle)
    count = SECTION_VERTICES
    vertex = np.arange(count)
    neighbor = (vertex + 1) % count
    last_ring = (len(line) - 1) * count
    faces = []
    for ring in range(0, last_ring, count):
        lower = np.column_stack([vertex, neighbor, neighbor + count])
        upper = np.column_stack([vertex, neighbor + count, vertex + count])
        faces += [lower + ring, upper + ring]
    # the centers of both ends are the last two vertices
    start_center = len(line) * count
    end_center = len(line) * count + 1
    start_cap = np.column_stack([np.full(count, start_center), neighbor, vertex])
    end_cap = np.column_stack(
        [np.full(count, end_center), vertex + last_ring, neighbor + last_ring]
    )
    vertices = np.concatenate([*rings, line[:1], line[-1:]])
    return Mesh(vertices=vertices, faces=np.concatenate([*faces, start_cap, end_cap]))
