"""Solids as triangle meshes, by trimesh, for screens and for formats with meshes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import EngineError, InputError
from tauloop.mechanism.poses import rotation_matrix
from tauloop.mechanism.solid import Mesh, Solid

#: Number of corners of round sections.
SECTIONS = 24
#: Largest number of bytes and triangles of a mesh file.
LARGEST_FILE, MOST_FACES = 200_000_000, 2_000_000


def triangles(solid: Solid, sections: int = SECTIONS) -> Mesh:
    """Return a solid as triangles in the frame of its body.

    Args:
        solid: any solid.
        sections: corners of round sections.

    Raises:
        EngineError: trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    shape = _shape(solid, sections)
    vertices = np.asarray(shape.vertices) @ rotation_matrix(solid.turns).T + np.array(
        solid.position
    )
    return Mesh(vertices=vertices, faces=np.asarray(shape.faces))


def _shape(solid: Solid, sections: int) -> Any:
    """Return the solid in its own frame, as any object with vertices and faces."""
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
            subdivisions=2 if sections >= SECTIONS else 1, radius=solid.size[0]
        )
    return _read(Path(str(solid.mesh)), np.array(solid.size))


def _read(path: Path, scale: np.ndarray) -> Mesh:
    """Return the triangles of a file."""
    trimesh = _trimesh()
    try:
        if path.stat().st_size > LARGEST_FILE:
            what = f"{path.stat().st_size / 1e6:.0f} MB are more than {LARGEST_FILE / 1e6:.0f} MB"
            raise InputError.of(str(path), what, "simplify the mesh")
        read = trimesh.load_mesh(path)
        read = read.to_mesh() if hasattr(read, "to_mesh") else read
        vertices, faces = (
            np.asarray(read.vertices, dtype=float),
            np.asarray(read.faces, dtype=np.int64),
        )
    except InputError:
        raise
    except Exception as error:  # trimesh passes all errors of its readers on
        raise InputError.of(
            str(path), f"is no mesh that can be read ({error})", "check the file"
        ) from error
    if not len(faces) or not np.isfinite(vertices).all() or len(faces) > MOST_FACES:
        raise InputError.of(
            str(path), f"has {len(faces)} usable triangles", f"give it 1 to {MOST_FACES}"
        )
    mirrored = np.prod(scale) < 0
    return Mesh(vertices=vertices * scale, faces=faces[:, ::-1] if mirrored else faces)


def _trimesh() -> Any:
    try:
        return importlib.import_module("trimesh")
    except ImportError as error:
        raise EngineError.of(
            "trimesh", f"cannot be imported ({error})", "pip install 'tauloop[view]'"
        ) from error
