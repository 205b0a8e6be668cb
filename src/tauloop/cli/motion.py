"""``tauloop motion``: a trajectory along a path, as a table that other commands read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tauloop.assembly.entry import PLATFORM
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, console, log_ending, print_json, reports_errors, table, writes
from tauloop.cli.strokes import (
    AccelerationOption,
    BlendOption,
    EndOption,
    EntryOption,
    LawOption,
    PointsOption,
    ReturnsOption,
    ShapeOption,
    ShareOption,
    SpeedOption,
    StartOption,
    StrokeChoice,
    TimeOption,
    TurnOption,
    ViaOption,
)
from tauloop.logs import write_log
from tauloop.logs.channels import Channel, build_log
from tauloop.model import Model, Motion
from tauloop.motion import LAWS, PeakForce, Trajectory, peak, tightest_limit


@reports_errors
@writes(out=log_ending)
def motion(
    machine: MachineArgument,
    side: SideOption = None,
    shape: ShapeOption = "line",
    start: StartOption = None,
    via: ViaOption = None,
    end: EndOption = None,
    points: PointsOption = None,
    turn: TurnOption = None,
    blend: BlendOption = 0.02,
    entry: EntryOption = PLATFORM,
    law: LawOption = "3-4-5",
    time: TimeOption = None,
    speed: SpeedOption = None,
    acceleration: AccelerationOption = None,
    share: ShareOption = 1.0,
    returns: ReturnsOption = False,
    frequency: Annotated[float, typer.Option(help="Samples per second in the table, Hz.")] = 1000.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write time, positions, velocities and accelerations to this CSV or Parquet file."),
    ] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Plan a trajectory: a path, a motion law, and a duration (given, or the shortest that the machine can do).

    The table is input of `tauloop dynamics --motion`. A path that leaves the workspace or passes through a singularity
    is refused with the place.
    """
    choice = StrokeChoice(
        shape=shape,
        start=start,
        via=via,
        end=end,
        points=points,
        turn=turn,
        blend=blend,
        entry=entry,
        law=law,
        time=time,
        speed=speed,
        acceleration=acceleration,
        share=share,
        returns=returns,
    )
    model = announced(Model(load_machine(machine, side)), within_limits)
    trajectory = choice.planned(model)
    placed, moved = trajectory.stroke, trajectory.stroke.columns
    functions = placed.functions
    peaks = trajectory.peak_forces()
    rate = 1.0 / trajectory.duration
    tightest = tightest_limit(placed, LAWS[law], rate, returns=returns)
    document = {
        "machine": model.mechanism.name,
        "entry": entry,
        "columns": moved,
        "law": law,
        "duration_s": trajectory.duration,
        "total_s": trajectory.total,
        "peak_speed": peak(placed, LAWS[law], "velocity", rate),
        "peak_acceleration": peak(placed, LAWS[law], "acceleration", rate),
        "forces": [_as_dict(item) for item in peaks],
        "tightest_limit": None if tightest is None else {"limit": tightest[0], "share": tightest[1]},
        "condition": placed.condition,
        "worst_place": placed.place(placed.worst),
    }
    if out is not None:
        _write(out, functions, trajectory, frequency)
    if as_json:
        print_json(document)
    else:
        _print(document, functions, peaks, out)


def _write(out: Path, functions: Motion, trajectory: Trajectory, frequency: float) -> None:
    sampled = trajectory.sample(frequency)
    log = build_log(
        sampled.time,
        [
            Channel(quantity=kind, channel=column, values=getattr(sampled, kind)[:, i], unit=unit)
            for kind, port in functions.ports.motion.items()
            for i, (column, unit) in enumerate(zip(port.columns, port.units, strict=True))
        ],
    )
    write_log(out, log)


def _as_dict(item: PeakForce) -> dict[str, Any]:
    limit = item.limit if np.isfinite(item.limit) else None
    return {
        "actuator": item.actuator,
        "peak_force": item.force,
        "time_s": item.time,
        "unit": item.unit,
        "limit": limit,
    }


def _print(document: dict[str, Any], functions: Motion, peaks: tuple[PeakForce, ...], out: Path | None) -> None:
    screen = console()
    linear = functions.ports.entry is PLATFORM and "m/s" in functions.ports.velocity.units
    unit = "m/s" if linear else next(iter(functions.ports.velocity.units))
    total = "" if document["total_s"] == document["duration_s"] else f" ({document['total_s']:.6g} s there and back)"
    screen.print(f"Stroke of {document['duration_s']:.6g} s{total}, law {document['law']}")
    screen.print(
        f"peak speed {document['peak_speed']:.5g} {unit}, acceleration {document['peak_acceleration']:.5g} {unit}^2"
    )
    rows = table("Peak forces", "actuator", "force", "limit", "unit", "at [s]", numeric=(1, 2, 4))
    for item in peaks:
        limit = f"{item.limit:.5g}" if np.isfinite(item.limit) else "-"
        rows.add_row(item.actuator, f"{item.force:.5g}", limit, item.unit, f"{item.time:.4f}")
    screen.print(rows)
    if document["tightest_limit"] is not None:
        screen.print(f"{document['tightest_limit']['share']:.1%} of the limit of {document['tightest_limit']['limit']}")
    screen.print(f"worst condition number {document['condition']:.3g} at {document['worst_place']}", soft_wrap=True)
    if out is not None:
        screen.print(f"written: {out}")
