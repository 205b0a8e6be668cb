"""Triangles as a binary STL file."""

from __future__ import annotations

import numpy as np

from tauloop.mechanism.solid import Mesh

#: One triangle: its normal, its corners, and two bytes without a meaning.
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def stl_bytes(mesh: Mesh) -> bytes:
    """Content of a binary STL file, m."""
    triangles = np.zeros(len(mesh.faces), _TRIANGLE)
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    triangles["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    triangles["corners"] = corners
    return bytes(80) + np.uint32(len(triangles)).astype("<u4").tobytes() + triangles.tobytes()
