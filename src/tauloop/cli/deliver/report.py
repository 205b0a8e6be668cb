"""``tauloop report``: a page of results that plays, needs no network and can be printed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish, page_ending
from tauloop.cli.terminal.progress import bar


@command(out=page_ending)
def report(
    results: Annotated[
        list[Path],
        typer.Argument(metavar="RESULT", help="JSON files that commands wrote with --json-file."),
    ],
    options: tl.ReportOptions,
    out: Annotated[Path, typer.Option(help="Write the page to this file (HTML).")] = Path(
        "report.html"
    ),
) -> None:
    """Make one HTML page of results: what was done with which files, tables, figures, the machine in motion, doubts.

    The page holds all that it shows, and asks for nothing from outside. It needs `pip install
    'tauloop[report]'`.
    """
    with bar("page") as progress:
        result = tl.write_report(results, out, options, progress=progress)
    finish(result)
