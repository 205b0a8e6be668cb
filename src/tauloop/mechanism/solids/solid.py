"""The appearance of a machine: solids fixed to its bodies and rods, used for pictures only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tauloop.common.records import dataclass

SolidShape = Literal["box", "cylinder", "capsule", "sphere", "mesh"]
SHAPES: tuple[SolidShape, ...] = get_args(SolidShape)

#: Colors by role, which differ in lightness too: for the color-blind, and in gray (after Okabe
#: and Ito 2008, Color universal design).
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

#: Colors of bodies whose solids have none: neighbors in the list differ in hue and in lightness
#: (after Okabe and Ito 2008). The colors of motors and platforms are not among them.
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
    """Triangles.

    Attributes:
        vertices: corners (n, 3), m.
        faces: three numbers of corners each (f, 3), counter-clockwise from outside.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """A shape fixed to a body, or to a rod, whose frame has its origin in A and z along the rod.

    Attributes:
        body: name of the body or of the rod; ``ROD.lower`` and ``ROD.upper`` (origin in B) of a
            telescopic one.
        shape: one of `SHAPES`, centered on the solid's frame; round ones about its z axis.
        size: edges of a box; radius and length of a cylinder, and of a capsule without its ends;
            radius of a sphere; three factors of a mesh; m.
        position: position of its frame in that of the body, m.
        turns: successive turns of its frame from that of the body: axis and angle, rad.
        colour: ``#rrggbb``; "" for that of its `role`.
        role: its role in the machine, such as "link" or "motor" (see `ROLE_COLORS`).
        mesh: file or triangles of a mesh.
    """

    body: str
    shape: SolidShape
    size: tuple[float, ...]
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turns: tuple[tuple[Literal["x", "y", "z"], float], ...] = ()
    colour: str = ""
    role: str = "link"
    mesh: Path | Mesh | None = None


def convex(points: np.ndarray) -> Mesh:
    """Return the convex hull of points (k, 3) that do not lie in a plane."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    corners = points[faces]
    outwards = np.einsum(
        "fi,fi->f",
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]),
        hull.equations[:, :3],
    )
    faces[outwards < 0] = faces[outwards < 0][:, ::-1]
    kept, numbers = np.unique(faces, return_inverse=True)
    return Mesh(vertices=points[kept], faces=numbers.reshape(-1, 3))


def colour(solid: Solid) -> str:
    """Return the color of a solid or of its role: ``#rrggbb``."""
    return solid.colour or ROLE_COLORS.get(solid.role, ROLE_COLORS["link"])


def rgba(color: str) -> str:
    """Return a color ``#rrggbb`` as four numbers from 0 to 1; the last is the opacity."""
    return " ".join(f"{int(color[i : i + 2], 16) / 255:.4g}" for i in (1, 3, 5)) + " 1"
