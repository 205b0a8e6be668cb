"""What came of writing a machine in another format."""

from __future__ import annotations

from tauloop.formats.format import Written
from tauloop.mechanism.model import Mechanism
from tauloop.records import dataclass
from tauloop.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion(Result):
    """The files that were written, and what is not as in the mechanism.

    Attributes:
        mechanism: what was written.
        format: name of the format.
        written: files and notes.
    """

    mechanism: Mechanism
    format: str
    written: Written

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "status": self.status.value,
            "machine": self.mechanism.name,
            "format": self.format,
            "files": [str(file) for file in self.written.files],
            "notes": list(self.written.notes),
        }
