"""The machines that come with Tauloop: their files, and their index with a summary of each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tauloop.common.keywords import keywords
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass
from tauloop.common.result import Status

if TYPE_CHECKING:
    from tauloop.mechanism.model import Mechanism

#: Folders of the machine files: those used in all tests, and those of the gallery.
SHIPPED = Path(__file__).parent / "machines"
GALLERY = SHIPPED / "gallery"
#: Index of the machine files. A test compares it with the files (`pytest --update-golden` rewrites
#: it).
INDEX = SHIPPED / "index.json"
#: Abbreviations whose full stop does not end a sentence.
ABBREVIATIONS = (
    "Fig",
    "Figs",
    "fig",
    "Eq",
    "Eqs",
    "eq",
    "eqs",
    "Sec",
    "No",
    "al",
    "cf",
    "e.g",
    "i.e",
    "approx",
    "vs",
)
_END = re.compile("".join(rf"(?<!\b{re.escape(word)})" for word in ABBREVIATIONS) + r"\. |: ")


def _files(*folders: Path) -> dict[str, Path]:
    """Return the machine files by machine name, in alphabetical order."""
    return dict(sorted((path.stem, path) for folder in folders for path in folder.glob("*.yaml")))


@keywords()
def shipped_machines(*, gallery: bool = True) -> tuple[str, ...]:
    """Return the names of the machines that come with Tauloop, in alphabetical order.

    Args:
        gallery: whether to include the machines of the gallery.

    Examples:
        >>> import tauloop as tl
        >>> "delta" in tl.shipped_machines()
        True
    """
    return tuple(_files(SHIPPED, GALLERY) if gallery else _files(SHIPPED))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSummary:
    """Summary of one machine.

    Attributes:
        name: name for commands and `load`.
        bodies, joints, rods, actuators: number of each.
        group: `core` (used in all tests) or `gallery`.
        summary: the first sentence of its description.
    """

    name: str
    bodies: int
    joints: int
    rods: int
    actuators: int
    group: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIndex(PlainData):
    """The shipped machines, in alphabetical order.

    Attributes:
        machines: summary of each machine.
    """

    machines: tuple[MachineSummary, ...]

    @property
    def status(self) -> Status:
        """OK: the index has no diagnostics."""
        return Status.OK


def machine_index() -> MachineIndex:
    """Return the index of the machines that come with Tauloop."""
    rows = json.loads(INDEX.read_text(encoding="utf-8"))["machines"]
    return MachineIndex(machines=tuple(MachineSummary(**row) for row in rows))


def summarized(name: str, mechanism: Mechanism) -> MachineSummary:
    """Return the summary of a machine."""
    return MachineSummary(
        name=name,
        bodies=len(mechanism.bodies),
        joints=len(mechanism.joints),
        rods=len(mechanism.rods),
        actuators=len(mechanism.actuators),
        group="gallery" if (GALLERY / f"{name}.yaml").is_file() else "core",
        summary=first_sentence(mechanism.description),
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a description on one line."""
    return _END.split(" ".join(text.split()), maxsplit=1)[0].rstrip(".")
