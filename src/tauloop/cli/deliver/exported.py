"""Folder and name options of the commands of ``tauloop export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauloop.cli.outputs import FOLDER

if TYPE_CHECKING:
    from tauloop.model import Model

EXPORT_FOLDER = FOLDER.of("files into this folder and leave its other files alone")
#: Sentence of the help on the default folder.
EXPORT_DEFAULT = "Default: the folder MACHINE-KIND"

NameOption = Annotated[
    str | None,
    typer.Option("--name", help="Prefix of all generated names; default: the machine's name."),
]


def export_folder(out: Path | None, model: Model, kind: str) -> Path:
    """Return the folder of ``--out``; without it, a folder named after machine and kind."""
    return out or Path(f"{model.mechanism.name}-{kind}")
