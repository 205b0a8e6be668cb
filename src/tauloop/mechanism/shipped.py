"""The machines that come with Tauloop, and the file that a name or path refers to."""

from __future__ import annotations

import re
from pathlib import Path

from tauloop.common.errors import DescriptionError, Problem
from tauloop.common.keywords import keywords
from tauloop.mechanism.suggestions import suggestion

#: Folders of the machine files: those used in all tests, and those of the gallery.
SHIPPED = Path(__file__).parent / "machines"
GALLERY = SHIPPED / "gallery"
#: Longest name of a shipped machine, characters; a longer word is a path.
LONGEST_NAME = 100


def _files(*folders: Path) -> dict[str, Path]:
    """Return the machine files by machine name, in alphabetical order."""
    return dict(sorted((path.stem, path) for folder in folders for path in folder.glob("*.yaml")))


@keywords()
def shipped_machines(*, gallery: bool = True) -> tuple[str, ...]:
    """Return the names of the machines that come with Tauloop, in alphabetical order.

    Args:
        gallery: whether the machines of the gallery are included.

    Examples:
        >>> import tauloop as tl
        >>> "delta" in tl.shipped_machines()
        True
    """
    return tuple(_files(SHIPPED, GALLERY) if gallery else _files(SHIPPED))


def machine_path(name: str) -> Path:
    """Return the file of a shipped machine.

    Raises:
        DescriptionError: there is no machine of that name.
    """
    paths = (
        [folder / f"{name}.yaml" for folder in (SHIPPED, GALLERY)] if is_shipped_name(name) else []
    )
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        problem = Problem(
            where=name,
            what="no machine of this name comes with Tauloop",
            remedy=(
                suggestion(name, shipped_machines()) or f"there are {', '.join(shipped_machines())}"
            )
            + f"; a file of this name is written ./{name}",
        )
        raise DescriptionError(problem)
    return path


def is_shipped_name(name_or_path: str | Path) -> bool:
    """Return whether a name is a plain word and so must be a shipped machine."""
    return (
        isinstance(name_or_path, str)
        and re.fullmatch(rf"\w{{1,{LONGEST_NAME}}}", name_or_path) is not None
    )


def source_path(name_or_path: str | Path) -> Path:
    """Return the file that `load` reads.

    Raises:
        DescriptionError: a plain word that no shipped machine has for a name.
    """
    return machine_path(str(name_or_path)) if is_shipped_name(name_or_path) else Path(name_or_path)
