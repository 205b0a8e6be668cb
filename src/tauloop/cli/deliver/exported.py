"""What the commands of ``tauloop export`` share: the folder and the name of what they write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauloop.cli.outputs import FOLDER

if TYPE_CHECKING:
    from tauloop.model import Model

EXPORT_FOLDER = FOLDER.of("files into this folder, in which others are left alone")
#: The folder without ``--out``, in words.
EXPORT_DEFAULT = "The folder MACHINE-KIND without it"

NameOption = Annotated[
    str | None,
    typer.Option(
        "--name", help="First part of all names in what is written; the machine's name without it."
    ),
]


def export_folder(out: Path | None, model: Model, kind: str) -> Path:
    """Return the folder to write into: the given one, or one named after machine and kind."""
    return out or Path(f"{model.mechanism.name}-{kind}")
