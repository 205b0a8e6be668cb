"""Output of all commands: text, JSON, files, errors and exit codes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tauloop.cli.options import (
    annotated_flag,
    flags,
    option_parameters,
    options_class,
    options_from_arguments,
)
from tauloop.cli.outputs import FileKind, chosen_files, out_option
from tauloop.cli.terminal.screen import SHARED_OPTIONS, Screen, bar, is_json, is_quiet, json_text
from tauloop.common.counts import counted
from tauloop.common.errors import (
    InputError,
    Problem,
    Problems,
    TauloopError,
    reports_missing_extras,
    solving,
)
from tauloop.common.files import require_writable, unwritable_folder, write_file, write_text
from tauloop.common.progress import Stages
from tauloop.common.result import Diagnostic, Result, Status, plain
from tauloop.display.parts import ReportPart, parts_of
from tauloop.display.pieces import Paragraph, Table
from tauloop.display.tables import table as table

if TYPE_CHECKING:
    from tauloop.mechanism.model import Mechanism

#: Exit codes: success, doubtful or failed, invalid input.
OK, FAILED, BAD_INPUT = 0, 1, 2

#: Path of a requested file or None, and its text or a function that writes it.
Written = tuple[Path | None, str | Callable[[Path], object]]

#: Words of the running command, ``tauloop`` first, for reports.
COMMAND_WORDS: ContextVar[tuple[str, ...]] = ContextVar("COMMAND_WORDS", default=())

#: The machine that the running command has loaded.
LOADED_MACHINE: ContextVar[Mechanism | None] = ContextVar("LOADED_MACHINE", default=None)

#: The option `--json-file` for commands of other packages; Tauloop's commands use `--out`.
JsonFileOption = Annotated[
    Path | None,
    typer.Option(help="Write the whole result to this JSON file, which `tauloop report` reads."),
]

#: The option `--json` of every command.
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print machine-readable JSON instead of text.")
]
#: The option `--quiet` of every command.
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print problems only: no tables, notes, progress.")
]

#: Options of every command; a command does not need a parameter for them.
_SHARED: Mapping[str, Any] = {
    "as_json": JsonOption,
    "quiet": QuietOption,
}


def console() -> Console:
    """Return the console for results (standard output); it prints nothing for a quiet command."""
    return Screen(quiet=is_quiet())


def print_json(data: Mapping[str, Any]) -> None:
    """Print plain data as JSON on standard output."""
    typer.echo(json_text(plain(data)))


def any_ending(_: Path) -> None:
    """Accept a file with any extension."""


def folder(path: Path) -> Problem | None:
    """Return the problem that prevents writing files into a folder, or None."""
    return unwritable_folder(path)


def writes(
    also: Callable[[Mapping[str, Any]], Problem | None] = lambda _: None,
    **files: Callable[[Path], Problem | None],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that checks a command's files before its work begins.

    Args:
        also: function that returns a further problem of the command's arguments, or None. It is
            reported together with the problems of files.
        files: check of each file, by the command's parameter: `any_ending` for a file, `folder` for
            a folder.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command).parameters

        @functools.wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            paths = {name: kwargs[name] for name in files if kwargs.get(name) is not None}
            problems = Problems()
            for name, path in paths.items():
                problem = files[name](path)
                if problem:
                    problems.append(problem)
            if paths:
                with problems.collecting(InputError):
                    require_writable(
                        *(path for name, path in paths.items() if files[name] is not folder)
                    )
            problem = also(kwargs)
            if problem:
                problems.append(problem)
            InputError.raise_if_any(problems)
            accepted = {name: value for name, value in kwargs.items() if name in parameters}
            command(*args, **accepted)

        wrapped.writes = tuple(files)  # type: ignore[attr-defined]
        return wrapped

    return decorated


def log_file(path: Path | None, log: Callable[[], Any]) -> Written:
    """Return the path of a log file and the function that writes it."""

    def write(path: Path) -> None:
        from tauloop.logs import write_log

        write_log(path, log())

    return path, write


def map_file(path: Path | None, result: Any) -> Written:
    """Return the path of a NetCDF file and the function that writes the data of a map."""

    def write(path: Path) -> None:
        write_file(path, lambda temporary: result.data.to_netcdf(temporary, engine="scipy"))

    return path, write


def machine_file(path: Path | None, mechanism: Callable[[], Any]) -> Written:
    """Return the path of a machine file (YAML) and the function that writes it."""

    def write(path: Path) -> None:
        # Imported here because it is slow to import and rarely needed.
        from tauloop.formats.writing.yaml_writer import write_yaml

        _, notes = write_yaml(mechanism(), path)
        screen = Screen(stderr=True, soft_wrap=True, quiet=is_quiet())
        for note in notes:
            screen.print(f"note: {note}")

    return path, write


def text_file(path: Path | None, text: Callable[[], str]) -> Written:
    """Return the path of a text file and the function that creates the text and writes it."""
    return path, lambda path: write_text(path, text())


def require_limits(result: Any, within_limits: bool) -> None:
    """Reject a result beyond a stop of the machine if `within_limits` is true.

    Raises:
        PoseError: coordinates are beyond a stop; the message states by how much, and where.
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
    """Write and print a result, and exit with code 1 if it is doubtful.

    The files are written and the figure is drawn first; then tables or JSON are printed.

    The JSON file of `--out` contains the whole result, with the record for `tauloop report`. A
    quiet command prints only the reasons for doubt, on standard error.

    Args:
        result: result of the command.
        files: files to write.
        figure: file of the figure (default: that of `--out`). Figures of parts from other packages
            are written next to it, with the name of the part in the file name.
        draw: function that draws the figure; None for the figure of the result alone.
        within_limits: whether a result beyond a stop is rejected.
        written: files that the workflow has already written, for the list of written files.

    Raises:
        PoseError: the result is beyond a stop and must be within limits.
    """
    require_limits(result, within_limits)
    omitted = _omitted_forces(result)
    # The tables do not repeat the omitted forces, which have their own lines.
    tabulated_result = result
    if isinstance(result, Result) and omitted:
        result = replace(result, diagnostics=(*result.diagnostics, *omitted))
    parts = parts_of(result)
    figure = figure or SHARED_OPTIONS.get().get("figure")
    json_file = SHARED_OPTIONS.get().get("json_file")
    figure_files = () if figure is None else _draw_figures(parts, result, figure, draw)
    requested = [(path, write) for path, write in files if path is not None]
    for path, write in requested:
        if isinstance(write, str):
            write_text(path, write)
        else:
            write(path)
    outputs = [*figure_files, *written, *(path for path, _ in requested)]
    if json_file is not None:
        from tauloop.display.page_records import page_record

        record = page_record(result, COMMAND_WORDS.get(), [json_file, *outputs])
        record.write_json(json_file, result.as_dict())
        outputs.append(json_file)
    if is_json():
        print_json(_json_data(result, parts, omitted))
    else:
        screen = console()
        for part in parts:
            for item in part.tables(tabulated_result):
                is_code = isinstance(item, Paragraph) and item.tone == "code"
                screen.print(_renderable(item), soft_wrap=is_code)
        for diagnostic in omitted:
            screen.print(f"doubtful: {diagnostic}", style="yellow")
        for path in outputs:
            screen.print(f"written: {path}", soft_wrap=True)
    if result.status is not Status.OK or omitted:
        if is_quiet():
            reasons: list[str] = []
            for key in ("advice", "problems", "findings"):
                reasons += map(str, getattr(result, key, ()))
            if not isinstance(result, Result):
                reasons += map(str, omitted)
            Screen(stderr=True, soft_wrap=True).print(*reasons, sep="\n")
        raise typer.Exit(FAILED)


def _renderable(item: Any) -> Any:
    """Return the Rich object of a table or a paragraph; other objects are returned unchanged.

    Rich looks for an attribute that results do not have, and `ReprMixin` would search for similar
    names.
    """
    return item.__rich__() if isinstance(item, Paragraph | Table) else item


def _json_data(
    result: Any, parts: Sequence[ReportPart], omitted: Sequence[Diagnostic]
) -> dict[str, Any]:
    """Return a result as plain data, with the data of its parts and of omitted forces."""
    data = dict(result.as_dict())
    if omitted and not isinstance(result, Result):
        data |= {"status": Status.DOUBTFUL, "diagnostics": omitted}
    part_data = {part.name: part.data(result) for part in parts}
    part_data = {name: value for name, value in part_data.items() if value}
    if part_data:
        data["parts"] = part_data
    return data


def _omitted_forces(result: Any) -> tuple[Diagnostic, ...]:
    """Return a diagnostic for each force that the result needs and the machine file omits."""
    mechanism = LOADED_MACHINE.get()
    if (
        mechanism is None
        or not mechanism.omitted_forces
        or not getattr(result, "needs_forces", True)
    ):
        return ()
    from tauloop.mechanism.model import OMITTED_FORCES, omission_diagnostics

    diagnostics = getattr(result, "diagnostics", ())
    is_reported = any(item.name.endswith(OMITTED_FORCES) for item in diagnostics)
    return () if is_reported else omission_diagnostics(mechanism)


def _draw_figures(
    parts: Sequence[ReportPart], result: Any, path: Path, draw: Callable[[], Any] | None
) -> tuple[Path, ...]:
    """Draw and write the figures of all parts, and return their paths."""
    from tauloop.display.renderers.figure_style import save_figure

    tauloop_parts = [part for part in parts if part.name == part.takes]
    other_parts = [part for part in parts if part not in tauloop_parts]
    # A derived result class has its own part and that of its base class, but only one figure.
    drawn_parts = tauloop_parts[:1] + other_parts
    files: list[Path] = []
    with bar("figure") as progress:
        stages = Stages(progress, 2 * len(drawn_parts))
        for part in drawn_parts:
            if part in other_parts:
                figure = part.figure(result)
            elif draw is not None:
                figure = draw()
            else:
                figure = _result_figure(tauloop_parts, result)
            stages.done()
            if figure is not None:
                is_other = part in other_parts
                file = path.with_stem(f"{path.stem}-{part.name}") if is_other else path
                files.append(save_figure(figure, file))
            stages.done()
    return tuple(files)


def _result_figure(parts: Sequence[ReportPart], result: Any) -> Any:
    """Return the figure of the first part that has one; without it, the figure of `result.plot`."""
    for part in parts:
        figure = part.figure(result)
        if figure is not None:
            return figure
    return result.plot()[0].figure


def command(
    also: Callable[[Mapping[str, Any]], Problem | None] = lambda _: None,
    out_default: str = "",
    **files: FileKind | Callable[[Path], Problem | None],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that turns a function into a command with checked files.

    Args:
        also: function that returns a further problem of the command's arguments, or None. It is
            reported together with the problems of files.
        out_default: sentence of the help on the file that is written without ``--out``.
        files: files that the command writes, by parameter. A `FileKind` stands for a file that
            ``--out`` names; the function does not need the parameters `figure` and `json_file`,
            because `finish` writes these files. A function checks the value of its parameter.
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
    """Return the command with errors of Tauloop reported as text, or as JSON for `--json`.

    After such an error the exit code is 2. A parameter annotated with an options class becomes an
    option for each field of the class, and an error in a field is reported for its option. Every command
    gets `--json` and `--quiet`, also if the function does not have these parameters, and `--out` if
    it writes files.

    Returns:
        The command with these options, for Typer.
    """
    # Annotations are evaluated now, because Typer would not know their names.
    signature = inspect.signature(command, eval_str=True)
    annotated_classes = {
        name: options_class(parameter.annotation)
        for name, parameter in signature.parameters.items()
    }
    # classes of options by the parameter of the command
    options = {name: kind for name, kind in annotated_classes.items() if kind is not None}
    kinds: Mapping[str, FileKind] = getattr(command, "kinds", {})
    also = getattr(command, "also", lambda _: None)
    # options of every command for which the command has no parameter
    added = {name: item for name, item in _SHARED.items() if name not in signature.parameters}
    # names of options by parameter or field
    names = {}
    for name, parameter in signature.parameters.items():
        flag = annotated_flag(name, parameter.annotation)
        if flag:
            names[name] = flag
    for kind in options.values():
        names |= flags(kind)
    names |= dict.fromkeys(kinds, "--out")
    if kinds:
        names["out"] = "--out"

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        shared = {name: kwargs.get(name) for name in (*_SHARED, "json_file")}
        token = SHARED_OPTIONS.set(shared)
        LOADED_MACHINE.set(None)
        try:
            with solving(InputError), reports_missing_extras():
                arguments = {name: value for name, value in kwargs.items() if name not in added}
                problems = Problems()
                if kinds:
                    files: dict[str, Path] = {}
                    if out := arguments.pop("out"):
                        files, problems = chosen_files(out, kinds)
                    shared |= {name: files.get(name) for name in ("figure", "json_file")}
                    accepted = [name for name in kinds if name in signature.parameters]
                    arguments |= {name: files.get(name) for name in accepted}
                command_options = {}
                for name, kind in options.items():
                    with problems.collecting(InputError):
                        command_options[name] = options_from_arguments(kind, arguments)
                if len(command_options) == len(options):
                    problem = also(arguments | command_options)
                    if problem:
                        problems.append(problem)
                InputError.raise_if_any(problems)
                command(*args, **arguments, **command_options)
        except TauloopError as error:
            option_names = names
            for argument in ("platform", "pose", "actuators"):
                if kwargs.get(argument) is not None and argument in names:
                    option_names = option_names | {"position": names[argument]}
            problems_of_options = [
                replace(problem, where=_with_option_name(problem.where, option_names))
                for problem in error.problems
            ]
            if is_json():
                data = [problem.as_dict() for problem in problems_of_options]
                print_json({"status": "error", "kind": type(error).__name__, "problems": data})
            else:
                screen = Screen(stderr=True, soft_wrap=True)
                screen.print(f"{counted(len(problems_of_options), 'problem')}:", style="bold red")
                for problem in problems_of_options:
                    screen.print(str(problem))
            raise typer.Exit(BAD_INPUT) from None
        finally:
            SHARED_OPTIONS.reset(token)

    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name not in kinds:
            parameters += option_parameters(options[name]) if name in options else [parameter]
    keyword = inspect.Parameter.KEYWORD_ONLY
    if kinds:
        annotation = out_option(kinds, getattr(command, "out_default", ""))
        parameters.append(inspect.Parameter("out", keyword, default=None, annotation=annotation))
    for name, annotation in added.items():
        parameters.append(inspect.Parameter(name, keyword, default=False, annotation=annotation))
    wrapped.__signature__ = signature.replace(parameters=_keyword_only(parameters))  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapped


def _with_option_name(where: str, names: Mapping[str, str]) -> str:
    """Return the location of a problem with the name of the option instead of the field.

    Args:
        where: a field, with an index or a name for one of its elements, such as ``cutoffs[0]`` or
            ``known m``.
        names: option names by field.
    """
    field, space, rest = where.partition(" ")
    option = names.get(field) or names.get(field.partition("[")[0]) or field
    return f"{option}{space}{rest}"


def _keyword_only(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters as keyword-only, because Typer passes arguments by keyword."""
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
