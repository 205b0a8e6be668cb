"""``tauloop export``: functions of a machine as C code, with header, test program and manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.completion import machines
from tauloop.cli.machine import SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import JsonOption, command, finish, folder
from tauloop.cli.progress import bar

#: Formats that functions are exported in.
FORMATS = ("c",)


@command(out=folder)
def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=f"What to write: {', '.join(FORMATS)}.")],
    machine: Annotated[
        str,
        typer.Argument(metavar="MACHINE", help="A shipped machine, a YAML or a URDF file.", autocompletion=machines),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to; other files in it are left alone.")],
    options: tl.ExportOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write functions of a machine as C99: source, header, a program that checks them, and a manifest.

    All parameters are baked in. The code needs only math.h, has no heap and keeps no state.
    """
    if form not in FORMATS:
        what, remedy = f"{form!r} is unknown", f"there is {', '.join(FORMATS)}"
        raise tl.InputError(tl.Problem(where="FORMAT", what=what, remedy=remedy))
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions", as_json) as progress:
        result = tl.export_c(model, options, folder=out, progress=progress)
    finish(result, as_json, written=result.written)
