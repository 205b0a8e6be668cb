"""What all commands share: consoles, JSON, errors as text or JSON, exit codes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tauloop.cli.asked import ASKED, MACHINE, is_json, is_quiet
from tauloop.cli.options import annotated_flag, flags, gathered, options_class, spread
from tauloop.cli.outputs import FileKind, chosen_files, out_option
from tauloop.cli.terminal.progress import bar
from tauloop.cli.terminal.screen import Screen, json_text
from tauloop.common.errors import InputError, Problem, Problems, TauloopError, solving
from tauloop.common.files import require_writable, unwritable_folder, write_file, write_text
from tauloop.common.progress import Stages
from tauloop.common.result import Diagnostic, Result, Status, plain
from tauloop.display.parts import ReportPart, parts_of
from tauloop.display.tables import table as table

#: Exit codes: done, done with doubts or failed, and input that cannot be used.
OK, FAILED, BAD_INPUT = 0, 1, 2

#: A file that was asked for, or None, and its text or what writes it.
Written = tuple[Path | None, str | Callable[[Path], object]]

#: Words of the command that runs, ``tauloop`` first; a report says them.
WORDS: ContextVar[tuple[str, ...]] = ContextVar("WORDS", default=())

#: An option `--json-file` for commands of packages; those of Tauloop write it by `--out`.
JsonFileOption = Annotated[
    Path | None,
    typer.Option(
        help="Write the whole result to this JSON file, of which `tauloop report` makes a page."
    ),
]

#: The option `--json` of every command.
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON for machines instead of text.")
]
#: The option `--quiet` of every command.
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print problems alone: no tables, notes, progress.")
]

#: What a command gets without taking it: how every command prints.
_SHARED: Mapping[str, Any] = {
    "as_json": JsonOption,
    "quiet": QuietOption,
}


def console() -> Console:
    """Console for results (standard output); one that prints nothing where the command is quiet."""
    return Screen(quiet=is_quiet())


def print_json(data: Mapping[str, Any]) -> None:
    """Print plain data as JSON on standard output."""
    typer.echo(json_text(plain(data)))


def any_ending(_: Path) -> None:
    """Nothing is wrong with any name."""


def folder(path: Path) -> Problem | None:
    """What is wrong with a folder that is to hold files."""
    return unwritable_folder(path)


def writes(
    also: Callable[[Mapping[str, Any]], Problem | None] = lambda _: None,
    **files: Callable[[Path], Problem | None],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check the files that a command writes before its work begins.

    Args:
        also: what else is wrong with the command's arguments, to be said together.
        files: what is wrong with a name, by the command's argument: `any_ending`; `folder`
            for one that holds files.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        taken = inspect.signature(command).parameters

        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            paths = {name: kwargs[name] for name in files if kwargs.get(name) is not None}
            problems = Problems(
                problem for name, path in paths.items() if (problem := files[name](path))
            )
            with problems.collecting(InputError):
                require_writable(
                    *(path for name, path in paths.items() if files[name] is not folder)
                )
            problems += [problem] if (problem := also(kwargs)) else []
            InputError.raise_if_any(problems)
            command(*args, **{name: value for name, value in kwargs.items() if name in taken})

        wrapped.writes = tuple(files)  # type: ignore[attr-defined]
        return wrapped

    return decorated


def log_file(path: Path | None, log: Callable[[], Any]) -> Written:
    """A file that is to hold a log, and how it is written."""

    def write(path: Path) -> None:
        from tauloop.logs import write_log

        write_log(path, log())

    return path, write


def map_file(path: Path | None, result: Any) -> Written:
    """A NetCDF file that is to hold the data of a map, and how it is written."""
    return path, lambda path: write_file(
        path, lambda beside: result.data.to_netcdf(beside, engine="scipy")
    )


def machine_file(path: Path | None, made: Callable[[], Any]) -> Written:
    """A machine file (YAML) that is to hold a machine, and how it is written."""

    def write(path: Path) -> None:
        # slow to import, and seldom asked for
        from tauloop.formats.writing.yaml_writer import write_yaml

        write_yaml(made(), path)

    return path, write


def text_file(path: Path | None, made: Callable[[], str]) -> Written:
    """A file that is to hold a text, which is made when it is written."""
    return path, lambda path: write_text(path, made())


def require_limits(result: Any, within_limits: bool) -> None:
    """Refuse a result that goes beyond a stop, where it is to be within limits.

    Raises:
        PoseError: which coordinates, by how much, and where.
    """
    if within_limits:
        from tauloop.equations.assembly.limits import require_within_limits

        require_within_limits(result.diagnostics)


def finish(
    result: Any,
    *files: Written,
    figure: Path | None = None,
    draw: Callable[[], Any] | None = None,
    within_limits: bool = False,
    written: Iterable[Path] = (),
) -> None:
    """Write a result's files, draw it, print it as JSON or as tables; exit with 1 where it is doubtful.

    The JSON file of `--out` holds the whole result, with the record that `tauloop report` makes a
    page of.

    A quiet command says only what makes it doubtful, on standard error.

    Args:
        result: what the command has found.
        files: what is written of it.
        figure: file of its figure, what `plot` draws, if it is not that of `--out`; figures that
            packages bring stand beside it, each named after its part.
        draw: makes the figure, where it shows what the result alone does not say.
        within_limits: whether it is refused where it goes beyond a stop.
        written: what the workflow has written.

    Raises:
        PoseError: it goes beyond a stop, and is to be within limits.
    """
    require_limits(result, within_limits)
    omitted = _omitted(result)
    shown = result
    if isinstance(result, Result) and omitted:
        result = replace(result, diagnostics=(*result.diagnostics, *omitted))
    parts, figure, json_file = (
        parts_of(result),
        figure or ASKED.get().get("figure"),
        ASKED.get().get("json_file"),
    )
    drawn = _drawn(parts, result, figure, draw) if figure is not None else ()
    asked_for = [(path, write) for path, write in files if path is not None]
    for path, write in asked_for:
        write_text(path, write) if isinstance(write, str) else write(path)
    if json_file is not None:
        from tauloop.display.page_records import page_record

        outputs = [json_file, *drawn, *written, *(path for path, _ in asked_for)]
        page_record(result, WORDS.get(), outputs).write_json(json_file, result.as_dict())
    if is_json():
        beside = {part.name: data for part in parts if (data := part.data(result))}
        doubt = (
            {"status": Status.DOUBTFUL, "diagnostics": omitted}
            if omitted and not isinstance(result, Result)
            else {}
        )
        print_json(result.as_dict() | doubt | ({"parts": beside} if beside else {}))
    else:
        screen = console()
        for part in parts:
            for item in part.tables(shown):
                screen.print(item, soft_wrap=getattr(item, "tone", "") == "code")
        for diagnostic in omitted:
            screen.print(f"doubtful: {diagnostic}", style="yellow")
        for path in filter(None, (*drawn, *written, *(path for path, _ in asked_for), json_file)):
            screen.print(f"written: {path}", soft_wrap=True)
    if result.status is not Status.OK or omitted:
        if is_quiet():
            named = [
                str(line)
                for key in ("advice", "problems", "findings")
                for line in getattr(result, key, ())
            ]
            named += [] if isinstance(result, Result) else [str(item) for item in omitted]
            Screen(stderr=True, soft_wrap=True).print(*named, sep="\n")
        raise typer.Exit(FAILED)


def _omitted(result: Any) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of forces that the machine lacks, where the result needs and lacks them."""
    mechanism = MACHINE.get()
    if (
        mechanism is None
        or not mechanism.omitted_forces
        or not getattr(result, "needs_forces", True)
    ):
        return ()
    from tauloop.mechanism.omissions import OMITTED, omission_diagnostics

    stated = any(item.name.endswith(OMITTED) for item in getattr(result, "diagnostics", ()))
    return () if stated else omission_diagnostics(mechanism)


def _drawn(
    parts: Sequence[ReportPart], result: Any, path: Path, draw: Callable[[], Any] | None
) -> tuple[Path, ...]:
    """Figures of all parts, drawn and written."""
    from tauloop.display.renderers.figure_style import save_figure

    own = [part for part in parts if part.name == part.takes]
    others = [part for part in parts if part not in own]
    written = []
    with bar("figure") as progress:
        stages = Stages(progress, 2 * len(own[:1] + others))
        # a derived class has a part of its own and that of its base: one picture
        for part in own[:1] + others:
            drawn = (
                part.figure(result)
                if part in others
                else draw()
                if draw is not None
                else _own_figure(own, result)
            )
            stages.done()
            if drawn is not None:
                file = path.with_stem(f"{path.stem}-{part.name}") if part in others else path
                written.append(save_figure(drawn, file))
            stages.done()
    return tuple(written)


def _own_figure(parts: Sequence[ReportPart], result: Any) -> Any:
    """The picture of the first part that has one; without any that of `plot`."""
    figures = (part.figure(result) for part in parts)
    return (
        next((figure for figure in figures if figure is not None), None) or result.plot()[0].figure
    )


def command(
    also: Callable[[Mapping[str, Any]], Problem | None] = lambda _: None,
    out_default: str = "",
    **files: FileKind | Callable[[Path], Problem | None],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, which `reports_errors` and checks its files before its work.

    Args:
        also: what else is wrong with the command's arguments, to be reported together.
        out_default: what is written without ``--out``, in words.
        files: the files that it writes, by parameter. A `FileKind` is one of those that ``--out``
            names; of `figure` and `json_file` the function need not take the parameter, because
            `finish` writes them. Anything else checks the value of the parameter itself.
    """
    kinds = {name: kind for name, kind in files.items() if isinstance(kind, FileKind)}
    checks = {name: check for name, check in files.items() if not isinstance(check, FileKind)}

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        checked = writes(lambda _: None, **checks)(function)
        checked.also = also  # type: ignore[attr-defined]
        checked.kinds = kinds  # type: ignore[attr-defined]
        checked.out_default = out_default  # type: ignore[attr-defined]
        return reports_errors(checked)

    return decorated


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Turn Tauloop's errors into a message (or JSON, when the command was asked for it) and exit code 2.

    A parameter that is annotated with a class of options becomes an option of the command for each
    of its fields; what is wrong with a field is reported of that option. Every command has `--json`
    and `--quiet`, even where it takes neither, and `--out` where it writes files.
    """
    # evaluated here, where the names that the annotations use are known
    signature = inspect.signature(command, eval_str=True)
    classes = {name: options_class(p.annotation) for name, p in signature.parameters.items()}
    options = {name: kind for name, kind in classes.items() if kind is not None}
    kinds: Mapping[str, FileKind] = getattr(command, "kinds", {})
    also = getattr(command, "also", lambda _: None)
    added = {name: item for name, item in _SHARED.items() if name not in signature.parameters}
    names = {
        name: flag
        for name, parameter in signature.parameters.items()
        if (flag := annotated_flag(name, parameter.annotation))
    }
    for kind in options.values():
        names |= flags(kind)
    names |= dict.fromkeys(kinds, "--out")
    if kinds:
        names["out"] = "--out"

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        asked = {name: kwargs.get(name) for name in (*_SHARED, "json_file")}
        before = ASKED.set(asked)
        MACHINE.set(None)
        try:
            with solving(InputError):
                own = {name: value for name, value in kwargs.items() if name not in added}
                problems = Problems()
                if kinds:
                    files, problems = chosen_files(own.pop("out") or (), kinds)
                    asked |= {name: files.get(name) for name in ("figure", "json_file")}
                    taken = [name for name in kinds if name in signature.parameters]
                    own |= {name: files.get(name) for name in taken}
                made = {}
                for name, kind in options.items():
                    with problems.collecting(InputError):
                        made[name] = gathered(kind, own)
                if len(made) == len(options):
                    problem = also(own | made)
                    problems += [problem] if problem else []
                InputError.raise_if_any(problems)
                command(*args, **own, **made)
        except TauloopError as error:
            shown = names
            if kwargs.get("actuators") is not None and "position" in names:
                shown = names | {"position": names["actuators"]}
            named = [
                replace(problem, where=_flagged(problem.where, shown)) for problem in error.problems
            ]
            if is_json():
                listed = [problem.as_dict() for problem in named]
                print_json({"status": "error", "kind": type(error).__name__, "problems": listed})
            else:
                err = Screen(stderr=True, soft_wrap=True)
                err.print(f"{len(named)} problem{'s' if len(named) > 1 else ''}:", style="bold red")
                for problem in named:
                    err.print(str(problem))
            raise typer.Exit(BAD_INPUT) from None
        finally:
            ASKED.reset(before)

    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in kinds:
            parameters += spread(options[name]) if name in options else [parameter]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if kinds:
        annotation = out_option(kinds, getattr(command, "out_default", ""))
        parameters.append(inspect.Parameter("out", keyword, default=None, annotation=annotation))
    for name, annotation in added.items():
        parameters.append(inspect.Parameter(name, keyword, default=False, annotation=annotation))
    wrapped.__signature__ = signature.replace(parameters=_in_order(parameters))  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def _flagged(where: str, names: Mapping[str, str]) -> str:
    """Return the place of a problem with the name of its option instead of the field's.

    The place may be that of an element, such as ``cutoffs[0]``, or of a name, such as ``known m``.
    """
    field, space, rest = where.partition(" ")
    option = names.get(field) or names.get(field.partition("[")[0]) or field
    return f"{option}{space}{rest}"


def _in_order(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """All by keyword, which is how the command line calls."""
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
