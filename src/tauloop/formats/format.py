"""Base class of the formats of machine files, Tauloop's own and those of other packages."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import ClassVar

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(ReprMixin):
    """Files that a writer created, and their differences from the mechanism.

    Attributes:
        files: the files; the machine's file comes first.
        notes: differences from the mechanism; empty if the file reads back to an equal mechanism.
        side: the side file; None if there is none.
        names: renamed bodies, coordinates and actuators: name in the file by name in the mechanism.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    side: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)


class Format(ABC):
    """A format of machine files; subclasses define `read`, `write` or both.

    A package registers its format by an entry point of the group ``tauloop.formats`` that names an
    instance. `load`, `convert` and the commands then find it by file extension or by its name.
    Tauloop's own formats come first; a file that no format claims is read as a machine file.

    Attributes:
        name: one word, for ``tauloop convert --format``.
        title: noun for a file of this format in messages, such as ``a URDF file``.
        endings: file extensions in lower case, with the dot.
        motor_element: the element that defines a motor on JOINT in this format, for messages.
        refused: reason by field of `ImportOptions` (and ``side``) for options that do not apply to
            this format, such as "which has no keyframes".
        is_kinematic: whether files have no masses, so that forces cannot be compared after writing.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    motor_element: ClassVar[str] = "the element for a motor on JOINT"
    refused: ClassVar[Mapping[str, str]] = {"side": "which has no side file"}
    is_kinematic: ClassVar[bool] = False

    def claims(self, path: Path) -> bool:
        """Return whether a file is of this format, by its extension or (if shared) its content."""
        return path.suffix.lower() in self.endings

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """Return the mechanism of a file.

        Args:
            path: the file.
            side: the side file, for formats that have one.
            options: import options of the caller; None for the defaults.

        Raises:
            DescriptionError: all problems of the file, each with its location.
        """
        problem, remedy = f"{self.title} can only be written", "give a file of another format"
        raise InputError.of(str(path), problem, remedy)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """Write a mechanism; on an error no file is left (`tauloop.common.files.write_file`).

        Returns:
            The written files, and notes on properties that the format cannot represent.

        Raises:
            DescriptionError: the format cannot represent this machine, with the reason.
            InputError: the file cannot be written.
        """
        raise InputError.of(
            "format",
            f"{self.title} can only be read",
            "choose a format that can be written, such as yaml",
        )

    @property
    def reads(self) -> bool:
        """Return whether machines can be read from this format."""
        return type(self).read is not Format.read

    @property
    def writes(self) -> bool:
        """Return whether machines can be written in this format."""
        return type(self).write is not Format.write

    def require_meaning(
        self, path: str | Path, side: Path | None, options: ImportOptions | None
    ) -> None:
        """Reject import options that do not apply to this format.

        Raises:
            InputError: options do not apply; the message lists all of them with the reason.
        """
        changed = {"side"} if side is not None else set()
        if options is not None:
            changed |= {
                item.name for item in fields(options) if getattr(options, item.name) != item.default
            }
        problems = Problems()
        for name in self.refused:
            if name in changed:
                problems.add(name, f"{path} is {self.title}, {self.refused[name]}", "omit it")
        InputError.raise_if_any(problems)


def named(name: str, formats: Mapping[str, Format]) -> Format:
    """Return the format with a name.

    Raises:
        InputError: there is no such format.
    """
    InputError.raise_if_any(unknown_names([name], formats, "{!r} is unknown", "format"))
    return formats[name]
