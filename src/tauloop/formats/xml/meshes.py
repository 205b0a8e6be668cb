"""Mesh files of descriptions: search, supported formats, and conversion to binary STL."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.files import write_file
from tauloop.common.records import dataclass
from tauloop.mechanism.solids.solid import Mesh
from tauloop.mechanism.solids.visual import MESH_EXTENSIONS

#: One triangle: normal, vertices, and two unused bytes.
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
#: URI schemes of a file in a package; a package is a folder with its name.
_PACKAGE_SCHEMES = ("package", "model")


def stl_bytes(mesh: Mesh) -> bytes:
    """Return a mesh as the content of a binary STL file, m."""
    triangles = np.zeros(len(mesh.faces), _TRIANGLE)
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    triangles["normal"] = normals / np.maximum(
        np.linalg.norm(normals, axis=1, keepdims=True), 1e-300
    )
    triangles["corners"] = corners
    return bytes(80) + np.uint32(len(triangles)).astype("<u4").tobytes() + triangles.tobytes()


def is_binary_stl(path: Path) -> bool:
    """Return whether a file has the length that its binary STL header specifies.

    A text STL file does not.
    """
    with path.open("rb") as file:
        head = file.read(84)
    return path.stat().st_size == 84 + _TRIANGLE.itemsize * int.from_bytes(head[80:], "little")


def stl_corners(path: Path) -> np.ndarray:
    """Return the vertices (n, 3, 3) of the triangles of a binary STL file."""
    triangles = np.frombuffer(path.read_bytes()[84:], _TRIANGLE)
    return np.asarray(triangles["corners"], dtype=float)


def mesh_corners(path: Path) -> np.ndarray | None:
    """Return vertices (n, 3, 3) of the triangles of a binary STL or OBJ file; None for others."""
    if path.suffix.lower() == ".obj":
        return obj_corners(path)
    return stl_corners(path) if path.suffix.lower() == ".stl" and is_binary_stl(path) else None


def obj_corners(path: Path) -> np.ndarray | None:
    """Return the vertices (n, 3, 3) of an OBJ file's triangles; None if it is invalid or empty.

    A face with more vertices is split into a fan of triangles from its first vertex.
    """
    points: list[tuple[float, ...]] = []
    faces: list[tuple[int, int, int]] = []
    try:
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            word, *rest = line.split() or [""]
            if word == "v":
                points.append(tuple(map(float, rest[:3])))
            elif word == "f":
                first, *others = (_obj_index(text, len(points)) for text in rest)
                faces += [(first, a, b) for a, b in pairwise(others)]
        corners = np.array(points).reshape(-1, 3)[np.array(faces).reshape(-1, 3)]
    except (ValueError, IndexError):
        return None
    return corners if len(corners) and np.isfinite(corners).all() else None


def _obj_index(text: str, count: int) -> int:
    """Return the index of a vertex from text such as ``7/2/1``; negative: from the end."""
    number = int(text.partition("/")[0])
    index = number - 1 if number > 0 else count + number
    if not 0 <= index < count:
        raise IndexError(number)
    return index


def color_of(rgba: Sequence[float]) -> str:
    """Return a color ``#rrggbb`` from numbers between 0 and 1."""
    return "#" + "".join(
        f"{round(255 * min(max(component, 0.0), 1.0)):02x}" for component in rgba[:3]
    )


@dataclass(slots=True)
class MeshCopies:
    """Copies of meshes next to a written description, so that both can be copied together.

    Attributes:
        folder: mesh folder, relative to the description's folder.
        contents: contents of the files by name.
    """

    folder: str
    contents: dict[str, bytes] = field(default_factory=dict)
    _names: dict[Path, str] = field(default_factory=dict)

    def path(self, mesh: Path | Mesh) -> str:
        """Return the path of a mesh for the description; equal meshes share one file."""
        name = "" if isinstance(mesh, Mesh) else self._names.get(mesh, "")
        if not name:
            name = f"solid{len(self.contents) + 1}.stl" if isinstance(mesh, Mesh) else mesh.name
            while name in self.contents:
                name = f"_{name}"
            self.contents[name] = stl_bytes(mesh) if isinstance(mesh, Mesh) else mesh.read_bytes()
            if isinstance(mesh, Path):
                self._names[mesh] = name
        return f"{self.folder}/{name}"

    def write(self, folder: Path) -> list[Path]:
        """Write the meshes below the folder of the description and return their paths.

        Raises:
            InputError: a file cannot be written.
        """
        paths = [folder / self.folder / name for name in self.contents]
        for path, content in zip(paths, self.contents.values(), strict=True):
            path.parent.mkdir(exist_ok=True)
            write_file(path, partial(Path.write_bytes, data=content))
        return paths


def package_places(package: str, folders: Iterable[str | Path]) -> list[Path]:
    """Return possible folders of a package: the folders with its name, and subfolders with it."""
    places = [Path(folder) for folder in folders]
    return [place if place.absolute().name == package else place / package for place in places]


@dataclass(slots=True)
class MeshFiles:
    """Search for the meshes of a description, which are not required for motion.

    Attributes:
        folder: folder of the description.
        packages: folders of packages, or their parent folders, given by the caller.
        missing, unread: names of missing and of unsupported files, in order.
    """

    folder: Path
    packages: tuple[str | Path, ...] = ()
    missing: dict[str, None] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)

    def find(self, name: str, included_folder: Path | None = None) -> Path | None:
        """Return the mesh file with a name; record the name and return None if there is none.

        Args:
            name: name in the description.
            included_folder: folder of the included file with the name, which is searched last.
        """
        places = [
            *self._places(name),
            *((included_folder / name,) if included_folder is not None else ()),
        ]
        path = next((place.resolve() for place in places if os.path.isfile(place)), None)
        if path is None:
            self.missing[name] = None
        elif path.suffix.lower() not in MESH_EXTENSIONS:
            self.unread[name] = None
        else:
            return path
        return None

    def _places(self, name: str) -> list[Path]:
        """Return possible paths of a file.

        A package is a folder with its name: the description's folder, a folder above it, or a
        subfolder of one of these.
        """
        scheme, separator, rest = name.partition("://")
        if not separator:
            return [self.folder / name]
        package, _, path = rest.partition("/")
        if scheme == "file":
            return [Path(rest)]
        if scheme not in _PACKAGE_SCHEMES or ".." in Path(path).parts:
            return []
        folder = self.folder.resolve()
        if not package:
            return [folder / path.lstrip("/")]
        return [
            package_folder / path
            for package_folder in package_places(package, (*self.packages, folder, *folder.parents))
        ]

    def notes(self, problems: Sequence[Problem]) -> list[str]:
        """Return notes on missing or undrawn meshes and on shapes with problems."""
        kinds = ", ".join(extension[1:].upper() for extension in MESH_EXTENSIONS)
        names_by_note = (
            ("mesh files that do not exist, so only joints are drawn there", self.missing),
            (f"meshes that are not drawn, because they are not {kinds}", self.unread),
        )
        notes = [f"{what}: {', '.join(names)}" for what, names in names_by_note if names]
        shape_faults = {
            f"{problem.where}: {problem.what} (line {problem.line}); the shape is not drawn": None
            for problem in problems
        }
        return [*notes, *shape_faults]
