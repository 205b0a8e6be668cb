"""``<include file="...">`` of MJCF, which is replaced by the elements of another file as in MuJoCo.

The root element of that file is dropped. The file name is relative to the folder of the main file
or, if there is no such file, to the folder of the including file. A file can be included once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tauloop.formats.xml.includes import IncludeChecker
from tauloop.formats.xml.nodes import XmlNode, read_xml

INCLUDE = "include"


def with_includes(root: XmlNode, path: Path, folders: Iterable[str | Path]) -> XmlNode:
    """Return the root element with the elements of included files in place of ``<include>``.

    Args:
        root: root element of the main file.
        path: the main file.
        folders: folders that may contain included files, in addition to that of the main file.

    Raises:
        DescriptionError: a file must not be read, is included twice, or is invalid.
    """
    if not any(node.tag == INCLUDE for node in root.walk()):
        return root
    files = IncludeChecker(str(path), folders)
    included = {path.resolve()}
    expanded = _expanded(root, files, included, depth=1, includes=0)
    files.raise_any()
    return expanded


def _expanded(
    node: XmlNode, files: IncludeChecker, included: set[Path], depth: int, includes: int
) -> XmlNode:
    if files.is_too_deep(node, depth, includes):
        return replace(node, children=[])
    children: list[XmlNode] = []
    for child in node.children:
        if child.tag == INCLUDE:
            children += _included(child, files, included, depth, includes)
        else:
            children.append(_expanded(child, files, included, depth + 1, includes))
    return replace(node, children=children)


def _included(
    node: XmlNode, files: IncludeChecker, included: set[Path], depth: int, includes: int
) -> list[XmlNode]:
    """Return the elements that replace an ``<include>``."""
    name = files.text(node, INCLUDE, "file")
    if node.children:
        files.problem(node, INCLUDE, "an <include> contains elements", "remove them")
        return []
    if not name:
        return []
    including_folder = Path(node.file).absolute().parent if node.file else files.folder
    path = files.allowed(node, name, (files.folder / name, including_folder / name))
    if path is None:
        return []
    if path in included:
        files.problem(node, INCLUDE, f"{name!r} is included twice", "include a file once")
        return []
    included.add(path)
    root = read_xml(path)
    if not files.count(node, path, root):
        return []
    return _expanded(root, files, included, depth, includes + 1).children
