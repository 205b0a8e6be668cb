"""Table rates and output files of the commands for planned motions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tauloop.cli.output import finish, log_file, text_file
from tauloop.cli.values import frequency

if TYPE_CHECKING:
    from tauloop.simulation import Cycle, FastestMotion

SamplesOption = Annotated[
    str,
    typer.Option(
        "--table-rate",
        metavar="FREQUENCY",
        help="Samples per second in the table and the C arrays, such as 1kHz.",
    ),
]
RateOption = Annotated[
    str,
    typer.Option(
        "--rate", metavar="FREQUENCY", help="Samples per second in the table, such as 1kHz."
    ),
]


def finish_motion(
    result: Cycle | FastestMotion, samples: str, out: Path | None, c_array: Path | None
) -> None:
    """Write, draw and print a planned motion."""
    rate = frequency("--table-rate", samples)
    log = log_file(out, lambda: result.log(rate))
    text = text_file(c_array, lambda: result.c_array(rate))
    finish(result, log, text)
