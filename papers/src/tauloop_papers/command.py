"""``tauloop paper reproduce``: reproduction of a paper's experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tauloop.cli import (
    FAILED,
    FOLDER,
    RESULT,
    JsonOption,
    command,
    console,
    print_json,
    reports_errors,
    table,
)
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop_papers import EXPERIMENTS, Comparison, Experiment, Reproduction, experiment
from tauloop_papers.alike import settings_on
from tauloop_papers.kept import Kept, code_of, keep, regular, reproduce_all
from tauloop_papers.notes import NOTES, claims
from tauloop_papers.page import CONTROLLER_HEADS, controller_rows, record, write_page

#: Folder for the results of `all` by default.
DEFAULT_FOLDER = Path("reproductions")
#: Smallest width of a terminal for tables of five columns; narrower ones get a list.
MIN_TABLE_WIDTH = 120


@command(
    out=FOLDER.of("pictures, result and page"),
    json_file=RESULT,
    out_default="for all: 'reproductions' by default",
)
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An experiment, or 'all'; lists all experiments by default."
        ),
    ] = None,
    out: Path | None = None,
    note: Annotated[
        bool,
        typer.Option(
            "--note",
            help="Only the values of the note for the paper's authors, papers/notes/NAME.md.",
        ),
    ] = False,
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Another machine (or drive line) file with the same elements as the paper's.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="With 'all': repeat experiments that already have results."),
    ] = False,
    json_file: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a paper's experiment: stated values, our values, and why they differ.

    `all` reproduces one experiment after the other and stores each result. After Ctrl-C, the next
    call continues.
    """
    if json_file is not None and (note or name in (None, "all")):
        raise InputError.of(
            "json_file",
            "a JSON file contains the result of one experiment",
            "name an experiment, without --note",
        )
    if machine is not None and (note or name in (None, "all")):
        raise InputError.of(
            "--machine", "is for one experiment", "name an experiment, without --note"
        )
    if note:
        _note(name or "all", as_json)
        return
    if name is None:
        _list(as_json)
        return
    where = out or (DEFAULT_FOLDER if name == "all" else None)
    if where is not None:
        _make(where)
    if name == "all":
        _all(where or DEFAULT_FOLDER, again, as_json)
        return
    chosen = experiment(name)
    settings = None if machine is None else settings_on(chosen, str(machine))
    with _shown(as_json) as show, ExitStack() as stack:
        code = code_of(chosen, settings)
        reproduction = chosen.run(partial(show, chosen), settings)
        kept = None
        if where is not None or json_file is not None:
            place = where or Path(stack.enter_context(TemporaryDirectory()))
            kept = keep(reproduction, place, code, is_filmed=where is not None)
        files = (
            []
            if kept is None or where is None
            else [*kept.files, write_page(where / f"{name}.html", [kept])]
        )
        if kept is not None and json_file is not None:
            files.append(record(kept).write_json(json_file, kept.data))
    status = reproduction.status if kept is None else kept.status
    if as_json:
        print_json(
            {"status": status, "result": reproduction, "files": [str(path) for path in files]}
        )
    else:
        _print(reproduction, files)
        if kept is not None and kept.data["controllers"]:
            console().print(
                table("In the controller", *CONTROLLER_HEADS, rows=controller_rows(kept))
            )
    if status is not Status.OK:
        raise typer.Exit(FAILED)


@reports_errors
def list_experiments(as_json: JsonOption = False) -> None:
    """List the experiments of papers, with what each of them checks."""
    _list(as_json)


def _note(name: str, as_json: bool) -> None:
    """Print the values of a note."""
    figures = claims(name)
    if not figures:
        raise InputError.of(
            "--note", f"there is no note on {name}", f"choose among {', '.join(NOTES)}"
        )
    if as_json:
        print_json({"status": Status.OK, "claims": figures})
        return
    title = f"Results of the method beyond the paper: {name}"
    rows = ((claim.what, claim.figure) for claim in figures)
    console().print(table(title, "quantity", "value", rows=rows))


def _all(where: Path, again: bool, as_json: bool) -> None:
    """Reproduce all experiments with their pages, and update the page of all after each."""

    def pages(there: list[Kept]) -> None:
        done = {kept.experiment.name for kept in there}
        if there:
            write_page(where / f"{there[-1].experiment.name}.html", there[-1:])
        write_page(
            where / "index.html", there, [item for item in regular() if item.name not in done]
        )

    with _shown(as_json) as show:
        there = reproduce_all(where, show, again=again, after_each=pages)
    worst = Status.OK if all(kept.status is Status.OK for kept in there) else Status.DOUBTFUL
    if as_json:
        results = {kept.experiment.name: kept.data for kept in there}
        print_json({"status": worst, "experiments": results, "page": str(where / "index.html")})
    else:
        rows = (
            (kept.experiment.name, kept.status.value, f"{kept.experiment.budget:.0f}")
            for kept in there
        )
        console().print(table("Experiments", "name", "status", "about, s", rows=rows))
        console().print(f"written: {where / 'index.html'}")
    if worst is not Status.OK:
        raise typer.Exit(FAILED)


@contextmanager
def _shown(is_quiet: bool) -> Iterator[Callable[[Experiment, str], None]]:
    """Show the current step of an experiment, its elapsed time and its expected time."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True, disable=is_quiet) as progress:
        tasks: dict[str, TaskID] = {}

        def show(item: Experiment, step: str) -> None:
            if item.name not in tasks:
                for task in tasks.values():
                    progress.remove_task(task)
                tasks.clear()
                tasks[item.name] = progress.add_task(item.name, total=None)
            line = f"{item.name}, about {item.budget:.0f} s: {step}"
            progress.update(tasks[item.name], description=line)

        yield show


def _make(where: Path) -> None:
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "name a folder" if where.is_file() else "name a folder you may write to"
        raise InputError.of(str(where), f"cannot be created: {error.strerror}", remedy) from error


def _list(as_json: bool) -> None:
    if as_json:
        keys = ("name", "title", "source", "budget")
        listed = []
        for item in EXPERIMENTS.values():
            listed.append({key: getattr(item, key) for key in keys})
        print_json({"experiments": listed})
        return
    rows = (
        (item.name, item.title, f"{item.budget:.0f}", item.source) for item in EXPERIMENTS.values()
    )
    console().print(table("Experiments", "name", "title", "about, s", "source", rows=rows))


def _print(reproduction: Reproduction, written: list[Path]) -> None:
    screen = console()
    for printed in reproduction.printed:
        rows = []
        for row in printed.rows:
            rows.append((row.name, "printed", *(cell or "–" for cell in row.stated)))
            rows.append(("", "ours", *(cell or "–" for cell in row.ours)))
        heads = (printed.columns[0], "figure", *printed.columns[1:])
        screen.print(table(f"{printed.name}: {printed.title}", *heads, rows=rows))
        screen.print(printed.why)
        screen.print()
    _compared(screen, reproduction)
    screen.print(f"source: {reproduction.experiment.source}")
    screen.print("our choices, which the paper leaves open:")
    for choice in reproduction.choices:
        screen.print(f"  - {choice}")
    for line in reproduction.advice:
        screen.print(line)
    for path in written:
        screen.print(f"written: {path}", soft_wrap=True)


def _compared(screen: Console, reproduction: Reproduction) -> None:
    """Print stated and our values as a table, or as a list on a narrow terminal."""
    if screen.width >= MIN_TABLE_WIDTH:
        rows = (
            (item.quantity, item.unit, item.stated, item.ours, item.why)
            for item in reproduction.comparisons
        )
        heads = ("quantity", "unit", "stated", "ours", "why they differ")
        screen.print(table(reproduction.experiment.title, *heads, rows=rows))
        return
    screen.print(Text(reproduction.experiment.title, style="table.title"))
    for item in reproduction.comparisons:
        screen.print()
        screen.print(
            Text(f"{item.quantity} [{item.unit}]" if item.unit else item.quantity, style="bold")
        )
        screen.print(_cells(item))
    screen.print()


def _cells(item: Comparison) -> Table:
    cells = Table.grid("", "", padding=(0, 2, 0, 0))
    cells.columns[0].no_wrap = True
    for head, text in (("stated", item.stated), ("ours", item.ours), ("why they differ", item.why)):
        if text:
            cells.add_row(head, Text(text))
    return cells
