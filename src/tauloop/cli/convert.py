"""``tauloop convert``: a machine written in another format, and what that format cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.machine import MachineArgument, RodsOption, SideOption, load_machine
from tauloop.cli.output import JsonOption, any_ending, console, print_json, reports_errors, writes
from tauloop.errors import InputError, Problem
from tauloop.formats.mjcf_writer import write_mjcf
from tauloop.formats.urdf_writer import write_urdf
from tauloop.formats.yaml_writer import write_yaml
from tauloop.mechanism.model import Mechanism

#: Formats that machines are written in.
FORMATS = ("yaml", "mjcf", "urdf")


@reports_errors
@writes(out=any_ending)
def convert(
    machine: MachineArgument,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"Format to write: {', '.join(FORMATS)}.")],
    out: Annotated[Path, typer.Option("--out", help="File to write; arm.urdf gets arm.side.yaml beside it.")],
    side: SideOption = None,
    rods: RodsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a machine as a machine file (YAML), for MuJoCo (MJCF), or as URDF with a side file.

    The machine file reads back to an equal machine, with all its parameters. The others hold numbers: their loops are
    cut, rods are bodies, and what they cannot say is listed.
    """
    if to not in FORMATS:
        raise InputError(Problem(where="--to", what=f"{to!r} is unknown", remedy=f"there is {', '.join(FORMATS)}"))
    files, notes = _write(load_machine(machine, side, rods), to, out)
    if as_json:
        print_json({"status": "ok", "files": [str(file) for file in files], "notes": list(notes)})
        return
    screen = console()
    for file in files:
        screen.print(f"written: {file}", soft_wrap=True)
    for note in notes:
        screen.print(f"- {note}", soft_wrap=True)


def _write(mechanism: Mechanism, to: str, out: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files written, and what is not as in the mechanism."""
    if to == "mjcf":
        return (out,), write_mjcf(mechanism, out)
    if to == "urdf":
        side, notes = write_urdf(mechanism, out)
        return (out, side), notes
    write_yaml(mechanism, out)
    return (out,), ()
