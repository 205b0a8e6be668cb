"""The option by which an exported thing gets a name."""

from __future__ import annotations

from typing import Annotated

import typer

NameOption = Annotated[
    str | None,
    typer.Option(
        "--name", help="First part of all names in what is written; the machine's name without it."
    ),
]
