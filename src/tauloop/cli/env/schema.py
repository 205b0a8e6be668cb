"""``tauloop env schema``: the JSON Schema of files, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from tauloop.cli.output import command, print_json
from tauloop.mechanism import drive_schema, json_schema


@command()
def schema(
    drive: Annotated[
        bool, typer.Option("--drive-line", help="Print the schema of drive-line files.")
    ] = False,
) -> None:
    """Print the JSON Schema of machine files, for editors; the output is always JSON."""
    print_json(drive_schema() if drive else json_schema())
