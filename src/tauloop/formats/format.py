"""What a format of machine files is: the base of Tauloop's own and of those that other packages bring."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import ClassVar

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.formats.options import ImportOptions
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Shown):
    """What was written.

    Attributes:
        files: the files, that of the machine first.
        notes: what is not as in the mechanism; empty where the file reads back to an equal one.
        side: the side file among the files.
        names: names in the file by those of the mechanism, where they differ: bodies, coordinates,
            actuators.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    side: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)


class Format(ABC):
    """A format that machines are read from or written in; `read`, `write`, or both are defined.

    A package brings its own by an entry point of the group ``tauloop.formats`` that names an
    instance. `load`, `convert` and the commands then find it by the file's ending (Tauloop's own
    formats come first, and what no format claims is a machine file) or by its name.

    Attributes:
        name: one word, for ``tauloop convert --format``.
        title: what a file of it is called in messages, such as ``a URDF file``.
        endings: of its files, in lower case with the dot.
        motor_element: how a file of it states a motor on JOINT, for messages.
        refused: import options that mean nothing here, by field of `ImportOptions` (``side`` among
            them): why, as in "... is a URDF file, which has no keyframes".
    """

    name: ClassVar[str]
    title: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]
    motor_element: ClassVar[str] = "the element for a motor on JOINT"
    refused: ClassVar[Mapping[str, str]] = {"side": "which has no side file"}

    def claims(self, path: Path) -> bool:
        """Return whether a file is of this format; by its ending, unless formats share that."""
        return path.suffix.lower() in self.endings

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> Mechanism:
        """Return the mechanism of a file.

        Args:
            path: the file.
            side: what stands beside it, for formats that have that.
            options: choices of whoever imports; None for none.

        Raises:
            DescriptionError: everything that is wrong with the file, each with its place.
        """
        what, remedy = f"{self.title} can only be written", "give a file of another format"
        raise InputError.of(str(path), what, remedy)

    def write(self, mechanism: Mechanism, path: Path) -> Written:
        """Write a mechanism, whole or not at all (`tauloop.common.files.write_file`).

        Raises:
            DescriptionError: the format cannot hold this machine, and why.
            InputError: the file cannot be written.
        """
        raise InputError.of("to", f"{self.title} can only be read", "choose another format")

    @property
    def reads(self) -> bool:
        """Return whether machines are read from it."""
        return type(self).read is not Format.read

    @property
    def writes(self) -> bool:
        """Return whether machines are written in it."""
        return type(self).write is not Format.write

    def require_meaning(
        self, path: str | Path, side: Path | None, options: ImportOptions | None
    ) -> None:
        """Refuse import options that mean nothing for this format.

        Raises:
            InputError: all of them, with the reasons.
        """
        changed = {"side"} if side is not None else set()
        if options is not None:
            changed |= {
                item.name for item in fields(options) if getattr(options, item.name) != item.default
            }
        problems = Problems()
        for name in self.refused:
            if name in changed:
                problems.add(name, f"{path} is {self.title}, {self.refused[name]}", "leave it out")
        InputError.raise_if_any(problems)


def named(name: str, formats: Mapping[str, Format]) -> Format:
    """Return the format of a name.

    Raises:
        InputError: there is none.
    """
    InputError.raise_if_any(unknown_names([name], formats, "{!r} is unknown", "to"))
    return formats[name]
