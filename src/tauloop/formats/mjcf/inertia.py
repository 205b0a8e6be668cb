"""Mass, mass center and inertia of an MJCF body, from its ``<inertial>`` or its geoms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tauloop.common.counts import counted
from tauloop.formats.imported.shape_inertia import (
    is_closed,
    legacy_mesh_volume,
    mesh_volume,
    shell_area,
    solid_inertia,
    solid_volume,
    summed,
)
from tauloop.formats.mjcf.settings import MjcfReader
from tauloop.formats.xml.nodes import XmlNode, impossible_inertia
from tauloop.mechanism.links.rigid_tree import LinkInertia
from tauloop.mechanism.poses import FramePose, shortest_turn
from tauloop.mechanism.solids.solid import convex

#: Density of a geom without mass and density, kg/m^3.
_DEFAULT_DENSITY = 1000.0
#: Shapes without volume.
_FLAT_SHAPES = ("plane", "hfield")
#: Functions for size, mass center and inertia per unit mass of a mesh, by MuJoCo's mode names.
_MESH_MODES = {
    "legacy": legacy_mesh_volume,
    "convex": mesh_volume,
    "exact": mesh_volume,
    "shell": shell_area,
}
#: Number of sizes of each shape; with `fromto`, the length is not one of them.
SIZE_COUNTS = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


class MeshSource(Protocol):
    """Source of the triangles of mesh geoms (`mjcf.geoms.GeomReader`)."""

    def triangles(
        self, body: str, geom: XmlNode, frame: FramePose
    ) -> tuple[np.ndarray | None, str]:
        """Return the vertices of triangles (n, 3, 3) in body axes, or None and the fault."""

    def inertia_mode(self, geom: XmlNode) -> str:
        """Return the mode that computes a mesh's inertia; "legacy" is the default."""


def body_inertia(
    reader: MjcfReader,
    name: str,
    inertials: Sequence[tuple[XmlNode, FramePose]],
    geoms: Sequence[tuple[XmlNode, FramePose]],
    meshes: MeshSource,
) -> LinkInertia | None:
    """Return the inertia of a body about its mass center, in body axes; None without mass.

    Args:
        reader: reads attributes and collects problems.
        name: name of the body.
        inertials: its ``<inertial>``, if any, each with the pose of the enclosing ``<frame>``.
        geoms: its geoms with their classes applied, each with the pose of the enclosing
            ``<frame>``.
        meshes: source of mesh triangles.
    """
    from_geoms = reader.compiler.from_geoms
    if len(inertials) > 1:
        what = f"has {len(inertials)} <inertial> elements"
        reader.problem(inertials[1][0], name, what, "keep one of them")
    geom_inertias: list[LinkInertia | None] = []
    if from_geoms == "true" or (from_geoms == "auto" and not inertials):
        geom_inertias = [_geom(reader, name, geom, frame, meshes) for geom, frame in geoms]
    inertias = [inertia for inertia in geom_inertias if inertia is not None]
    if not inertias and inertials:  # also if no geom with mass could replace it
        return _possible(reader, name, _inertial(reader, name, *inertials[0]))
    if not inertias:
        return None
    reader.solids.append(name)
    return _possible(reader, name, summed(inertias))


def _possible(reader: MjcfReader, name: str, inertia: LinkInertia) -> LinkInertia:
    """Return an inertia; if it is impossible and the compiler balances inertias, balance it."""
    moments = inertia.about_center
    what = impossible_inertia(moments) if np.isfinite(moments).all() else ""
    if not what:
        return inertia
    if not reader.compiler.is_balancing:
        reader.notes.append(f"{name}: {what}")
        return inertia
    mean = float(np.trace(moments)) / 3.0
    reader.notes.append(f"{name}: {what}; balanceinertia makes each {mean:.4g}")
    return LinkInertia(mass=inertia.mass, center=inertia.center, about_center=mean * np.eye(3))


def _inertial(reader: MjcfReader, name: str, node: XmlNode, frame: FramePose) -> LinkInertia:
    """Return the inertia that an ``<inertial>`` states."""
    mass = reader.value(node, name, "mass", math.nan) if "mass" in node.attributes else math.nan
    if "mass" not in node.attributes:
        reader.problem(node, name, "<inertial> has no mass", 'add mass="..."')
    elif mass < 0.0:
        reader.problem(node, name, f"the mass is {mass:g} kg", "give a mass of zero or more")
    pose = frame @ reader.pose(node, name)
    R, center = pose.rotation, pose.position
    has_full, has_diagonal = "fullinertia" in node.attributes, "diaginertia" in node.attributes
    reader.use(node, "fullinertia", "diaginertia")
    if has_full and has_diagonal:
        reader.problem(
            node, name, "<inertial> has both diaginertia and fullinertia", "keep one of them"
        )
    if has_full:
        xx, yy, zz, xy, xz, yz = reader.vector(node, name, "fullinertia", (0.0,) * 6)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        inertia = np.diag(reader.vector(node, name, "diaginertia", (0.0,) * 3))
    if not (R == np.eye(3)).all():
        inertia = R @ inertia @ R.T
    return LinkInertia(mass=mass, center=center, about_center=inertia)


def _geom(
    reader: MjcfReader, body: str, node: XmlNode, frame: FramePose, meshes: MeshSource
) -> LinkInertia | None:
    """Return the inertia of one geom; None if it has no mass or a problem was added."""
    kind = reader.word(node, "type", "sphere")
    first_group, last_group = reader.compiler.groups
    if kind in _FLAT_SHAPES or not first_group <= reader.value(node, body, "group") <= last_group:
        return None
    stated_mass = reader.value(node, body, "mass") if "mass" in node.attributes else None
    density = reader.value(node, body, "density", _DEFAULT_DENSITY)
    if stated_mass == 0.0 or (stated_mass is None and density == 0.0):
        return None
    is_shell = reader.word(node, "shellinertia") == "true"
    if kind == "mesh":
        mode = "shell" if is_shell else meshes.inertia_mode(node)
        return _mesh(reader, body, node, frame, meshes, stated_mass, density, mode)
    if kind not in SIZE_COUNTS:
        what = f"its mass depends on the volume of a {kind} geom, which Tauloop does not compute"
        reader.problem(
            node, body, what, "add <inertial mass=... pos=... fullinertia=.../> to the body"
        )
        return None
    if "mesh" in node.attributes:
        mesh = reader.word(node, "mesh")
        what = f"MuJoCo fits this {kind} to mesh {mesh!r}; Tauloop does not"
        reader.problem(
            node, body, what, "add <inertial mass=... pos=... fullinertia=.../> to the body"
        )
        return None
    size, pose = geom_shape(reader, body, kind, node, frame)
    if size is None:
        return None
    if is_shell:
        reader.problem(
            node,
            body,
            "Tauloop does not compute the inertia of a shell",
            "add <inertial> to the body",
        )
        return None
    mass = density * solid_volume(kind, size)[0] if stated_mass is None else stated_mass
    return solid_inertia(kind, size, mass, pose)


def _mesh(
    reader: MjcfReader,
    body: str,
    node: XmlNode,
    frame: FramePose,
    meshes: MeshSource,
    stated_mass: float | None,
    density: float,
    mode: str,
) -> LinkInertia | None:
    """Return the inertia of a mesh as a solid, a convex hull or a shell.

    Args:
        reader: reads attributes and collects problems.
        body: body with the mesh.
        node: the geom with its class applied.
        frame: pose of the enclosing frame on the body.
        meshes: source of its triangles.
        stated_mass: mass, kg; None if the mass follows from the density.
        density: density, kg/m^3; for a shell kg/m^2.
        mode: MuJoCo's mode: "legacy", "convex", "exact" or "shell".
    """
    triangles, fault = meshes.triangles(body, node, frame)
    if triangles is not None and mode == "exact" and not is_closed(triangles):
        fault = f"mesh {reader.word(node, 'mesh')!r} is not a closed surface"
    if mode not in _MESH_MODES:
        fault = f"inertia={mode!r} of mesh {reader.word(node, 'mesh')!r} is not supported"
    if triangles is None or fault:
        what = f"its inertia depends on a mesh geom and cannot be computed: {fault}"
        reader.problem(
            node, body, what, "add <inertial mass=... pos=... fullinertia=.../> to the body"
        )
        return None
    if mode == "legacy" and not is_closed(triangles):
        mesh = reader.word(node, "mesh")
        reader.notes.append(
            f"{body}: mesh {mesh!r} is not a closed surface; its inertia is computed as in MuJoCo"
        )
    if mode == "convex":
        hull = convex(triangles.reshape(-1, 3))
        triangles = hull.vertices[hull.faces]
    size, center, unit_inertia = _MESH_MODES[mode](triangles)
    mass = density * size if stated_mass is None else stated_mass
    return LinkInertia(mass=mass, center=center, about_center=mass * unit_inertia)


def geom_shape(
    reader: MjcfReader, body: str, kind: str, node: XmlNode, frame: FramePose
) -> tuple[np.ndarray | None, FramePose]:
    """Return the sizes of a shape (half lengths, radii) and its pose on the body."""
    size = np.array(reader.numbers(node, body, "size"))
    ends = reader.numbers(node, body, "fromto")
    if ends and kind != "sphere":
        if len(ends) != 6:
            what = f"fromto has {counted(len(ends), 'number')}, not 6"
            reader.problem(node, body, what, "write two points")
            return None, frame
        a, b = np.array(ends[:3]), np.array(ends[3:])
        length = float(np.linalg.norm(b - a))
        if length == 0.0 or not math.isfinite(length):
            what = f"the distance between the points of fromto is {length:g} m"
            reader.problem(node, body, what, "write two different, finite points")
            return None, frame
        # MuJoCo's z axis points from the second point to the first
        pose = FramePose(position=(a + b) / 2, rotation=shortest_turn(a - b))
        size = np.array(
            [*np.repeat(size[:1], 2 if kind in ("box", "ellipsoid") else 1), length / 2]
        )
    else:
        pose = reader.pose(node, body)
    if len(size) < SIZE_COUNTS[kind] or not (size[: SIZE_COUNTS[kind]] > 0.0).all():
        what = f"a {kind} needs {SIZE_COUNTS[kind]} positive sizes, got {size.tolist()}"
        reader.problem(node, body, what, "correct `size`")
        return None, frame
    return size[: SIZE_COUNTS[kind]], frame @ pose
