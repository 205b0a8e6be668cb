"""``tauloop report``: an HTML page of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import PAGE
from tauloop.cli.terminal.screen import bar


@command(out=PAGE, out_default="Default: report.html")
def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT", help="JSON files that commands wrote with --out."),
    ],
    options: tl.ReportOptions,
    out: Path | None = None,
) -> None:
    """Write one HTML page of results: files, tables, figures, the machine in motion, failed diagnostics.

    The page can be played and printed without network access. Writing it needs
    `pip install 'tauloop[report]'`.
    """
    with bar("page") as progress:
        result = tl.write_report(results, out or Path("report.html"), options, progress=progress)
    finish(result)
