"""Solids between points, and meshes of plates and bent tubes."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.solid import Mesh, Solid, SolidShape, convex
from tauloop.mechanism.visual import solid_at

#: Number of corners of a round section, and of the rounding of a plate's corner.
SECTION, CORNER = 16, 12


def about(axis: np.ndarray) -> np.ndarray:
    """Return a rotation (3, 3) whose z is along a vector (3,) with some length."""
    z = axis / np.linalg.norm(axis)
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def bar(
    body: str, ends: np.ndarray, radius: float, role: str, shape: SolidShape = "capsule"
) -> Solid:
    """Return a round bar between two different points (2, 3)."""
    way = ends[1] - ends[0]
    return solid_at(
        body, shape, (radius, float(np.linalg.norm(way))), ends.mean(axis=0), about(way), role
    )


def ball(body: str, centre: np.ndarray, radius: float, role: str) -> Solid:
    """Return a sphere."""
    return solid_at(body, "sphere", (radius,), centre, np.eye(3), role)


def mesh(body: str, triangles: Mesh, role: str) -> Solid:
    """Return a solid of triangles in the frame of its body."""
    return Solid(body=body, shape="mesh", size=(1.0, 1.0, 1.0), role=role, mesh=triangles)


def plate(points: np.ndarray, radius: float, thickness: float) -> Mesh:
    """Return a plate through points (k, 3) that lie in a plane, with round corners about them."""
    middle = points.mean(axis=0)
    _, _, axes = np.linalg.svd(points - middle)
    angles = np.linspace(0.0, 2 * np.pi, CORNER, endpoint=False)
    rim = radius * (np.cos(angles)[:, None] * axes[0] + np.sin(angles)[:, None] * axes[1])
    outline = (points[:, None] + rim).reshape(-1, 3)
    return convex(
        np.concatenate([outline + 0.5 * thickness * axes[2], outline - 0.5 * thickness * axes[2]])
    )


def tube(line: np.ndarray, radius: float) -> Mesh:
    """Return a closed round tube along a line of different points (k, 3)."""
    ways = np.diff(line, axis=0)
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    tangents = np.concatenate([ways[:1], ways[:-1] + ways[1:], ways[-1:]])
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    x = about(tangents[0])[:, 0]
    angles = np.linspace(0.0, 2 * np.pi, SECTION, endpoint=False)
    rings = []
    for point, tangent in zip(line, tangents, strict=True):
        x = x - tangent * (x @ tangent)  # transported without a twist
        x /= np.linalg.norm(x)
        rings.append(
            point
            + radius
            * (np.cos(angles)[:, None] * x + np.sin(angles)[:, None] * np.cross(tangent, x))
        )
    last = len(line) - 1
    around = np.arange(SECTION)
    beside = (around + 1) % SECTION
    faces = [
        part
        for ring in range(last)
        for part in (
            np.column_stack([around, beside, beside + SECTION]) + ring * SECTION,
            np.column_stack([around, beside + SECTION, around + SECTION]) + ring * SECTION,
        )
    ]
    first, end = (last + 1) * SECTION, (last + 1) * SECTION + 1
    faces.append(np.column_stack([np.full(SECTION, first), beside, around]))
    end_ring = last * SECTION
    faces.append(np.column_stack([np.full(SECTION, end), around + end_ring, beside + end_ring]))
    return Mesh(vertices=np.concatenate([*rings, line[:1], line[-1:]]), faces=np.concatenate(faces))
