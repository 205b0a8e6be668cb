"""``tauloop machines``: the machines that come with Tauloop."""

from __future__ import annotations

from tauloop.cli.output import command, finish
from tauloop.mechanism import machine_index


@command()
def machines() -> None:
    """List the shipped machines."""
    finish(machine_index())
