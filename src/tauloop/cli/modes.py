"""``tauloop modes``: all ways in which a machine can be assembled at one position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tauloop.assembly.entry import ACTUATORS, PLATFORM
from tauloop.assembly.entry_ports import entry_ports
from tauloop.cli.announced import announced
from tauloop.cli.assigned import assigned
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, figure_ending, print_json, reports_errors, table, writes
from tauloop.errors import PoseError, Problem
from tauloop.kinematics.homotopy_blocks import BlockCount
from tauloop.kinematics.homotopy_monodromy import MonodromyOptions, Report, SearchProgress
from tauloop.kinematics.modes import Mode, ModeOptions, Modes, assembly_modes, working_modes
from tauloop.model import Model
from tauloop.report.figures import save_figure
from tauloop.report.modes_figure import modes_figure
from tauloop.result import Status


@reports_errors
@writes(figure=figure_ending)
def modes(
    machine: MachineArgument,
    side: SideOption = None,
    position: Annotated[
        str | None,
        typer.Option(help="What is given, such as 'motor_1=0.4,motor_2=1.2' (SI); the rest as at reference."),
    ] = None,
    working: Annotated[
        bool, typer.Option("--working", help="The platform's position is given; list the postures of the legs.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the complex paths.")] = 0,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Test for completeness blocks of many angles too: minutes.")
    ] = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the modes side by side (PNG, SVG or PDF).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """List all assembly modes: every pose in which the loops close at given actuator positions.

    What is beyond a stop in a mode is named; --within-limits leaves such modes out, and refuses where no other is. Exit
    code 1 when the evidence leaves a doubt whether these are all.
    """
    model = announced(Model(load_machine(machine, side)))
    ports = entry_ports(model.assembly, PLATFORM if working else ACTUATORS)
    given = assigned(ports.position, "--position", position, ports.at(model.assembly.q))
    search = working_modes if working else assembly_modes
    monodromy = MonodromyOptions(traced_angles=len(model.topology.is_angle)) if thorough else MonodromyOptions()
    with _progress(as_json) as report:
        found = search(
            model, given, rng=np.random.default_rng(seed), options=ModeOptions(monodromy=monodromy), report=report
        )
    if within_limits:
        found = found.within_limits()
    if figure is not None:
        if not found.modes:
            raise PoseError(
                Problem(
                    where="--figure",
                    what="the machine cannot be assembled at this position, so there is nothing to draw",
                    remedy="give a position within reach",
                )
            )
        save_figure(modes_figure(model.assembly.loops, found), figure)
    if as_json:
        print_json(found.as_dict())
    else:
        _print(found, figure)
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


@contextmanager
def _progress(is_quiet: bool) -> Iterator[Report]:
    """A bar on the error stream that says what the search does and how far it is, while it runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=is_quiet) as bars:
        bar = bars.add_task("writing the equations", total=None)

        def report(at: SearchProgress) -> None:
            text = f"block {at.block} of {at.blocks}: {at.phase}, {at.solutions} known"
            bars.update(bar, description=text, completed=at.done, total=at.total)

        yield report


def _print(found: Modes, figure: Path | None) -> None:
    screen = console()
    kind = "Assembly" if found.given is ACTUATORS else "Working"
    given = ", ".join(
        f"{name} = {value:.6g} {unit}"
        for name, value, unit in zip(found.columns, found.position, found.units, strict=True)
    )
    screen.print(f"Given: {given}")
    screen.print()
    names = [found.coordinate_names[i] for i in found.unknown]
    units = ["deg" if found.coordinate_units[i] == "rad" else found.coordinate_units[i] for i in found.unknown]
    in_columns = len(names) <= MOST_COLUMNS
    heads = [_head(name, unit) for name, unit in zip(names, units, strict=True)] if in_columns else ["pose"]
    rows = table(
        f"{kind} modes of {found.machine}: {len(found.modes)}",
        *("mode", *heads, "resid.\nm", "cond."),
        numeric=(*range(len(heads) + 1 if in_columns else 1), len(heads) + 1, len(heads) + 2),
    )
    for i, mode in enumerate(found.modes):
        values = [_number(mode.q[k], found.coordinate_units[k]) for k in found.unknown]
        listed = ["\n".join(" ".join(row) for row in zip(names, values, units, strict=True))]
        rows.add_row(
            f"{i + 1}{_marks(mode)}",
            *(values if in_columns else listed),
            f"{mode.residual:.0e}",
            f"{mode.condition:.3g}" if np.isfinite(mode.condition) else "singular",
        )
    screen.print(rows)
    marks = {mark for mode in found.modes for mark in _marks(mode)}
    if marks:
        screen.print("; ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in marks))
    for i, mode in enumerate(found.modes):
        if mode.beyond:
            screen.print(f"mode {i + 1}: {'; '.join(map(str, mode.beyond))}")
    if not found.modes:
        screen.print("The loops do not close at this position.")
    elif "*" not in marks:
        screen.print("None is reached from the reference pose without passing a singularity.")
    for reason, count in found.left_out.items():
        screen.print(f"left out: {count} real solutions of which {reason}")
    for block in found.blocks:
        screen.print(
            f"{len(block.equations)} equations ({block.equations[0]}, ...): "
            f"{block.complex_solutions} complex solutions; "
            f"{_evidence(block)}; ends: {block.real} real, "
            f"{block.complex} complex, {block.infinite} at infinity, {block.singular} multiple"
        )
    for line in found.advice:
        screen.print(f"doubtful: {line}")
    if figure is not None:
        screen.print(f"drawn: {figure}")


def _evidence(block: BlockCount) -> str:
    """What says that there are no others."""
    if block.trace is not None:
        return f"trace test {block.trace:.0e}"
    if block.lost_lines:
        return "the trace test could not be followed"
    return f"{block.quiet_loops} loops and {block.probes} random starts lead to no other"


def _marks(mode: Mode) -> str:
    return ("*" if mode.is_reference else "") + ("~" if mode.is_singular else "") + ("" if mode.within_limits else "!")


def _head(name: str, unit: str) -> str:
    """A column's head: joint, component and unit one below the other; the platform goes without saying."""
    parts = [part for part in name.split(".") if part != "platform"]
    return "\n".join([*parts, "" if unit == "1" else unit])


def _number(value: float, unit: str) -> str:
    return (
        f"{round(np.degrees(value), 2) + 0.0:.2f}"
        if unit == "rad"
        else f"{round(value, 4) + 0.0:.{3 if unit == '1' else 4}f}"
    )


#: More unknown coordinates than these are listed below each other.
MOST_COLUMNS = 7
#: Marks behind the number of a mode.
MARKS = {
    "*": "reached from the reference pose without passing a singularity",
    "~": "singular, or nearly so: modes meet here",
    "!": "beyond a stop",
}
