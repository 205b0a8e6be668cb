"""What the links of a URDF look like: solids. What is wrong with a shape is a note, for it moves nothing."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tauloop.formats.urdf.parts import UrdfReader, rotation
from tauloop.formats.xml.meshes import MeshFiles, colour_of
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.solid import SHAPES, Solid
from tauloop.mechanism.visual import solid_at

#: Elements that are read of a visual, and their attributes.
ELEMENTS: dict[str, set[str]] = {
    "visual": {"origin", "geometry", "material"},
    "geometry": set(SHAPES),
    "material": {"color"},
}
ATTRIBUTES = {
    "box": {"size"},
    "cylinder": {"radius", "length"},
    "capsule": {"radius", "length"},
    "sphere": {"radius"},
    "mesh": {"filename", "scale"},
    "color": {"rgba"},
}
#: The colour of what has none.
_NO_COLOUR = (math.nan,) * 4


class VisualReader(UrdfReader):
    """Reads ``<visual>``; a link of which no visual can be drawn gets the shapes of its ``<collision>``."""

    def __init__(
        self, file: str, robot: XmlNode, largest: float, packages: tuple[str | Path, ...] = ()
    ) -> None:
        """Read the colours that links share.

        Args:
            file: name of the file, from whose folder paths of meshes start.
            robot: its root element.
            largest: its largest length, m.
            packages: folders of packages that meshes may be in.
        """
        super().__init__(file, largest)
        self._files = MeshFiles(Path(file).parent, packages)
        self._by_collision: list[str] = []
        self._shared = {
            material.attributes.get("name", ""): XmlReader(file).vector(
                color, "", "rgba", _NO_COLOUR
            )
            for material in robot.walk()
            if material.tag == "material" and (color := material.first("color")) is not None
        }

    def solids(self, body: str, link: XmlNode) -> list[Solid]:
        """Return the solids of a link, fixed to a body."""
        shapes = [
            solid for node in link.all("visual") if (solid := self._solid(body, node)) is not None
        ]
        if shapes or link.first("visual") is None:
            return shapes
        shapes = [
            solid
            for node in link.all("collision")
            if (solid := self._solid(body, node)) is not None
        ]
        self._by_collision += [body] if shapes else []
        return shapes

    def notes(self) -> list[str]:
        """Return what is not drawn as the file has it."""
        notes = self._files.notes(tuple(self.problems))
        if self._by_collision:
            notes.append(
                f"drawn by the shapes of their <collision>: {', '.join(self._by_collision)}"
            )
        return notes

    def _solid(self, body: str, node: XmlNode) -> Solid | None:
        """Return the solid of one element; None where it is not drawn."""
        shape = next((child for child in node.walk() if child.tag in SHAPES), None)
        if shape is None:
            self.problem(node, body, f"<{node.tag}> has none of the shapes {', '.join(SHAPES)}")
            return None
        before = len(self.problems)
        xyz, rpy = self.origin(node, body)
        size = self._size(body, shape)
        mesh = self._files.find(self.text(shape, body, "filename")) if shape.tag == "mesh" else None
        *rgb, opacity = self._rgba(body, node.first("material"))
        if len(self.problems) > before or opacity == 0.0 or (shape.tag == "mesh" and mesh is None):
            return None
        colour = "" if math.isnan(opacity) else colour_of(rgb)
        kind, R = SHAPES[SHAPES.index(shape.tag)], rotation(rpy)
        return solid_at(body, kind, size, np.array(xyz), R, colour=colour, mesh=mesh)

    def _size(self, body: str, shape: XmlNode) -> tuple[float, ...]:
        """As `Solid.size`."""
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
        """Red, green, blue and opacity."""
        own = None if material is None else material.first("color")
        if material is None or own is None:
            return (
                _NO_COLOUR
                if material is None
                else self._shared.get(material.attributes.get("name", ""), _NO_COLOUR)
            )
        return self.vector(own, body, "rgba", _NO_COLOUR)
