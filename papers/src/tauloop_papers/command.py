"""``tauloop reproduce``: a paper's experiment done again, with figures and a table of stated and own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tauloop.cli import FAILED, JsonOption, console, folder, print_json, reports_errors, table, writes
from tauloop.errors import InputError
from tauloop.result import Status, write_json
from tauloop_papers import EXPERIMENTS, Reproduction, experiment


@reports_errors
@writes(out=folder)
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="An experiment; all are listed without it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for figures and the result as JSON; it is made where it is missing.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Do a paper's experiment again: what it states, what comes out here, and why they differ."""
    if name is None:
        _list(as_json)
        return
    if out is not None and out.exists() and not out.is_dir():
        raise InputError.of(str(out), "is a file", "name a folder")
    chosen = experiment(name)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, transient=True, disable=as_json) as progress:
        task = progress.add_task("starting", total=None)
        found = chosen.run(lambda step: progress.update(task, description=step))
        written = _written(found, out) if out is not None else []
    if as_json:
        print_json({"status": found.status, "result": found, "files": [str(path) for path in written]})
    else:
        _print(found, written)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _written(found: Reproduction, folder: Path) -> list[Path]:
    from tauloop.report import save_figure

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError.of(
            str(folder), f"cannot be made: {error.strerror}", "name a folder you may write to"
        ) from error
    name, figures = found.experiment.name, found.experiment.figures(found).items()
    files = [save_figure(figure, folder / f"{name}-{part}.png") for part, figure in figures]
    return [*files, write_json(folder / f"{name}.json", {"status": found.status, "result": found})]


def _list(as_json: bool) -> None:
    if as_json:
        keys = ("name", "title", "source")
        print_json({"experiments": [{key: getattr(item, key) for key in keys} for item in EXPERIMENTS.values()]})
        return
    rows = table("Experiments", "name", "title", "source")
    for item in EXPERIMENTS.values():
        rows.add_row(item.name, item.title, item.source)
    console().print(rows)


def _print(found: Reproduction, written: list[Path]) -> None:
    screen = console()
    rows = table(found.experiment.title, "quantity", "unit", "stated", "ours", "why they differ")
    for item in found.comparisons:
        rows.add_row(item.quantity, item.unit, item.stated, item.ours, item.why)
    screen.print(rows)
    screen.print(f"source: {found.experiment.source}")
    screen.print("chosen here, because the paper does not say:")
    for choice in found.choices:
        screen.print(f"  - {choice}")
    for line in found.advice:
        screen.print(line)
    for path in written:
        screen.print(f"written: {path}")
