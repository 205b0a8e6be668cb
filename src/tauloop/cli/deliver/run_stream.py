"""``tauloop run stream``: a machine in motion for Rerun and Foxglove."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RECORDING
from tauloop.cli.terminal.screen import Screen, bar, is_quiet


@command(out=RECORDING)
def run_stream(
    machine: MachineArgument,
    options: tl.StreamOptions,
    side: SideOption = None,
    out: Path | None = None,
) -> None:
    """Stream a machine in motion to Rerun or Foxglove, or write a file for one of them.

    The motion is that of --motion (a log, or the output of simulate) or of a running plant (--shm).
    The stream contains shapes, frames, and quantities for plots. Without --out, it is sent to a
    running Rerun viewer, or Foxglove connects to the printed address; Ctrl-C ends it. The command
    needs `pip install 'tauloop[rerun]'` or `pip install 'tauloop[foxglove]'`.
    """
    screen = Screen(stderr=True, soft_wrap=True, quiet=is_quiet())
    with bar("states") as progress:
        result = tl.run_stream(
            load_model(machine, side),
            out,
            options,
            progress=progress,
            announce=lambda address: screen.print(f"connect to {address}"),
        )
    finish(result, written=() if out is None else (out,))
