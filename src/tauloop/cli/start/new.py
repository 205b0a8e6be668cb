"""``tauloop new``: a machine file with your own dimensions, from options or interactively."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.authoring import TEMPLATES, NamedValue, dimensions, title
from tauloop.cli.machine import ImportArguments
from tauloop.cli.output import command, console, finish
from tauloop.cli.outputs import FIGURE, MACHINE_FILE
from tauloop.cli.terminal.completion import sources
from tauloop.cli.terminal.screen import bar, is_json, is_quiet


@command(out_default="Default: NAME.yaml", out=MACHINE_FILE.of("the machine file"), figure=FIGURE)
def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the new machine; NAME.yaml is written.")
    ],
    options: tl.NewMachineOptions,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The file to read, for --template urdf or mjcf."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="SOURCE",
            autocompletion=sources,
            help=f"Template of the machine: {', '.join(TEMPLATES)}; or a machine, YAML, URDF or MJCF file.",
        ),
    ] = None,
    import_arguments: ImportArguments | None = None,
    out: Path | None = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a machine file with your own dimensions, ready for `tauloop view` and `tauloop check`.

    In a terminal, the command asks for the dimensions that are not given with --set; otherwise, and
    with --quiet, it uses the template's values. Closure, mobility, units, and the reach over the
    work volume are checked. Exit code 1 when a check fails or the machine does not reach its work
    volume.
    """
    path = Path(name)
    if path.suffix:
        name = path.stem
    if out is None:
        out = path.with_suffix(".yaml")
    if out.exists() and not replace:
        raise tl.InputError.of(
            str(out), "the file exists", "give another name or --out, or add --replace"
        )
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not (is_json() or is_quiet())
    if file is None and source is None:
        source = _source(asks)
    arguments = import_arguments or ImportArguments()
    options = dataclasses.replace(options, side=arguments.side, reading=arguments.options())
    origin = file or source or ""
    if asks:
        options = dataclasses.replace(options, values=_answers(origin, options.values))
    with bar("search for working dimensions") as progress:
        machine = tl.new_machine(name, origin, options, progress=progress)
    finish(machine, written=machine.write(out))
    if not is_json():
        console().print(f"view it: tauloop view {out}", soft_wrap=True)


def _source(asks: bool) -> str:
    """Return the template or file that the user types; without a terminal, reject the call."""
    if not asks:
        raise tl.InputError.of(
            "--template", "is missing", f"choose among {', '.join(TEMPLATES)}, or name a file"
        )
    for template, path in TEMPLATES.items():
        typer.echo(f"{template:<14} {title(path)}", err=True)
    return str(typer.prompt("Template, or path of a file", err=True))


def _answers(origin: str | Path, known_values: Mapping[str, str | float]) -> dict[str, str | float]:
    """Return the values of ``--set`` and the answers; each default depends on earlier answers.

    Without ``--set``, the result is empty if every answer is the default.
    """
    values = dict(known_values)
    has_changed = False
    for name in [item.name for item in dimensions(origin) if item.name not in known_values]:
        item = next(item for item in dimensions(origin, values) if item.name == name)
        text, default = _answer(item)
        has_changed = has_changed or text != default
        values[name] = text
    return values if has_changed or known_values else {}


def _answer(item: NamedValue) -> tuple[str, str]:
    """Return the user's answer and the default.

    The question is repeated until the answer is valid.
    """
    range_text = f" [{item.bounds[0]} to {item.bounds[1]}]" if len(item.bounds) == 2 else ""
    while True:
        text = str(
            typer.prompt(f"{item.name}: {item.note}{range_text}", default=item.text, err=True)
        )
        try:
            return item.accepted(text), item.text
        except tl.InputError as error:
            typer.echo(str(error), err=True)
