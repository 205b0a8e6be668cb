"""``tauloop subtract``: the structure's forces from a run with the structure and a run without it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from tauloop.cli.output import FAILED, JsonOption, console, log_ending, print_json, reports_errors, table, writes
from tauloop.identification.preparation.periods import FORCE_NOISE
from tauloop.identification.preparation.two_runs import TwoRuns, subtract_disconnected
from tauloop.logs import channels, read_log, units, write_log
from tauloop.logs.channels import TIME
from tauloop.result import Status

if TYPE_CHECKING:
    import xarray as xr


@reports_errors
@writes(out=log_ending)
def subtract(
    connected: Annotated[
        Path,
        typer.Argument(
            help="Log of the run with the structure: columns time, position.NAME, force.NAME; velocity.NAME is kept."
        ),
    ],
    disconnected: Annotated[Path, typer.Argument(help="Log of the same motion with the structure taken off.")],
    out: Annotated[Path, typer.Option("--out", help="Write positions and structure's forces to this CSV or Parquet.")],
    period: Annotated[
        float | None,
        typer.Option(help="Period of the motion, s: averages both runs, and tells their noise. The log is one period."),
    ] = None,
    largest_delay: Annotated[
        float, typer.Option("--largest-delay", min=0.0, help="Delay between the runs that is searched, s, either way.")
    ] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Subtract the actuators' own forces, measured with the structure taken off, sample by sample.

    The runs are aligned by their positions. The result goes to `tauloop identify`, with a machine whose carts, drives
    and friction are zero. Exit code 1 when the motions differ so much that the forces may not belong together.
    """
    found = subtract_disconnected(
        read_log(connected), read_log(disconnected), period=period, largest_delay=largest_delay
    )
    written = write_log(out, _with_noise(found))
    if as_json:
        print_json(
            {
                "status": found.status,
                "advice": found.advice,
                "evidence": found.evidence,
                "delay": found.delay,
                "periods": found.periods,
                "apart": found.apart,
                "removed": found.removed,
                "noise": found.noise,
                "dropped": found.dropped,
                "unmatched": found.unmatched,
                "file": str(written),
                "provenance": found.provenance,
            }
        )
    else:
        _print(found, written)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _with_noise(found: TwoRuns) -> xr.Dataset:
    """The log, beside every force of known noise a channel that holds it: `tauloop identify --period` weights by it."""
    log = found.log
    for name, noise in found.noise.items():
        attributes = log[f"force.{name}"].attrs | {"quantity": FORCE_NOISE}
        log = log.assign({f"{FORCE_NOISE}.{name}": ((TIME,), np.full(len(log[TIME]), noise), attributes)})
    return log


def _print(found: TwoRuns, written: Path) -> None:
    screen = console()
    headings = ("actuator", "own force / whole", "motions apart", "noise of the structure's force", "unit")
    rows = table("Structure's forces", *headings, numeric=(1, 2, 3))
    forces, positions = units(found.log, "force"), units(found.log, "position")
    for name, share in found.removed.items():
        noise = f"{found.noise[name]:.3g}" if name in found.noise else "not known without --period"
        rows.add_row(name, f"{share:.1%}", f"{found.apart[name]:.3g} {positions[name]}", noise, forces[name])
    screen.print(rows)
    screen.print(
        f"the disconnected run is {1e3 * found.delay:.4g} ms late; averaged {found.periods[0]} and {found.periods[1]} "
        "periods"
        if found.noise
        else f"the disconnected run is {1e3 * found.delay:.4g} ms late"
    )
    if velocities := channels(found.log, "velocity"):
        screen.print(
            f"velocities of the connected run are kept: {', '.join(velocities)}; runs are aligned by positions"
        )
    if found.dropped:
        screen.print(f"left out, neither motion nor force: {', '.join(found.dropped)}")
    if found.unmatched:
        screen.print(f"left out, measured in one run only: {', '.join(found.unmatched)}")
    for line in found.advice:
        screen.print(line, style="yellow")
    screen.print(f"written: {written}", soft_wrap=True)
