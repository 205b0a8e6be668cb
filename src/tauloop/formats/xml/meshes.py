"""Files of meshes that descriptions name: where they are, which of them are not drawn, and triangles as binary STL."""

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
from tauloop.mechanism.solid import Mesh
from tauloop.mechanism.visual import MESH_ENDINGS

#: One triangle: its normal, its corners, and two bytes without a meaning.
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
#: Ways to name a file in a package, which is a folder of that name.
_PACKAGES = ("package", "model")


def stl_bytes(mesh: Mesh) -> bytes:
    """Return the content of a binary STL file, m."""
    triangles = np.zeros(len(mesh.faces), _TRIANGLE)
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    triangles["normal"] = normals / np.maximum(
        np.linalg.norm(normals, axis=1, keepdims=True), 1e-300
    )
    triangles["corners"] = corners
    return bytes(80) + np.uint32(len(triangles)).astype("<u4").tobytes() + triangles.tobytes()


def is_binary_stl(path: Path) -> bool:
    """Return whether a file has the length that a binary STL file says it has; one in text has not."""
    with path.open("rb") as file:
        head = file.read(84)
    return path.stat().st_size == 84 + _TRIANGLE.itemsize * int.from_bytes(head[80:], "little")


def stl_corners(path: Path) -> np.ndarray:
    """Return the corners (n, 3, 3) of the triangles of a binary STL file."""
    triangles = np.frombuffer(path.read_bytes()[84:], _TRIANGLE)
    return np.asarray(triangles["corners"], dtype=float)


def mesh_corners(path: Path) -> np.ndarray | None:
    """Return the corners (n, 3, 3) of the triangles of a binary STL or an OBJ file; None of another."""
    if path.suffix.lower() == ".obj":
        return obj_corners(path)
    return stl_corners(path) if path.suffix.lower() == ".stl" and is_binary_stl(path) else None


def obj_corners(path: Path) -> np.ndarray | None:
    """Return the corners (n, 3, 3) of the triangles of an OBJ file; None where it is wrong or has none.

    A face of more corners is a fan from its first.
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
    """Return the index of a corner from ``7/2/1``: counted from one, or backwards from the last of those so far."""
    number = int(text.partition("/")[0])
    index = number - 1 if number > 0 else count + number
    if not 0 <= index < count:
        raise IndexError(number)
    return index


def colour_of(rgba: Sequence[float]) -> str:
    """Return a colour ``#rrggbb`` of numbers from 0 to 1."""
    return "#" + "".join(f"{round(255 * min(max(share, 0.0), 1.0)):02x}" for share in rgba[:3])


@dataclass(slots=True)
class MeshCopies:
    """Copies of meshes beside a description that is written, so that both can be handed on together.

    Attributes:
        folder: where they lie, seen from the description's.
        contents: of the files, by their names.
    """

    folder: str
    contents: dict[str, bytes] = field(default_factory=dict)
    _names: dict[Path, str] = field(default_factory=dict)

    def path(self, mesh: Path | Mesh) -> str:
        """Return the path that the description names; one file for all that show it."""
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
        """Write them below the folder of the description; their paths.

        Raises:
            InputError: a file cannot be written.
        """
        paths = [folder / self.folder / name for name in self.contents]
        for path, content in zip(paths, self.contents.values(), strict=True):
            path.parent.mkdir(exist_ok=True)
            write_file(path, partial(Path.write_bytes, data=content))
        return paths


def package_places(package: str, folders: Iterable[str | Path]) -> list[Path]:
    """Return where a package may be: folders that have its name, and its name in each of the others."""
    places = [Path(folder) for folder in folders]
    return [place if place.absolute().name == package else place / package for place in places]


@dataclass(slots=True)
class MeshFiles:
    """Looks for the meshes of a description; the machine moves without those that are not there.

    Attributes:
        folder: of the description.
        packages: folders of packages, or folders that these are in, which the caller names.
        missing, unread: names of files that are not there, and of those that are of another kind,
            in their order.
    """

    folder: Path
    packages: tuple[str | Path, ...] = ()
    missing: dict[str, None] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)

    def find(self, name: str, beside: Path | None = None) -> Path | None:
        """Return the file of a name; None, which is remembered, where there is none that is read.

        Args:
            name: as the description has it.
            beside: folder of an included file that has the name, where it is looked for last.
        """
        places = [*self._places(name), *((beside / name,) if beside is not None else ())]
        path = next((place.resolve() for place in places if os.path.isfile(place)), None)
        if path is None:
            self.missing[name] = None
        elif path.suffix.lower() not in MESH_ENDINGS:
            self.unread[name] = None
        else:
            return path
        return None

    def _places(self, name: str) -> list[Path]:
        """Return where a file may be: a package is a folder of that name, at or beside the description's or one above."""
        scheme, mark, rest = name.partition("://")
        if not mark:
            return [self.folder / name]
        package, _, path = rest.partition("/")
        if scheme == "file":
            return [Path(rest)]
        if scheme not in _PACKAGES or ".." in Path(path).parts:
            return []
        here = self.folder.resolve()
        if not package:
            return [here / path.lstrip("/")]
        return [
            top / path for top in package_places(package, (*self.packages, here, *here.parents))
        ]

    def notes(self, problems: Sequence[Problem]) -> list[str]:
        """Return what is not drawn as the description has it, and problems with shapes, which stop nothing."""
        kinds = ", ".join(ending[1:].upper() for ending in MESH_ENDINGS)
        listed = (
            ("files of meshes that are not there, so that joints show those parts", self.missing),
            (f"meshes that are not drawn, for they are none of {kinds}", self.unread),
        )
        notes = [f"{what}: {', '.join(names)}" for what, names in listed if names]
        wrong = {
            f"{x.where}: {x.what} (line {x.line}); the shape is not drawn": None for x in problems
        }
        return [*notes, *wrong]
