"""Triangle meshes of solids, created with trimesh, for displays and for formats with meshes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.mechanism.poses import rotation_matrix
from tauloop.mechanism.solids.solid import Mesh, Solid

#: Number of vertices of round sections.
DEFAULT_SECTIONS = 24
#: Maximum size of a mesh file in bytes.
MAX_FILE_BYTES = 200_000_000
#: Maximum number of triangles of a mesh file.
MAX_FACES = 2_000_000


def triangles(solid: Solid, sections: int = DEFAULT_SECTIONS) -> Mesh:
    """Return a solid as triangles in the frame of its body.

    Args:
        solid: any solid.
        sections: number of vertices of round sections.

    Raises:
        EngineError: trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    shape = _shape(solid, sections)
    rotated = np.asarray(shape.vertices) @ rotation_matrix(solid.turns).T
    return Mesh(vertices=rotated + np.array(solid.position), faces=np.asarray(shape.faces))


def _shape(solid: Solid, sections: int) -> Any:
    """Return the solid in its own frame, as an object with vertices and faces."""
    if isinstance(solid.mesh, Mesh):
        return Mesh(vertices=solid.mesh.vertices * np.array(solid.size), faces=solid.mesh.faces)
    creation = _trimesh().creation
    if solid.shape == "box":
        return creation.box(extents=solid.size)
    if solid.shape == "cylinder":
        return creation.cylinder(radius=solid.size[0], height=solid.size[1], sections=sections)
    if solid.shape == "capsule":
        capsule = creation.capsule(
            radius=solid.size[0], height=solid.size[1], count=(sections, sections // 2)
        )
        capsule.vertices[:, 2] -= capsule.bounds[:, 2].mean()
        return capsule
    if solid.shape == "sphere":
        return creation.icosphere(
            subdivisions=2 if sections >= DEFAULT_SECTIONS else 1, radius=solid.size[0]
        )
    return _read(Path(str(solid.mesh)), np.array(solid.size))


def _read(path: Path, scale: np.ndarray) -> Mesh:
    """Return the triangles of a file."""
    trimesh = _trimesh()
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_FILE_BYTES:
            raise InputError.of(
                str(path),
                f"is {n_bytes / 1e6:.0f} MB; the limit is {MAX_FILE_BYTES / 1e6:.0f} MB",
                "simplify the mesh",
            )
        loaded = trimesh.load_mesh(path)
        loaded = loaded.to_mesh() if hasattr(loaded, "to_mesh") else loaded
        vertices = np.asarray(loaded.vertices, dtype=float)
        faces = np.asarray(loaded.faces, dtype=np.int64)
    except InputError:
        raise
    except Exception as error:
        # the readers of trimesh raise errors of any class
        raise InputError.of(
            str(path), f"is not a readable mesh ({error})", "check the file"
        ) from error
    if not len(faces) or not np.isfinite(vertices).all() or len(faces) > MAX_FACES:
        raise InputError.of(
            str(path),
            f"has {len(faces)} usable triangles",
            f"give a mesh with 1 to {MAX_FACES} triangles and finite vertices",
        )
    is_mirrored = np.prod(scale) < 0
    return Mesh(vertices=vertices * scale, faces=faces[:, ::-1] if is_mirrored else faces)


def _trimesh() -> Any:
    """Return the module trimesh.

    Raises:
        EngineError: trimesh is not installed.
    """
    try:
        return importlib.import_module("trimesh")
    except ImportError as error:
        raise EngineError.of(
            "trimesh",
            f"cannot be imported ({error})",
            "install it with pip install 'tauloop[view]'",
        ) from error
