"""The solids of a machine at its reference pose, and their meshes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tauloop.geometry.design import with_designed_solids
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.geometry.triangle_meshes import DEFAULT_SECTIONS, triangles
from tauloop.mechanism.model import BASE, Mechanism
from tauloop.mechanism.solids.solid import BODY_COLORS, ROLE_COLORS, Mesh, Solid, color_of
from tauloop.model import Model


def machine_solids(model: Model) -> tuple[Solid, ...]:
    """Return the solids of a machine, with designed solids for bodies and rods without solids.

    Solids are fixed to their bodies (see `frames` for the poses of bodies and rods). Designed
    solids are tubes for rods and links, plates, arcs, housings, rails and a base. Their thickness
    depends on the distances between them at the reference pose. If no solid in the machine file has
    a color, as in many imported machines, each body gets a different color.

    Args:
        model: the machine.
    """
    solids = with_designed_solids(model.mechanism, machine_geometry(model, model.assembly.q))
    colors = _body_colors(model.mechanism)
    return tuple(
        replace(solid, color=colors[solid.body])
        if solid in model.mechanism.solids and solid.body in colors
        else solid
        for solid in solids
    )


def _body_colors(mechanism: Mechanism) -> dict[str, str]:
    """Return a color for each body with solids; empty if a solid has a color or for one body."""
    if any(solid.color for solid in mechanism.solids):
        return {}
    bodies = list(dict.fromkeys(solid.body for solid in mechanism.solids))
    if len(bodies) < 2:
        return {}
    colors = {BASE: ROLE_COLORS["base"], mechanism.platform.body: ROLE_COLORS["platform"]}
    others = [body for body in bodies if body not in colors]
    for i, body in enumerate(others):
        colors[body] = BODY_COLORS[i % len(BODY_COLORS)]
    return colors


def parts(solids: Iterable[Solid], sections: int = DEFAULT_SECTIONS) -> dict[tuple[str, str], Mesh]:
    """Return one mesh per body and color, in the frame of the body, m.

    Args:
        solids: solids of a machine.
        sections: number of vertices of round sections.

    Raises:
        EngineError: trimesh is not installed.
        InputError: the file of a mesh is missing, damaged or too large.
    """
    groups: dict[tuple[str, str], list[Mesh]] = {}
    for solid in solids:
        groups.setdefault((solid.body, color_of(solid)), []).append(triangles(solid, sections))
    return {key: joined(meshes) for key, meshes in groups.items()}


def joined(meshes: list[Mesh]) -> Mesh:
    """Return several meshes as a single mesh."""
    first_vertices = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    faces = [mesh.faces + start for mesh, start in zip(meshes, first_vertices, strict=True)]
    return Mesh(
        vertices=np.concatenate([mesh.vertices for mesh in meshes]), faces=np.concatenate(faces)
    )
