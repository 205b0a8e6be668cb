"""What commands of planned motions share: files of their tables and C arrays, and how they end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauloop.cli.output import finish, log_file, text_file

if TYPE_CHECKING:
    from tauloop.simulation import Cycle, FastestMotion

SamplesOption = Annotated[
    float, typer.Option(help="Samples per second in the table and the C array, Hz.")
]


def finish_motion(
    result: Cycle | FastestMotion, samples: float, out: Path | None, c_array: Path | None
) -> None:
    """Write, draw and print a planned motion."""
    log, text = (
        log_file(out, lambda: result.log(samples)),
        text_file(c_array, lambda: result.c_array(samples)),
    )
    finish(result, log, text)
