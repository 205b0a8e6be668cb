"""The appearance of a machine: solids fixed to its bodies and rods, used only for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass

SolidShape = Literal["box", "cylinder", "capsule", "sphere", "mesh"]
SHAPES: tuple[SolidShape, ...] = get_args(SolidShape)

#: Colors by role. They also differ in lightness, for color-blind readers and gray prints (after
#: Okabe and Ito 2008, Color universal design).
ROLE_COLORS: Mapping[str, str] = {
    "base": "#424a53",
    "rail": "#9aa3ad",
    "link": "#2a65a9",
    "rod": "#a9d3f2",
    "cable": "#1f2328",
    "joint": "#33383e",
    "motor": "#e69f00",
    "platform": "#d55e00",
    "tool": "#5e1a08",
}

#: Colors of bodies whose solids have no color. Neighbors in the list differ in hue and lightness
#: (after Okabe and Ito 2008). The colors of motors and platforms are not included.
BODY_COLORS = (
    "#0072b2",
    "#56b4e9",
    "#007a5a",
    "#8fd3b6",
    "#7a4f9a",
    "#cc79a7",
    "#5f6b76",
    "#b9c2cb",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: vertex positions (n, 3), m.
        faces: vertex indices of each triangle (f, 3), counterclockwise seen from outside.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """A shape fixed to a body or rod.

    A rod's frame has its origin at A and its z axis along the rod.

    Attributes:
        body: name of the body or rod; ``ROD.lower`` or ``ROD.upper`` (origin at B) for the parts of
            a telescopic rod.
        shape: one of `SHAPES`, centered on the solid's frame; cylinders and capsules have its z
            axis.
        size: edges of a box; radius and length of a cylinder or capsule (without its round ends);
            radius of a sphere, all in m; three scale factors of a mesh.
        position: origin of its frame in the body's frame, m.
        turns: successive rotations from the body's frame to its frame: (axis, angle in rad).
        color: ``#rrggbb``; "" for the color of its `role`.
        role: its role in the machine, such as "link" or "motor" (see `ROLE_COLORS`).
        mesh: file or triangles of a mesh; None for other shapes.
    """

    body: str
    shape: SolidShape
    size: tuple[float, ...]
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turns: tuple[tuple[Literal["x", "y", "z"], float], ...] = ()
    color: str = ""
    colour = old_attribute("colour", "color")
    role: str = "link"
    mesh: Path | Mesh | None = None


def convex(points: np.ndarray) -> Mesh:
    """Return the convex hull of points (k, 3) that do not lie in a plane."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    triangles = points[faces]
    outwards = np.einsum(
        "fi,fi->f",
        np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]),
        hull.equations[:, :3],
    )
    faces[outwards < 0] = faces[outwards < 0][:, ::-1]
    used, indices = np.unique(faces, return_inverse=True)
    return Mesh(vertices=points[used], faces=indices.reshape(-1, 3))


def color_of(solid: Solid) -> str:
    """Return the color of a solid or of its role: ``#rrggbb``."""
    return solid.color or ROLE_COLORS.get(solid.role, ROLE_COLORS["link"])


def rgba(color: str) -> str:
    """Return a color ``#rrggbb`` as text of four numbers, 0 to 1; the last is the opacity."""
    return " ".join(f"{int(color[i : i + 2], 16) / 255:.4g}" for i in (1, 3, 5)) + " 1"
