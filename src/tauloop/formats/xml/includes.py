"""Limits on the files that a description includes: allowed folders, number and depth."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tauloop.formats.xml.nodes import MAX_BODIES, MAX_FILE_BYTES, MAX_NESTING, XmlNode, XmlReader

#: Largest depth of nested includes, and maximum number of included files.
MAX_INCLUDE_DEPTH, MAX_INCLUDES = 20, 500
_OPTION = "--package-folder FOLDER"


class IncludeChecker(XmlReader):
    """Checks that included files are below the description's folder or the caller's folders."""

    def __init__(self, file: str, folders: Iterable[str | Path]) -> None:
        """Create a checker for the includes of a description.

        Args:
            file: path of the description.
            folders: further folders that may be read.
        """
        super().__init__(file)
        self.folder = Path(file).absolute().parent
        # for a symbolic link (as in ROS installations) also the folder of its target
        self._roots = [self.folder.resolve(), Path(file).resolve().parent]
        self._roots += [Path(folder).resolve() for folder in folders]
        self._bytes = 0
        self._bodies = 0
        self._files = 0

    def allowed(self, node: XmlNode, name: str, candidates: Iterable[Path]) -> Path | None:
        """Return the first candidate that is a file, with links resolved.

        If there is none, add a problem and return None.

        Args:
            node: the including element.
            name: file name in that element.
            candidates: candidate paths.
        """
        outside = None
        for candidate in candidates:
            resolved = candidate.resolve()
            if not any(resolved.is_relative_to(root) for root in self._roots):
                outside = outside or candidate
            elif resolved.is_file():
                return resolved
        if outside is not None:
            what = f"it includes {name!r}, which is outside the folder of the file"
            self.problem(node, node.tag, what, f"allow its folder with {_OPTION}")
        else:
            self.problem(
                node,
                node.tag,
                f"it includes {name!r}, but there is no such file",
                "correct the name",
            )
        return None

    def count(self, node: XmlNode, path: Path, root: XmlNode) -> bool:
        """Count an included file; return whether the totals are within limits, else report it."""
        self._files += 1
        self._bytes += path.stat().st_size
        self._bodies += sum(inner.tag in ("body", "link") for inner in root.walk())
        for amount, limit, unit in (
            (self._bytes / 1e6, MAX_FILE_BYTES / 1e6, "MB"),
            (self._bodies, MAX_BODIES, "bodies"),
            (self._files, MAX_INCLUDES, "files"),
        ):
            if amount > limit:
                what = f"more than {limit:g} {unit} are included"
                self.problem(
                    node, node.tag, what, "give only the machine, without its surroundings"
                )
                return False
        return True

    def is_too_deep(self, node: XmlNode, depth: int, includes: int) -> bool:
        """Return whether elements or includes are nested too deep; add a problem if so."""
        if depth <= MAX_NESTING and includes <= MAX_INCLUDE_DEPTH:
            return False
        what = (
            f"elements are nested more than {MAX_NESTING} levels deep, "
            f"or files more than {MAX_INCLUDE_DEPTH}"
        )
        self.problem(node, node.tag, what, "check that the file describes a machine")
        return True
