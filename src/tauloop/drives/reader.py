"""Read drive lines that come with Tauloop, or from files."""

from __future__ import annotations

from pathlib import Path

from tauloop.common.errors import DescriptionError
from tauloop.mechanism.description.drives.drive_file import read_drive
from tauloop.mechanism.description.yaml_nodes import read_text
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import listing, suggestion

_SHIPPED = Path(__file__).parent / "lines"

__all__ = ["drive_text", "load_drive", "read_drive", "shipped_drives"]


def shipped_drives() -> tuple[str, ...]:
    """Return the names of the drive lines that come with Tauloop."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def load_drive(name_or_path: str | Path) -> DriveLine:
    """Return a drive line that comes with Tauloop, or from a file.

    Args:
        name_or_path: name of a drive line that comes with Tauloop (an identifier), or path of a
            file.

    Raises:
        DescriptionError: there is no such file, or it is invalid; all problems at once.
    """
    return read_drive(*drive_text(name_or_path))


def drive_text(name_or_path: str | Path) -> tuple[str, str]:
    """Return the text of a drive line's file, and a name for it.

    Arguments and errors are those of `load_drive`.
    """
    if isinstance(name_or_path, str) and name_or_path.isidentifier():
        known = shipped_drives()
        if name_or_path not in known:
            remedy = suggestion(name_or_path, known) or f"there are {listing(known, 20)}"
            raise DescriptionError.of(
                name_or_path, "no drive line of this name comes with Tauloop", remedy
            )
        path = _SHIPPED / f"{name_or_path}.yaml"
        return read_text(path), path.name
    return read_text(Path(name_or_path)), str(name_or_path)
