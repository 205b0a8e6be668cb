"""Reports in one call: from results or their files to an HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options
from tauloop.common.plain import OMITTED, in_json, records
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, provenance
from tauloop.display.page_records import PageRecord, page_record
from tauloop.display.pieces import MotionScene, Piece, Plot, Table
from tauloop.display.record_reading import read_record
from tauloop.viewer.pages.document import write_page


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    """Options of a report.

    Attributes:
        title: heading of a report of several results.
        animation: show the machine in motion; this adds 0.9 MB for each result with a motion.

    Examples:
        >>> import tauloop as tl
        >>> tl.ReportOptions(title="My arm", animation=False).title
        'My arm'
    """

    title: str = "Report"
    animation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport(Result):
    """A written report.

    Attributes:
        path: the page.
        size: size of the page, bytes.
        records: records of the results on the page.
    """

    path: Path
    size: int
    records: tuple[PageRecord, ...] = field(metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the number of tables, plots and scenes of every result."""
        yield Variable(
            name="result", values=[item.title for item in self.records], over=("result",)
        )
        for name, kind in (("tables", Table), ("plots", Plot), ("scenes", MotionScene)):
            counts = [len(self.titles(item, kind)) for item in self.records]
            yield Variable(name=name, values=counts, over=("result",))

    @property
    @in_json("results")
    def result_rows(self) -> list[dict[str, Any]]:
        """Return the contents of the page for every result."""
        return records(
            kind=[item.kind for item in self.records],
            title=[item.title for item in self.records],
            status=[item.status for item in self.records],
            tables=[self.titles(item, Table) for item in self.records],
            plots=[self.titles(item, Plot) for item in self.records],
            scenes=[self.titles(item, MotionScene) for item in self.records],
        )

    @staticmethod
    def titles(shown: PageRecord, kind: type[Piece]) -> list[str]:
        """Return the headings of the tables, plots or scenes of a record."""
        return [piece.title for piece in shown.pieces if isinstance(piece, kind)]  # type: ignore[union-attr]


@keywords(ReportOptions)
def write_report(
    results: object | Iterable[object],
    path: str | Path,
    options: ReportOptions | None = None,
    *,
    progress: Progress | None = None,
) -> WrittenReport:
    """Write results as one HTML page, which can be played and printed without network access.

    Args:
        results: one or several results of workflows, their records, or JSON files that commands
            wrote with ``--out``.
        path: the page.
        options: title, and whether machines in motion are shown.
        progress: function (completed stages, all stages).

    Returns:
        The path of the page, and the results that it shows.

    Raises:
        InputError: there are no results, or files are damaged or are not results; all files are
            reported at once.
        EngineError: plotly or viser is not installed.

    Examples:
        >>> import tauloop as tl
        >>> fall = tl.simulate("four_bar", duration=0.05)
        >>> tl.write_report(fall, "fall.html", animation=False).path.name
        'fall.html'
    """
    options = options or ReportOptions()
    items = results if isinstance(results, list | tuple) else [results]
    problems, records = Problems(), list[PageRecord]()
    for item in items:
        with problems.collecting(InputError):
            content = read_record(item) if isinstance(item, str | Path) else item
            records.append(content if isinstance(content, PageRecord) else page_record(content))
    if not items:
        problems.add("results", "there are no results", "give at least one")
    InputError.raise_if_any(problems)
    if not options.animation:
        records = [_without_scenes(record) for record in records]
    title = options.title if len(records) > 1 else records[0].title
    written = write_page(path, title, records, progress=progress)
    return WrittenReport(
        path=written,
        size=written.stat().st_size,
        records=tuple(records),
        diagnostics=(),
        provenance=provenance(
            options={"title": options.title, "film": options.animation}, packages=()
        ),
    )


def _without_scenes(record: PageRecord) -> PageRecord:
    """Return a record without machines in motion."""
    pieces = [piece for piece in record.pieces if not isinstance(piece, MotionScene)]
    return replace(record, pieces=tuple(pieces))
