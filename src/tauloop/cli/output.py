"""What all commands share: consoles, JSON, errors as text or JSON, exit codes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tauloop.cli.machine import Beside, SideOption
from tauloop.cli.screen import Screen, json_text
from tauloop.errors import InputError, Problem, TauloopError, solving
from tauloop.files import require_writable, unwritable_folder
from tauloop.result import Evidence, plain

OK, FAILED, BAD_INPUT = 0, 1, 2

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text.")]


def console() -> Console:
    """Console for results (standard output)."""
    return Screen(highlight=False, markup=False, soft_wrap=False)


def print_json(data: Mapping[str, Any]) -> None:
    """Print plain data as JSON on standard output."""
    typer.echo(json_text(plain(data)))


def table(title: str, *columns: str, numeric: tuple[int, ...] = ()) -> Table:
    """An empty table; the columns with the given indices hold numbers, which are never cut off."""
    result = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for i, column in enumerate(columns):
        result.add_column(column, justify="right" if i in numeric else "left", no_wrap=i in numeric)
    return result


def log_ending(path: Path) -> Problem | None:
    """What is wrong with the name of a file that is to hold a log."""
    from tauloop.logs.writing import unknown_ending

    return unknown_ending(path)


def figure_ending(path: Path) -> Problem | None:
    """What is wrong with the name of a file that is to hold a figure."""
    from tauloop.report.figures import unknown_figure_ending

    return unknown_figure_ending(path)


def any_ending(_: Path) -> None:
    """Nothing is wrong with any name."""


def folder(path: Path) -> Problem | None:
    """What is wrong with a folder that is to hold files."""
    return unwritable_folder(path)


def writes(
    also: Callable[[Mapping[str, Any]], Problem | None] = lambda _: None, **files: Callable[[Path], Problem | None]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check the files that a command writes before its work begins.

    Args:
        also: what else is wrong with the command's arguments, to be said together.
        files: what is wrong with a name, by the command's argument: `log_ending`, `figure_ending`, `any_ending`;
            `folder` for one that holds files.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            given = {name: kwargs[name] for name in files if kwargs.get(name) is not None}
            problems = [problem for name, path in given.items() if (problem := files[name](path))]
            try:
                require_writable(*(path for name, path in given.items() if files[name] is not folder))
            except InputError as error:
                problems += error.problems
            problems += [problem] if (problem := also(kwargs)) else []
            if problems:
                raise InputError(problems)
            command(*args, **kwargs)

        wrapped.writes = tuple(files)  # type: ignore[attr-defined]
        return wrapped

    return decorated


def print_doubts(evidence: Iterable[Evidence]) -> None:
    """One line for each piece of evidence outside its limits."""
    for item in evidence:
        if not item.is_good:
            console().print(str(item), style="yellow", soft_wrap=True)


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn Tauloop's errors into a message (or JSON, when the command was asked for it) and exit code 2.

    A parameter that is annotated `SideOption` becomes all the options of `Beside`.
    """
    # evaluated here, where the names that the annotations use are known
    signature = inspect.signature(command, eval_str=True)
    beside = next((name for name, p in signature.parameters.items() if p.annotation == SideOption), None)

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        if beside is not None:
            kwargs[beside] = Beside(**{field.name: kwargs.pop(field.name, None) for field in fields(Beside)})
        try:
            with solving(InputError):
                command(*args, **kwargs)
        except TauloopError as error:
            if kwargs.get("as_json"):
                problems = [problem.as_dict() for problem in error.problems]
                print_json({"status": "error", "kind": type(error).__name__, "problems": problems})
            else:
                err = Screen(stderr=True, highlight=False, soft_wrap=True)
                count = len(error.problems)
                err.print(f"{count} problem{'s' if count > 1 else ''}:", style="bold red")
                for problem in error.problems:
                    err.print(str(problem), markup=False)
            raise typer.Exit(BAD_INPUT) from None

    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += inspect.signature(Beside, eval_str=True).parameters.values() if name == beside else [parameter]
    wrapped.__signature__ = signature.replace(parameters=_in_order(parameters))  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """All by keyword, which is how the command line calls."""
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
