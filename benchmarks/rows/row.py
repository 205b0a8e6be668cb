"""One row of the table of speed, and the table as text and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
#: Columns of the table of ratios before those of the peers.
RATIO_HEADINGS = ("work", "Tauloop", "over limit")
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
        all_peers: times of every peer by name, for the table of ratios; empty where there is one peer.
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
    all_peers: dict[str, float] = field(default_factory=dict)

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
    """Yield the lines of a page's table of the rows with one peer."""
    single = [row for row in rows if row.peer and not row.all_peers]
    yield from _markdown_table([list(PAGE_HEADINGS), *map(_page_cells, single)])


def ratios_markdown(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a page's table of ratios."""
    yield from _markdown_table(list(ratios(rows)))


def _page_cells(row: Row) -> list[str]:
    cells = dict(zip(HEADINGS, row.cells, strict=True))
    return [cells[heading] for heading in PAGE_HEADINGS]


def _markdown_table(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    head, *rest = lines
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for cells in rest:
        yield "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def ratios(rows: Sequence[Row]) -> Iterator[list[str]]:
    """Yield the rows of the table of ratios to every peer, the headings first."""
    rows = [row for row in rows if row.all_peers and row.tauloop]
    peers = list(dict.fromkeys(name for row in rows for name in row.all_peers))
    yield [*RATIO_HEADINGS, *peers]
    for row in rows:
        cells = dict(zip(HEADINGS, row.cells, strict=True))
        found = [row.all_peers.get(peer) for peer in peers]
        times = [f"{three(time / row.tauloop)}×" if time else "" for time in found]
        yield [*(cells[heading] for heading in RATIO_HEADINGS), *times]
