"""Solids from the geoms of an MJCF. Faults of a geom are notes, as they do not affect motion."""

from __future__ import annotations

from collections import Counter
from copy import copy
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problems
from tauloop.formats.mjcf.inertia import SIZE_COUNTS, geom_shape
from tauloop.formats.mjcf.settings import MjcfReader
from tauloop.formats.xml.meshes import MeshFiles, color_of, mesh_corners
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.poses import FramePose, quaternion_rotation, rotation_matrix
from tauloop.mechanism.solids.solid import SHAPES, Mesh, Solid, convex
from tauloop.mechanism.solids.visual import solid_at

#: Groups of geoms that MuJoCo's viewer shows by default; by convention, others are for contacts.
SHOWN_GROUPS = (0, 1, 2)
#: Number of corners of an ellipsoid, and the angle (rad) about its axis from one to the next. The
#: golden angle distributes them evenly.
_ELLIPSOID_CORNERS, _GOLDEN_ANGLE = 300, np.pi * (3.0 - np.sqrt(5.0))


class GeomReader:
    """Reader of solids from geoms, in the order of the file."""

    def __init__(self, reader: MjcfReader, root: XmlNode) -> None:
        """Read materials and the names of meshes.

        Args:
            reader: provides compiler settings and default classes. Faults of shapes are not
                problems.
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
        """Add the solid of a geom on a body, given in a frame on that body, if it is drawn."""
        reader, before = self._reader, len(self._reader.problems)
        node = reader.resolved(geom, childclass)
        kind, material = (
            reader.word(node, "type", "sphere"),
            self._materials.get(reader.word(node, "material")),
        )
        rgba = reader.numbers(node, body, "rgba") or (
            reader.numbers(material, body, "rgba") if material else ()
        )
        color = color_of(rgba) if len(rgba) == 4 else ""
        solid = None
        if reader.value(node, body, "group") not in SHOWN_GROUPS or rgba[3:] == (0.0,):
            self._not_drawn["hidden"] += 1
        elif kind == "mesh":
            solid = self._mesh(node, body, frame, color)
        # MuJoCo fits a primitive shape with a mesh to the mesh
        elif kind not in SIZE_COUNTS or "mesh" in node.attributes:
            self._not_drawn[kind] += 1
        else:
            solid = self._primitive(node, body, frame, kind, color)
        if solid is not None and len(reader.problems) == before:
            self.solids.append(solid)

    def triangles(
        self, body: str, geom: XmlNode, frame: FramePose
    ) -> tuple[np.ndarray | None, str]:
        """Return the corners (n, 3, 3) of a mesh geom's triangles in body axes, or the fault.

        Args:
            body: body with the geom.
            geom: the geom with its class applied.
            frame: pose of the enclosing frame on the body.
        """
        reader, problems = self._reader, self._reader.problems
        reader.problems = Problems()
        solid = self._mesh(geom, body, frame, "")
        wrong = [problem.what for problem in reader.problems]
        reader.problems = problems
        if solid is None or wrong:
            return None, wrong[
                0
            ] if wrong else f"the file of mesh {reader.word(geom, 'mesh')!r} does not exist"
        corners = None
        if isinstance(solid.mesh, Mesh):
            corners = solid.mesh.vertices[solid.mesh.faces]
        elif solid.mesh is not None:
            corners = mesh_corners(solid.mesh)
        if corners is None:
            return (
                None,
                f"{solid.mesh.name if isinstance(solid.mesh, Path) else 'it'} is not a binary STL or OBJ file",
            )
        corners = corners * np.array(solid.size)
        return corners @ rotation_matrix(solid.turns).T + np.array(solid.position), ""

    def inertia_mode(self, geom: XmlNode) -> str:
        """Return MuJoCo's name of the method that computes the inertia of a geom's mesh."""
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
        size, pose = geom_shape(self._reader, body, kind, node, frame)
        if size is None:
            return None
        p, R = pose.position, pose.rotation
        if kind == "ellipsoid":
            z = np.linspace(-1.0, 1.0, _ELLIPSOID_CORNERS)
            angle, r = _GOLDEN_ANGLE * np.arange(_ELLIPSOID_CORNERS), np.sqrt(1.0 - z * z)
            ball = convex(np.column_stack([r * np.cos(angle), r * np.sin(angle), z]))
            return solid_at(body, "mesh", tuple(size.tolist()), p, R, color=color, mesh=ball)
        size[0 if kind == "box" else 1 :] *= 2.0  # MJCF has half lengths
        return solid_at(body, SHAPES[SHAPES.index(kind)], tuple(size.tolist()), p, R, color=color)

    def _mesh(self, node: XmlNode, body: str, frame: FramePose, color: str) -> Solid | None:
        """Return a mesh in the frame of its geom.

        The corners minus `refpos` are rotated by the inverse of `refquat` and scaled.
        """
        reader, name = self._reader, self._reader.word(node, "mesh")
        asset = reader.look_up(node, body, name, self._meshes, f"there is no mesh {name!r}", "")
        if asset is None:
            return None
        scale, at = (
            reader.triple(asset, name, "scale", (1.0, 1.0, 1.0)),
            reader.triple(asset, name, "refpos"),
        )
        R = quaternion_rotation(
            np.array(reader.vector(asset, name, "refquat", (1.0, 0.0, 0.0, 0.0)))
        ).T
        if not scale.all() or ((R != np.eye(3)).any() and np.ptp(scale) > 0.0):
            reader.problem(
                asset,
                name,
                f"it is scaled by {scale.tolist()} after a rotation, which is not supported",
            )
        pose = frame @ reader.pose(node, body) @ FramePose(R, -scale * (R @ at))
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
            name = Path(file).name if reader.compiler.has_bare_names else file
            return self._files.find(name, Path(asset.file).parent if asset.file else None)
        numbers, faces = (
            reader.numbers(asset, name, "vertex"),
            np.array(reader.numbers(asset, name, "face")),
        )
        try:
            corners = np.array(numbers).reshape(-1, 3)
            triples = faces.astype(np.int64).reshape(-1, 3)
            if len(triples) and not 0 <= triples.min() <= triples.max() < len(corners):
                raise ValueError(triples)
            return Mesh(vertices=corners, faces=triples) if len(triples) else convex(corners)
        except (ValueError, RuntimeError):  # RuntimeError: from SciPy, for corners in a plane
            reader.problem(
                asset,
                name,
                f"{counted(len(numbers), 'number')} of corners and {len(faces)} of faces are not a mesh",
            )
            return None
