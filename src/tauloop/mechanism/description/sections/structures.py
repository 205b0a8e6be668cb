"""Reduced finite-element models of a machine file: interface nodes, and matrices in other files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tauloop.common.counts import counted
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.sections.elastic import read_point
from tauloop.mechanism.description.structure import Names
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.elastic.structures import (
    MatrixError,
    NumericMatrix,
    ReducedStructure,
    checked_matrix,
    read_archive,
    read_csv,
)
from tauloop.mechanism.model import Placement


def read_structure(
    name: str,
    cursor: Cursor,
    values: ValueReader,
    names: Names,
    points: Mapping[str, Mapping[str, Placement]],
) -> ReducedStructure | None:
    """Return a reduced structure, or None after adding a problem.

    Args:
        name: name of the structure.
        cursor: position in the file.
        values: reads the positions of nodes.
        names: all elements of the machine by name.
        points: placements of joints, rods and frames, by name and then by body.
    """
    body = names.find(cursor.get("on"), ("body",))
    if body is None:
        return None
    interface_points = [
        read_point(place, values, body, points) for place in cursor.items_of("nodes")
    ]
    nodes = [point for point in interface_points if point is not None]
    if len(nodes) < len(interface_points) or not nodes:
        return None
    has_file = cursor.has("file")
    has_csv = cursor.has("stiffness") or cursor.has("mass")
    if has_file == has_csv or (has_csv and not cursor.has("stiffness")):
        cursor.problem(
            "the matrices must be in one .npz file or in CSV files",
            "write `file: NAME.npz`, or `stiffness: K.csv` and `mass: M.csv`",
        )
        return None
    keys = ("file",) if has_file else ("stiffness", "mass")
    files = [_path(cursor, key) for key in keys if cursor.has(key)]
    matrices = _matrices(cursor, files, len(nodes))
    if matrices is None:
        return None
    return ReducedStructure(
        name=name,
        body=body,
        nodes=tuple(position for position, _ in nodes),
        interfaces=tuple(interface for _, interface in nodes),
        stiffness=matrices[0],
        mass=matrices[1],
        files=tuple(files),
    )


def _path(cursor: Cursor, key: str) -> Path:
    """Return the path of a file, given relative to the folder of the machine file."""
    path = Path(cursor.word(key) or "")
    folder = cursor.collector.folder
    return path if folder is None or path.is_absolute() else (folder / path).resolve()


def _matrices(
    cursor: Cursor, files: list[Path], nodes: int
) -> tuple[NumericMatrix, NumericMatrix | None] | None:
    """Return K and M of the files, or None after adding a problem."""
    path = files[0]
    try:
        K, M = read_archive(path) if cursor.has("file") else (read_csv(path), None)
        stiffness = checked_matrix("K", K, nodes)
        if len(files) > 1:
            path = files[1]
            M = read_csv(path)
        mass = None if M is None else checked_matrix("M", M, nodes)
        if mass is not None and mass.array.shape != stiffness.array.shape:
            raise MatrixError(
                f"M has {counted(len(mass.array), 'row')}, but K has {len(stiffness.array)}",
                "export both matrices of the same model",
            )
    except MatrixError as error:
        key = "file" if cursor.has("file") else "stiffness"
        if len(files) > 1 and path == files[1]:
            key = "mass"
        cursor.problem(f"{path.name}: {error.what}", error.remedy, key)
        return None
    return stiffness, mass
