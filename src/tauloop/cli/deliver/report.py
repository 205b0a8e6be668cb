"""``tauloop report``: a page of results that plays, needs no network and can be printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import PAGE
from tauloop.cli.terminal.progress import bar


@command(out=PAGE, out_default="report.html without it")
def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT", help="JSON files that commands wrote with --out."),
    ],
    options: tl.ReportOptions,
    out: Path | None = None,
) -> None:
    """Make one HTML page of results: what was done with which files, tables, figures, the machine in motion, doubts.

    The page holds all that it shows, and asks for nothing from outside. It needs `pip install
    'tauloop[report]'`.
    """
    with bar("page") as progress:
        result = tl.write_report(results, out or Path("report.html"), options, progress=progress)
    finish(result)
