"""``<include>`` of SDF: the model of another local file replaces the element, as in libsdformat.

.. code-block:: xml

    <include merge="true">          <!-- merge: its links and joints join the including model -->
      <uri>model://gripper</uri>    <!-- a folder with model.config, a file in it, or a path -->
      <name>left_gripper</name> <pose relative_to="flange">0 0 0.1 0 0 0</pose>
      <placement_frame>mount</placement_frame>
    </include>

Name, pose, placement frame and ``<static>`` replace those of the file; plugins are added. A path is
relative to the folder of the file that contains it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.formats.xml.includes import IncludeChecker
from tauloop.formats.xml.meshes import package_places
from tauloop.formats.xml.nodes import XmlNode, read_xml

INCLUDE = "include"
MERGE = "merge"
#: Oldest supported version.
MIN_SDF_VERSION = (1, 5)
#: Newest version whose specification is known here.
MAX_SDF_VERSION = (1, 12)
#: Elements of an include that are read or do not change the machine.
_INCLUDE_CHILDREN = (
    "uri",
    "name",
    "static",
    "pose",
    "placement_frame",
    "plugin",
    "namespace",
    "model_state",
)
#: URI schemes for the folder of a model.
_MODEL_SCHEMES = ("model", "package")
#: URI scheme for a file.
_FILE = "file"
#: File in the folder of a model that lists its SDF files.
_CONFIG = "model.config"
#: Default name of the SDF file in the folder of a model.
_MODEL = "model.sdf"


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfFiles:
    """A file with the models that it includes.

    Attributes:
        root: the root element, with models in place of includes.
        unread: problems of includes in worlds that were omitted, by URI.
    """

    root: XmlNode
    unread: dict[str, Problem]


def with_included_models(root: XmlNode, path: Path, folders: Iterable[str | Path]) -> SdfFiles:
    """Return the root element with models in place of ``<include>``.

    An include in a world that cannot be read remains unchanged, because it may be scenery.

    Args:
        root: root element of the main file.
        path: the main file.
        folders: folders of models, or their parent folders.

    Raises:
        DescriptionError: a file must not be read, includes itself, or is invalid.
    """
    if not any(node.tag == INCLUDE for node in root.walk()):
        return SdfFiles(root=root, unread={})
    folders = tuple(folders)
    files = IncludeChecker(str(path), folders)
    includer = _Includer(files=files, folders=folders)
    expanded = includer.expanded(root, (path.resolve(),), depth=1)
    files.raise_any()
    return SdfFiles(root=expanded, unread=includer.unread)


def _version(root: XmlNode) -> tuple[int, ...]:
    """Return the numbers of an SDF file's version; empty if it has none."""
    words = root.attributes.get("version", "").split(".")
    return tuple(map(int, words)) if all(word.isdecimal() for word in words) else ()


def version_problem(root: XmlNode) -> str:
    """Return the problem with an SDF file's version; empty if the version is supported."""
    if _version(root) >= MIN_SDF_VERSION:
        return ""
    return f"version {root.attributes.get('version', '')!r} is older than 1.5, or not a version"


def version_note(root: XmlNode) -> str:
    """Return a note if the version is newer than the newest known version; otherwise empty."""
    if _version(root) <= MAX_SDF_VERSION:
        return ""
    newest = ".".join(map(str, MAX_SDF_VERSION))
    return (
        f"the file has SDF version {root.attributes['version']}, which is newer than {newest}: it is "
        f"read by the rules of {newest}"
    )


@dataclass(slots=True, kw_only=True)
class _Includer:
    files: IncludeChecker
    folders: tuple[str | Path, ...]
    unread: dict[str, Problem] = field(default_factory=dict)

    def expanded(self, node: XmlNode, stack: tuple[Path, ...], depth: int) -> XmlNode:
        """Return a root, world or model with its includes replaced by models."""
        if self.files.is_too_deep(node, depth, len(stack) - 1):
            return replace(node, children=[])
        children: list[XmlNode] = []
        for child in node.children:
            if child.tag == INCLUDE:
                children += self._included(child, stack, depth, is_in_model=node.tag == "model")
            elif child.tag in ("world", "model"):
                children.append(self.expanded(child, stack, depth + 1))
            else:
                children.append(child)
        return replace(node, children=children)

    def _included(
        self, node: XmlNode, stack: tuple[Path, ...], depth: int, *, is_in_model: bool
    ) -> list[XmlNode]:
        """Return the model that replaces an include.

        An include in a world that cannot be read is returned unchanged.
        """
        first_problem = len(self.files.problems)
        if _is_merge(node) and not is_in_model:
            self.files.problem(
                node, INCLUDE, f"{MERGE} is not supported outside a model", f"remove {MERGE}"
            )
        model = self._model(node, stack, depth)
        problems = self.files.problems[first_problem:]
        if problems and model is None and not is_in_model:
            del self.files.problems[first_problem:]
            self.unread[_text(node, "uri") or "?"] = problems[0]
            return [node]
        return [] if model is None else [model]

    def _model(self, node: XmlNode, stack: tuple[Path, ...], depth: int) -> XmlNode | None:
        """Return the included model with its name, pose and plugins; None on an error."""
        uri = _text(node, "uri")
        if not uri:
            self.files.problem(node, INCLUDE, "has no <uri>", "add <uri>FILE</uri>")
            return None
        unsupported = sorted(
            {child.tag for child in node.children if child.tag not in _INCLUDE_CHILDREN}
        )
        if unsupported:
            what = f"<{unsupported[0]}> in an <include> is not supported"
            self.files.problem(node, INCLUDE, what, "change the included file instead")
            return None
        path = self._path(node, uri)
        if path is None:
            return None
        if path in stack:
            self.files.problem(
                node,
                INCLUDE,
                f"it includes {uri!r}, which includes itself",
                "remove one of these includes",
            )
            return None
        root = read_xml(path)
        model = self._top_model(node, uri, root)
        if model is None or not self.files.count(node, path, root):
            return None
        model = self.expanded(_with_mesh_paths(model, path.parent), (*stack, path), depth + 1)
        return self._with_include_values(node, model)

    def _path(self, node: XmlNode, uri: str) -> Path | None:
        """Return the file to which a URI refers, or None after adding a problem."""
        scheme, separator, rest = uri.partition("://")
        including_folder = Path(node.file).absolute().parent if node.file else self.files.folder
        if not separator or scheme == _FILE:
            candidates = [including_folder / (rest if separator else uri)]
        elif scheme in _MODEL_SCHEMES:
            name, _, inner = rest.partition("/")
            model_folders = [
                folder
                for folder in package_places(name, (*self.folders, self.files.folder))
                if folder.is_dir()
            ]
            if not model_folders:
                what = f"it includes {uri!r}, but there is no folder of the model {name!r}"
                remedy = "give the folder or its parent folder: --package-folder FOLDER"
                self.files.problem(node, INCLUDE, what, remedy)
                return None
            candidates = [folder / inner for folder in model_folders]
        else:
            what = f"it includes {uri!r}, which is not on this computer"
            self.files.problem(
                node, INCLUDE, what, "download the model, and give the path of its file"
            )
            return None
        return self.files.allowed(node, uri, [_file_of(candidate) for candidate in candidates])

    def _top_model(self, node: XmlNode, uri: str, root: XmlNode) -> XmlNode | None:
        """Return the only model of an included file, or None after adding a problem."""
        models = list(root.all("model"))
        reason = (
            version_problem(root)
            if root.tag == "sdf"
            else f"its root element is <{root.tag}>, not <sdf>"
        )
        if not reason and len(models) != 1:
            reason = (
                f"it has {len(models)} models outside worlds, but an included file must have one"
            )
        if not reason:
            return models[0]
        self.files.problem(
            node, INCLUDE, f"it includes {uri!r}: {reason}", "include an SDF file with one <model>"
        )
        return None

    def _with_include_values(self, node: XmlNode, model: XmlNode) -> XmlNode:
        """Return a model with the values that the include states."""
        attributes = dict(model.attributes)
        if name := _text(node, "name"):
            attributes["name"] = name
        if placement := _text(node, "placement_frame"):
            attributes["placement_frame"] = placement
            if node.first("pose") is None:
                what = "<placement_frame> in an <include> needs a <pose>"
                self.files.problem(
                    node, INCLUDE, what, "add <pose>, such as <pose>0 0 0 0 0 0</pose>"
                )
        if _is_merge(node):
            attributes[MERGE] = "true"
        candidates = (node.first("static"), node.first("pose"))
        replaced = [child for child in candidates if child is not None]
        tags = {child.tag for child in replaced}
        children = [child for child in model.children if child.tag not in tags]
        return replace(
            model, attributes=attributes, children=[*replaced, *children, *node.all("plugin")]
        )


def _is_merge(node: XmlNode) -> bool:
    return node.attributes.get(MERGE, "").strip().lower() in ("true", "1")


def _text(node: XmlNode, tag: str) -> str:
    child = node.first(tag)
    return "" if child is None else child.content


def _file_of(path: Path) -> Path:
    """Return the file of a model.

    For a folder, this is the newest file in the list of ``model.config``.
    """
    if not path.is_dir():
        return path
    config = path / _CONFIG
    if not config.is_file():
        return path / _MODEL
    versions = [node for node in read_xml(config).all("sdf") if node.content]
    versions.sort(
        key=lambda node: [
            int(word) for word in re.findall(r"\d+", node.attributes.get("version", ""))
        ]
    )
    return path / (versions[-1].content if versions else _MODEL)


def _with_mesh_paths(node: XmlNode, folder: Path) -> XmlNode:
    """Return an element with absolute mesh paths; paths are relative to their own file."""
    children = [_with_mesh_paths(child, folder) for child in node.children]
    if node.tag == "mesh":
        children = [
            replace(child, pieces=[str(folder / child.content)])
            if child.tag == "uri" and "://" not in child.content
            else child
            for child in children
        ]
    return replace(node, children=children)
