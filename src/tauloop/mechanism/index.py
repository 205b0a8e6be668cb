"""The index of shipped machines: a summary of each, without reading all of their files."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.mechanism.shipped import GALLERY, SHIPPED, machine_path

if TYPE_CHECKING:
    from tauloop.mechanism.model import Mechanism

#: The index next to the machine files. A test compares it with them (`pytest --update-golden`
#: rewrites it).
INDEX = SHIPPED / "index.json"


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
        machines: one row for each.
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


def summarised(name: str, mechanism: Mechanism) -> MachineSummary:
    """Return the summary of a machine."""
    return MachineSummary(
        name=name,
        bodies=len(mechanism.bodies),
        joints=len(mechanism.joints),
        rods=len(mechanism.rods),
        actuators=len(mechanism.actuators),
        group="gallery" if machine_path(name).parent == GALLERY else "core",
        summary=first_sentence(mechanism.description),
    )


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


def first_sentence(text: str) -> str:
    """Return the first sentence of a description on one line."""
    return _END.split(" ".join(text.split()), maxsplit=1)[0].rstrip(".")
