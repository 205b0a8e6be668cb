"""``tauloop reduce``: a smaller machine with the same motion, what it preserves, and its error against the full one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, any_ending, command, finish
from tauloop.files import write_text
from tauloop.formats.yaml_writer import to_yaml
from tauloop.kinematics.reduction import ReductionOptions
from tauloop.kinematics.reduction import reduce as reduced
from tauloop.model import Model
from tauloop.reduction import as_laminas


@command(out=any_ending)
def reduce(
    machine: MachineArgument,
    options: ReductionOptions,
    side: SideOption,
    out: Annotated[Path | None, typer.Option(help="Write the reduced machine to this machine file (YAML).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reduce a machine by equivalent lumped masses and parts that move alike.

    Exact steps run wherever they apply; approximations only when asked for. Exit code 1 when no approximation was asked
    for and a force differs nevertheless.
    """
    mechanism = load_machine(machine, side)
    announced(Model(mechanism), within_limits)
    reduction = reduced(mechanism, options)
    if out is not None:
        write_text(out, to_yaml(as_laminas(reduction.mechanism)))
    finish(reduction, as_json, written=(out,))
