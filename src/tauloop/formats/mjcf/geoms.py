"""Solids from the geoms of an MJCF.

Errors in a geom that is only drawn are notes, because its shape does not affect the motion. Errors
of a mesh that defines an inertia are returned by `triangles`.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from pathlib import Path
from typing import cast

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problems
from tauloop.formats.mjcf.inertia import SIZE_COUNTS, geom_shape
from tauloop.formats.mjcf.settings import MjcfReader
from tauloop.formats.xml.meshes import MeshFiles, color_of, mesh_corners
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.poses import FramePose, quaternion_rotation, rotation_matrix
from tauloop.mechanism.solids.solid import Mesh, Solid, SolidShape, convex
from tauloop.mechanism.solids.visual import solid_at

#: Groups of geoms that MuJoCo's viewer shows by default; by convention, geoms of other groups
#: are used only for contacts.
SHOWN_GROUPS = (0, 1, 2)
#: Number of vertices of the mesh that represents an ellipsoid.
_ELLIPSOID_VERTICES = 300
#: Angle (rad) about the axis of an ellipsoid between consecutive vertices. The golden angle
#: distributes the vertices evenly.
_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


class GeomReader:
    """Reader of solids from geoms, in the order of the file."""

    def __init__(self, reader: MjcfReader, root: XmlNode) -> None:
        """Read materials and the names of meshes.

        Args:
            reader: provides compiler settings and default classes. A copy of it collects the errors
                in shapes, so that they do not stop the import.
            root: the element ``<mujoco>``.
        """
        self.solids: list[Solid] = []
        self._reader = copy(reader)
        self._reader.problems, self._reader.notes = Problems(), []
        self._files = MeshFiles(reader.compiler.meshes)
        self._not_drawn: Counter[str] = Counter()
        nodes = [
            self._reader.resolved(node, "")
            for assets in root.all("asset")
            for node in assets.children
        ]
        self._materials = {
            node.attributes.get("name", ""): node for node in nodes if node.tag == "material"
        }
        self._meshes = {
            node.attributes.get("name") or Path(node.attributes.get("file", "")).stem: node
            for node in nodes
            if node.tag == "mesh"
        }

    def read(self, body: str, geom: XmlNode, frame: FramePose, childclass: str) -> None:
        """Add the solid of a geom if MuJoCo shows it.

        Args:
            body: body with the geom.
            geom: element ``<geom>`` before its class is applied.
            frame: pose of the enclosing frame on the body.
            childclass: default class of the enclosing element.
        """
        reader, previous_count = self._reader, len(self._reader.problems)
        node = reader.resolved(geom, childclass)
        kind = reader.word(node, "type", "sphere")
        material = self._materials.get(reader.word(node, "material"))
        rgba = reader.numbers(node, body, "rgba") or (
            reader.numbers(material, body, "rgba") if material else ()
        )
        color = color_of(rgba) if len(rgba) == 4 else ""
        solid = None
        if reader.value(node, body, "group") not in SHOWN_GROUPS or rgba[3:] == (0.0,):
            self._not_drawn["hidden"] += 1
        elif kind == "mesh":
            solid = self._mesh(node, body, frame, color)
        # MuJoCo fits a primitive geom with the attribute "mesh" to that mesh
        elif kind not in SIZE_COUNTS or "mesh" in node.attributes:
            self._not_drawn[kind] += 1
        else:
            solid = self._primitive(node, body, frame, kind, color)
        if solid is not None and len(reader.problems) == previous_count:
            self.solids.append(solid)

    def triangles(
        self, body: str, geom: XmlNode, frame: FramePose
    ) -> tuple[np.ndarray | None, str]:
        """Return the triangles of a mesh geom, in body coordinates.

        Args:
            body: body with the geom.
            geom: the geom with its class applied.
            frame: pose of the enclosing frame on the body.

        Returns:
            The vertices of the triangles (n, 3, 3), m, and an empty text; or None and an error
            message.
        """
        reader, problems = self._reader, self._reader.problems
        reader.problems = Problems()
        solid = self._mesh(geom, body, frame, "")
        errors = [problem.what for problem in reader.problems]
        reader.problems = problems
        if errors:
            return None, errors[0]
        if solid is None:
            return None, f"the file of mesh {reader.word(geom, 'mesh')!r} does not exist"
        vertices = None
        if isinstance(solid.mesh, Mesh):
            vertices = solid.mesh.vertices[solid.mesh.faces]
        elif solid.mesh is not None:
            vertices = mesh_corners(solid.mesh)
        if vertices is None:
            name = solid.mesh.name if isinstance(solid.mesh, Path) else "it"
            return None, f"{name} is not a binary STL or OBJ file"
        vertices = vertices * np.array(solid.size)
        return vertices @ rotation_matrix(solid.turns).T + np.array(solid.position), ""

    def inertia_mode(self, geom: XmlNode) -> str:
        """Return the attribute `inertia` of a geom's mesh, which selects how MuJoCo computes it."""
        asset = self._meshes.get(self._reader.word(geom, "mesh"))
        return "legacy" if asset is None else self._reader.word(asset, "inertia", "legacy")

    def notes(self) -> list[str]:
        """Return notes on the differences between the drawing and the file."""
        counts = ", ".join(f"{kind} ({count})" for kind, count in sorted(self._not_drawn.items()))
        notes = [f"geoms that are not drawn: {counts}"] if counts else []
        return notes + self._files.notes(self._reader.problems)

    def _primitive(
        self, node: XmlNode, body: str, frame: FramePose, kind: str, color: str
    ) -> Solid | None:
        """Return the solid of a geom of a primitive shape; None if its shape is invalid."""
        size, pose = geom_shape(self._reader, body, kind, node, frame)
        if size is None:
            return None
        p, R = pose.position, pose.rotation
        if kind == "ellipsoid":
            z = np.linspace(-1.0, 1.0, _ELLIPSOID_VERTICES)
            angle = _GOLDEN_ANGLE * np.arange(_ELLIPSOID_VERTICES)
            r = np.sqrt(1.0 - z * z)
            unit_sphere = convex(np.column_stack([r * np.cos(angle), r * np.sin(angle), z]))
            return solid_at(body, "mesh", tuple(size.tolist()), p, R, color=color, mesh=unit_sphere)
        # MJCF has half-lengths, except that the first size of shapes other than boxes is a radius.
        first_length = 0 if kind == "box" else 1
        size[first_length:] *= 2.0
        return solid_at(body, cast("SolidShape", kind), tuple(size.tolist()), p, R, color=color)

    def _mesh(self, node: XmlNode, body: str, frame: FramePose, color: str) -> Solid | None:
        """Return the solid of a mesh geom.

        The vertices minus `refpos` are rotated by the inverse of `refquat` and scaled.
        """
        reader, name = self._reader, self._reader.word(node, "mesh")
        asset = reader.look_up(node, body, name, self._meshes, f"there is no mesh {name!r}", "")
        if asset is None:
            return None
        scale = reader.triple(asset, name, "scale", (1.0, 1.0, 1.0))
        reference_position = reader.triple(asset, name, "refpos")
        R = quaternion_rotation(
            np.array(reader.vector(asset, name, "refquat", (1.0, 0.0, 0.0, 0.0)))
        ).T
        if not scale.all():
            reader.problem(asset, name, f"its scale {scale.tolist()} contains zero")
        elif (R != np.eye(3)).any() and np.ptp(scale) > 0.0:
            reader.problem(
                asset,
                name,
                f"a non-uniform scale {scale.tolist()} in a rotated frame (refquat) is not "
                "supported",
            )
        offset = FramePose(R, -scale * (R @ reference_position))
        pose = frame @ reader.pose(node, body) @ offset
        mesh = self._triangles(asset, name)
        if mesh is None:
            return None
        return solid_at(
            body,
            "mesh",
            tuple(scale.tolist()),
            pose.position,
            pose.rotation,
            color=color,
            mesh=mesh,
        )

    def _triangles(self, asset: XmlNode, name: str) -> Path | Mesh | None:
        """Return the file or triangles of a mesh; without faces, its convex hull."""
        reader, file = self._reader, self._reader.word(asset, "file")
        if file:
            name = Path(file).name if reader.compiler.strips_paths else file
            return self._files.find(name, Path(asset.file).parent if asset.file else None)
        coordinates = reader.numbers(asset, name, "vertex")
        indices = np.array(reader.numbers(asset, name, "face"))
        try:
            vertices = np.array(coordinates).reshape(-1, 3)
            faces = indices.astype(np.int64).reshape(-1, 3)
            if len(faces) and not 0 <= faces.min() <= faces.max() < len(vertices):
                raise ValueError(faces)
            return Mesh(vertices=vertices, faces=faces) if len(faces) else convex(vertices)
        except (ValueError, RuntimeError):  # RuntimeError: from SciPy, for coplanar vertices
            reader.problem(
                asset,
                name,
                f"`vertex` ({counted(len(coordinates), 'number')}) and `face` ({len(indices)}) do "
                "not define a mesh",
            )
            return None
