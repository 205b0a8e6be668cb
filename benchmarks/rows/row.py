"""One row of the table of speed, and the table as text and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Prefixes for seconds.
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
HEADINGS = (
    "work",
    "Tauloop",
    "peer",
    "peer's time",
    "ratio",
    "must reach",
    "limit",
    "over limit",
    "divider",
    "note",
)
#: Columns that a page of the documentation shows; the others serve who works on the code.
PAGE_HEADINGS = ("work", "Tauloop", "peer", "peer's time", "ratio", "limit", "note")
LEGEND = (
    "must reach: issue 3's targets, which are for a core with AVX-512.",
    "limit: operations / (2 units x vector lanes) at the measured clock (one lane for single calls and for one call "
    "from Python); divider: what its divisions and roots alone take at the throughput measured on this core.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Measured times, s; None where one does not exist.

    Attributes:
        work: machine and what is computed.
        tauloop: time of a call, of a sample, or of all.
        peer, version: the other program.
        peer_time: its time.
        target: target of issue 3 on a core with AVX-512, in words.
        limit: least time by the number of operations.
        divider: time of the divisions and roots alone.
        note: what the reader should know.
    """

    work: str
    tauloop: float | None
    peer: str = ""
    version: str = ""
    peer_time: float | None = None
    target: str = ""
    limit: float | None = None
    divider: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return the peer's time divided by Tauloop's."""
        return self.peer_time / self.tauloop if self.peer_time and self.tauloop else None

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the texts of a table's row, in the order of `HEADINGS`."""
        over = self.tauloop / self.limit if self.tauloop and self.limit else None
        return (
            self.work,
            duration(self.tauloop),
            f"{self.peer} {self.version}".strip(),
            duration(self.peer_time),
            f"{three(self.ratio)}×" if self.ratio else "",
            self.target,
            duration(self.limit),
            f"{three(over)}×" if over else "",
            duration(self.divider),
            self.note,
        )


def duration(seconds: float | None) -> str:
    """Return a time with three digits and a unit; empty for None."""
    if seconds is None:
        return ""
    scale, unit = next(((s, u) for s, u in _UNITS if abs(seconds) >= s), _UNITS[-1])
    return f"{three(seconds / scale)} {unit}"


def three(number: float) -> str:
    """Return a number with three digits, never with an exponent."""
    return f"{number:.{max(0, 2 - math.floor(math.log10(abs(number))))}f}" if number else "0"


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a page's table."""
    yield "| " + " | ".join(PAGE_HEADINGS) + " |"
    yield "|---" * len(PAGE_HEADINGS) + "|"
    for row in rows:
        cells = dict(zip(HEADINGS, row.cells, strict=True))
        shown = [cells[heading].replace("|", "/") for heading in PAGE_HEADINGS]
        yield "| " + " | ".join(shown) + " |"
