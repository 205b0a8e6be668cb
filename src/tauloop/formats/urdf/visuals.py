"""Solids from the visuals of a URDF. Faults of a shape are notes, as they do not affect motion."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tauloop.formats.urdf.parts import UrdfReader, rotation
from tauloop.formats.xml.meshes import MeshFiles, color_of
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.solids.solid import SHAPES, Solid
from tauloop.mechanism.solids.visual import solid_at

#: Elements of a visual that are read, with their attributes.
VISUAL_ELEMENTS: dict[str, set[str]] = {
    "visual": {"origin", "geometry", "material"},
    "geometry": set(SHAPES),
    "material": {"color"},
}
VISUAL_ATTRIBUTES = {
    "box": {"size"},
    "cylinder": {"radius", "length"},
    "capsule": {"radius", "length"},
    "sphere": {"radius"},
    "mesh": {"filename", "scale"},
    "color": {"rgba"},
}
#: Color of a shape without a color.
_NO_COLOR = (math.nan,) * 4


class VisualReader(UrdfReader):
    """Reader of ``<visual>``, or of ``<collision>`` for links whose visuals cannot be drawn."""

    def __init__(
        self, file: str, robot: XmlNode, largest: float, packages: tuple[str | Path, ...] = ()
    ) -> None:
        """Read the colors that links share.

        Args:
            file: file name; paths of meshes are relative to its folder.
            robot: root element of the file.
            largest: largest length of the file, m.
            packages: folders of packages that may contain meshes.
        """
        super().__init__(file, largest)
        self._files = MeshFiles(Path(file).parent, packages)
        self._links_by_collision: list[str] = []
        self._shared: dict[str, tuple[float, ...]] = {}
        for material in robot.walk():
            color = material.first("color") if material.tag == "material" else None
            if color is not None:
                name = material.attributes.get("name", "")
                self._shared[name] = XmlReader(file).vector(color, "", "rgba", _NO_COLOR)

    def solids(self, body: str, link: XmlNode) -> list[Solid]:
        """Return the solids of a link, fixed to a body."""
        shapes = self._drawable(body, link.all("visual"))
        if shapes or link.first("visual") is None:
            return shapes
        shapes = self._drawable(body, link.all("collision"))
        self._links_by_collision += [body] if shapes else []
        return shapes

    def _drawable(self, body: str, nodes: Iterable[XmlNode]) -> list[Solid]:
        """Return the solids of the elements that can be drawn."""
        solids = (self._solid(body, node) for node in nodes)
        return [solid for solid in solids if solid is not None]

    def notes(self) -> list[str]:
        """Return notes on the differences between the drawing and the file."""
        notes = self._files.notes(tuple(self.problems))
        if self._links_by_collision:
            notes.append(
                f"links drawn with their <collision> shapes: {', '.join(self._links_by_collision)}"
            )
        return notes

    def _solid(self, body: str, node: XmlNode) -> Solid | None:
        """Return the solid of one element; None if it is not drawn."""
        shape = next((child for child in node.walk() if child.tag in SHAPES), None)
        if shape is None:
            self.problem(node, body, f"<{node.tag}> has none of the shapes {', '.join(SHAPES)}")
            return None
        previous_count = len(self.problems)
        xyz, rpy = self.origin(node, body)
        size = self._size(body, shape)
        mesh = self._files.find(self.text(shape, body, "filename")) if shape.tag == "mesh" else None
        *rgb, opacity = self._rgba(body, node.first("material"))
        if (
            len(self.problems) > previous_count
            or opacity == 0.0
            or (shape.tag == "mesh" and mesh is None)
        ):
            return None
        color = "" if math.isnan(opacity) else color_of(rgb)
        kind, R = SHAPES[SHAPES.index(shape.tag)], rotation(rpy)
        return solid_at(body, kind, size, np.array(xyz), R, color=color, mesh=mesh)

    def _size(self, body: str, shape: XmlNode) -> tuple[float, ...]:
        """Return the size of a shape in the form of `Solid.size`."""
        if shape.tag == "mesh":
            size = self.vector(shape, body, "scale", (1.0, 1.0, 1.0))
        elif shape.tag == "box":
            size = self.vector(shape, body, "size", (0.0, 0.0, 0.0))
        else:
            keys = ("radius",) if shape.tag == "sphere" else ("radius", "length")
            size = tuple(self.number(shape, body, key) for key in keys)
        if any(x == 0.0 or (x < 0.0 and shape.tag != "mesh") for x in size):
            self.problem(shape, body, f"its size is {' x '.join(f'{x:g}' for x in size)}")
        return size

    def _rgba(self, body: str, material: XmlNode | None) -> tuple[float, ...]:
        """Return red, green, blue and opacity of a material; NaN without one."""
        color = None if material is None else material.first("color")
        if material is None or color is None:
            return (
                _NO_COLOR
                if material is None
                else self._shared.get(material.attributes.get("name", ""), _NO_COLOR)
            )
        return self.vector(color, body, "rgba", _NO_COLOR)
