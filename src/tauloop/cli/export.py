"""``tauloop export``: functions of a machine as C code, with header, test program and manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tauloop.assembly.entry import PLATFORM, Entry
from tauloop.cli.announced import announced
from tauloop.cli.machine import SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, console, folder, print_json, reports_errors, table, writes
from tauloop.errors import InputError, Problem
from tauloop.model import Model
from tauloop.model.export import export_c, write_export
from tauloop.programs.catalogue import EXPORTABLE

#: Formats that functions are exported in.
FORMATS = ("c",)
_ALL = ",".join(EXPORTABLE)


@reports_errors
@writes(out=folder)
def export(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=f"What to write: {', '.join(FORMATS)}.")],
    machine: Annotated[str, typer.Argument(metavar="MACHINE", help="A shipped machine, a YAML or a URDF file.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; other files in it are left alone.")],
    functions: Annotated[str, typer.Option(help=f"Which, with commas between: {_ALL}.")] = "inverse_dynamics",
    entry: Annotated[Entry, typer.Option(help="What moves as given.")] = PLATFORM,
    name: Annotated[str | None, typer.Option(help="First part of all names in C; the machine's without it.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random states in the test program.")] = 0,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write functions of a machine as C99: source, header, a program that checks them, and a manifest.

    All parameters are baked in. The code needs only math.h, has no heap and keeps no state.
    """
    if form not in FORMATS:
        raise InputError(Problem(where="FORMAT", what=f"{form!r} is unknown", remedy=f"there is {', '.join(FORMATS)}"))
    wanted = [text.strip() for text in functions.split(",") if text.strip()]
    model = announced(Model(load_machine(machine, side)), within_limits)
    made = export_c(model, wanted, np.random.default_rng(seed), entry=entry, name=name)
    paths = write_export(made, out)
    if as_json:
        print_json({"status": "ok", "files": [str(path) for path in paths], "manifest": made.manifest})
        return
    _print(made.manifest, paths, made.name)


def _print(manifest: Any, paths: tuple[Path, ...], name: str) -> None:
    screen = console()
    rows = table("Functions", "name", "in", "out", "operations", "each Newton step", numeric=(1, 2, 3, 4))
    for item in manifest["functions"]:
        rows.add_row(
            item["name"],
            *(str(sum(port["size"] for port in item[key])) for key in ("inputs", "outputs")),
            *(str(sum(item["operations"][key].values())) for key in ("once", "each_iteration")),
        )
    screen.print(rows)
    for path in paths:
        screen.print(f"written: {path}", soft_wrap=True)
    screen.print(f"check:   cc -std=c99 -O2 {name}.c {name}_check.c -lm && ./a.out")
