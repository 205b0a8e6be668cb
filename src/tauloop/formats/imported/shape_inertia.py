"""Volume, mass and inertia of solids and of compound bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tauloop.mechanism.inertia import offset_inertia
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.poses import FramePose


def solid_volume(kind: str, size: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the volume and the moments of inertia per unit mass (3,) of a solid.

    The moments are about the mass center, along the solid's axes.

    Args:
        kind: "sphere", "box", "ellipsoid", "cylinder", "capsule" or "cone".
        size: radii and half lengths, m: (r,) for a sphere; half edges or half axes (3,) for a box
            or ellipsoid; (r, half length along z) for the others. The half length of a capsule is
            that of its cylinder.
    """
    if kind == "sphere":
        (r,) = size
        return 4 / 3 * math.pi * r**3, np.full(3, 0.4 * r * r)
    if kind in ("box", "ellipsoid"):
        a2, b2, c2 = size**2
        factor, divisor = (8, 3) if kind == "box" else (4 / 3 * math.pi, 5)
        return factor * float(np.prod(size)), np.array([b2 + c2, a2 + c2, a2 + b2]) / divisor
    r, h = size
    cylinder = 2 * math.pi * r * r * h
    cylinder_transverse, cylinder_axial = r * r / 4 + h * h / 3, r * r / 2
    if kind == "cylinder":
        return cylinder, np.array([cylinder_transverse, cylinder_transverse, cylinder_axial])
    if kind == "cone":
        transverse = 3 / 20 * (r * r + h * h)  # 3/80 (2 h)^2
        return cylinder / 3, np.array([transverse, transverse, 0.3 * r * r])
    # two half balls, each with its mass center 3/8 r beyond the end of the cylinder
    balls = 4 / 3 * math.pi * r**3
    transverse = cylinder * cylinder_transverse + balls * (0.4 * r * r + h * h + 0.75 * h * r)
    axial = cylinder * cylinder_axial + balls * 0.4 * r * r
    return cylinder + balls, np.array([transverse, transverse, axial]) / (cylinder + balls)


def solid_inertia(kind: str, size: np.ndarray, mass: float, pose: FramePose) -> LinkInertia:
    """Return the inertia of a homogeneous solid with a mass (kg) at a pose, in the reference frame.

    The frame of a cone is at the middle of its height; its mass center is a quarter of the height
    below.
    """
    _, unit_moments = solid_volume(kind, size)
    center_offset = -0.5 * float(size[1]) if kind == "cone" else 0.0
    center = pose.position + pose.rotation @ np.array([0.0, 0.0, center_offset])
    return LinkInertia(
        mass=mass,
        center=center,
        about_center=pose.rotation @ np.diag(mass * unit_moments) @ pose.rotation.T,
    )


def mesh_volume(corners: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return volume, mass center (3,) and inertia per unit mass (3, 3) of a closed surface.

    The inertia is about the mass center.

    The solid is a signed sum of tetrahedra from the origin to each triangle. The second moments of
    a tetrahedron with the corners a, b, c and the volume v are v/20 (a a^T + b b^T + c c^T + s
    s^T), where s = a + b + c.

    Args:
        corners: corners of the triangles (n, 3, 3), m, counterclockwise seen from outside.
    """
    centroid = corners.mean(axis=(0, 1))
    corners = corners - centroid
    volumes = _tetrahedra(corners)
    volume = float(volumes.sum())
    center = np.einsum("i,ij->j", volumes, corners.sum(axis=1)) / (4.0 * volume)
    second_moments = _second_moments(corners, volumes) / volume - np.outer(center, center)
    return abs(volume), centroid + center, np.trace(second_moments) * np.eye(3) - second_moments


def legacy_mesh_volume(corners: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the results of `mesh_volume` as MuJoCo's mode "legacy" (its default) computes them.

    All tetrahedra count as positive, so the volume of a nonconvex solid is too large. The mass
    center is computed with tetrahedra from the centroid of the surface. Volume and inertia are
    computed with tetrahedra from the mass center.

    Args:
        corners: corners of the triangles (n, 3, 3).
    """
    areas = _areas(corners)
    centroid = np.einsum("i,ij->j", areas, corners.mean(axis=1)) / areas.sum()
    volumes = np.abs(_tetrahedra(corners - centroid))
    center = centroid + np.einsum("i,ij->j", volumes, (corners - centroid).sum(axis=1)) / (
        4.0 * volumes.sum()
    )
    volumes = np.abs(_tetrahedra(corners - center))
    volume = float(volumes.sum())
    second_moments = _second_moments(corners - center, volumes) / volume
    return volume, center, np.trace(second_moments) * np.eye(3) - second_moments


def _tetrahedra(corners: np.ndarray) -> np.ndarray:
    """Return the signed volumes (n,) of tetrahedra from the origin to triangles.

    A volume is positive if its triangle faces away from the origin.
    """
    volumes: np.ndarray = (
        np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    )
    return volumes


def _second_moments(corners: np.ndarray, volumes: np.ndarray) -> np.ndarray:
    """Return the second moments of volume (3, 3) of tetrahedra from the origin to triangles."""
    points = (*corners.transpose(1, 0, 2), corners.sum(axis=1))
    moments: np.ndarray = sum(np.einsum("i,ij,ik->jk", volumes, x, x) for x in points) / 20.0
    return moments


def _areas(corners: np.ndarray) -> np.ndarray:
    """Return the areas (n,) of triangles."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    areas: np.ndarray = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return areas


def shell_area(corners: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return area, mass center (3,) and inertia per unit mass (3, 3) of a thin shell.

    The inertia is about the mass center.

    The second moments of a triangle with the corners a, b, c and the area A are A/12 (a a^T + b b^T
    + c c^T + s s^T), s = a + b + c.

    Args:
        corners: corners of the triangles (n, 3, 3).
    """
    centroid = corners.mean(axis=(0, 1))
    corners = corners - centroid
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    areas = _areas(corners)
    area = float(areas.sum())
    center = np.einsum("i,ij->j", areas, a + b + c) / (3.0 * area)
    second_moments = sum(np.einsum("i,ij,ik->jk", areas, x, x) for x in (a, b, c, a + b + c)) / (
        12.0 * area
    )
    second_moments = second_moments - np.outer(center, center)
    return area, centroid + center, np.trace(second_moments) * np.eye(3) - second_moments


def is_closed(corners: np.ndarray) -> bool:
    """Return whether triangles (n, 3, 3) form a closed surface.

    Each edge must occur once in each direction.
    """
    points, vertex_indices = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    faces = vertex_indices.reshape(-1, 3)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    forward = edges[:, 0] * len(points) + edges[:, 1]
    backward = edges[:, 1] * len(points) + edges[:, 0]
    return len(np.unique(forward)) == len(forward) and np.array_equal(
        np.sort(forward), np.sort(backward)
    )


def summed(parts: Sequence[LinkInertia]) -> LinkInertia:
    """Return the total inertia of several parts of a body about their common mass center."""
    mass = sum(part.mass for part in parts)
    center = sum((part.mass * part.center for part in parts), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.center - center
        inertia += part.about_center + part.mass * offset_inertia(d)
    return LinkInertia(mass=mass, center=center, about_center=inertia)
