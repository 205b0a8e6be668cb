"""The solids of a machine at its reference pose, and their meshes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tauloop.geometry.design import designed
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.geometry.triangle_meshes import DEFAULT_SECTIONS, triangles
from tauloop.mechanism.solids.solid import Mesh, Solid, colour
from tauloop.model import Model


def machine_solids(model: Model) -> tuple[Solid, ...]:
    """Return the solids of a machine, with designed solids for bodies and rods without solids.

    Solids are fixed to their bodies (see `frames` for the poses of bodies and rods). Designed
    solids are tubes for rods and links, plates, arcs, housings, rails and a base. Their thickness
    depends on the distances between them at the reference pose.

    Args:
        model: the machine.
    """
    return designed(model.mechanism, machine_geometry(model, model.assembly.q))


def parts(solids: Iterable[Solid], sections: int = DEFAULT_SECTIONS) -> dict[tuple[str, str], Mesh]:
    """Return one mesh per body and color, in the frame of the body, m.

    Args:
        solids: solids of a machine.
        sections: number of corners of round sections.

    Raises:
        EngineError: trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    groups: dict[tuple[str, str], list[Mesh]] = {}
    for solid in solids:
        groups.setdefault((solid.body, colour(solid)), []).append(triangles(solid, sections))
    return {key: joined(meshes) for key, meshes in groups.items()}


def joined(meshes: list[Mesh]) -> Mesh:
    """Return several meshes as a single one."""
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    faces = [mesh.faces + start for mesh, start in zip(meshes, first, strict=True)]
    return Mesh(
        vertices=np.concatenate([mesh.vertices for mesh in meshes]), faces=np.concatenate(faces)
    )
