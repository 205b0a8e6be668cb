"""Files that a description includes: which may be read, and how many."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tauloop.formats.xml.nodes import DEEPEST_NESTING, LARGEST_FILE, MOST_BODIES, XmlNode, XmlReader

#: Most files that are included one in the other, and of all.
DEEPEST_INCLUDES, MOST_INCLUDES = 20, 500
_OPTION = "--package-folder FOLDER"


class IncludedFiles(XmlReader):
    """Checks the files that a description includes: below its folder, or below folders that the caller names."""

    def __init__(self, file: str, folders: Iterable[str | Path]) -> None:
        """Start with the description itself.

        Args:
            file: the description.
            folders: further folders that may be read.
        """
        super().__init__(file)
        self.folder = Path(file).absolute().parent
        # of a link (ROS installs links to its sources) also the folder of the file that it leads to
        self._roots = [self.folder.resolve(), Path(file).resolve().parent]
        self._roots += [Path(folder).resolve() for folder in folders]
        self._bytes = 0
        self._bodies = 0
        self._files = 0

    def allowed(self, node: XmlNode, name: str, places: Iterable[Path]) -> Path | None:
        """Return the first of some places that is a file, links resolved; None where none may be read, which is noted.

        Args:
            node: the element that includes it.
            name: of the file in that element.
            places: where it may be.
        """
        outside = None
        for place in places:
            resolved = place.resolve()
            if not any(resolved.is_relative_to(root) for root in self._roots):
                outside = outside or place
            elif resolved.is_file():
                return resolved
        if outside is not None:
            what = f"it includes {name!r}, which is outside the folder of the file"
            self.problem(
                node, node.tag, what, f"name the folder that it may be read from: {_OPTION}"
            )
        else:
            self.problem(
                node,
                node.tag,
                f"it includes {name!r}, and there is no such file",
                "correct the name",
            )
        return None

    def count(self, node: XmlNode, path: Path, root: XmlNode) -> bool:
        """Take up the size of an included file; return whether it is not too much, which is noted."""
        self._files += 1
        self._bytes += path.stat().st_size
        self._bodies += sum(inner.tag in ("body", "link") for inner in root.walk())
        for amount, most, unit in (
            (self._bytes / 1e6, LARGEST_FILE / 1e6, "MB"),
            (self._bodies, MOST_BODIES, "bodies"),
            (self._files, MOST_INCLUDES, "parts"),
        ):
            if amount > most:
                what = f"the files that are included have more than {most:g} {unit}"
                self.problem(
                    node, node.tag, what, "give the machine alone, without its surroundings"
                )
                return False
        return True

    def is_too_deep(self, node: XmlNode, depth: int, includes: int) -> bool:
        """Return whether elements, or files that include one another, are nested too deep, which is noted."""
        if depth <= DEEPEST_NESTING and includes <= DEEPEST_INCLUDES:
            return False
        what = f"elements are nested more than {DEEPEST_NESTING} deep, or files more than {DEEPEST_INCLUDES}"
        self.problem(node, node.tag, what, "this is not a description of a machine")
        return True
