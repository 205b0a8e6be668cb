"""Solids: read from the section `visual` of a machine file, or created at a pose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.names.lazy import lazy_functions
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.grammar import COLOR
from tauloop.mechanism.description.placements import Placements, constant_turns
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.model import Placement
from tauloop.mechanism.poses import rotation_matrix
from tauloop.mechanism.solids.solid import SHAPES, Mesh, Solid, SolidShape

if TYPE_CHECKING:
    from tauloop.mechanism.links.rigid_tree import constant_angles
else:
    (constant_angles,) = lazy_functions("tauloop.mechanism.links.rigid_tree", "constant_angles")

#: Extensions of supported mesh files.
MESH_EXTENSIONS = (".stl", ".obj", ".glb", ".ply", ".off")


def read_visual(
    cursor: Cursor, values: ValueReader, placements: Placements, rods: Mapping[str, Cursor]
) -> Solid | None:
    """Return a solid, or None after adding a problem.

    Args:
        cursor: position in the file.
        values: reader of values.
        placements: reader of bodies and frames.
        rods: cursors of the rods, by name.
    """
    shapes = [shape for shape in SHAPES if cursor.has(shape)]
    if len(shapes) != 1:
        cursor.problem(
            f"a visual has one shape, not {len(shapes)}", f"write one of {', '.join(SHAPES)}"
        )
        return None
    if shapes[0] != "mesh" and cursor.has("scale"):
        cursor.problem(
            "only a mesh can have `scale`", "remove it, and give sizes with units", "scale"
        )
    color = cursor.word("color") or ""
    if color and not re.fullmatch(COLOR, color):
        cursor.problem(
            f"{color!r} is not a color",
            "write red, green and blue in quotes, such as '#d08c2e'",
            "color",
        )
    frame = _frame(cursor, placements, rods)
    size = _size(cursor, shapes[0], values)
    turns = constant_turns(cursor.get("turn"), values)
    offset_cursor = cursor.get("at")
    offset = (
        [values.number(item) for item in offset_cursor.items()]
        if offset_cursor is not None
        else [0.0] * 3
    )
    mesh = _mesh(cursor) if shapes[0] == "mesh" else None
    if frame is None or size is None or turns is None or None in offset or len(offset) != 3:
        return None
    frame_rotations = [(turn.axis, values.nominal(turn.angle)) for turn in frame.turns]
    origin = np.array([values.nominal(component) for component in frame.position])
    x, y, z = (origin + rotation_matrix(frame_rotations) @ np.array(offset, dtype=float)).tolist()
    return Solid(
        body=frame.body,
        shape=shapes[0],
        size=size,
        position=(x, y, z),
        turns=(*frame_rotations, *turns),
        color=color.lower(),
        mesh=mesh,
    )


def solid_at(
    body: str,
    shape: SolidShape,
    size: tuple[float, ...],
    position: np.ndarray,
    rotation: np.ndarray,
    role: str = "link",
    *,
    color: str = "",
    mesh: Path | Mesh | None = None,
) -> Solid:
    """Return a solid at a pose: position (3,), m, and rotation (3, 3) in the frame of its body."""
    x, y, z = position.tolist()
    turns = tuple(constant_angles(rotation).items())
    return Solid(
        body=body,
        shape=shape,
        size=size,
        position=(x, y, z),
        turns=turns,
        role=role,
        color=color,
        mesh=mesh,
    )


def _frame(cursor: Cursor, placements: Placements, rods: Mapping[str, Cursor]) -> Placement | None:
    """Return the placement of `on`: a body, frame, rod, ``ROD.lower`` or ``ROD.upper``."""
    on = cursor.get("on")
    if on is None or on.text is None:
        return None
    name, _, end = on.text.rpartition(".")
    for rod_name in (cursor.prefix + on.text, on.text):
        if rod_name in rods:
            if rods[rod_name].has("telescopic"):
                on.problem(
                    f"{rod_name} is telescopic: it has two parts",
                    f"name {rod_name}.lower or {rod_name}.upper",
                )
                return None
            return Placement(body=rod_name)
    for rod_name in (cursor.prefix + name, name):
        if rod_name in rods and rods[rod_name].has("telescopic") and end in ("lower", "upper"):
            return Placement(body=f"{rod_name}.{end}")
    return placements.read(on)


def _size(cursor: Cursor, shape: SolidShape, values: ValueReader) -> tuple[float, ...] | None:
    """Return the dimensions of a solid, all positive; None if one is invalid."""
    size_cursor = cursor.get("scale" if shape == "mesh" else shape)
    if size_cursor is None:
        return (1.0, 1.0, 1.0) if shape == "mesh" else None
    if shape in ("cylinder", "capsule"):
        numbers = [values.number(size_cursor.get(key)) for key in ("radius", "length")]
    else:
        numbers = [
            values.number(item)
            for item in (size_cursor.items() if size_cursor.text is None else [size_cursor])
        ]
    if shape == "mesh" and len(numbers) == 1:
        numbers *= 3
    dimensions = tuple(number for number in numbers if number is not None)
    return (
        dimensions
        if len(dimensions) == len(numbers) == {"box": 3, "mesh": 3, "sphere": 1}.get(shape, 2)
        else None
    )


def _mesh(cursor: Cursor) -> Path | None:
    """Return the file of a mesh; report a missing or unsupported file."""
    mesh_cursor = cursor.get("mesh")
    if mesh_cursor is None or not mesh_cursor.text:
        return None
    path = Path(mesh_cursor.text)
    if path.suffix.lower() not in MESH_EXTENSIONS:
        mesh_cursor.problem(
            f"{path.name} is not a supported mesh file",
            f"the file extension must be one of {', '.join(MESH_EXTENSIONS)}",
        )
    if cursor.collector.folder is None and not path.is_absolute():
        return path  # a machine given as text: relative to the current folder
    # absolute, because exported files in other folders refer to this path
    path = ((cursor.collector.folder or Path()) / path).resolve()
    if not path.is_file():
        mesh_cursor.problem(
            f"there is no file {path}",
            "correct the path; it is relative to the folder of the machine file",
        )
    return path
